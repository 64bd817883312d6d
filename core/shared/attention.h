/* attention.h - the causal masks of attention, for all back ends and the composed form. C and C++. */
#ifndef WEFT_SHARED_ATTENTION_H
#define WEFT_SHARED_ATTENTION_H
#include "core/kernels.h"
#include "core/shared/philox.h"

/* Returns the number of first keys that query i of `queries` sees. causal: see weft__attention. */
WEFT__BOTH int64_t weft__keys_seen(int causal, int64_t i, int64_t queries, int64_t keys)
{
    int64_t n = causal == 0 ? keys : causal == 1 ? i + 1 : i + keys - queries + (causal == 2);
    return n < 0 ? 0 : n < keys ? n : keys;
}
/* Returns the first query that sees key j. It may be `queries` or more. */
WEFT__BOTH int64_t weft__first_seeing(int causal, int64_t j, int64_t queries, int64_t keys)
{
    int64_t i = causal == 0 ? 0 : causal == 1 ? j : j + queries - keys + (causal == 3);
    return i < 0 ? 0 : i;
}
#endif
