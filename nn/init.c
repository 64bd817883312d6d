/* init.c - first values of parameters. They depend on the context's seed and the parameter's whole path. So
 * adding, moving or removing a layer does not change the values of another layer. */
#include <math.h>
#include "autograd/fused.h"
#include "core/shared/philox.h"
#include "nn/nn.h"

/* ---- orthogonal (Saxe et al. 2013): orthonormal rows of a normal matrix, on the host in double ---- */
static double dot(const double *a, const double *b, int64_t n)
{
    double s[4] = { 0, 0, 0, 0 };
    for (int64_t i = 0; i + 3 < n; i += 4)
        for (int j = 0; j < 4; j++)
            s[j] += a[i + j] * b[i + j];
    for (int64_t i = n / 4 * 4; i < n; i++)
        s[0] += a[i] * b[i];
    return s[0] + s[1] + s[2] + s[3];
}

static void subtract(double *a, double factor, const double *b, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        a[k] -= factor * b[k];
}

/* Runs Gram-Schmidt twice, which is sufficient (Giraud et al. 2005). */
static void orthonormalise(double *x, int64_t rows, int64_t length)
{
    for (int64_t i = 0; i < rows; i++) {
        double *a = x + i * length;
        for (int pass = 0; pass < 2; pass++)
            for (int64_t j = 0; j < i; j++)
                subtract(a, dot(a, x + j * length, length), x + j * length, length);
        double size = sqrt(dot(a, a, length));
        for (int64_t k = 0; k < length; k++)
            a[k] /= size;
    }
}

static void orthogonal(weft__parameter *p, uint64_t key, double gain)
{
    weft *w = p->value.w;
    const weft__form *f = &p->value.f;
    int64_t m = f->size[0], n = weft__extents(f, 1, f->rank), rows = m < n ? m : n, length = m < n ? n : m;
    double *x = weft__allocate(w, (size_t)(m * n) * sizeof *x);
    real *y = x ? weft__allocate(w, (size_t)(m * n) * sizeof *y) : NULL;
    for (int64_t i = 0; y && i < m * n; i++)
        x[i] = weft__standard_normal(weft__philox_draw(key, (uint64_t)i));
    if (y)
        orthonormalise(x, rows, length);
    for (int64_t i = 0; y && i < m; i++)
        for (int64_t j = 0; j < n; j++)
            y[i * n + j] = (real)(gain * (m < n ? x[i * length + j] : x[j * length + i]));
    if (y)
        w->dev.k->upload(&w->dev, p->value.data, y, (size_t)(m * n) * sizeof *y);
    weft__release(w, y);
    weft__release(w, x);
}

/* ---- all kinds ---- */
bool weft__init_is_sound(weft *w, const char *function, const char *path, const weft__form *f, weft_init init)
{
    if ((unsigned)init.kind > WEFT_INIT_ORTHOGONAL)
        weft__fail(w, WEFT_EARG, "%s: %s: kind %d; expected one of weft_init_kind", function, path,
                   (int)init.kind);
    else if (!isfinite((real)init.a) || !isfinite((real)init.b))
        weft__fail(w, WEFT_EARG, "%s: %s: first values with a = %g, b = %g; expected finite numbers",
                   function, path, init.a, init.b);
    else if (init.kind == WEFT_INIT_UNIFORM &&
             !(init.a <= init.b && isfinite((real)(init.b - init.a)) && (init.a != 0 || init.b != 0)))
        weft__fail(w, WEFT_EARG,
                   "%s: %s: uniform first values from %g to %g; expected a <= b, not both 0, and a finite "
                   "difference",
                   function, path, init.a, init.b);
    else if (init.kind == WEFT_INIT_NORMAL && !((real)init.b > 0))
        weft__fail(w, WEFT_EARG,
                   "%s: %s: normal first values with mean %g, deviation %g; expected a deviation above 0",
                   function, path, init.a, init.b);
    else if (init.kind >= WEFT_INIT_XAVIER && f->rank < 2)
        weft__fail(w, WEFT_ESHAPE,
                   "%s: %s: Xavier, Kaiming or orthogonal first values for rank %d; expected rank 2 or more",
                   function, path, f->rank);
    return !w->status;
}

static void draw(weft__parameter *p, uint64_t key, bool normal, double a, double b)
{
    weft *w = p->value.w;
    w->dev.k->random(&w->dev, weft__elements(&p->value.f), key, 0, normal, (real)a, (real)b, p->value.data);
}

static void uniform(weft__parameter *p, uint64_t key, double bound)
{
    draw(p, key, false, -bound, 2 * bound);
}

static double width_of(double low, double high)
{
    return (double)weft__span_within((real)low, (real)high, (real)(high - low));
}

void weft__init_values(weft__parameter *p, weft_init init)
{
    weft *w = p->value.w;
    const weft__form *f = &p->value.f;
    /* The constant separates this key from a stream of the same name. */
    uint64_t key = weft__hash(w->random.seed ^ 0x77656967687473u, p->path);
    int64_t n = weft__elements(f);
    if (n == 0)
        return;
    double out = f->rank ? (double)f->size[0] : 1, inside = (double)weft__extents(f, 2, f->rank),
           in = f->rank > 1 ? (double)f->size[1] * inside : 1;
    double a = init.a, b = init.b, gain = a != 0 ? a : 1;
    switch (init.kind) {
    case WEFT_INIT_ZERO:       w->dev.k->fill(&w->dev, n, 0, p->value.data); break;
    case WEFT_INIT_CONSTANT:   w->dev.k->fill(&w->dev, n, (real)init.a, p->value.data); break;
    case WEFT_INIT_UNIFORM:    draw(p, key, false, a, width_of(a, b)); break;
    case WEFT_INIT_NORMAL:     draw(p, key, true, a, b); break;
    case WEFT_INIT_XAVIER:     uniform(p, key, gain * sqrt(6 / (in + out * inside))); break;
    case WEFT_INIT_KAIMING:    uniform(p, key, gain * sqrt(6 / in)); break;
    case WEFT_INIT_ORTHOGONAL: orthogonal(p, key, gain); break;
    }
    weft__mark_changed(&p->value);
}
