/* plan_run.c - runs a plan: the tokens of a batch, their layout, carried states, and the divisor of a
 * loss. */
#include "plan/plan.h"
#include "io/data/data.h"
#include "plan/run/api_plan_run.h"
#include "rnn/rnn.h"

/* ---- a batch of a plan ---- */
static bool is_batch(weft *w, const weft_plan *p, int64_t batch)
{
    if (!p || batch < 0 || batch >= p->batches)
        weft__fail(w, WEFT_EARG, "plan_step_of: batch %lld; expected one of %s%lld batches", (long long)batch,
                   p ? "" : "no plan, ", (long long)(p ? p->batches : 0));
    else if (p->batch[batch].width > INT32_MAX || p->batch[batch].n >= INT32_MAX)
        weft__fail(w, WEFT_EARG,
                   "plan_step_of: batch %lld has %lld segments in %lld columns; expected fewer than 2^31 - "
                   "1",
                   (long long)batch, (long long)p->batch[batch].n, (long long)p->batch[batch].width);
    return !w->status;
}

static const weft_segment *segments_of(const weft_plan_step *s)
{
    return s->plan->segment + s->plan->batch[s->batch].first;
}

weft_plan_step weft_plan_step_of(weft *w, const weft_plan *plan, int64_t batch)
{
    w = w ? w : weft__no_context();
    weft_plan_step step = { .w = w, .plan = plan, .batch = batch };
    if (w->status || !is_batch(w, plan, batch))
        return step;
    const weft_plan_batch *b = plan->batch + batch;
    int32_t *len = weft__take(w, WEFT__ARENA_CALLS, 4 * b->n * (int64_t)sizeof *len), *offset = len + b->n,
            *row = offset + b->n, *column = row + b->n;
    int64_t *id = weft__take(w, WEFT__ARENA_CALLS, b->n * (int64_t)sizeof *id);
    if (!len || !id)
        return step;
    for (int64_t i = 0; i < b->n; i++) {
        const weft_segment *s = plan->segment + b->first + i;
        len[i] = s->length;
        offset[i] = s->offset;
        id[i] = s->sequence;
        row[i] = s->row;
        column[i] = (int32_t)s->column;
    }
    step.lengths = (weft_lengths){ .n = b->n, .len = len, .id = id, .offset = offset };
    if (plan->in_rows)
        step.placement = (weft_placement){ .rows = b->rows, .width = b->width, .row = row, .column = column };
    return step;
}

/* Returns the step's context, and notes `function` as running in it; NULL if the context has failed. */
static weft *context_of(const weft_plan_step *s, const char *function)
{
    weft *w = s && s->w ? s->w : weft__no_context();
    if (w->status)
        return NULL;
    w->running = function;
    if (!s || !s->plan || !(s->lengths.len || s->plan->batches))
        weft__fail(w, WEFT_EARG, "%s: not a step of a plan; expected one of weft_plan_step_of", function);
    return w->status ? NULL : w;
}

static weft_tensor *nothing(const weft_plan_step *s)
{
    return s && s->w ? &s->w->nil : &weft__no_context()->nil;
}

/* ---- tokens ---- */
static bool has_segment(weft *w, const weft_plan_step *step, const weft_dataset *d, int64_t i)
{
    const weft_segment *s = segments_of(step) + i;
    int64_t n = s->sequence < d->n ? d->len[s->sequence] : -1;
    if (n < 0)
        weft__fail(w, WEFT_EARG,
                   "plan_tokens: segment %lld of the batch is of sequence %lld; expected one of the %lld of "
                   "the data set",
                   (long long)i, (long long)s->sequence, (long long)d->n);
    else if ((int64_t)s->offset + s->length > n || d->offset[s->sequence + 1] - d->offset[s->sequence] != n)
        weft__fail(w, WEFT_EARG,
                   "plan_tokens: segment %lld of the batch has tokens up to %lld of sequence %lld; expected "
                   "at most %lld, as in the data set",
                   (long long)i, (long long)s->offset + s->length, (long long)s->sequence, (long long)n);
    return !w->status;
}

