/* ctc_decode.c - decodes CTC on the host, greedily or by prefix beam search (Graves 2012, Hannun 2014).
 *
 * The search keeps the K best prefixes of labels. Each has the log probability of its paths that end in a
 * blank, and in its last label. Prefixes are nodes of a tree, so the paths of equal prefixes are added. */
#include <math.h>
#include <string.h>
#include "autograd/fused.h"
#include "rnn/api_ctc.h"
#include "rnn/decode.h"

static bool is_usable(weft *w, const char *name, const weft_tensor *x, const weft_ctc_beam_opts *o)
{
    if (!WEFT__IS_USABLE(w, x, "%s: logits", name))
        return false;
    if (!x->f.batch || x->f.rank != 2 || x->f.type != WEFT_REAL)
        weft__fail(w, WEFT_ESHAPE, "%s: expected ragged logits [N, classes] of reals", name);
    else if (o->blank < 0 || o->blank >= x->f.size[1])
        weft__fail(w, WEFT_EARG, "%s: blank %d; expected one of the classes 0 .. %lld", name, (int)o->blank,
                   (long long)x->f.size[1] - 1);
    else if (o->beams < 1 || o->beams > 65536 || o->best < 1 || o->best > o->beams || !isfinite(o->weight) ||
             !isfinite(o->bonus))
        weft__fail(w, WEFT_EARG,
                   "%s: beams %d, best %d, weight %g, bonus %g; expected beams 1 .. 65536, best 1 .. beams, "
                   "finite numbers",
                   name, o->beams, o->best, o->weight, o->bonus);
    return !w->status;
}

/* ---- prefix beam search ---- */
enum { ROOT = 0, NONE = -1 };
/* A prefix: that of `before`, then a label. row: its row if it is kept. extra: the part of its score without
 * the logits. */
typedef struct { int64_t before, child, sibling, length, row; int32_t label; double extra; } prefix_node;
/* Log probability of the paths that end in a blank, and in the last label. */
typedef struct { int64_t node; double blank, label; } kept_prefix;
typedef struct {
    weft *w;
    const char *name;
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
        (prefix_node){ before, NONE, parent->child, parent->length + 1, 0, label, parent->extra + extra };
    return parent->child = b->count++;
}
static void read_labels(const search *b, int64_t node, int32_t *to)
{
    for (int64_t i = b->nodes[node].length; i > 0; node = b->nodes[node].before)
        to[--i] = b->nodes[node].label;
}

/* Fills extra [C]: each next label adds this number to the score of a prefix. */
static void set_extra(search *b, int64_t node, double *extra)
{
    const weft_ctc_beam_opts *o = b->o;
    memset(extra, 0, (size_t)b->C * sizeof *extra);
    if (o->scorer && !b->w->status) {
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

/* Continues each prefix by a blank or its last label, and fills `mass` with the paths that add a label. If
 * the longer prefix is kept itself, they count for it. */
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
        const int64_t row = node->before == NONE ? b->rows : b->nodes[node->before].row;
        double *mass = &b->mass[row * b->C + node->label];
        if (row < b->rows && b->now[row].node == node->before)
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
            if (score != -HUGE_VAL) /* NaN stays */
                weft__best_offer(&b->top, score, i * C + c);
        }
    weft__best_sort(&b->top);
    for (int64_t r = 0; r < b->top.n; r++) {
        const int64_t id = b->top.heap[r].id, i = id / C, c = id % C;
        b->next[r] = b->now[i];
        if (c == b->o->blank) {
            memcpy(b->next_extra + r * C, b->extra + i * C, (size_t)C * sizeof *b->extra);
        } else {
            const int64_t node = child_of(b, b->now[i].node, (int32_t)c, b->extra[id]);
            b->next[r] = (kept_prefix){ node, -HUGE_VAL, b->mass[id] };
            set_extra(b, node, b->next_extra + r * C);
        }
        b->nodes[b->next[r].node].row = r;
    }
    kept_prefix *now = b->next;
    double *extra = b->next_extra;
    b->next = b->now;
    b->now = now;
    b->next_extra = b->extra;
    b->extra = extra;
    b->rows = b->top.n;
}

