/* update.c - runs a batch shard by shard, and gives all ranks the sums, gradients and results. */
#include <math.h>
#include <string.h>
#include "autograd/fused.h"
#include "parallel/parallel.h"

static const char an_update[] = "an update", its_values[] = "the values of parameters";
enum { LOOK = 100 };                             /* updates between two comparisons of all values */

static const double none_of_them[WEFT_PARALLEL_VALUES];

/* ---- the start ---- */
static bool make_room(weft_parallel *p, int64_t n)
{
    weft__portion *b = &p->batch;
    int64_t shards = p->shards, wide = (int64_t)sizeof *b->id, narrow = (int64_t)sizeof *b->place;
    char *memory = weft__reserve(p->w, &b->memory,
                              (n + shards + 1) * wide + shards * (int64_t)sizeof *b->heap + 4 * n * narrow);
    bool device = !p->w->dev.k->synchronous;
    if (!memory || (device && !weft__device_reserve(p->w, &b->device, (n + 1) * wide)))
        return false;
    b->id = (int64_t *)(void *)memory;
    b->start = b->id + n;
    b->heap = (weft__bin *)(b->start + shards + 1);
    b->place = (int32_t *)(b->heap + shards);
    b->index = b->place + n;
    b->scratch = b->index + n;
    b->device_id = device ? (int64_t *)(void *)b->device.at : NULL;
    return true;
}

static bool batch_is_sound(weft_parallel *p, const int32_t *index, int64_t n, const weft_plan *parts)
{
    weft *w = p->w;
    if (p->state != WEFT__IDLE)
        weft__fail(w, WEFT_EARG, "parallel_begin: the batch before has more shards; expected none; call "
                                 "weft_parallel_next until it returns false");
    else if (n < 0 || n >= INT32_MAX)
        weft__fail(w, WEFT_EARG, "parallel_begin: %lld sequences; expected 0 .. 2^31 - 2", (long long)n);
    for (int64_t i = 0; p->len && !parts && i < n && !w->status; i++) {
        int64_t s = index ? index[i] : i;
        if (s < 0 || s >= p->sequences)
            weft__fail(
                w, WEFT_EARG,
                "parallel_begin: sequence %lld of the batch is number %lld; expected 0 .. %lld, with %lld "
                "lengths",
                (long long)i, (long long)s, (long long)p->sequences - 1, (long long)p->sequences);
    }
    return !w->status;
}

static void cut(weft_parallel *p, const int32_t *index, int64_t n, const weft_plan *parts, int64_t batch)
{
    weft__portion *b = &p->batch;
    b->n = n;
    b->number = batch;
    b->carries = parts && weft__parts_carry(parts, p->shards, batch, batch + 1);
    if (parts)
        weft__deal(p, parts, batch);
    else
        weft__cut(n, index, p->len, p->shards, b->place, b->start, b->heap, b->scratch);
    for (int64_t i = 0; i < n; i++) {
        if (!parts)
            b->index[i] = index ? index[b->place[i]] : b->place[i];
        b->id[i] = b->place[i];
    }
    if (b->device_id && n)
        p->w->dev.k->upload(&p->w->dev, b->device_id, b->id, (size_t)n * sizeof *b->id);
}

/* Starts at this rank's first shard, without gradients. */
static void start(weft_parallel *p)
{
    if (p->batch.learns)
        weft_zero_grad(p->module);
    memset(p->sums, 0, sizeof p->sums);
    memset(p->leaf, 0, sizeof p->leaf);
    memset(p->total, 0, sizeof p->total);
    weft__losses_begin(p);                       /* the context fails if memory is short */
    p->state = WEFT__BETWEEN;
    p->current = p->own_shards.from;
    p->done = 0;
    p->w->random.counted = false;
    p->unfolded = p->n;
    p->transfer = (weft__transfer){ 0 };
    p->results.n = 0;
    p->results.complete = false;
}

/* parts NULL: the sequences are index [n]; otherwise those of the shards' plans. */
static void begin(weft_parallel *p, const int32_t *index, int64_t n, const weft_plan *parts, int64_t batch)
{
    weft *w = p->w;
    bool idle = p->state == WEFT__IDLE;
    if (w->status || !batch_is_sound(p, index, n, parts) || !make_room(p, n)) {
        if (!idle)
            return;
        p->state = WEFT__BETWEEN;                /* weft_parallel_next reports the error to the other ranks,
                                                  * which wait there */
        p->draw = w->random.draw;
        p->batch.n = 0;
        return;
    }
    weft__update_place(p);
    cut(p, index, n, parts, batch);
    p->batch.learns = w->recording;
    p->draw = w->random.draw;
    weft__range s = { 0 };
    p->from = p->n = 0;
    if (weft__next_range(p->module, false, &s))
        p->from = s.from;
    for (; s.n; weft__next_range(p->module, false, &s))
        p->n = s.from + s.n - p->from;
    start(p);
}

