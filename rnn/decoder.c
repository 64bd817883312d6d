/* decoder.c - the loop that all ways of decoding share: checks, a step, the states that go over, the
 * result. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include "rnn/decode.h"

/* ---- begin ---- */
/* an option of another way of decoding than the one that the options choose */
static const char *way_fault(const weft_decode_opts *o)
{
    bool beams = o->beams > 1;
    return beams && o->sample ? "beams or sample is expected, not both" :
           !beams && o->length_penalty != 0 ? "length_penalty is for beam search, beams of 2 or more" :
           o->sample                        ? NULL :
           o->temperature != 0              ? "temperature is for sampling, sample = true" :
           o->top_k                         ? "top_k is for sampling, sample = true" :
           o->stream                        ? "stream is for sampling, sample = true" :
                                              NULL;
}

static const char *decoder_fault(const weft__decoder *d, int64_t n)
{
    const weft_decode_opts *o = d->o;
    return !d->step ? "a step function is expected" :
           !o       ? "opts is NULL" :
           n < 0    ? "0 or more sequences are expected" :
           o->limit < 1 || o->limit > INT_MAX ?
                   "a limit, the most tokens of a sequence, of 1 or more and below 2^31 is expected" :
           o->beams < 0 || n > INT_MAX / (o->beams ? o->beams : 1) ?
                   "1 or more beams are expected (0 means 1), and not too many" :
           !isfinite(o->length_penalty) ? "a finite length_penalty is expected" :
           !(o->temperature >= 0) || isinf(o->temperature) ?
                                          "a temperature of 0 (means 1) or more is expected" :
           o->top_k < 0 ? "a top_k of 0 (all) or more is expected" :
                          way_fault(o);
}

static bool first_is_good(weft__decoder *d)
{
    weft_tensor *both[2] = { d->first.h, d->first.c };
    char text[128];
    for (int i = 0; i < 2; i++) {
        const weft__form *f = both[i] ? &both[i]->f : NULL;
        if (f && (f->rank != 3 || f->batch || f->type != WEFT_REAL || f->size[1] != d->n))
            weft__fail(
                d->w, WEFT_ESHAPE,
                "%s: the first state %s is %s; [layers * directions, %lld, width] of reals is expected",
                d->name, i ? "c" : "h", weft__text(f, text), (long long)d->n);
    }
    return !d->w->status;
}

static bool states_are_good(weft__decoder *d, weft_state s)
{
    weft_tensor *both[2] = { s.h, s.c };
    for (int i = 0; i < 2; i++) {
        const char *wrong = both[i] ? weft__wrong(d->w, both[i]) : NULL;
        if (wrong)
            weft__fail(d->w, WEFT_EARG, "%s: step %lld: state %s %s", d->name, (long long)d->at,
                       i ? "c" : "h", wrong);
    }
    return !d->w->status;
}

static bool room_for_result(weft__decoder *d, int64_t n)
{
    size_t rows = n ? (size_t)n : 1, columns = d->o->limit ? (size_t)d->o->limit : 1;
    d->out =
        (weft_decoded){ n, d->o->limit, NULL, calloc(rows, sizeof(int32_t)), calloc(rows, sizeof(double)) };
    if (columns <= SIZE_MAX / sizeof(int32_t) / rows)
        d->out.tokens = calloc(rows, columns * sizeof(int32_t));
    if (!d->out.tokens || !d->out.len || !d->out.score)
        weft__fail(d->w, WEFT_ENOMEM, "%s: out of memory: %lld sequences of at most %lld tokens", d->name,
                   (long long)n, (long long)d->o->limit);
    return !d->w->status;
}

bool weft__decoder_begin(weft__decoder *d, int64_t n, int64_t beams, weft_state first)
{
    weft *w = d->w = d->w ? d->w : weft__no_context();
    d->start = weft_mark_here(w);
    w->running = d->name;
    d->recording = weft_set_grad_enabled(w, false), d->training = weft_set_training(w, false);
    const char *why = w->status ? NULL : decoder_fault(d, n);
    if (why && d->o)
        weft__fail(w, WEFT_EARG,
                   "%s: %s; there are %lld sequences, limit %lld, beams %d, length_penalty %g, sample %d, "
                   "temperature %g, top_k %lld, stream %.40s",
                   d->name, why, (long long)n, (long long)d->o->limit, d->o->beams, d->o->length_penalty,
                   d->o->sample, d->o->temperature, (long long)d->o->top_k,
                   d->o->stream ? d->o->stream : "NULL");
    else if (why)
        weft__fail(w, WEFT_EARG, "%s: %s", d->name, why);
    if (w->status)
        return false;
    d->n = n, d->beams = beams, d->rows = n * beams, d->first = first;
    return states_are_good(d, first) && first_is_good(d) && room_for_result(d, n);
}