static bool has_segments(weft *w, const weft_plan_step *s, const weft_dataset *d)
{
    if (!d || d->n < 0 || d->columns < 0 || (d->n && (!d->len || !d->offset)))
        weft__fail(w, WEFT_EARG, "plan_tokens: %s",
                   d ? "the data set has no lengths or no offsets; expected both" :
                       "the data set is NULL; expected a data set");
    else if (d->n && d->offset[d->n] && !d->file &&
             !(d->columns ? (const void *)d->rows : (const void *)d->ints))
        weft__fail(w, WEFT_EARG, "plan_tokens: %s is NULL, columns is %lld", d->columns ? "rows" : "ints",
                   (long long)d->columns);
    for (int64_t i = 0; !w->status && i < s->lengths.n; i++)
        has_segment(w, s, d, i);
    return !w->status;
}

static void put_outside(const weft_dataset *d, int64_t n, int32_t outside, void *to)
{
    for (int64_t i = 0; !d->columns && i < n; i++)
        ((int32_t *)to)[i] = outside;
    for (int64_t i = 0; i < n * d->columns; i++)
        ((real *)to)[i] = (real)outside;
}

/* Copies n tokens of a sequence, starting at token t, each of `size` bytes. Fills `outside` beyond its
 * ends. */
static weft_status copy_tokens(const weft_dataset *d, int64_t sequence, int64_t t, int64_t n,
                               int32_t outside, int64_t size, char *to)
{
    int64_t len = d->len[sequence], from = t < 0 ? -t : 0, end = t + n > len ? len - t : n;
    from = from < n ? from : n;
    end = end > from ? end : from;
    put_outside(d, from, outside, to);
    put_outside(d, n - end, outside, to + end * size);
    return end > from ? weft__dataset_rows(d, d->offset[sequence] + t + from, end - from, to + from * size) :
                        WEFT_OK;
}

weft_tensor *weft_plan_tokens(const weft_plan_step *step, const weft_dataset *data, int32_t shift,
                              int32_t outside)
{
    weft *w = context_of(step, "plan_tokens");
    if (!w || !has_segments(w, step, data))
        return nothing(step);
    int64_t tokens = 0, size = data->columns ? data->columns * (int64_t)sizeof(real) : 4, bytes;
    for (int64_t i = 0; i < step->lengths.n; i++)
        tokens += step->lengths.len[i];
    if (__builtin_mul_overflow(tokens, size, &bytes) || bytes > INT64_MAX / 4)
        return weft__fail(w, WEFT_ENOMEM, "plan_tokens: %lld rows of %lld columns", (long long)tokens,
                          (long long)data->columns),
               &w->nil;
    char *rows = weft__take(w, WEFT__ARENA_CALLS, bytes + 1), *next = rows;
    if (!rows)
        return &w->nil;
    for (int64_t i = 0; i < step->lengths.n && !w->status; i++) {
        int64_t n = step->lengths.len[i], t = (int64_t)step->lengths.offset[i] + shift;
        weft_status read = copy_tokens(data, step->lengths.id[i], t, n, outside, size, next);
        if (read)
            weft__fail(w, read, "plan_tokens: %s", weft_file_message());
        next += n * size;
    }
    if (w->status)
        return &w->nil;
    void *values = rows;
    return data->columns ? weft_ragged(w, values, data->columns, &step->lengths) :
                           weft_ragged_ints(w, values, &step->lengths);
}

/* ---- carried states ---- */
/* h, c [stacked, rows + 1, width]: row k is the state that the k-th carrying segment begins with; the last
 * row is zeros. batch: the batch after which they are stored; -1: not known. */
struct weft_carried {
    weft_tensor *h, *c;
    int64_t rows, batch;
    int shard;                                   /* shard of the plan that it was made for */
};
static weft_carried none;

static int64_t carries(const weft_plan *p, int64_t batch)
{
    int64_t n = 0;
    for (int64_t i = 0; batch < p->batches && i < p->batch[batch].n; i++)
        n += p->segment[p->batch[batch].first + i].carry >= 0;
    return n;
}

static bool refuse_two_ways(weft *w, const char *function)
{
    weft__fail(w, WEFT_EARG,
               "%s: the plan carries states, but the layer has two directions; expected one, because the "
               "second starts at a sequence's end, which is in another batch",
               function);
    return false;
}

