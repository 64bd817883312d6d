/* decoder.c - the loop that all decoding modes share: checks, steps, states between steps, the result. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include "rnn/decode.h"

/* ---- options ---- */
/* Returns an option that belongs to another decoding mode than the chosen one; or NULL. */
static const char *way_fault(const weft_decode_opts *o)
{
    bool beams = o->beams > 1;
    return beams && o->sample ? "beams or sample is expected, not both" :
           !beams && o->length_penalty != 0 ? "length_penalty is for beam search, beams of 2 or more" :
           !beams && o->best > 1            ? "best is for beam search, beams of 2 or more" :
           o->sample                        ? NULL :
           o->temperature != 0              ? "temperature is for sampling, sample = true" :
           o->top_k                         ? "top_k is for sampling, sample = true" :
           o->top_p != 0                    ? "top_p is for sampling, sample = true" :
           o->stream                        ? "stream is for sampling, sample = true" :
                                              NULL;
}

static const char *sampling_fault(const weft_decode_opts *o)
{
    return !(o->temperature >= 0) || isinf(o->temperature) ?
                   "a temperature of 0 (means 1) or more is expected" :
           o->top_k < 0 ? "a top_k of 0 (all) or more is expected" :
           !(o->top_p >= 0 && o->top_p <= 1) ? "a top_p of 0 (means 1, all) .. 1 is expected" :
                                                NULL;
}

static const char *decoder_fault(const weft__decoder *d, int64_t n)
{
    const weft_decode_opts *o = d->o;
    const char *wrong =
        !d->step ? "a step function is expected" :
        !o       ? "opts is NULL" :
        n < 0 ?
             "0 or more sequences are expected" :
        o->limit < 1 || o->limit > INT_MAX ?
             "a limit, the most tokens of a sequence, of 1 or more and below 2^31 is expected" :
        !o->begin && !o->end && !o->has_begin && !o->has_end ?
             "begin and end are both 0: give the tokens that start and finish a sequence (-1: none), or set "
             "has_begin and has_end to mean token 0" :
        o->beams < 0 || n > INT_MAX / (o->beams ? o->beams : 1) ?
             "1 or more beams are expected (0 means 1), and not too many" :
        o->best < 0 || (o->beams > 1 && o->best > o->beams) ? "a best of 0 (means 1) .. beams is expected" :
        !isfinite(o->length_penalty)                        ? "a finite length_penalty is expected" :
        !o->prompt && o->prompt_len                         ? "prompt_len is of prompt, which is NULL" :
        o->prompt && !o->prompt_len && n                    ? "prompt_len is expected with prompt" :
                                                              sampling_fault(o);
    return wrong ? wrong : way_fault(o);
}

/* Checks the states before the first step, or after a step, for n rows. */
static bool states_are_good(weft__decoder *d, weft_state s, int64_t n)
{
    weft_tensor *both[2] = { s.h, s.c };
    char text[128];
    for (int i = 0; i < 2; i++) {
        const weft__form *f = both[i] ? &both[i]->f : NULL;
        const char *wrong = f ? weft__wrong(d->w, both[i]) : NULL;
        if (wrong)
            weft__fail(d->w, WEFT_EARG, "%s: step %lld: state %s %s", d->name, (long long)d->at,
                       i ? "c" : "h", wrong);
        else if (f && (f->rank != 3 || f->batch || f->type != WEFT_REAL || f->size[1] != n))
            weft__fail(d->w, WEFT_ESHAPE,
                       "%s: step %lld: state %s is %s; [layers * directions, %lld, width] of reals is "
                       "expected",
                       d->name, (long long)d->at, i ? "c" : "h", weft__text(f, text), (long long)n);
    }
    return !d->w->status;
}

