/* golden_case.c - reads the fields of a case, computes its numbers from the formula, compares results with
 * the file. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "weft_op.h"
#include "golden.h"

void *hold(trial *t, int64_t bytes)
{
    void *p = t->pieces < PIECES ? calloc(1, (size_t)bytes + 1) : NULL;
    if (!p) {
        fprintf(stderr, "golden: out of memory\n");
        exit(2);
    }
    return t->piece[t->pieces++] = p;
}

bool wrong(trial *t, const char *format, ...)
{
    if (t->why[0])
        return false;
    va_list a;
    va_start(a, format);
    vsnprintf(t->why, sizeof t->why, format, a);
    va_end(a);
    return false;
}

/* ---- fields ---- */
static const json_t *field(trial *t, const char *key)
{
    const json_t *j = json_object_get(t->c, key);
    if (!j)
        wrong(t, "the case has no \"%s\"", key);
    return j;
}

int64_t integer(trial *t, const char *key)
{
    const json_t *j = field(t, key);
    if (j && !json_is_integer(j))
        wrong(t, "\"%s\" is not an integer", key);
    return json_integer_value(j);
}

double number(trial *t, const char *key)
{
    const json_t *j = field(t, key);
    if (j && !json_is_number(j))
        wrong(t, "\"%s\" is not a number", key);
    return json_number_value(j);
}

bool flag(const trial *t, const char *key) { return json_is_true(json_object_get(t->c, key)); }

const char *text(trial *t, const char *key)
{
    const char *s = json_string_value(field(t, key));
    if (!s)
        wrong(t, "\"%s\" is not a text", key);
    return s ? s : "";
}

weft_lengths lengths(trial *t, const char *key)
{
    const json_t *j = field(t, key);
    int64_t  n = (int64_t)json_array_size(j);
    int32_t *len = hold(t, n * (int64_t)sizeof *len);
    for (int64_t i = 0; i < n; i++)
        len[i] = (int32_t)json_integer_value(json_array_get(j, (size_t)i));
    return (weft_lengths){ .n = n, .len = len };
}

int64_t tokens(const weft_lengths *l)
{
    int64_t n = 0;
    for (int64_t b = 0; b < l->n; b++)
        n += l->len[b];
    return n;
}

/* ---- the formula ---- */
double u(int64_t s, int64_t k)
{
    return (double)((7 * k * k + (6 * s + 31) * k + 57 * s + 11) % 1009) / 504.5 - 1;
}

static void fill(weft_real *out, double factor, double base, int64_t s, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        out[k] = (weft_real)(base + factor * u(s, k));
}

weft_real *formula(trial *t, double factor, double base, int64_t s, int64_t n)
{
    weft_real *out = hold(t, n * (int64_t)sizeof *out);
    fill(out, factor, base, s, n);
    return out;
}

weft_tensor *formula_ragged(trial *t, double factor, double base, int64_t s, const weft_lengths *l,
                            int64_t features)
{
    int64_t    width = features ? features : 1;
    weft_real *rows = hold(t, tokens(l) * width * (int64_t)sizeof *rows), *at = rows;
    for (int64_t b = 0; b < l->n; b++) {
        fill(at, factor, base, s + b, l->len[b] * width);
        at += l->len[b] * width;
    }
    return weft_ragged(t->w, rows, features, l);
}

weft_tensor *laid(trial *t, weft_tensor *ragged)
{
    return t->way & PACKED ? weft_to_layout(ragged, WEFT_PACKED) : ragged;
}

static bool set_parameter(trial *t, const char *layer, const json_t *entry, int64_t s, value_of *rule,
                          const void *how)
{
    const char   *name = json_string_value(json_array_get(entry, 0));
    const json_t *shape = json_array_get(entry, 1);
    char          path[128];
    snprintf(path, sizeof path, "%s.%s", layer, name ? name : "");
    weft_tensor *p = weft_find_parameter(t->m, path);
    if (!name || !p)
        return wrong(t, "missing parameter \"%s\"", path);
    int rank = (int)json_array_size(shape);
    bool same = rank == weft_rank(p);
    for (int i = 0; i < rank && same; i++)
        same = weft_size(p, i) == json_integer_value(json_array_get(shape, (size_t)i));
    if (!same)
        return wrong(t, "parameter \"%s\" has another shape", path);
    int64_t    n = weft_numel(p);
    weft_real *v = hold(t, n * (int64_t)sizeof *v);
    for (int64_t k = 0; k < n; k++)
        v[k] = (weft_real)rule(how, s, k, p);
    weft_assign_values(p, v, n);
    ask(t, name, p, NULL, 0);
    t->source[t->sources - 1].parameter = true;
    return true;
}

bool set_parameters_by(trial *t, const char *layer, value_of *rule, const void *how)
{
    const json_t *list = field(t, "params"), *entry;
    size_t        s;
    json_array_foreach(list, s, entry)
        if (!set_parameter(t, layer, entry, (int64_t)s, rule, how))
            return false;
    if (weft_parameter_count(t->m) != (int)json_array_size(list))
        return wrong(t, "the layer has %d parameters, the case %d", weft_parameter_count(t->m),
                     (int)json_array_size(list));
    return true;
}

