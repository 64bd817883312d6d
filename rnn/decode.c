/* decode.c - writing sequences out, a token at a time: greedy decoding and sampling, and the choice among the
 * ways; beam search is in beam.c, the loop in decoder.c. */
#include <math.h>
#include "rnn/decode.h"

/* ---- one hypothesis a sequence ---- *
 * The choice of a token: class [n] and its log probability by the model [n]. */
typedef bool chooser(weft__decoder *d, weft_tensor *scores, int32_t *chosen, real *log_p);

typedef struct { int32_t *last, *chosen; real *log_p; bool *done; int64_t going; } follower;

static bool begin_follower(weft__decoder *d, follower *f)
{
    weft *w = d->w;
    *f = (follower){ weft__take(w, &w->notes, d->n * 4), weft__take(w, &w->notes, d->n * 4),
                     weft__take(w, &w->notes, d->n * (int64_t)sizeof(real)), weft__take(w, &w->notes, d->n),
                     d->n };
    for (int64_t s = 0; !w->status && s < d->n; s++)
        f->last[s] = d->o->begin, f->done[s] = false;
    return !w->status;
}

static void accept(weft__decoder *d, follower *f, int64_t s)
{
    f->last[s] = f->done[s] ? d->o->end : f->chosen[s];
    if (f->done[s])
        return;
    if (!isfinite(f->log_p[s]))
        weft__decoder_bad(d, s);
    d->out.score[s] += (double)f->log_p[s];
    if (f->chosen[s] != d->o->end)
        d->out.tokens[s * d->o->limit + d->out.len[s]++] = f->chosen[s];
    else
        f->done[s] = true, f->going--;
}

static weft_decoded follow_choices(weft__decoder *d, int64_t n, weft_state first, chooser *choose)
{
    follower f;
    if (weft__decoder_begin(d, n, 1, first) && begin_follower(d, &f))
        while (d->at < d->o->limit && f.going && !d->w->status) {
            weft_tensor *scores = weft__decoder_step(d, f.last, NULL);
            if (!scores || !choose(d, scores, f.chosen, f.log_p))
                break;
            for (int64_t s = 0; s < n; s++)
                accept(d, &f, s);
        }
    return weft__decoder_end(d);
}

static bool choose_largest(weft__decoder *d, weft_tensor *scores, int32_t *chosen, real *log_p)
{
    weft_tensor *largest = weft_argmax(scores, 1),
                *p = weft_take_along(weft_log_softmax(scores, 1, NULL), largest);
    return weft__read(largest, chosen, (size_t)d->n * sizeof *chosen) == WEFT_OK &&
           weft__read(p, log_p, (size_t)d->n * sizeof *log_p) == WEFT_OK;
}

/* ---- sampling ---- *
 * One draw for every sequence and step, finished or not: what a sequence gets does not depend on when its
 * neighbours end. */
/* u in [0, 1) */
static int64_t draw_token(const weft__scored *among, int64_t n, double temperature, double u)
{
    double top = -HUGE_VAL, total = 0;
    int64_t last = 0;
    for (int64_t i = 0; i < n; i++)
        top = fmax(top, among[i].score);
    for (int64_t i = 0; i < n; i++)
        total += exp((among[i].score - top) / temperature);
    u *= total;
    for (int64_t i = 0; i < n && u >= 0; i++) {
        double p = exp((among[i].score - top) / temperature);
        u -= p;
        last = p > 0 ? i : last;
    }
    return among[last].id;
}

static int32_t sampled(const weft_decode_opts *o, const real *log_p, int64_t classes, weft__scored *room,
                       double u)
{
    bool some = o->top_k && o->top_k < classes;
    weft__best best = { room, some ? o->top_k : classes, 0 };
    for (int64_t j = 0; j < classes; j++)
        if (some)
            weft__best_offer(&best, (double)log_p[j], j);
        else
            room[best.n++] = (weft__scored){ (double)log_p[j], j };
    if (some)
        weft__best_sort(&best);
    return (int32_t)draw_token(room, best.n, o->temperature > 0 ? o->temperature : 1, u);
}

static bool choose_by_chance(weft__decoder *d, weft_tensor *scores, int32_t *chosen, real *log_p)
{
    weft *w = d->w;
    int64_t C = d->classes;
    weft_stream *stream = weft_stream_of(w, d->o->stream ? d->o->stream : "decode");
    real *all = weft__take(w, &w->notes, d->n * C * (int64_t)sizeof *all);
    weft__scored *room = weft__take(w, &w->notes, C * (int64_t)sizeof *room);
    if (!stream || !all || !room ||
        weft__read(weft_log_softmax(scores, 1, NULL), all, (size_t)(d->n * C) * sizeof *all) != WEFT_OK)
        return false;
    for (int64_t s = 0; s < d->n; s++) {
        chosen[s] = sampled(d->o, all + s * C, C, room, weft_stream_uniform(stream));
        log_p[s] = all[s * C + chosen[s]];
    }
    return true;
}

/* ---- the ways ---- */
weft_decoded weft_decode(weft *w, int64_t n, weft_state first, weft_decode_step_fn *step, void *user,
                         const weft_decode_opts *o)
{
    weft__decoder d = { .w = w, .name = "decode", .o = o, .step = step, .user = user };
    if (o && o->beams > 1)
        return weft__decode_beams(&d, n, first);
    return follow_choices(&d, n, first, o && o->sample ? choose_by_chance : choose_largest);
}