static bool room_for_result(weft__decoder *d)
{
    size_t rows = d->n ? (size_t)d->n : 1, each = (size_t)d->best, columns = (size_t)d->o->limit;
    d->out = (weft_decoded){ .n = d->n, .best = d->best, .limit = d->o->limit };
    if (rows <= SIZE_MAX / sizeof(double) / each) {
        d->out.len = calloc(rows * each, sizeof(int32_t));
        d->out.score = calloc(rows * each, sizeof(double));
    }
    if (columns <= SIZE_MAX / sizeof(int32_t) / rows / each)
        d->out.tokens = calloc(rows * each, columns * sizeof(int32_t));
    if (!d->out.tokens || !d->out.len || !d->out.score)
        weft__fail(d->w, WEFT_ENOMEM, "%s: out of memory: %lld sequences of at most %lld tokens", d->name,
                   (long long)d->n, (long long)d->o->limit);
    return !d->w->status;
}

/* ---- prompts ---- */
static bool prompts_are_good(weft__decoder *d)
{
    const weft_decode_opts *o = d->o;
    d->fed = weft__take(d->w, WEFT__ARENA_CALLS, d->n * (int64_t)sizeof *d->fed);
    int64_t at = 0;
    for (int64_t s = 0; d->fed && s < d->n; s++) {
        int64_t len = o->prompt ? o->prompt_len[s] : 0;
        if (len < 0 || (len == 0 && o->begin < 0)) {
            weft__fail(d->w, WEFT_EARG,
                       "%s: begin is %d and the prompt of sequence %lld has %lld tokens; %s", d->name,
                       (int)o->begin, (long long)s, (long long)len,
                       len < 0 ? "0 or more are expected" : "a token to begin with is expected");
            return false;
        }
        d->fed[s] = at;
        at += len;
    }
    return !d->w->status;
}

/* Returns the number of tokens in a sequence's prompt after its first token. */
static int64_t forced(const weft__decoder *d, int64_t s)
{
    return d->o->prompt ? d->o->prompt_len[s] - (d->o->begin < 0) : 0;
}
static int32_t prompt_at(const weft__decoder *d, int64_t s, int64_t i)
{
    return d->o->prompt[d->fed[s] + i + (d->o->begin < 0)];
}

int32_t weft__decoder_given(const weft__decoder *d, int64_t s)
{
    return d->at <= forced(d, s) ? prompt_at(d, s, d->at - 1) : -1;
}

int64_t weft__decoder_length(const weft__decoder *d, int64_t s) { return d->at - forced(d, s); }

/* ---- rows ---- */
void weft__decoder_go_on(weft__decoder *d, int32_t token, int64_t sequence, int64_t parent)
{
    weft__rows_alive *r = &d->next;
    r->token[r->n] = token;
    r->sequence[r->n] = (int32_t)sequence;
    r->parent[r->n++] = (int32_t)parent;
}

static bool begin_rows(weft__decoder *d)
{
    weft *w = d->w;
    weft__rows_alive *both[2] = { &d->now, &d->next };
    int64_t bytes = d->n * d->beams * (int64_t)sizeof(int32_t);
    for (int i = 0; i < 2; i++)
        *both[i] = (weft__rows_alive){ .token = weft__take(w, WEFT__ARENA_CALLS, bytes),
                                       .sequence = weft__take(w, WEFT__ARENA_CALLS, bytes),
                                       .parent = weft__take(w, WEFT__ARENA_CALLS, bytes) };
    d->rows_of = weft__take(w, WEFT__ARENA_CALLS, d->n * (int64_t)sizeof *d->rows_of);
    if (w->status || !prompts_are_good(d))
        return false;
    for (int64_t s = 0; s < d->n; s++)
        weft__decoder_go_on(d, d->o->begin < 0 ? d->o->prompt[d->fed[s]] : d->o->begin, s, s);
    return true;
}

/* ---- begin ---- */
static void say_options(weft__decoder *d, int64_t n, const char *why)
{
    const weft_decode_opts *o = d->o;
    weft__fail(d->w, WEFT_EARG,
               "%s: %s; there are %lld sequences, limit %lld, beams %d, best %d, length_penalty %g, "
               "sample %d, temperature %g, top_k %lld, top_p %g, stream %.40s",
               d->name, why, (long long)n, (long long)o->limit, o->beams, o->best, o->length_penalty,
               o->sample, o->temperature, (long long)o->top_k, o->top_p, o->stream ? o->stream : "NULL");
}

