/* test_weights.c - tests weft_load_weights and weft_save_weights: safetensors, names, types, the report.
 * tests/interchange/safetensors_files.py writes the files. */
#include "sets.h"

typedef struct {
    weft_module *m;
    weft_rnn *rnn;
    weft_linear *out;
} net;
static net net_in(weft *w)
{
    net k = { .m = weft_module_new(w, "net") };
    k.rnn = weft_lstm_new(k.m, "rnn", &(weft_rnn_opts){ .input = 3, .hidden = 2 });
    k.out = weft_linear_new(k.m, "out", &(weft_linear_opts){ .in = 2, .out = 2 });
    return k;
}

/* The numbers of safetensors_files.py: (i + start) / 2. */
static void are(const weft_module *m, const char *name, double start, double step)
{
    weft_tensor *x = weft_find_parameter((weft_module *)(uintptr_t)m, name);
    for (int64_t i = 0; i < weft_numel(x); i++)
        cr_assert_eq(numbers(x)[i], (weft_real)(start + step * (double)i), "%s[%d]", name, (int)i);
}

static void has_numbers_of_file(const net *k)
{
    are(k->m, "rnn.weight_ih_l0", 0, .5);
    are(k->m, "rnn.weight_hh_l0", -2.5, .5);
    are(k->m, "rnn.bias_ih_l0", .5, .5);
    are(k->m, "rnn.bias_hh_l0", 1, .5);
    are(k->m, "out.weight", 1.5, .5);
    are(k->m, "out.bias", 4, -11);
}

TABLE_TEST(weights, safetensors_of_all_types_load)
{
    net k = net_in(w);
    weft_load_report r;
    DOES(weft_load_weights(sample("types.safetensors"), k.m, NULL, NULL));
    has_numbers_of_file(&k);
    DOES(weft_load_weights(sample("types.safetensors"), k.m, NULL, &r));
    cr_assert(r.loaded == 6 && !r.missing && !r.extra && r.converted == (sizeof(weft_real) == 4 ? 4 : 5));
    cr_assert(strstr(r.text, "converted rnn.weight_hh_l0: float16\n") &&
                  strstr(r.text, "converted rnn.bias_ih_l0: bfloat16\n") &&
                  strstr(r.text, "converted out.bias: int64\n"),
              "%s", r.text);
}

/* ---- names ---- */
FILE_TEST(weights, prefixes_are_stripped_and_added)
{
    net k = net_in(w);
    weft_load_report r;
    const char *path = sample("prefix.safetensors");
    REFUSES(weft_load_weights(path, k.m, NULL, NULL), WEFT_EFORMAT, "set .strip_prefix to \"module.\"");
    DOES(weft_load_weights(path, k.m, NULL, &r));
    cr_assert(r.loaded == 0 && r.missing == 6 && r.extra == 6);
    DOES(weft_load_weights(path, k.m, &(weft_weights_opts){ .strip_prefix = "module." }, &r));
    cr_assert(r.loaded == 6 && strstr(r.text, " rnn.bias_hh_l0 (from module.rnn.bias_hh_l0)"), "%s", r.text);
    has_numbers_of_file(&k);
    weft_module *outer = weft_module_new(w, "outer"), *inner = weft_submodule_new(outer, "inner");
    weft_linear_new(inner, "out", &(weft_linear_opts){ .in = 2, .out = 2 });
    REFUSES(weft_load_weights(sample("types.safetensors"), outer, NULL, NULL), WEFT_EFORMAT,
            "set .add_prefix to \"inner.\"");
    DOES(weft_load_weights(sample("types.safetensors"), outer,
                           &(weft_weights_opts){ .add_prefix = "inner." }, &r));
    cr_assert(r.loaded == 2 && r.extra == 4, "%s", r.text);
    are(outer, "inner.out.weight", 1.5, .5);
}

FILE_TEST(weights, a_map_file_changes_names)
{
    static const char good[] =
        "# names of the file, names of the module\n\n rnn.bias_hh_l0\tlstm.bias_hh_l0 \r\n"
        "rnn.* lstm.*\nout.* head.*";
    static const struct {
        const char *text, *says;
    } bad[] = {
        { "rnn.* lstm.weight", "line 1: a star ends one name" },
        { "\nrnn", "line 2: found one word" },
        { "a b c", "more than two words" },
        { "nowhere out", "no array has the name nowhere" },
        { "rnn.bias_hh_l0 rnn.bias_ih_l0", "two arrays have the name" },
    };
    weft_module *m = weft_module_new(w, "m");
    weft_lstm_new(m, "lstm", &(weft_rnn_opts){ .input = 3, .hidden = 2 });
    weft_linear_new(m, "head", &(weft_linear_opts){ .in = 2, .out = 2 });
    const char *map = in_folder("map");
    write_bytes(map, good, sizeof good - 1);
    weft_weights_opts o = { .map = map };
    DOES(weft_load_weights(sample("types.safetensors"), m, &o, NULL));
    are(m, "lstm.weight_hh_l0", -2.5, .5);
    for (int i = 0; i < COUNT(bad); i++) {
        write_bytes(map, bad[i].text, strlen(bad[i].text));
        REFUSES(weft_load_weights(sample("types.safetensors"), m, &o, NULL), WEFT_EFORMAT, bad[i].says);
    }
    o.map = in_folder("no map");
    REFUSES(weft_load_weights(sample("types.safetensors"), m, &o, NULL), WEFT_ENOENT, "no map");
}

