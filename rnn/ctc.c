/* ctc.c - connectionist temporal classification as one operator.
 *
 * The weight of each sequence is an operator of its own, which checks the labels. So the loss can rely on
 * them, also on a GPU, where a fault is only seen at the next wait. The composed form computes the loss step
 * by step in public operators, for second derivatives. */
#include <math.h>
#include "autograd/fused.h"
#include "nn/loss.h"
#include "rnn/api_ctc.h"
#include "nn/lattice.h"

enum { LOGITS, LABELS, WEIGHT }; /* inputs; WEIGHT: the mask, if any, of the weight operator */
enum { LOSS, ALPHA, LSE }; /* results */
typedef struct {
    int32_t blank;
    bool skip, align;
    weft__ints place;
} ctc_opts;

static weft__ctc record_of(const weft_call *c)
{
    const ctc_opts *o = c->attributes;
    const weft_batch *x = c->x[LOGITS]->f.batch, *l = c->x[LABELS]->f.batch;
    return (weft__ctc){ .sequences = x->n,
                        .classes = width(c->x[LOGITS]),
                        .blank = o->blank,
                        .skip = o->skip,
                        .offset = x->offset,
                        .label_offset = l->offset,
                        .place = (const int64_t *)(const void *)o->place.device,
                        .logits = X(c, LOGITS),
                        .labels = I(c, LABELS),
                        .weight = c->n > WEIGHT ? X(c, WEIGHT) : NULL };
}

/* ---- the weight of each sequence ---- */
static bool weight_shape(weft_call *c)
{
    const weft__form *x = &c->x[LOGITS]->f, *l = &c->x[LABELS]->f,
                     *m = c->n > WEIGHT ? &c->x[WEIGHT]->f : NULL;
    const int32_t blank = ((const ctc_opts *)c->attributes)->blank;
    if (!x->batch || !l->batch || x->rank != 2 || l->rank != 1 || x->type != WEFT_REAL ||
        l->type != WEFT_I32 || x->batch->n != l->batch->n)
        return weft__refuse(
            c,
            "expected ragged logits [N, classes] of reals and ragged labels [M] of ints, with "
            "equal numbers of sequences (%lld and %lld)",
            (long long)(x->batch ? x->batch->n : 0), (long long)(l->batch ? l->batch->n : 0));
    if (blank < 0 || blank >= x->size[1])
        return weft__refuse(c, "blank %d; expected one of the classes 0 .. %lld", (int)blank,
                            (long long)x->size[1] - 1);
    if (m && (m->batch || m->type != WEFT_REAL || m->rank != 1 || m->size[0] != x->batch->n))
        return weft__refuse(c, "the mask is not plain [%lld] of reals; expected a factor for each sequence",
                            (long long)x->batch->n);
    weft_op_set_shape(c->y[0], WEFT_REAL, WEFT_SHAPE(x->batch->n));
    return true;
}

/* Describes a fault that a CPU has found. The labels are in host memory. */
static void report(const weft_call *c, const weft__ctc *k, weft__fault f)
{
    weft *w = c->y[0]->w;
    const bool align = ((const ctc_opts *)c->attributes)->align;
    const char *name = align ? "ctc_align" : "ctc";
    const int32_t *at = k->label_offset.host, *step = k->offset.host;
    int64_t s = f.row;
    if (f.below == WEFT__NO_FIT) {
        const long long labels = at[s + 1] - at[s];
        weft__fail(
            w, WEFT_EARG,
            "%s: sequence %lld: %lld labels with %lld repeats need %lld steps, but there are %lld; give more "
            "steps%s",
            name, (long long)s, labels, (long long)f.value - labels, (long long)f.value,
            (long long)(step[s + 1] - step[s]), align ? "" : ", or set skip_infeasible");
        return;
    }
    for (s = 0; at[s + 1] <= f.row;)
        s++;
    weft__fail(w, WEFT_EARG,
               "%s: sequence %lld: label %lld is %lld%s; expected 0 .. %lld without the blank %d", name,
               (long long)s, (long long)f.row - at[s], (long long)f.value,
               f.below == WEFT__IS_BLANK ? ", the blank" : "", (long long)k->classes - 1, (int)k->blank);
}

