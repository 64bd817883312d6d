/* test_state_dict.c - tests weights of PyTorch. A state dict written by h5py loads, gives PyTorch's outputs
 * and is saved back bit for bit. Anything that is not a plain state dict is refused. state_dict.py writes the
 * fixture. */
#include "sets.h"

static const char *fixture(void) { return golden_path("state_dict.h5"); }

/* ---- PyTorch's model ---- */
typedef struct {
    weft_module *m;
    weft_embedding *embed;
    weft_rnn *encoder, *decoder;
    weft_norm_layer *norm;
    weft_linear *out;
    weft_tensor *mean;
} net;

static net net_new(weft *w)
{
    net k = { .m = weft_module_new(w, "any name") };
    k.embed = weft_embedding_new(k.m, "embed", &(weft_embedding_opts){ .rows = 11, .columns = 3 });
    k.encoder = weft_lstm_new(
        k.m, "encoder", &(weft_rnn_opts){ .input = 3, .hidden = 4, .layers = 2, .bidirectional = true });
    k.norm = weft_layer_norm_new(k.m, "norm", &(weft_layer_norm_opts){ .width = 8 });
    k.decoder = weft_gru_new(k.m, "decoder", &(weft_rnn_opts){ .input = 8, .hidden = 5 });
    k.out = weft_linear_new(k.m, "out", &(weft_linear_opts){ .in = 5, .out = 2 });
    k.mean = weft_buffer(k.m, "mean", WEFT_SHAPE(2));
    return k;
}

enum { SEQUENCES = 4, TOKENS = 17 };
typedef struct { int32_t len[SEQUENCES], tokens[TOKENS]; double rows[2 * TOKENS]; } example;

static example example_of(const char *path)      /* the fixture's inputs and PyTorch's outputs */
{
    example e;
    weft__h5 *h;
    DOES(weft__h5_open_file(path, &h));
    weft__h5_read(h, "test/lengths", &(weft__kind){ WEFT__I32, 1, { SEQUENCES } }, WEFT__I32, e.len);
    weft__h5_read(h, "test/tokens", &(weft__kind){ WEFT__I32, 1, { TOKENS } }, WEFT__I32, e.tokens);
    weft__h5_read(h, "test/rows", &(weft__kind){ WEFT__F64, 2, { TOKENS, 2 } }, WEFT__F64, e.rows);
    DOES(weft__h5_end(h));
    return e;
}

static weft_real *run(const net *k, const example *e)             /* [tokens, 2], sequence by sequence */
{
    weft *w = weft_module_context(k->m);
    weft_tensor *x = weft_embedding_run(
        k->embed, weft_ragged_ints(w, e->tokens, &(weft_lengths){ .n = SEQUENCES, .len = e->len }));
    x = weft_rnn_run(k->encoder, x, WEFT_ZERO_STATE).y;
    x = weft_rnn_run(k->decoder, weft_layer_norm_run(k->norm, x), WEFT_ZERO_STATE).y;
    return numbers(weft_to_layout(weft_sub(weft_linear_run(k->out, x), k->mean), WEFT_CONCAT));
}

TABLE_TEST(state_dict, pytorch_weights_give_pytorch_outputs)
{
    example e = example_of(fixture());
    weft_real want[2 * TOKENS];
    for (int i = 0; i < 2 * TOKENS; i++)
        want[i] = (weft_real)e.rows[i];
    net k = net_new(w);
    weft_load_report r;
    cr_assert(memcmp(run(&k, &e), want, sizeof want), "the first weights must be those of the file");
    DOES(weft_load_weights(fixture(), k.m, NULL, &r));
    cr_assert(r.loaded == 26 && !r.missing && !r.other_shape && r.extra == 4, "%d %d %d %d\n%s", r.loaded,
              r.missing, r.other_shape, r.extra, r.text);
    static const char begins[] =
        "extra num_batches_tracked\nextra test/lengths\nextra test/rows\nextra test/tokens\n";
    cr_assert(!strncmp(r.text, begins, sizeof begins - 1), "%s", r.text);
    close_to("outputs", run(&k, &e), want, 2 * TOKENS, TOL(1e-12, 2e-6));
    REFUSES(weft_load_weights(fixture(), k.m, NULL, NULL), WEFT_EFORMAT,
            "num_batches_tracked is in the file");
}

