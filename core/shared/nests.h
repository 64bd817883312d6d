/* nests.h - loop nests and runs of rows, for the kernels of all back ends. The files of core/shared are in
 * the common subset of C and C++, for the tables of the CPU and nvcc. */
#ifndef WEFT_SHARED_NESTS_H
#define WEFT_SHARED_NESTS_H
#include "core/kernels.h"
#include "core/shared/philox.h"

/* Returns v, or *y + v if `add`. A store does not add to 0: 0 + -0 is 0. */
WEFT__BOTH real onto(const real *y, bool add, real v) { return add ? *y + v : v; }

/* Returns the same nest with the fewest axes: without axes of extent 1, and with neighbours merged if each
 * operand has one step for both. */
static inline weft__grid collapsed(const weft__grid *g, int operands)
{
    weft__grid c = *g;
    c.rank = 0;
    for (int i = 0; i < g->rank; i++) {
        int k = c.rank;
        bool merges = k > 0;
        for (int o = 0; merges && o < operands; o++)
            merges = c.step[o][k - 1] == g->step[o][i] * g->size[i];
        if (g->size[i] == 1)
            continue;
        k -= merges;
        c.size[k] = (merges ? c.size[k] : 1) * g->size[i];
        for (int o = 0; o < operands; o++)
            c.step[o][k] = g->step[o][i];
        c.rank = k + 1;
    }
    return c;
}

/* ---- runs of rows ---- */
WEFT__BOTH int64_t first_row(const weft__segments *s, int64_t run)
{
    return s->offset ? s->offset[run] : run * s->length;
}
WEFT__BOTH int64_t run_length(const weft__segments *s, int64_t run)
{
    return s->offset ? s->offset[run + 1] - s->offset[run] : s->length;
}

/* ---- linear recurrences ---- */
/* Returns the offset of the i-th row of a run in the direction of the recurrence. */
WEFT__BOTH int64_t scan_row(const weft__scan *k, int64_t run, int64_t i)
{
    return (first_row(&k->s, run) + (k->reverse ? run_length(&k->s, run) - 1 - i : i)) * k->s.inner;
}
/* Returns the offset of the factor of the i-th row. */
WEFT__BOTH int64_t scan_factor(const weft__scan *k, int64_t run, int64_t i)
{
    return k->a_row ? scan_row(k, run, i - (k->later && i > 0)) : 0;
}
#endif
