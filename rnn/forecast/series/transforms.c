/* transforms.c - fits, applies and inverts each transform of time series. */
#include <float.h>
#include <math.h>
#include <string.h>
#include "rnn/forecast/series/features.h"

/* ---- names and properties ---- */
static const char *const names[WEFT_TRANSFORMS] = {
    "standard scaler",
    "max scaler",
    "min-max scaler",
    "delta",
    "log",
    "log1p",
    "logistic",
    "adaptive logistic",
    "divide by",
    "polynomial",
    "fixed polynomial",
    "discrete function",
};

static double lowest(const weft_transform *t)  { return t->min; }
static double highest(const weft_transform *t) { return t->min == 0 && t->max == 0 ? 1 : t->max; }
static double steepness(const weft_transform *t)   { return t->k == 0 ? 1 : t->k; }

static bool all_finite(const double *a, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(a[i]))
            return false;
    return true;
}

static const char *bad_points(const weft_transform *t)
{
    if (t->points < 1 || !t->a || !t->b || !all_finite(t->a, t->points) || !all_finite(t->b, t->points))
        return "points: expected 1 or more, with finite a and b";
    for (int64_t i = 1; i < t->points; i++)
        if (t->a[i] <= t->a[i - 1])
            return "a: expected ascending points";
    return NULL;
}

static const char *bad_degree(const weft_transform *t)
{
    if (t->degree < 0 || t->degree > WEFT__DEGREE)
        return "degree: expected 0 .. 15";
    return t->kind == WEFT_FIXED_POLYNOMIAL && (!t->a || !all_finite(t->a, t->degree + 1)) ?
               "a: expected degree + 1 finite numbers" :
               NULL;
}

const char *weft__step_fault(const weft_transform *t)
{
    if ((int)t->kind < 0 || t->kind >= WEFT_TRANSFORMS)
        return "kind: expected a value of weft_transform_kind";
    if (!isfinite(t->min) || !isfinite(t->max) || !isfinite(t->bias) || !isfinite(t->k) || !isfinite(t->x0) ||
        !isfinite(t->alpha))
        return "min, max, bias, k, x0 and alpha: expected finite numbers";
    if ((t->kind >= WEFT_DIVIDE_BY) != (t->depends_on != NULL))
        return t->depends_on ? "depends_on: expected NULL for this kind" : "depends_on: expected a column";
    switch (t->kind) {
    case WEFT_MAX_SCALER:         return t->max < 0 ? "max: expected more than 0, or 0 for 1" : NULL;
    case WEFT_MIN_MAX_SCALER:     return highest(t) <= lowest(t) ? "max: expected more than min" : NULL;
    case WEFT_ADAPTIVE_LOGISTIC:  return t->alpha < 0 ? "alpha: expected 0 or more" : NULL;
    case WEFT_POLYNOMIAL:
    case WEFT_FIXED_POLYNOMIAL:   return bad_degree(t);
    case WEFT_DISCRETE_FUNCTION:  return bad_points(t);
    default:                      return NULL;
    }
}

bool weft__step_subtracts(weft_transform_kind kind)
{
    return kind == WEFT_DELTA || kind >= WEFT_POLYNOMIAL;
}

int64_t weft__step_numbers(const weft_transform *t)
{
    switch (t->kind) {
    case WEFT_STANDARD_SCALER:
    case WEFT_MIN_MAX_SCALER:     return 2;
    case WEFT_MAX_SCALER:         return 1;
    case WEFT_POLYNOMIAL:         return 3 * t->degree + 3;
    default:                      return 0;
    }
}

