/* ctc_decode.c - greedy decoding of CTC, and prefix beam search (Graves 2012; Hannun et al. 2014), on the host.
 *
 * The search keeps the K best prefixes of labels. Each has the log probability of its paths that end in a
 * blank, and in its last label. A prefix is a node of a tree, so paths that reach it in two ways are added. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "autograd/api_op.h"
#include "autograd/fused.h"
#include "core/top_k.h"
#include "rnn/api_ctc.h"

static void check(weft *w, const char *name, const weft_tensor *x, const weft_ctc_beam_opts *o)
{
    const char *error = weft__handle_error(w, x);
    if (error)
        weft__fail(w, WEFT_EARG, "%s: logits %s", name, error);
    else if (!x->f.batch || x->f.rank != 2 || x->f.type != WEFT_REAL)
        weft__fail(w, WEFT_ESHAPE, "%s: expected ragged logits [N, classes] of reals", name);
    else if (o->blank < 0 || o->blank >= x->f.size[1])
        weft__fail(w, WEFT_EARG, "%s: blank %d; expected one of the classes 0 .. %lld", name, (int)o->blank,
                   (long long)x->f.size[1] - 1);
    else if (o->beams < 1 || o->beams > 65536 || o->best < 1 || o->best > o->beams)
        weft__fail(w, WEFT_EARG, "%s: beams %d, best %d; expected 1 .. 65536 beams, and best at most beams",
                   name, o->beams, o->best);
    else if (!isfinite(o->weight) || !isfinite(o->bonus))
        weft__fail(w, WEFT_EARG, "%s: weight %g, bonus %g; expected finite numbers", name, o->weight,
                   o->bonus);
}

/* ---- greedy ---- */
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
static void decode_greedily(weft_tensor *log_p, const weft_ctc_beam_opts *o, weft_decoded *d)
{
    weft *w = log_p->w;
    const weft_batch *b = log_p->f.batch;
    weft_tensor *best = weft_argmax(log_p, -1);
    int32_t *path = weft__take(w, WEFT__ARENA_CALLS, (b->tokens + 1) * (int64_t)sizeof *path);
    real *score = weft__take(w, WEFT__ARENA_CALLS, (b->tokens + 1) * (int64_t)sizeof *score);
    if (!path || !score)
        return;
    weft_read_sequences(best, path, (size_t)b->tokens * sizeof *path);
    weft_read_sequences(weft_gather(log_p, best), score, (size_t)b->tokens * sizeof *score);
    for (int64_t s = 0; s < b->n && !w->status; s++)
        collapse(d, s, b->len[s], path + b->offset.host[s], score + b->offset.host[s], o->blank);
}

/* ---- prefix beam search ---- */
enum { ROOT = 0, NONE = -1 };
/* A prefix: that of `before`, then a label. row: its row among those that are kept, or NONE. extra: the part
 * of its score that does not come from the logits. */
typedef struct {
    int64_t before, child, sibling, length, row;
    int32_t label;
    double extra;
} prefix_node;
/* Log probability of the paths that end in a blank, and in the last label. */
typedef struct {
    int64_t node;
    double blank, label;
} kept_prefix;
typedef struct {
    weft *w;
    const weft_ctc_beam_opts *o;
    int64_t sequence, C, count, rows;
    prefix_node *nodes;
    kept_prefix *now, *next; /* [K] */
    double *mass, *extra, *next_extra; /* [K, C]: of each prefix and one more label */
    int32_t *labels; /* [longest] of a prefix, for the scorer */
    weft__best top;
} search;

static double log_add(double a, double b)
{
    return a == b ? a + log(2) : fmax(a, b) + log1p(exp(-fabs(a - b)));
}
static double score_of(const search *b, const kept_prefix *p)
{
    return log_add(p->blank, p->label) + b->nodes[p->node].extra;
}

/* Returns the node of a prefix and one more label. extra: that label's. */
static int64_t child_of(search *b, int64_t before, int32_t label, double extra)
{
    prefix_node *parent = &b->nodes[before];
    for (int64_t i = parent->child; i != NONE; i = b->nodes[i].sibling)
        if (b->nodes[i].label == label)
            return i;
    b->nodes[b->count] =
        (prefix_node){ before, NONE, parent->child, parent->length + 1, NONE, label, parent->extra + extra };
    return parent->child = b->count++;
}
static void read_labels(const search *b, int64_t node, int32_t *to)
{
    for (int64_t i = b->nodes[node].length; i > 0; node = b->nodes[node].before)
        to[--i] = b->nodes[node].label;
}

