/* loops_products.h - plain loops: matrix products and attention. */
#ifndef WEFT_LOOPS_PRODUCTS_H
#define WEFT_LOOPS_PRODUCTS_H
#include "core/loops_memory.h"
#include "core/shared_attention.h"

/* WEFT_BF16 says so of a product's operands; numbers of double precision are left alone. */
static inline bool rounds(const weft__product *p) { return p->precision == WEFT_BF16 && sizeof(real) == sizeof(float); }
/* To the nearest bfloat16, ties to even. */
static inline real rounded(real x)
{
    float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u)
        return x;                                /* NaN */
    bits = (bits + 0x7FFFu + (bits >> 16 & 1)) & 0xFFFF0000u;
    memcpy(&f, &bits, sizeof f);
    return (real)f;
}

static inline int64_t value_width(const weft__attention *a) { return a->shared_values ? a->dv : a->heads * a->dv; }

#ifndef FAST
static void plain_product(const weft__product *p, const real *a, const real *b, real *c)
{
    bool bf16 = rounds(p);
    for (int64_t l = 0; l < p->batches; l++, a += p->stride_a, b += p->stride_b, c += p->stride_c)
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < p->n; j++) {
                real sum = p->add ? c[i * p->ldc + j] : 0;
                for (int64_t q = 0; q < p->k; q++) {
                    real u = p->ta ? a[q * p->lda + i] : a[i * p->lda + q], v = p->tb ? b[j * p->ldb + q] : b[q * p->ldb + j];
                    sum += bf16 ? rounded(u) * rounded(v) : u * v;
                }
                c[i * p->ldc + j] = sum;
            }
}

/* ---- attention: sequence s, head h, query i, key j ---- */
typedef struct query {                            /* one query of one head, its keys and values */
    const real *q, *k, *v; int64_t row, seen, ldk, ldv, head, first, i;           /* first: the row of key 0; i: its number in the sequence */
} query;

static real score(const weft__attention *a, const query *p, int64_t j)
{
    real s = 0;
    for (int64_t e = 0; e < a->dk; e++)
        s += p->q[e] * p->k[j * p->ldk + e];
    return a->scale * s;
}
/* What dropout makes of key j's weight, and of its gradient. */
static real dropped(const weft__attention *a, const query *p, int64_t j, real w)
{
    if (!a->below)
        return w;
    uint32_t draw = weft__philox_mask(weft__head_key(a->mask_key, p->head), a->id[p->row], (int32_t)p->i, j);
    return draw < a->below ? 0 : w * a->kept;
}
static void each_query(const weft__attention *a, void (*visit)(const weft__attention *, const query *))
{
    for (int64_t s = 0; s < a->sequences; s++)
        for (int64_t i = a->q_offset.host[s], queries = a->q_offset.host[s + 1] - i; i < a->q_offset.host[s + 1]; i++)
            for (int64_t h = 0; h < a->heads; h++) {
                query p = { .row = i, .i = i - a->q_offset.host[s], .head = h, .first = a->k_offset.host[s], .ldk = a->heads * a->dk, .ldv = value_width(a) };
                p.seen = weft__keys_seen(a->causal, p.i, queries, a->k_offset.host[s + 1] - p.first);
                p.q = a->q + i * p.ldk + h * a->dk, p.k = a->k + p.first * p.ldk + h * a->dk;
                p.v = a->v + p.first * p.ldv + (a->shared_values ? 0 : h * a->dv);
                visit(a, &p);
            }
}
static real weight(const weft__attention *a, const query *p, int64_t j)      /* before dropout */
{
    return exp(score(a, p, j) - a->lse[p->row * a->heads + p->head]);
}
static void attend(const weft__attention *a, const query *p)
{
    real most = -(real)INFINITY, sum = 0, *y = a->y + (p->row * a->heads + p->head) * a->dv;
    for (int64_t j = 0; j < p->seen; j++) {
        real s = score(a, p, j);
        most = s > most || isnan(s) ? s : most;
    }
    for (int64_t j = 0; j < p->seen; j++)
        sum += exp(score(a, p, j) - most);
    a->lse[p->row * a->heads + p->head] = p->seen ? most + log(sum) : -(real)INFINITY;
    for (int64_t c = 0; c < a->dv; c++)
        y[c] = 0;
    for (int64_t j = 0; j < p->seen; j++) {
        real w = dropped(a, p, j, weight(a, p, j));
        for (int64_t c = 0; c < a->dv; c++)
            y[c] += w * p->v[j * p->ldv + c];
    }
}
/* The weights, and 0 for the keys that a query does not see. */
static void write_map(const weft__attention *a, const query *p)
{
    int64_t s = 0;
    while (a->q_offset.host[s + 1] <= p->row)
        s++;
    int64_t keys = a->k_offset.host[s + 1] - p->first;
    real *map = a->map + a->map_offset.host[p->row] * a->heads + p->head;
    for (int64_t j = 0; j < keys; j++)
        map[j * a->heads] = j < p->seen ? dropped(a, p, j, weight(a, p, j)) : 0;
}
static void K(attention)(weft__device *d, const weft__attention *a)
{
    (void)d;
    each_query(a, attend);
    if (a->map)
        each_query(a, write_map);
}

static real weight_gradient(const weft__attention *a, const query *p, int64_t j, const real *dy)
{
    real dw = 0;
    for (int64_t c = 0; c < a->dv; c++)
        dw += dy[c] * p->v[j * p->ldv + c];
    return dropped(a, p, j, dw);
}

/* With weights w, what dropout makes of them m w (m = 1 without it), dw = m dy . v and D = sum of w dw (which is dy . y, but exactly dw
 * where there is one key): ds = scale w (dw - D), dq += ds k, dk += ds q, dv += m w dy. */
static void attend_back(const weft__attention *a, const query *p)
{
    const real *dy = a->dy + (p->row * a->heads + p->head) * a->dv;
    real all = 0, *dq = a->dq ? a->dq + (p->q - a->q) : NULL;
    real *dk = a->dk_ ? a->dk_ + (p->k - a->k) : NULL, *dv = a->dv_ ? a->dv_ + (p->v - a->v) : NULL;
    for (int64_t j = 0; j < p->seen; j++)
        all += weight(a, p, j) * weight_gradient(a, p, j, dy);
    for (int64_t j = 0; j < p->seen; j++) {
        real w = weight(a, p, j), ds = a->scale * w * (weight_gradient(a, p, j, dy) - all), kept = dropped(a, p, j, w);
        for (int64_t c = 0; dv && c < a->dv; c++)
            dv[j * p->ldv + c] += kept * dy[c];
        for (int64_t e = 0; dq && e < a->dk; e++)
            dq[e] += ds * p->k[j * p->ldk + e];
        for (int64_t e = 0; dk && e < a->dk; e++)
            dk[j * p->ldk + e] += ds * p->q[e];
    }
}

static void K(attention_back)(weft__device *d, const weft__attention *a)
{
    (void)d;
    each_query(a, attend_back);
}

static void K(gemm)(weft__device *d, const weft__product *p, const real *a, const real *b, real *c)
{
    (void)d;
    plain_product(p, a, b, c);
    for (int64_t i = 0; p->then && i < p->batches * p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            real *to = c + i / p->m * p->stride_c + i % p->m * p->ldc + j;
            *to += p->then->bias ? p->then->bias[j] : 0;
            *to = p->then->f < WEFT__UNARIES ? function(p->then->f, 0, *to, 0, p->then->p, p->then->q) : *to;
        }
}
#endif
#endif
