/* test_import.c - tests the import of ONNX models: golden files of onnx, PyTorch and onnxruntime, parameters,
 * streaming, training, and messages. */
#include "io/weights/weights.h"
#include "models.h"
#include "tests/failing_malloc.h"
#include "nn/api_optim.h"

/* ---- outputs ---- */
static void agrees(weft *w, const golden_case *c)
{
    weft_tensor *x[MOST_VALUES], *y[MOST_VALUES];
    weft_onnx *m = weft_import_onnx(put_bytes("model.onnx", c->model.at, c->model.n), w, NULL);
    cr_assert_not_null(m, "%s: %s", c->name, weft_file_message());
    for (int run = 0; run < 2; run++) { /* weights that are inputs are assigned again */
        for (int i = 0; i < c->inputs; i++)
            x[i] = tensor_of(w, &c->value[i]);
        cr_assert(weft_onnx_run(m, x, c->inputs, y, c->outputs), "%s: %s", c->name, weft_error_message(w));
        for (int i = 0; i < c->outputs; i++) {
            weft_tensor *want = tensor_of(w, &c->value[c->inputs + i]);
            cr_assert_eq(weft_rank(y[i]), weft_rank(want), "%s: output %d", c->name, i);
            for (int k = 0; k < weft_rank(want); k++)
                cr_assert_eq(weft_size(y[i], k), weft_size(want, k), "%s: output %d, axis %d", c->name, i, k);
            close_to(c->name, numbers(y[i]), numbers(want), weft_numel(want), 1e-5);
        }
        weft_clear(w);
    }
}

FILE_TEST(import, agrees_with_the_tests_of_onnx)
{
    int n = 0;
    FOR_CASES(c, "nodes.bin")
    {
        agrees(w, &c);
        n++;
    }
    cr_assert_eq(n, 18 + 5);
}

FILE_TEST(import, agrees_with_onnxruntime_on_models_of_pytorch)
{
    FOR_CASES(c, "models.bin")
    agrees(w, &c);
}

/* ---- models ---- */
static weft_onnx *import_named(weft *w, const char *name)
{
    weft_onnx *m = NULL;
    FOR_CASES(c, "models.bin")
    if (!strcmp(c.name, name))
        m = weft_import_onnx(put_bytes("model.onnx", c.model.at, c.model.n), w, NULL);
    cr_assert_not_null(m, "%s: %s", name, weft_file_message());
    return m;
}

FILE_TEST(import, describes_inputs_and_outputs)
{
    weft_onnx *m = import_named(w, "packed");
    int64_t n;
    const weft_onnx_value *in = weft_onnx_inputs(m, &n);
    cr_assert_eq(n, 2);
    cr_assert(!strcmp(in[0].name, "x") && in[0].type == WEFT_REAL && in[0].rank == 3 && in[0].size[0] == -1 &&
              in[0].size[2] == 2 && !strcmp(in[0].axis[1], "time") && !in[0].axis[2]);
    cr_assert(!strcmp(in[1].name, "lengths") && in[1].type == WEFT_I32 && in[1].rank == 1);
    weft_onnx_outputs(m, &n);
    cr_assert_eq(n, 2);
    cr_assert_null(weft_onnx_inputs(NULL, &n));
    cr_assert_eq(n, 0);
    cr_assert_null(weft_onnx_outputs(NULL, NULL));
    cr_assert_null(weft_onnx_module(NULL));
}

FILE_TEST(import, names_parameters_as_pytorch)
{
    weft_module *m = weft_onnx_module(import_named(w, "tagger_trace"));
    static const char *const names[] = { "embed.weight", "out.bias", "rnn_LSTM.weight_ih_l0",
                                         "rnn_LSTM.bias_hh_l0_reverse", "rnn_LSTM_1.weight_hh_l0" };
    for (int i = 0; i < COUNT(names); i++)
        cr_assert_not_null(weft_find_parameter(m, names[i]), "%s", names[i]);
    cr_assert_eq(weft_parameter_count(m), 2 * 8 + 3);
    cr_assert_eq(weft_size(weft_find_parameter(m, "rnn_LSTM_1.weight_ih_l0"), 1), 4);
}

