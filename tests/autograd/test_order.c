/* test_order.c - tests the order of summation of a gradient when an input has several uses. It must not
 * depend on the layout or on the other sequences in the batch. */
#include "rnn/forecast/blocks/blocks.h"
#include "tests/check.h"

enum { N = 3, F = 6, LONGEST = 7 };
static const int32_t len[N] = { 4, 0, LONGEST };
static const int64_t tokens = 11;

/* ---- a program's operator with a fused backward: (a - 1/3) b; a and b may be the same tensor ---- */
static void forward(weft_call *c)
{
    const weft_real *a = weft_op_data(c->x[0]), *b = weft_op_data(c->x[1]);
    weft_real *y = weft_op_data(c->y[0]);
    for (int64_t i = 0; i < weft_numel(c->y[0]); i++)
        y[i] = (a[i] - (weft_real)1 / 3) * b[i];
}
static void fused(const weft_call *c)            /* adds by a fused multiply-add */
{
    const weft_real *dy = weft_op_dy(c, 0), *x[] = { weft_op_data(c->x[0]), weft_op_data(c->x[1]) };
    for (int i = 0; i < 2; i++) {
        bool add, again;
        weft_real *dx = weft_op_dx(c, i, &add);
        for (int64_t k = 0; dx && k < weft_numel(c->x[i]); k++) {
            weft_real other = i ? x[0][k] - (weft_real)1 / 3 : x[1][k];
            dx[k] = add ? (weft_real)fma((double)dy[k], (double)other, (double)dx[k]) : dy[k] * other;
        }
        cr_assert_eq(weft_op_dx(c, i, &again), dx);
        cr_assert(!dx || again, "a gradient with one contribution is already set");
    }
}
static void composed(const weft_call *c, weft_tensor **y)
{
    y[0] = weft_mul(weft_sub(c->x[0], weft_scalar(weft_context_of(c->x[0]), (weft_real)1 / 3)), c->x[1]);
}
static const weft_op op_users = {
    .name = "users", .shape = like_first, .forward = forward, .fused = fused, .composed = composed
};

/* ---- functions that use x several times ---- */
static weft_tensor *users(weft_module *m, weft_tensor *x)
{
    return (void)m, weft_mul(weft_op_apply(&op_users, (weft_tensor *[]){ x, x }, 2, NULL, 0), x);
}
static weft_tensor *general(weft_module *m, weft_tensor *x)
{
    return weft_attention_run(
        weft_attention_new(m, "a", &(weft_attention_layer_opts){ .kind = WEFT_GENERAL, .dq = F, .dm = F }), x,
        x, WEFT_ALL_KEYS, NULL);
}
static weft_tensor *itself(weft_module *m, weft_tensor *x)
{
    return (void)m,
           weft_mul(weft_attention(x, x, x, &(weft_attention_opts){ .heads = 2 }, NULL), weft_tanh(x));
}
static weft_tensor *with_map(weft_module *m, weft_tensor *x)
{
    weft_tensor *map, *y = weft_attention(x, x, x, &(weft_attention_opts){ .heads = 2 }, &map);
    weft_tensor *of_queries =
        weft_ragged_like(weft_pool(weft_square(map), WEFT_POOL_SUM), weft_to_layout(x, WEFT_CONCAT));
    return (void)m, weft_concat((weft_tensor *[]){ weft_mul(y, x), of_queries }, 2, 1);
}
static weft_tensor *both_ways(weft_module *m, weft_tensor *x)
{
    weft_rnn *r = weft_lstm_new(m, "r", &(weft_rnn_opts){ .input = F, .hidden = 5, .bidirectional = true });
    return weft_concat((weft_tensor *[]){ weft_rnn_run(r, x, WEFT_ZERO_STATE).y, weft_square(x) }, 2, 1);
}
static weft_tensor *composed_gru(weft_module *m, weft_tensor *x)
{
    weft_rnn *r =
        weft_gru_new(m, "r", &(weft_rnn_opts){ .input = F, .hidden = 7, .layers = 2, .bidirectional = true });
    weft_rnn_set_composed(r, true);
    return weft_rnn_run(r, x, WEFT_ZERO_STATE).y;
}
static weft_tensor *arranged(weft_module *m, weft_tensor *x)
{
    weft_tensor *y = weft_to_layout(x, WEFT_PACKED);
    return (void)m, weft_add(weft_mul(weft_sin(y), weft_tanh(y)), weft_mul(x, weft_sigmoid(x)));
}
static weft_tensor *selection(weft_module *m, weft_tensor *x)
{
    const weft__selection_opts o = { .features = F, .d_hidden = 8, .d_model = 5, .dropout = .1 };
    return weft_mul(weft__selection_run(weft__selection_new(m, "v", &o), x, NULL, NULL),
                    weft_slice(x, 1, 0, 1));
}
static const struct function {
    const char *name;
    weft_tensor *(*of)(weft_module *, weft_tensor *);
} functions[] = {
    { "a user's operator", users },     { "general attention", general },
    { "attention to itself", itself },  { "attention and its map", with_map },
    { "an LSTM both ways", both_ways }, { "a composed GRU", composed_gru },
    { "arranged", arranged },           { "variable selection", selection },
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

/* Returns dx [tokens, F] of sequences from .. to - 1 in this layout, each at its own position. */
static void gradient(int table, const struct function *f, weft_layout layout, bool recorded, int from, int to,
                     weft_real *dx)
{
    weft *w = open_table(table);
    weft_real value[11 * F];
    int64_t id[N] = { 0, 1, 2 }, before = from > 0 ? len[0] : 0;
    weft_lengths l = { .n = to - from, .len = len + from, .id = id + from };
    dice_seed(5);
    dice_fill(value, tokens * F, -2, 2);
    weft_tensor *x = weft_ragged(w, value + before * F, F, &l), *d;
    int32_t row[N] = { 0, 1, 1 }, column[N] = { 2, 0, 1 };
    x = layout == WEFT_ROWS ? weft_to_rows(x, &(weft_placement){ 2, 9, row + from, column + from }) :
                              weft_to_layout(x, layout);
    weft_tensor *y = f->of(weft_module_new(w, "m"), x), *loss = weft_sum_all(weft_mul(weft_tanh(y), y));
    weft_set_grad_enabled(w, recorded);
    weft_gradients(loss, &x, 1, &d);
    d = weft_to_layout(d, WEFT_CONCAT);
    OK(w);
    memcpy(dx + before * F, numbers(d), (size_t)weft_numel(d) * sizeof *dx);
    CLEAN(w);
}

static bool is_here(int table, int f)            /* a program's operator reads host memory */
{
    return table_is_here(tables[table].name) &&
           (tables[table].device != WEFT_CUDA || functions[f / 2].of != users);
}
Test(order, layout_and_batch_change_no_bit_of_a_gradient)
{
    for (int t = 0; t < COUNT(tables); t++)
        for (int f = 0; f < 2 * FUNCTIONS; f++) {
            const struct function *of = &functions[f / 2];
            weft_real want[11 * F], got[3][11 * F];
            if (!is_here(t, f))
                continue;
            gradient(t, of, WEFT_CONCAT, f % 2, 0, N, want);
            gradient(t, of, WEFT_PACKED, f % 2, 0, N, got[0]);
            gradient(t, of, WEFT_ROWS, f % 2, 0, N, got[1]);
            for (int s = 0; s < N; s++)
                gradient(t, of, WEFT_PACKED, f % 2, s, s + 1, got[2]);
            for (int i = 0; i < COUNT(got); i++)
                same_in_company(of->name, got[i], want, tokens * F);
        }
}