/* ---- and back, under the same names ---- */
FILE_TEST(state_dict, round_trip_keeps_every_bit)
{
    net k = net_new(w), other = net_new(w);
    weft_load_report r;
    const char *path = in_folder("back.h5"), *name;
    DOES(weft_load_weights(fixture(), k.m, NULL, &r));
    DOES(weft_save_weights(path, k.m));
    DOES(weft_load_weights(path, other.m, NULL, NULL));
    for (int i = 0; i < weft_parameter_count(k.m); i++) {
        weft_tensor *x = weft_parameter_at(k.m, i, &name);
        same_bits(name, numbers(weft_find_parameter(other.m, name)), numbers(x), weft_numel(x));
    }
    nothing_is_open();
}

/* ---- other shapes of files ---- */
typedef struct { weft_module *m; weft_tensor *weight, *bias; } nested;
static nested nested_in(weft *w)
{
    nested k = { .m = weft_module_new(w, "m") };
    weft_module *a = weft_submodule_new(weft_submodule_new(k.m, "a"), "b");
    k.weight = weft_parameter(a, "weight", WEFT_SHAPE(2, 3), (weft_init){ WEFT_INIT_CONSTANT, 7, 0 });
    k.bias = weft_parameter(a, "bias", WEFT_SHAPE(2), (weft_init){ WEFT_INIT_CONSTANT, 7, 0 });
    return k;
}

static const double six[6] = { 1, -2.5, 3, 1e-3, 0, -1e6 };

FILE_TEST(state_dict, names_may_be_flat_or_nested)
{
    nested k = nested_in(w);
    const char *path = in_folder("f");
    for (int i = 0; i < 2; i++) {
        hid_t f = new_file(path);
        put_numbers(f, i ? "a.b.weight" : "a/b/weight", H5T_IEEE_F32LE, 2, 3, six);
        put_numbers(f, i ? "a.b.bias" : "a/b/bias", H5T_IEEE_F64LE, 2, 0, six);
        H5Fclose(f);
        weft_assign_values(k.weight, (weft_real[6]){ 0 }, 6);
        DOES(weft_load_weights(path, k.m, NULL, NULL));
        for (int j = 0; j < 6; j++)
            cr_assert_eq(numbers(k.weight)[j], (weft_real)(float)six[j]);
        cr_assert_eq(numbers(k.bias)[1], (weft_real)six[1]);
    }
}

/* torch.nn.RMSNorm has a weight and no bias. */
FILE_TEST(state_dict, rms_norm_has_a_weight_only)
{
    nested k = nested_in(w);
    weft_norm_layer *n = weft_layer_norm_new(k.m, "n", &(weft_layer_norm_opts){ .width = 6, .rms = true });
    const char *path = in_folder("f"), *own = in_folder("own.h5");
    weft_load_report r;
    hid_t f = new_file(path);
    put_numbers(f, "n.weight", H5T_IEEE_F32LE, 6, 0, six);
    put_numbers(f, "a.b.weight", H5T_IEEE_F32LE, 2, 3, six);
    put_numbers(f, "a.b.bias", H5T_IEEE_F64LE, 2, 0, six);
    H5Fclose(f);
    for (int i = 0; i < 2; i++) {
        DOES(weft_load_weights(i ? own : path, k.m, NULL, &r));
        cr_assert(r.loaded == 3 && !r.missing && !r.extra, "%s", r.text);
        weft_real *y = numbers(weft_layer_norm_run(n, weft_full(w, 3, WEFT_SHAPE(6))));
        for (int j = 0; j < 6; j++)
            cr_assert(fabs((double)y[j] - six[j]) <= 1e-6 * fabs(six[j]));
        DOES(weft_save_weights(own, k.m));
    }
}