typedef struct { double factor, scale; } scaling;
/* in the order of the formula: product, then quotient */
static double scaled(const void *how, int64_t s, int64_t k, const weft_tensor *p)
{
    const scaling *by = how;
    return by->factor * u(s, k) / sqrt(by->scale > 0 ? by->scale : (double)weft_size(p, -1));
}

bool set_parameters(trial *t, const char *layer, double factor, double scale)
{
    return set_parameters_by(t, layer, scaled, &(scaling){ factor, scale });
}

weft_tensor *wavy_sum(trial *t, weft_tensor *y, const weft_lengths *l, double first)
{
    int64_t    width = weft_size(y, -1);
    weft_real *c = hold(t, tokens(l) * width * (int64_t)sizeof *c), *at = c;
    for (int64_t b = 0; b < l->n; b++)
        for (int64_t i = 0; i < l->len[b]; i++)
            for (int64_t o = 0; o < width; o++)
                *at++ = (weft_real)sin(first + .5 * (double)b + .7 * (double)i + .9 * (double)o);
    return weft_sum_all(weft_mul(y, weft_ragged(t->w, c, width, l)));
}

/* ---- comparison ---- */
void ask(trial *t, const char *name, weft_tensor *x, const weft_lengths *l, int64_t padded)
{
    if (t->sources == SOURCES) {
        wrong(t, "more than %d gradients", SOURCES);
        return;
    }
    source *s = &t->source[t->sources++];
    *s = (source){ .x = x, .padded = padded, .ragged = l != NULL };
    if (l)
        s->len = *l;
    snprintf(s->name, sizeof s->name, "%s", name);
}

weft_real *elements(trial *t, weft_tensor *x)
{
    weft_tensor *y = weft_layout_of(x) == WEFT_PLAIN ? x : weft_to_layout(x, WEFT_CONCAT);
    int64_t      bytes = weft_numel(y) * (int64_t)sizeof(weft_real);
    weft_real   *out = hold(t, bytes);
    weft_read(y, out, (size_t)bytes);
    if (!weft_ok(weft_context_of(y)))
        wrong(t, "%s", weft_error_message(t->w));
    return out;
}

static void hold_one(trial *t, const char *name, int64_t at, double got, double want)
{
    double tol = (t->single ? 2e-6 : 1e-12) * fmax(1, fabs(want));
    if (!(fabs(got - want) <= tol))
        wrong(t, "%s[%lld] is %.17g, expected %.17g (off by %.1e, allowed %.1e)", name, (long long)at, got,
              want, fabs(got - want), tol);
}

static int64_t hold_nested(trial *t, const char *name, const weft_real *got, int64_t n, int64_t at,
                           const json_t *want)
{
    if (json_is_array(want)) {
        size_t i;
        const json_t *w;
        json_array_foreach(want, i, w)
            at = hold_nested(t, name, got, n, at, w);
        return at;
    }
    if (at < n)
        hold_one(t, name, at, (double)got[at], json_number_value(want));
    return at + 1;
}

void hold_values(trial *t, const char *name, const weft_real *got, int64_t n, const json_t *want)
{
    if (!want) {
        wrong(t, "the case has no \"%s\"", name);
        return;
    }
    int64_t there = hold_nested(t, name, got, n, 0, want);
    if (there != n)
        wrong(t, "%s has %lld numbers, expected %lld", name, (long long)n, (long long)there);
}

void hold_tensor(trial *t, const char *name, weft_tensor *got, const json_t *want)
{
    weft_real *v = elements(t, got);
    hold_values(t, name, v, weft_numel(got), want);
}

void hold_number(trial *t, const char *name, double got, const json_t *want)
{
    if (!json_is_number(want))
        wrong(t, "the case has no number \"%s\"", name);
    else
        hold_one(t, name, 0, got, json_number_value(want));
}

void hold_probe(trial *t, const char *name, const weft_real *gradient, int64_t n)
{
    const json_t *want = json_object_get(json_object_get(t->c, "gradient_probes"), name);
    if (json_array_size(want) != 2)
        /* golden.c compares the number of checked probes with the number in the file */
        return;
    double norm = 0, probe = 0;
    for (int64_t k = 0; k < n; k++) {
        norm += (double)gradient[k] * (double)gradient[k];
        probe += (double)gradient[k] * sin((double)(k + 1));
    }
    norm = sqrt(norm);
    double n0 = json_number_value(json_array_get(want, 0)), p0 = json_number_value(json_array_get(want, 1));
    double tol = t->single ? 3e-4 * n0 + 3e-7 : 1e-9 * n0 + 1e-13;
    t->probes++;
    if (!(fabs(norm - n0) <= tol) || !(fabs(probe - p0) <= tol))
        wrong(t, "gradient of %s: norm %.15g and probe %.15g, expected %.15g and %.15g", name, norm, probe,
              n0, p0);
}
