/* test_inspect.c - tests the tape as text that a student can follow: names, attributes, sources, shapes. Also
 * tests that a callback can read the results that it observes. */
#include "tests/core/comma.h"

static const char *tape_of(weft *w)
{
    static char text[1 << 16];
    memset(text, 0, sizeof text);
    FILE *f = fmemopen(text, sizeof text, "w");
    weft_print_tape(f, w);
    fclose(f);
    return text;
}

/* one line per entry, however long */
static const char *unwrapped(weft *w)
{
    static char text[1 << 16];
    size_t n = 0;
    for (const char *at = tape_of(w); *at; at++)
        if (strncmp(at, "\n      ", 7))
            text[n++] = *at;
        else
            text[n++] = ' ', at += 6;
    text[n] = 0;
    return text;
}

static void is_tape(weft *w, const char *want)
{
    const char *text = tape_of(w);
    OK(w);
    cr_assert_str_eq(text, want, "\n%s\nexpected:\n%s", text, want);
}

/* ---- whole tapes ---- */
TABLE_TEST(inspect, scalars_show_their_values)
{
    weft_tensor *a = weft_scalar(w, -4), *b = weft_scalar(w, 2.5);
    weft_tensor *y = weft_mul(weft_add(a, b), a);
    weft_neg(weft_scale(weft_mul(y, y), 0.5)), weft_relu(a);
    is_tape(w, "%0 = add(given0 [] = -4, given1 [] = 2.5) -> [] = -1.5\n"
               "%1 = mul(%0, given0) -> [] = 6\n"
               "%2 = mul(%1, %1) -> [] = 36\n"
               "%3 = scale(%2, factor=0.5) -> [] = 18\n"
               "%4 = neg(%3) -> [] = -18\n"
               "%5 = relu(given0) -> [] = 0\n");
}

static weft_tensor *step_of_lstm(weft *w, bool composed)
{
    static const int32_t len[] = { 1, 0, 1 };
    weft_rnn *r = weft_lstm_new(weft_module_new(w, "net"), "lstm",
                                &(weft_rnn_opts){ .input = 3, .hidden = 2, .layers = composed ? 1 : 2,
                                                  .bidirectional = !composed });
    weft_rnn_set_composed(r, composed);
    weft_real x[6] = { 1, 2, 3, 4, 5, 6 };
    return weft_rnn_run(r, weft_ragged(w, x, 3, &(weft_lengths){ .n = 3, .len = len }), WEFT_ZERO_STATE).y;
}

TABLE_TEST(inspect, lstm_step_shows_each_operator)
{
    static const char *const lines[] = {
        "%0 = to_layout(given0 [2, 3] concat) -> [2, 3] packed\n"
        "%1 = view(%0) -> [2, 3] packed\n"
        "%2 = matmul(%1, net.lstm.weight_ih_l0 [8, 3], b transposed) -> [2, 8] packed\n"
        "%3 = add(%2, net.lstm.bias_ih_l0 [8]) -> [2, 8] packed\n"
        "%4 = view(%3) -> [2, 8]\n",
        "%11 = matmul(%8, net.lstm.weight_hh_l0 [8, 2], b transposed) -> [2, 8]\n",
        "%14 = slice(%13, axis=1, from=0, to=2) -> [2, 2]\n"
        "%15 = sigmoid(%14) -> [2, 2]\n",
        "%23 = mul(%17, %9) -> [2, 2]\n"
        "%24 = add(%23, %22) -> [2, 2]\n"
        "%25 = tanh(%24) -> [2, 2]\n"
        "%26 = mul(%21, %25) -> [2, 2]\n%27 =",
    };
    step_of_lstm(w, true);
    const char *text = tape_of(w);
    for (int i = 0; i < COUNT(lines); i++)
        cr_assert(strstr(text, lines[i]), "%s\n%s", lines[i], text);
}

