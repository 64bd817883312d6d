/* trees.h - small parameters for the tests of modules. */
#ifndef WEFT_TESTS_TREES_H
#define WEFT_TESTS_TREES_H
#include "tests/check.h"
#include "nn/nn.h"

static const weft_init zero = { WEFT_INIT_ZERO, 0, 0 };
UNUSED static weft_init constant(double a) { return (weft_init){ WEFT_INIT_CONSTANT, (weft_real)a, 0 }; }
UNUSED static weft_tensor *vector(weft_module *m, const char *name, int64_t n, weft_init init)
{
    return weft_parameter(m, name, WEFT_SHAPE(n), init);
}

UNUSED static bool all_are(weft_tensor *x, double value)
{
    weft_real *v = numbers(x);
    for (int64_t i = 0; i < weft_numel(x); i++)
        if (v[i] != (weft_real)value)
            return false;
    return true;
}
#endif
