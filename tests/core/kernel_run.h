/* kernel_run.h - runs kernels without a context: builds a device for a table and a number of threads,
 * generates the same inputs for every table, and keeps the outputs for comparison. */
#ifndef WEFT_KERNEL_RUN_H
#define WEFT_KERNEL_RUN_H
#include "tests/check.h"
#include "core/inside.h"

typedef struct output { real *x; int64_t n; double tol; } output;
typedef struct run {                             /* one case on one table */
    const weft__kernels *k; weft__device d;
    bool large;                                  /* enough work for several threads */
    int round;                                   /* 1, 2, ..: lets a case cycle through its variants */
    struct { unsigned char *p; size_t bytes, all; } mine[64]; int held;
    output out[24]; int outputs;
    heap heap;
} run;

UNUSED static run *run_on(const weft__kernels *k, int threads)
{
    run *t = calloc(1, sizeof *t);
    setenv("WEFT_MANAGED", "1", 1);              /* GPU memory that the host can read as well */
    *t = (run){ .k = k,
                .d = { .k = k, .allocate = heap_allocate, .release = heap_release, .user = &t->heap } };
    cr_assert(k->open(&t->d));
    t->d.pool = weft__pool_new(&t->d, threads);
    return t;
}
/* Frees the buffers of room() and checks that no kernel wrote past their ends. */
UNUSED static void forget(run *t)
{
    t->k->wait(&t->d);
    while (t->held) {
        t->held--;
        for (size_t i = t->mine[t->held].bytes; i < t->mine[t->held].all; i++)
            cr_assert(t->mine[t->held].p[i] == 0xA5, "%s wrote past the end", t->k->name);
        t->k->release(&t->d, t->mine[t->held].p, false);
    }
}
UNUSED static void run_end(run *t)
{
    weft__pool_end(&t->d, t->d.pool);
    forget(t);
    t->k->close(&t->d);
    cr_assert(!t->d.failure[0], "%s", t->d.failure);
    cr_assert(atomic_load(&t->heap.live) == 0, "a kernel did not free its memory");
    free(t);
}

