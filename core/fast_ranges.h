/* fast_ranges.h - work over many elements or rows, cut into chunks of a fixed size and dealt out to the threads. The chunks
 * depend on the work alone, so what is computed by chunks has the same bits with any number of threads. */
#ifndef WEFT_FAST_RANGES_H
#define WEFT_FAST_RANGES_H
#include "core/loops_memory.h"
#include "core/vector.h"

enum { CHUNK = 1 << 15 };                        /* elements: 10 to 30 microseconds */
#define ALWAYS static inline __attribute__((always_inline))
#ifdef __clang__                                 /* for loops that may work in place: element by element, never across */
#define ELEMENTWISE _Pragma("clang loop vectorize(assume_safety)")
#define UNROLLED    _Pragma("clang loop unroll(full)")
#else
#define ELEMENTWISE _Pragma("GCC ivdep")
#define UNROLLED    _Pragma("GCC unroll 16")
#endif
#define EACH_VECTOR(i, n) for (int64_t i = 0; i < (n); i += VLEN)

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t parts(int64_t a, int64_t unit) { return (a + unit - 1) / unit; }
static inline int64_t up(int64_t a, int64_t unit) { return parts(a, unit) * unit; }

typedef void range_fn(const void *job, int64_t from, int64_t to);
typedef struct ranges { range_fn *fn; const void *job; int64_t n, chunk; } ranges;
static void range_task(void *argument, int64_t i)
{
    const ranges *r = argument;
    r->fn(r->job, i * r->chunk, least((i + 1) * r->chunk, r->n));
}
static void each_range(weft__device *d, int64_t n, int64_t chunk, range_fn *fn, const void *job)
{
    ranges r = { fn, job, n, chunk };
    if (n > chunk)
        weft__parallel(d, parts(n, chunk), range_task, &r);
    else if (n > 0)
        fn(job, 0, n);
}
/* Rows of that width in about a chunk. */
static inline int64_t rows_a_chunk(int64_t width) { return width < CHUNK ? CHUNK / (width < 1 ? 1 : width) : 1; }

/* ---- loop nests ---- */
/* Elements from .. to of a dense result, row by row: fn gets how many there are, where in the result and where in each operand. */
typedef void row_fn(const void *job, int64_t n, int64_t dense, const int64_t at[3]);
static void each_row(const weft__grid *g, int operands, int64_t from, int64_t to, row_fn *fn, const void *job)
{
    for (int64_t width = columns(g), n; from < to; from += n) {
        int64_t row = from / width, column = from % width, at[3] = { 0 };
        n = least(width - column, to - from);
        for (int o = 0; o < operands; o++)
            at[o] = row_at(g, o, row) + column * stride(g, o);
        fn(job, n, from, at);
    }
}
#endif
