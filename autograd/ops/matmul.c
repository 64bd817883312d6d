/* matmul.c - matrix products. Leading axes of `a` count as rows, and so do ragged rows. A sum over ragged
 * rows requires the same rows in both operands (a^T b); the gradient of a weight is such a product. Otherwise
 * both operands have the same leading axes and form a batch of products. */
#include "autograd/op.h"

typedef weft__turns turns;
enum { IMPOSSIBLE, FOLDED, CONTRACTED, BATCHED };
typedef struct { int kind; int64_t m, n, k; } plan;

static int64_t extent_from_end(const weft_tensor *x, int from_end) { return x->f.size[x->f.rank - from_end]; }

static bool same_leading(const weft__form *a, const weft__form *b)
{
    bool same = a->rank == b->rank && a->batch == b->batch;
    for (int i = 0; same && i + 2 < a->rank; i++)
        same = a->size[i] == b->size[i];
    return same;
}

static plan plan_of(const weft_call *c)
{
    const turns *t = c->attributes;
    const weft_tensor *a = c->x[0], *b = c->x[1];
    if (a->f.rank < 2 || b->f.rank < 2 || !is_real(c, 0) || !is_real(c, 1))
        return (plan){ IMPOSSIBLE, 0, 0, 0 };
    plan p = { BATCHED, t->ta ? extent_from_end(a, 1) : extent_from_end(a, 2),
               t->tb ? extent_from_end(b, 2) : extent_from_end(b, 1),
               t->ta ? extent_from_end(a, 2) : extent_from_end(a, 1) };
    bool ragged_b = b->f.batch && b->f.rank == 2, ragged_a = a->f.batch && a->f.rank == 2;
    if (p.k != (t->tb ? extent_from_end(b, 1) : extent_from_end(b, 2)))
        return (plan){ IMPOSSIBLE, 0, 0, 0 };
    if (b->f.rank == 2 && !t->ta && !ragged_b)
        return (plan){ FOLDED, weft__rows(&a->f), p.n, p.k };
    if (a->f.rank == 2 && b->f.rank == 2)
        p.kind = t->ta && !t->tb && ragged_a == ragged_b ? CONTRACTED :
                 ragged_a || ragged_b                    ? IMPOSSIBLE :
                                                           CONTRACTED;
    else if (a->f.rank == 2 || b->f.rank == 2)
        p.kind = ragged_a || ragged_b ? IMPOSSIBLE : BATCHED;
    else if (!same_leading(&a->f, &b->f))
        p.kind = IMPOSSIBLE;
    return p;
}

static bool refuse_extents(const weft_call *c)
{
    const turns *t = c->attributes;
    const weft_tensor *a = c->x[0], *b = c->x[1];
    int64_t of_a = extent_from_end(a, t->ta ? 2 : 1), of_b = extent_from_end(b, t->tb ? 1 : 2);
    static const char *const turned[] = { "", " (transposed)" };
    if (of_a != of_b)
        return weft__refuse(c, "the inner extents do not agree: %lld of a%s, %lld of b%s", (long long)of_a,
                            turned[t->ta], (long long)of_b, turned[t->tb]);
    if (a->f.batch || b->f.batch)
        return weft_op_refuse(c, "ragged rows; expected a plain b of rank 2, or the same rows in both");
    return weft_op_refuse(c, "the leading axes do not agree; expected equal ones, or b of rank 2");
}

static bool matmul_shape(weft_call *c)
{
    plan p = plan_of(c);
    const weft__form *a = &c->x[0]->f, *b = &c->x[1]->f;
    if (!is_real(c, 0) || !is_real(c, 1) || a->rank < 2 || b->rank < 2)
        return weft_op_refuse(c, "expected reals of rank 2 or more");
    if (p.kind == IMPOSSIBLE)
        return refuse_extents(c);
    if (((const turns *)c->attributes)->ta)
        weft__drop_row_order(c);
    else
        weft__keep_row_order(c, 0);
    if (p.kind == CONTRACTED)
        c->y[0]->f = weft__plain(WEFT_REAL, 2, (int64_t[]){ p.m, p.n });
    else {
        weft__form *y = &c->y[0]->f;
        *y = a->rank >= b->rank ? *a : *b;
        y->size[y->rank - 1] = p.n;
        if (p.kind == BATCHED)
            y->size[y->rank - 2] = p.m;
    }
    return true;
}

static void matmul_run(weft_call *c)
{
    const turns *t = c->attributes;
    plan p = plan_of(c);
    const weft_tensor *a = c->x[0], *b = c->x[1];
    weft__product g = { .ta = t->ta,
                        .tb = t->tb,
                        .add = c->add,
                        .m = p.m,
                        .n = p.n,
                        .k = p.k,
                        .lda = width(a),
                        .ldb = width(b),
                        .ldc = p.n,
                        .batches = 1,
                        .stride_c = p.m * p.n,
                        .precision = dev(c)->precision };
    if (p.kind == BATCHED) {
        int64_t of_one = p.m * p.n;
        g.batches = of_one ? count(c->y[0]) / of_one : 0;
        g.stride_a = a->f.rank == 2 ? 0 : p.m * p.k;
        g.stride_b = b->f.rank == 2 ? 0 : p.k * p.n;
    }
    RUN(c, gemm, &g, X(c, 0), X(c, 1), Y(c, 0));
}

/* Merges the leading axes of [.., n] to [rows, n]. The result is plain if x had more than two axes. */
static weft_tensor *flat(weft_tensor *x)
{
    weft__form f = weft__plain(WEFT_REAL, 2, (int64_t[]){ weft__rows(&x->f), width(x) });
    return x->f.rank == 2 ? x : weft__view(x, &f);
}

static weft_tensor *matmul_back(const weft_call *c, weft_tensor *dy, int i)
{
    const turns *t = c->attributes;
    weft_tensor *a = c->x[0], *b = c->x[1];
    plan p = plan_of(c);
    if (i == 0)
        return weft__sum_to(
            t->ta ? weft_matmul_with(b, t->tb, dy, true) : weft_matmul_with(dy, false, b, !t->tb), &a->f);
    if (p.kind == FOLDED)
        a = flat(a), dy = flat(dy);
    return weft__sum_to(t->tb ? weft_matmul_with(dy, true, a, t->ta) : weft_matmul_with(a, !t->ta, dy, false),
                        &b->f);
}

static void describe_turns(const weft_call *c, char *text, size_t size)
{
    const turns *t = c->attributes;
    snprintf(text, size, "%s%s%s", t->ta ? "a transposed" : "", t->ta && t->tb ? ", " : "",
             t->tb ? "b transposed" : "");
}

static const weft_op op_matmul = { .name = "matmul",
                                   .adds = true,
                                   .shape = matmul_shape,
                                   .forward = matmul_run,
                                   .backward = matmul_back,
                                   .describe = describe_turns };
weft_tensor *weft_matmul_with(weft_tensor *a, bool ta, weft_tensor *b, bool tb)
{
    turns t = { ta, tb };
    return APPLY_WITH(&op_matmul, t, a, b);
}
weft_tensor *weft_matmul(weft_tensor *a, weft_tensor *b) { return weft_matmul_with(a, false, b, false); }