bool weft__decoder_begin(weft__decoder *d, int64_t n, weft_state first)
{
    weft *w = d->w = d->w ? d->w : weft__no_context();
    d->start = weft_mark_here(w);
    w->running = d->name;
    d->recording = weft_set_grad_enabled(w, false);
    d->training = weft_set_training(w, false);
    const char *why = w->status ? NULL : decoder_fault(d, n);
    if (why && d->o)
        say_options(d, n, why);
    else if (why)
        weft__fail(w, WEFT_EARG, "%s: %s", d->name, why);
    if (w->status)
        return false;
    d->n = n;
    d->beams = d->o->beams ? d->o->beams : 1;
    d->best = d->o->best ? d->o->best : 1;
    d->first = first;
    return states_are_good(d, first, n) && room_for_result(d) && begin_rows(d);
}

/* ---- one step ---- */
/* Copies the continued rows of a state to one of its two buffers. */
static void carry(weft__decoder *d, int i, weft_tensor *t, weft_tensor *parent)
{
    weft *w = d->w;
    if (d->at == 1 && t) {
        weft__form most = t->f;
        most.size[1] = d->n * d->beams;
        d->state[i].is = true;
        for (int k = 0; k < 2; k++)
            d->state[i].buffer[k] = weft__take(w, WEFT__ARENA_DATA, weft__capacity(&most));
    }
    if (!t || w->status)
        return;
    d->state[i].f = t->f;
    d->state[i].f.size[1] = d->next.n;
    real *to = d->state[i].buffer[d->at % 2];
    if (!parent && weft__bytes(&t->f))
        w->dev.k->copy(&w->dev, to, t->data, (size_t)weft__bytes(&t->f));
    for (int64_t k = 0, width = t->f.size[2]; parent && k < t->f.size[0]; k++)
        w->dev.k->gather(&w->dev, d->next.n, width, t->f.size[1], t->data + k * t->f.size[1] * width,
                         (const int32_t *)(const void *)parent->data, 0, to + k * d->next.n * width, false);
}

static bool all_go_on(const weft__decoder *d)
{
    bool all = d->next.n == d->now.n;
    for (int64_t r = 0; all && r < d->next.n; r++)
        all = d->next.parent[r] == r;
    return all;
}

/* Copies the new states and ends all other tensors of the step. */
static void leave_step(weft__decoder *d)
{
    weft *w = d->w;
    bool select = (d->made.h || d->made.c) && !all_go_on(d);
    weft_tensor *parent = select ? weft_ints(w, d->next.parent, WEFT_SHAPE(d->next.n)) : NULL;
    carry(d, 0, d->made.h, parent), carry(d, 1, d->made.c, parent);
    if (d->at == 1)
        d->mark = weft_mark_here(w);
    weft_rewind(w, d->mark);
}

static weft_tensor *carried(weft__decoder *d, int i)
{
    weft_tensor *t = d->state[i].is ? weft__header(d->w, &d->state[i].f) : NULL;
    if (t)
        t->data = d->state[i].buffer[d->at % 2];
    return t;
}

static void count_rows(weft__decoder *d)
{
    for (int64_t s = 0; s < d->n; s++)
        d->rows_of[s] = 0;
    for (int64_t r = 0; r < d->now.n; r++)
        d->rows_of[d->now.sequence[r]]++;
}

/* Checks that the new states have the form of the first ones. */
static bool made_is_good(weft__decoder *d)
{
    weft *w = d->w;
    weft_tensor *both[2] = { d->made.h, d->made.c };
    char now[128], before[128];
    for (int i = 0; i < 2 && !w->status; i++) {
        weft_tensor *t = both[i];
        weft__form *f = &d->state[i].f;
        if (d->at && (!t != !d->state[i].is || (t && !weft__same(&t->f, f))))
            weft__fail(w, WEFT_ESHAPE, "%s: step %lld: state %s is %s, before it was %s", d->name,
                       (long long)d->at, i ? "c" : "h", t ? weft__text(&t->f, now) : "NULL",
                       d->state[i].is ? weft__text(f, before) : "NULL");
    }
    return !w->status;
}

