/* g2p.c - the case g2p: a slice of an epoch of examples/g2p.c, on words made by formula: sixteen updates of
 * 32 words, each zero_grad, forward, loss with smoothed labels, backward, clipping, AdamW.
 *
 * Its rate is 0: all the work of an optimiser, and every update begins with the formula's weights, which is
 * what makes loss (the sum of the updates' mean losses) and norm (of the sum of their gradients) comparable.
 * Words are sorted by length, as the demo's are within its pools, so that a padded batch has few pads. B
 * words an update, T letters at most, I the width of embeddings, H units. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "bench.h"

enum { UPDATES = 16, LETTERS = 26, CLASSES = 40, MARK = 0 };      /* MARK begins and ends a pronunciation */

typedef struct bench {
    weft *w; weft_module *all; weft_optim *adam;
    weft_embedding *letters, *phones; weft_rnn *encoder, *decoder;
    weft_linear *bridge_h, *bridge_c, *combine, *output; weft_general_attention *attention;
    /* lengths of both sides, and their tokens end to end */
    int32_t *read, *write, *letter, *before, *after;
    int64_t words, letters_read, phones_read;    /* where the next batch begins */
    row row;
} bench;

/* ---- the model of examples/g2p_model.c, without dropout ---- */
static void build(bench *b)
{
    weft_module  *m = b->all = weft_module_new(b->w, "g2p");
    int64_t       h = b->row.H, e = b->row.I;
    weft_rnn_opts reads = { .input = e, .hidden = h, .layers = 2, .bidirectional = true },
                  writes = { .input = e, .hidden = h };
    weft_adam_opts adam = { 0 };
    b->letters = weft_embedding_new(m, "letters", &(weft_embedding_opts){ .rows = LETTERS, .columns = e });
    b->phones = weft_embedding_new(m, "phones", &(weft_embedding_opts){ .rows = CLASSES, .columns = e });
    b->encoder = weft_lstm_new(m, "encoder", &reads);
    b->decoder = weft_lstm_new(m, "decoder", &writes);
    b->bridge_h = weft_linear_new(m, "bridge_h", &(weft_linear_opts){ .in = 2 * h, .out = h });
    b->bridge_c = weft_linear_new(m, "bridge_c", &(weft_linear_opts){ .in = 2 * h, .out = h });
    b->attention =
        weft_general_attention_new(m, "attention", &(weft_general_attention_opts){ .dq = h, .dm = 2 * h });
    b->combine = weft_linear_new(m, "combine", &(weft_linear_opts){ .in = 3 * h, .out = h });
    b->output = weft_linear_new(m, "output", &(weft_linear_opts){ .in = h, .out = CLASSES });
    adam.lr = 0;
    b->adam = weft_adamw_new(m, &adam);
}

/* [4, n, H], the encoder's last states -> [1, n, H], from both directions of the top layer. */
static weft_tensor *bridge(const bench *b, weft_linear *l, weft_tensor *last)
{
    weft_tensor *top =
        weft_reshape(weft_transpose(weft_slice(last, 0, -2, 4), 0, 1), WEFT_SHAPE(b->row.B, 2 * b->row.H));
    return weft_reshape(weft_tanh(weft_linear_run(l, top)), WEFT_SHAPE(1, b->row.B, b->row.H));
}

typedef struct batch { weft_lengths read, write; const int32_t *letter, *before, *after; } batch;

static weft_tensor *loss_of_batch(const bench *b, const batch *of)
{
    weft_rnn_out read = weft_rnn_run(
        b->encoder, weft_embedding_run(b->letters, weft_ragged_ints(b->w, of->letter, &of->read)),
        WEFT_ZERO_STATE);
    weft_state   first = { bridge(b, b->bridge_h, read.last.h), bridge(b, b->bridge_c, read.last.c) };
    weft_tensor *said = weft_embedding_run(b->phones, weft_ragged_ints(b->w, of->before, &of->write));
    weft_tensor *y = weft_rnn_run(b->decoder, said, first).y;
    weft_tensor *seen[2] = { y, weft_general_attention_run(b->attention, y, read.y, NULL) };
    weft_tensor *logits =
        weft_linear_run(b->output, weft_tanh(weft_linear_run(b->combine, weft_concat(seen, 2, 1))));
    return weft_mean_loss(weft_cross_entropy(logits, weft_ragged_ints(b->w, of->after, &of->write),
                                             &(weft_ce_opts){ .smoothing = (weft_real).05 }));
}