/* Sets what each next label adds to the score of a prefix. */
static void set_extra(search *b, int64_t node, double *extra)
{
    const weft_ctc_beam_opts *o = b->o;
    memset(extra, 0, (size_t)b->C * sizeof *extra);
    if (o->scorer) {
        read_labels(b, node, b->labels);
        weft__callback outer = weft__callback_begin(b->w, "the scorer of", "ctc_beam");
        o->scorer(o->user, b->sequence, b->labels, b->nodes[node].length, extra);
        weft__callback_end(b->w, outer);
    }
    for (int64_t c = 0; c < b->C; c++) {
        if (!(extra[c] < HUGE_VAL) && c != o->blank)
            weft__fail(b->w, WEFT_ENUMERIC,
                       "ctc_beam: sequence %lld: the scorer wrote %g for label %lld after %lld labels; "
                       "expected a number or -infinity",
                       (long long)b->sequence, extra[c], (long long)c, (long long)b->nodes[node].length);
        extra[c] = extra[c] == -HUGE_VAL ? extra[c] : o->weight * extra[c] + o->bonus;
    }
}

/* Fills `next` with each prefix continued by a blank or its last label, and `mass` with the paths that add a
 * label. If the longer prefix is kept itself, they count for it. */
static void extend_paths(search *b, const real *log_p)
{
    for (int64_t i = 0; i < b->rows; i++) {
        const kept_prefix *p = &b->now[i];
        const int32_t last = b->nodes[p->node].label;
        const double all = log_add(p->blank, p->label);
        for (int64_t c = 0; c < b->C; c++)
            b->mass[i * b->C + c] = (c == last ? p->blank : all) + (double)log_p[c];
        b->now[i] = (kept_prefix){ p->node, all + (double)log_p[b->o->blank],
                                   last == NONE ? -HUGE_VAL : p->label + (double)log_p[last] };
    }
    for (int64_t i = 0; i < b->rows; i++) {
        const prefix_node *node = &b->nodes[b->now[i].node];
        const int64_t row = node->before == NONE ? NONE : b->nodes[node->before].row;
        double *mass = row == NONE ? NULL : &b->mass[row * b->C + node->label];
        if (mass)
            b->now[i].label = log_add(b->now[i].label, *mass), *mass = -HUGE_VAL;
    }
}
/* Keeps the best prefixes of a step. */
static void select_prefixes(search *b)
{
    const int64_t C = b->C;
    b->top.n = 0;
    for (int64_t i = 0; i < b->rows; i++)
        for (int64_t c = 0; c < C; c++) {
            const double score =
                c == b->o->blank ? score_of(b, &b->now[i]) :
                                   b->mass[i * C + c] + b->extra[i * C + c] + b->nodes[b->now[i].node].extra;
            if (score > -HUGE_VAL)
                weft__best_offer(&b->top, score, i * C + c);
        }
    weft__best_sort(&b->top);
    for (int64_t r = 0; r < b->top.n && !b->w->status; r++) {
        const int64_t id = b->top.heap[r].id, i = id / C, c = id % C;
        b->next[r] = b->now[i];
        if (c != b->o->blank)
            b->next[r] = (kept_prefix){ child_of(b, b->now[i].node, (int32_t)c, b->extra[id]), -HUGE_VAL,
                                        b->mass[id] };
        if (c == b->o->blank)
            memcpy(b->next_extra + r * C, b->extra + i * C, (size_t)C * sizeof *b->extra);
        else
            set_extra(b, b->next[r].node, b->next_extra + r * C);
    }
}
static void take_step(search *b, const real *log_p)
{
    extend_paths(b, log_p);
    select_prefixes(b);
    if (b->w->status)
        return;
    kept_prefix *now = b->next;
    double *extra = b->next_extra;
    for (int64_t i = 0; i < b->rows; i++)
        b->nodes[b->now[i].node].row = NONE;
    b->next = b->now, b->now = now, b->next_extra = b->extra, b->extra = extra, b->rows = b->top.n;
    for (int64_t i = 0; i < b->rows; i++)
        b->nodes[now[i].node].row = i;
}

