/* models.c - the cases that are recurrent layers alone, and a small classifier around one, in every layout of
 * their tokens.
 *
 * packed, concat and rows: the tokens come end to end, are arranged to that layout in the step, and stay in
 * it. padded: they come as [B, T, ..], are packed for the layer and padded again behind it, as a program does
 * whose other parts are padded. All of it is timed. Weights, inputs and token ids come from a formula
 * (formula.c). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "bench.h"

static const char LAYOUTS[] = "packed concat rows padded";

typedef struct bench {
    weft *w; weft_module *all;
    weft_embedding *embed; weft_rnn *rnn; weft_linear *out;      /* embed, out: of a classifier only */
    bool classifier, padded;
    weft_lengths lengths; int32_t *len, *ids, *padded_ids, *classes;
    weft_placement rows; int32_t *row_of, *column_of;
    /* [tokens, I] or [B, T, I], on the device from the start, as its peers have it */
    weft_tensor *x;
    row row;
} bench;

/* ---- a step ---- */
static weft_tensor *arranged(const bench *b, weft_tensor *x)
{
    if (!strcmp(b->row.layout, "packed"))
        return weft_to_layout(x, WEFT_PACKED);
    return !strcmp(b->row.layout, "rows") ? weft_to_rows(x, &b->rows) : x;
}

/* Padded to padded, if the case is. */
static weft_tensor *run_layer(const bench *b, weft_tensor *x)
{
    if (!b->padded)
        return weft_rnn_run(b->rnn, x, WEFT_ZERO_STATE).y;
    weft_tensor *packed = weft_pack_padded_sequence(x, &b->lengths, WEFT_ALIGN_LEFT);
    return weft_pad_packed_sequence(weft_rnn_run(b->rnn, packed, WEFT_ZERO_STATE).y, b->row.T, 0,
                                    WEFT_ALIGN_LEFT);
}

static weft_tensor *summed(const bench *b, weft_tensor *scores)
{
    if (!b->padded)
        return weft_pool(scores, WEFT_POOL_SUM);
    weft_tensor *mask = weft_length_mask(b->w, &b->lengths, b->row.T, WEFT_ALIGN_LEFT);
    return weft_sum(weft_mul(scores, weft_reshape(mask, WEFT_SHAPE(b->row.B, b->row.T, 1))), 1);
}

static weft_tensor *classifier_loss(bench *b)
{
    weft_tensor *ids = b->padded ? weft_ints(b->w, b->padded_ids, WEFT_SHAPE(b->row.B, b->row.T)) :
                                   arranged(b, weft_ragged_ints(b->w, b->ids, &b->lengths));
    weft_tensor *scores = weft_linear_run(b->out, run_layer(b, weft_embedding_run(b->embed, ids)));
    weft_tensor *classes = weft_ints(b->w, b->classes, WEFT_SHAPE(b->lengths.n));
    return weft_mean_loss(weft_cross_entropy(summed(b, scores), classes, NULL));
}

static weft_tensor *sum_of_outputs(bench *b)
{
    weft_tensor *x =
        b->padded ? b->x : arranged(b, weft_ragged_like(b->x, weft_ragged_ints(b->w, b->ids, &b->lengths)));
    return weft_sum_all(run_layer(b, x));
}

static weft_tensor *loss_of(void *user)
{
    return (((bench *)user)->classifier ? classifier_loss : sum_of_outputs)(user);
}

/* ---- what it needs ---- */
static void build(bench *b)
{
    const row    *r = &b->row;
    weft_rnn_opts o = {
        .input = r->I, .hidden = r->H, .layers = r->layers, .bidirectional = r->bidirectional
    };
    b->all = weft_module_new(b->w, "bench");
    if (b->classifier)
        b->embed = weft_embedding_new(
            b->all, "embedding", &(weft_embedding_opts){ .rows = 10, .columns = r->I, .has_padding = true });
    b->rnn = !strcmp(r->name, "gru") ? weft_gru_new(b->all, "gru", &o) : weft_lstm_new(b->all, "lstm", &o);
    if (b->classifier)
        b->out = weft_linear_new(b->all, "linear", &(weft_linear_opts){ .in = r->H, .out = 2 });
}

static void count_work(bench *b)
{
    row *r = &b->row;
    int  directions = r->bidirectional ? 2 : 1, gates = !strcmp(r->name, "gru") ? 3 : 4;
    for (int k = 0; k < r->layers; k++)
        for (int d = 0; d < directions; d++)
            add_recurrent(&r->work, (double)r->tokens, gates, k ? directions * r->H : r->I, r->H,
                          k || b->classifier);
    if (b->classifier)
        add_linear(&r->work, (double)r->tokens, r->H, 2, true);
}

/* Tokens are 1 .. 9, classes 0 and 1 in turn; of 0, the padding, there is none. */
static void make_ids(bench *b)
{
    for (int64_t i = 0, at = 0; i < b->row.B; i++) {
        b->classes[i] = (int32_t)(i % 2);
        for (int32_t t = 0; t < b->len[i]; t++, at++)
            b->ids[at] = b->padded_ids[i * b->row.T + t] = 1 + (int32_t)((formula("ids", at) + .5) * 9);
    }
}

static bool make_inputs(bench *b)
{
    const row *r = &b->row;
    if (b->classifier)
        return true;
    b->x = b->padded ? weft_buffer(b->all, "x", WEFT_SHAPE(r->B, r->T, r->I)) :
                       weft_buffer(b->all, "x", WEFT_SHAPE(r->tokens, r->I));
    return b->padded ? fill_padded(b->x, "x", 2, &b->lengths) : fill_formula(b->x, "x", 2);
}