static void weight_run(weft_call *c)
{
    weft *w = c->y[0]->w;
    weft__ctc k = record_of(c);
    RUN(c, ctc_weight, &k, k.weight, Y(c, 0));
    weft__fault fault = w->dev.fault;
    if (!fault.is || !w->dev.k->synchronous)
        return;
    w->dev.fault = (weft__fault){ 0 };
    report(c, &k, fault);
}

static void describe_ctc(const weft_call *c, char *text, size_t size)
{
    const ctc_opts *o = c->attributes;
    snprintf(text, size, "%sblank=%d", c->op->forward == weight_run ? "the weight of each sequence, " : "",
             (int)o->blank);
}

static const weft_op op_weight = { .name = "ctc",
                                   .layout = WEFT_CONCAT,
                                   .ragged_apart = true,
                                   .no_gradient = true,
                                   .shape = weight_shape,
                                   .forward = weight_run,
                                   .describe = describe_ctc };

/* ---- the loss of each sequence ---- */
/* Reserves the rows of alpha. The forms were checked by the weight. */
static bool loss_shape(weft_call *c)
{
    ctc_opts *o = (ctc_opts *)(uintptr_t)c->attributes;
    weft *w = c->y[0]->w;
    const weft_batch *x = c->x[LOGITS]->f.batch, *l = c->x[LABELS]->f.batch;
    int64_t reals = 0, *place;
    o->place = weft__index(w, 2 * x->n);
    if (!o->place.host)
        return false;
    place = (int64_t *)(void *)weft__index_values(o->place);
    for (int64_t s = 0; s < x->n; s++) {
        place[s] = reals;
        reals += ((int64_t)x->len[s] + 2) * 2 * ((int64_t)l->len[s] + 1);
    }
    weft__upload_index(w, &o->place, 2 * x->n);
    weft_op_set_shape(c->y[LOSS], WEFT_REAL, WEFT_SHAPE(x->n));
    weft_op_set_shape(c->y[ALPHA], WEFT_REAL, WEFT_SHAPE(reals));
    weft_op_set_shape(c->y[LSE], WEFT_REAL, WEFT_SHAPE(x->tokens));
    return true;
}

static void loss_run(weft_call *c)
{
    weft__ctc k = record_of(c);
    k.alpha = Y(c, ALPHA), k.lse = Y(c, LSE);
    RUN(c, ctc, &k, Y(c, LOSS));
}

static void loss_fused(const weft_call *c)
{
    weft__ctc k = record_of(c);
    bool add;
    real *dx = weft_op_dx(c, LOGITS, &add);
    k.alpha = Y(c, ALPHA), k.lse = Y(c, LSE);
    if (dx && weft_op_dy(c, LOSS))
        RUN(c, ctc_back, &k, weft_op_dy(c, LOSS), dx, add);
}

/* ---- composed: rows are [blanks, labels], padded to the pairs of the sequence with most labels ---- */
static const double NEVER = -1e30; /* finite, so that no gradient is NaN */
typedef struct {
    int64_t pairs;
    weft_tensor *emitted, *exists, *may_skip, *starts, *ends;
} states;

/* One sequence: its labels, or none if it does not count. */
typedef struct {
    int64_t n;
    const int32_t *label;
} label_run;
static label_run *labels_of(const weft_call *c, int64_t *pairs)
{
    weft *w = c->y[0]->w;
    const weft_batch *l = c->x[LABELS]->f.batch;
    int32_t *labels = weft__take(w, WEFT__ARENA_CALLS, (l->tokens + 1) * (int64_t)sizeof *labels);
    real *weight = weft__take(w, WEFT__ARENA_CALLS, (l->n + 1) * (int64_t)sizeof *weight);
    label_run *run = weft__take(w, WEFT__ARENA_CALLS, (l->n + 1) * (int64_t)sizeof *run);
    if (!labels || !weight || !run || weft__read(c->x[LABELS], labels, (size_t)l->tokens * sizeof *labels) ||
        weft__read(c->x[WEIGHT], weight, (size_t)l->n * sizeof *weight))
        return NULL;
    *pairs = 1;
    for (int64_t s = 0; s < l->n; s++) {
        run[s] = (label_run){ weight[s] == 0 ? 0 : l->len[s], labels + l->offset.host[s] };
        *pairs = run[s].n >= *pairs ? run[s].n + 1 : *pairs;
    }
    return run;
}