TABLE_TEST(inspect, fused_layer_shows_its_name_and_all_results)
{
    step_of_lstm(w, false);
    const char *text = tape_of(w);
    const bool one = !strcmp(weft_device_name(w), "cuda");    /* one entry for both directions */
    cr_assert(strstr(text, "%1 = lstm(%0, net.lstm.weight_ih_l0 [8, 3], net.lstm.weight_hh_l0 [8, 2], "
                           "net.lstm.bias_ih_l0 [8],\n      net.lstm.bias_hh_l0 [8], "),
              "%s", text);
    cr_assert(strstr(text, one ? "= last_states(%1, %1.3, %3, %3.3, %1.1, %1.4, %3.1, %3.4) -> [4, 3," :
                                 "= last_states(%1, %2, %4, %5, %1.1, %2.1, %4.1, %5.1) -> [4, 3,"),
              "c is its second result: %s", text);
    text = unwrapped(w);
    cr_assert(one || strstr(text, "net.lstm.bias_hh_l0 [8], layer=0) -> [2, 2] packed\n"), "%s", text);
    cr_assert(strstr(text, one ? "net.lstm.bias_hh_l1_reverse [8], layer=1, both directions) -> [2, 2] "
                                 "packed\n" :
                                 "net.lstm.bias_hh_l1_reverse [8], layer=1, reverse) -> [2, 2] packed\n"),
              "%s", text);
}

/* ---- attributes ---- */
static char said[512];
static void last_says(weft *w, const char *part)
{
    const char *text = unwrapped(w), *last = text + strlen(text);
    while (last > text && (*last != '%' || last[-1] != '\n'))
        last--;
    OK(w);
    snprintf(said, sizeof said, "%s", last);
    cr_assert(strstr(said, part), "\"%s\" is not in: %s", part, said);
    weft_clear(w);
}