static void weight_of(hid_t f, hid_t type, int rank, hsize_t n, hsize_t columns)
{
    form it = { .type = type, .rank = rank, .size = { n, columns, 1 } };
    put_set(f, "a.b.weight", &it, H5T_NATIVE_DOUBLE, six);
}
static void other_rank(hid_t f) { weight_of(f, H5T_IEEE_F32LE, 3, 2, 3); }
static void turned(hid_t f)     { weight_of(f, H5T_IEEE_F32LE, 2, 3, 2); }
static void a_group(hid_t f)    { H5Gclose(H5Gcreate2(f, "a.b.weight", 0, 0, 0)); }
static void nothing(hid_t f)    { H5Ldelete(f, "a.b.bias", 0); }
static const struct { const char *name; void (*fill)(hid_t); weft_status kind; const char *part;
} bad[] = {
    { "other_rank", other_rank, WEFT_ESHAPE, "float32 [2, 3, 1]; expected" },
    { "turned", turned, WEFT_ESHAPE, "[3, 2]; expected float" },
    { "a_group", a_group, WEFT_EFORMAT, "is not in the file" },
    { "nothing", nothing, WEFT_EFORMAT, "is not in the file" },
};

FILE_TEST(state_dict, other_files_are_refused)
{
    nested k = nested_in(w);
    const char *path = in_folder("f");
    weft_load_report r;
    for (int i = 0; i < COUNT(bad); i++) {
        hid_t f = new_file(path);
        put_numbers(f, "a.b.bias", H5T_IEEE_F32LE, 2, 0, six);
        bad[i].fill(f);
        H5Fclose(f);
        REFUSES(weft_load_weights(path, k.m, NULL, NULL), bad[i].kind, bad[i].part);
        DOES(weft_load_weights(path, k.m, NULL, &r));
        nothing_is_open();
        same_bits(bad[i].name, numbers(k.weight), ((weft_real[]){ 7, 7, 7, 7, 7, 7 }), 6);
    }
    REFUSES(weft_load_weights(in_folder("nowhere"), k.m, NULL, &r), WEFT_ENOENT, "No such file");
    REFUSES(weft_load_weights(folder, k.m, NULL, &r), WEFT_EFORMAT, "regular");
}

/* ---- no numbers: such a parameter shares its address with the next one, and is not tied to it ---- */
FILE_TEST(state_dict, empty_parameters_are_saved_and_loaded)
{
    const char *path = in_folder("f.h5"), *own = in_folder("own");
    weft_module *m = weft_module_new(w, "m");
    weft_init one = { WEFT_INIT_CONSTANT, 1, 0 };
    weft_parameter(m, "none", WEFT_SHAPE(0, 4), one);
    weft_tensor *some = weft_parameter(m, "some", WEFT_SHAPE(300), one);
    weft_parameter(m, "empty", WEFT_SHAPE(0), one);
    weft_buffer(m, "nothing", WEFT_SHAPE(0, 2));
    weft_buffer(m, "something", WEFT_SHAPE(40));
    weft_tie(m, "again", some);
    weft_load_report r;
    for (int i = 0; i < 3; i++) {
        DOES(weft_save_weights(path, m));
        DOES(weft_save(own, m, NULL, NULL, 0));
        weft_assign_values(some, (weft_real[300]){ 0 }, 300);
        if (i == 0)
            DOES(weft_load_weights(path, m, NULL, NULL));
        else if (i == 1)
            DOES(weft_load_weights(path, m, NULL, &r));
        else
            DOES(weft_load(own, m, NULL, NULL, 0));
        cr_assert_eq(numbers(some)[299], 1);
    }
    cr_assert(r.loaded == 6 && !r.missing && !r.extra && !r.other_shape, "%s", r.text);
    DOES(weft_load_matching(own, m, &r));
    cr_assert(r.loaded == 5 && !r.missing && !r.extra && !r.other_shape, "%s", r.text);
}