/* Returns log p of each token's states, [N, 2 pairs] in packed order. */
static weft_tensor *emissions(weft_tensor *log_p, const label_run *run, int64_t pairs, int32_t blank)
{
    weft *w = log_p->w;
    const struct weft__rows *rows = weft__rows_of(log_p->f.batch, &log_p->f);
    const int64_t N = log_p->f.size[0], C = log_p->f.size[1];
    if (N * C > INT32_MAX)
        return weft__failed(log_p, WEFT_ESHAPE, "ctc",
                            "second derivatives: expected fewer than 2^31 logits; use fewer sequences");
    int32_t *at = weft__take(w, WEFT__ARENA_CALLS, (N * 2 * pairs + 1) * (int64_t)sizeof *at);
    if (!rows || !at || w->status)
        return &w->nil;
    for (int64_t i = 0; i < N; i++) {
        const label_run l = run[rows->sequence.host[i]];
        for (int64_t j = 0; j < pairs; j++) {
            at[i * 2 * pairs + j] = (int32_t)(i * C + blank);
            at[(i * 2 + 1) * pairs + j] = j < l.n ? (int32_t)(i * C + l.label[j]) : -1;
        }
    }
    weft_tensor *flat = weft_reshape(weft_plain(weft_clamp(log_p, NEVER, HUGE_VAL)), WEFT_SHAPE(N * C, 1));
    return weft_reshape(weft_index_select(flat, weft_ints(w, at, WEFT_SHAPE(N, 2 * pairs))),
                        WEFT_SHAPE(N, 2 * pairs));
}

/* Sets the constants of sequences in packed order: 0 where a state exists, or a blank may be skipped, and
 * where a path may end. */
static void set_constants(weft *w, const weft_batch *b, const label_run *run, states *a)
{
    const int64_t P = a->pairs, n = b->live.host[0];
    real *v = weft__take(w, WEFT__ARENA_CALLS, (5 * n + 2) * P * (int64_t)sizeof *v), *skip = v + 2 * n * P,
         *end = skip + n * P, *start = end + 2 * n * P;
    for (int64_t i = 0; v && i < n; i++)
        for (int64_t j = 0; j < P; j++) {
            const label_run l = run[b->sorted.host[i]];
            v[i * 2 * P + j] = 0;
            v[(i * 2 + 1) * P + j] = j < l.n ? 0 : (real)NEVER;
            skip[i * P + j] = j && j < l.n && l.label[j] != l.label[j - 1] ? 0 : (real)NEVER;
            end[i * 2 * P + j] = j == l.n ? 0 : (real)NEVER;
            end[(i * 2 + 1) * P + j] = j + 1 == l.n ? 0 : (real)NEVER;
        }
    for (int64_t j = 0; v && j < 2 * P; j++)
        start[j] = j % P ? (real)NEVER : 0;
    if (!v)
        return;
    a->starts = weft_reals(w, start, WEFT_SHAPE(2 * P));
    a->exists = weft_reals(w, v, WEFT_SHAPE(n, 2 * P));
    a->may_skip = weft_reals(w, skip, WEFT_SHAPE(n, P));
    a->ends = weft_reals(w, end, WEFT_SHAPE(n, 2 * P));
}

