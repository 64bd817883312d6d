/* test_ops_layouts.c - every operator of op_cases.h that takes ragged tensors, on the same sequences in
 * concat, packed and rows: the same numbers, and the same gradients, recorded or not. */
#include "op_inputs.h"

/* ---- beside those whose gradients the differences check: what takes ints of a batch, and losses ---- */
F(take_along_ragged, weft_take_along(x[0], weft_argmax(x[0], -1)))
F(index_select_ragged, weft_index_select(x[1], weft_argmax(x[0], -1)))
F(index_add_ragged, weft_index_add(x[0], weft_argmax(x[0], -1), weft_size(x[0], 1)))
F(one_hot_ragged, weft_mul(weft_one_hot(weft_argmax(x[0], -1), weft_size(x[0], 1)), x[0]))
F(greater, weft_mul(weft_greater(weft_tanh(x[0]), x[1]), x[0]))
F(mse, weft_mean_loss(weft_mse(x[0], x[1], NULL)))
F(mse_masked, weft_mean_loss(weft_mse(x[0], x[1], &(weft_loss_opts){ .mask = weft_less(x[0], x[1]) })))
F(argmin_ragged, weft_mul(weft_one_hot(weft_argmin(x[0], -1), weft_size(x[0], 1)), x[0]))
F(to_ints_ragged, weft_mul(weft_to_reals(weft_to_ints(weft_scale(x[0], 3))), x[0]))
static weft_tensor *places(weft_tensor *x)
{
    weft_tensor *at;
    weft_topk(x, 1, 1, NULL, &at);
    return weft_mul(weft_to_reals(at), x);
}
F(topk_indices, places(x[0]))
F(cross_entropy, weft_mean_loss(weft_cross_entropy(x[0], weft_argmax(x[0], -1),
                                                   &(weft_ce_opts){ .smoothing = (weft_real).1 })))
F(mean_plain, weft_mean_all(x[0]))
F(detached, weft_mul(weft_detach(x[0]), x[0]))

static const op_case more_cases[] = {
    { "take_along ragged", f_take_along_ragged, { "~na" }, -2, 2, 1 },
    { "index_select ragged", f_index_select_ragged, { "~na", "ab" }, -2, 2, 1 },
    { "index_add ragged", f_index_add_ragged, { "~na" }, -2, 2, 1 },
    { "one_hot ragged", f_one_hot_ragged, { "~na" }, -2, 2, 1 },
    { "argmin ragged", f_argmin_ragged, { "~na" }, -2, 2, 1 },
    { "to_ints ragged", f_to_ints_ragged, { "~na" }, -2, 2, 1 },
    { "topk indices", f_topk_indices, { "~na" }, -2, 2, 1 },
    { "greater", f_greater, { "~na", "~na" }, -2, 2, 1 },
    { "mse", f_mse, { "~na", "~na" }, -2, 2, 1 },
    { "mse masked", f_mse_masked, { "~na", "~na" }, -2, 2, 1 },
    { "cross_entropy", f_cross_entropy, { "~na" }, -2, 2, 1 },
    { "mean_plain", f_mean_plain, { "~na" }, -2, 2, 1 },
    { "detach", f_detached, { "~na" }, -2, 2, 1 },
};

/* ---- one case in one layout ---- */
enum { MOST = 4096 };
/* y, its gradients raw; y again, its gradients recorded: of 4 inputs at most */
typedef struct { int64_t n[6]; weft_real value[6][MOST]; } found;

static weft_tensor *concat_of(weft_tensor *x)
{
    return weft_layout_of(x) == WEFT_PLAIN ? x : weft_to_layout(x, WEFT_CONCAT);
}

static void keep(found *f, int at, weft_tensor *x)
{
    x = concat_of(x);
    f->n[at] = weft_numel(x);
    cr_assert_leq(f->n[at], MOST);
    memcpy(f->value[at], numbers(x), (size_t)f->n[at] * sizeof(weft_real));
}

/* sum y sin(y) sin(1 + k) and of the first input's squares, so that two gradients at least meet in y and
 * in x. */
static weft_tensor *twice_of(weft_tensor *y, weft_tensor *x)
{
    weft *w = weft_context_of(x);
    static weft_real p[MOST];
    for (int64_t k = 0; k < MOST; k++)
        p[k] = (weft_real)sin(1 + (double)k);
    weft_tensor *like = concat_of(y), *probe = weft__tensor(w, &like->f, p);
    return weft_add(weft_sum_all(weft_mul(y, weft_mul(weft_sin(y), probe))), weft_sum_all(weft_square(x)));
}

static void find(weft *w, const op_case *c, int round, weft_layout layout, bool recorded, found *f)
{
    weft_tensor *x[4], *dx[4];
    weft_clear(w);
    w->random.draw = 7;
    dice_seed((uint64_t)round);
    draw_round();
    int n = inputs(w, c, x, layout);
    weft_tensor *y = c->f(x, NULL), *loss = twice_of(y, x[0]);
    cr_assert(weft_ok(w), "%s: %s", c->name, weft_error_message(w));
    keep(f, 0, y);
    (recorded ? weft_gradients_recorded : weft_gradients)(loss, x, n, dx);
    for (int i = 0; i < n; i++)
        keep(f, 1 + i, dx[i]);
    f->n[1 + n] = -1;
}

static bool is_ragged(const op_case *c)
{
    bool any = false;
    for (int i = 0; i < 4 && c->shapes[i]; i++)
        any |= *c->shapes[i] == '~' || *c->shapes[i] == '=';
    return any && strcmp(c->name, "plain");       /* which shows how the rows lie */
}

static void same(const op_case *c, const found *got, const found *want, const char *how)
{
    for (int i = 0; want->n[i] >= 0; i++) {
        const char *what = i ? "gradient" : "value";
        cr_assert_eq(got->n[i], want->n[i], "%s in %s: %lld numbers", c->name, how, (long long)got->n[i]);
        cr_expect(is_close(c->name, got->value[i], want->value[i], want->n[i],
                           i ? TOL(1e-11, 5e-5) : TOL(1e-12, 1e-5)),
                  "in %s: %s %d", how, what, i);
    }
}

static void one_case(weft *w, const op_case *c, int round)
{
    static const struct { weft_layout layout; bool recorded; const char *name;
    } ways[] = { { WEFT_PACKED, false, "packed" },
                 { WEFT_ROWS, false, "rows" },
                 { WEFT_CONCAT, true, "concat, recorded" },
                 { WEFT_PACKED, true, "packed, recorded" },
                 { WEFT_ROWS, true, "rows, recorded" } };
    static found want, got;
    find(w, c, round, WEFT_CONCAT, false, &want);
    for (int i = 0; i < COUNT(ways); i++) {
        find(w, c, round, ways[i].layout, ways[i].recorded, &got);
        same(c, &got, &want, ways[i].name);
    }
}

Test(ops_layouts, the_same_in_concat_packed_and_rows)
{
    FOR_DEVICES(w)
        for (int r = 0; r < rounds(4, 200); r++) {
            for (int i = 0; i < COUNT(op_cases); i++)
                if (is_ragged(&op_cases[i]))
                    one_case(w, &op_cases[i], 1 + i + 1000 * r);
            for (int i = 0; i < COUNT(more_cases); i++)
                one_case(w, &more_cases[i], 500 + i + 1000 * r);
        }
}
