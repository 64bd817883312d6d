/* refused.h - what test_refused.c calls functions with, and how it is told what must fail. */
#ifndef REFUSED_H
#define REFUSED_H
#include <limits.h>
#include "tests/check.h"
#include "core/inside.h"

typedef struct bad {
    weft *w, *other; int kind; weft_tensor *x, *g;  /* g: good */
    weft_module *m; int64_t n; int i; weft_real r;
    const char *name; const weft_lengths *l;
} bad;

static char called[512][40];
static int calls;
static void note(const char *f)
{
    int i = 0;
    while (i < calls && strcmp(called[i], f))
        i++;
    if (i == calls)
        snprintf(called[calls++], sizeof *called, "%s", f);
}

/* x of this kind; a stale one stays so. ECHO is what a function given NULL returned. */
enum { NOTHING, ECHO, STALE, FOREIGN, INERT, GOOD, RAGGED, KINDS };
static weft_tensor *of_kind(int kind, weft *w, weft *other)
{
    static const int32_t len[] = { 2, 0, 1 };
    weft_tensor *x = weft_zeros(w, WEFT_SHAPE(2));
    if (kind == STALE)
        weft_clear(w);
    return kind == NOTHING ? NULL :
           kind == ECHO    ? weft_tanh(NULL) :
           kind == FOREIGN ? weft_zeros(other, WEFT_SHAPE(2)) :
           kind == INERT   ? &w->nil :
           kind == RAGGED  ? weft_ragged(w, NULL, 0, &(weft_lengths){ .n = 3, .len = len }) :
                             x;
}

/* Of x alone, x beside g, x beside g where it may be NULL, x beside NULL: which kinds must fail? */
enum { NOT_AT_ALL, ALONE, BESIDE_GOOD, AT_WILL, BESIDE_NULL };
static bool must_fail(int kind, int how)
{
    switch (how) {
    case ALONE:       return kind == STALE || kind == INERT;
    case BESIDE_GOOD: return kind < GOOD;
    case AT_WILL:     return kind < GOOD && kind != NOTHING;
    case BESIDE_NULL: return kind != NOTHING && kind != ECHO;
    default:          return false;
    }
}

static void renew(bad *b)
{
    b->x = of_kind(b->kind, b->w, b->other);
    b->g = weft_zeros(b->w, WEFT_SHAPE(2));
}

static void after(bad *b, const char *f, int how)
{
    bool told = !weft_ok(b->w) || (b->kind == FOREIGN && !weft_ok(b->other));
    cr_expect(told || !must_fail(b->kind, how), "%s took a tensor that is none: kind %d, way %d", f, b->kind,
              how);
    cr_assert(weft_ok(b->w) || *weft_error_message(b->w), "%s fails without a word", f);
    if (weft_ok(b->w) && weft_ok(b->other))
        return;
    weft_recover(b->w), weft_recover(b->other);  /* which ends x and g, too */
    renew(b);
}

#define CALL(how, f, ...) (note(#f), (void)f(__VA_ARGS__), after(b, #f, how))
#define TRY(f, ...)     CALL(NOT_AT_ALL, f, __VA_ARGS__)          /* no crash */
#define MUST(f, ...)    CALL(ALONE, f, __VA_ARGS__)               /* a bad tensor fails */
#define BESIDE(f, ...)  CALL(BESIDE_GOOD, f, __VA_ARGS__)         /* NULL and what is foreign, too */
#define OPTION(f, ...)  CALL(AT_WILL, f, __VA_ARGS__)             /* but NULL is allowed */
#define WITHOUT(f, ...) CALL(BESIDE_NULL, f, __VA_ARGS__)         /* NULL fails the context of the other */
#define FILE_FAILS(f, ...)                                                                        \
    do {                                                                                          \
        note(#f);                                                                                 \
        cr_assert(f(__VA_ARGS__) != WEFT_OK && *weft_file_message(), #f " took what is no good"); \
        after(b, #f, NOT_AT_ALL);                                                                 \
    } while (0)

#define X b->x
#define G b->g
#define Q (weft_tensor *[]){ X, X }
#define FEW (b->i < 0 ? b->i : 2)                 /* no more than Q has */
#define FEWER (b->n < 0 ? b->n : 2)
#define SHAPE b->i, (const int64_t[]){ b->n, b->n, b->n, b->n, b->n, b->n }

static weft_tensor *keeps_quiet(weft_tensor *const *x, void *user) { (void)user; return x[0]; }
static weft_tensor *no_scores(weft_decode_rows *rows, void *user)
{
    (void)rows;
    return user;
}
static bool no_shape(weft_call *c) { return weft_op_refuse(c, "no"); }
#endif
