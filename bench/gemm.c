/* gemm.c - the case gemm: products of matrices in the shapes that layers have, each as it is needed forwards
 * and backwards.
 *
 * B tokens, I inputs, H outputs. forward: y = x W^T; dx = dy W; dw = dy^T x. WEFT_GEMM=openblas has the same
 * done by OpenBLAS; where there are but generic kernels both are shown. loss and norm are sum and norm of the
 * result. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "bench.h"

typedef struct bench {
    weft *w;
    weft_module *all;
    weft_tensor *x, *weight, *dy;
    row row;
} bench;

static weft_tensor *product(const bench *b, int which)
{
    return which == 0 ? weft_matmul_with(b->x, false, b->weight, true) :
           which == 1 ? weft_matmul(b->dy, b->weight) :
                        weft_matmul_with(b->dy, true, b->x, false);
}

static bool measure_product(bench *b, int which, const settings *s)
{
    static const char *const passes[] = { "forward", "dx", "dw" };
    times   t = { 0 };
    double  start;
    int64_t before = 0;
    b->row.pass = passes[which];
    weft_tensor *y = product(b, which);
    b->row.loss = (double)weft_item(weft_sum_all(y));
    b->row.norm = sqrt((double)weft_item(weft_sum_all(weft_square(y))));
    for (int i = 0; i < 2; i++) {
        weft_clear(b->w);
        product(b, which);
        weft_synchronize(b->w);
        before = weft_usage_of(b->w).allocations;
    }
    do {
        weft_clear(b->w);
        start = now_ms();
        product(b, which);
        weft_synchronize(b->w);
    } while (more(&t, now_ms() - start, s));
    b->row.allocations = weft_usage_of(b->w).allocations - before;
    weft_clear(b->w);
    if (failed(b->w, b->row.name))
        return false;
    emit(s, b->w, &b->row, &t);
    return true;
}

static bool run(row r, const settings *s)
{
    if (s->growth)                               /* it is no training step */
        return false;
    bench b = { .row = r, .w = weft_open(&s->open) };
    b.all = weft_module_new(b.w, "bench");
    b.x = weft_buffer(b.all, "x", WEFT_SHAPE(r.B, r.I));
    b.weight = weft_buffer(b.all, "weight", WEFT_SHAPE(r.H, r.I));
    b.dy = weft_buffer(b.all, "dy", WEFT_SHAPE(r.B, r.H));
    b.row.tokens = r.B;
    add_linear(&b.row.work, (double)r.B, r.I, r.H, false);
    weft_set_grad_enabled(b.w, false);
    bool good =
        fill_formula(b.x, "x", 2) && fill_formula(b.weight, "weight", 2) && fill_formula(b.dy, "dy", 2);
    for (int which = 0; good && which < 3; which++)
        good = measure_product(&b, which, s);
    weft_close(b.w);
    return good;
}

static bool is_generic(const settings *s)
{
    weft *w = weft_open(&s->open);
    bool generic = !strcmp(weft_device_name(w), "generic");
    weft_close(w);
    return generic;
}

/* Input projections of lstm and net, a linear layer to two classes, and to a vocabulary; what few tokens
 * make of it. */
static bool by_one(const settings *s)
{
    static const int64_t all[][3] = { { 5176, 128, 512 },  { 5176, 256, 1024 }, { 65792, 16, 128 },
                                      { 65792, 32, 2 },    { 5176, 512, 2048 }, { 5176, 128, 128 },
                                      { 1024, 512, 8000 }, { 64, 256, 1024 },   { 1, 512, 2048 } };
    bool good = true;
    for (int i = 0; i < (s->quick ? 4 : 9); i++) {
        row r = { .name = "gemm", .lengths = "equal", .B = all[i][0], .T = 1, .I = all[i][1], .layers = 1 };
        r.H = all[i][2];
        good &= measure(run, r, "plain", s);
    }
    return good;
}

bool bench_gemm(const settings *s)
{
    settings blas = *s;
    blas.open.gemm = WEFT_OPENBLAS_GEMM;
    return by_one(s) && (getenv("WEFT_GEMM") || !is_generic(s) || by_one(&blas));
}
