/* linear.c - y = f(x W^T + b) in one pass over y, and gated linear units, y = a sigmoid(b) for x = [a, b].
 * Layers use both. Each is a fused operator, and for second derivatives a composition of operators.
 *
 * A weight [G, O, K] with a bias [G, O] is a separate layer for each of G groups, like a grouped
 * convolution. It maps x [.., G, K] to [.., G, O] in one batch of products.
 *
 * The gradient of f is computed from y, so the sums before f are not stored. This works for relu,
 * leaky_relu and elu (with factors above 0), because y has the sign of x, and for tanh and sigmoid, whose
 * derivatives are functions of y. */
#include "autograd/op.h"
#include "autograd/packed_weights.h"

typedef weft__linear_part_of curve;
enum { X_, WEIGHT, BIAS };

static const curve *attributes_of(const weft_call *c) { return c->attributes; }
static const real *part_of(const weft_call *c, int i, int64_t row)     /* part of weight or bias */
{
    return X(c, i) + attributes_of(c)->from * row;
}

static bool is_grouped(const weft_call *c)   { return c->x[WEIGHT]->f.rank == 3; }
static int64_t groups_of(const weft_call *c) { return is_grouped(c) ? c->x[WEIGHT]->f.size[0] : 1; }

static bool grouped_shape(weft_call *c)
{
    const weft__form *x = &c->x[X_]->f, *weight = &c->x[WEIGHT]->f,
                     *bias = c->n > BIAS ? &c->x[BIAS]->f : NULL;
    const int64_t groups = weight->size[0], out = weight->size[1], in = weight->size[2];
    const bool reals = is_real(c, X_) && is_real(c, WEIGHT) && (!bias || is_real(c, BIAS));
    const bool of_x = !weight->batch && groups > 0 && x->rank >= (x->batch ? 3 : 2) &&
                      x->size[x->rank - 2] == groups && x->size[x->rank - 1] == in;
    if (!reals || !of_x ||
        (bias && (bias->batch || bias->rank != 2 || bias->size[0] != groups || bias->size[1] != out)))
        return weft_op_refuse(c, "expected reals: [.., G, K], a weight [G, O, K] and a bias [G, O]");
    weft_op_like(c->y[0], c->x[X_]);
    c->y[0]->f.size[x->rank - 1] = out;
    return true;
}

static bool linear_shape(weft_call *c)
{
    const weft_tensor *x = c->x[X_], *weight = c->x[WEIGHT];
    if (is_grouped(c))
        return grouped_shape(c);
    for (int i = 0; i < c->n; i++)
        if (!is_real(c, i) || (i > X_ && (c->x[i]->f.batch || c->x[i]->f.rank != (i == WEIGHT ? 2 : 1))))
            return weft_op_refuse(c, "expected reals, a weight of rank 2 and a bias of rank 1");
    if (x->f.rank < 2 || width(x) != width(weight) ||
        (c->n > BIAS && c->x[BIAS]->f.size[0] != weight->f.size[0]))
        return weft__refuse(c, "expected [.., %lld], the columns of the weight, and a bias [%lld], its rows",
                            (long long)width(weight), (long long)weight->f.size[0]);
    weft_op_like(c->y[0], x);
    c->y[0]->f.size[x->f.rank - 1] = attributes_of(c)->rows ? attributes_of(c)->rows : weight->f.size[0];
    return true;
}

/* A product [m, k] [k, n] for each group. The weight stores groups one after the other; all other operands
 * have them as columns. */
static weft__product product_of(const weft_call *c, bool ta, bool tb, const int64_t *mnk, bool add,
                                const weft__finish *finish)
{
    const int64_t m = mnk[0], n = mnk[1], k = mnk[2], a = ta ? m : k, b = tb ? k : n;
    const int64_t groups = groups_of(c);
    const bool of_weight = ta;                   /* its gradient sums over tokens */
    return (weft__product){ .ta = ta,
                            .tb = tb,
                            .add = add,
                            .m = m,
                            .n = n,
                            .k = k,
                            .lda = a * groups,
                            .ldb = of_weight ? b * groups : b,
                            .ldc = of_weight ? n : n * groups,
                            .batches = groups,
                            .stride_a = a,
                            .stride_b = of_weight ? b : n * k,
                            .stride_c = of_weight ? m * n : n,
                            .precision = dev(c)->precision,
                            .then = finish };
}
static void product(const weft_call *c, bool ta, bool tb, const int64_t *mnk, const real *a, const real *b,
                    real *y, bool add)
{
    weft__product p = product_of(c, ta, tb, mnk, add, NULL);
    p.back = true;
    RUN(c, gemm, &p, a, b, y);
}