void weft__step_text(FILE *to, const weft_transform *t)
{
    fputs(names[t->kind], to);
    switch (t->kind) {
    case WEFT_MAX_SCALER:         fprintf(to, " to %.17g", t->max > 0 ? t->max : 1); break;
    case WEFT_MIN_MAX_SCALER:
        fprintf(to, " to %.17g .. %.17g%s", lowest(t), highest(t), t->clamp ? ", clamped" : "");
        break;
    case WEFT_LOG:                fprintf(to, " of y + %.17g", t->bias); break;
    case WEFT_ADAPTIVE_LOGISTIC:  fprintf(to, ", alpha %.17g", t->alpha); /* fall through */
    case WEFT_LOGISTIC:           fprintf(to, ", k %.17g, x0 %.17g", steepness(t), t->x0); break;
    case WEFT_FIXED_POLYNOMIAL:
    case WEFT_POLYNOMIAL:         fprintf(to, " of degree %d", t->degree); break;
    default:                      break;
    }
    uint32_t sum =
        t->kind == WEFT_FIXED_POLYNOMIAL ? weft__crc32c(0, t->a, (size_t)(t->degree + 1) * sizeof *t->a) : 0;
    if (t->kind == WEFT_DISCRETE_FUNCTION)
        sum = weft__crc32c(weft__crc32c(0, t->a, (size_t)t->points * sizeof *t->a), t->b,
                           (size_t)t->points * sizeof *t->b);
    if (sum)
        fprintf(to, ", numbers %08x", (unsigned)sum);
    if (t->depends_on)
        fprintf(to, ", on \"%s\"", t->depends_on);
}

/* ---- polynomials by least squares ---- * They are expressed in polynomials that are orthogonal on the data,
 * by a three-term recurrence (Forsythe 1957). This solves no equations and works for high degrees. Fitted
 * numbers: centre and half width of x, alpha [degree], beta [degree], coefficients [degree + 1]. */
typedef struct { double *centre, *half, *alpha, *beta, *c; } basis;

static double polynomial(const weft_transform *t, const double *fitted, double x)
{
    int d = t->degree;
    const double *alpha = fitted + 2, *beta = alpha + d, *c = beta + d;
    double s = (x - fitted[0]) / fitted[1], p = 1, before = 0, sum = c[0];
    for (int j = 0; j < d; j++) {
        double next = (s - alpha[j]) * p - beta[j] * before;
        before = p;
        p = next;
        sum += c[j + 1] * p;
    }
    return sum;
}

/* Returns whether low and high differ only by rounding. size: if they are differences, the largest number
 * that was subtracted; otherwise 0. */
static bool are_equal(double low, double high, double size)
{
    return !(high - low > 32 * DBL_EPSILON * fmax(size, fmax(fabs(low), fabs(high))));
}

static void fit_extremes(double *fitted, int64_t n, const double *y)
{
    fitted[0] = fitted[1] = y[0];
    for (int64_t i = 1; i < n; i++) {
        fitted[0] = fmin(fitted[0], y[i]);
        fitted[1] = fmax(fitted[1], y[i]);
    }
}

static void centre_on(const basis *b, int64_t n, const double *x)
{
    double ends[2];
    fit_extremes(ends, n, x);
    *b->centre = ends[0] + (ends[1] - ends[0]) / 2;
    *b->half = are_equal(ends[0], ends[1], 0) ? 1 : (ends[1] - ends[0]) / 2;
}

/* Computes the next polynomial of the basis from p and the previous one, q. Returns |p|^2 on the data. */
static double next_in_basis(const basis *b, int j, int64_t n, const double *x, double *p, double *q,
                            double size, double size_before)
{
    double moment = 0, sum = 0;
    for (int64_t i = 0; i < n; i++)
        moment += (x[i] - *b->centre) / *b->half * p[i] * p[i];
    b->alpha[j] = moment / size;
    b->beta[j] = j ? size / size_before : 0;
    for (int64_t i = 0; i < n; i++) {
        double next = ((x[i] - *b->centre) / *b->half - b->alpha[j]) * p[i] - b->beta[j] * q[i];
        q[i] = p[i];
        p[i] = next;
        sum += next * next;
    }
    return sum;
}