static void search_sequence(search *b, int64_t s, int64_t steps, const real *log_p, weft_decoded *d)
{
    b->sequence = s;
    b->count = b->rows = 1;
    b->nodes[ROOT] = (prefix_node){ NONE, NONE, NONE, 0, 0, NONE, 0 };
    b->now[0] = (kept_prefix){ ROOT, 0, -HUGE_VAL };
    set_extra(b, ROOT, b->extra);
    for (int64_t t = 0; t < steps && !b->w->status; t++) {
        extend_paths(b, log_p + t * b->C);
        select_prefixes(b);
    }
    for (int64_t i = 0; i < d->best; i++) {
        const int64_t at = s * d->best + i;
        d->len[at] = i < b->rows ? (int32_t)b->nodes[b->now[i].node].length : -1;
        d->score[at] = i < b->rows ? score_of(b, &b->now[i]) : -HUGE_VAL;
        if (i < b->rows)
            read_labels(b, b->now[i].node, d->tokens + at * d->limit);
    }
}
static bool begin_search(search *b, int64_t longest)
{
    weft *w = b->w;
    const int64_t K = b->o->beams, prefix = (int64_t)sizeof *b->now,
                  scores = K * b->C * (int64_t)sizeof(double);
    b->nodes = weft__take(w, WEFT__ARENA_CALLS, (longest * K + 1) * (int64_t)sizeof *b->nodes);
    b->now = weft__take(w, WEFT__ARENA_CALLS, K * prefix),
    b->next = weft__take(w, WEFT__ARENA_CALLS, K * prefix);
    b->mass = weft__take(w, WEFT__ARENA_CALLS, scores), b->extra = weft__take(w, WEFT__ARENA_CALLS, scores);
    b->next_extra = weft__take(w, WEFT__ARENA_CALLS, scores);
    b->labels = weft__take(w, WEFT__ARENA_CALLS, (longest + 1) * (int64_t)sizeof *b->labels);
    b->top.heap = weft__take(w, WEFT__ARENA_CALLS, K * (int64_t)sizeof *b->top.heap), b->top.k = K;
    return !w->status;
}

/* ---- greedy ---- */
static void decode_greedily(search *b, int64_t s, int64_t steps, const real *log_p, weft_decoded *d)
{
    const int32_t blank = b->o->blank;
    for (int32_t t = 0, before = blank, best; t < steps; t++, before = best, log_p += b->C) {
        best = 0;
        for (int32_t c = 1; c < b->C; c++)
            best = log_p[c] > log_p[best] ? c : best;
        d->score[s] += (double)log_p[best];
        if (best != blank && best != before)
            d->tokens[s * d->limit + d->len[s]++] = best;
    }
}

/* ---- both ---- */
/* Decodes sequence s with log_p [steps, classes]. */
typedef void decoder(search *b, int64_t s, int64_t steps, const real *log_p, weft_decoded *d);
static void decode_all(search *b, weft_tensor *logits, decoder *run, weft_decoded *d)
{
    weft *w = b->w;
    const weft_batch *batch = logits->f.batch;
    real *log_p = weft__take(w, WEFT__ARENA_CALLS, (batch->tokens * b->C + 1) * (int64_t)sizeof *log_p);
    if (!log_p || (run == search_sequence && !begin_search(b, batch->longest)))
        return;
    weft_read_sequences(weft_log_softmax(logits, -1, NULL), log_p,
                        (size_t)(batch->tokens * b->C) * sizeof *log_p);
    for (int64_t s = 0; s < d->n && !w->status; s++) {
        run(b, s, batch->len[s], log_p + batch->offset.host[s] * b->C, d);
        if (isnan(d->score[s * d->best]))
            weft__fail(w, WEFT_ENUMERIC, "%s: sequence %lld: a logit is NaN; expected numbers", b->name,
                       (long long)s);
    }
}
static weft_decoded decode(weft_tensor *logits, const char *name, const weft_ctc_beam_opts *o, decoder *run)
{
    weft *w = weft__context(LIST(logits));
    weft_decoded d = { 0 };
    if (!weft_ok(w) || !is_usable(w, name, logits, o))
        return d;
    const weft_mark mark = weft_mark_here(w);
    const weft_batch *b = logits->f.batch;
    d = (weft_decoded){ .n = b->n, .best = o->best, .limit = b->longest ? b->longest : 1 };
    WEFT_NO_GRAD(w)
    if (weft__decoded_new(w, name, &d))
        decode_all(&(search){ .w = w, .name = name, .o = o, .C = logits->f.size[1] }, logits, run, &d);
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
    o.beams = o.beams ? o.beams : 16;
    o.best = o.best ? o.best : 1;
    o.weight = weft__or(o.weight, 1);
    return decode(logits, "ctc_beam", &o, search_sequence);
}
