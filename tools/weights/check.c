/* check.c - `weft check`: checks files with weights as fsck checks disks: structure, checksums, numbers. The
 * readers refuse each fault of the structure: truncation, overlap, order, wrong sizes, names used twice. */
#include <stdlib.h>
#include <string.h>
#include "tools/weights/arrays.h"

static const option options[] = { OPTION_PART, OPTION_JSON, { 0 } };

typedef struct { const char *path; int64_t faults, notes; } findings;

/* Prints a finding as one line. name: of the array, or NULL: the text is a message with the path. */
static void find(findings *f, bool fault, const char *name, const char *text)
{
    f->faults += fault;
    f->notes += !fault;
    emit_begin(NULL, '{');
    emit_text("file", name ? "%s: " : NULL, f->path);
    emit_text("kind", "%s: ", fault ? "fault" : "note");
    if (name)
        emit_text("name", "%s: ", name);
    emit_text("text", "%s", text);
    emit_end("\n");
}

static void check_name(findings *f, const char *name)
{
    if (!*name || strchr(name, ' '))
        find(f, false, name, *name ? "the name has a blank" : "the name is empty");
    else if (*name == '.' || name[strlen(name) - 1] == '.' || strstr(name, ".."))
        find(f, false, name, "the name has an empty part");
}

static void check_numbers(findings *f, const char *name, const numbers *x)
{
    char text[96] = "it has no numbers";
    moments m = moments_of(x);
    bool constant = m.least == m.most && x->n > 1;
    if (m.nans || m.infinities)
        snprintf(text, sizeof text, "%lld NaN and %lld infinities among %lld numbers", (long long)m.nans,
                 (long long)m.infinities, (long long)x->n);
    else if (constant)
        snprintf(text, sizeof text, "all %lld numbers are %.6g", (long long)x->n, m.most);
    if (m.nans || m.infinities || constant || !x->n)
        find(f, m.nans, name, text);
}

/* Returns false after a failure. */
static bool check_array(findings *f, weft__weights *w, const weft__array *a)
{
    numbers x;
    check_name(f, a->name);
    bool good = read_numbers(w, a, &x);
    if (!good)
        find(f, true, NULL, weft_file_message());
    else if (x.values)
        check_numbers(f, a->name, &x);
    else
        find(f, false, a->name, "weft does not read its type");
    free(x.values);
    return good;
}

static int check_file(const char *path)
{
    findings f = { .path = path };
    weft__weights *w;
    weft_status s = weft__weights_open(path, asked.rename.part, &w);
    if (s == WEFT_ENOENT || s == WEFT_EIO || s == WEFT_EARG || s == WEFT_ENOMEM)
        return say_unreadable();
    if (s)
        find(&f, true, NULL, weft_file_message());
    for (int64_t i = 0; w && i < w->n && check_array(&f, w, &w->array[i]); i++)
        ;
    if (!asked.json && !f.faults) {
        emit_text(NULL, "%s: good: ", path);
        printf("%s, %lld arrays, %lld notes\n", w->format, (long long)w->n, (long long)f.notes);
    }
    weft__weights_close(w);
    return f.faults ? DIFFERENT : SAME;
}

static int check(int argc, char **argv) { return each_file(argc, argv, check_file); }

WEIGHTS(check, 1, INT_MAX, "checks files with weights for damage", "FILE .. [--json]",
    "Checks the structure, the checksums and all numbers of each file, and prints a line for each fault:\n"
    "damage, NaN. Notes are not faults: infinities, equal numbers, unusual names or types.\n"
    "Exit status: 0 no fault, 1 faults, 2 a file cannot be read.\n");
