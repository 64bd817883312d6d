/* diff.c - `weft diff`: compares two files with weights, of any formats, array by array. */
#include <math.h>
#include "tools/weights/arrays.h"

/* differing: numbers beyond the tolerance. The largest difference is at number `place`; -1: all are equal. */
typedef struct { int64_t differing, place; double largest, relative, ulp; bool same_bits; } result;
static int64_t both, differing, other_bits; /* numbers of arrays */

/* Compares the numbers of arrays of types s and t. NaN equals only NaN. */
static result compare_numbers(const numbers x[2], weft__number s, weft__number t)
{
    bool floats = weft__number_is_float(s) && weft__number_is_float(t);
    weft__number narrow = !floats ? WEFT__ODD : s == t || t == WEFT__F64 ? s : s == WEFT__F64 ? t : WEFT__F32;
    size_t bytes = (size_t)x->n * weft__number_bytes(x->type);
    result r = { .place = -1, .same_bits = s == t && (!bytes || !memcmp(x[0].values, x[1].values, bytes)) };
    for (int64_t i = 0; i < x->n && !r.same_bits; i++) {
        long double a = number_at(&x[0], i), b = number_at(&x[1], i);
        double most = (double)fmaxl(fabsl(a), fabsl(b)), difference = (double)fabsl(a - b);
        if (a == b || (isnan(a) && isnan(b)))
            continue;
        difference = isfinite(difference) ? difference : (double)INFINITY;
        r.differing += difference > asked.tolerance * fmax(1, most) || isinf(difference);
        r.place = difference > r.largest ? i : r.place;
        r.largest = fmax(r.largest, difference);
        if (isinf(difference))
            continue;
        r.relative = fmax(r.relative, difference / most);
        if (narrow != WEFT__ODD) {
            float_form f = float_forms[narrow];
            r.ulp = fmax(r.ulp, ldexp(difference, f.fraction - (int)fmax(f.least, logb(most))));
        }
    }
    return r;
}

/* Prints how arrays differ; r NULL: their numbers x were not compared. */
static void put_pair(const weft__array *a, const weft__array *b, const result *r, const numbers x[2])
{
    weft__kind at = a->kind;
    emit("{<name>%s", a->name);
    if (type_of(a) != type_of(b))
        emit("<dtype_a>: %t<dtype_b>, %t", &a->kind, &b->kind);
    if (!r)
        emit("<shape_a>: shape %k<shape_b>, %k", &a->kind, &b->kind);
    else
        emit("<differing>: %d differing number(s)", r->differing);
    if (r && r->place < 0)
        emit("; some have other bits: -0, NaN or another type");
    else if (r) {
        int64_t rest = r->place;
        for (int axis = at.rank - 1; axis >= 0; rest /= a->kind.size[axis--])
            at.size[axis] = rest % a->kind.size[axis];
        emit("<largest>, at most by %.3g<place> at %k", r->largest, &at);
        if (x[0].type == WEFT__I64 && x[1].type == WEFT__I64)
            emit("<a>: %d<b>, %d", (int64_t)number_at(&x[0], r->place), (int64_t)number_at(&x[1], r->place));
        else
            emit("<a>: %.9g<b>, %.9g", (double)number_at(&x[0], r->place),
                 (double)number_at(&x[1], r->place));
        emit("<relative>; relative %.3g<ulp>, %.6g ulp", r->relative, r->ulp);
    }
    emit("}\n");
}

static void compare(const weft__array *a, const weft__array *b)
{
    numbers x[2] = { 0 };
    weft__kind k = b->kind;
    k.type = a->kind.type;
    bool shapes = weft__kind_same(&a->kind, &k);
    if (shapes && (!read_numbers(asked.file[0], a, &x[0]) || !read_numbers(asked.file[1], b, &x[1])))
        unreadable();
    bool known = x[0].values && x[1].values;
    result r = { .same_bits = shapes && type_of(a) == type_of(b) };
    if (known && !asked.status)
        r = compare_numbers(x, type_of(a), type_of(b));
    both++;
    other_bits += !r.same_bits;
    if (!asked.status && !r.same_bits && !(known && asked.tolerance > 0 && !r.differing)) {
        differing++;
        put_pair(a, b, known ? &r : NULL, x);
    }
    free(x[0].values);
    free(x[1].values);
}

/* Visits both lists, which are sorted by name. */
static void diff(char **paths)
{
    const weft__weights *v = asked.file[0], *w = asked.file[1];
    emit("{<arrays>[");
    for (int64_t i = 0, j = 0; !asked.status && (i < v->n || j < w->n);) {
        const weft__array *a = &v->array[i], *b = &w->array[j];
        int order = i == v->n ? 1 : j == w->n ? -1 : strcmp(a->name, b->name);
        const weft__array *only = order < 0 ? a : b;
        differing += order != 0;
        if (order)
            emit("{<only_in>only in %s: <name>%s <dtype>%t <shape>%k\n}", paths[order > 0], only->name,
                 &only->kind, &only->kind);
        else
            compare(a, b);
        i += order <= 0;
        j += order >= 0;
    }
    emit("]");
    if (!asked.status) {
        const char *rest =
            other_bits ? "<other_bits>%d within the tolerance\n" : "<other_bits>%.0dsame bits\n";
        emit("<compared>%d array(s) in both files: ", both);
        emit(differing ? "<differences>%d difference(s)\n" : rest, differing ? differing : other_bits);
    }
    emit("}");
    failed(differing ? DIFFERENT : SAME);
}

WEIGHTS(diff, 2, 2, 2, "compares two files with weights", "A B [--tolerance T] [--json]",
    "Prints a line for each array that only one file has, or that differs in shape, type or numbers. The\n"
    "formats of the files may differ. Exit status: 0 same, 1 different, 2 an error.\n",
    IS_REAL("--tolerance", "T", FIELD(tolerance), 1e9,
            "numbers are the same if they differ by at most\nT * max(1, |a|, |b|); then types may differ"),
    OPTION_PART, OPTION_JSON);
