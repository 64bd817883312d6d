/* conv.c - convolution over the tokens of each sequence. Row t of the result is the sum over k of W_k times
 * the token that column k of window t reads (core/ragged/windows.c), plus a bias.
 *
 * A CPU's product in full precision gathers the windows itself, each thread for a block of rows in its
 * cache. With OpenBLAS, matrix tiles or a GPU they are copied and multiplied in pieces of some rows, so the
 * copies take little memory. The gradient of x is such a convolution too: a token gets the gradients of the
 * rows that read it, and no two rows read it as the same column. The order of sums over tokens depends only
 * on their number and on the extents of the weight. */
#include "autograd/op.h"

enum { X_, WEIGHT, BIAS };
enum { PIECE = 1 << 18, DEVICE_PIECE = 1 << 26 }; /* numbers of a piece, for the cache or on a GPU */

static const weft__reads *reads_of(const weft_call *c) { return c->attributes; }
static int64_t outputs(const weft_call *c) { return c->x[WEIGHT]->f.size[0]; }

static const weft__token_windows *window_of(const weft_call *c, bool readers)
{
    return weft__token_windows_of(c->x[X_]->f.batch, reads_of(c), readers, c->op->name);
}

static bool conv_shape(weft_call *c)
{
    const weft__form *x = &c->x[X_]->f, *weight = &c->x[WEIGHT]->f;
    bool fits = is_real(c, X_) && is_real(c, WEIGHT) && x->batch && x->rank == 2 && !weight->batch &&
                weight->rank == 3 && weight->size[1] == x->size[1] && weight->size[2] == reads_of(c)->width;
    if (fits && c->n > BIAS)
        fits = is_real(c, BIAS) && !c->x[BIAS]->f.batch && c->x[BIAS]->f.rank == 1 &&
               c->x[BIAS]->f.size[0] == weight->size[0];
    if (!fits)
        return weft__refuse(c, "expected ragged reals [N, in], a weight [out, in, %lld] and a bias [out]",
                            (long long)reads_of(c)->width);
    const weft__token_windows *v = window_of(c, false);
    if (!v)
        return false;
    c->y[0]->f = *x;
    c->y[0]->f.batch = v->to;
    c->y[0]->f.size[0] = v->to->tokens;
    c->y[0]->f.size[1] = outputs(c);
    return true;
}

/* ---- pieces ---- */
/* Windows of `width` rows of `from` [tokens, columns], chosen by index [rows, width]. */
typedef struct windows {
    const weft__ints *index;
    int64_t rows, width, tokens, columns;
    const real *from;
} windows;

static int64_t row_size(const windows *v) { return v->width * v->columns; }
static int64_t rows_a_piece(const weft_call *c, const windows *v)
{
    int64_t rows = (dev(c)->k->synchronous ? PIECE : DEVICE_PIECE) / (row_size(v) + 1);
    rows = rows < 64 ? 64 : rows;
    return rows < v->rows ? rows : v->rows;
}
static weft__gathered gathered(const windows *v)
{
    return (weft__gathered){ v->index->host, v->width, v->columns };
}
static void copy_piece(const weft_call *c, const windows *v, int64_t row, int64_t rows, real *to)
{
    RUN(c, gather, rows * v->width, v->columns, v->tokens, v->from, v->index->device + row * v->width, 0, to,
        false);
}
/* Copies the weight [out, in, width] with its axes in another order. */
static real *turned_weight(const weft_call *c, int a, int b, int last)
{
    const int64_t *size = c->x[WEIGHT]->f.size, step[] = { size[1] * size[2], size[2], 1 };
    weft__grid g = { 3, { size[a], size[b], size[last] }, { { step[a], step[b], step[last] } } };
    real *to = weft__device_scratch(c, count(c->x[WEIGHT]));
    if (to && count(c->x[WEIGHT]))
        RUN(c, spread, &g, X(c, WEIGHT), to, false);
    return to;
}
/* y [rows, out] (+)= windows by the transpose of weight [out, width * columns], piece by piece. */
static void multiply_pieces(const weft_call *c, const windows *v, weft__product p, const real *weight,
                            real *y)
{
    const int64_t some = rows_a_piece(c, v);
    p.gathered = NULL;
    p.m = some;
    const bool add = p.add;
    p.add = false;                               /* gemm_packs answers for sums that do not add */
    const size_t bytes = v->rows > some ? dev(c)->k->gemm_packs(dev(c), &p) : 0;
    real *piece = weft__device_scratch(c, some * p.k),
         *packed = bytes ? weft__device_scratch(c, (int64_t)(bytes / sizeof *packed) + 1) : NULL;
    if (!piece || (bytes && !packed))
        return;
    if (packed)
        RUN(c, gemm_pack, &p, weight, packed);
    p.add = add;
    for (int64_t row = 0; row < v->rows; row += p.m) {
        p.m = some < v->rows - row ? some : v->rows - row;
        p.packed = p.m == some ? packed : NULL;
        copy_piece(c, v, row, p.m, piece);
        RUN(c, gemm, &p, piece, weight, y + row * p.n);
    }
}
static void multiply(const weft_call *c, const windows *v, const real *weight, int64_t out, real *y, bool add,
                     const weft__finish *finish)
{
    const weft__gathered rows = gathered(v);
    const weft__product p = { .tb = true,
                              .add = add,
                              .m = v->rows,
                              .n = out,
                              .k = row_size(v),
                              .lda = row_size(v),
                              .ldb = row_size(v),
                              .ldc = out,
                              .batches = 1,
                              .precision = dev(c)->precision,
                              .back = !finish,
                              .then = finish,
                              .gathered = &rows };
    if (weight && dev(c)->k->gemm_gathers(dev(c), &p))
        RUN(c, gemm, &p, v->from, weight, y);
    else if (weight)
        multiply_pieces(c, v, p, weight, y);
}

