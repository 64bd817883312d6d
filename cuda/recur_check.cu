/* recur_check.cu - checks a persistent kernel before its first use on a device. It runs a small layer by
 * this kernel and by the general one and compares: forward the states, backward also the gradients.
 *
 * The layer has two octets of sequences of different lengths, the second not full, and fewer units than
 * fit. With reset, some sequences begin in the middle of a column. A refused launch, wrong numbers or a
 * wait that times out leave the context as it was. */
#ifndef WEFT_DOUBLE
#include "cuda/recur.h"

enum { COLUMNS = 11, ALL_SEQUENCES = 14, STEPS = 5, TOKENS = 42 };
static const int32_t live[STEPS] = { COLUMNS, COLUMNS, 9, 8, 3 },
                     start[STEPS + 1] = { 0, 11, 22, 31, 39, TOKENS };

/* Buffers of one of the two runs: gates, states, gradients of the first states. */
typedef struct run_buffers { float *gates, *h, *c, *dh0, *dc0; } run_buffers;
typedef struct check {
    weft__recurrence r;
    run_buffers runs[2];
    float *floats; int64_t used;                 /* memory of the arrays, and the part in use */
    /* live, start, reset; then two flags: timeout, difference */
    int32_t *ints;
    int32_t reset[TOKENS];
} check;

/* ---- inputs ---- */
static __global__ void draw(int64_t n, unsigned salt, float scale, float *y) /* in -scale .. scale */
{
    for (int64_t i = first_index(); i < n; i += index_step()) {
        unsigned u = (unsigned)i * 2654435761u + salt;
        u ^= u >> 15;
        u *= 2246822519u;
        u ^= u >> 13;
        u *= 3266489917u;
        u ^= u >> 16;
        y[i] = scale * ((float)(u >> 8) / (1 << 23) - 1);
    }
}
static float *take_floats(check *t, int64_t n)
{
    float *p = t->floats ? t->floats + t->used : NULL;
    t->used += (n + 3) / 4 * 4;
    return p;
}
static float *random_floats(weft__device *d, check *t, int64_t n, float scale)
{
    float *p = take_floats(t, n);
    if (p)
        LAUNCH(d, draw, blocks_for(n), THREADS, 0, n, (unsigned)t->used, scale, p);
    return p;
}
static float *zero_floats(weft__device *d, check *t, int64_t n) { return random_floats(d, t, n, 0); }

/* Begins sequences 11, 12 and 13 where 0, 2 and 4 end, and one from zeros where 1 ends. */
static void set_columns(check *t)
{
    for (int i = 0; i < TOKENS; i++)
        t->reset[i] = i < COLUMNS ? i : (int)WEFT__ON;
    for (int i = 0; i < 3; i++)
        t->reset[start[2] + 2 * i] = COLUMNS + i;
    t->reset[start[3] + 1] = WEFT__ANEW;
}
/* Sets the arrays of the layer. Without memory: counts the floats that they need. */
static void set_layer(weft__device *d, check *t, const choice &c)
{
    const int64_t H = max_units(c) - 3, slots = weft__slots(c.cell) * H, states = ALL_SEQUENCES * H;
    const bool two = has_c(c.cell);
    weft__recurrence *r = &t->r;
    t->used = 0;
    *r = weft__recurrence{};
    r->cell = c.cell;
    r->sequences = c.reset ? ALL_SEQUENCES : COLUMNS;
    r->tokens = TOKENS;
    r->steps = r->to = STEPS;
    r->hidden = r->width = H;
    r->w_hh = random_floats(d, t, weft__gates(c.cell) * H * H, 1 / sqrtf((float)H));
    r->b_h_alone = weft__slot_of_h_alone(c.cell) >= 0 ? random_floats(d, t, H, 1) : NULL;
    r->h0 = random_floats(d, t, states, 1);
    r->c0 = two ? random_floats(d, t, states, 1) : NULL;
    r->dy = random_floats(d, t, TOKENS * H, 1);
    r->dyc = two ? random_floats(d, t, TOKENS * H, 1) : NULL;
    r->carry_h = zero_floats(d, t, COLUMNS * H);
    r->carry_c = zero_floats(d, t, COLUMNS * H);
    for (run_buffers &s : t->runs) {
        s.gates = random_floats(d, t, TOKENS * slots, 1);
        s.h = zero_floats(d, t, TOKENS * H);
        s.c = zero_floats(d, t, TOKENS * H);
        s.dh0 = zero_floats(d, t, states);
        s.dc0 = zero_floats(d, t, states);
        if (s.gates && &s != t->runs)
            K(copy)(d, s.gates, t->runs[0].gates, (size_t)(TOKENS * slots) * sizeof(float));
    }
    t->ints = (int32_t *)take_floats(t, 2 * STEPS + 1 + TOKENS + 2);
}
static void upload_ints(weft__device *d, check *t, const choice &c)
{
    const int32_t cleared[2] = { (int32_t)NO_TIMEOUT, 0 };
    int32_t *next = t->ints;
    t->r.live = weft__ints{ live, next };
    t->r.start = weft__ints{ start, next + STEPS };
    K(upload)(d, next, live, sizeof live), K(upload)(d, next + STEPS, start, sizeof start);
    next += 2 * STEPS + 1;
    set_columns(t);
    if (c.reset)
        t->r.reset = weft__ints{ t->reset, next };
    K(upload)(d, next, t->reset, sizeof t->reset), K(upload)(d, next + TOKENS, cleared, sizeof cleared);
}
static unsigned *flags_of(const check *t) { return (unsigned *)(t->ints + 2 * STEPS + 1 + TOKENS); }

