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
#include "speller.h"

enum { UPDATES = 16 };

typedef struct bench {
    speller of; weft_optim *adam;
    words words; int32_t *before, *after;        /* the pronunciations end to end */
    int64_t at, letters_read, phones_read;       /* where the next batch begins */
    row row;
} bench;

typedef struct batch { weft_lengths read, write; const int32_t *letter, *before, *after; } batch;

static weft_tensor *loss_of_batch(const bench *b, const batch *of)
{
    const speller *s = &b->of;
    spelled read = speller_read(s, of->letter, &of->read);
    weft_tensor *said = weft_embedding_run(s->phones, weft_ragged_ints(s->w, of->before, &of->write));
    weft_tensor *y = weft_rnn_run(s->decoder, said, read.first).y;
    weft_tensor *seen = weft_attention_run(s->attention, y, read.memory, WEFT_ALL_KEYS, NULL);
    return weft_mean_loss(weft_cross_entropy(speller_scores(s, y, seen),
                                             weft_ragged_ints(s->w, of->after, &of->write),
                                             &(weft_ce_opts){ .smoothing = (weft_real).05 }));
}

/* The loss of the next batch; after the last the first. */
static weft_tensor *next_loss(void *user)
{
    bench  *b = user;
    int64_t n = b->row.B;
    batch of = { { .n = n, .len = b->words.read + b->at },
                 { .n = n, .len = b->words.write + b->at },
                 b->words.letter + b->letters_read,
                 b->before + b->phones_read,
                 b->after + b->phones_read };
    for (int64_t i = 0; i < n; i++)
        b->letters_read += of.read.len[i], b->phones_read += of.write.len[i];
    b->at += n;
    if (b->at == UPDATES * n)
        b->at = b->letters_read = b->phones_read = 0;
    return loss_of_batch(b, &of);
}

static void updates(void *user, bool train)
{
    bench *b = user;
    for (int k = 0; k < UPDATES; k++) {
        weft_tensor *loss = next_loss(b);
        if (train) {
            weft_backward(loss);
            weft_clip_grad_norm(b->of.all, 2, 0);
            weft_optim_step(b->adam);            /* zeroes the gradients, too */
        }
        weft_clear(b->of.w);
    }
}

/* ---- words ---- */
static void count_work(bench *b, double letters, double phones, double pairs)
{
    row    *r = &b->row;
    int64_t h = r->H, n = UPDATES * r->B;
    for (int k = 0; k < 4; k++)                  /* two layers of two directions */
        add_recurrent(&r->work, letters, 4, k < 2 ? r->I : 2 * h, h, true);
    add_linear(&r->work, 2 * (double)n, 2 * h, h, true);
    add_recurrent(&r->work, phones, 4, r->I, h, true);
    add_linear(&r->work, phones, h, 2 * h, true);                /* q times the weight of the scores */
    add_attention(&r->work, pairs, 2 * h, 2 * h);
    add_linear(&r->work, phones, 3 * h, h, true);
    add_linear(&r->work, phones, h, CLASSES, true);
}

static bool make_phones(bench *b)
{
    const words *w = &b->words;
    b->before = calloc((size_t)w->phones, sizeof *b->before);
    b->after = calloc((size_t)w->phones, sizeof *b->after);
    if (!b->before || !b->after)
        return false;
    for (int64_t i = 0, at = 0; i < w->n; i++)
        for (int32_t t = 0; t < w->write[i]; t++, at++) {
            b->before[at] = t ? b->after[at - 1] : MARK;
            b->after[at] =
                t + 1 < w->write[i] ? 1 + (int32_t)((formula("said", at) + .5) * (CLASSES - 1)) : MARK;
        }
    return true;
}

static bool make_words(bench *b)
{
    double pairs = 0;
    if (!words_new(&b->words, UPDATES * b->row.B, (int32_t)b->row.T, true) || !make_phones(b))
        return false;
    for (int64_t i = 0; i < b->words.n; i++)
        pairs += (double)b->words.read[i] * b->words.write[i];
    b->row.tokens = b->words.letters + b->words.phones;
    count_work(b, (double)b->words.letters, (double)b->words.phones, pairs);
    return true;
}

static bool run(row r, const settings *s)
{
    weft *w = weft_open(&s->open);
    bench b = { .row = r, .of = speller_new(w, r.I, r.H) };
    weft_adam_opts adam = { 0 };
    adam.lr = 0;
    b.adam = weft_adamw_new(b.of.all, &adam);
    bool good = make_words(&b) && set_weights(b.of.all, 2 / sqrt((double)r.H)) &&
                measure_training(&(training){ w, b.of.all, next_loss, UPDATES, updates, &b, b.row }, s);
    weft_close(w);
    words_free(&b.words);
    free(b.before); free(b.after);
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