static windows windows_of(const weft_call *c, const weft__token_windows *v)
{
    const weft__form *x = &c->x[X_]->f;
    return (windows){ &v->index, v->to->tokens, v->reads.width, x->size[0], x->size[1], X(c, X_) };
}

static void conv_run(weft_call *c)
{
    weft *w = c->y[0]->w;
    const int64_t before = weft__position(w, WEFT__ARENA_DATA);
    const weft__token_windows *v = window_of(c, false);
    if (!v || !v->to->tokens || !outputs(c))
        return;
    const windows all = windows_of(c, v);
    const weft__finish finish = { c->n > BIAS ? X(c, BIAS) : NULL, 0, WEFT__UNARIES, 0, 0 };
    multiply(c, &all, turned_weight(c, 0, 2, 1), outputs(c), Y(c, 0), false, &finish);
    weft__rewind_to(w, WEFT__ARENA_DATA, before);
}

/* ---- gradients ---- */
/* sums [out, width * columns] = the transpose of dy by the windows, in the order of the pieces. */
static bool sum_pieces(const weft_call *c, const windows *v, weft__product p, const real *dy, real *sums)
{
    const int64_t some = rows_a_piece(c, v);
    real *piece = weft__device_scratch(c, some * p.n);
    p.gathered = NULL;
    for (int64_t row = 0; piece && (row < v->rows || !p.add); row += p.k, p.add = true) {
        p.k = some < v->rows - row ? some : v->rows - row;
        copy_piece(c, v, row, p.k, piece);
        RUN(c, gemm, &p, dy + row * p.m, piece, sums);
    }
    return piece;
}
static void weight_back(const weft_call *c, const weft__token_windows *v, const real *dy, real *dw, bool add)
{
    const windows all = windows_of(c, v);
    const weft__gathered rows = gathered(&all);
    const int64_t *size = c->x[WEIGHT]->f.size, k = row_size(&all);
    const weft__product p = { .ta = true,
                              .m = size[0],
                              .n = k,
                              .k = all.rows,
                              .lda = size[0],
                              .ldb = k,
                              .ldc = k,
                              .batches = 1,
                              .precision = dev(c)->precision,
                              .back = true,
                              .gathered = &rows };
    real *sums = weft__device_scratch(c, size[0] * k);
    if (!sums)
        return;
    if (dev(c)->k->gemm_gathers(dev(c), &p))
        RUN(c, gemm, &p, dy, all.from, sums);
    else if (!sum_pieces(c, &all, p, dy, sums))
        return;
    weft__grid g = { 3, { size[0], size[1], size[2] }, { { k, 1, size[1] } } };
    if (count(c->x[WEIGHT]))
        RUN(c, spread, &g, sums, dw, add);
}

static void conv_fused(const weft_call *c)
{
    weft *w = c->y[0]->w;
    bool add_x = false, add_weight = false, add_bias = false;
    const weft__token_windows *v = window_of(c, true);
    const real *dy = weft_op_dy(c, 0);
    real *dx = weft__dx_whole(c, X_, &add_x), *dw = weft_op_dx(c, WEIGHT, &add_weight),
         *db = c->n > BIAS ? weft_op_dx(c, BIAS, &add_bias) : NULL;
    const int64_t before = weft__position(w, WEFT__ARENA_DATA);
    if (!v || !dy)
        return;
    const weft__form *x = &c->x[X_]->f;
    const windows back = { &v->readers, x->size[0], v->reads.width, v->to->tokens, outputs(c), dy };
    if (dw)
        weight_back(c, v, dy, dw, add_weight);
    if (db)
        RUN(c, sum, &(weft__grid){ 2, { v->to->tokens, outputs(c) }, { { 0, 1 } } }, dy, db, add_bias);
    if (dx && x->size[0] && x->size[1])
        multiply(c, &back, turned_weight(c, 1, 2, 0), x->size[1], dx, add_x, NULL);
    weft__rewind_to(w, WEFT__ARENA_DATA, before);
}

static void conv_composed(const weft_call *c, weft_tensor **y)
{
    const int64_t *size = c->x[WEIGHT]->f.size;
    weft_tensor *all = weft__windows(c->x[X_], reads_of(c), true, c->op->name);
    weft_tensor *rows = weft_reshape(all, WEFT_SHAPE(weft_size(all, 0), size[2] * size[1])),
                *weight =
                    weft_reshape(weft_transpose(c->x[WEIGHT], 1, 2), WEFT_SHAPE(size[0], size[2] * size[1])),
                *sum = weft_matmul_with(rows, false, weight, true);
    y[0] = c->n > BIAS ? weft_add(sum, c->x[BIAS]) : sum;
}

static void describe_conv(const weft_call *c, char *text, size_t size)
{
    const weft__reads *r = reads_of(c);
    snprintf(text, size, "width=%lld, dilation=%lld, stride=%lld, from=%lld", (long long)r->width,
             (long long)r->dilation, (long long)r->every, (long long)r->from);
}

static const weft_op op_conv = { .name = "conv",
                                 .layout = WEFT_CONCAT,
                                 .shape = conv_shape,
                                 .forward = conv_run,
                                 .fused = conv_fused,
                                 .composed = conv_composed,
                                 .describe = describe_conv };

weft_tensor *weft__conv(weft_tensor *x, weft_tensor *weight, weft_tensor *bias, const weft__reads *reads)
{
    return bias ? APPLY_WITH(&op_conv, *reads, x, weight, bias) : APPLY_WITH(&op_conv, *reads, x, weight);
}
