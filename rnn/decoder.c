/* decoder.c - the loop that all decoding modes share: checks, steps, states between steps, the result. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include "rnn/decode.h"

/* ---- options ---- */
/* Returns an option that belongs to another decoding mode than the chosen one; or NULL. */
static const char *mode_fault(const weft_decode_opts *o)
{
    bool beams = o->beams > 1;
    return beams && o->sample               ? "beams and sample: both are set; expected one of them" :
           !beams && o->length_penalty != 0 ? "length_penalty: beams is below 2; expected beam search" :
           !beams && o->best > 1            ? "best: beams is below 2; expected beam search" :
           o->sample                        ? NULL :
           o->temperature != 0              ? "temperature: sample is false; expected sample = true" :
           o->top_k                         ? "top_k: sample is false; expected sample = true" :
           o->top_p != 0                    ? "top_p: sample is false; expected sample = true" :
           o->stream                        ? "stream: sample is false; expected sample = true" :
                                              NULL;
}

static const char *sampling_fault(const weft_decode_opts *o)
{
    return !(o->temperature >= 0) || isinf(o->temperature) ?
               "temperature: expected a finite number, 0 (means 1) or more" :
           o->top_k < 0                      ? "top_k: expected 0 (means all) or more" :
           !(o->top_p >= 0 && o->top_p <= 1) ? "top_p: expected 0 (means 1, all) .. 1" :
                                               NULL;
}

static const char *decoder_fault(const weft__decoder *d, int64_t n)
{
    const weft_decode_opts *o = d->o;
    const char *error =
        !d->step ? "the step function is NULL" :
        !o       ? "opts is NULL" :
        n < 0    ? "n: expected 0 or more sequences" :
        o->limit < 1 || o->limit > INT_MAX ?
                "limit: expected 1 .. 2^31 - 1, the maximum number of tokens in a sequence" :
        !o->begin && !o->end && !o->has_begin && !o->has_end ?
                "begin and end: both are 0; expected the tokens that start and finish a sequence (-1: none). "
                "Set has_begin and has_end to use token 0" :
        o->beams < 0 || n > INT_MAX / (o->beams ? o->beams : 1) ?
                "beams: expected 1 or more (0 means 1), and at most 2^31 - 1 sequences times beams" :
        o->best < 0 || (o->beams > 1 && o->best > o->beams) ? "best: expected 0 (means 1) .. beams" :
        !isfinite(o->length_penalty)                        ? "length_penalty: expected a finite number" :
        !o->prompt && o->prompt_len      ? "prompt_len: prompt is NULL; expected both or neither" :
        o->prompt && !o->prompt_len && n ? "prompt: prompt_len is NULL; expected both or neither" :
                                           sampling_fault(o);
    return error ? error : mode_fault(o);
}

/* Checks the states before the first step, or after a step, for n rows. */
static bool states_are_good(weft__decoder *d, weft_state s, int64_t n)
{
    weft_tensor *states[2] = { s.h, s.c };
    for (int i = 0; i < 2; i++) {
        const weft__form *f = states[i] ? &states[i]->f : NULL;
        const char *name = i ? "c" : "h";
        if (f &&
            WEFT__IS_USABLE(d->w, states[i], "%s: step %lld: state %s", d->name, (long long)d->steps, name) &&
            (f->rank != 3 || f->batch || f->type != WEFT_REAL || f->size[1] != n))
            weft__fail(d->w, WEFT_ESHAPE,
                       "%s: step %lld: state %s is %s; expected [layers * directions, %lld, width] of reals",
                       d->name, (long long)d->steps, name, WEFT__TEXT(f), (long long)n);
    }
    return !d->w->status;
}

bool weft__decoded_new(weft *w, const char *name, weft_decoded *d)
{
    size_t rows = d->n ? (size_t)d->n : 1, each = (size_t)d->best, columns = (size_t)d->limit;
    if (rows <= SIZE_MAX / sizeof(double) / each) {
        d->len = calloc(rows * each, sizeof(int32_t));
        d->score = calloc(rows * each, sizeof(double));
    }
    if (columns <= SIZE_MAX / sizeof(int32_t) / rows / each)
        d->tokens = calloc(rows * each, columns * sizeof(int32_t));
    if (!d->tokens || !d->len || !d->score)
        weft__fail(w, WEFT_ENOMEM, "%s: out of memory: %lld sequences of at most %lld tokens", name,
                   (long long)d->n, (long long)d->limit);
    return !w->status;
}

