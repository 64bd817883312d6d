/* growth.c - the case growth: what a training step of an LSTM takes, in time and memory, as one thing about
 * it grows and all else stays: length, sequences, units, vocabulary, features, threads. bench/growth.py makes
 * a table and a picture of it.
 *
 * Features are real numbers and the loss the sum of the outputs; with a vocabulary the tokens come from an
 * embedding of as many rows, and a linear layer and a cross entropy to as many classes follow. Sequences are
 * equally long. Above 4,096 steps the layer is lean. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "bench.h"

typedef struct bench {
    weft *w; weft_module *all;
    weft_embedding *embed; weft_rnn *rnn; weft_linear *out;
    weft_lengths lengths; int32_t *len, *ids;
    weft_tensor *x;
    row row;
} bench;

static weft_tensor *loss_of(void *user)
{
    bench *b = user;
    weft_tensor *ids = weft_to_layout(weft_ragged_ints(b->w, b->ids, &b->lengths), WEFT_PACKED);
    weft_tensor *x = b->embed ? weft_embedding_run(b->embed, ids) : weft_ragged_rows(b->x, ids);
    weft_tensor *y = weft_rnn_run(b->rnn, x, WEFT_ZERO_STATE).y;
    return b->out ? weft_mean_loss(weft_cross_entropy(weft_linear_run(b->out, y), ids, NULL)) :
                    weft_sum_all(y);
}

static bool build(bench *b)
{
    row *r = &b->row;
    b->all = weft_module_new(b->w, "bench");
    const weft_rnn_opts lstm = { .input = r->I, .hidden = r->H, .lean = r->lean };
    const weft_embedding_opts table = { .rows = r->vocabulary, .columns = r->I };
    if (r->vocabulary)
        b->embed = weft_embedding_new(b->all, "embedding", &table);
    b->rnn = weft_lstm_new(b->all, "lstm", &lstm);
    if (r->vocabulary)
        b->out =
            weft_linear_new(b->all, "linear", &(weft_linear_opts){ .in = r->H, .out = r->vocabulary });
    r->tokens = r->B * r->T;
    b->len = calloc((size_t)r->B, sizeof *b->len), b->ids = calloc((size_t)r->tokens, sizeof *b->ids);
    if (!b->len || !b->ids)
        return false;
    for (int64_t s = 0; s < r->B; s++)
        b->len[s] = (int32_t)r->T;
    for (int64_t i = 0; r->vocabulary && i < r->tokens; i++)
        b->ids[i] = (int32_t)((formula("ids", i) + .5) * (double)r->vocabulary);
    b->lengths = (weft_lengths){ .n = r->B, .len = b->len };
    add_recurrent(&r->work, (double)r->tokens, 4, r->I, r->H, r->vocabulary > 0);
    if (r->vocabulary)
        add_linear(&r->work, (double)r->tokens, r->H, r->vocabulary, true);
    else
        b->x = weft_buffer(b->all, "x", WEFT_SHAPE(r->tokens, r->I));
    return r->vocabulary || fill_formula(b->x, "x", 2);
}

static bool run(row r, const settings *s)
{
    bench b = { .row = r, .w = weft_open(&s->open) };
    bool good = build(&b) && set_weights(b.all, 2 / sqrt((double)r.H)) &&
                measure_training(&(training){ b.w, b.all, loss_of, 1, NULL, &b, b.row }, s);
    weft_close(b.w);
    free(b.len), free(b.ids);
    return good;
}

/* ---- what grows ---- */
enum { MOST = 8 };
typedef struct { const char *axis; row usual; int64_t value[MOST]; } growing;
static const growing all[] = {
    { "length", { .B = 64, .I = 32, .H = 32 }, { 16, 64, 256, 1024, 4096, 16384, 65536 } },
    { "sequences", { .T = 64, .I = 32, .H = 32 }, { 1, 4, 16, 64, 256, 1024, 4096 } },
    { "units", { .B = 64, .T = 16 }, { 8, 32, 128, 512, 2048 } },
    { "vocabulary", { .B = 64, .T = 16, .I = 32, .H = 32 }, { 10, 100, 1000, 10000, 100000 } },
    { "features", { .B = 64, .T = 64, .H = 32 }, { 1, 4, 16, 64, 256, 500 } },
    { "threads", { .B = 512, .T = 32, .I = 256, .H = 256 }, { 1, 2 } },
};

static bool point(const growing *g, int64_t value, const settings *s)
{
    settings told = *s;
    row r = g->usual;
    r.name = "growth", r.lengths = "equal", r.layers = 1, r.axis = g->axis;
    switch (g->axis[0] == 'l' ? 'T' : g->axis[0]) {
    case 'T': r.T = value; break;
    case 's': r.B = value; break;
    case 'u': r.I = r.H = value; break;
    case 'v': r.vocabulary = value; break;
    case 'f': r.I = value; break;
    default:  told.open.threads = (int)value, told.peak[1] = s->peak[0] * (double)value; break;
    }
    r.lean = r.T > 4096;
    return measure(run, r, "packed", &told);
}

bool bench_growth(const settings *s)
{
    bool good = true;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int k = 0; k < MOST && all[i].value[k] && !(k == 2 && (s->quick || s->tiny)); k++)
            good &= point(&all[i], all[i].value[k], s);
    return good;
}