static weft_tensor *ctc_step(void *user, weft_tensor *alpha, int64_t t, int64_t from, int64_t rows)
{
    const states *a = user;
    weft *w = a->emitted->w;
    const int64_t P = a->pairs;
    weft_tensor *emitted =
        weft_add(weft_slice(a->emitted, 0, from, from + rows), weft_slice(a->exists, 0, 0, rows));
    if (t == 0)
        return weft_add(emitted, a->starts);
    weft_tensor *never = weft_full(w, NEVER, WEFT_SHAPE(rows, 1)), *blank = weft_slice(alpha, 1, 0, P);
    weft_tensor *before = weft_concat((weft_tensor *[]){ never, weft_slice(alpha, 1, P, 2 * P - 1) }, 2, 1);
    weft_tensor *second = weft_concat((weft_tensor *[]){ before, blank }, 2, 1);
    weft_tensor *third =
        weft_concat((weft_tensor *[]){ weft_full(w, NEVER, WEFT_SHAPE(rows, P)),
                                       weft_add(before, weft_slice(a->may_skip, 0, 0, rows)) },
                    2, 1);
    weft_tensor *all = weft_stack((weft_tensor *[]){ alpha, second, third }, 3, 0);
    return weft_add(emitted, weft_logsumexp(all, 0, NULL));
}

static weft_tensor *ctc_finish(void *user, weft_tensor *alpha, int64_t m)
{
    const states *a = user;
    (void)m;
    return weft_neg(weft_logsumexp(weft_add(alpha, a->ends), 1, NULL));
}

static void loss_composed(const weft_call *c, weft_tensor **y)
{
    weft *w = c->y[0]->w;
    const ctc_opts *o = c->attributes;
    weft_batch *b = c->x[LOGITS]->f.batch;
    states a = { 0 };
    const label_run *run = labels_of(c, &a.pairs);
    weft_tensor *weight = c->x[WEIGHT];
    weft_tensor *counts = weft__as_column(weft_broadcast_to_tokens(weight, c->x[LOGITS]));
    weft_tensor *x = weft_to_layout(weft_where(counts, c->x[LOGITS], weft_scalar(w, 0)), WEFT_PACKED);
    y[LOSS] = &w->nil;
    if (!run || w->status)
        return;
    if (b->longest) {
        a.emitted = emissions(weft_log_softmax(x, -1, NULL), run, a.pairs, o->blank);
        set_constants(w, b, run, &a);
    }
    if (w->status)
        return;
    weft_tensor *loss = weft__run_lattice(w, b, &(weft__lattice){ &a, ctc_step, ctc_finish });
    weft_tensor *limit = weft_scalar(w, -NEVER / 10);
    loss = weft_where(weft_greater(loss, limit), weft_scalar(w, HUGE_VAL), loss);
    y[LOSS] = weft__given_times(weight, loss);
}

static const weft_op op_ctc = { .name = "ctc",
                                .results = 3,
                                .layout = WEFT_CONCAT,
                                .ragged_apart = true,
                                .shape = loss_shape,
                                .forward = loss_run,
                                .fused = loss_fused,
                                .composed = loss_composed,
                                .describe = describe_ctc };

weft_tensor *weft_ctc_losses(weft_tensor *logits, weft_tensor *labels, const weft_ctc_opts *opts,
                             weft_tensor **weight)
{
    const weft_ctc_opts o = opts ? *opts : (weft_ctc_opts){ 0 };
    const ctc_opts a = { .blank = o.blank, .skip = o.skip_infeasible };
    weft_tensor *x[] = { logits, labels, o.mask };
    x[WEIGHT] = weft__apply(&op_weight, x, o.mask ? 3 : 2, &a, sizeof a)->y[0];
    if (weight)
        *weight = x[WEIGHT];
    return weft_ok(x[WEIGHT]->w) ? weft__apply(&op_ctc, x, 3, &a, sizeof a)->y[LOSS] : x[WEIGHT];
}

weft_loss weft_ctc(weft_tensor *logits, weft_tensor *labels, const weft_ctc_opts *opts)
{
    weft_tensor *weight, *losses = weft_ctc_losses(logits, labels, opts, &weight);
    return weft_ok(weight->w) ? (weft_loss){ weft_sum_all(losses), weft_sum_all(weight) } :
                                (weft_loss){ weight, weight };
}

