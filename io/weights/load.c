/* load.c - weft_load_weights: gives the arrays of a file to the parameters and buffers of a module.
 *
 * Everything is read and checked before anything is changed. */
#include <stdlib.h>
#include <string.h>
#include "io/weights/weights.h"

/* A parameter, and the numbers that were read for it. */
typedef struct {
    const weft__parameter *p;
    const weft__held *held;
    bool found;                                  /* the file has it under one of its names */
} known;
typedef struct {
    weft__stage stage;
    weft__weights *w;
    weft_module *m;
    weft_load_report *report;
    known *known; size_t parameters;             /* all of the root, sorted by address */
    bool *used; /* [w->n] an array has the name of a parameter */
} loading;

static const weft__array *array_of(const loading *l, const weft__parameter *p)
{
    return weft__weights_find(l->w, weft__path_below(p, l->m));
}

static int by_address(const void *a, const void *b)
{
    uintptr_t p = (uintptr_t)((const known *)a)->p, q = (uintptr_t)((const known *)b)->p;
    return (p > q) - (p < q);
}

static void list_known(loading *l)
{
    const weft__parameter *p;
    for (p = l->m->root->first; p; p = p->next_in_root)
        l->parameters++;
    known *k = l->known = weft__weights_memory(l->w, l->parameters * sizeof *k);
    for (p = l->m->root->first; p && k; p = p->next_in_root)
        k++->p = p;
    if (k)
        qsort(l->known, l->parameters, sizeof *k, by_address);
}

static known *known_of(const loading *l, const weft__parameter *p)
{
    const known key = { .p = weft__numbers_of(p) };
    return bsearch(&key, l->known, l->parameters, sizeof key, by_address);
}

/* ---- advice for names that differ by a prefix only ---- */
static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), k = strlen(end);
    return n > k && name[n - k - 1] == '.' && !strcmp(name + n - k, end);
}

/* Returns advice for a name of the module that the file lacks, or "". */
static const char *advise(const loading *l, const char *path)
{
    bool fits = !l->w->n;
    for (int64_t i = 0; i < l->w->n; i++) {
        const char *name = l->w->array[i].name;
        size_t n = strlen(name), k = strlen(path);
        fits = fits || l->used[i];
        if (ends_with(name, path))
            return weft__weights_print(l->w, "; the file has %.60s: set .strip_prefix to \"%.*s\"", name,
                                       (int)(n - k), name);
        if (ends_with(path, name))
            return weft__weights_print(l->w, "; the file has %.60s: set .add_prefix to \"%.*s\"", name,
                                       (int)(k - n), path);
    }
    if (fits)
        return "";
    return weft__weights_print(l->w, "; no name of the file is in the module, its first is %.60s: pair names "
                               "by .map", l->w->array[0].name);
}

/* ---- parameters of the module ---- */
/* Notes the parameters that the file has, so that a tied one may have another name. */
static void find_all(loading *l)
{
    for (const weft__parameter *p = NULL; (p = weft__next_name(l->m, p));) {
        const weft__array *a = array_of(l, p);
        if (!a)
            continue;
        known_of(l, p)->found = true;
        l->used[a - l->w->array] = true;
    }
}

static bool has_shape(const weft__array *a, weft__kind expected)
{
    expected.type = a->kind.type;
    return weft__kind_same(&a->kind, &expected);
}

static bool fits(loading *l, const weft__array *a, const weft__kind *expected)
{
    char x[128], y[128];
    weft__kind_text(&a->kind, x);
    if (!weft__number_is_any(a->kind.type))
        weft__stage_fail(&l->stage, WEFT_EFORMAT, /* leaving it out without an error would hide it */
                         "%s is %s; expected integers or floating-point numbers, including float16 and "
                         "bfloat16", a->place, x);
    else if (!has_shape(a, *expected))
        weft__report_finding(&l->stage, l->report, WEFT__OTHER_SHAPE, "%s is %s; expected %s, as in the "
                             "module", a->place, x, weft__kind_text(expected, y));
    else
        return true;
    return false;
}

/* Compares the values held last with those stored under another name of p. */
static void check_tied(loading *l, const weft__parameter *p, const weft__array *a)
{
    const weft__held *last = l->stage.last;
    known *numbers = known_of(l, p);
    if (numbers->held && memcmp(numbers->held->values, last->values, last->bytes))
        weft__stage_fail(&l->stage, WEFT_EFORMAT, "%s differs from the parameter that it is tied to; "
                         "expected equal values", a->place);
    numbers->held = last;
}

