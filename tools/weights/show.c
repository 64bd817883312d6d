/* show.c - `weft show`: prints an array or a slice of it, or writes it as a .npy file. */
#include <stdlib.h>
#include <string.h>
#include "core/nearest.h"
#include "tools/weights/arrays.h"

static const option options[] = { IS_TEXT("--npy", "OUT", offsetof(weights_asked, npy),
                                          "write the numbers to a .npy file"),
                                  OPTION_PART,
                                  OPTION_JSON,
                                  { 0 } };

/* ---- slices ---- */
/* Elements of an array: numbers first + i * stride[0] + j * stride[1] + .. */
typedef struct {
    weft__kind kind;
    int64_t first, stride[WEFT_RANK];
} view;

/* Reads an integer if there is one. */
static bool read_whole(const char **text, int64_t *n)
{
    char *end;
    long long value = strtoll(*text, &end, 10);
    bool found = end > *text;
    *n = found ? value : *n;
    *text = end + strspn(end, " ");
    return found;
}

static int64_t inside(int64_t i, int64_t n) { return i < -n ? 0 : i < 0 ? i + n : i < n ? i : n; }

/* Reads "3", "-1", "0:2", "::2" for an axis of n elements. Returns what is wrong, or NULL. */
static const char *read_cut(const char **text, int64_t n, int64_t stride, view *v)
{
    int64_t first = 0, end = n, step = 1;
    bool whole = read_whole(text, &first);
    if (**text != ':') {
        if (!whole || first >= n || first < -n)
            return whole ? "an index outside its axis" : "no index";
        v->first += (first < 0 ? first + n : first) * stride;
        return NULL;
    }
    ++*text;
    read_whole(text, &end);
    if (**text == ':' && (++*text, read_whole(text, &step)) && step < 1)
        return "a step below 1";
    first = inside(first, n);
    end = inside(end, n);
    v->first += first * stride;
    v->stride[v->kind.rank] = stride * (step < n ? step : n);
    v->kind.size[v->kind.rank++] = end > first ? (end - first - 1) / step + 1 : 0;
    return NULL;
}

/* Reads "0:2, 3]"; NULL: all. Returns what is wrong, or NULL. */
static const char *read_slice(const char *text, const weft__array *a, view *v)
{
    const char *fault = text && *text == ']' ? "no index" : NULL;
    weft__array same = *a;
    weft__set_strides(&same);
    *v = (view){ .kind = { .type = a->kind.type } };
    for (int axis = 0; !fault && axis < a->kind.rank; axis++) {
        const char *all = ":", **at = text && *text != ']' ? &text : &all;
        text += at == &text && axis; /* a comma */
        fault = read_cut(at, a->kind.size[axis], same.stride[axis], v);
        if (!fault && at == &text && *text != ',' && *text != ']')
            fault = "another character";
    }
    return fault || !text || !strcmp(text, "]") ? fault : "more indices than axes, or text after them";
}

/* Copies the elements of a view to `to`. */
static void gather(const numbers *x, const view *v, int axis, int64_t from, char **to)
{
    size_t bytes = weft__number_bytes(x->type);
    for (int64_t i = 0; axis < v->kind.rank && i < v->kind.size[axis]; i++)
        gather(x, v, axis + 1, from + i * v->stride[axis], to);
    if (axis < v->kind.rank)
        return;
    memcpy(*to, (const char *)x->values + (size_t)from * bytes, bytes);
    *to += bytes;
}

/* ---- the array ---- */
static const char *name_of(int i, const void *weights)
{
    const weft__weights *w = weights;
    return i < w->n ? w->array[i].name : NULL;
}

/* Finds the array of "NAME" or "NAME[slice]"; then *slice is "slice]". Returns NULL after a printed error. */
static const weft__array *find(const weft__weights *w, char *word, const char **slice)
{
    const weft__array *a = weft__weights_find(w, word);
    char *bracket = a ? NULL : strrchr(word, '[');
    if (bracket) {
        *bracket = 0;
        *slice = bracket + 1;
        a = weft__weights_find(w, word);
    }
    const char *near = a ? NULL : weft__nearest(word, name_of, w);
    if (!a)
        say_error(UNREADABLE, "show: %s: no array \"%.80s\"%s%s%s; weft list prints the names", w->path, word,
                  near ? "; \"" : "", near ? near : "", near ? "\" is near" : "");
    return a;
}

static int show_view(weft__weights *w, const weft__array *a, const view *v)
{
    numbers all, part = { .n = elements_of(&v->kind) };
    bool good = read_numbers(w, a, &all);
    char *to = part.values = get_memory(part.n, sizeof(double));
    int status = UNREADABLE;
    if (!good)
        say_unreadable();
    else if (!all.values)
        say_error(UNREADABLE, "show: weft does not read the type of %s", a->name);
    else {
        part.type = all.type;
        if (part.n)
            gather(&all, v, 0, v->first, &to);
        status = emit_numbers(a->name, &part, &v->kind, asked.npy);
    }
    free(all.values);
    free(part.values);
    return status;
}

static int show(int argc, char **argv)
{
    const char *slice = NULL, *fault = NULL;
    char shape[160];
    view v;
    int status = UNREADABLE;
    weft__weights *w = open_weights(argv[0]);
    const weft__array *a = w ? find(w, argv[argc - 1], &slice) : NULL;
    if (a && (fault = read_slice(slice, a, &v)))
        say_error(UNREADABLE, "show: [%.80s: found %s; expected a slice of %s, as [0:2, -1]", slice, fault,
                  shape_text(&a->kind, shape));
    else if (a)
        status = show_view(w, a, &v);
    weft__weights_close(w);
    return status;
}

WEIGHTS(show, 2, 2, "prints numbers of an array", "FILE NAME[SLICE] [--npy OUT] [--json]",
    "Prints an array as weft_print does: an axis of more than 8 elements shows the first and the last 4.\n"
    "JSON and .npy files have all. SLICE selects as in Python: \"encoder.weight[0:2, -1]\".\n");
