/* pack.c - what packing costs: every layout change, forward and backward, beside a plain copy of the bytes
 * that must be moved.
 *
 * A new batch each time, as in training: its index arrays are part of the time. A backward starts from a
 * gradient of ones, whose writing is part of it, too. */
#include <string.h>
#include "bench.h"

typedef struct move {
    const char *name;
    weft_tensor *(*run)(weft_tensor *x, const weft_lengths *l);
    bool padded;
    int copies;
} move;

static weft_tensor *there_and_back(weft_tensor *x, const weft_lengths *l)
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
        __asm__ volatile("" : : "r"(to) : "memory");         /* it must be done, although no one looks */
    } while (more(&t, now_ms() - start, s));
    return median(&t);
}

/* One run: the input is made outside the time. */
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
    static const move moves[] = { { "arrange there and back", there_and_back, false, 2 },
                                  { "pack_padded", pack, true, 1 },
                                  { "pad_packed", pad, false, 1 } };
    row r = { .name = "pack", .lengths = "uniform", .layout = "packed", .B = (1 << 18) / T, .T = T, .I = 64 };
    int64_t room = r.B * r.T * r.I;
    int32_t *len = keep(r.B, sizeof *len);
    weft_real *data = keep(room, sizeof *data), *to = keep(room, sizeof *to);
    weft *w = weft_open(&s->open);
    weft_lengths l = { .n = r.B, .len = len };
    r.tokens = make_lengths(r.lengths, 1, len, r.B, (int32_t)T);
    for (int64_t i = 0; i < room; i++)
        data[i] = (weft_real)(i % 1009);
    size_t bytes = (size_t)(r.tokens * r.I) * sizeof *data;
    double copy = copy_ms(to, data, bytes, s);
    for (int i = 0; i < 3; i++) {
        r.bytes = (double)bytes * 2 * moves[i].copies;           /* read and written */
        r.copy_ms = copy * moves[i].copies;
        measure_move(w, &moves[i], data, &r, &l, s);
    }
    bool good = weft_ok(w);
    weft_close(w);
    free_kept();
    return good;
}

bool bench_pack(const settings *s) { return at_length(32, s) && at_length(4096, s); }