static bool enter_function(weft_parallel *p, const char *function)
{
    if (!p || !p->w || weft__callback_refuses(p->w, function))
        return false;
    if (!p->w->status)
        p->w->running = function;
    return true;
}

void weft_parallel_begin(weft_parallel *p, const int32_t *index, int64_t n)
{
    if (enter_function(p, "parallel_begin"))
        begin(p, index, n, NULL, 0);
}

void weft_parallel_begin_plan(weft_parallel *p, const weft_plan *parts, int64_t batch)
{
    if (enter_function(p, "parallel_begin_plan"))
        begin(p, NULL, p->w->status ? 0 : weft__parts_count(p, parts, batch), parts, batch);
}

/* ---- a shard ---- */
static void enter(weft_parallel *p, weft_part *part)
{
    const weft__portion *b = &p->batch;
    int64_t from = b->start[p->current], n = b->start[p->current + 1] - from;
    bool alone = p->shards == 1;
    uint64_t salt = (p->draw + 1) * 0x9E3779B97F4A7C15u ^ ((uint64_t)p->current + 1) * 0xD1342543DE82EF95u;
    *part = (weft_part){ p->current, n, b->index + from, b->place + from };
    p->shard = (weft__shard){ n, b->id + from, (b->device_id ? b->device_id : b->id) + from,
                              alone ? 0 : salt, alone ? 0 : p->current + 1 };
    p->w->random.draw = p->draw;
    weft__shard_begin(p->w, &p->shard);
    p->state = WEFT__AT_SHARD;
}

/* Ends the current shard, or skips an empty one. */
static void leave(weft_parallel *p)
{
    weft *w = p->w;
    w->tape->pass_watch = NULL;
    if (p->state == WEFT__AT_SHARD && p->batch.learns)
        weft__fail(w, WEFT_EARG, "parallel_next: shard %d has no loss; expected one; pass it to "
                                 "weft_parallel_add", p->current);
    uint64_t draw = w->random.draw;
    if (p->state == WEFT__AT_SHARD) {            /* no loss was added, so this was not a step */
        weft_clear(w);
        w->random.draw = draw;
    }
    weft__shard_end(w);
    if (!w->status)
        weft__fold_shard(p);
    p->state = WEFT__BETWEEN;
    p->current++;
}

void weft_parallel_add_values(weft_parallel *p, const double *values, int n)
{
    if (!p || !p->w || p->w->status)
        return;
    if (p->state != WEFT__AT_SHARD || n < 0 || n > WEFT_PARALLEL_VALUES || (n && !values))
        weft__fail(p->w, WEFT_EARG,
                   "parallel_add_values: %d values%s%s; expected 0 .. %d, in a shard before its "
                   "weft_parallel_add",
                   n, values ? "" : ", NULL",
                   p->state == WEFT__AT_SHARD ? "" : ", and no shard is in progress", WEFT_PARALLEL_VALUES);
    for (int i = 0; i < n && !p->w->status; i++)
        p->leaf[WEFT__VALUES + i] += values[i];
}

void weft_parallel_add(weft_parallel *p, weft_loss loss)
{
    if (!p || !p->w || weft__callback_refuses(p->w, "parallel_add"))
        return;
    weft *w = p->w;
    if (p->state != WEFT__AT_SHARD)
        weft__fail(w, WEFT_EARG, "parallel_add: %s; expected one loss for each shard",
                   p->state == WEFT__ADDED ? "the shard already has one" : "no shard is in progress");
    if (p->batch.learns && !w->status) {
        weft__overlap_begin(p);
        weft_backward(p->shards == 1 ? weft_mean_loss(loss) : loss.sum);
        weft__overlap_end(p);
    }
    if (p->state == WEFT__AT_SHARD)
        weft__keep_loss(p, loss);
    weft_clear(w);
    p->state = p->state == WEFT__AT_SHARD ? WEFT__ADDED : p->state;
}

/* ---- the end of a batch ---- */
/* Compares the fingerprints of all ranks; values: those of parameter values as well, at the first and each
 * hundredth update. */