static void search_sequence(search *b, int64_t s, int64_t steps, const real *log_p, weft_decoded *d)
{
    b->sequence = s, b->count = b->rows = 1;
    b->nodes[ROOT] = (prefix_node){ NONE, NONE, NONE, 0, 0, NONE, 0 };
    b->now[0] = (kept_prefix){ ROOT, 0, -HUGE_VAL };
    bool sound = true;
    set_extra(b, ROOT, b->extra);
    for (int64_t t = 0; t < steps && !b->w->status; t++) {
        sound = sound && !isnan(log_p[t * b->C]); /* then the whole row is NaN */
        take_step(b, log_p + t * b->C);
    }
    for (int64_t i = 0; i < d->best; i++) {
        const int64_t at = s * d->best + i;
        d->len[at] = i < b->rows ? (int32_t)b->nodes[b->now[i].node].length : -1;
        d->score[at] = !sound ? (double)NAN : i < b->rows ? score_of(b, &b->now[i]) : -HUGE_VAL;
        if (i < b->rows)
            read_labels(b, b->now[i].node, d->tokens + at * d->limit);
    }
}
static void decode_beams(weft_tensor *x, const weft_ctc_beam_opts *o, weft_decoded *d)
{
    weft *w = x->w;
    const weft_batch *batch = x->f.batch;
    const int64_t K = o->beams, C = x->f.size[1], longest = batch->longest;
#define ROOM(type, n) weft__take(w, WEFT__ARENA_CALLS, (n) * (int64_t)sizeof(type))
    real *log_p = ROOM(real, batch->tokens * C + 1);
    search b = { .w = w, .o = o, .C = C, .nodes = ROOM(prefix_node, longest * K + 1) };
    b.now = ROOM(kept_prefix, K), b.next = ROOM(kept_prefix, K), b.labels = ROOM(int32_t, longest + 1);
    b.mass = ROOM(double, K *C), b.extra = ROOM(double, K *C), b.next_extra = ROOM(double, K *C);
    b.top.heap = ROOM(weft__scored, K), b.top.k = K;
#undef ROOM
    if (w->status)
        return;
    weft_read_sequences(x, log_p, (size_t)(batch->tokens * C) * sizeof *log_p);
    for (int64_t s = 0; s < batch->n && !w->status; s++)
        search_sequence(&b, s, batch->len[s], log_p + batch->offset.host[s] * C, d);
}

/* ---- both ---- */
typedef void decoder(weft_tensor *log_p, const weft_ctc_beam_opts *, weft_decoded *);
static weft_decoded decode(weft_tensor *logits, const char *name, const weft_ctc_beam_opts *o, decoder *run)
{
    weft *w = weft__context(LIST(logits));
    weft_decoded d = { 0 };
    if (weft_ok(w))
        check(w, name, logits, o);
    if (!weft_ok(w))
        return d;
    const weft_mark mark = weft_mark_here(w);
    const weft_batch *b = logits->f.batch;
    d = (weft_decoded){ .n = b->n, .best = o->best, .limit = b->longest ? b->longest : 1 };
    const size_t n = ((size_t)b->n + !b->n) * (size_t)o->best; /* calloc checks the products */
    d.tokens = calloc(n, (size_t)d.limit * sizeof *d.tokens);
    d.len = calloc(n, sizeof *d.len);
    d.score = calloc(n, sizeof *d.score);
    if (!d.tokens || !d.len || !d.score)
        weft__fail(w, WEFT_ENOMEM, "%s: out of memory: %lld sequences", name, (long long)b->n);
    WEFT_NO_GRAD(w)
    {
        weft_tensor *log_p = weft_log_softmax(logits, -1, NULL);
        if (!w->status)
            run(log_p, o, &d);
    }
    for (int64_t s = 0; s < b->n * d.best && !w->status; s++)
        if (isnan(d.score[s]))
            weft__fail(w, WEFT_ENUMERIC, "%s: sequence %lld: a logit is NaN; expected numbers", name,
                       (long long)(s / d.best));
    weft_rewind(w, mark);
    if (!weft_ok(w))
        weft_decoded_free(&d);
    return d;
}

weft_decoded weft_ctc_greedy(weft_tensor *logits, int32_t blank)
{
    return decode(logits, "ctc_greedy", &(weft_ctc_beam_opts){ .blank = blank, .beams = 1, .best = 1 },
                  decode_greedily);
}

weft_decoded weft_ctc_beam(weft_tensor *logits, const weft_ctc_beam_opts *opts)
{
    weft_ctc_beam_opts o = opts ? *opts : (weft_ctc_beam_opts){ 0 };
    o.beams = o.beams ? o.beams : 16, o.best = o.best ? o.best : 1, o.weight = weft__or(o.weight, 1);
    return decode(logits, "ctc_beam", &o, decode_beams);
}