weft_carried *weft_carried_new(weft_module *m, const char *name, weft_rnn *r, const weft_plan *plan)
{
    weft *w = weft_module_context(m);
    weft__state_form f = weft__state_form_of(r);
    if (!plan || !f.stacked || !name)
        weft__fail(w, WEFT_EARG, "carried_new: expected a name, a layer and a plan");
    else if (weft__plan_is_sound(plan, INT64_MAX, "carried_new: ") != WEFT_OK)
        weft__fail(w, WEFT_EARG, "%s", weft_plan_message());
    int64_t rows = 0;
    for (int64_t b = 0; weft_ok(w) && b < plan->batches; b++) {
        int64_t active = carries(plan, b), in_rows = plan->in_rows ? plan->batch[b].rows : 0;
        if (active && f.two_ways)
            refuse_two_ways(w, "carried_new");
        rows = active > rows ? active : rows;
        rows = in_rows > rows ? in_rows : rows;
    }
    if (!weft_ok(w))
        return &none;
    weft_module *module = weft_submodule_new(m, name);
    weft_carried *kept = weft__layer(module, sizeof *kept);
    if (!kept)
        return weft__finish_layer(module, kept, &none);
    kept->rows = rows;
    kept->batch = -1;
    kept->shard = plan->shard;
    kept->h = weft_buffer(module, "h", WEFT_SHAPE(f.stacked, rows + 1, f.h));
    kept->c = f.c ? weft_buffer(module, "c", WEFT_SHAPE(f.stacked, rows + 1, f.c)) : NULL;
    weft__set_shard(kept->h, plan->shard);
    if (kept->c)
        weft__set_shard(kept->c, plan->shard);
    return weft__finish_layer(module, kept, &none);
}

void weft_carried_set_batch(weft_carried *kept, int64_t batch)
{
    if (kept && kept->h)
        kept->batch = batch < 0 ? -1 : batch;
}

/* Checks that plan and states belong to the current shard; outside shards, that both are of a whole plan. */
static bool in_its_shard(weft *w, const weft_plan *p, const weft_carried *kept)
{
    int at_work = w->shard ? w->shard->number : p->shard;
    if (p->shard == at_work && kept->shard == at_work)
        return true;
    weft__fail(w, WEFT_EARG,
               "rnn_run_plan: shard %d is in progress, the plan is of shard %d, the carried states are of "
               "shard %d (-1: a whole plan); expected the same shard; use the plan that weft_plan_split made "
               "for it, and its own weft_carried",
               at_work - 1, p->shard - 1, kept->shard - 1);
    return false;
}

static bool can_carry(weft *w, const weft_rnn *r, const weft_plan_step *s, const weft_carried *kept)
{
    int64_t current = carries(s->plan, s->batch), following = carries(s->plan, s->batch + 1);
    weft__state_form f = weft__state_form_of(r);
    if (!current && !following)
        return true;
    if (f.two_ways)
        return refuse_two_ways(w, "rnn_run_plan");
    if (!kept || !kept->h)
        weft__fail(w, WEFT_EARG, "rnn_run_plan: the plan carries states; expected a weft_carried");
    else if (current > kept->rows || following > kept->rows)
        weft__fail(w, WEFT_EARG,
                   "rnn_run_plan: batch %lld and the next one carry %lld and %lld states; expected at most "
                   "%lld, as in the plan of weft_carried_new",
                   (long long)s->batch, (long long)current, (long long)following, (long long)kept->rows);
    else if (current && kept->batch != s->batch - 1)
        weft__fail(w, WEFT_EARG,
                   "rnn_run_plan: batch %lld carries the states of batch %lld, but weft_carried has those of "
                   "batch %lld (-1: none); expected batches in the order of the plan",
                   (long long)s->batch, (long long)s->batch - 1, (long long)kept->batch);
    return !w->status && in_its_shard(w, s->plan, kept);
}

static weft_state first_states(weft *w, const weft_plan_step *s, const weft_carried *kept)
{
    if (!carries(s->plan, s->batch))
        return WEFT_ZERO_STATE;
    int32_t *from = weft__take(w, WEFT__ARENA_CALLS, s->lengths.n * (int64_t)sizeof *from), k = 0;
    if (!from)
        return WEFT_ZERO_STATE;
    for (int64_t i = 0; i < s->lengths.n; i++)
        from[i] = segments_of(s)[i].carry >= 0 ? k++ : (int32_t)kept->rows;
    return weft_state_select((weft_state){ kept->h, kept->c }, from, s->lengths.n);
}