/* ---- prompts ---- */
static bool prompts_are_good(weft__decoder *d)
{
    const weft_decode_opts *o = d->o;
    d->prompt_offset = weft__take(d->w, WEFT__ARENA_CALLS, d->n * (int64_t)sizeof *d->prompt_offset);
    int64_t first = 0;
    for (int64_t s = 0; s < d->n && !d->w->status; s++) {
        int64_t len = o->prompt ? o->prompt_len[s] : 0;
        if (len < 0 || (len == 0 && o->begin < 0))
            weft__fail(d->w, WEFT_EARG,
                       "%s: begin is %d and the prompt of sequence %lld has %lld tokens; expected %s",
                       d->name, (int)o->begin, (long long)s, (long long)len,
                       len < 0 ? "0 or more" : "begin or a prompt as the first token");
        d->prompt_offset[s] = first;
        first += len;
    }
    return !d->w->status;
}

/* Returns the number of tokens in a sequence's prompt after its first token. */
static int64_t forced_tokens(const weft__decoder *d, int64_t s)
{
    return d->o->prompt ? d->o->prompt_len[s] - (d->o->begin < 0) : 0;
}
static int32_t prompt_at(const weft__decoder *d, int64_t s, int64_t i)
{
    return d->o->prompt[d->prompt_offset[s] + i + (d->o->begin < 0)];
}

int32_t weft__prompt_token(const weft__decoder *d, int64_t s)
{
    return d->steps <= forced_tokens(d, s) ? prompt_at(d, s, d->steps - 1) : -1;
}

int64_t weft__decoder_length(const weft__decoder *d, int64_t s) { return d->steps - forced_tokens(d, s); }

/* ---- rows ---- */
void weft__decoder_add_row(weft__decoder *d, int32_t token, int64_t sequence, int64_t parent)
{
    weft__active_rows *r = &d->next;
    r->token[r->n] = token;
    r->sequence[r->n] = (int32_t)sequence;
    r->parent[r->n++] = (int32_t)parent;
}

static bool begin_rows(weft__decoder *d)
{
    weft *w = d->w;
    weft__active_rows *states[2] = { &d->now, &d->next };
    int64_t bytes = d->n * d->beams * (int64_t)sizeof(int32_t);
    for (int i = 0; i < 2; i++)
        *states[i] = (weft__active_rows){ .token = weft__take(w, WEFT__ARENA_CALLS, bytes),
                                          .sequence = weft__take(w, WEFT__ARENA_CALLS, bytes),
                                          .parent = weft__take(w, WEFT__ARENA_CALLS, bytes) };
    d->row_count = weft__take(w, WEFT__ARENA_CALLS, d->n * (int64_t)sizeof *d->row_count);
    if (w->status || !prompts_are_good(d))
        return false;
    for (int64_t s = 0; s < d->n; s++)
        weft__decoder_add_row(d, d->o->begin < 0 ? d->o->prompt[d->prompt_offset[s]] : d->o->begin, s, s);
    return true;
}

/* ---- begin ---- */
static void fail_options(weft__decoder *d, int64_t n, const char *reason)
{
    const weft_decode_opts *o = d->o;
    weft__fail(d->w, WEFT_EARG,
               "%s: %s; given: %lld sequences, limit %lld, beams %d, best %d, length_penalty %g, sample %d, "
               "temperature %g, top_k %lld, top_p %g, stream %.40s",
               d->name, reason, (long long)n, (long long)o->limit, o->beams, o->best, o->length_penalty,
               o->sample, o->temperature, (long long)o->top_k, o->top_p, o->stream ? o->stream : "NULL");
}

