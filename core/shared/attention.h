/* attention.h - what every back end knows of attention, and the composed form, too: which keys a query sees.
 * Common subset of C and C++; nvcc compiles it, too. */
#ifndef WEFT_SHARED_ATTENTION_H
#define WEFT_SHARED_ATTENTION_H
#include "core/kernels.h"
#include "core/shared/philox.h"

/* Of `keys` keys query i of `queries` sees the first so many; causal as in weft__attention. */
WEFT__BOTH int64_t weft__keys_seen(int causal, int64_t i, int64_t queries, int64_t keys)
{
    int64_t n = causal == 0 ? keys : causal == 1 ? i + 1 : i + keys - queries + (causal == 2);
    return n < 0 ? 0 : n < keys ? n : keys;
}
/* The first query that sees key j; it may be none of them. */
WEFT__BOTH int64_t weft__first_seeing(int causal, int64_t j, int64_t queries, int64_t keys)
{
    int64_t i = causal == 0 ? 0 : causal == 1 ? j : j + queries - keys + (causal == 3);
    return i < 0 ? 0 : i;
}
#endif
