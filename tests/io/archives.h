/* archives.h - the common parts of tests of files with weights: they are opened and compared. */
#ifndef TESTS_ARCHIVES_H
#define TESTS_ARCHIVES_H
#include "io/weights/weights.h"
#include "files.h"

/* Opens a file, and closes the one of the call before. */
UNUSED static weft__weights *open_weights(const char *path, const char *part)
{
    static weft__weights *w;
    weft__weights_close(w);
    DOES(weft__weights_open(path, part, &w));
    return w;
}
#define REFUSES_WEIGHTS(path, part, text)                                   \
    do {                                                                    \
        weft__weights *none;                                                \
        REFUSES(weft__weights_open(path, part, &none), WEFT_EFORMAT, text); \
        cr_assert_null(none);                                               \
    } while (0)

UNUSED static const weft__array *array_of(const weft__weights *w, const char *name)
{
    for (int64_t i = 0; i < w->n; i++)
        if (!strcmp(w->array[i].name, name))
            return &w->array[i];
    cr_assert(false, "%s is not in %s", name, w->path);
    return NULL;
}

/* The array has this kind, such as "float32 [2, 3]", and these numbers. */
UNUSED static void has_numbers(weft__weights *w, const char *name, const char *kind, const double *want)
{
    char text[128];
    double is[64];
    const weft__array *a = array_of(w, name);
    cr_assert_str_eq(weft__kind_text(&a->kind, text), kind, "%s", name);
    cr_assert(weft__array_read(w, a, WEFT__F64, is), "%s", weft_file_message());
    size_t n = weft__kind_bytes(&a->kind) / weft__number_bytes(a->kind.type);
    for (size_t i = 0; i < n; i++)
        cr_assert_eq(is[i], want[i], "%s: element %zu is %g; expected %g", name, i, is[i], want[i]);
}

UNUSED static const char *fact_of(const weft__weights *w, const char *key)
{
    for (int64_t i = 0; i < w->facts; i++)
        if (!strcmp(w->fact[i].key, key))
            return w->fact[i].value;
    return "";
}
#endif