/* Hugging Face's own bytes, with odd names, a tensor without numbers and one without axes. */
FILE_TEST(weights, safetensors_are_written_as_by_hugging_face)
{
    weft_module *m = weft_module_new(w, "m");
    weft_init one = { WEFT_INIT_CONSTANT, 1, 0 };
    weft_parameter(m, "a \"b\"\\\u00e9", WEFT_SHAPE(0, 4), one);
    weft_parameter(m, "scalar", 0, NULL, one);
    weft_linear_new(m, "out", &(weft_linear_opts){ .in = 2, .out = 2 });
    const char *path = in_folder("a.safetensors"), *h5 = in_folder("b.h5"),
               *again = in_folder("c.safetensors");
    DOES(weft_load_weights(sample("plain.safetensors"), m, NULL, NULL));
    DOES(weft_save_weights(path, m));
    cr_assert(sizeof(weft_real) == 8 || equal_files(path, sample("plain.safetensors")));
    DOES(weft_save_weights(h5, m));
    DOES(weft_load_weights(h5, m, NULL, NULL));
    DOES(weft_save_weights(again, m));
    cr_assert(equal_files(path, again));
    REFUSES(weft_save_weights(in_folder("model.pt"), m), WEFT_EARG, ".safetensors");
}

/* ---- an embedding's padding row: weft gives 0, PyTorch the row ---- */
FILE_TEST(weights, a_padding_row_that_is_not_0_is_reported)
{
    weft_module *m = weft_module_new(w, "m"), *other = weft_module_new(w, "other");
    weft_embedding_new(m, "embed", &(weft_embedding_opts){ .rows = 3, .columns = 2, .has_padding = true });
    weft_embedding_new(other, "embed", &(weft_embedding_opts){ .rows = 3, .columns = 2 });
    const char *path = in_folder("a.h5");
    weft_load_report r;
    DOES(weft_save_weights(path, m));
    DOES(weft_load_weights(path, m, NULL, &r));
    cr_assert_str_eq(r.text, "loaded embed.weight\n");
    DOES(weft_save_weights(path, other));
    DOES(weft_load_weights(path, m, NULL, &r));
    cr_assert(strstr(r.text, "padding embed.weight row 0 is not 0") && r.loaded == 1, "%s", r.text);
}

/* ---- weights inside an ONNX model: recurrent layers are paired by their order ---- */
FILE_TEST(weights, onnx_layers_are_paired_with_those_of_the_module)
{
    weft_module *m = weft_module_new(w, "m");
    weft_lstm_new(m, "rnn", &(weft_rnn_opts){ .input = 2, .hidden = 2 });
    weft_linear_new(m, "out", &(weft_linear_opts){ .in = 2, .out = 3 });
    weft_load_report r;
    DOES(weft_load_weights(sample("export.onnx"), m, NULL, &r));
    cr_assert(r.loaded == 6 && r.missing == 0 && r.extra == 6, "%s", r.text);
    cr_assert(strstr(r.text, "converted rnn.weight_hh_l0") && strstr(r.text, "gates reordered"), "%s",
              r.text);
}

/* ---- an embedding and a linear layer without bias, of one shape, in a file without an order ---- */
FILE_TEST(weights, layers_that_could_be_exchanged_are_refused)
{
    const char *path = in_folder("two.weights.h5");
    hid_t f = new_file(path);
    double numbers[6] = { 1, 2, 3, 4, 5, 6 };
    put_numbers(f, "layers/dense/vars/0", H5T_IEEE_F32LE, 2, 3, numbers);
    put_numbers(f, "layers/embedding/vars/0", H5T_IEEE_F32LE, 3, 2, numbers);
    H5Fclose(f);
    weft_module *m = weft_module_new(w, "m");
    weft_embedding_new(m, "embed", &(weft_embedding_opts){ .rows = 3, .columns = 2 });
    weft_linear_new(m, "out", &(weft_linear_opts){ .in = 2, .out = 3, .no_bias = true });
    REFUSES(weft_load_weights(path, m, NULL, NULL), WEFT_EFORMAT, "a map file (.map) can pair names");
    nothing_is_open();
}