bool weft__decoder_begin(weft__decoder *d, int64_t n, weft_state first)
{
    weft *w = d->w = d->w ? d->w : weft__no_context();
    d->start = weft_mark_here(w);
    w->running = d->name;
    d->recording = weft_set_grad_enabled(w, false);
    d->training = weft_set_training(w, false);
    const char *reason = w->status ? NULL : decoder_fault(d, n);
    if (reason && d->o)
        fail_options(d, n, reason);
    else if (reason)
        weft__fail(w, WEFT_EARG, "%s: %s", d->name, reason);
    if (w->status)
        return false;
    d->n = n;
    d->beams = d->o->beams ? d->o->beams : 1;
    d->best = d->o->best ? d->o->best : 1;
    d->first = first;
    d->result = (weft_decoded){ .n = n, .best = d->best, .limit = d->o->limit };
    return states_are_good(d, first, n) && weft__decoded_new(w, d->name, &d->result) && begin_rows(d);
}

/* ---- one step ---- */
/* Copies the continued rows of a state to one of its two buffers. */
static void carry(weft__decoder *d, int i, weft_tensor *t, weft_tensor *parent)
{
    weft *w = d->w;
    if (d->steps == 1 && t) {
        weft__form most = t->f;
        most.size[1] = d->n * d->beams;
        d->state[i].given = true;
        for (int k = 0; k < 2; k++)
            d->state[i].buffer[k] = weft__take(w, WEFT__ARENA_DATA, weft__capacity(&most));
    }
    if (!t || w->status)
        return;
    d->state[i].f = t->f;
    d->state[i].f.size[1] = d->next.n;
    real *to = d->state[i].buffer[d->steps % 2];
    if (!parent && weft__bytes(&t->f))
        w->dev.k->copy(&w->dev, to, t->data, (size_t)weft__bytes(&t->f));
    for (int64_t k = 0, width = t->f.size[2]; parent && k < t->f.size[0]; k++)
        w->dev.k->gather(&w->dev, d->next.n, width, t->f.size[1], t->data + k * t->f.size[1] * width,
                         (const int32_t *)(const void *)parent->data, 0, to + k * d->next.n * width, false);
}

static bool all_continue(const weft__decoder *d)
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
    bool select = (d->new_state.h || d->new_state.c) && !all_continue(d);
    weft_tensor *parent = select ? weft_ints(w, d->next.parent, WEFT_SHAPE(d->next.n)) : NULL;
    carry(d, 0, d->new_state.h, parent), carry(d, 1, d->new_state.c, parent);
    if (d->steps == 1)
        d->mark = weft_mark_here(w);
    weft_rewind(w, d->mark);
}

static weft_tensor *carried_state(weft__decoder *d, int i)
{
    weft_tensor *t = d->state[i].given ? weft__header(d->w, &d->state[i].f) : NULL;
    if (t)
        t->data = d->state[i].buffer[d->steps % 2];
    return t;
}

static void count_rows(weft__decoder *d)
{
    for (int64_t s = 0; s < d->n; s++)
        d->row_count[s] = 0;
    for (int64_t r = 0; r < d->now.n; r++)
        d->row_count[d->now.sequence[r]]++;
}

/* Checks that the new states have the form of the first ones. */
static bool new_states_fit(weft__decoder *d)
{
    weft *w = d->w;
    weft_tensor *states[2] = { d->new_state.h, d->new_state.c };
    for (int i = 0; i < 2 && !w->status; i++) {
        weft_tensor *t = states[i];
        weft__form *f = &d->state[i].f;
        if (d->steps && (!t != !d->state[i].given || (t && !weft__forms_equal(&t->f, f))))
            weft__fail(w, WEFT_ESHAPE, "%s: step %lld: state %s is %s; expected %s, as before", d->name,
                       (long long)d->steps, i ? "c" : "h", t ? WEFT__TEXT(&t->f) : "NULL",
                       d->state[i].given ? WEFT__TEXT(f) : "NULL");
    }
    return !w->status;
}