TABLE_TEST(inspect, operators_show_their_attributes)
{
    weft_real numbers[24] = { 1, 2, 3 };
    int32_t len[] = { 2, 1 };
    weft_lengths l = { .n = 2, .len = len };
#define M weft_reals(w, numbers, WEFT_SHAPE(2, 3))
#define C weft_reals(w, numbers, WEFT_SHAPE(2, 3, 4))
#define R weft_ragged(w, numbers, 4, &l)
#define IDS weft_ragged_ints(w, (int32_t[]){ 0, 1, 1 }, &l)
    weft_slice(M, -1, 1, 3), last_says(w, "slice(given0 [2, 3], axis=1, from=1, to=3) -> [2, 2]");
    weft_scale(M, -.25), last_says(w, "scale(given0 [2, 3], factor=-0.25)");
    weft_leaky_relu(M, .125), last_says(w, "leaky_relu(given0 [2, 3], slope=0.125)");
    weft_elu(M, 2), last_says(w, ", alpha=2)");
    weft_pow(M, 3), last_says(w, ", exponent=3)");
    weft_clamp(M, -1, 2), last_says(w, ", low=-1, high=2)");
    weft_tanh(M), last_says(w, "tanh(given0 [2, 3]) -> [2, 3]");
    weft_dropout(R, .5, "d", true), last_says(w, "dropout(given0 [3, 4] concat, p=0.5, per sequence)");
    weft_sum(C, 1), last_says(w, "sum(given0 [2, 3, 4], axis=1) -> [2, 4]");
    weft_softmax(C, 1, NULL), last_says(w, "softmax(given0 [2, 3, 4], axis=1)");
    weft_log_softmax(C, 2, NULL), last_says(w, ", axis=2)");
    weft_logsumexp(R, 0, NULL), last_says(w, "sumexp(given0 [3, 4] concat, within sequences) -> [2, 4]");
    weft_max(C, 1), last_says(w, "max(given0 [2, 3, 4], axis=1) -> [2, 4]");
    weft_min(C, 1), last_says(w, "min(given0 [2, 3, 4], axis=1)");
    weft_argmax(C, 2), last_says(w, "argmax(given0 [2, 3, 4], axis=2) -> [2, 3] of ints");
    weft_argmin(C, 0), last_says(w, "argmin(given0 [2, 3, 4], axis=0)");
    weft_cumsum(C, 1), last_says(w, "cumsum(given0 [2, 3, 4], axis=1)");
    weft_flip(R, 0), last_says(w, "flip(given0 [3, 4] concat, within sequences)");
    weft_transpose(C, 0, 2), last_says(w, "transpose(given0 [2, 3, 4], axis=0, other=2)");
    weft_permute(C, (int[]){ 2, 0, 1 }), last_says(w, "(given0 [2, 3, 4], axes=2 0 1) -> [4, 2, 3]");
    weft_concat(WEFT_LIST(M, M), 1), last_says(w, "concat(given0 [2, 3], given1 [2, 3], axis=1)");
    weft_stack(WEFT_LIST(M, M), 2), last_says(w, "axis=2) -> [2, 3, 2]");
    weft_matmul_with(M, true, M, false), last_says(w, "[2, 3], a transposed) -> [3, 3]");
    weft_layer_norm(M, NULL, NULL, .5), last_says(w, "layer_norm(given0 [2, 3], eps=0.5)");
    weft_attention(R, R, R, &(weft_attention_opts){ .heads = 2, .causal = WEFT_CAUSAL_STRICT, .scale = 2,
                                                    .dropout = .25, .name = "a" }, NULL);
    last_says(w, "heads=2, scale=2, causal, strict, dropout=0.25) -> [3, 4] concat");
    weft_topk(M, 2, 1, NULL, NULL);
    cr_assert(strstr(tape_of(w), "topk(given0 [2, 3], k=2, axis=1) -> [2, 2] of ints"));
    weft_clear(w);
    weft_loss e =
        weft_cross_entropy(R, IDS, &(weft_cross_entropy_opts){ .label_smoothing = .25, .ignore_index = 2 });
    (void)e;
    const char *text = unwrapped(w);
    cr_assert(strstr(text, "cross_entropy(given0 [3, 4] concat, given1 [3] concat of ints, "
                           "smoothing=0.25, ignore=2) -> [3] concat\n") &&
                  strstr(text, "cross_entropy(given1, the weight of each row, ignore=2) -> [3] concat\n"),
              "%s", text);
    weft_clear(w);
    weft_pad_packed_sequence(R, 0, -1, WEFT_ALIGN_LEFT);
    cr_assert(strstr(tape_of(w), "to_layout(given0 [3, 4] concat, fill=-1)"), "%s", tape_of(w));
    weft_module *m = weft_module_new(w, "m");
    int64_t widths[] = { 3, 4, 2 };
    weft_mlp *mlp = weft_mlp_new(
        m, "mlp", &(weft_mlp_opts){ .layers = 2, .widths = widths, .activation = WEFT_LEAKY_RELU });
    weft_clear(w);
    weft_mlp_run(mlp, M);
    cr_assert(strstr(unwrapped(w), "%0 = linear(given0 [2, 3], m.mlp.0.weight [4, 3], m.mlp.0.bias [4], "
                                   "then leaky_relu, slope=0.01) -> [2, 4]\n"),
              "%s", tape_of(w));
    last_says(w, "%1 = linear(%0, m.mlp.2.weight [2, 4], m.mlp.2.bias [2]) -> [2, 2]");
}

/* ---- a program's operator ---- */
static void zeros(weft_call *c) { memset(weft_op_data(c->y[0]), 0, 2 * sizeof(weft_real)); }
static void says_it(const weft_call *c, char *text, size_t size)
{
    snprintf(text, size, "%s", (const char *)c->attributes);
}

