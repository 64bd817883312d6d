/* ctc_decode.c - greedy decoding of CTC on the host. */
#include <math.h>
#include <stdlib.h>
#include "autograd/api_op.h"
#include "autograd/fused.h"
#include "rnn/api_ctc.h"

static bool logits_are_usable(weft *w, const weft_tensor *x, int32_t blank)
{
    const char *error = weft__handle_error(w, x);
    if (error)
        weft__fail(w, WEFT_EARG, "ctc_greedy: logits %s", error);
    else if (!x->f.batch || x->f.rank != 2 || x->f.type != WEFT_REAL)
        weft__fail(w, WEFT_ESHAPE, "ctc_greedy: expected ragged logits [N, classes] of reals");
    else if (blank < 0 || blank >= x->f.size[1])
        weft__fail(w, WEFT_EARG, "ctc_greedy: blank %d; expected one of the classes 0 .. %lld", (int)blank,
                   (long long)x->f.size[1] - 1);
    return !w->status;
}

/* Appends the labels that a sequence's path means, and adds the path's log probability. */
static void collapse(weft_decoded *d, int64_t s, int64_t steps, const int32_t *path, const real *log_p,
                     int32_t blank)
{
    for (int64_t t = 0; t < steps; t++) {
        d->score[s] += (double)log_p[t];
        if (path[t] != blank && (t == 0 || path[t] != path[t - 1]))
            d->tokens[s * d->limit + d->len[s]++] = path[t];
    }
}

static void decode_greedily(weft_tensor *x, int32_t blank, weft_decoded *d)
{
    weft *w = x->w;
    const weft_batch *b = x->f.batch;
    const size_t N = (size_t)b->tokens;
    weft_tensor *log_p = weft_log_softmax(x, -1, NULL), *best = weft_argmax(log_p, -1);
    int32_t *path = weft__take(w, WEFT__ARENA_CALLS, (int64_t)((N + 1) * sizeof *path));
    real *score = weft__take(w, WEFT__ARENA_CALLS, (int64_t)((N + 1) * sizeof *score));
    *d = (weft_decoded){ .n = b->n, .best = 1, .limit = b->longest ? b->longest : 1 };
    const size_t n = (size_t)b->n + !b->n;
    d->tokens = calloc(n * (size_t)d->limit, sizeof *d->tokens);
    d->len = calloc(n, sizeof *d->len);
    d->score = calloc(n, sizeof *d->score);
    if (!d->tokens || !d->len || !d->score)
        weft__fail(w, WEFT_ENOMEM, "ctc_greedy: out of memory: %lld sequences", (long long)b->n);
    if (w->status || !path || !score)
        return;
    weft_read_sequences(best, path, N * sizeof *path);
    weft_read_sequences(weft_gather(log_p, best), score, N * sizeof *score);
    for (int64_t s = 0; s < b->n && !w->status; s++) {
        collapse(d, s, b->len[s], path + b->offset.host[s], score + b->offset.host[s], blank);
        if (isnan(d->score[s]))
            weft__fail(w, WEFT_ENUMERIC, "ctc_greedy: sequence %lld: a logit is NaN; expected numbers",
                       (long long)s);
    }
}

weft_decoded weft_ctc_greedy(weft_tensor *logits, int32_t blank)
{
    weft *w = weft__context(LIST(logits));
    weft_decoded d = { 0 };
    if (!weft_ok(w) || !logits_are_usable(w, logits, blank))
        return d;
    const weft_mark mark = weft_mark_here(w);
    WEFT_NO_GRAD(w)
    decode_greedily(logits, blank, &d);
    weft_rewind(w, mark);
    if (!weft_ok(w))
        weft_decoded_free(&d);
    return d;
}