FILE_TEST(import, finds_a_layer)
{
    weft_onnx *m = import_named(w, "packed");
    weft_rnn *gru = weft_onnx_rnn(m, "/rnn/GRU");
    cr_assert(gru && gru == weft_onnx_rnn(m, "rnn_GRU"));
    cr_assert_null(weft_onnx_rnn(m, "other"));
    cr_assert_null(weft_onnx_rnn(NULL, "rnn_GRU"));
}

FILE_TEST(import, streams_a_layer_token_by_token)
{
    enum { T = 4, IN = 3, H = 2 };
    weft_onnx *m = import_graph(w, "RNN x W R > y; W[1,2,3]=6; R[1,2,2]=4");
    cr_assert_not_null(m, "%s", weft_file_message());
    weft_tensor *x = weft_scale(weft_randn(w, WEFT_SHAPE(T, 1, IN)), .1), *y;
    cr_assert(weft_onnx_run(m, &x, 1, &y, 1), "%s", weft_error_message(w));
    weft_rnn *rnn = weft_onnx_rnn(m, "RNN x W R > y");
    weft_state state = WEFT_ZERO_STATE;
    for (int t = 0; t < T; t++) {
        weft_rnn_out out =
            weft_rnn_step(rnn, weft_reshape(weft_slice(x, 0, t, t + 1), WEFT_SHAPE(1, IN)), state);
        close_to("token", numbers(out.y), numbers(y) + t * H, H, 1e-6);
        state = out.last;
    }
}

static double loss_of(weft *w, weft_onnx *m, bool learn)
{
    weft_tensor *x = weft_ints(w, (int32_t[]){ 1, 2, 3, 4, 5, 6 }, WEFT_SHAPE(2, 3)), *y;
    cr_assert(weft_onnx_run(m, &x, 1, &y, 1), "%s", weft_error_message(w));
    weft_tensor *loss = weft_neg(weft_mean_all(weft_slice(y, 2, 0, 1)));
    if (learn)
        weft_backward(loss);
    return weft_item(loss);
}

FILE_TEST(import, trains_further)
{
    weft_onnx *m = import_named(w, "tagger_dynamo");
    weft_optim *o = weft_adamw_new(weft_onnx_module(m), &(weft_adam_opts){ .lr = .05 });
    double first = loss_of(w, m, false);
    for (int i = 0; i < 20; i++) {
        loss_of(w, m, true);
        for (int k = 0; k < weft_parameter_count(weft_onnx_module(m)) && !i; k++) {
            const char *path;
            weft_tensor *p = weft_parameter_at(weft_onnx_module(m), k, &path);
            cr_assert_gt(weft_item(weft_sum_all(weft_square(weft_grad(p)))), 0, "%s", path);
        }
        weft_optim_step(o);
        weft_clear(w);
    }
    cr_assert_lt(loss_of(w, m, false), first - .5);
}

FILE_TEST(import, lists_the_weights_of_a_file)
{
    import_named(w, "tagger_trace");
    weft__weights *weights;
    DOES(weft__weights_open(in_folder("model.onnx"), NULL, &weights));
    cr_assert(!strcmp(weights->format, "ONNX") && weights->by_layer && weights->n == 2 * 8 + 3);
    weft_module *m = weft_onnx_module(weft_import_onnx(in_folder("model.onnx"), w, NULL));
    for (int64_t i = 0; i < weights->n; i++) {
        const weft__array *a = &weights->array[i];
        int level = strstr(a->name, "_l1") != NULL;
        char path[64] = "";
        if (!strncmp(a->name, "rnn.", 4))
            snprintf(path, sizeof path, "%s.%s", level ? "rnn_LSTM_1" : "rnn_LSTM", a->name + 4);
        char *digit = strstr(path, "_l1");
        if (digit)
            digit[2] = '0';
        weft_tensor *p = weft_find_parameter(m, *path ? path : a->name);
        weft_real read[64];
        if (!p)
            continue; /* "onnx::MatMul_399", whose name is made valid */
        cr_assert(weft_numel(p) <= COUNT(read) &&
                  weft__array_read(weights, a, weft__number_of(WEFT_REAL), read));
        same_bits(a->name, numbers(p), read, weft_numel(p));
    }
    weft__weights_close(weights);
}

