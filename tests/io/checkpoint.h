/* checkpoint.h - the common parts of the tests of checkpoints: a model with every kind of state. */
#ifndef WEFT_TEST_CHECKPOINT_H
#define WEFT_TEST_CHECKPOINT_H
#include <hdf5.h>
#include "files.h"
#include "tests/state.h"

typedef struct {
    weft *w;
    weft_module *m;
    weft_rnn *lstm;
    weft_linear *out;
    weft_optim *o;
    weft_tensor *carried;
} model;

UNUSED static model model_in(weft *w)
{
    model k = { .w = w, .m = weft_module_new(w, "net") };
    k.lstm = weft_lstm_new(
        k.m, "enc",
        &(weft_rnn_opts){
            .input = 3, .hidden = 5, .layers = 2, .bidirectional = true, .dropout = (weft_real).3 });
    k.out = weft_linear_new(k.m, "out", &(weft_linear_opts){ .in = 10, .out = 2 });
    k.carried = weft_buffer(k.m, "carried", WEFT_SHAPE(2, 3));
    weft_buffer(weft_rnn_module(k.lstm), "none", WEFT_SHAPE(4, 0));
    weft_parameter(k.m, "temperature", 0, NULL, (weft_init){ WEFT_INIT_CONSTANT, 2, 0 });
    weft_tie(k.m, "again", weft_find_parameter(k.m, "out.weight"));
    k.o = weft_adam_new(k.m, NULL);
    OK(w);
    return k;
}

UNUSED static model model_new(uint64_t seed)
{
    return model_in(open_with((weft_opts){ .device = WEFT_CPU, .seed = seed, .threads = 1 }));
}

/* random ragged batches from a stream of the context */
UNUSED static void train(const model *k, int steps)
{
    weft_stream *data = weft_stream_of(k->w, "data");
    for (int i = 0; i < steps; i++) {
        enum { N = 5, LONGEST = 7 };
        int32_t   len[N];
        weft_real x[N * LONGEST * 3], y[N * LONGEST * 2];
        for (int s = 0; s < N; s++)
            len[s] = (int32_t)weft_stream_below(data, LONGEST + 1);
        for (int j = 0; j < COUNT(x); j++)
            x[j] = (weft_real)weft_stream_normal(data);
        for (int j = 0; j < COUNT(y); j++)
            y[j] = (weft_real)weft_stream_uniform(data);
        weft_lengths l = { .n = N, .len = len };
        weft_tensor *h = weft_rnn_run(k->lstm, weft_ragged(k->w, x, 3, &l), WEFT_ZERO_STATE).y;
        weft_loss loss = weft_mse_loss(weft_linear_run(k->out, h), weft_ragged(k->w, y, 2, &l), NULL);
        weft_backward(weft_mean_loss(loss));
        weft_optim_step(k->o);
        weft_clear(k->w);
    }
    OK(k->w);
}

/* A test of both formats: in_format gives paths of the present one. */
static const char *ending;
#define FOR_FORMATS(w)                                                               \
    for (int format = 0; format < 2 && (ending = format ? ".safetensors" : ".h5");   \
         format++)                                                                   \
        FOR_FOLDER (w)
#define FORMAT_TEST(...) WITH_CONTEXTS(FOR_FORMATS, __VA_ARGS__, .disabled = false)
UNUSED static const char *in_format(const char *name)
{
    char file[64];
    snprintf(file, sizeof file, "%s%s", name, ending);
    return in_folder(file);
}

UNUSED static void nothing_is_open(void) { cr_assert_eq(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL), 0); }
UNUSED static uint32_t state_of(const model *k) { return saved_state(k->m, k->o); }
#endif
