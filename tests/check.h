/* check.h - the common parts of the tests: contexts whose allocations are counted and can be made to fail,
 * comparison of arrays, random ragged lengths, and loops over the kernel tables of this machine.
 *
 *     TABLE_TEST(topic, verb_object_condition)          // on each table that this machine has
 *     {
 *         weft_tensor *y = weft_tanh(...);
 *         close_to("tanh", numbers(y), want, n, TOL(1e-12, 2e-6));
 *     }                                                 // CLEAN(w) follows: no error, no leak
 *
 * Criterion passes a test that leaks and one whose .fini fails. So the body checks the balance, by CLEAN. */
#ifndef WEFT_CHECK_H
#define WEFT_CHECK_H
#include <criterion/criterion.h>
#include <dirent.h>
#include <math.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "tables.h"
#include "weft_forecast.h"
#include "weft_lab.h"
#include "weft_onnx.h"
#include "weft_op.h"
#include "weft_parallel.h"
#include "weft_plan.h"
#include "weft_plot.h"
#include "weft_sequence.h"

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

/* Returns how often a loop runs: `many` in `make soak`, `few` in `make test`. Sanitizers run a quarter of
 * that, and WEFT_SMALL, which marks slow kernels, another quarter. */
UNUSED static int rounds(int few, int many)
{
    if (getenv("WEFT_SOAK"))
        return many;
    few = CHECK_SANITIZED ? (few + 3) / 4 : few;
    return getenv("WEFT_SMALL") ? (few + 3) / 4 : few;
}

/* Variants run their tests under WEFT_CHECK=1 (run.sh). It keeps every header, checks every result and
 * reports NaN. Test(.., .init = unchecked) is for tests that count memory or waits, measure time, or make NaN
 * on purpose. */
UNUSED static void unchecked(void) { unsetenv("WEFT_CHECK"); }

/* ---- contexts ---- */
typedef struct heap {  /* Heap of one context. The pool's threads may also allocate. */
    /* live: blocks held. calls: requests since the start. fail_in: number of the next request that fails,
     * from now; 0: none. */
    atomic_llong live, calls, fail_in;
    /* most: limit in bytes; 0: none, and bytes are not counted. */
    int64_t most, bytes;
    weft *w;
} heap;
static int64_t check_most;                       /* of the contexts that are opened */
enum { CHECK_HEAPS = 64, HEAP_HEAD = 64 };
static heap check_heap[CHECK_HEAPS];
static weft_real *check_numbers[1024];           /* from numbers(), freed by the next CLEAN */
static int check_lent;

UNUSED static void *heap_allocate(size_t bytes, void *user)
{
    heap *h = user;
    atomic_fetch_add(&h->calls, 1);
    int64_t left = atomic_load(&h->fail_in);
    if (left < 0 || (left > 0 && atomic_fetch_sub(&h->fail_in, 1) == 1))
        return NULL;
    if (h->most && (int64_t)bytes > h->most - h->bytes)
        return NULL;
    size_t head = h->most ? HEAP_HEAD : 0;
    char  *p = malloc(head + (bytes ? bytes : 1));
    if (!p)
        return NULL;
    if (head)
        memcpy(p, &bytes, sizeof bytes), h->bytes += (int64_t)bytes;
    atomic_fetch_add(&h->live, 1);
    return p + head;
}

UNUSED static void heap_release(void *p, void *user)
{
    heap *h = user;
    char *block = p && h->most ? (char *)p - HEAP_HEAD : p;
    size_t bytes = 0;
    if (p)
        atomic_fetch_sub(&h->live, 1);
    if (block != p)
        memcpy(&bytes, block, sizeof bytes), h->bytes -= (int64_t)bytes;
    free(block);
}

UNUSED static heap *heap_of(const weft *w)
{
    for (int i = 0; i < CHECK_HEAPS; i++)
        if (check_heap[i].w == w)
            return &check_heap[i];
    cr_assert_fail("the context is not from open_on or open_with");
    return NULL;
}

/* Opens a context with these options and its own heap. */
UNUSED static weft *open_with(weft_opts opts)
{
    heap *h = heap_of(NULL);
    *h = (heap){ .most = check_most };
    opts.allocate = heap_allocate; opts.release = heap_release; opts.user = h;
    h->w = weft_open(&opts);
    cr_assert_not_null(h->w);
    return h->w;
}

/* Opens a context with seed 1 and two threads. */
UNUSED static weft *open_on(weft_device device)
{
    weft *w = open_with((weft_opts){ .device = device, .seed = 1, .threads = 2 });
    cr_assert(weft_ok(w), "weft_open: %s", weft_error_message(w));
    return w;
}

/* Makes the n-th allocation from now fail. 0: none fails; negative: all fail. */
UNUSED static void fail_in(const weft *w, int64_t n) { atomic_store(&heap_of(w)->fail_in, n); }
/* Returns whether the allocation of fail_in was not reached. */
UNUSED static bool none_failed(const weft *w) { return atomic_load(&heap_of(w)->fail_in) > 0; }
/* Makes the n-th weft__take of the context from now fail. 0: none fails. Unlike fail_in, this also counts
 * takes from memory that the context already holds. takes_left returns whether the n-th was not reached. See
 * failing_malloc.c. */
void fail_take(const weft *w, int64_t n);
bool takes_left(const weft *w);
/* Rows of a segment of a lean recurrent layer. 0: the library decides. */
extern int64_t weft__test_segment_rows;
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
    cr_assert(live == 0, "%s:%d: %lld blocks were not freed", file, line, (long long)live);
}

/* Closes a context and checks that it has not failed and that its heap is empty. CLEAN_FAILED accepts a
 * failed context. */
