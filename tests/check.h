/* check.h - what the tests share: contexts whose allocations are counted and can be made to fail, comparison
 * of arrays, ragged lengths from a repeatable generator, loops over every kernel table of this machine.
 *
 *     TABLE_TEST(topic, name)                           // ref, generic, avx2, avx512: what this machine has
 *     {
 *         weft_tensor *y = weft_tanh(...);
 *         close_to("tanh", numbers(y), want, n, TOL(1e-12, 2e-6));
 *     }                                                 // closed by CLEAN(w): no error, nothing leaked
 *
 * Criterion passes a test that leaks and one whose .fini fails, so balance is checked in the body, by
 * CLEAN. */
#ifndef WEFT_CHECK_H
#define WEFT_CHECK_H
#include <criterion/criterion.h>
#include <math.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tables.h"
#include "weft_forecast.h"
#include "weft_lab.h"
#include "weft_op.h"
#include "weft_parallel.h"
#include "weft_plan.h"
#include "weft_plot.h"

#define UNUSED __attribute__((unused))
#define TOL(in_double, in_float) (sizeof(weft_real) == 8 ? (in_double) : (in_float))

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CHECK_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CHECK_SANITIZED 1
#endif
#endif
#ifndef CHECK_SANITIZED
#define CHECK_SANITIZED 0
#endif

/* How often a loop runs: `many` times in `make soak`, `few` times in `make test`, a quarter of that under a
 * sanitizer, and of that again where WEFT_SMALL says that every kernel is slow. */
UNUSED static int rounds(int few, int many)
{
    if (getenv("WEFT_SOAK"))
        return many;
    few = CHECK_SANITIZED ? (few + 3) / 4 : few;
    return getenv("WEFT_SMALL") ? (few + 3) / 4 : few;
}

/* A variant's tests run under WEFT_CHECK=1 (run.sh), which keeps every header, looks at every result and says
 * so of a NaN. Test(.., .init = unchecked) is one that counts memory or waits, measures time, or makes NaN on
 * purpose. */
UNUSED static void unchecked(void) { unsetenv("WEFT_CHECK"); }

/* ---- contexts ---- */
typedef struct heap {                            /* of one context; the pool's threads may allocate, too */
    /* blocks held; asked for since the start; the so-many-th from now fails, 0: none */
    atomic_llong live, calls, fail_in;
    weft *w;
} heap;
enum { CHECK_HEAPS = 64 };
static heap check_heap[CHECK_HEAPS];
static weft_real *check_numbers[1024];           /* lent by numbers() until the next CLEAN */
static int check_lent;

UNUSED static void *heap_allocate(size_t bytes, void *user)
{
    heap *h = user;
    atomic_fetch_add(&h->calls, 1);
    int64_t left = atomic_load(&h->fail_in);
    if (left < 0 || (left > 0 && atomic_fetch_sub(&h->fail_in, 1) == 1))
        return NULL;
    void *p = malloc(bytes ? bytes : 1);
    if (p)
        atomic_fetch_add(&h->live, 1);
    return p;
}

UNUSED static void heap_release(void *p, void *user)
{
    heap *h = user;
    if (p)
        atomic_fetch_sub(&h->live, 1);
    free(p);
}

UNUSED static heap *heap_of(const weft *w)
{
    for (int i = 0; i < CHECK_HEAPS; i++)
        if (check_heap[i].w == w)
            return &check_heap[i];
    cr_assert_fail("a context that open_on or open_with did not open");
    return NULL;
}

/* A context with these options on a heap of its own. */
UNUSED static weft *open_with(weft_opts opts)
{
    heap *h = heap_of(NULL);
    *h = (heap){ 0 };
    opts.allocate = heap_allocate; opts.release = heap_release; opts.user = h;
    h->w = weft_open(&opts);
    cr_assert_not_null(h->w);
    return h->w;
}

/* Seed 1, two threads. */
UNUSED static weft *open_on(weft_device device)
{
    weft *w = open_with((weft_opts){ .device = device, .seed = 1, .threads = 2 });
    cr_assert(weft_ok(w), "weft_open: %s", weft_error_message(w));
    return w;
}

