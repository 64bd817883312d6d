/* decode_model.h - a hand-made model with few sequences, so that tests can enumerate all of them as the
 * reference for decoding. */
#ifndef WEFT_DECODE_MODEL_H
#define WEFT_DECODE_MODEL_H
#include "core/inside.h"
#include "tests/check.h"

/* 1 + 2 + 4 + 8 ended ones, 16 that the limit cuts */
enum { V = 3, END = 2, BEGIN = 1, LIMIT = 4, HYPOTHESES = 31 };

/* A result that is freed at the end of its block. */
#define scoped_decoded __attribute__((cleanup(weft_decoded_free))) weft_decoded

/* ---- the model ---- */
/* Logits are a function of (sequence, all tokens before), which the state carries as a number. */
UNUSED static void logits_of(int sequence, int prefix, double *out)
{
    for (int j = 0; j < V; j++) {
        uint64_t z = (uint64_t)(sequence * 1000003 + prefix * 101 + j + 1) * 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 31)) * 0xbf58476d1ce4e5b9u;
        out[j] = 4 * (double)((z ^ (z >> 29)) >> 40) / (1 << 24);
    }
    out[END] -= .7;
}

UNUSED static double log_p(int sequence, int prefix, int token)
{
    double x[V], sum = 0;
    logits_of(sequence, prefix, x);
    for (int j = 0; j < V; j++)
        sum += exp(x[j]);
    return x[token] - log(sum);
}

UNUSED static int append(int prefix, int token) { return prefix * (V + 1) + token + 1; }

/* read: tokens of prompts, which may be END */
typedef struct {
    int step, read;
    bool searching;
    int prefix[600], sequence[600];
} model_user;

/* Checks that the arguments of a step agree, and that `prefix` moves from parent to child as the state
 * does. */
UNUSED static void rows_are_sound(const weft_decode_rows *at, model_user *u)
{
    int64_t each[600] = { 0 }, n = at->of.n;
    int prefix[600];
    cr_assert(at->step == u->step && at->n > 0 && at->n <= 600 && n <= 600);
    for (int64_t r = 0; r < at->n; r++) {
        each[at->sequence[r]]++;
        cr_assert(r == 0 || at->sequence[r] >= at->sequence[r - 1]);
        cr_assert(at->step > 0 ? u->sequence[at->parent[r]] == at->sequence[r] :
                                 at->parent[r] == at->sequence[r]);
        prefix[r] = at->step > 0 ? u->prefix[at->parent[r]] : 0;
    }
    for (int64_t s = 0; s < n; s++)
        cr_assert(at->of.len[s] == each[s] && (u->searching || each[s] <= 1));
    memcpy(u->prefix, prefix, sizeof prefix);
    memcpy(u->sequence, at->sequence, (size_t)at->n * sizeof *u->sequence);
}

/* state h [1, rows, 2]: the sequence, and its prefix; the first token is BEGIN and not part of it. */
UNUSED static weft_tensor *model(weft_decode_rows *at, void *user)
{
    weft *w = weft_context_of(at->tokens);
    model_user *u = user;
    int32_t last[600];
    weft_real h[600 * 2], scores[600 * V];
    rows_are_sound(at, u);
    weft_read(at->tokens, last, (size_t)at->n * sizeof *last);
    weft_read(at->state.h, h, (size_t)at->n * 2 * sizeof *h);
    for (int64_t r = 0; r < at->n; r++) {
        double x[V];
        cr_assert((u->read > 0 || last[r] != END) && (int)h[2 * r + 1] == u->prefix[r]);
        if (u->step > 0) {
            u->prefix[r] = append(u->prefix[r], last[r]);
            h[2 * r + 1] = (weft_real)u->prefix[r];
        } else
            cr_assert(last[r] == BEGIN);
        cr_assert((int)h[2 * r] == at->sequence[r], "row %d has the state of sequence %d", (int)r,
                  (int)h[2 * r]);
        logits_of((int)h[2 * r], u->prefix[r], x);
        for (int j = 0; j < V; j++)
            scores[r * V + j] = (weft_real)x[j];
    }
    u->step++;
    at->state.h = weft_reals(w, h, WEFT_SHAPE(1, at->n, 2));
    return weft_reals(w, scores, WEFT_SHAPE(at->n, V));
}

UNUSED static weft_state numbered(weft *w, int64_t n)
{
    weft_real h[1200] = { 0 };
    for (int64_t s = 0; s < n; s++)
        h[2 * s] = (weft_real)s;
    return (weft_state){ weft_reals(w, h, WEFT_SHAPE(1, n, 2)), NULL };
}

/* ---- the three ways, each with those of the options that are for it ---- */
typedef enum { GREEDILY, BY_CHANCE, BY_BEAMS, WAYS } way;

