/* print.c - prints tensors and layouts as text. */
#include <stdlib.h>
#include "core/inside.h"
#include "core/os.h"

static void print_number(FILE *file, const weft_tensor *x, const void *all, int64_t i)
{
    if (x->f.type == WEFT_I32)
        fprintf(file, "%d", ((const int32_t *)all)[i]);
    else
        fprintf(file, "%.4g", (double)((const real *)all)[i]);
}

static void print_block(FILE *file, const weft_tensor *x, const void *all, int axis, int64_t from)
{
    if (axis == x->f.rank) {
        print_number(file, x, all, from);
        return;
    }
    int64_t n = x->f.size[axis], stride = 1,
            limit = inside(x->w)->print_limit ? inside(x->w)->print_limit : n;
    for (int i = axis + 1; i < x->f.rank; i++)
        stride *= x->f.size[i];
    fputc('[', file);
    for (int64_t i = 0; i < n; i++) {
        if (n > limit && i == (limit + 1) / 2) {
            fputs(axis + 1 < x->f.rank ? ",\n ..." : ", ...", file);
            i = n - limit / 2;
        }
        if (i == n)                              /* a limit of 1 prints nothing after the dots */
            break;
        fputs(i == 0 ? "" : axis + 1 < x->f.rank ? ",\n " : ", ", file);
        print_block(file, x, all, axis + 1, from + i * stride);
    }
    fputc(']', file);
}

void weft_print(FILE *file, const weft_tensor *x)
{
    if (!file || !x) {
        fputs("NULL\n", file ? file : stderr);
        return;
    }
    size_t bytes = (size_t)weft__bytes(&x->f);
    void *all = malloc(bytes + 1);
    void *before = weft__plain_locale();
    fprintf(file, "%s ", WEFT__TEXT(&x->f));
    if (!all || weft__read(x, all, bytes) != WEFT_OK)
        fprintf(file, "cannot be read: %s", all ? weft_error_message(x->w) : "out of memory");
    else
        print_block(file, x, all, 0, 0);
    fputc('\n', file);
    weft__plain_locale_end(before);
    free(all);
}

int64_t weft_set_print_limit(weft *w, int64_t limit)
{
    if (!w || weft__is_no_context(w))
        return 0;
    int64_t before = inside(w)->print_limit;
    if (limit < 0)
        weft__fail(w, WEFT_EARG, "set_print_limit: %lld elements of an axis; expected 0 (all) or more",
                   (long long)limit);
    else
        inside(w)->print_limit = limit;
    return before;
}

static const char *name_of(int64_t sequence, char buffer[24])     /* a .. z, then numbers */
{
    if (sequence < 26)
        snprintf(buffer, 24, "%c", (int)('a' + sequence));
    else
        snprintf(buffer, 24, "%lld,", (long long)sequence);
    return buffer;
}

/* Prints one row per sequence, longest first, with one column per step. */
static void print_staircase(FILE *file, const weft_batch *b)
{
    char name[24];
    for (int64_t i = 0; i < b->n; i++) {
        int32_t s = b->sorted.host[i];
        fprintf(file, "%6d  ", s);
        for (int64_t t = 0; t < b->longest; t++)
            fprintf(file, "%s ", t < b->len[s] ? name_of(s, name) : ".");
        fprintf(file, " length %d\n", b->len[s]);
    }
    fputs(" live  ", file);
    for (int64_t t = 0; t < b->longest; t++)
        fprintf(file, " %d", b->live.host[t]);
    fputc('\n', file);
}

static void print_layout_row(FILE *file, const struct weft__rows *r, int64_t from, int64_t to)
{
    char name[24];
    fputs(from ? "        " : " rows   ", file);
    for (int64_t i = from; i < to; i++)
        if (r->sequence.host[i] < 0)
            fputs(". ", file);
        else
            fprintf(file, "%s%d ", name_of(r->sequence.host[i], name), r->position.host[i]);
    fputc('\n', file);
}

void weft_print_layout(FILE *file, const weft_tensor *x)
{
    static const char *const names[] = { "plain", "packed", "concat", "rows", "padded" };
    if (!file || !x || (x->step && x->step != x->w->step) || !x->f.batch) {
        fputs(x ? "not ragged\n" : "NULL\n", file ? file : stderr);
        return;
    }
    weft_batch *b = x->f.batch;
    const struct weft__rows *r = weft__rows_of(b, &x->f);
    fprintf(file, "%s: %lld sequences, %lld tokens, longest %lld\n", names[x->f.layout], (long long)b->n,
            (long long)b->tokens, (long long)b->longest);
    if (x->f.layout == WEFT_PACKED)
        print_staircase(file, b);
    if (!r)
        return;
    int64_t rows = weft__layout_rows(&x->f), width = x->f.layout == WEFT_ROWS ? x->f.place->width : rows;
    for (int64_t i = 0; i < rows; i += width)
        print_layout_row(file, r, i, i + width);
}