/* The allocation that is the n-th from now on fails; 0: none does; below 0: all do. */
UNUSED static void fail_in(const weft *w, int64_t n) { atomic_store(&heap_of(w)->fail_in, n); }
/* Whether the allocation that fail_in has named was not reached. */
UNUSED static bool none_failed(const weft *w) { return atomic_load(&heap_of(w)->fail_in) > 0; }
/* The n-th weft__take of the context from now on fails; 0: none does. Unlike fail_in this counts takes from
 * memory that the context has already. takes_left: the n-th was not reached. See failing_malloc.c. */
void fail_take(const weft *w, int64_t n);
bool takes_left(const weft *w);
/* Rows of a segment of a lean recurrent layer; 0: the library's choice. */
extern int64_t segment_rows_planned;
UNUSED static int64_t allocations(const weft *w) { return atomic_load(&heap_of(w)->calls); }

UNUSED static void check_close(weft *w, bool must_be_ok, const char *file, int line)
{
    cr_assert(!must_be_ok || weft_ok(w), "%s:%d: the context has failed: %s", file, line,
              weft_error_message(w));
    while (check_lent)
        free(check_numbers[--check_lent]);
    heap *h = heap_of(w);
    weft_close(w);
    int64_t live = atomic_load(&h->live);
    h->w = NULL;
    cr_assert(live == 0, "%s:%d: %lld blocks were not given back", file, line, (long long)live);
}

/* Closes a context; nothing may have failed and nothing may be left on its heap. CLEAN_FAILED: of one that
 * has failed. */
#define CLEAN(w)        check_close((w), true, __FILE__, __LINE__)
#define CLEAN_FAILED(w) check_close((w), false, __FILE__, __LINE__)
#define OK(w)           cr_assert(weft_ok(w), "%s", weft_error_message(w))

/* The context has failed in this way and its message has this part; it is recovered. */
#define FAILS(w, kind, part)                                                                    \
    do {                                                                                        \
        cr_assert(weft_error_code(w) == (kind) && strstr(weft_error_message(w), part),          \
                  "expected %s with \"%s\", but there is %s: %s", weft_status_name(kind), part, \
                  weft_status_name(weft_error_code(w)), weft_error_message(w));                 \
        weft_recover(w);                                                                        \
        cr_assert(weft_ok(w));                                                                  \
    } while (0)

/* ---- every kernel table ---- */
/* A context on table i; NULL if this machine cannot run it. */
UNUSED static weft *open_table(int i)
{
    const struct table *t = &tables[i];
    if (!table_is_here(t->name))
        return NULL;
    if (t->tier)
        setenv("WEFT_ISA", t->name, 1);
    weft *w = open_on(t->device);
    unsetenv("WEFT_ISA");
    cr_assert_str_eq(weft_device_name(w), t->name, "asked for %s, got %s", t->name, weft_device_name(w));
    return w;
}

#define FOR_DEVICES(w)                                        \
    for (int check_i = 0; check_i < COUNT(tables); check_i++) \
        for (weft *w = open_table(check_i); w; CLEAN(w), w = NULL)

/* A test with a context w on the CPU; TABLE_TEST: on every kernel table. CLEAN closes it. */
#define WITH_CONTEXTS(loop, suite, name, ...)      \
    static void suite##_##name##_with(weft *w);    \
    Test(suite, name, __VA_ARGS__)                 \
    {                                              \
        loop(w)                                    \
            suite##_##name##_with(w);              \
    }                                              \
    static void suite##_##name##_with(weft *w)
#define FOR_CPU(w)      for (weft *w = open_on(WEFT_CPU); w; CLEAN(w), w = NULL)
#define CPU_TEST(...)   WITH_CONTEXTS(FOR_CPU, __VA_ARGS__, .disabled = false)
#define TABLE_TEST(...) WITH_CONTEXTS(FOR_DEVICES, __VA_ARGS__, .disabled = false)

/* ---- numbers ---- */
/* The elements of a tensor of reals; lent until CLEAN. */
/* weft_read, weft_read_sequences, and what the context then says. */
UNUSED static weft_status read_status(weft_tensor *x, void *out, size_t bytes)
{
    weft_read(x, out, bytes);
    return weft_error_code(weft_context_of(x));
}
UNUSED static weft_status sequences_status(weft_tensor *x, void *out, size_t bytes)
{
    weft_read_sequences(x, out, bytes);
    return weft_error_code(weft_context_of(x));
}