/* ---- one step ---- */
static weft_tensor *state_at_last(weft__decoder *d, int i)   /* the state that the step before left */
{
    weft_tensor *t = d->state[i].is ? weft__header(d->w, &d->state[i].f) : NULL;
    if (t)
        t->data = d->state[i].buffer[d->at % 2];
    return t;
}

static const int32_t *sequence_of_each_row(weft__decoder *d)         /* NULL: out of memory */
{
    weft *w = d->w;
    int32_t *sequence = weft__take(w, &w->notes, d->rows * (int64_t)sizeof *sequence);
    for (int64_t r = 0; sequence && r < d->rows; r++)
        sequence[r] = (int32_t)(r / d->beams);
    return sequence;
}

static weft_state enter_states(weft__decoder *d, const int32_t *parent)
{
    weft_state s = d->at == 0 ? d->first : (weft_state){ state_at_last(d, 0), state_at_last(d, 1) };
    if (d->at == 0 && d->beams > 1)
        parent = sequence_of_each_row(d);
    return parent ? weft_state_select(s, parent, d->rows) : s;
}

static void carry(weft__decoder *d, int i, weft_tensor *t)        /* over to the next step */
{
    weft *w = d->w;
    char now[128], before[128];
    if (d->at == 0 && t) {
        d->state[i].is = true, d->state[i].f = t->f;
        for (int k = 0; k < 2; k++)
            d->state[i].buffer[k] = weft__take(w, &w->data, weft__room(&t->f));
    }
    if (!t != !d->state[i].is || (t && !weft__same(&t->f, &d->state[i].f)))
        weft__fail(w, WEFT_ESHAPE, "%s: step %lld: state %s is %s, before it was %s", d->name,
                   (long long)d->at, i ? "c" : "h", t ? weft__text(&t->f, now) : "NULL",
                   d->state[i].is ? weft__text(&d->state[i].f, before) : "NULL");
    if (t && !w->status && weft__bytes(&t->f))
        w->dev.k->copy(&w->dev, d->state[i].buffer[(d->at + 1) % 2], t->data, (size_t)weft__bytes(&t->f));
}

static bool scores_are_good(weft__decoder *d, const weft_tensor *scores)
{
    weft *w = d->w;
    char text[128];
    const char *wrong =
        w->step != d->start.step ? "came after the end of the step (weft_clear)" : weft__wrong(w, scores);
    if (wrong)
        weft__fail(w, WEFT_EARG, "%s: step %lld: the scores' tensor %s", d->name, (long long)d->at, wrong);
    else if (scores->f.type != WEFT_REAL || scores->f.batch || scores->f.rank != 2 ||
             scores->f.size[0] != d->rows || scores->f.size[1] < 1 ||
             (d->at && scores->f.size[1] != d->classes))
        weft__fail(w, WEFT_ESHAPE,
                   "%s: step %lld: the scores are %s; [%lld, classes] of reals are expected, as many classes "
                   "each time",
                   d->name, (long long)d->at, weft__text(&scores->f, text), (long long)d->rows);
    return !w->status;
}

/* What stands below the call, the decoder's own arrays and the states, must outlive whatever the program
 * rewinds. */
static weft_tensor *call_step(weft__decoder *d, weft_tensor *last, weft_state *s)
{
    weft *w = d->w;
    weft_mark before = weft__raise_floor(w);
    weft_tensor *scores = d->step(last, s, d->beams, d->user);
    w->floor = before;
    return scores;
}

weft_tensor *weft__decoder_step(weft__decoder *d, const int32_t *tokens, const int32_t *parent)
{
    weft *w = d->w;
    if (d->at)
        weft_rewind(w, d->mark);
    weft_state s = enter_states(d, parent);
    weft_tensor *last = weft_ints(w, tokens, WEFT_SHAPE(d->rows));
    weft_tensor *scores = w->status ? NULL : call_step(d, last, &s);
    w->running = d->name;                        /* what follows until the next step is its work */
    if (w->status || !scores_are_good(d, scores) || !states_are_good(d, s))
        return NULL;
    d->classes = scores->f.size[1];
    if (d->o->end >= d->classes) {
        weft__fail(w, WEFT_EARG, "%s: end is %d; there are %lld classes, and -1 stands for none", d->name,
                   (int)d->o->end, (long long)d->classes);
        return NULL;
    }
    carry(d, 0, s.h), carry(d, 1, s.c);
    if (d->at++ == 0)
        d->mark = weft_mark_here(w);
    return w->status ? NULL : scores;
}

void weft__decoder_bad(weft__decoder *d, int64_t sequence)
{
    weft__fail(d->w, WEFT_ENUMERIC,
               "%s: step %lld, sequence %lld: the scores are not numbers, or all of them are -inf", d->name,
               (long long)d->at - 1, (long long)sequence);
}

/* ---- end ---- */
weft_decoded weft__decoder_end(weft__decoder *d)
{
    weft *w = d->w;
    weft_set_grad_enabled(w, d->recording), weft_set_training(w, d->training);
    if (w->step == d->start.step && !weft__is_no_context(w))
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
