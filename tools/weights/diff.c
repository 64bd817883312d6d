/* diff.c - `weft diff`: compares two files with weights, of any formats, array by array. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "tools/weights/arrays.h"

static const option options[] = {
    IS_REAL("--tolerance", "T", offsetof(weights_asked, tolerance), 1e9,
            "numbers are the same if they differ by at most\nT * max(1, |a|, |b|); then types may differ"),
    OPTION_PART, OPTION_JSON, { 0 }
};

typedef struct { int64_t both, differing, other_bits; } comparison;
/* differing: numbers beyond the tolerance. The largest difference is at number `place`; -1: all are equal. */
typedef struct { int64_t differing, place; double largest, relative, ulp; bool same_bits; } result;

/* ---- numbers ---- */
/* Counts a pair of numbers that are not the same. NaN equals only NaN. narrow: the type of ulp; ODD: none. */
static void compare_pair(double x, double y, int64_t i, weft__number narrow, result *r)
{
    double most = fmax(fabs(x), fabs(y)),
           difference = isnan(x) || isnan(y) || isinf(x - y) ? (double)INFINITY : fabs(x - y);
    int exponent;
    if (isnan(x) && isnan(y))
        return;
    r->differing += difference > asked.tolerance * fmax(1, most) || isinf(difference);
    if (difference > r->largest) {
        r->largest = difference;
        r->place = i;
    }
    if (isinf(difference))
        return;
    r->relative = fmax(r->relative, difference / most);
    frexp(most, &exponent);
    if (narrow != WEFT__ODD) {
        form f = form_of(narrow);
        exponent = exponent - 1 < f.least ? f.least : exponent - 1;
        r->ulp = fmax(r->ulp, ldexp(difference, f.fraction - exponent));
    }
}

static result compare_numbers(const numbers *x, const numbers *y, weft__number s, weft__number t)
{
    result r = { .place = -1 };
    bool floats = weft__number_is_float(s) && weft__number_is_float(t);
    weft__number narrow = !floats ? WEFT__ODD : s == t || t == WEFT__F64 ? s : s == WEFT__F64 ? t : WEFT__F32;
    r.same_bits =
        s == t && (!x->n || !memcmp(x->values, y->values, (size_t)x->n * weft__number_bytes(x->type)));
    for (int64_t i = 0; i < x->n && !r.same_bits; i++)
        if (number_at(x, i) != number_at(y, i))
            compare_pair(number_at(x, i), number_at(y, i), i, narrow, &r);
    return r;
}

/* ---- findings ---- */
static void put_only(const weft__array *a, const char *path)
{
    char type[32];
    emit_begin(NULL, '{');
    emit_text("only_in", "only in %s: ", path);
    emit_text("name", "%s ", a->name);
    emit_text("dtype", "%s ", type_text(type_of(a), type));
    emit_shape("shape", "%s", &a->kind);
    emit_end("\n");
}

static void put_result(const weft__kind *k, const numbers *x, const numbers *y, const result *r)
{
    weft__kind at = *k;
    int64_t rest = r->place;
    emit_whole("differing", ": %lld numbers differ", r->differing);
    if (r->place < 0) {
        if (!asked.json && !r->same_bits)
            fputs("; some have other bits: -0, NaN, large integers or another type", stdout);
        return;
    }
    for (int axis = k->rank - 1; axis >= 0; rest /= k->size[axis--])
        at.size[axis] = rest % k->size[axis];
    emit_real("largest", ", at most by %.3g", r->largest);
    emit_shape("place", " at %s", &at);
    emit_real("a", ": %.9g", number_at(x, r->place));
    emit_real("b", ", %.9g", number_at(y, r->place));
    emit_real("relative", "; relative %.3g", r->relative);
    emit_real("ulp", ", %.6g ulp", r->ulp);
}

static void put_pair(const weft__array *a, const weft__array *b, const result *r, const numbers *x)
{
    char text[2][32];
    emit_begin(NULL, '{');
    emit_text("name", "%s", a->name);
    if (type_of(a) != type_of(b)) {
        emit_text("dtype_a", ": %s", type_text(type_of(a), text[0]));
        emit_text("dtype_b", ", %s", type_text(type_of(b), text[1]));
    }
    if (r)
        put_result(&a->kind, &x[0], &x[1], r);
    else {
        emit_shape("shape_a", ": shape %s", &a->kind);
        emit_shape("shape_b", ", %s", &b->kind);
    }
    emit_end("\n");
}

/* Compares an array of both files. Returns false after a failure. */
static bool compare(comparison *c, weft__weights *const w[2], const weft__array *a, const weft__array *b)
{
    numbers x[2] = { 0 };
    bool shapes = a->kind.rank == b->kind.rank &&
                  !memcmp(a->kind.size, b->kind.size, (size_t)a->kind.rank * sizeof *a->kind.size);
    bool good = !shapes || (read_numbers(w[0], a, &x[0]) && read_numbers(w[1], b, &x[1]));
    bool known = x[0].values && x[1].values;
    result r = { .place = -1, .same_bits = type_of(a) == type_of(b) && !known };
    if (good && known)
        r = compare_numbers(&x[0], &x[1], type_of(a), type_of(b));
    c->both++;
    if (good && (!shapes || !r.same_bits)) {
        bool tolerated = shapes && known && asked.tolerance > 0 && !r.differing;
        c->other_bits++;
        c->differing += !tolerated;
        if (!tolerated)
            put_pair(a, b, shapes && known ? &r : NULL, x);
    }
    free(x[0].values);
    free(x[1].values);
    return good;
}

/* Visits both lists, which are sorted by name. */
static bool compare_all(comparison *c, weft__weights *const w[2])
{
    bool good = true;
    for (int64_t i = 0, j = 0; good && (i < w[0]->n || j < w[1]->n);) {
        const weft__array *a = &w[0]->array[i], *b = &w[1]->array[j];
        int order = i == w[0]->n ? 1 : j == w[1]->n ? -1 : strcmp(a->name, b->name);
        c->differing += order != 0;
        if (order)
            put_only(order < 0 ? a : b, w[order > 0]->path);
        else
            good = compare(c, w, a, b);
        i += order <= 0;
        j += order >= 0;
    }
    return good;
}

static int diff(int argc, char **argv)
{
    comparison c = { 0 };
    weft__weights *w[2] = { open_weights(argv[0]), NULL };
    w[1] = w[0] ? open_weights(argv[argc - 1]) : NULL;
    bool good = w[1];
    if (good) {
        emit_begin(NULL, '{');
        emit_begin("arrays", '[');
        good = compare_all(&c, w) || say_unreadable() == SAME;
        emit_end("");
        emit_whole("compared", "%lld arrays are in both files: ", c.both);
        emit_whole("differences", c.differing ? "%lld differences\n" : NULL, c.differing);
        const char *other = c.other_bits ? "%lld differ within the tolerance\n" : "same bits\n";
        emit_whole("other_bits", c.differing ? NULL : other, c.other_bits);
        emit_end("");
    }
    weft__weights_close(w[1]);
    weft__weights_close(w[0]);
    return !good ? UNREADABLE : c.differing ? DIFFERENT : SAME;
}

WEIGHTS(diff, 2, 2, "compares two files with weights", "A B [--tolerance T] [--json]",
    "Prints a line for each array that only one file has, or that differs in shape, type or numbers. The\n"
    "formats of the files may differ. Exit status: 0 same, 1 different, 2 an error.\n");