/* Returns the packed weight, or NULL. Only a tensor of step 0 is packed, not a view, and only if it makes the
 * kernel faster, which is the case for few rows. */
static const void *packed_weight(const weft_call *c, const weft__product *p)
{
    weft_tensor *weight = c->x[WEIGHT];
    if (weight->w->recording || weight->step)
        return NULL;
    const weft__packed_kind part =
        attributes_of(c)->rows ? WEFT__PACK_PART + (int)(attributes_of(c)->from / attributes_of(c)->rows) :
                                 WEFT__PACK_PRODUCT;
    weft__packed *k = weft__packed_of(&weight, 1, part, dev(c)->k->gemm_packs(dev(c), p));
    if (k && !k->filled)
        RUN(c, gemm_pack, p, part_of(c, WEIGHT, width(weight)), k->data), weft__mark_filled(k);
    return k ? k->data : NULL;
}

static int64_t tokens_of(const weft_call *c) { return weft__rows(&c->x[X_]->f) / groups_of(c); }

static void linear_run(weft_call *c)
{
    const curve *u = attributes_of(c);
    weft__finish finish = { c->n > BIAS ? part_of(c, BIAS, 1) : NULL, width(c->y[0]), u->f, u->p, 0 };
    const int64_t mnk[] = { tokens_of(c), width(c->y[0]), width(c->x[X_]) };
    weft__product p = product_of(c, false, true, mnk, false, &finish);
    p.packed = packed_weight(c, &p);
    RUN(c, gemm, &p, X(c, X_), part_of(c, WEIGHT, width(c->x[X_])), Y(c, 0));
}

static const real *gradient_of_sums(const weft_call *c) /* gradient before f; NULL: no memory */
{
    const curve *u = attributes_of(c);
    int64_t n = count(c->y[0]);
    if (u->f == WEFT__UNARIES)
        return weft_op_dy(c, 0);
    real *dz = weft__dy_reusable(c, 0);
    if (!dz && !(dz = weft__device_scratch(c, n)))
        return NULL;
    RUN(c, unary, u->f, 1, n, u->p, 0, Y(c, 0), Y(c, 0), weft_op_dy(c, 0), dz, false);
    return dz;
}

static void linear_fused(const weft_call *c)
{
    bool add;
    int64_t rows = tokens_of(c), in = width(c->x[X_]), out = width(c->y[0]);
    const real *dz = gradient_of_sums(c);
    const bool part = attributes_of(c)->rows;              /* the other rows get zeros */
    bool adds[2] = { true, true };
    weft__blocks zeros = { 0 };
    real *d[2] = { NULL, NULL };                 /* gradients of weight and bias */
    for (int i = 0; dz && i < c->n - WEIGHT; i++)
        d[i] = part ? weft__dx_sum(c, WEIGHT + i, &zeros) : weft_op_dx(c, WEIGHT + i, &adds[i]);
    weft__run_blocks(c, &zeros);
    if (d[0])
        product(c, true, false, (int64_t[]){ out, in, rows }, dz, X(c, X_),
                d[0] + attributes_of(c)->from * in, adds[0]);
    if (d[1])
        RUN(c, sum, &(weft__grid){ 2, { rows, groups_of(c) * out }, { { 0, 1 } } }, dz,
            d[1] + attributes_of(c)->from, adds[1]);
    real *dx = dz ? weft__dx_whole(c, X_, &add) : NULL;
    if (dx)
        product(c, false, false, (int64_t[]){ rows, in, out }, dz, part_of(c, WEIGHT, in), dx, add);
}

/* Returns group g of a weight or bias. */
static weft_tensor *of_group(weft_tensor *x, int64_t g)
{
    return weft_reshape(weft_slice(x, 0, g, g + 1), x->f.rank - 1, x->f.size + 1);
}