static bool compare_ranks(weft_parallel *p, bool values)
{
    weft *w = p->w;
    int64_t n = 0;
    uint64_t *own = values ? weft__fingerprints_of_values(p, &n) : NULL, all = 0;
    for (int64_t i = 0; own && i < n; i++)
        all = weft__hash_mix(all, own[i]);
    const weft__fingerprint prints[] = {
        { "the batch", weft__fingerprint_of_batch(p) },
        { "the position of a random stream", weft__fingerprint_of_streams(w) },
        { "how many numbers there are to train", (uint64_t)p->n },
        { "whether gradients are enabled", p->batch.learns },
        { "whether dropout is on", w->training },
        { "the options of an optimiser", p->updates ? 0 : weft__fingerprint_of_optimisers(p->module) },
        { its_values, all },
    };
    bool ok = weft__agree(p, an_update, prints, sizeof prints / sizeof *prints);
    if (!ok && p->differs == its_values)
        weft__name_difference(p, an_update, own, n);
    weft__release(w, own);
    return ok;
}

static void add_up(weft_parallel *p)
{
    weft *w = p->w;
    /* An update counts once, whether the program or the next batch ends the step. A single shard counts like
     * a step without shards. */
    w->random.draw = p->shards > 1 ? p->draw + 1 : w->random.draw;
    w->random.counted = p->shards > 1 || p->batch.learns;
    w->running = an_update;
    weft__fold_losses(p);
    weft__sums_reserve(p);  /* without memory the context fails, and weft__agree reports it on all ranks */
    if (p->transfer.broken && !weft__await(p, "gradients of the batch", NULL, 0))
        return;
    if (!compare_ranks(p, p->transport && p->updates % LOOK == 0))
        return;
    p->agreed.from = p->from;
    p->agreed.n = p->n;
    if (!weft__share_sums(p) || !weft__share_results(p) || !p->batch.learns || !p->n || !weft__link_up(p) ||
        !weft__exchange(p))
        return;
    if (p->transfer.base && p->transfer.base != p->module->root->gradients + p->from)
        weft__fail(w, WEFT_EARG, "parallel_next: a parameter was created after weft_parallel_add; expected "
                                 "all parameters before it");
}

/* Completes the batch on all ranks. Returns false if a rank is lost: then this rank repeats its shards. */
static bool complete_batch(weft_parallel *p)
{
    weft *w = p->w;
    if (weft__update_place(p)) {                   /* a rank was lost in a call between two shards */
        if (p->batch.carries)
            weft__fail(w, WEFT_EDEVICE, "parallel_next: lost a rank, with the carried states of its rows");
        return start(p), false;
    }
    weft__begin_call(p);
    add_up(p);
    if (weft__repeat_call(p))
        return start(p), false;
    if (p->batch.learns && p->n && !w->status) {
        if (p->shards > 1)                       /* with one shard weft_mean_loss has divided the loss */
            weft_divide_grad(p->module, weft_scalar(w, p->total[WEFT__WEIGHT]));
        p->updates += !w->status;
    }
    p->state = WEFT__IDLE;
    p->abandoned = false;
    return true;
}

bool weft_parallel_next(weft_parallel *p, weft_part *part)
{
    if (part)
        *part = (weft_part){ 0 };
    if (!p || !p->w || p->state == WEFT__IDLE || weft__callback_refuses(p->w, "parallel_next"))
        return false;
    weft *w = p->w;
    if (!part)
        weft__fail(w, WEFT_EARG, "parallel_next: part is NULL; expected a pointer for the shard");
    if (p->abandoned)
        weft__fail(w, WEFT_EARG, "parallel_next: weft_recover ended the batch before its last shard; "
                                 "expected a batch; call weft_parallel_begin");
    if (p->state != WEFT__BETWEEN)
        leave(p);
    do
        for (; !w->status && p->current < p->own_shards.end; leave(p))
            if (p->batch.start[p->current + 1] > p->batch.start[p->current])
                return enter(p, part), true;
    while (!complete_batch(p));
    return false;
}

double weft_parallel_mean(const weft_parallel *p)
{
    double weight = p ? p->total[WEFT__WEIGHT] : 0;
    return weight != 0 ? p->total[WEFT__LOSS] / weight : (double)NAN;
}

const double *weft_parallel_values(const weft_parallel *p)
{
    return p ? p->total + WEFT__VALUES : none_of_them;
}