static const char *fit_polynomial(const weft_transform *t, double *fitted, int64_t n, const double *y,
                                  const double *x, double *spare)
{
    const basis b = { fitted, fitted + 1, fitted + 2, fitted + 2 + t->degree, fitted + 2 + 2 * t->degree };
    double *p = spare, *q = p + n, *rest = q + n, size = (double)n, before = 0;
    centre_on(&b, n, x);
    for (int64_t i = 0; i < n; i++) {
        p[i] = 1;
        q[i] = 0;
        rest[i] = y[i];
    }
    for (int j = 0; j <= t->degree; j++) {
        double sum = 0, next;
        for (int64_t i = 0; i < n; i++)
            sum += rest[i] * p[i];
        b.c[j] = sum / size;
        for (int64_t i = 0; i < n; i++)
            rest[i] -= b.c[j] * p[i];
        if (j == t->degree)
            return NULL;
        next = next_in_basis(&b, j, n, x, p, q, size, before);
        /* Below this a polynomial is 0 on all data, except for rounding. */
        if (!(next > 1e-24 * (double)n))
            return "depends_on: the column has too few different values for this degree";
        before = size;
        size = next;
    }
    return NULL;
}

static double fixed_polynomial(const weft_transform *t, double x)
{
    double sum = 0;
    for (int j = t->degree; j >= 0; j--)
        sum = sum * x + t->a[j];
    return sum;
}

static double piecewise(const weft_transform *t, double x)
{
    int64_t low = 0, high = t->points - 1;
    if (!(x > t->a[0]))
        return isnan(x) ? x : t->b[0];
    if (x >= t->a[high])
        return t->b[high];
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (t->a[middle] <= x)
            low = middle;
        else
            high = middle;
    }
    double part = (x - t->a[low]) / (t->a[high] - t->a[low]);
    return t->b[low] + part * (t->b[high] - t->b[low]);
}

/* ---- scalers ---- */
/* Sums differences from the first value, so a constant has exactly that mean. The deviation of a column that
 * is constant except for rounding is 0; dividing by it would amplify noise. */
static void fit_standard(double *fitted, int64_t n, const double *y, double size)
{
    double sum = 0, squares = 0, rest = 0, ends[2];
    fit_extremes(ends, n, y);
    for (int64_t i = 0; i < n; i++)
        sum += y[i] - y[0];
    fitted[0] = y[0] + sum / (double)n;
    for (int64_t i = 0; i < n; i++) {
        squares += (y[i] - fitted[0]) * (y[i] - fitted[0]);
        rest += y[i] - fitted[0];
    }
    fitted[1] = n > 1 && !are_equal(ends[0], ends[1], size) ?
                    sqrt(fmax(0, squares - rest * rest / (double)n) / (double)(n - 1)) :
                    0;
}

const char *weft__step_fit(const weft_transform *t, double *fitted, int64_t n, const double *y,
                           const double *x, double size, double *spare)
{
    double both[2];
    if (weft__step_numbers(t) && n < 1)
        return "there are no rows; expected one or more to fit it";
    if (t->kind == WEFT_POLYNOMIAL)
        return fit_polynomial(t, fitted, n, y, x, spare);
    if (t->kind == WEFT_STANDARD_SCALER)
        fit_standard(fitted, n, y, size);
    else if (t->kind == WEFT_MIN_MAX_SCALER) {
        fit_extremes(fitted, n, y); /* of a column that is constant except for rounding both are equal */
        fitted[1] = are_equal(fitted[0], fitted[1], size) ? fitted[0] : fitted[1];
    } else if (t->kind == WEFT_MAX_SCALER) {
        fit_extremes(both, n, y);
        fitted[0] = fmax(fabs(both[0]), fabs(both[1]));
        fitted[0] = fitted[0] > 32 * DBL_EPSILON * size ? fitted[0] : 0;
    }
    return NULL;
}

/* ---- one value ---- */
static double limited(double y, double low, double high) { return y < low ? low : y > high ? high : y; }

static double scale_between(const weft_transform *t, const double *fitted, double y)
{
    double low = lowest(t), high = highest(t), range = fitted[1] - fitted[0];
    double z = range > 0 ? low + (y - fitted[0]) / range * (high - low) :
               isnan(y)  ? y :
                           low + (high - low) / 2;
    return t->clamp ? limited(z, low, high) : z;
}

static double unscaled(const weft_transform *t, const double *fitted, double z)
{
    double low = lowest(t), high = highest(t);
    z = t->clamp ? limited(z, low, high) : z;
    return isnan(z) ? z : fitted[0] + (z - low) / (high - low) * (fitted[1] - fitted[0]);
}

static double logistic(double u) { return u >= 0 ? 1 / (1 + exp(-u)) : exp(u) / (1 + exp(u)); }