#define CLEAN(w)        check_close((w), true, __FILE__, __LINE__)
#define CLEAN_FAILED(w) check_close((w), false, __FILE__, __LINE__)
#define OK(w)           cr_assert(weft_ok(w), "%s", weft_error_message(w))

/* Checks that the context failed with this status and a message that contains `part`, then recovers it. */
#define FAILS(w, kind, part)                                                                    \
    do {                                                                                        \
        cr_assert(weft_error_code(w) == (kind) && strstr(weft_error_message(w), part),          \
                  "expected %s with \"%s\", but there is %s: %s", weft_status_name(kind), part, \
                  weft_status_name(weft_error_code(w)), weft_error_message(w));                 \
        weft_recover(w);                                                                        \
        cr_assert(weft_ok(w));                                                                  \
    } while (0)

#define FAILS_AT(w, call, kind, part) \
    do {                              \
        (void)(call);                 \
        FAILS(w, kind, part);         \
    } while (0)

/* For .init: a GPU reports a kernel's fault immediately, not at the next synchronisation. */
UNUSED static void synchronised(void) { setenv("WEFT_SYNC", "1", 1); }

/* Returns how many files a folder has. */
UNUSED static int files_in(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));)
        n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
    return d ? closedir(d), n : -1;
}

/* ---- a program's operator ---- */
UNUSED static bool like_first(weft_call *c) { return weft_op_like(c->y[0], c->x[0]), true; }

/* ---- every kernel table ---- */
/* Opens a context on table i, or returns NULL if this machine cannot run it. */
UNUSED static weft *open_table(int i)
{
    const struct table *t = &tables[i];
    if (!table_is_here(t->name))
        return NULL;
    if (t->tier)
        setenv("WEFT_ISA", t->name, 1);
    weft *w = open_on(t->device);
    unsetenv("WEFT_ISA");
    cr_assert_str_eq(weft_device_name(w), t->name, "requested %s, got %s", t->name, weft_device_name(w));
    return w;
}

#define FOR_DEVICES(w)                                        \
    for (int check_i = 0; check_i < COUNT(tables); check_i++) \
        for (weft *w = open_table(check_i); w; CLEAN(w), w = NULL)

/* A test with a context w on the CPU, with REF_TEST on the plain loops, or with TABLE_TEST on every kernel
 * table. CLEAN closes it. */
#define WITH_EACH(type, w, loop, suite, name, ...)        \
    static void suite##_##name##_with(UNUSED type *w);    \
    Test(suite, name, __VA_ARGS__)                        \
    {                                                     \
        loop(w)                                           \
            suite##_##name##_with(w);                     \
    }                                                     \
    static void suite##_##name##_with(UNUSED type *w)
#define WITH_CONTEXTS(loop, ...) WITH_EACH(weft, w, loop, __VA_ARGS__)
#define FOR_CPU(w)      for (weft *w = open_on(WEFT_CPU); w; CLEAN(w), w = NULL)
#define FOR_REF(w)      for (weft *w = open_on(WEFT_REF); w; CLEAN(w), w = NULL)
#define CPU_TEST(...)   WITH_CONTEXTS(FOR_CPU, __VA_ARGS__, .disabled = false)
#define REF_TEST(...)   WITH_CONTEXTS(FOR_REF, __VA_ARGS__, .disabled = false)
#define TABLE_TEST(...) WITH_CONTEXTS(FOR_DEVICES, __VA_ARGS__, .disabled = false)

/* Returns a name with a number. The next call overwrites it. */
UNUSED static const char *name_with(const char *name, int i)
{
    static char text[64];
    snprintf(text, sizeof text, "%s%d", name, i);
    return text;
}

/* ---- numbers ---- */
/* Returns the elements of a tensor of reals. They are valid until CLEAN. */
/* Call weft_read or weft_read_sequences and return the status of the context. */
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

/* Returns the ragged tensor in a layout. In WEFT_ROWS there is padding before and after the sequences. */
UNUSED static weft_tensor *laid_out(weft_tensor *x, int layout)
{
    weft_lengths l = weft_lengths_of(x);
    int32_t row[64], column[64], longest = 0;
    int64_t rows;
    if (layout != WEFT_ROWS)
        return weft_to_layout(x, (weft_layout)layout);
    for (int64_t s = 0; s < l.n; s++)
        longest = l.len[s] > longest ? l.len[s] : longest;
    cr_assert(l.n <= COUNT(row) && weft_first_fit(&l, longest + 1, row, column, &rows) == WEFT_OK);
    for (int64_t s = 0; s < l.n; s++)
        column[s]++;
    return weft_to_rows(x, &(weft_placement){ rows, longest + 3, row, column });
}
/* For every layout of ragged tensors. */
#define FOR_LAYOUTS(layout) for (int layout = WEFT_PACKED; layout <= WEFT_ROWS; layout++)

/* Returns whether |got - want| <= tol max(1, |want|) everywhere, and prints the worst element if not. NaN
 * never passes. */
UNUSED static bool is_close(const char *name, const weft_real *got, const weft_real *want, int64_t n,
                            double tol)
{
    int64_t at = -1;
    double  worst = 0;
    for (int64_t i = 0; i < n; i++) {
        double e = fabs((double)got[i] - (double)want[i]) / fmax(1, fabs((double)want[i]));
        if (got[i] == want[i])
            e = 0;                               /* also equal infinities */
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

/* Compares bits, including NaN and the sign of zero. */
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

/* For a sequence in different batches. Products on a GPU also use one algorithm for any number of rows. */
#define same_in_company same_bits

/* Returns the seconds of a clock: CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID, .. */
UNUSED static double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

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

/* Draws n lengths of 0 .. longest and returns their sum. Each call picks a kind: arbitrary, all equal, many
 * ties, mostly zeros, or one long sequence. */
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
