/* fast_functions.h - vectors of the functions that vector.h leaves out: log and exp beside 1, the normal distribution. */
#include "core/fast_ranges.h"

/* log(erfc(z) exp(z^2) / t), t = 2 / (2 + z), z >= 0, as a Chebyshev series in 2 t - 1 (made with 40 digits): so the tail is as
 * good as exp, and no case needs a series of its own. */
static const double erfc_series[] = {
    -0.651326859890854717, 0.64196979235649026, 0.0194764732041858363, -0.00956151478680863164, -0.000946595344482036866,
    0.000366839497852761452, 0.0000425233248069077716, -0.0000202785781125342432, -1.62429000464702551e-6, 1.3036558355805232e-6,
    1.56264417220661432e-8, -8.52380959149265425e-8, 6.5290544390988515e-9, 5.05934349555146894e-9, -9.91364156493033087e-10,
    -2.27365122293183586e-10, 9.6467911020155268e-11, 2.39403808303911474e-12, -6.8860275264975534e-12, 8.94487927309072572e-13,
    3.13092139934295808e-13, -1.12708223613672524e-13, 3.81090525518923206e-16, 7.10609761360923699e-15, -1.5230282014571043e-15,
    -9.457494571291234e-17, 1.21023718922427899e-16,
};
enum { ERFC_TERMS = sizeof(real) == sizeof(float) ? 12 : (int)(sizeof erfc_series / sizeof *erfc_series) };

static inline vec normal_cdf(vec x)              /* erfc(-x / sqrt 2) / 2 */
{
    vec z = v_abs(x) * (real)0.70710678118654752, t = 2 / (2 + z), s = 4 * t - 2, b = v_set(0), c = b, old;
    for (int i = ERFC_TERMS - 1; i > 0; i--)     /* Clenshaw */
        old = b, b = v_fma(s, b, v_set((real)erfc_series[i]) - c), c = old;
    vec half = (real).5 * t * v_exp(v_fma((real).5 * s, b, v_set((real)erfc_series[0]) - c) - z * z);
    return v_select((veci)(x > 0), 1 - half, v_select((veci)(x == x), half, x));
}
static inline vec normal_pdf(vec x) { return (real).39894228040143268 * v_exp((real)-.5 * x * x); }

/* log(1 + x), x > -1: what 1 + x has lost by rounding is in the quotient too (Kahan). */
static inline vec log_of_1_and(vec x)
{
    vec u = 1 + x;
    return v_select((veci)(u == 1), x, v_log(u) * (x / (u - 1)));
}
static inline vec exp_less_1(vec x)              /* for x <= 0 */
{
    vec power, p = v_decay_(x, &power);
    return v_fma(power, p, power - 1);
}