static double logit(double p)                    /* a model's output may be outside 0 .. 1 */
{
    p = limited(p, DBL_EPSILON / 2, 1 - DBL_EPSILON / 2);
    return log(p) - log1p(-p);
}

/* u = d (1 - alpha |d|) for |d| up to 1 / (2 alpha), its turning point, and the inverse, in closed form. */
static double bend(double d, double alpha)
{
    return alpha * fabs(d) < .5 ? d * (1 - alpha * fabs(d)) : (double)NAN;
}
static double unbend(double u, double alpha)
{
    double most = alpha > 0 ? 1 / (4 * alpha) : (double)INFINITY;
    u = limited(u, -most, most);
    return 2 * u / (1 + sqrt(fmax(0, 1 - 4 * alpha * fabs(u))));
}

static double transform_value(const weft_transform *t, const double *fitted, double y, double x)
{
    switch (t->kind) {
    case WEFT_STANDARD_SCALER:    return (y - fitted[0]) / (fitted[1] > 0 ? fitted[1] : 1);
    case WEFT_MAX_SCALER:         return y / (fitted[0] > 0 ? fitted[0] : 1) * (t->max > 0 ? t->max : 1);
    case WEFT_MIN_MAX_SCALER:     return scale_between(t, fitted, y);
    case WEFT_LOG:                return log(y + t->bias);
    case WEFT_LOG1P:              return log1p(y);
    case WEFT_LOGISTIC:           return logistic(steepness(t) * (y - t->x0));
    case WEFT_ADAPTIVE_LOGISTIC:  return logistic(steepness(t) * bend(y - t->x0, t->alpha));
    case WEFT_DIVIDE_BY:          return y / x;
    case WEFT_POLYNOMIAL:         return y - polynomial(t, fitted, x);
    case WEFT_FIXED_POLYNOMIAL:   return y - fixed_polynomial(t, x);
    case WEFT_DISCRETE_FUNCTION:  return y - piecewise(t, x);
    default:                      return y;
    }
}

static double backward(const weft_transform *t, const double *fitted, double z, double x)
{
    switch (t->kind) {
    case WEFT_STANDARD_SCALER:    return z * (fitted[1] > 0 ? fitted[1] : 1) + fitted[0];
    case WEFT_MAX_SCALER:         return z / (t->max > 0 ? t->max : 1) * (fitted[0] > 0 ? fitted[0] : 1);
    case WEFT_MIN_MAX_SCALER:     return unscaled(t, fitted, z);
    case WEFT_LOG:                return exp(z) - t->bias;
    case WEFT_LOG1P:              return expm1(z);
    case WEFT_LOGISTIC:           return t->x0 + logit(z) / steepness(t);
    case WEFT_ADAPTIVE_LOGISTIC:  return t->x0 + unbend(logit(z) / steepness(t), t->alpha);
    case WEFT_DIVIDE_BY:          return z * x;
    case WEFT_POLYNOMIAL:         return z + polynomial(t, fitted, x);
    case WEFT_FIXED_POLYNOMIAL:   return z + fixed_polynomial(t, x);
    case WEFT_DISCRETE_FUNCTION:  return z + piecewise(t, x);
    default:                      return z;
    }
}

/* ---- rows ---- */
int64_t weft__step_apply(const weft_transform *t, const double *fitted, int64_t n, double *y, const double *x)
{
    int64_t bad = -1;
    /* From the end, because a difference needs the previous value. */
    for (int64_t i = n; i-- > 0;) {
        double z = t->kind != WEFT_DELTA ? transform_value(t, fitted, y[i], x ? x[i] : 0) :
                   i                     ? y[i] - y[i - 1] :
                                           y[0] - y[0];
        bool finite = isfinite(y[i]) && (t->kind != WEFT_DELTA || !i || isfinite(y[i - 1]));
        bad = finite && !isfinite(z) ? i : bad;
        y[i] = z;
    }
    return bad;
}

void weft__step_undo(const weft_transform *t, const double *fitted, int64_t n, double *y, const double *x,
                     double before)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = before = t->kind == WEFT_DELTA ? before + y[i] : backward(t, fitted, y[i], x ? x[i] : 0);
}
