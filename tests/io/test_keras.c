/* test_keras.c - tests weights of Keras: a module with the weights of a file gives Keras' outputs.
 * tests/interchange/keras_files.py writes the files. */
#include "checkpoint.h"
#include "examples/cells_steps.h"

enum { N = 2, T = 4, MOST = N * T * 2 };
static const int32_t tokens[N * T] = { 1, 2, 3, 4, 6, 5, 0, 2 };

/* A model of embedding, up to two recurrent layers, norm and linear layer. */
typedef struct {
    weft_module *m;
    weft_embedding *embed;
    weft_rnn *rnn[2];
    weft_norm_layer *norm;
    weft_linear *out;
} net;

static net net_of(weft *w, const char *embed)
{
    net k = { .m = weft_module_new(w, "m") };
    k.embed = weft_embedding_new(k.m, embed, &(weft_embedding_opts){ .rows = 7, .columns = 3 });
    return k;
}

static void end_with(net *k, const char *name, int64_t width, bool bias)
{
    k->out = weft_linear_new(k->m, name, &(weft_linear_opts){ .in = width, .out = 2, .no_bias = !bias });
}

/* Layers with the names of the file if `named`, otherwise with others. */
static net tagger(weft *w, bool named)
{
    net k = net_of(w, named ? "emb" : "embed");
    k.rnn[0] = weft_lstm_new(k.m, named ? "bi" : "encoder",
                             &(weft_rnn_opts){ .input = 3, .hidden = 2, .bidirectional = true });
    k.rnn[1] = weft_gru_new(k.m, named ? "gru" : "decoder", &(weft_rnn_opts){ .input = 4, .hidden = 3 });
    end_with(&k, named ? "out" : "head", 3, true);
    return k;
}

static net stacked(weft *w)
{
    net k = net_of(w, "embed");
    k.rnn[0] = weft_lstm_new(k.m, "rnn", &(weft_rnn_opts){ .input = 3, .hidden = 2, .layers = 2 });
    end_with(&k, "out", 2, true);
    return k;
}

static net reset_before(weft *w, bool own)
{
    net k = net_of(w, "embed");
    weft_rnn_opts o = { .input = 3, .hidden = 3 };
    k.rnn[0] = own ? weft_rnn_of_cell(k.m, "gru", &reset_before_gru_cell, &o) : weft_gru_new(k.m, "gru", &o);
    end_with(&k, "out", 3, true);
    return k;
}

static net plain(weft *w)
{
    net k = net_of(w, "embed");
    k.rnn[0] = weft_elman_new(k.m, "rnn", &(weft_rnn_opts){ .input = 3, .hidden = 2, .no_bias = true });
    k.norm = weft_layer_norm_new(k.m, "norm", &(weft_layer_norm_opts){ .width = 2 });
    end_with(&k, "out", 2, false);
    return k;
}

static void gives(const net *k, const char *name)
{
    weft *w = weft_module_context(k->m);
    double expected[MOST];
    weft_real want[MOST];
    weft__h5 *h;
    DOES(weft__h5_open_file(sample("keras_outputs.h5"), &h));
    weft__h5_read(h, name, &(weft__kind){ WEFT__F64, 3, { N, T, 2 } }, WEFT__F64, expected);
    DOES(weft__h5_end(h));
    for (int i = 0; i < MOST; i++)
        want[i] = (weft_real)expected[i];
    weft_tensor *x = weft_embedding_run(k->embed, weft_ints(w, tokens, WEFT_SHAPE(N, T)));
    for (int i = 0; i < 2 && k->rnn[i]; i++)
        x = weft_rnn_run(k->rnn[i], x, WEFT_ZERO_STATE).y;
    if (k->norm)
        x = weft_layer_norm_run(k->norm, x);
    close_to(name, numbers(weft_linear_run(k->out, x)), want, MOST, 2e-6);
}

FILE_TEST(keras, weights_of_all_forms_give_kerass_outputs)
{
    static const char *const files[] = { "tagger.weights.h5", "tagger.keras", "tagger_of_keras_2.h5",
                                         "tagger_of_keras_3.h5" };
    for (int i = 0; i < COUNT(files); i++)
        for (int named = 0; named < 2; named++) {
            net k = tagger(w, named);
            weft_load_report r;
            DOES(weft_load_weights(sample(files[i]), k.m, NULL, NULL));
            gives(&k, "tagger");
            DOES(weft_load_weights(sample(files[i]), k.m, NULL, &r));
            cr_assert(r.loaded == 15 && !r.missing && !r.extra && !r.other_shape && r.converted == 9,
                      "%s: %d %d\n%s", files[i], r.loaded, r.converted, r.text);
            cr_assert(strstr(r.text, "transposed, gates reordered"), "%s", r.text);
        }
    net two = stacked(w), own = reset_before(w, true), bare = plain(w);
    DOES(weft_load_weights(sample("stacked.weights.h5"), two.m, NULL, NULL));
    gives(&two, "stacked");
    DOES(weft_load_weights(sample("reset_before.weights.h5"), own.m, NULL, NULL));
    gives(&own, "reset_before");
    DOES(weft_load_weights(sample("plain.weights.h5"), bare.m, NULL, NULL));
    gives(&bare, "plain");
    nothing_is_open();
}

FILE_TEST(keras, a_map_file_pairs_layers)
{
    static const char map[] = "emb.* embed.*\nbi.* encoder.*\ngru.* decoder.*\nout.* head.*\n";
    net k = tagger(w, false);
    const char *path = in_folder("map");
    write_bytes(path, map, sizeof map - 1);
    DOES(weft_load_weights(sample("tagger.keras"), k.m, &(weft_weights_opts){ .map = path }, NULL));
    gives(&k, "tagger");
}

FILE_TEST(keras, other_functions_and_models_are_refused)
{
    net gru = reset_before(w, false), two = stacked(w);
    weft_load_report r;
    REFUSES(weft_load_weights(sample("reset_before.weights.h5"), gru.m, NULL, NULL), WEFT_EFORMAT,
            "a layer with the cell gru_reset_before; the module's has gru_reset_after");
    REFUSES(weft_load_weights(sample("reset_before.weights.h5"), gru.m, NULL, &r), WEFT_EFORMAT,
            "gru_reset");
    REFUSES(weft_load_weights(sample("tagger.weights.h5"), two.m, NULL, NULL), WEFT_EFORMAT,
            "bi: weight_hh_l0 [8, 2]                     | embed: weight [7, 3]");
    MESSAGE_HAS("Layers of the file | of the module");
    weft_module *m = weft_module_new(w, "m");
    weft_embedding_new(m, "embed", &(weft_embedding_opts){ .rows = 7, .columns = 3 });
    weft_lstm_new(m, "rnn", &(weft_rnn_opts){ .input = 3, .hidden = 2 });
    weft_linear_new(m, "out", &(weft_linear_opts){ .in = 2, .out = 2 });
    REFUSES(weft_load_weights(sample("relu.keras"), m, NULL, NULL), WEFT_EFORMAT,
            "lstm with relu and sigmoid");
}
