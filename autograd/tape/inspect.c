/* inspect.c - shows the tape: a callback for every result, and the tape as text. */
#include "autograd/inspect.h"
#include "autograd/op.h"
#include <stdlib.h>
#include <string.h>
#include "core/os.h"

enum { COLUMNS = 100, INDENT = 6, PATH = 64 };

void weft_on_result(weft *w, void (*fn)(const weft_tensor *, const char *, void *), void *user)
{
    struct weft__tape *t = w && !weft__is_no_context(w) ? weft__tape_of(w) : NULL;
    if (t) {
        t->watch = fn;
        t->watch_user = user;
    }
}

/* ---- leaves ---- */
static int64_t inputs_in_all(const weft *w)
{
    int64_t n = 0;
    for (int64_t e = 0; w->tape && e < w->tape->entries; e++)
        n += w->tape->entry[e].call->n;
    return n;
}

/* Returns the slot of x, or the free slot for it. */
static int64_t slot_of(const weft__listing *l, const weft_tensor *x)
{
    uint64_t slot = ((uint64_t)(uintptr_t)x >> 4) * 0x9E3779B97F4A7C15u >> 20;
    int64_t i = (int64_t)(slot & (uint64_t)(l->slots - 1));
    while (l->slot[i] && l->leaf[l->slot[i] - 1] != x)
        i = (i + 1) & (l->slots - 1);
    return i;
}

static void add_leaf(weft__listing *l, const weft_tensor *x, int64_t *given)
{
    int64_t i = slot_of(l, x);
    if (l->slot[i])
        return;
    l->number[l->leaves] = node(x)->path ? -1 : (*given)++;
    l->leaf[l->leaves++] = x, l->slot[i] = l->leaves;
}

bool weft__listing_begin(weft__listing *l, const weft *w)
{
    *l = (weft__listing){ .w = w, .slots = 64 };
    int64_t n = inputs_in_all(w), given = 0;
    while (l->slots < 2 * n)
        l->slots *= 2;
    l->leaf = calloc((size_t)n + 1, sizeof *l->leaf);
    l->number = calloc((size_t)n + 1, sizeof *l->number);
    l->slot = calloc((size_t)l->slots, sizeof *l->slot);
    if (!l->leaf || !l->number || !l->slot)
        return false;
    for (int64_t e = 0; w->tape && e < w->tape->entries; e++) {
        const weft_call *c = w->tape->entry[e].call;
        for (int i = 0; i < c->n; i++)
            if (!node(c->x[i])->entry_number)
                add_leaf(l, c->x[i], &given);
    }
    return true;
}

void weft__listing_end(weft__listing *l)
{
    free(l->leaf);
    free(l->number);
    free(l->slot);
}

int64_t weft__leaf_of(const weft__listing *l, const weft_tensor *x)
{
    return node(x)->entry_number ? -1 : l->slot[slot_of(l, x)] - 1;
}

/* ---- pieces ---- */
static void put_path(FILE *to, const char *path)             /* shortened to its informative end */
{
    size_t n = strlen(path), from = n > PATH ? n - PATH : 0;
    while (from && ((unsigned char)path[from] & 0xC0) == 0x80)
        from++;                                  /* start of a UTF-8 character */
    fprintf(to, "%s%s", from ? ".." : "", path + from);
}

void weft__put_source(FILE *to, const weft__listing *l, const weft_tensor *x)
{
    if (!node(x)->entry_number) {
        if (node(x)->path)
            put_path(to, node(x)->path);
        else
            fprintf(to, "given%lld", (long long)l->number[weft__leaf_of(l, x)]);
        return;
    }
    const weft_call *c = l->w->tape->entry[node(x)->entry_number - 1].call;
    int k = 0;
    while (k + 1 < c->m && c->y[k] != x)
        k++;
    fprintf(to, k ? "%%%lld.%d" : "%%%lld", (long long)node(x)->entry_number - 1, k);
}

bool weft__single_number(const weft_tensor *x, double *value)
{
    real number = 0;
    int32_t n = 0;
    bool ints = x->f.type == WEFT_I32;
    if (x->w->status || weft__elements(&x->f) != 1 ||
        weft__read(x, ints ? (void *)&n : &number, ints ? sizeof n : sizeof number))
        return false;
    *value = ints ? (double)n : (double)number;
    return true;
}

void weft__put_form(FILE *to, const weft_tensor *x)
{
    double value;
    fputs(WEFT__TEXT(&x->f), to);
    if (weft__single_number(x, &value))
        fprintf(to, " = %.4g", value + 0.0);
}

const char *weft__attributes(const weft_call *c, char text[WEFT__ATTRIBUTES])
{
    *text = 0;
    if (c->op->describe) {
        weft *w = c->y[0]->w;
        weft__callback outer = weft__op_callback_begin(w, c, "the describe function of");
        c->op->describe(c, text, WEFT__ATTRIBUTES);
        weft__callback_end(w, outer);
    }
    text[WEFT__ATTRIBUTES - 1] = 0;
    return text;
}

void weft__put_entry(FILE *to, weft__listing *l, int64_t entry)
{
    char text[WEFT__ATTRIBUTES];
    const weft_call *c = l->w->tape->entry[entry].call;
    fprintf(to, "%%%lld = %.64s(", (long long)entry, c->op->name);
    for (int i = 0; i < c->n; i++) {
        fputs(i ? ", " : "", to);
        weft__put_source(to, l, c->x[i]);
        if (weft__leaf_of(l, c->x[i]) != l->named)
            continue;
        fputc(' ', to);
        weft__put_form(to, c->x[i]);
        l->named++;
    }
    if (*weft__attributes(c, text))
        fprintf(to, ", %s", text);
    fputs(") -> ", to);
    weft__put_form(to, c->y[0]);
}

/* ---- the tape ---- */
/* Returns the distance to the next line break: a blank outside brackets, after the first character. */
static size_t word_length(const char *text)
{
    size_t n = 0;
    for (int depth = 0; n < COLUMNS - INDENT && text[n] && (n == 0 || depth > 0 || text[n] != ' '); n++)
        depth += (text[n] == '[') - (text[n] == ']');
    return n;
}

static void print_wrapped(FILE *file, const char *text)
{
    for (size_t column = 0, n; *text; text += n, column += n) {
        n = word_length(text);
        if (column && column + n > COLUMNS) {
            fprintf(file, "\n%*s", INDENT, "");
            column = INDENT;
            if (*text == ' ')
                text++, n--;
        }
        fprintf(file, "%.*s", (int)n, text);
    }
    fputc('\n', file);
}

static bool print_entries(FILE *file, weft__listing *l)      /* false: no memory */
{
    bool ok = true;
    for (int64_t e = 0; ok && l->w->tape && e < l->w->tape->entries; e++) {
        char *text = NULL;
        size_t size = 0;
        FILE *to = open_memstream(&text, &size);
        if (to)
            weft__put_entry(to, l, e);
        ok = to && fclose(to) == 0;
        if (ok)
            print_wrapped(file, text);
        free(text);
    }
    return ok;
}

void weft_print_tape(FILE *file, const weft *w)
{
    weft__listing l;
    if (!file || !w || !w->tape)
        return;
    void *before = weft__plain_locale();
    if (!weft__listing_begin(&l, w) || !print_entries(file, &l))
        fputs("(out of memory)\n", file);
    weft__listing_end(&l);
    weft__plain_locale_end(before);
}
