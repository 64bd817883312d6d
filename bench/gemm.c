/* gemm.c - the cases gemm and pack: the parts of layers.
 *
 * gemm: products of matrices in the shapes that layers have. B tokens, I inputs, H outputs. forward: y = x
 * W^T; dx = dy W; dw = dy^T x. With WEFT_GEMM=openblas OpenBLAS does the same; with generic kernels both are
 * shown. loss and norm are sum and norm of the result.
 *
 * pack: every layout change, forward and backward, compared with a plain copy of the same bytes. Each run has
 * a new batch, as in training, so the time includes its index arrays. The time of a backward pass includes
 * writing the gradient of ones that it starts from. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "weft_op.h"
#include "bench.h"

typedef struct bench {
    weft *w;
    weft_module *all;
    weft_tensor *x, *weight, *dy;
    row row;
} bench;

static weft_tensor *product(const bench *b, int kind)
{
    if (kind == 0)
        return weft_matmul_with(b->x, false, b->weight, true);
    return kind == 1 ? weft_matmul(b->dy, b->weight) : weft_matmul_with(b->dy, true, b->x, false);
}

static bool measure_product(bench *b, int kind, const settings *s)
{
    static const char *const passes[] = { "forward", "dx", "dw" };
    times   t = { 0 };
    double  start;
    int64_t before = 0;
    b->row.pass = passes[kind];
    weft_tensor *y = product(b, kind);
    b->row.loss = (double)weft_item(weft_sum_all(y));
    b->row.norm = sqrt((double)weft_item(weft_sum_all(weft_square(y))));
    for (int i = 0; i < 2; i++) {
        weft_clear(b->w);
        product(b, kind);
        weft_synchronize(b->w);
        before = weft_usage_of(b->w).allocations;
    }
    do {
        weft_clear(b->w);
        start = now_ms();
        product(b, kind);
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
    if (s->growth)                               /* not a training step */
        return false;
    bench b = { .row = r, .w = weft_open(&s->open) };
    b.all = weft_module_new(b.w, "bench");
    b.x = weft_buffer(b.all, "x", WEFT_SHAPE(r.B, r.I));
    b.weight = weft_buffer(b.all, "weight", WEFT_SHAPE(r.H, r.I));
    b.dy = weft_buffer(b.all, "dy", WEFT_SHAPE(r.B, r.H));
    b.row.tokens = r.B;
    add_linear(&b.row.work, (double)r.B, r.I, r.H, false);
    weft_set_grad_enabled(b.w, false);
    bool ok =
        fill_formula(b.x, "x", 2) && fill_formula(b.weight, "weight", 2) && fill_formula(b.dy, "dy", 2);
    for (int kind = 0; ok && kind < 3; kind++)
        ok = measure_product(&b, kind, s);
    weft_close(b.w);
    return ok;
}

static bool is_generic(const settings *s)
{
    weft *w = weft_open(&s->open);
    bool generic = !strcmp(weft_device_name(w), "generic");
    weft_close(w);
    return generic;
}

/* Input projections of lstm and net, a linear layer to two classes, one to a vocabulary, and products with
 * few tokens. */
static bool by_one(const settings *s)
{
    static const int64_t all[][3] = { { 5176, 128, 512 },  { 5176, 256, 1024 }, { 65792, 16, 128 },
                                      { 65792, 32, 2 },    { 5176, 512, 2048 }, { 5176, 128, 128 },
                                      { 1024, 512, 8000 }, { 64, 256, 1024 },   { 1, 512, 2048 } };
    bool ok = true;
    for (int i = 0; i < (s->quick ? 4 : 9); i++) {
        row r = { .name = "gemm", .lengths = "equal", .B = all[i][0], .T = 1, .I = all[i][1], .layers = 1 };
        r.H = all[i][2];
        ok &= measure(run, r, "plain", s);
    }
    return ok;
}

bool bench_gemm(const settings *s)
{
    settings blas = *s;
    blas.open.gemm = WEFT_OPENBLAS_GEMM;
    return by_one(s) && (getenv("WEFT_GEMM") || !is_generic(s) || by_one(&blas));
}