/* The layer gives 0 for its padding row, whatever the file has; PyTorch gives the row. */
static void check_padding(loading *l, const weft__parameter *p, const weft__array *a)
{
    const weft_tensor *x = &weft__numbers_of(p)->value;
    int64_t row = p->module->padding - 1, columns = x->f.rank == 2 ? x->f.size[1] : 0, i = 0;
    const real *values = (const real *)(const void *)l->stage.last->values + (row < 0 ? 0 : row) * columns;
    while (row >= 0 && i < columns && values[i] == 0)
        i++;
    if (row >= 0 && i < columns && l->report)
        weft__report_line(l->report, "padding",
                          weft__weights_print(l->w, "%s row %lld is not 0; the layer gives 0 for this id",
                                              a->place, (long long)row));
}

static void hold_parameter(loading *l, const weft__parameter *p)
{
    const weft_tensor *x = &weft__numbers_of(p)->value;
    const weft__kind expected = weft__kind_of(x);
    const weft__array *a = array_of(l, p);
    const char *path = weft__path_below(p, l->m);
    if (!a && known_of(l, p)->found)
        return;
    if (!a && l->report)
        weft__report_finding(&l->stage, l->report, WEFT__MISSING, "%s", path);
    else if (!a)
        weft__stage_fail(&l->stage, WEFT_EFORMAT, "%s is not in the file, but the module has it%s", path,
                         advise(l, path));
    void *values = a && fits(l, a, &expected) ?
                       weft__hold(&l->stage, x->data, weft__kind_bytes(&expected), true) : NULL;
    if (!values)
        return;
    if (!weft__array_read(l->w, a, expected.type, values)) {
        l->stage.status = l->w->status;
        return;
    }
    check_tied(l, p, a);
    check_padding(l, p, a);
    weft__report_finding(&l->stage, l->report, WEFT__LOADED, "%s", a->place);
}

/* ---- the report ---- */
/* Reports "NAME (from PLACE): float16, transposed, gates reordered". */
static void report_array(loading *l, const weft__array *a, weft__number as)
{
    char kind[128];
    weft__kind_text(&(weft__kind){ .type = a->kind.type }, kind);
    kind[strcspn(kind, "[") - 1] = 0;
    const char *const changes[] = { a->kind.type != as ? kind : NULL, a->transposed ? "transposed" : NULL,
                                    a->gates ? "gates reordered" : NULL };
    const char *text = weft__weights_print(l->w, a->place == a->name ? "%s" : "%s (from %s)", a->name,
                                           a->place);
    bool changed = false;
    for (int i = 0; i < 3; i++)
        if (changes[i]) {
            text = weft__weights_print(l->w, "%s%s %s", text, changed ? "," : ":", changes[i]);
            changed = true;
        }
    l->report->converted += changed;
    weft__report_line(l->report, changed ? "converted" : "loaded", text);
}

static void report_loaded(loading *l)
{
    for (const weft__parameter *p = NULL; (p = weft__next_name(l->m, p));) {
        const weft__array *a = array_of(l, p);
        const weft__kind expected = weft__kind_of(&weft__numbers_of(p)->value);
        if (a && has_shape(a, expected))
            report_array(l, a, expected.type);
    }
}

static void load_arrays(loading *l)
{
    find_all(l);
    for (const weft__parameter *p = NULL; !weft__stage_status(&l->stage) && (p = weft__next_name(l->m, p));)
        hold_parameter(l, p);
    for (int64_t i = 0; i < l->w->n; i++)
        if (!l->used[i])
            weft__report_finding(&l->stage, l->report, WEFT__EXTRA, "%s", l->w->array[i].place);
    if (l->report && !weft__stage_status(&l->stage))
        report_loaded(l);
}

/* ---- the function ---- */
static weft_status prepare(loading *l, const weft_weights_opts *o)
{
    weft__weights *w = l->w;
    if (!strcmp(w->format, "weft checkpoint"))
        weft__weights_fail(w, WEFT_EFORMAT,
                           "weft_load and weft_load_matching read checkpoints; expected weights");
    weft__weights_rename(w, o);
    if (w->by_layer && !w->status && weft__match_layers(w, l->m))
        weft__weights_sort(w);
    l->used = weft__weights_memory(w, (size_t)w->n * sizeof *l->used);
    list_known(l);
    return w->status;
}

weft_status weft_load_weights(const char *path, weft_module *m, const weft_weights_opts *opts,
                              weft_load_report *report)
{
    loading l = { .m = m, .report = report, .stage.path = path };
    if (report)
        *report = (weft_load_report){ 0 };
    weft_status s = weft__check_storable(m, "weft_load_weights", path);
    if (!s)
        s = weft__weights_open(path, opts ? opts->part : NULL, &l.w);
    if (s)
        return s;
    l.stage.status = prepare(&l, opts);
    if (!l.stage.status)
        load_arrays(&l);
    weft__weights_close(l.w);
    return weft__stage_end(&l.stage, m);
}