/* Stores the chosen rows of a state, and fills the rest with zeros. */
static void keep_rows(weft_tensor *kept, weft_tensor *last, const int32_t *from, int64_t rows)
{
    weft *w = last->w;
    int64_t stacked = weft_size(last, 0), wide = weft_size(last, 2);
    weft_tensor *both[] = { last, weft_zeros(w, WEFT_SHAPE(stacked, 1, wide)) };
    weft_state with_zeros = { weft_concat(both, 2, 1), NULL };
    weft_assign(kept, weft_state_select(with_zeros, from, rows + 1).h);
}

/* Stores the states for the next batch. A plan without carries leaves the stored states of another plan
 * unchanged. */
static void keep_states(weft *w, const weft_plan_step *s, weft_state last, weft_carried *kept)
{
    const weft_plan *p = s->plan;
    int64_t k = 0, next = s->batch + 1, rows = kept->rows;
    int32_t *from = weft__take(w, WEFT__ARENA_CALLS, (rows + 1) * (int64_t)sizeof *from);
    for (int64_t i = 0; from && i < p->batch[next].n; i++)
        if (p->segment[p->batch[next].first + i].carry >= 0)
            from[k++] = p->segment[p->batch[next].first + i].carry;
    for (; from && k <= rows; k++)
        from[k] = (int32_t)s->lengths.n;
    if (!from)
        return;
    WEFT_NO_GRAD(w)
    {
        keep_rows(kept->h, last.h, from, rows);
        if (kept->c)
            keep_rows(kept->c, last.c, from, rows);
    }
    if (weft_ok(w))
        kept->batch = s->batch;
}

weft_rnn_out weft_rnn_run_plan(weft_rnn *r, weft_tensor *x, const weft_plan_step *step, weft_carried *kept)
{
    weft *w = context_of(step, "rnn_run_plan");
    weft_tensor *nil = nothing(step);
    if (!w || !can_carry(w, r, step, kept))
        return (weft_rnn_out){ nil, { nil, nil } };
    weft_state first = first_states(w, step, kept);
    x = step->plan->in_rows ? weft_to_rows(x, &step->placement) : weft_to_layout(x, WEFT_PACKED);
    weft_rnn_out out = weft_rnn_run(r, x, first);
    if (weft_ok(w) && carries(step->plan, step->batch + 1))
        keep_states(w, step, out.last, kept);
    return out;
}

/* ---- losses ---- */
weft_tensor *weft_plan_loss(const weft_plan_step *step, weft_loss loss, weft_plan_mean mean)
{
    weft *w = context_of(step, "plan_loss");
    if (!w)
        return nothing(step);
    if (mean == WEFT_MEAN_OF_BATCH)
        return weft_mean_loss(loss);
    const weft_plan *p = step->plan;
    int64_t divisor = mean == WEFT_MEAN_OF_PLAN ? p->tokens - p->dropped : p->not_empty;
    return weft_scale(loss.sum, divisor > 0 ? (double)p->batches / (double)divisor : 0);
}

weft_tensor *weft_plan_weights(const weft_plan_step *step, const int32_t *len)
{
    weft *w = context_of(step, "plan_weights");
    if (!w)
        return nothing(step);
    int64_t tokens = 0;
    for (int64_t i = 0; i < step->lengths.n; i++) {
        tokens += step->lengths.len[i];
        if (!len || len[step->lengths.id[i]] < step->lengths.offset[i] + step->lengths.len[i])
            return weft__fail(w, WEFT_EARG, "plan_weights: other lengths; expected those of the plan"),
                   &w->nil;
    }
    real *weight = weft__take(w, WEFT__ARENA_CALLS, tokens * (int64_t)sizeof *weight), *next = weight;
    if (!weight)
        return &w->nil;
    for (int64_t i = 0; i < step->lengths.n; i++)
        for (int32_t t = 0; t < step->lengths.len[i]; t++)
            *next++ = (real)(1 / (double)len[step->lengths.id[i]]);
    return weft_ragged(w, weight, 0, &step->lengths);
}