/* ---- pack ---- */
typedef struct move {
    const char *name;
    weft_tensor *(*run)(weft_tensor *x, const weft_lengths *l);
    bool padded;
    int copies;
} move;

static weft_tensor *pack_and_unpack(weft_tensor *x, const weft_lengths *l)
{
    (void)l;
    return weft_to_layout(weft_to_layout(x, WEFT_PACKED), WEFT_CONCAT);
}

static weft_tensor *pack(weft_tensor *x, const weft_lengths *l)
{
    return weft_pack_padded_sequence(x, l, WEFT_ALIGN_LEFT);
}

static weft_tensor *pad(weft_tensor *x, const weft_lengths *l)
{
    (void)l;
    return weft_pad_packed_sequence(x, 0, 0, WEFT_ALIGN_LEFT);
}

static double copy_ms(weft_real *to, const weft_real *from, size_t bytes, const settings *s)
{
    times  t = { 0 };
    double start;
    memcpy(to, from, bytes);
    do {
        start = now_ms();
        memcpy(to, from, bytes);
        __asm__ volatile("" : : "r"(to) : "memory");         /* keeps an unused copy */
    } while (more(&t, now_ms() - start, s));
    return median(&t);
}

/* Times one run, without the creation of its input. */
static double once(weft *w, const move *m, const weft_real *data, const row *r, const weft_lengths *l,
                   bool back)
{
    weft_tensor *x = m->padded ? weft_reals(w, data, WEFT_SHAPE(r->B, r->T, r->I)) :
                                 weft_ragged(w, data, r->I, l),
                *dx;
    weft_set_grad_enabled(w, back);
    double start = now_ms();
    weft_tensor *y = m->run(x, l);
    weft_synchronize(w);
    if (back) {
        start = now_ms();
        weft_set_grad_enabled(w, false);
        weft_gradients(y, &x, 1, &dx);
        weft_synchronize(w);
    }
    double ms = now_ms() - start;
    weft_clear(w);
    return ms;
}

static void measure_move(weft *w, const move *m, const weft_real *data, row *r, const weft_lengths *l,
                         const settings *s)
{
    for (int back = 0; back < 2; back++) {
        times t = { 0 };
        once(w, m, data, r, l, back);
        once(w, m, data, r, l, back);
        while (more(&t, once(w, m, data, r, l, back), s))
            ;
        r->pass = back ? "backward" : "forward";
        r->what = m->name;
        if (failed(w, m->name))
            return;
        emit(s, w, r, &t);
    }
}

static bool at_length(int64_t T, const settings *s)
{
    static const move moves[] = { { "arrange there and back", pack_and_unpack, false, 2 },
                                  { "pack_padded", pack, true, 1 },
                                  { "pad_packed", pad, false, 1 } };
    row r = { .name = "pack", .lengths = "uniform", .layout = "packed", .B = (1 << 18) / T, .T = T, .I = 64 };
    int64_t room = r.B * r.T * r.I;
    weft_real *data = keep(room, sizeof *data), *to = keep(room, sizeof *to);
    weft *w = weft_open(&s->open);
    weft_lengths l = { .n = r.B, .len = make_lengths(r.lengths, 1, r.B, (int32_t)T, &r.tokens) };
    for (int64_t i = 0; i < room; i++)
        data[i] = (weft_real)(i % 1009);
    size_t bytes = (size_t)(r.tokens * r.I) * sizeof *data;
    double copy = copy_ms(to, data, bytes, s);
    for (int i = 0; i < 3; i++) {
        r.bytes = (double)bytes * 2 * moves[i].copies;           /* read and written */
        r.copy_ms = copy * moves[i].copies;
        measure_move(w, &moves[i], data, &r, &l, s);
    }
    bool ok = weft_ok(w);
    weft_close(w);
    free_kept();
    return ok;
}

bool bench_pack(const settings *s) { return at_length(32, s) && at_length(4096, s); }