/* ---- the best path, on the host ---- */
static int32_t class_of_state(const weft__ctc *k, const int32_t *label, int64_t i)
{
    return i % 2 ? label[i / 2] : k->blank;
}
/* Fills score[n] of a step from the step before, in place, and move[n]: by how many states the best
 * path to each moved. State 2 j is the blank before label j, state 2 j + 1 the label. */
static void best_moves(const weft__ctc *k, const int32_t *label, int64_t n, const real *x, double *score,
                       uint8_t *move)
{
    for (int64_t i = n - 1; i >= 0; i--) {
        const bool may_skip = i % 2 && i > 1 && label[i / 2] != label[i / 2 - 1];
        move[i] = 0;
        for (uint8_t m = 1; m <= 1 + may_skip && m <= i; m++)
            if (score[i - m] > score[i - move[i]])
                move[i] = m;
        score[i] = score[i - move[i]] + (double)x[class_of_state(k, label, i)];
    }
}
/* Writes the best path of a sequence. Returns its score, or NaN if a logit is NaN or infinity. score and move
 * are scratch memory. */
static double best_path(const weft__ctc *k, int64_t s, double *score, uint8_t *move, int32_t *path)
{
    const int64_t begin = k->offset.host[s], steps = k->offset.host[s + 1] - begin, C = k->classes;
    const int32_t *label = k->labels + k->label_offset.host[s];
    const int64_t n = 2 * (k->label_offset.host[s + 1] - k->label_offset.host[s]) + 1;
    bool sound = true;
    for (int64_t i = 0; i < n; i++)
        score[i] = i ? -HUGE_VAL : 0; /* as after a blank before the first step */
    for (int64_t t = 0; t < steps; t++) {
        const real *x = k->logits + (begin + t) * C;
        for (int64_t j = 0; j < C; j++)
            sound = sound && x[j] < (real)HUGE_VAL;
        best_moves(k, label, n, x, score, move + t * n);
    }
    int64_t i = n > 1 && score[n - 2] > score[n - 1] ? n - 2 : n - 1;
    const double best = score[i];
    for (int64_t t = steps - 1; t >= 0; t--) {
        path[t] = class_of_state(k, label, i);
        i -= move[t * n + i];
    }
    return sound ? best : (double)NAN;
}

static void align_run(weft_call *c)
{
    weft *w = c->y[0]->w;
    weft__ctc k = record_of(c);
    k.logits = weft_op_data(c->x[LOGITS]), k.labels = weft_op_int_data(c->x[LABELS]);
    const real *weight = weft_op_data(c->x[WEIGHT]); /* on a GPU, where a fault is reported later, 0 */
    const int64_t most = 2 * (int64_t)c->x[LABELS]->f.batch->longest + 1;
    double *score = weft__take(w, WEFT__ARENA_CALLS, most * (int64_t)sizeof *score);
    uint8_t *move = weft__take(w, WEFT__ARENA_CALLS, c->x[LOGITS]->f.batch->longest * most + 1);
    for (int64_t s = 0; s < k.sequences && !w->status; s++) {
        int32_t *path = weft_op_int_data(c->y[0]) + k.offset.host[s];
        const double best = weight[s] == 0 ? 0 : best_path(&k, s, score, move, path);
        if (!isfinite(best))
            weft__fail(w, WEFT_ENUMERIC, "ctc_align: sequence %lld: %s", (long long)s,
                       isnan(best) ? "a logit is NaN or infinity; expected numbers" :
                                     "logits of -infinity leave no path; expected one");
    }
}
static const weft_op op_align = {
    .name = "ctc_align", .layout = WEFT_CONCAT, .ragged_apart = true, .no_gradient = true,
    .shape = weft__path_shape, .forward = align_run, .describe = describe_ctc
};

weft_tensor *weft_ctc_align(weft_tensor *logits, weft_tensor *labels, int32_t blank)
{
    const ctc_opts a = { .blank = blank, .align = true };
    weft_tensor *x[] = { logits, labels, NULL };
    x[WEIGHT] = weft__apply(&op_weight, x, 2, &a, sizeof a)->y[0];
    return weft_ok(x[WEIGHT]->w) ? weft_op_apply(&op_align, x, 3, &a, sizeof a) : x[WEIGHT];
}