static bool scores_are_good(weft__decoder *d, const weft_tensor *scores)
{
    weft *w = d->w;
    char text[128];
    const char *wrong = weft__wrong(w, scores);
    if (wrong)
        weft__fail(w, WEFT_EARG, "%s: step %lld: the scores' tensor %s", d->name, (long long)d->at, wrong);
    else if (scores->f.type != WEFT_REAL || scores->f.batch || scores->f.rank != 2 ||
             scores->f.size[0] != d->now.n || scores->f.size[1] < 1 ||
             (d->at && scores->f.size[1] != d->classes))
        weft__fail(w, WEFT_ESHAPE,
                   "%s: step %lld: the scores are %s; [%lld, classes] of reals are expected, as many classes "
                   "each time",
                   d->name, (long long)d->at, weft__text(&scores->f, text), (long long)d->now.n);
    return !w->status;
}

static bool classes_are_good(weft__decoder *d, int64_t classes)
{
    d->classes = classes;
    if (d->o->end >= classes)
        weft__fail(d->w, WEFT_EARG, "%s: end is %d; there are %lld classes, and -1 stands for none", d->name,
                   (int)d->o->end, (long long)classes);
    for (int64_t s = 0; d->at == 0 && s < d->n; s++)
        for (int64_t i = 0; i < forced(d, s) && !d->w->status; i++)
            if (prompt_at(d, s, i) < 0 || prompt_at(d, s, i) >= classes)
                weft__fail(d->w, WEFT_EARG,
                           "%s: the prompt of sequence %lld has a token %d; 0 .. %lld is expected", d->name,
                           (long long)s, (int)prompt_at(d, s, i), (long long)classes - 1);
    return !d->w->status;
}

/* Calls the step function. The decoder's arrays and states are older, so weft_rewind cannot end them. */
static weft_tensor *call_step(weft__decoder *d)
{
    weft *w = d->w;
    weft_decode_rows rows = { .tokens = weft_ints(w, d->now.token, WEFT_SHAPE(d->now.n)),
                              .state = d->at ? (weft_state){ carried(d, 0), carried(d, 1) } : d->first,
                              .n = d->now.n,
                              .step = d->at,
                              .sequence = d->now.sequence,
                              .parent = d->now.parent,
                              .of = { .n = d->n, .len = d->rows_of } };
    if (w->status)
        return NULL;
    weft__callback outer = weft__callback_begin(w, "the step function of", d->name);
    weft_tensor *scores = d->step(&rows, d->user);
    weft__callback_end(w, outer);
    d->made = rows.state;
    return scores;
}

weft_tensor *weft__decoder_step(weft__decoder *d)
{
    weft *w = d->w;
    if (d->at)
        leave_step(d);
    weft__rows_alive alive = d->next;
    d->next = d->now;
    d->next.n = 0;
    d->now = alive;
    count_rows(d);
    weft_tensor *scores = w->status ? NULL : call_step(d);
    w->running = d->name;                        /* later failures are the decoder's */
    if (w->status || !scores_are_good(d, scores) || !states_are_good(d, d->made, d->now.n) ||
        !made_is_good(d) ||
        !classes_are_good(d, scores->f.size[1]))
        return NULL;
    d->at++;
    return d->o->log_probabilities ? scores : weft_log_softmax(scores, 1, NULL);
}

void weft__decoder_bad(weft__decoder *d, int64_t sequence)
{
    weft__fail(d->w, WEFT_ENUMERIC,
               "%s: step %lld, sequence %lld: the scores are not numbers, or all of them are -inf%s", d->name,
               (long long)d->at - 1, (long long)sequence,
               d->o->log_probabilities ? ", or one, a log probability, is above 0" : "");
}

/* ---- end ---- */
weft_decoded weft__decoder_end(weft__decoder *d)
{
    weft *w = d->w;
    weft_set_grad_enabled(w, d->recording), weft_set_training(w, d->training);
    if (!weft__is_no_context(w))
        weft_rewind(w, d->start);
    if (w->status)
        weft_decoded_free(&d->out);
    return d->out;
}

void weft_decoded_free(weft_decoded *d)
{
    if (!d)
        return;
    free(d->tokens), free(d->len), free(d->score);
    *d = (weft_decoded){ 0 };
}
