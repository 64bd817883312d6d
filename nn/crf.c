/* crf.c - a linear-chain conditional random field in public operators. The marginals are the gradient of log
 * Z by the emissions, so backward through the tape is the forward-backward algorithm. */
#include "autograd/fused.h"
#include "nn/api_crf.h"
#include "nn/lattice.h"
#include "nn/nn.h"

struct weft_crf {
    weft_module *m;
    weft_tensor *start, *end, *transitions;
};

weft_crf *weft_crf_new(weft_module *parent, const char *name, const weft_crf_opts *opts)
{
    static weft_crf inert;
    if (!WEFT__SIZES(parent, "crf", name, opts, { "tags", opts ? opts->tags : 0 }))
        return &inert;
    const weft_init init = { WEFT_INIT_UNIFORM, -.1, .1 };
    const int64_t K = opts->tags, most = 46340; /* so that a pair of tags is an int */
    if (K > most)
        return weft__fail(parent->w, WEFT_EARG, "crf \"%.80s\": %lld tags; expected at most %lld", name,
                          (long long)K, (long long)most),
               &inert;
    weft_crf *c = weft__layer_new(parent, name, sizeof *c);
    if (!c)
        return &inert;
    c->start = weft_parameter(c->m, "start_transitions", WEFT_SHAPE(K), init);
    c->end = weft_parameter(c->m, "end_transitions", WEFT_SHAPE(K), init);
    c->transitions = weft_parameter(c->m, "transitions", WEFT_SHAPE(K, K), init);
    return weft__finish_layer(c->m, c, &inert);
}

/* Returns NULL if x can be the emissions, otherwise fails the context and returns an inert tensor. */
static weft_tensor *bad_emissions(const weft_crf *c, weft_tensor *x)
{
    weft_tensor *bad = weft__bad_input(c ? c->m : NULL, x, "crf");
    const int64_t K = bad ? 0 : weft_size(c->start, 0);
    if (!bad && (!x->f.batch || x->f.rank != 2 || x->f.type != WEFT_REAL || x->f.size[1] != K))
        bad = weft__failed(x, WEFT_ESHAPE, "crf", "expected emissions, ragged [N, %lld] of reals",
                           (long long)K);
    return bad;
}

/* ---- log Z ---- */
typedef struct {
    weft_tensor *emissions, *start, *end, *into;
} chain;

static weft_tensor *crf_step(void *user, weft_tensor *alpha, int64_t t, int64_t from, int64_t rows)
{
    const chain *a = user;
    weft_tensor *now = weft_slice(a->emissions, 0, from, from + rows);
    if (t == 0)
        return weft_add(now, a->start);
    weft_tensor *before = weft_reshape(alpha, WEFT_SHAPE(rows, 1, weft_size(alpha, 1)));
    return weft_add(now, weft_logsumexp(weft_add(before, a->into), 2, NULL));
}
static weft_tensor *crf_finish(void *user, weft_tensor *alpha, int64_t m)
{
    (void)m;
    return weft_logsumexp(weft_add(alpha, ((const chain *)user)->end), 1, NULL);
}
static weft_tensor *log_z(const weft_crf *c, weft_tensor *emissions)
{
    chain a = { weft_plain(weft_to_layout(emissions, WEFT_PACKED)), c->start, c->end,
                weft_transpose(c->transitions, 0, 1) };
    weft *w = emissions->w;
    return w->status ? &w->nil :
                       weft__run_lattice(w, emissions->f.batch, &(weft__lattice){ &a, crf_step, crf_finish });
}

/* ---- the score of the given tags ---- */
typedef struct {
    int32_t *pair, *first, *last;
} tag_indices;

/* Sets the index of each token's transition, and of each sequence's first and last tag; -1: none. */
static bool indices_of(weft_tensor *tags, int32_t K, tag_indices *at)
{
    weft *w = tags->w;
    const weft_batch *b = tags->f.batch;
    int32_t *tag = weft__take(w, WEFT__ARENA_CALLS, (2 * b->tokens + 2 * b->n + 1) * (int64_t)sizeof *tag);
    if (!tag)
        return false;
    *at = (tag_indices){ tag + b->tokens, tag + 2 * b->tokens, tag + 2 * b->tokens + b->n };
    weft_read_sequences(tags, tag, (size_t)b->tokens * sizeof *tag);
    for (int64_t s = 0; s < b->n && !w->status; tag += b->len[s++]) {
        int32_t *pair = at->pair + b->offset.host[s];
        at->first[s] = b->len[s] ? tag[0] : -1;
        at->last[s] = b->len[s] ? tag[b->len[s] - 1] : -1;
        for (int32_t t = 0; t < b->len[s] && !w->status; t++) {
            pair[t] = t ? tag[t - 1] * K + tag[t] : -1;
            if (tag[t] < 0 || tag[t] >= K)
                weft__fail(w, WEFT_EARG, "crf: tag %d at token %d of sequence %lld; expected 0 .. %d",
                           (int)tag[t], (int)t, (long long)s, (int)K - 1);
        }
    }
    return !w->status;
}

static weft_tensor *score_of(const weft_crf *c, weft_tensor *emissions, weft_tensor *tags)
{
    weft *w = emissions->w;
    const int64_t K = weft_size(c->start, 0), n = emissions->f.batch->n;
    tag_indices at;
    if (w->status || !indices_of(tags, (int32_t)K, &at))
        return &w->nil;
    weft_tensor *pairs =
        weft_ragged_rows(weft_ints(w, at.pair, WEFT_SHAPE(emissions->f.batch->tokens)), tags);
    weft_tensor *own = weft_reshape(weft_gather(emissions, tags), WEFT_SHAPE(-1, 1)),
                *moves = weft_index_select(weft_reshape(c->transitions, WEFT_SHAPE(K * K, 1)), pairs);
    weft_tensor *first = weft_index_select(weft_reshape(c->start, WEFT_SHAPE(K, 1)),
                                           weft_ints(w, at.first, WEFT_SHAPE(n))),
                *last = weft_index_select(weft_reshape(c->end, WEFT_SHAPE(K, 1)),
                                          weft_ints(w, at.last, WEFT_SHAPE(n)));
    weft_tensor *inside = weft_pool(weft_add(own, moves), WEFT_POOL_SUM);
    return weft_reshape(weft_add(inside, weft_add(first, last)), WEFT_SHAPE(n));
}

