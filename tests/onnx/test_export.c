/* test_export.c - tests weft_export_onnx: the bytes of a small model, and errors. tests/interchange/export.py
 * compares the results of larger models with onnxruntime. */
#include "tests/failing_malloc.h"
#include "tests/interchange/tiny.h"
#include "tests/io/files.h"

static const int32_t three[] = { 2, 0, 3 };
static const weft_real numbers_of_x[32] = { .5, -1, .25 };

static weft_tensor *input(weft *w, int64_t width)
{
    return weft_ragged(w, numbers_of_x, width, &(weft_lengths){ .n = 3, .len = three });
}

/* Finds the graph of a model, after ir_version, producer and version. */
static content graph_of(content file)
{
    const size_t version = file.at[9];
    cr_assert(file.n > 12 + version && file.at[8] == 0x1a && file.at[10 + version] == 0x3a);
    return (content){ file.at + 10 + version, file.n - 10 - version };
}

FILE_TEST(onnx_export, writes_the_golden_bytes)
{
    weft_module *m = weft_module_new(w, "net");
    weft_rnn *r = NULL;
    weft_linear *l = NULL;
    weft_tensor *x = input(w, TINY_IN), *y = tiny_run(m, x, &r, &l);
    const weft_onnx_export_opts opts = { &(weft_onnx_input){ x, "x", 0 }, 1, (const char *const[]){ "p" } };
    const char *path = in_folder("tiny.onnx"), *again = in_folder("again.onnx");
    DOES(weft_export_onnx(path, &y, 1, &opts));
    DOES(weft_export_onnx(again, &y, 1, &opts));
    cr_assert(equal_files(path, again));
    content made = read_bytes(path), golden = read_bytes(golden_path("interchange/export.onnx"));
    const content a = graph_of(made), b = graph_of(golden);
    cr_assert(a.n == b.n && !memcmp(a.at, b.at, a.n), "%s is another graph", path);
}

/* An exported RMS norm is imported again and gives the same numbers. */
FILE_TEST(onnx_export, rms_norm_comes_back)
{
    weft_module *m = weft_module_new(w, "net");
    weft_norm_layer *n =
        weft_layer_norm_new(m, "n", &(weft_layer_norm_opts){ .width = 4, .eps = .1, .rms = true });
    weft_tensor *weight = weft_find_parameter(m, "n.weight");
    weft_assign(weight, weft_reals(w, (weft_real[]){ 1, 2, -1, .5 }, WEFT_SHAPE(4)));
    weft_tensor *x = weft_reals(w, numbers_of_x, WEFT_SHAPE(3, 4));
    weft_tensor *y = weft_rms_norm(weft_layer_norm_run(n, x), NULL, 0), *again;
    const weft_onnx_export_opts opts = { &(weft_onnx_input){ x, "x", 0 }, 1, NULL };
    const char *path = in_folder("rms.onnx");
    DOES(weft_export_onnx(path, &y, 1, &opts));
    cr_assert(weft_onnx_run(weft_import_onnx(path, w, NULL), &x, 1, &again, 1), "%s", weft_error_message(w));
    close_to("imported", numbers(again), numbers(y), 12, TOL(1e-6, 1e-6)); /* a file has floats */
}

/* ---- refused operators ---- */
static bool own_shape(weft_call *c) { return weft_op_like(c->y[0], c->x[0]), true; }
static void own_run(weft_call *c)
{
    memcpy(weft_op_data(c->y[0]), weft_op_data(c->x[0]), (size_t)weft_numel(c->x[0]) * sizeof(weft_real));
}
static const weft_op own = { .name = "scale", .shape = own_shape, .forward = own_run };
static weft_state own_step(const weft_cell_input *in, void *user)
{
    (void)user;
    return (weft_state){ weft_tanh(weft_add(in->x, in->h)), NULL };
}

FILE_TEST(onnx_export, names_every_operator_without_a_translation)
{
    weft_module *m = weft_module_new(w, "net");
    weft_rnn *mgu = weft_mgu_new(m, "mgu", &(weft_rnn_opts){ .input = 4, .hidden = 4 });
    weft_rnn *proj = weft_lstm_new(m, "proj", &(weft_rnn_opts){ .input = 4, .hidden = 4, .proj = 2 });
    weft_tensor *x = weft_exp(input(w, 4));
    x = weft_op_apply(&own, (weft_tensor *[]){ weft_rnn_run(mgu, x, WEFT_ZERO_STATE).y }, 1, NULL, 0);
    weft_tensor *y = weft_rnn_run(proj, weft_op_apply(&own, &x, 1, NULL, 0), WEFT_ZERO_STATE).y;
    const char *path = in_folder("none.onnx");
    REFUSES(weft_export_onnx(path, &y, 1, NULL), WEFT_EARG, "mgu (entry %2)");
    MESSAGE_HAS("scale (entry %5): an operator of the program");
    cr_assert_null(strstr(strstr(weft_file_message(), "scale") + 1, "scale"));
    y = weft_rnn_run(proj, input(w, 4), WEFT_ZERO_STATE).y;
    REFUSES(weft_export_onnx(path, &y, 1, NULL), WEFT_EARG, "a projection");
    cr_assert_eq(files_in_folder(), 0);
}