static bool make_data(bench *b)
{
    row   *r = &b->row;
    size_t n = (size_t)r->B;
    b->len = calloc(n, sizeof *b->len);
    b->classes = calloc(n, sizeof *b->classes);
    b->row_of = calloc(n, sizeof *b->row_of);
    b->column_of = calloc(n, sizeof *b->column_of);
    b->padded_ids = calloc(n * (size_t)r->T, sizeof *b->padded_ids);
    r->tokens = b->len ? make_lengths(r->lengths, 1, b->len, r->B, (int32_t)r->T) : 0;
    b->lengths = (weft_lengths){ .n = r->B, .len = b->len };
    b->ids = calloc((size_t)r->tokens, sizeof *b->ids);
    if (!b->len || !b->classes || !b->row_of || !b->column_of || !b->padded_ids || !b->ids)
        return false;
    make_ids(b);
    b->rows = (weft_placement){ .width = r->T, .row = b->row_of, .column = b->column_of };
    count_work(b);
    return weft_first_fit(&b->lengths, r->T, b->row_of, b->column_of, &b->rows.rows) == WEFT_OK &&
           make_inputs(b);
}

static bool run(row r, const settings *s)
{
    bench b = { .row = r,
                .classifier = !strcmp(r.name, "net"),
                .padded = !strcmp(r.layout, "padded"),
                .w = weft_open(&s->open) };
    build(&b);
    bool good = make_data(&b) && set_weights(b.all, 2 / sqrt((double)b.row.H)) &&
                measure_training(&(training){ b.w, b.all, loss_of, 1, NULL, &b, b.row }, s);
    weft_close(b.w);
    free(b.len); free(b.ids); free(b.padded_ids); free(b.classes); free(b.row_of); free(b.column_of);
    return good;
}

/* ---- the cases ---- */
bool bench_net(const settings *s)
{
    static const int64_t all[] = { 32, 64, 128, 256, 512 }, quick[] = { 64, 256 };
    bool good = true;
    for (int i = 0; i < (s->quick ? 2 : 5); i++)
        good &= measure(run,
                        (row){ .name = "net",
                               .lengths = "triangle",
                               .B = 512,
                               .T = (s->quick ? quick : all)[i],
                               .I = 16,
                               .H = 32,
                               .layers = 1 },
                        LAYOUTS, s);
    return good;
}

static bool layer(const char *name, const char *lengths, int64_t H, int64_t B, int64_t T, bool two,
                  const settings *s)
{
    return measure(run,
                   (row){ .name = name,
                          .lengths = lengths,
                          .B = B,
                          .T = T,
                          .I = H,
                          .H = H,
                          .layers = two ? 2 : 1,
                          .bidirectional = two },
                   LAYOUTS, s);
}

static bool layers_alone(const char *name, const settings *s)
{
    static const int64_t cpu[][3] = {
        { 128, 64, 128 }, { 256, 64, 128 }, { 512, 64, 128 }, { 128, 8, 256 }, { 1024, 64, 64 }
    };
    static const int64_t gpu[][3] = { { 128, 64, 512 }, { 256, 64, 512 }, { 32, 64, 512 },
                                      { 64, 64, 512 },  { 512, 64, 512 }, { 1024, 64, 512 } };
    bool on_gpu = s->open.device == WEFT_CUDA, good = true;
    for (int i = 0; i < (s->quick ? on_gpu ? 2 : 3 : on_gpu ? 6 : 5); i++) {
        const int64_t *shape = on_gpu ? gpu[i] : cpu[i];
        good &= layer(name, "uniform", shape[0], shape[1], shape[2], false, s);
    }
    return good;
}

bool bench_lstm(const settings *s) { return layers_alone("lstm", s); }
bool bench_gru(const settings *s) { return layers_alone("gru", s); }
bool bench_bilstm(const settings *s) { return layer("bilstm", "uniform", 256, 64, 128, true, s); }

/* The same number of tokens in ever longer sequences, and a single one whose like no GPU's memory was made
 * for. */
bool bench_long(const settings *s)
{
    static const int64_t tokens = 1 << 18, all[] = { 32, 4096, 128, 512, 2048 };
    bool good = true;
    for (int64_t H = 32; H <= (s->quick ? 32 : 128); H *= 4)
        for (int i = 0; i < (s->quick ? 2 : 5); i++)
            good &= layer("long", "equal", H, tokens / all[i], all[i], false, s);
    return good & (s->quick || layer("long", "equal", 128, 1, 70000, false, s));
}

/* From what this prints with each WEFT_RECUR (see conventions.md) the table of choices is made. */
bool bench_sweep(const settings *s)
{
    static const int64_t units[] = { 32, 64, 128, 256, 512 },
                         sequences[] = { 1, 8, 32, 64, 128, 256, 512, 1024 };
    bool good = true;
    for (int h = 0; h < (s->quick ? 1 : 5); h++)
        for (int b = 0; b < (s->quick ? 2 : 8); b++)
            good &= layer("sweep", "equal", units[h], sequences[b], 128, false, s);
    return good;
}

/* T such that a training step needs no more than some 4 GF, but 4 .. 128. */
bool bench_never_slower(const settings *s)
{
    static const int64_t units[] = { 32, 128, 1024, 16, 100, 256, 512 }, sequences[] = { 1, 64, 8, 512 };
    bool good = true;
    for (int h = 0; h < (s->quick ? 3 : 7); h++)
        for (int b = 0; b < (s->quick ? 2 : 4); b++) {
            int64_t T = ((int64_t)1 << 32) / (48 * units[h] * units[h] * sequences[b]);
            good &= layer("never_slower", "uniform", units[h], sequences[b],
                          T < 4   ? 4 :
                          T > 128 ? 128 :
                                    T,
                          false, s);
        }
    return good;
}