UNUSED static void *room(run *t, int64_t n, size_t size)          /* zeros; freed at the end of the run */
{
    enum { GUARD = 64 };
    size_t bytes = (size_t)n * size;
    unsigned char *p = t->k->allocate(&t->d, bytes + GUARD, false);
    cr_assert(t->held < COUNT(t->mine) && p, "%s", t->d.failure);
    t->mine[t->held].p = p, t->mine[t->held].bytes = bytes, t->mine[t->held++].all = bytes + GUARD;
    memset(p + bytes, 0xA5, GUARD);
    return memset(p, 0, bytes);
}
UNUSED static real *reals(run *t, int64_t n, double low, double high)
{
    return dice_fill(room(t, n, sizeof(real)), n, low, high);
}
/* If below <= least, every index is least. */
UNUSED static int32_t *indices(run *t, int64_t n, int64_t least, int64_t below)
{
    int32_t *x = room(t, n, sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = (int32_t)(least + (below > least ? (int64_t)dice((uint64_t)(below - least)) : 0));
    return x;
}
UNUSED static real *some_zeros(real *x, int64_t n)                /* a mask */
{
    for (int64_t i = 0; i < n; i++)
        x[i] = dice(4) ? x[i] : 0;
    return x;
}
UNUSED static real *result(run *t, real *x, int64_t n, double in_double, double in_float)
{
    cr_assert(t->outputs < COUNT(t->out));
    t->out[t->outputs++] = (output){ x, n, TOL(in_double, in_float) };
    return x;
}
/* An output buffer that already contains values. */
UNUSED static real *result_of(run *t, int64_t n, double in_double, double in_float)
{
    return result(t, reals(t, n, -1, 1), n, in_double, in_float);
}
UNUSED static bool coin(void) { return dice(2); }
UNUSED static int64_t size(int64_t below) { return (int64_t)dice((uint64_t)below); }

/* Returns the tables that this machine can run, ref first, then NULL. */
UNUSED static const weft__kernels *table_of(int i)
{
    char why[320];
    for (int seen = 0, l = 0; l < COUNT(tables); l++) {
        if (!table_is_here(tables[l].name) || seen++ < i)
            continue;
        setenv("WEFT_ISA", tables[l].tier ? tables[l].name : "", 1);
        bool gpu = tables[l].device == WEFT_CUDA;
        const weft__kernels *k =
            gpu ? weft__cuda_kernels(why, sizeof why) :
                  weft__cpu_kernels(tables[l].device, WEFT_FP32, why, sizeof why);
        unsetenv("WEFT_ISA");
        cr_assert_not_null(k, "%s", why);
        return k;
    }
    return NULL;
}

/* Creates segments of n rows, along an axis or of a ragged batch. Some have length 0. */
UNUSED static weft__segments segments(run *t, int64_t count, int64_t longest, int64_t inner)
{
    if (coin())
        return (weft__segments){ count, size(longest + 1), inner, NULL };
    int32_t *offset = room(t, count + 1, sizeof *offset);
    for (int64_t i = 0; i < count; i++)
        offset[i + 1] = offset[i] + (int32_t)size(longest + 1);
    return (weft__segments){ count, 0, inner, offset };
}
UNUSED static int64_t segment_rows(const weft__segments *s)
{
    return s->offset ? s->offset[s->count] : s->count * s->length;
}

/* A nest of random extents. Each operand is dense, broadcast along some axes, or has its axes exchanged. */
UNUSED static weft__grid random_nest(run *t, int operands, int64_t count[3])
{
    weft__grid g = { .rank = t->large ? 3 : (int)dice(WEFT_RANK + 1) };
    static const int64_t much[] = { 7, 113, 131 };
    for (int i = 0; i < g.rank; i++)
        g.size[i] = t->large ? much[i] : size(g.rank > 3 ? 4 : 20) + (dice(30) ? 1 : 0);
    for (int o = 0; o < operands; o++) {
        uint64_t way = dice(4);
        int64_t step = count[o] = 1;
        for (int l = 0; l < g.rank; l++) {
            int i = way == 3 ? l : g.rank - 1 - l;
            bool none = way == 0 || (way == 1 && coin());
            g.step[o][i] = none ? 0 : step;
            step *= none ? 1 : g.size[i];
        }
        count[o] = step;
    }
    return g;
}
UNUSED static int64_t elements(const weft__grid *g)
{
    int64_t n = 1;
    for (int i = 0; i < g->rank; i++)
        n *= g->size[i];
    return n;
}

UNUSED static int64_t flat_size(const run *t) { return t->large ? 70000 + size(999) : size(600); }

/* Bits of way: 1 transposes a, 2 transposes b, 4 adds to the output. The rows of all three matrices are
 * contiguous. */
UNUSED static weft__product dense_product(int way, int64_t m, int64_t n, int64_t k)
{
    const bool ta = way & 1, tb = way & 2;
    return (weft__product){ .ta = ta, .tb = tb, .add = way & 4, .m = m, .n = n, .k = k, .lda = ta ? m : k,
                            .ldb = tb ? k : n, .ldc = n, .batches = 1 };
}

/* ---- one case on every table ---- */
typedef void kernel_case(run *t);
#define CALL(kernel, ...) t->k->kernel(&t->d, __VA_ARGS__)
UNUSED static void settle(run *t) { t->k->wait(&t->d); }    /* before the host reads results */

UNUSED static void compare(const char *name, uint64_t seed, const run *got, const run *want, bool bits)
{
    char text[96];
    cr_assert(got->outputs == want->outputs && want->outputs > 0);
    for (int i = 0; i < want->outputs; i++) {
        snprintf(text, sizeof text, "%s, seed %llu, output %d, %s", name, (unsigned long long)seed, i,
                 got->k->name);
        cr_assert(got->out[i].n == want->out[i].n);
        if (bits)
            same_bits(text, got->out[i].x, want->out[i].x, want->out[i].n);
        else
            close_to(text, got->out[i].x, want->out[i].x, want->out[i].n, want->out[i].tol);
    }
    cr_assert(got->d.fault.is == want->d.fault.is && got->d.fault.row == want->d.fault.row
        && got->d.fault.value == want->d.fault.value, "%s: faults", text);
}
UNUSED static run *played(const weft__kernels *k, int threads, kernel_case *play, uint64_t seed, bool large)
{
    run *t = run_on(k, threads);
    t->large = large, t->round = (int)seed;
    dice_seed(seed);
    play(t);
    settle(t);
    return t;
}
UNUSED static void everywhere(const char *name, kernel_case *play, int times)
{
    for (uint64_t seed = 1; seed <= (uint64_t)times; seed++) {
        run *want = played(table_of(0), 1, play, seed, seed % 8 == 0);
        const weft__kernels *k;
        for (int i = 1; (k = table_of(i)); i++) {
            run *one = played(k, 1, play, seed, seed % 8 == 0),
                *two = played(k, 2, play, seed, seed % 8 == 0);
            compare(name, seed, one, want, false);
            compare(name, seed, two, one, true);
            run_end(one), run_end(two);
        }
        run_end(want);
    }
}
#define KERNEL_TEST(name) Test(kernels, name) { everywhere(#name, play_##name, rounds(40, 2000)); }

/* For every table: t is a run on it with two threads. Kernels have finished when they return. */
#define ON_EVERY_TABLE(t)                                                         \
    for (int table_i = setenv("WEFT_SYNC", "1", 1); table_of(table_i); table_i++) \
        for (run *t = run_on(table_of(table_i), 2); t; run_end(t), t = NULL)
/* A test with such a run t. */
#define RUN_TEST(...) WITH_EACH(run, t, ON_EVERY_TABLE, __VA_ARGS__, .disabled = false)
#endif