/* The loss of the next batch; after the last the first. */
static weft_tensor *next_loss(void *user)
{
    bench  *b = user;
    int64_t n = b->row.B;
    batch of = { { .n = n, .len = b->read + b->words },
                 { .n = n, .len = b->write + b->words },
                 b->letter + b->letters_read,
                 b->before + b->phones_read,
                 b->after + b->phones_read };
    for (int64_t i = 0; i < n; i++)
        b->letters_read += of.read.len[i], b->phones_read += of.write.len[i];
    b->words += n;
    if (b->words == UPDATES * n)
        b->words = b->letters_read = b->phones_read = 0;
    return loss_of_batch(b, &of);
}

static void updates(void *user, bool train)
{
    bench *b = user;
    for (int k = 0; k < UPDATES; k++) {
        weft_tensor *loss = next_loss(b);
        if (train) {
            weft_backward(loss);
            weft_clip_grad_norm(b->all, 2, 0);
            weft_optim_step(b->adam);            /* zeroes the gradients, too */
        }
        weft_clear(b->w);
    }
}

/* ---- words ---- */
static int by_length(const void *a, const void *b) { return *(const int32_t *)a - *(const int32_t *)b; }

static void count_work(bench *b, double letters, double phones, double pairs)
{
    row    *r = &b->row;
    int64_t h = r->H, words = UPDATES * r->B;
    for (int k = 0; k < 4; k++)                  /* two layers of two directions */
        add_recurrent(&r->work, letters, 4, k < 2 ? r->I : 2 * h, h, true);
    add_linear(&r->work, 2 * (double)words, 2 * h, h, true);
    add_recurrent(&r->work, phones, 4, r->I, h, true);
    add_linear(&r->work, phones, h, 2 * h, true);                /* q times the weight of the scores */
    add_attention(&r->work, pairs, 2 * h, 2 * h);
    add_linear(&r->work, phones, 3 * h, h, true);
    add_linear(&r->work, phones, h, CLASSES, true);
}

static void make_phones(bench *b)
{
    for (int64_t i = 0, at = 0; i < UPDATES * b->row.B; i++)
        for (int32_t t = 0; t < b->write[i]; t++, at++) {
            b->before[at] = t ? b->after[at - 1] : MARK;
            b->after[at] =
                t + 1 < b->write[i] ? 1 + (int32_t)((formula("said", at) + .5) * (CLASSES - 1)) : MARK;
        }
}

static bool make_words(bench *b)
{
    int64_t words = UPDATES * b->row.B, letters, phones = 0;
    double  pairs = 0;
    b->read = calloc((size_t)words, sizeof *b->read);
    b->write = calloc((size_t)words, sizeof *b->write);
    if (!b->read || !b->write)
        return false;
    letters = make_lengths("uniform", 1, b->read, words, (int32_t)b->row.T);
    qsort(b->read, (size_t)words, sizeof *b->read, by_length);
    for (int64_t i = 0; i < words; i++) {
        int32_t n = b->read[i] - (int32_t)(i % 3);
        phones += b->write[i] = n > 2 ? n : 2;
        pairs += (double)b->read[i] * b->write[i];
    }
    b->letter = calloc((size_t)letters, sizeof *b->letter);
    b->before = calloc((size_t)phones, sizeof *b->before);
    b->after = calloc((size_t)phones, sizeof *b->after);
    if (!b->letter || !b->before || !b->after)
        return false;
    for (int64_t i = 0; i < letters; i++)
        b->letter[i] = (int32_t)((formula("word", i) + .5) * LETTERS);
    make_phones(b);
    b->row.tokens = letters + phones;
    count_work(b, (double)letters, (double)phones, pairs);
    return true;
}

static bool run(row r, const settings *s)
{
    bench b = { .row = r, .w = weft_open(&s->open) };
    build(&b);
    bool good = make_words(&b) && set_weights(b.all, 2 / sqrt((double)r.H)) &&
                measure_training(&(training){ b.w, b.all, next_loss, UPDATES, updates, &b, b.row }, s);
    weft_close(b.w);
    free(b.read); free(b.write); free(b.letter); free(b.before); free(b.after);
    return good;
}

bool bench_g2p(const settings *s)
{
    return measure(run,
                   (row){ .name = "g2p",
                          .lengths = "pooled",
                          .B = 32,
                          .T = 16,
                          .I = 32,
                          .H = 128,
                          .layers = 2,
                          .bidirectional = true },
                   "packed", s);
}