/* ---- messages: tests/io/test_hostile.c has those for files ---- */
FILE_TEST(import, refuses_other_inputs_of_a_run)
{
    cr_assert_null(weft_import_onnx(put_text("text", "no model"), w, NULL));
    cr_assert_null(weft_import_onnx(NULL, w, NULL));
    cr_assert_null(weft_import_onnx(in_folder("none"), w, NULL));
    weft_onnx *m = import_graph(w, "Add x b > y; b[2]=2");
    cr_assert_not_null(m, "%s", weft_file_message());
    weft_tensor *x = weft_zeros(w, WEFT_SHAPE(3)), *y = NULL;
    FAILS_AT(w, weft_onnx_run(m, &x, 0, &y, 1), WEFT_EARG, "0 inputs and 1 outputs; the model has 1 and 1");
    x = weft_zeros(w, WEFT_SHAPE(3));
    FAILS_AT(w, weft_onnx_run(m, &x, 1, &y, 1), WEFT_ESHAPE, "node Add x b > y (Add)");
    x = weft_arange(w, 0, 2, 1);
    FAILS_AT(w, weft_onnx_run(m, &x, 1, &y, 1), WEFT_ESHAPE, "the model expects reals");
    x = NULL;
    FAILS_AT(w, weft_onnx_run(m, &x, 1, &y, 1), WEFT_EARG, "input x is NULL");
    x = weft_zeros(w, WEFT_SHAPE(2));
    cr_assert(weft_onnx_run(m, &x, 1, &y, 1));
    cr_assert(numbers(y)[0] == 1 && numbers(y)[1] == 2);
}

/* ---- damage ---- */
FILE_TEST(import, reports_missing_memory, .init = unchecked)
{
    if (!COUNTED)
        return;
    weft_onnx *m = import_named(w, "control_3"), *again;
    weft_tensor *x = weft_randn(w, WEFT_SHAPE(3)), *y;
    FOR_EACH_FAILURE(again, weft_import_onnx(in_folder("model.onnx"), w, NULL))
    {
        cr_assert(failing.seen < failing.at || !again, "allocation %ld", failing.at);
        OK(w);
    }
    bool ran;
    FOR_EACH_FAILURE(ran, weft_onnx_run(m, &x, 1, &y, 1))
    {
        cr_assert(failing.seen < failing.at || !ran, "allocation %ld", failing.at);
        weft_recover(w);
        x = weft_randn(w, WEFT_SHAPE(3));
    }
}

/* Imports and runs a damaged model. Its tensors may take 256 MiB. */
static void try_damaged(weft *w, const golden_case *c)
{
    weft_onnx *m = weft_import_onnx(put_bytes("bad.onnx", c->model.at, c->model.n), w, NULL);
    weft_tensor *x[MOST_VALUES], *y[MOST_VALUES];
    for (int k = 0; m && k < c->inputs; k++)
        x[k] = tensor_of(w, &c->value[k]);
    if (m)
        weft_onnx_run(m, x, c->inputs, y, c->outputs);
    weft_recover(w);
}

static void limit_memory(void) { check_most = 256 << 20; }
Test(import, survives_cut_and_changed_files, .init = limit_memory)
{
    int turn = 0;
    FOR_CASES(c, "models.bin")
        for (int i = 0; i < rounds(10, 400); i++) {
            weft *w = open_on(WEFT_CPU);
            weft_stream *random = weft_stream_of(w, name_with("damage", turn++));
            for (int k = 0; k < 40; k++) {
                size_t at = (size_t)weft_stream_below(random, c.model.n), n = c.model.n;
                unsigned char was = c.model.at[at];
                c.model.at[at] = (unsigned char)weft_stream_below(random, 256);
                c.model.n = k % 4 ? n : at;
                try_damaged(w, &c);
                c.model.n = n;
                c.model.at[at] = was;
            }
            CLEAN(w);
        }
    end_folder();
}
