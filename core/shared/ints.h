/* ints.h - functions of two int32, for all back ends. Sums, differences and products wrap around, so they
 * are computed as unsigned numbers. */
#ifndef WEFT_SHARED_INTS_H
#define WEFT_SHARED_INTS_H
#include "core/kernels.h"
#include "core/shared/philox.h"

/* f: add, sub, mul, minimum or maximum */
WEFT__BOTH int32_t weft__of_ints(int f, int32_t a, int32_t b)
{
    uint32_t u = (uint32_t)a, v = (uint32_t)b;
    switch (f) {
    case WEFT__add:     return (int32_t)(u + v);
    case WEFT__sub:     return (int32_t)(u - v);
    case WEFT__mul:     return (int32_t)(u * v);
    case WEFT__minimum: return a < b ? a : b;
    case WEFT__maximum: return a > b ? a : b;
    default:            return 0;
    }
}
/* f: less .. not_equal */
WEFT__BOTH bool weft__holds_of_ints(int f, int32_t a, int32_t b)
{
    switch (f) {
    case WEFT__less:          return a < b;
    case WEFT__less_equal:    return a <= b;
    case WEFT__greater:       return a > b;
    case WEFT__greater_equal: return a >= b;
    case WEFT__equal:         return a == b;
    default:                  return a != b;
    }
}
#endif