/* Returns the processor time in seconds for n parameters, with a state dict that lacks half of the module. */
static double seconds_to_load(int n)
{
    const char *path = in_folder("many"), *dict = in_folder("dict.h5");
    weft *w = open_on(WEFT_CPU);
    weft_module *m = weft_module_new(w, "m"), *half = weft_module_new(w, "half");
    char name[32];
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "p%d", i);
        weft_tensor *x = weft_parameter(m, name, WEFT_SHAPE(1), (weft_init){ WEFT_INIT_ZERO, 0, 0 });
        if (i % 2)
            weft_parameter(half, name, WEFT_SHAPE(1), (weft_init){ WEFT_INIT_ZERO, 0, 0 });
        if (i % 4 == 0)
            snprintf(name, sizeof name, "tied%d", i), weft_tie(m, name, x);
    }
    DOES(weft_save(path, m, NULL, NULL, 0));
    DOES(weft_save_weights(dict, half));
    weft_load_report r;
    double start = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    DOES(weft_load(path, m, NULL, NULL, 0));
    DOES(weft_load_weights(dict, m, NULL, &r));
    double end = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    cr_assert(r.loaded == n / 2 && r.missing == n / 2 + n / 4 && !r.extra, "%d %d", r.loaded, r.missing);
    CLEAN(w);
    return end - start;
}

FILE_TEST(state_dict, loading_takes_linear_time)
{
    enum { FEW = 500, TIMES = 4 };
    double ratio = 1e9;
    for (int i = 0; i < 3 && ratio > 2 * TIMES; i++) {            /* the machine may be busy */
        double few = seconds_to_load(FEW), many = seconds_to_load(TIMES * FEW);
        ratio = many / few < ratio ? many / few : ratio;
    }
    cr_assert(ratio < 2 * TIMES, "%d times the parameters took %.1f times the time", (int)TIMES, ratio);
}

/* ---- tied weights: PyTorch's state dict has them under each name ---- */
FILE_TEST(state_dict, tied_weights_load_under_any_name)
{
    const char *path = in_folder("f.h5"), *one = in_folder("one.h5");
    weft_module *tied = weft_module_new(w, "tied"), *apart = weft_module_new(w, "apart"),
                *single = weft_module_new(w, "single");
    weft_init init = { WEFT_INIT_UNIFORM, 0, 1 };
    weft_tensor *x = weft_parameter(tied, "x", WEFT_SHAPE(4), init);
    weft_tie(tied, "y", x);
    weft_tensor *a = weft_parameter(apart, "x", WEFT_SHAPE(4), init),
                *b = weft_parameter(apart, "y", WEFT_SHAPE(4), init);
    weft_tensor *y = weft_parameter(single, "y", WEFT_SHAPE(4), init);
    DOES(weft_save_weights(path, tied)); /* both names */
    DOES(weft_load_weights(path, apart, NULL, NULL));
    same_bits("x", numbers(a), numbers(x), 4);
    same_bits("y", numbers(b), numbers(x), 4);
    DOES(weft_load_weights(path, tied, NULL, NULL));
    DOES(weft_save_weights(one, single)); /* the second name only */
    DOES(weft_load_weights(one, tied, NULL, NULL));
    same_bits("from y", numbers(x), numbers(y), 4);
    DOES(weft_load_weights(path, single, NULL, &(weft_load_report){ 0 }));
    weft_assign_values(b, (weft_real[]){ 1, 2, 3, 4 }, 4);
    DOES(weft_save_weights(path, apart)); /* two that differ cannot be one */
    REFUSES(weft_load_weights(path, tied, NULL, NULL), WEFT_EFORMAT, "differs");
}
