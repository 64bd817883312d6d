/* op_cases.h - the operators of op_cases.def as functions and as a table of cases. */
#ifndef WEFT_OP_CASES_H
#define WEFT_OP_CASES_H
#include "tests/check.h"
#include "autograd/api_scan.h"
#include "autograd/api_windows.h"
#include "autograd/op.h"

typedef weft_tensor *function(weft_tensor *const *x, void *user);
typedef struct {
    const char *name;
    function *f;
    const char *all_shapes;
    double low, high;
    int orders;                                  /* 2: second derivatives are checked; 0: no derivatives */
    int variant;                                 /* index into all_shapes */
    char shapes[4][8];                           /* shapes of the variant; "" ends the list */
} op_case;

/* ---- helpers of the expressions ---- */
static weft_tensor *positive(weft_tensor *x) { return weft_greater(x, weft_scalar(weft_context_of(x), 0)); }
/* Returns all tokens in the user's order, without the padding of the layout rows. */
static weft_tensor *tokens_of(weft_tensor *x) { return weft_plain(weft_to_layout(x, WEFT_CONCAT)); }

static weft_tensor *best_of(weft_tensor *x, int64_t k, int axis)
{
    weft_tensor *values;
    weft_topk(x, k, axis, &values, NULL);
    return weft_mul(values, values);
}
static weft_tensor *best_places(weft_tensor *x)
{
    weft_tensor *at;
    weft_topk(x, 1, 1, NULL, &at);
    return weft_mul(weft_to_reals(at), x);
}

/* Uses the same dropout mask in every call. */
static weft_tensor *attend(weft_tensor *const *x, weft_attention_opts o, weft_tensor **map)
{
    if (weft_context_of(x[0])->tape)
        weft_context_of(x[0])->tape->dropouts = NULL;
    return weft_attention(x[0], x[1], x[2], &o, map);
}
static weft_tensor *attend_with_map(weft_tensor *const *x, weft_attention_opts o)
{
    weft_tensor *map, *y = attend(x, o, &map);
    return weft_add(weft_sum_all(weft_square(y)), weft_sum_all(weft_square(map)));
}
#define ATTEND(...)          attend(x, (weft_attention_opts){ __VA_ARGS__ }, NULL)
#define ATTEND_WITH_MAP(...) attend_with_map(x, (weft_attention_opts){ __VA_ARGS__ })
#define DROPPED              .dropout = .4, .name = "case"

/* The logsumexp of an empty set is -inf. This replaces it by 0, which has no derivative. */
static weft_tensor *or_nothing(weft_tensor *y)
{
    weft *w = weft_context_of(y);
    return weft_where(weft_greater(y, weft_scalar(w, -1000)), y, weft_scalar(w, 0));
}
static weft_tensor *one_more(weft_tensor *x)     /* adds a token to each sequence, so that none is empty */
{
    static const int32_t ones[] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    return weft_concat_sequences(x, weft_ragged(weft_context_of(x), (weft_real[64]){ 0 }, weft_size(x, 1),
                                                &(weft_lengths){ .n = weft_lengths_of(x).n, .len = ones }));
}

static weft_tensor *pairs_of(weft_tensor *q, weft_tensor *k)
{
    weft_tensor *a, *b;
    weft_pairs(q, k, &a, &b);
    return weft_tanh(weft_mul(a, weft_square(b)));
}

#define READS(width, dilation, from, every, whole) \
    (&(weft__reads){ width, dilation, from, every, 1, whole, 0 })

static weft_tensor *split_of(weft_tensor *x)
{
    weft_lengths l = weft_lengths_of(x);
    int32_t first[64];
    weft_tensor *a, *b;
    for (int64_t s = 0; s < l.n; s++)
        first[s] = l.len[s] / 2;
    weft_split_sequences(x, &(weft_lengths){ .n = l.n, .len = first }, &a, &b);
    return weft_add(weft_sum_all(weft_square(a)), weft_sum_all(weft_exp(b)));
}

/* n indices, including -1 and repeated ones */
static weft_tensor *ints_of(weft_tensor *like, int64_t n, int64_t below)
{
    int32_t values[256];
    for (int64_t i = 0; i < n; i++)
        values[i] = (int32_t)((i * 7 + 3) % (below + 1)) - 1;
    return weft_ints(weft_context_of(like), values, 1, &n);
}

/* Lengths 1, 4, 7, .. modulo the padded length, one for each row. */
static const weft_lengths *lengths_of(const weft_tensor *x)
{
    static int32_t len[8];
    static weft_lengths l = { .len = len };
    l.n = weft_size(x, 0);
    for (int64_t s = 0; s < l.n; s++)
        len[s] = (int32_t)((s * 3 + 1) % (weft_size(x, 1) + 1));
    return &l;
}

static weft_tensor *through_rows(weft_tensor *x)
{
    weft_lengths l = weft_lengths_of(x);
    int32_t row[64], column[64];
    int64_t rows;
    if (weft_first_fit(&l, 8, row, column, &rows) != WEFT_OK)
        return NULL;
    return weft_square(weft_to_rows(weft_tanh(x), &(weft_placement){ rows, 8, row, column }));
}

#define OP(name, low, high, orders, shapes, ...)                    \
    static weft_tensor *f_##name(weft_tensor *const *x, void *user) \
    {                                                               \
        (void)user;                                                 \
        return __VA_ARGS__;                                         \
    }
#include "op_cases.def"
#undef OP
#define OP(name, low, high, orders, shapes, ...) { #name, f_##name, shapes, low, high, orders, 0, { "" } },
static const op_case operators[] = {
#include "op_cases.def"
};
#undef OP

/* Sets the shapes of a variant of an operator. Returns false if the operator has fewer variants. */
static bool has_variant(op_case *c, int variant)
{
    const char *at = c->all_shapes;
    memset(c->shapes, 0, sizeof c->shapes);
    for (int skip = variant; skip; skip--) {
        at = strchr(at, ',');
        if (!at)
            return false;
        at += 2;
    }
    c->variant = variant;
    sscanf(at, "%7[^ ,] %7[^ ,] %7[^ ,] %7[^ ,]", c->shapes[0], c->shapes[1], c->shapes[2], c->shapes[3]);
    return true;
}
/* Runs the body for each case c. */
#define FOR_CASES(c)                                            \
    for (int case_i = 0; case_i < COUNT(operators); case_i++)   \
        for (op_case c = operators[case_i]; has_variant(&c, c.variant); c.variant++)
#endif