/* The composed form, one product for each group. */
static weft_tensor *composed_groups(const weft_call *c)
{
    const int64_t groups = groups_of(c);
    weft *w = c->x[X_]->w;
    weft_tensor **each = weft__take(w, WEFT__ARENA_CALLS, groups * (int64_t)sizeof(weft_tensor *));
    for (int64_t g = 0; each && g < groups; g++) {
        weft_tensor *x = weft_slice(c->x[X_], -2, g, g + 1);
        each[g] = weft_matmul_with(x, false, of_group(c->x[WEIGHT], g), true);
        each[g] = c->n > BIAS ? weft_add(each[g], of_group(c->x[BIAS], g)) : each[g];
    }
    return each ? weft_concat(each, groups, -2) : &w->nil;
}

static void linear_composed(const weft_call *c, weft_tensor **y)
{
    const curve *u = attributes_of(c);
    weft_tensor *lists[2] = { c->x[WEIGHT], c->n > BIAS ? c->x[BIAS] : NULL };
    for (int i = 0; u->rows && i < c->n - WEIGHT; i++)
        lists[i] = weft_slice(lists[i], 0, u->from, u->from + u->rows);
    weft_tensor *sum = is_grouped(c) ? composed_groups(c) : weft_matmul_with(c->x[X_], false, lists[0], true);
    sum = lists[1] && !is_grouped(c) ? weft_add(sum, lists[1]) : sum;
    y[0] = u->f == WEFT__UNARIES ? sum : weft__unary(u->f, sum, u->p);
}

static void describe_linear(const weft_call *c, char *text, size_t size)
{
    const curve *u = attributes_of(c);
    char parameter[40] = "";
    if (u->f == WEFT__UNARIES)
        return;
    weft__describe_parameter(u->f, u->p, parameter, sizeof parameter);
    snprintf(text, size, "then %s%s%s", weft__unary_name(u->f), *parameter ? ", " : "", parameter);
}

static const weft_op op_linear = { .name = "linear",
                                   .shape = linear_shape,
                                   .forward = linear_run,
                                   .fused = linear_fused,
                                   .composed = linear_composed,
                                   .describe = describe_linear };

weft_tensor *weft__linear(weft_tensor *x, weft_tensor *weight, weft_tensor *bias, int f, real p)
{
    curve u = { f, p, 0, 0 };
    return bias ? APPLY_WITH(&op_linear, u, x, weight, bias) : APPLY_WITH(&op_linear, u, x, weight);
}

weft_tensor *weft__linear_part(weft_tensor *x, weft_tensor *weight, weft_tensor *bias, int64_t from,
                               int64_t rows, int f)
{
    curve u = { f, 0, from, rows };
    return bias ? APPLY_WITH(&op_linear, u, x, weight, bias) : APPLY_WITH(&op_linear, u, x, weight);
}

/* ---- gated linear units ---- */
static bool glu_shape(weft_call *c)
{
    const weft_tensor *x = c->x[0];
    if (!is_real(c, 0) || x->f.rank < (x->f.batch ? 2 : 1) || width(x) % 2)
        return weft_op_refuse(c, "expected reals and an even last extent");
    weft_op_like(c->y[0], x);
    c->y[0]->f.size[x->f.rank - 1] /= 2;
    return true;
}

static void glu_run(weft_call *c) { RUN(c, glu, weft__rows(&c->x[0]->f), width(c->y[0]), X(c, 0), Y(c, 0)); }

static void glu_fused(const weft_call *c)
{
    bool add;
    real *dx = weft_op_dx(c, 0, &add);
    if (dx)
        RUN(c, glu_back, weft__rows(&c->x[0]->f), width(c->y[0]), X(c, 0), weft_op_dy(c, 0), dx, add);
}

static void glu_composed(const weft_call *c, weft_tensor **y)
{
    int64_t half = width(c->y[0]);
    y[0] = weft_mul(weft_slice(c->x[0], -1, 0, half), weft_sigmoid(weft_slice(c->x[0], -1, half, 2 * half)));
}

static const weft_op op_glu = {
    .name = "glu", .shape = glu_shape, .forward = glu_run, .fused = glu_fused, .composed = glu_composed
};

weft_tensor *weft__glu(weft_tensor *x) { return APPLY(&op_glu, x); }