UNUSED static weft_real *numbers(weft_tensor *x)
{
    size_t bytes = (size_t)weft_numel(x) * sizeof(weft_real);
    if (check_lent == COUNT(check_numbers)) {
        free(check_numbers[0]);
        memmove(check_numbers, check_numbers + 1, sizeof check_numbers - sizeof check_numbers[0]);
        check_lent--;
    }
    weft_real *out = check_numbers[check_lent++] = malloc(bytes + 1);
    cr_assert_not_null(out);
    weft_status s = read_status(x, out, bytes);
    cr_assert(s == WEFT_OK, "weft_read: %s: %s", weft_status_name(s), weft_error_message(weft_context_of(x)));
    return out;
}

/* |got - want| <= tol max(1, |want|) everywhere; NaN never is. Returns it, and prints the worst place if
 * not. */
UNUSED static bool is_close(const char *name, const weft_real *got, const weft_real *want, int64_t n,
                            double tol)
{
    int64_t at = -1;
    double  worst = 0;
    for (int64_t i = 0; i < n; i++) {
        double e = fabs((double)got[i] - (double)want[i]) / fmax(1, fabs((double)want[i]));
        if (got[i] == want[i])
            e = 0;                               /* infinities, too */
        if (isnan(e))
            e = INFINITY;
        if (e > worst || at < 0) {
            worst = e;
            at = i;
        }
    }
    if (worst <= tol)
        return true;
    fprintf(stderr, "%s: at %lld of %lld: %.17g, expected %.17g (off by %.2e, allowed %.1e)\n", name,
            (long long)at, (long long)n, (double)got[at], (double)want[at], worst, tol);
    return false;
}
#define close_to(name, got, want, n, tol) cr_assert(is_close(name, got, want, n, tol), "%s differs", name)

/* The same bits, NaN and the sign of zero included. */
UNUSED static bool is_same(const char *name, const weft_real *got, const weft_real *want, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (memcmp(&got[i], &want[i], sizeof got[i])) {
            fprintf(stderr, "%s: at %lld of %lld: %.17g, expected the same bits as %.17g\n", name,
                    (long long)i, (long long)n, (double)got[i], (double)want[i]);
            return false;
        }
    return true;
}
#define same_bits(name, got, want, n) cr_assert(is_same(name, got, want, n), "%s differs", name)

/* of a sequence in other company; on a GPU, too, whose products have one algorithm for any number of rows */
#define same_in_company same_bits

/* ---- a repeatable generator (splitmix64, Steele et al. 2014) ---- */
static uint64_t check_state = 1;
UNUSED static void dice_seed(uint64_t seed) { check_state = seed; }
UNUSED static uint64_t dice(uint64_t below)      /* 0 .. below - 1 */
{
    uint64_t z = check_state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return below ? (z ^ (z >> 31)) % below : 0;
}
UNUSED static weft_real dice_real(double low, double high)
{
    return (weft_real)(low + (high - low) * (double)dice(1u << 30) / (1u << 30));
}
UNUSED static weft_real *dice_fill(weft_real *out, int64_t n, double low, double high)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = dice_real(low, high);
    return out;
}

/* n lengths of 0 .. longest, of a kind drawn anew each time: anything, all equal, mostly ties, mostly
 * zeros, one long. Their sum. */
UNUSED static int64_t dice_lengths(int32_t *len, int64_t n, int32_t longest)
{
    uint64_t kind = dice(5), most = (uint64_t)longest + 1;
    int32_t  same = (int32_t)dice(most);
    int64_t  sum = 0;
    for (int64_t i = 0; i < n; i++) {
        int32_t any = (int32_t)dice(most);
        len[i] = kind == 1            ? same :
                 kind == 2 && dice(4) ? same :
                 kind == 3 && dice(4) ? 0 :
                 kind == 4 && i       ? any / 4 :
                                        any;
        sum += len[i];
    }
    return sum;
}
#endif
