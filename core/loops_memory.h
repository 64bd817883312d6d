/* loops_memory.h - the kernels as plain loops: the specification of every other back end. This file: memory, and what the
 * families share. A back end defines K(name) and includes them all; what it does better it leaves out by defining FAST, and
 * brings itself (fast_*.h). cpu_table.h then finds a forgotten kernel. Rows r, columns j; every sum in the order of its loop. */
#ifndef WEFT_LOOPS_MEMORY_H
#define WEFT_LOOPS_MEMORY_H
#include <math.h>
#include <string.h>
#include <tgmath.h>
#include "core/cpu.h"
#include "core/shared_nests.h"

static bool K(open)(weft__device *d) { (void)d; return true; }
static void K(close)(weft__device *d)
{
    if (d->workspace)
        d->release(d->workspace, d->user);
    d->workspace = NULL, d->workspace_bytes = 0;
}
static void *K(allocate)(weft__device *d, size_t bytes) { return d->allocate(bytes, d->user); }
static void K(release)(weft__device *d, void *p) { d->release(p, d->user); }
static void K(copy)(weft__device *d, void *to, const void *from, size_t bytes)
{
    (void)d;
    if (bytes)
        memmove(to, from, bytes);
}
static void K(upload)(weft__device *d, void *to, const void *from, size_t bytes)   { K(copy)(d, to, from, bytes); }
static void K(download)(weft__device *d, void *to, const void *from, size_t bytes) { K(copy)(d, to, from, bytes); }
static void K(wait)(weft__device *d) { (void)d; }

/* An index out of range is kept if it is the first since somebody looked; the kernel goes on as if it were -1. */
static int64_t within(weft__device *d, int64_t row, int64_t value, int64_t least, int64_t below)
{
    if (value >= least && value < below)
        return value;
    if (!d->fault.is)
        d->fault = (weft__fault){ true, row, value, below, NULL };
    return -1;
}
static int64_t checked(weft__device *d, int64_t row, int64_t value, int64_t below) { return within(d, row, value, -1, below); }

/* ---- loop nests: rows of the last axis, and where an operand's row begins ---- */
static inline int64_t columns(const weft__grid *g) { return g->rank ? g->size[g->rank - 1] : 1; }
static inline int64_t rows_of(const weft__grid *g)
{
    int64_t n = 1;
    for (int i = 0; i + 1 < g->rank; i++)
        n *= g->size[i];
    return n;
}
static inline int64_t row_at(const weft__grid *g, int operand, int64_t row)
{
    int64_t at = 0;
    for (int i = g->rank - 2; i >= 0; row /= g->size[i--])
        at += row % g->size[i] * g->step[operand][i];
    return at;
}
static inline int64_t stride(const weft__grid *g, int operand) { return g->rank ? g->step[operand][g->rank - 1] : 0; }
#endif