FILE_TEST(onnx_export, refuses_dropout_and_cells_of_the_program)
{
    static const weft_cell cell = { .name = "own", .gates = 1, .states = 1, .step = own_step };
    weft_module *m = weft_module_new(w, "net");
    weft_rnn *r = weft_rnn_of_cell(m, "own", &cell, &(weft_rnn_opts){ .input = 4, .hidden = 4 });
    weft_set_training(w, true);
    weft_tensor *y = weft_dropout(weft_tanh(input(w, 4)), .5, "d", false);
    REFUSES(weft_export_onnx(in_folder("none.onnx"), &y, 1, NULL), WEFT_EARG, "WEFT_EVAL");
    y = weft_rnn_run(r, input(w, 4), WEFT_ZERO_STATE).y;
    REFUSES(weft_export_onnx(in_folder("none.onnx"), &y, 1, NULL), WEFT_EARG,
            "same (entry %7): a recurrent layer that runs step by step");
}

FILE_TEST(onnx_export, refuses_ambiguous_axes_and_indices)
{
    weft_tensor *x = input(w, 4), *given = weft_reals(w, numbers_of_x, WEFT_SHAPE(3, 3));
    weft_tensor *y = weft_tanh(weft_broadcast_to_tokens(given, x)),
                *z[] = { y, weft_exp(weft_add(given, given)) };
    const char *path = in_folder("none.onnx");
    DOES(weft_export_onnx(path, &y, 1, NULL)); /* the broadcast says which axis it is */
    given = weft_reals(w, numbers_of_x, WEFT_SHAPE(3, 3));
    z[1] = weft_exp(given);
    REFUSES(weft_export_onnx(path, z, 2, NULL), WEFT_EARG, "several axes");
    weft_onnx_export_opts opts = { &(weft_onnx_input){ given, "g", 1 }, 1, NULL };
    DOES(weft_export_onnx(path, z, 2, &opts));
    opts.output_names = (const char *const[]){ "g", "h" };
    REFUSES(weft_export_onnx(path, z, 2, &opts), WEFT_EARG, "\"g\"");
    y = weft_exp(weft_index_select(weft_plain(x), weft_ints(w, three, WEFT_SHAPE(2))));
    REFUSES(weft_export_onnx(path, &y, 1, NULL), WEFT_EARG, "index_select");
}

FILE_TEST(onnx_export, refuses_bad_arguments)
{
    const char *path = in_folder("none.onnx");
    weft_tensor *x = input(w, 4), *y = x;
    REFUSES(weft_export_onnx(path, &y, 1, NULL), WEFT_EARG, "nothing is recorded");
    weft_tensor *made = weft_tanh(x), *off;
    REFUSES(weft_export_onnx(path, &y, 1, NULL), WEFT_EARG, "not on the tape");
    REFUSES(weft_export_onnx(path, NULL, 1, NULL), WEFT_EARG, "expected a path");
    REFUSES(weft_export_onnx(NULL, &made, 1, NULL), WEFT_EARG, "expected a path");
    REFUSES(weft_export_onnx("/nowhere/x.onnx", &made, 1, NULL), WEFT_EIO, "cannot be written");
    WEFT_NO_GRAD(w) off = weft_exp(x);
    made = weft_tanh(off);
    REFUSES(weft_export_onnx(path, &made, 1, NULL), WEFT_EARG, "not recorded");
    weft_fail(w, WEFT_EARG, "stopped");
    REFUSES(weft_export_onnx(path, &made, 1, NULL), WEFT_EARG, "stopped");
    weft_recover(w);
}

FILE_TEST(onnx_export, survives_failure_of_each_allocation)
{
    weft_module *m = weft_module_new(w, "net");
    weft_rnn *r = weft_gru_new(m, "gru", &(weft_rnn_opts){ .input = 4, .hidden = 4, .bidirectional = true });
    weft_attention_layer *a =
        weft_attention_new(m, "a", &(weft_attention_layer_opts){ .width = 8, .heads = 2 });
    weft_tensor *x = weft_rnn_run(r, input(w, 4), WEFT_ZERO_STATE).y;
    weft_tensor *y[] = { weft_softmax(weft_attention_run(a, x, x, WEFT_CAUSAL_STRICT, NULL), 0, NULL),
                         weft_pool(x, WEFT_POOL_MEAN) };
    const char *path = in_folder("model.onnx");
    weft_status s;
    FOR_EACH_FAILURE(s, weft_export_onnx(path, y, 2, NULL))
    {
        cr_assert(s == WEFT_ENOMEM && strstr(weft_file_message(), "memory"), "allocation %ld: %s: %s",
                  failing.at, weft_status_name(s), weft_file_message());
        cr_assert_eq(files_in_folder(), 0);
        cr_assert(weft_ok(w));
    }
    DOES(s);
    cr_assert(!COUNTED || failing.at > 100, "only %ld allocations", failing.at - 1);
}