/* ---- running and comparing ---- */
static weft__recurrence recurrence_of(const check *t, int run)
{
    const run_buffers &s = t->runs[run];
    weft__recurrence r = t->r;
    r.gates = s.gates;
    r.h = s.h;
    r.c = has_c(r.cell) ? s.c : NULL;
    r.dh0 = s.dh0;
    r.dc0 = has_c(r.cell) ? s.dc0 : NULL;
    return r;
}
/* Tensor cores truncate sums, so numbers of about 1 differ by some 1e-6. A missing low half gives 1e-4. */
static __global__ void compare(int64_t n, const float *a, const float *b, unsigned *different)
{
    for (int64_t i = first_index(); i < n; i += index_step())
        if (!(fabsf(a[i] - b[i]) <= 3e-5f * fmaxf(1, fabsf(b[i]))))
            atomicExch(different, 1u);
}
static void compare_runs(weft__device *d, const check *t, bool back)
{
    const run_buffers &a = t->runs[1], &b = t->runs[0];
    const int64_t H = t->r.hidden;
    const struct { int64_t n; const float *a, *b;
    } pairs[] = {
        { TOKENS * H * weft__slots(t->r.cell), a.gates, b.gates },
        { TOKENS * H, a.h, b.h },
        { TOKENS * H, a.c, b.c },
        { ALL_SEQUENCES * H, a.dh0, b.dh0 },
        { ALL_SEQUENCES * H, a.dc0, b.dc0 },
    };
    for (int i = 0; i < (back ? 5 : 3); i++)
        LAUNCH(d, compare, blocks_for(pairs[i].n), THREADS, 0, pairs[i].n, pairs[i].a, pairs[i].b,
               flags_of(t) + 1);
}
/* Runs the general kernel, forward in both runs if the backward kernel is checked. Waits, so that a later
 * failure is due to the checked kernel. */
static bool prepare(weft__device *d, const check *t, bool back)
{
    weft__recurrence general = recurrence_of(t, 0), tested = recurrence_of(t, 1);
    recur_general(d, &general);
    if (back)
        recur_general(d, &tested), recur_general_back(d, &general);
    K(wait)(d);
    return !d->failure[0];
}
static const char *find_error(weft__device *d, check *t, const choice &c)
{
    unsigned flags[2] = { NO_TIMEOUT, 0 };
    if (!prepare(d, t, c.back))
        return "";
    const cudaError_t error = launch_persistent(d, c, directions{ 1, { recurrence_of(t, 1) } }, flags_of(t));
    if (refused(error))
        return cudaGetErrorString(error);
    compare_runs(d, t, c.back);
    K(download)(d, flags, flags_of(t), sizeof flags);
    if (d->failure[0])
        return "the device failed";
    return flags[0] != NO_TIMEOUT ? "timed out waiting for another block" :
           flags[1]           ? "results differ by more than rounding" :
                                NULL;
}

const char *recur_check(weft__device *d, const choice &c)
{
    check t = {};
    const weft_precision precision = d->precision;
    set_layer(d, &t, c);
    t.floats = (float *)K(allocate)(d, (size_t)t.used * sizeof(float), false);
    if (!t.floats)
        return "";
    d->precision = WEFT_FP32;
    set_layer(d, &t, c);
    upload_ints(d, &t, c);
    const char *wrong = find_error(d, &t, c);
    d->precision = precision;
    K(release)(d, t.floats, false);
    return wrong;
}
#endif