weft_loss weft_crf_loss(weft_crf *c, weft_tensor *emissions, weft_tensor *tags)
{
    weft_tensor *bad = bad_emissions(c, emissions);
    if (bad)
        return (weft_loss){ bad, bad };
    weft *w = emissions->w;
    const weft_module *before = weft__enter(c->m);
    weft_loss l = { &w->nil, &w->nil };
    bool usable = WEFT__IS_USABLE(w, tags, "crf: tags");
    if (usable && (tags->f.batch != emissions->f.batch || tags->f.type != WEFT_I32 || tags->f.rank != 1))
        weft__failed_of(LIST(emissions, tags), WEFT_ESHAPE, "crf",
                        "expected tags, ragged [N] of ints, of the batch of the emissions");
    else if (usable)
        l = (weft_loss){ weft_sum_all(weft_sub(log_z(c, emissions), score_of(c, emissions, tags))),
                         weft_scalar(w, (double)emissions->f.batch->tokens) };
    weft__leave(c->m, before);
    return l;
}

weft_tensor *weft_crf_marginals(weft_crf *c, weft_tensor *emissions)
{
    weft_tensor *bad = bad_emissions(c, emissions), *out;
    if (bad)
        return bad;
    weft *w = emissions->w;
    const weft_module *before = weft__enter(c->m);
    const bool recording = weft_set_grad_enabled(w, true);
    weft_tensor *total = weft_sum_all(log_z(c, emissions));
    (recording ? weft_gradients_recorded : weft_gradients)(total, &emissions, 1, &out);
    weft_set_grad_enabled(w, recording);
    return weft__leave_with(c->m, before, out);
}

/* ---- the best path, on the host ---- */
enum { EMISSIONS, START, END, TRANSITIONS };

/* Fills score[K] of the token from that of the token before, past[K]; from[K]: the tag before. */
static void best_moves(int64_t K, const real *move, const double *past, double *score, int32_t *from)
{
    for (int64_t j = 0; j < K; j++) {
        from[j] = 0;
        for (int64_t i = 1; i < K; i++)
            if (past[i] + (double)move[i * K + j] > past[from[j]] + (double)move[from[j] * K + j])
                from[j] = (int32_t)i;
        score[j] = past[from[j]] + (double)move[from[j] * K + j];
    }
}
/* Writes the best path of one sequence. score [2 K], from [tokens, K] are scratch. Returns false for NaN. */
static bool best_path(const weft_call *c, const real *x, int64_t tokens, double *score, int32_t *from,
                      int32_t *y)
{
    const int64_t K = c->x[EMISSIONS]->f.size[1];
    const real *start = weft_op_data(c->x[START]), *end = weft_op_data(c->x[END]),
               *move = weft_op_data(c->x[TRANSITIONS]);
    double *now = score, *past = score + K, *swap;
    bool sound = true;
    for (int64_t t = 0; t < tokens; t++) {
        if (t)
            best_moves(K, move, past, now, from + t * K);
        for (int64_t j = 0; j < K; j++) {
            now[j] = (t ? now[j] : (double)start[j]) + (double)x[t * K + j] +
                     (t == tokens - 1 ? (double)end[j] : 0);
            sound = sound && now[j] == now[j];
        }
        swap = now;
        now = past;
        past = swap;
    }
    int32_t best = 0;
    for (int64_t j = 1; j < K; j++)
        best = past[j] > past[best] ? (int32_t)j : best;
    for (int64_t t = tokens - 1; t >= 0; t--) {
        y[t] = best;
        best = t ? from[t * K + best] : best;
    }
    return sound;
}
static void best_run(weft_call *c)
{
    weft *w = c->y[0]->w;
    const weft_batch *b = c->x[EMISSIONS]->f.batch;
    const int64_t K = c->x[EMISSIONS]->f.size[1];
    const real *x = weft_op_data(c->x[EMISSIONS]);
    int32_t *y = weft_op_int_data(c->y[0]);
    double *score = weft__take(w, WEFT__ARENA_CALLS, 2 * K * (int64_t)sizeof *score);
    int32_t *from = weft__take(w, WEFT__ARENA_CALLS, (b->longest * K + 1) * (int64_t)sizeof *from);
    for (int64_t s = 0; score && from && s < b->n; s++) {
        const int64_t at = b->offset.host[s];
        if (b->len[s] && !best_path(c, x + at * K, b->len[s], score, from, y + at))
            weft__fail(w, WEFT_ENUMERIC, "crf_best: sequence %lld: a score is NaN; expected numbers",
                       (long long)s);
    }
}
static const weft_op op_best = {
    .name = "crf_best", .layout = WEFT_CONCAT, .no_gradient = true,
    .shape = weft__path_shape, .forward = best_run
};

weft_tensor *weft_crf_best(weft_crf *c, weft_tensor *emissions)
{
    weft_tensor *bad = bad_emissions(c, emissions);
    if (bad)
        return bad;
    const weft_module *before = weft__enter(c->m);
    weft_tensor *y = weft_op_apply(&op_best, LIST(emissions, c->start, c->end, c->transitions), NULL, 0);
    return weft__leave_with(c->m, before, y);
}
