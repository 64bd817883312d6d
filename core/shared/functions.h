/* functions.h - the functions used in pointwise.def, for one number. */
#ifndef WEFT_SHARED_FUNCTIONS_H
#define WEFT_SHARED_FUNCTIONS_H
#include "core/kernels.h"
#include "core/shared/philox.h"

#define R(x)          ((real)(x))
#define NORMAL_CDF(x) (R(.5) * erfc(-(x) * R(.70710678118654752)))
#define NORMAL_PDF(x) (R(.39894228040143268) * exp(R(-.5) * (x) * (x)))
#define SILU_D(x, s)  ((s) * (1 + (x) * (1 - (s))))
#define SILU_DD(x, s) ((s) * (1 - (s)) * (2 + (x) * (1 - 2 * (s))))
#define SOFTPLUS(x)   (((x) > 0 ? (x) : 0) + log1p(exp(-fabs(x))))
#define LESSER(a, b)  ((a) < (b) || (a) != (a) ? (a) : (b)) /* a NaN is kept */
#define GREATER(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))
#define TANH(x)       tanh(x)
/* Returns v, or 0 if the gradient g is 0, even if v is NaN. Always computes v, for vectorised loops. */
WEFT__BOTH real if_given(real g, real v) { return g != 0 ? v : 0; }
#define IF_GIVEN(g, v) if_given(g, v)
/* Returns the nearest integer, ties to even, in any rounding mode. */
WEFT__BOTH real nearest_even(real x)
{
    real below = floor(x), fraction = x - below;
    return below + (fraction > R(.5) || (fraction == R(.5) && 2 * floor(below * R(.5)) != below));
}
#define SIGMOID(x)    (1 / (1 + exp(-(x))))
#endif