static bool scores_are_good(weft__decoder *d, const weft_tensor *scores)
{
    weft *w = d->w;
    if (WEFT__IS_USABLE(w, scores, "%s: step %lld: the tensor of scores", d->name, (long long)d->steps) &&
        (scores->f.type != WEFT_REAL || scores->f.batch || scores->f.rank != 2 ||
         scores->f.size[0] != d->now.n || scores->f.size[1] < 1 ||
         (d->steps && scores->f.size[1] != d->classes)))
        weft__fail(w, WEFT_ESHAPE,
                   "%s: step %lld: the scores are %s; expected [%lld, classes] of reals, with the same "
                   "classes in each step",
                   d->name, (long long)d->steps, WEFT__TEXT(&scores->f), (long long)d->now.n);
    return !w->status;
}

static bool classes_are_good(weft__decoder *d, int64_t classes)
{
    d->classes = classes;
    if (d->o->end >= classes)
        weft__fail(d->w, WEFT_EARG, "%s: end is %d; expected less than %lld classes, or -1 for none", d->name,
                   (int)d->o->end, (long long)classes);
    for (int64_t s = 0; d->steps == 0 && s < d->n; s++)
        for (int64_t i = 0; i < forced_tokens(d, s) && !d->w->status; i++)
            if (prompt_at(d, s, i) < 0 || prompt_at(d, s, i) >= classes)
                weft__fail(d->w, WEFT_EARG,
                           "%s: the prompt of sequence %lld has a token %d; expected 0 .. %lld", d->name,
                           (long long)s, (int)prompt_at(d, s, i), (long long)classes - 1);
    return !d->w->status;
}

/* Calls the step function. The decoder's arrays and states are older, so weft_rewind cannot end them. */
static weft_tensor *call_step(weft__decoder *d)
{
    weft *w = d->w;
    weft_decode_rows rows = { .tokens = weft_ints(w, d->now.token, WEFT_SHAPE(d->now.n)),
                              .state = d->steps ? (weft_state){ carried_state(d, 0), carried_state(d, 1) } :
                                                  d->first,
                              .n = d->now.n,
                              .step = d->steps,
                              .sequence = d->now.sequence,
                              .parent = d->now.parent,
                              .of = { .n = d->n, .len = d->row_count } };
    if (w->status)
        return NULL;
    weft__callback outer = weft__callback_begin(w, "the step function of", d->name);
    weft_tensor *scores = d->step(&rows, d->user);
    weft__callback_end(w, outer);
    d->new_state = rows.state;
    return scores;
}

weft_tensor *weft__decoder_step(weft__decoder *d)
{
    weft *w = d->w;
    if (d->steps)
        leave_step(d);
    weft__active_rows alive = d->next;
    d->next = d->now;
    d->next.n = 0;
    d->now = alive;
    count_rows(d);
    weft_tensor *scores = w->status ? NULL : call_step(d);
    w->running = d->name;                        /* later failures are the decoder's */
    if (w->status || !scores_are_good(d, scores) || !states_are_good(d, d->new_state, d->now.n) ||
        !new_states_fit(d) || !classes_are_good(d, scores->f.size[1]))
        return NULL;
    d->steps++;
    return d->o->log_probabilities ? scores : weft_log_softmax(scores, 1, NULL);
}

void weft__fail_scores(weft__decoder *d, int64_t sequence)
{
    weft__fail(d->w, WEFT_ENUMERIC,
               "%s: step %lld, sequence %lld: a score is NaN, or all are -inf%s; expected finite scores",
               d->name, (long long)d->steps - 1, (long long)sequence,
               d->o->log_probabilities ? ", or a log probability is above 0" : "");
}

/* ---- end ---- */
weft_decoded weft__decoder_end(weft__decoder *d)
{
    weft *w = d->w;
    weft_set_grad_enabled(w, d->recording), weft_set_training(w, d->training);
    if (!weft__is_no_context(w))
        weft_rewind(w, d->start);
    if (w->status)
        weft_decoded_free(&d->result);
    return d->result;
}

void weft_decoded_free(weft_decoded *d)
{
    if (!d)
        return;
    free(d->tokens), free(d->len), free(d->score);
    *d = (weft_decoded){ 0 };
}