UNUSED static weft_decoded decode_by(way how, weft *w, int64_t n, weft_state first, weft_decode_step_fn *step,
                                     void *user, const weft_decode_opts *o)
{
    weft_decode_opts own = { .begin = o->begin, .end = o->end, .limit = o->limit };
    if (how == BY_BEAMS) {
        own.beams = o->beams;
        own.length_penalty = o->length_penalty;
    } else if (how == BY_CHANCE) {
        own.sample = true;
        own.temperature = o->temperature;
        own.top_k = o->top_k;
        own.stream = o->stream;
    }
    return weft_decode(w, n, first, step, user, &own);
}

UNUSED static weft_decoded decode(weft *w, way how, int64_t n, const weft_decode_opts *o)
{
    model_user u = { .searching = how == BY_BEAMS };
    weft_decoded d = decode_by(how, w, n, numbered(w, n), model, &u, o);
    OK(w);
    cr_assert(d.n == n && d.limit == o->limit && d.tokens && d.len && d.score);
    return d;
}

UNUSED static double score_of(int s, const int32_t *tokens, int len, int64_t limit)
{
    double sum = 0;
    int prefix = 0;
    for (int t = 0; t < len; prefix = append(prefix, tokens[t++]))
        sum += log_p(s, prefix, tokens[t]);
    return len < limit ? sum + log_p(s, prefix, END) : sum;
}

UNUSED static void scores_are_true(const weft_decoded *d)
{
    for (int s = 0; s < d->n; s++) {
        double want = score_of(s, d->tokens + s * d->limit, d->len[s], d->limit);
        cr_assert(fabs(d->score[s] - want) < TOL(1e-12, 1e-5), "sequence %d: %g, not %g", s, d->score[s],
                  want);
    }
}

UNUSED static bool same(const weft_decoded *a, const weft_decoded *b)
{
    bool equal =
        a->n == b->n && a->limit == b->limit && !memcmp(a->len, b->len, (size_t)a->n * sizeof *a->len);
    for (int64_t s = 0; equal && s < a->n; s++)
        equal = fabs(a->score[s] - b->score[s]) < 1e-9 &&
                !memcmp(a->tokens + s * a->limit, b->tokens + s * b->limit,
                        (size_t)a->len[s] * sizeof *a->tokens);
    return equal;
}

/* A step with equal scores for *classes classes. */
UNUSED static weft_tensor *equal_scores(weft_decode_rows *rows, void *classes)
{
    return weft_zeros(weft_context_of(rows->tokens), WEFT_SHAPE(rows->n, *(const int64_t *)classes));
}

/* ---- a real one ---- */
typedef struct {
    weft_embedding *embed;
    weft_rnn *rnn;
    weft_linear *out;
    weft_tensor *bias;
    int64_t calls, held;
} network;
enum { CLASSES = 11, SEQUENCES = 4, LONG = 12, NEVER = -1 };

UNUSED static weft_tensor *next(weft_decode_rows *rows, void *user)
{
    network *m = user;
    weft *w = weft_context_of(rows->tokens);
    cr_assert(!w->recording && !w->training);
    weft_rnn_out o = weft_rnn_step(m->rnn, weft_embedding_run(m->embed, rows->tokens), rows->state);
    rows->state = o.last;
    if (m->calls++ == 2)
        m->held = weft_usage_of(w).host_bytes;
    return weft_scale(weft_linear_run(m->out, o.y), 3);
}

UNUSED static network network_new(weft *w, int cell)
{
    weft_module *m = weft_module_new(w, "m");
    weft_rnn_opts o = { .input = 5, .hidden = 8, .layers = 2 };
    return (network){ .embed =
                          weft_embedding_new(m, "e", &(weft_embedding_opts){ .rows = CLASSES, .columns = 5 }),
                      .out = weft_linear_new(m, "o", &(weft_linear_opts){ .in = 8, .out = CLASSES }),
                      .rnn = cell == 0 ? weft_elman_new(m, "r", &o) :
                             cell == 1 ? weft_gru_new(m, "r", &o) :
                                         weft_lstm_new(m, "r", &o) };
}

UNUSED static weft_state some_state(weft *w, int cell)
{
    weft_real v[2 * SEQUENCES * 8];
    dice_seed(3);
    weft_tensor *h = weft_reals(w, dice_fill(v, COUNT(v), -1, 1), WEFT_SHAPE(2, SEQUENCES, 8));
    return (weft_state){ h, cell == 2 ?
                                weft_reals(w, dice_fill(v, COUNT(v), -1, 1), WEFT_SHAPE(2, SEQUENCES, 8)) :
                                NULL };
}
#endif