TABLE_TEST(inspect, program_operator_describes_itself)
{
    weft_op mine = { .name = "mine", .shape = like_first, .forward = zeros, .describe = says_it };
    weft_tensor *x = weft_zeros(w, WEFT_SHAPE(2));
    char longer[400];
    memset(longer, 'x', sizeof longer), longer[399] = 0;
    weft_op_apply(&mine, &x, 1, "k=3", 4), last_says(w, "mine(given0 [2], k=3) -> [2]");
    x = weft_zeros(w, WEFT_SHAPE(2));
    weft_op_apply(&mine, &x, 1, longer, sizeof longer), last_says(w, "xxxx) -> [2]");
    x = weft_zeros(w, WEFT_SHAPE(2));
    weft_op_apply(&mine, &x, 1, "", 1), last_says(w, "mine(given0 [2]) -> [2]");
}

/* ---- lines ---- */
CPU_TEST(inspect, lines_have_a_maximum_length)
{
    char name[64], text[300];
    memset(name, 'n', sizeof name), name[60] = 0;
    weft_module *m = weft_module_new(w, name);
    for (int i = 0; i < 2; i++)
        m = weft_submodule_new(m, name);
    weft_init zeros = { WEFT_INIT_ZERO, 0, 0 };
    weft_tensor *p = weft_parameter(m, "\xC3\xA4weight", WEFT_SHAPE(2, 2), zeros), *x[61];
    for (int i = 0; i < 61; i++)
        x[i] = i % 2 ? weft_zeros(w, WEFT_SHAPE(2, 2)) : p;
    weft_tensor *y = weft_concat(x, 61, 0);
    for (int i = 0; i < 61; i++)
        x[i] = weft_zeros(w, WEFT_SHAPE(2, 2));
    weft_concat(x, 61, 0);
    weft_neg(weft_parameter(m, "odd[", WEFT_SHAPE(2), zeros));
    weft_add(weft_sum_all(y), weft_detach(weft_scalar(w, 1.5)));
    OK(w);
    const char *at = unwrapped(w);
    cr_assert(strstr(at, "given90 [2, 2]") && !strstr(at, "given91 [2, 2]") &&
              strstr(at, "(..nnnn") && strstr(at, "n.\xC3\xA4weight"));
    at = tape_of(w);
    for (const char *end; (end = strchr(at, '\n')); at = end + 1) {
        snprintf(text, sizeof text, "%.*s", (int)(end - at), at);
        cr_assert(strlen(text) <= 100 && strlen(text) > 5, "%zu columns: %s", strlen(text), text);
        cr_assert(*text == '%' || !strncmp(text, "      ", 6), "%s", text);
        int depth = 0;
        for (const char *c = text; *c; c++)
            depth += (*c == '[') - (*c == ']');
        cr_assert(depth == 0 || strstr(text, "odd["), "a shape takes two lines: %s", text);
    }
}

CPU_TEST(inspect, works_in_every_locale_and_after_an_error)
{
    weft_exp(weft_scale(weft_scalar(w, 1.5), .5));
    comma_begin();
    const char *text = tape_of(w);
    comma_end();
    cr_assert(strstr(text, "scale(given0 [] = 1.5, factor=0.5) -> [] = 0.75\n"), "%s", text);
    weft_add(weft_zeros(w, WEFT_SHAPE(2)), weft_zeros(w, WEFT_SHAPE(3)));
    text = tape_of(w);
    cr_assert(!weft_ok(w) && strstr(text, "%1 = exp(%0) -> []\n"), "numbers of a failed step: %s", text);
    weft_recover(w);
    cr_assert_str_eq(tape_of(w), "");
}

/* With second derivatives, the tape also contains and prints the entries of the recorded backward. */
TABLE_TEST(inspect, recorded_backward_and_many_entries_are_printed)
{
    weft_tensor *x = weft_scalar(w, 3), *dx;
    weft_gradients_recorded(weft_mul(x, weft_square(x)), WEFT_LIST(x), &dx);
    cr_assert(strstr(tape_of(w), "= square'(given0, %0, %"), "%s", tape_of(w));
    weft_clear(w);
    weft_tensor *sum = weft_scalar(w, 0);
    for (int i = 0; i < 300; i++)
        sum = weft_add(sum, weft_scalar(w, 1));
    const char *text = tape_of(w);
    cr_assert(strstr(text, "%299 = add(%298, given300 [] = 1) -> [] = 300\n"), "%s", text);
}

