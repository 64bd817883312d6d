/* decode.c - generates sequences token by token: greedy decoding, sampling, and the choice between decoding
 * modes. beam.c has beam search, decoder.c the loop. */
#include <math.h>
#include "autograd/fused.h"
#include "rnn/decode.h"

/* ---- one hypothesis for each sequence ---- * A chooser selects a token for each row and returns its class
 * and its log probability by the model. */
typedef bool chooser(weft__decoder *d, weft_tensor *log_p, int32_t *chosen, real *log_p_chosen);

static void accept(weft__decoder *d, int64_t row, int32_t token, real log_p)
{
    int64_t s = d->now.sequence[row];
    int32_t given = weft__prompt_token(d, s);
    if (given >= 0) {
        weft__decoder_add_row(d, given, s, row);
        return;
    }
    if (!isfinite(log_p) || (double)log_p > WEFT__LOG_P_MOST)
        weft__fail_scores(d, s);
    d->result.score[s] += (double)log_p;
    if (token == d->o->end)
        return;
    d->result.tokens[s * d->o->limit + d->result.len[s]++] = token;
    if (d->result.len[s] < d->o->limit)
        weft__decoder_add_row(d, token, s, row);
}

static weft_decoded decode_by(weft__decoder *d, int64_t n, weft_state first, chooser *choose)
{
    bool ok = weft__decoder_begin(d, n, first);
    weft *w = d->w;
    int32_t *chosen = weft__take(w, WEFT__ARENA_CALLS, d->n * (int64_t)sizeof *chosen);
    real *log_p = weft__take(w, WEFT__ARENA_CALLS, d->n * (int64_t)sizeof *log_p);
    while (ok && d->next.n && !w->status) {
        weft_tensor *all = weft__decoder_step(d);
        ok = all && choose(d, all, chosen, log_p);
        for (int64_t r = 0; ok && r < d->now.n; r++)
            accept(d, r, chosen[r], log_p[r]);
    }
    return weft__decoder_end(d);
}

static bool choose_largest(weft__decoder *d, weft_tensor *log_p, int32_t *chosen, real *log_p_chosen)
{
    weft_tensor *largest = weft_argmax(log_p, 1), *p = weft_gather(log_p, largest);
    return weft__read(largest, chosen, (size_t)d->now.n * sizeof *chosen) == WEFT_OK &&
           weft__read(p, log_p_chosen, (size_t)d->now.n * sizeof *log_p_chosen) == WEFT_OK;
}

/* ---- sampling ---- * Every sequence gets one draw in every step, even after its end. So the result of a
 * sequence does not depend on the lengths of others. */
/* Draws a token; u is uniform in [0, 1). */
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

/* Returns the smallest number of tokens, most probable first, with probability top_p together. */
static int64_t nucleus(const weft__scored *sorted, int64_t n, double temperature, double top_p)
{
    double total = 0, some = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++)
        total += exp((sorted[i].score - sorted[0].score) / temperature);
    while (count < n && some < top_p * total)
        some += exp((sorted[count++].score - sorted[0].score) / temperature);
    return count > 0 ? count : 1;
}

static int32_t sample_token(const weft_decode_opts *o, const real *log_p, int64_t classes, weft__scored *room,
                            double u)
{
    double temperature = o->temperature > 0 ? o->temperature : 1;
    bool some = o->top_k && o->top_k < classes, fewest = o->top_p > 0 && o->top_p < 1;
    weft__best best = { room, some ? o->top_k : classes, 0 };
    for (int64_t j = 0; j < classes; j++)
        if (some || fewest)
            weft__best_offer(&best, (double)log_p[j], j);
        else
            room[best.n++] = (weft__scored){ (double)log_p[j], j };
    if (some || fewest)
        weft__best_sort(&best);
    if (fewest)
        best.n = nucleus(room, best.n, temperature, o->top_p);
    return (int32_t)draw_token(room, best.n, temperature, u);
}

static bool choose_by_chance(weft__decoder *d, weft_tensor *log_p, int32_t *chosen, real *log_p_chosen)
{
    weft *w = d->w;
    int64_t C = d->classes, rows = d->now.n;
    weft_stream *stream = weft_stream_of(w, d->o->stream ? d->o->stream : "decode");
    real *all = weft__take(w, WEFT__ARENA_CALLS, rows * C * (int64_t)sizeof *all);
    weft__scored *room = weft__take(w, WEFT__ARENA_CALLS, C * (int64_t)sizeof *room);
    if (!stream || !all || !room || weft__read(log_p, all, (size_t)(rows * C) * sizeof *all) != WEFT_OK)
        return false;
    for (int64_t s = 0, r = 0; s < d->n; s++) {
        double u = weft_stream_uniform(stream);
        if (r == rows || d->now.sequence[r] != s)
            continue;
        chosen[r] = sample_token(d->o, all + r * C, C, room, u);
        log_p_chosen[r] = all[r * C + chosen[r]];
        r++;
    }
    return true;
}

/* ---- decoding modes ---- */
weft_decoded weft_decode(weft *w, int64_t n, weft_state first, weft_decode_step_fn *step, void *user,
                         const weft_decode_opts *o)
{
    weft__decoder d = { .w = w, .name = "decode", .o = o, .step = step, .user = user };
    if (o && o->beams > 1)
        return weft__decode_beams(&d, n, first);
    return decode_by(&d, n, first, o && o->sample ? choose_by_chance : choose_largest);
}

weft_tensor *weft_decode_ragged(const weft_decode_rows *r, weft_tensor *x)
{
    weft *w = x ? x->w : weft__no_context();
    const char *error = !r ? "the rows are NULL; expected those of the step" : weft__handle_error(w, x);
    if (!error && (x->f.batch || x->f.rank < 1 || x->f.size[0] != r->n))
        return weft__failed_of(LIST(x), WEFT_ESHAPE, "decode_ragged", "expected a plain tensor of %lld rows",
                               (long long)r->n);
    if (error)
        return weft__failed_of(LIST(x), WEFT_EARG, "decode_ragged", "%s", error);
    weft__form f = x->f;
    f.batch = weft__batch(w, &r->of, "decode_ragged");
    f.layout = WEFT_CONCAT;
    return f.batch ? weft__view(x, &f) : &w->nil;
}
