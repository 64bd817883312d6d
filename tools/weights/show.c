/* show.c - `weft show`: prints an array or a slice of it, or writes it as a .npy file. */
#include "core/nearest.h"
#include "tools/weights/arrays.h"

/* ---- slices ---- */
/* Reads an integer, if there is one, and blanks. */
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

/* Sets *part to the elements "0:2, -1]" of an array, as an array with other strides; "]": to all. Returns
 * false for another text, and for an index outside its axis. */
static bool read_slice(const char *text, const weft__array *a, weft__array *part)
{
    weft__array whole = *a;
    weft__set_strides(&whole);
    *part = (weft__array){ .name = a->name, .kind.type = a->kind.type };
    for (int axis = 0; axis < a->kind.rank; axis++) {
        int64_t n = a->kind.size[axis], cut[3] = { 0, n, 1 };
        int colons = 0;
        if (*text == ']')
            text = axis ? ",:]" : ":]";
        text += axis > 0; /* the comma */
        bool found = read_whole(&text, &cut[0]);
        while (*text == ':' && colons < 2) {
            text++;
            read_whole(&text, &cut[++colons]);
        }
        if ((*text != ',' && *text != ']') || cut[2] < 1 ||
            (!colons && (!found || cut[0] >= n || cut[0] < -n)))
            return false;
        int64_t first = inside(cut[0], n), end = inside(cut[1], n);
        part->first += first * whole.stride[axis];
        if (colons) {
            part->stride[part->kind.rank] = whole.stride[axis] * (cut[2] < n ? cut[2] : n);
            part->kind.size[part->kind.rank++] = end > first ? (end - first - 1) / cut[2] + 1 : 0;
        }
    }
    return !strcmp(text, "]");
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
        FAIL("show: %s: no array \"%.80s\"%s%s%s; weft list prints the names", w->path, word,
             near ? "; \"" : "", near ? near : "", near ? "\" is near" : "");
    return a;
}

static void show(char **words)
{
    const char *slice = NULL;
    char text[128];
    weft__weights *w = asked.file[0];
    weft__array part;
    numbers all = { 0 }, x = { 0 };
    const weft__array *a = find(w, words[1], &slice);
    if (!a)
        return;
    if ((slice && *slice == ']') || !read_slice(slice ? slice : "]", a, &part))
        FAIL("show: [%.80s: expected a slice of %s, as [0:2, -1]", slice,
             strchr(weft__kind_text(&a->kind, text), '['));
    else if (!read_numbers(w, a, &all))
        unreadable();
    else if (!all.values)
        FAIL("show: weft does not read the type of %s", a->name);
    else { /* a part of the numbers is an array with other strides */
        weft__kind kind = part.kind;
        part.bytes = (unsigned char *)all.values + (size_t)part.first * weft__number_bytes(all.type);
        part.kind.type = all.type;
        if (read_numbers(w, &part, &x) || unreadable())
            emit_numbers(a->name, &x, &kind, asked.npy);
    }
    free(all.values);
    free(x.values);
}

WEIGHTS(show, 2, 2, 1, "prints numbers of an array", "FILE NAME[SLICE] [--npy OUT] [--json]",
    "Prints an array as weft_print does: an axis of more than 8 elements shows the first and the last 4.\n"
    "JSON and .npy files have all. SLICE selects as in Python: \"encoder.weight[0:2, -1]\".\n",
    IS_TEXT("--npy", "OUT", FIELD(npy), "write the numbers to a .npy file"), OPTION_PART, OPTION_JSON);