/* ---- reading in the callback ---- */
typedef struct { int calls; double item, first[8]; int64_t n; char text[64]; bool same; } watched;
static void looks(const weft_tensor *y, const char *name, void *user)
{
    watched *s = user;
    weft_real all[8] = { 0 }, in_order[8] = { 0 };
    s->calls++;
    if (weft_numel(y) > 8 || weft_dtype_of(y) != WEFT_REAL)
        return;
    weft_read(y, all, (size_t)weft_numel(y) * sizeof *all);
    weft_read_sequences(y, in_order, (size_t)weft_numel(y) * sizeof *all);
    s->same = weft_layout_of(y) == WEFT_PACKED || !memcmp(all, in_order, sizeof all);
    cr_assert(s->same, "%s", name);
    for (int i = 0; i < 8; i++)
        s->first[i] = (double)in_order[i];
    s->n = weft_numel(y), s->item = s->n == 1 ? weft_item(y) : s->item;
    FILE *f = fmemopen(s->text, sizeof s->text, "w");
    weft_print(f, y), weft_print_layout(f, y);
    fclose(f);
}

TABLE_TEST(inspect, observed_results_can_be_read)
{
    static const int32_t len[] = { 1, 2 };
    watched s = { 0 };
    weft_tensor *x = weft_ragged(w, (weft_real[]){ 1, 2, 3 }, 0, &(weft_lengths){ .n = 2, .len = len });
    weft_on_result(w, looks, &s);
    weft_tensor *packed = weft_to_layout(x, WEFT_PACKED);
    cr_assert(s.calls == 1 && s.first[0] == 1 && s.first[1] == 2 && s.first[2] == 3,
              "expected the user's order, and no calls for its own operators: %d calls", s.calls);
    cr_assert(strstr(s.text, "[3] packed [2, 1, 3]\npacked: 2 seq"), "%s", s.text);
    weft_item(weft_sum_all(packed));
    cr_assert(s.calls == 2 && s.item == 6);
    weft_on_result(w, NULL, NULL);
    weft_neg(x);
    cr_assert_eq(s.calls, 2);
}

/* Forward and backward have the same bits with and without a callback. */
TABLE_TEST(inspect, reading_observed_results_changes_no_bit)
{
    static const int32_t len[] = { 2, 0, 1 };
    static const weft_real rows[12] = { 1, -2, 3, -4, 5, -6, 7, -8, 9, 1, 2, 3 };
    weft_real g[2][8];
    watched s = { 0 };
    weft_module *m = weft_module_new(w, "m");
    weft_tensor *p = weft_parameter(m, "p", WEFT_SHAPE(4, 2), (weft_init){ WEFT_INIT_UNIFORM, -1, 1 });
    for (int k = 0; k < 2; k++) {
        weft_on_result(w, k ? looks : NULL, &s);
        weft_tensor *x = weft_ragged(w, rows, 4, &(weft_lengths){ .n = 3, .len = len });
        weft_tensor *y = weft_tanh(weft_matmul(weft_to_layout(x, WEFT_PACKED), p));
        weft_tensor *loss = weft_sum_all(weft_mul(weft_flip(y, 0), weft_square(y)));
        int forwards = s.calls;
        weft_zero_grad(m);
        weft_backward(loss);
        cr_assert(!k || s.calls > forwards + 5, "%d calls in backward", s.calls - forwards);
        weft_read(weft_grad(p), g[k], sizeof g[k]);
        OK(w);
        weft_clear(w);
    }
    weft_on_result(w, NULL, NULL);
    same_bits("gradient", g[1], g[0], 8);
}
