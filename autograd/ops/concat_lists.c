/* concat_lists.c - concatenates up to four lists of equal length along axis 0 in one launch: parameters of
 * heads, or of parallel networks, for one matrix product. A tensor is copied as a block of one row. */
#include "autograd/op.h"

enum { LISTS = 4 };
static int list_length(const weft_call *c) { return c->n / c->m; }

static bool lists_shape(weft_call *c)
{
    const int n = list_length(c);
    for (int l = 0; l < c->m; l++) {
        weft__form *y = &c->y[l]->f;
        *y = c->x[l * n]->f;
        for (int i = 1; i < n; i++)
            if (!weft__forms_equal(&c->x[l * n + i]->f, &c->x[l * n]->f) || y->batch)
                return weft_op_refuse(c, "expected plain tensors of one shape in each list");
        if (__builtin_mul_overflow(y->size[0], n, &y->size[0]))
            return weft__refuse(c, "%d such tensors: too many elements", n);
    }
    return true;
}
static void lists_run(weft_call *c)
{
    weft__blocks all = { 0 };
    for (int i = 0, n = list_length(c); i < c->n; i++) {
        const int64_t w = weft__elements(&c->x[i]->f);
        weft__add_block(c, &all,
                        (weft__block_copy){ .rows = 1, .width = w, .x = X(c, i), .ldx = w,
                                            .y = Y(c, i / n) + i % n * w, .ldy = w });
    }
    weft__run_blocks(c, &all);
}
static void lists_fused(const weft_call *c)
{
    weft__blocks all = { 0 };
    for (int i = 0, n = list_length(c); i < c->n; i++) {
        bool add;
        const int64_t w = weft__elements(&c->x[i]->f);
        const real *dy = weft_op_dy(c, i / n);
        real *dx = dy ? weft_op_dx(c, i, &add) : NULL;
        if (dx)
            weft__add_block(c, &all,
                            (weft__block_copy){ .rows = 1, .width = w, .x = dy + i % n * w, .ldx = w,
                                                .y = dx, .ldy = w, .add = add });
    }
    weft__run_blocks(c, &all);
}
static void lists_composed(const weft_call *c, weft_tensor **y)
{
    for (int l = 0, n = list_length(c); l < c->m; l++)
        y[l] = weft_concat(c->x + l * n, n, 0);
}

#define RECORD(its_results)                                                                             \
    {                                                                                                   \
        .name = "concat_lists", .results = its_results, .moves = true, .unread = ~0u,                   \
        .shape = lists_shape, .forward = lists_run, .fused = lists_fused, .composed = lists_composed    \
    }
static const weft_op op_lists[LISTS] = { RECORD(1), RECORD(2), RECORD(3), RECORD(4) };

void weft__concat_lists(weft_tensor *const *const *list, int lists, int n, weft_tensor **y)
{
    weft_tensor *one = list[0] ? list[0][0] : NULL;
    weft *w = one ? one->w : weft__no_context();
    weft_tensor **x = one ? weft__take(w, WEFT__ARENA_CALLS, (int64_t)lists * n * (int64_t)sizeof *x) : NULL;
    for (int i = 0; x && i < lists * n; i++)
        x[i] = list[i / n] ? list[i / n][i % n] : NULL;
    weft_tensor **made = x ? weft__apply(&op_lists[lists - 1], x, lists * n, NULL, 0)->y : NULL;
    for (int l = 0; l < lists; l++)
        y[l] = made ? made[l] : &w->nil;
}
