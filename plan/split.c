/* split.c - splits a plan into parts with the same number of batches: by rows into shards, so that the states
 * of a row stay in its shard, or each segment into chunks for the ranks of context parallelism. */
#include "plan/plan.h"

typedef struct {
    const weft_plan *p;
    int64_t shards, rows;                        /* rows: the largest number of a batch */
    int32_t *local;                              /* [segments] number in the batch of its shard */
    weft_plan *out;
} split;

/* Neighbouring rows share a shard, as evenly as possible. */
static int64_t shard_of(const split *t, int64_t row) { return row * t->shards / t->rows; }
static int64_t first_row(const split *t, int64_t shard)
{
    return (shard * t->rows + t->shards - 1) / t->shards;
}

/* Returns the number of rows of a batch in a shard. */
static int64_t rows_of(const split *t, int64_t batch, int64_t shard)
{
    int64_t rows = t->p->batch[batch].rows, from = first_row(t, shard), end = first_row(t, shard + 1);
    end = end < rows ? end : rows;
    return end > from ? end - from : 0;
}

/* Translates the carry of segment i into its shard's numbers; *carry is -1 if it carries no state. */
static weft_status carry_of(const split *t, int64_t batch, int64_t i, int32_t *carry)
{
    const weft_segment *s = t->p->segment + i, *from;
    *carry = -1;
    if (s->carry < 0)
        return WEFT_OK;
    const weft_plan_batch *before = batch ? t->p->batch + batch - 1 : NULL;
    if (!before || s->carry >= before->n)
        return weft_plan_refuse(WEFT_EFORMAT,
                                "plan_split: batch %lld, row %d carries the state of segment %d of the batch "
                                "before; expected a segment below %lld",
                                (long long)batch, (int)s->row, (int)s->carry,
                                (long long)(before ? before->n : 0));
    from = t->p->segment + before->first + s->carry;
    if (shard_of(t, from->row) != shard_of(t, s->row))
        return weft_plan_refuse(WEFT_EARG,
                                "plan_split: batch %lld, row %d, in shard %lld, carries the state of row %d "
                                "of the batch before, in shard %lld; expected both rows in one shard",
                                (long long)batch, (int)s->row, (long long)shard_of(t, s->row),
                                (int)from->row, (long long)shard_of(t, from->row));
    *carry = t->local[before->first + s->carry];
    return WEFT_OK;
}

static weft_status add_segment(const split *t, int64_t batch, int64_t i)
{
    weft_segment s = t->p->segment[i];
    int64_t shard = shard_of(t, s.row);
    weft_plan *to = t->out + shard;
    weft_status status = carry_of(t, batch, i, &s.carry);
    s.row -= (int32_t)first_row(t, shard);
    status = status == WEFT_OK ? weft_plan_add(to, s) : status;
    t->local[i] = (int32_t)(weft__plan_open(to) - 1);
    return status;
}

static weft_status add_batch(const split *t, int64_t batch)
{
    const weft_plan_batch *b = t->p->batch + batch;
    weft_status s = WEFT_OK;
    for (int64_t i = b->first; i < b->first + b->n && s == WEFT_OK; i++)
        s = add_segment(t, batch, i);
    for (int64_t k = 0; k < t->shards && s == WEFT_OK; k++)
        s = t->p->in_rows ? weft_plan_end_batch(t->out + k, rows_of(t, batch, k), b->width) :
                            weft__plan_end_whole(t->out + k);
    return s;
}

/* Ends the parts: tokens of other parts count as dropped. After a failure frees them. */
static weft_status end_parts(const weft_plan *p, weft_status s, int64_t parts, weft_plan *out)
{
    for (int64_t k = 0; k < parts; k++) {
        weft_plan *o = out + k;
        o->dropped = p->tokens;
        for (int64_t i = 0; i < o->segments; i++)
            o->dropped -= o->segment[i].length;
        o->sequences = p->sequences;
        o->tokens = p->tokens;
        o->not_empty = p->not_empty;
        o->empty = p->empty;
        o->shard = parts > 1 ? (int)k + 1 : 0;
        if (s != WEFT_OK)
            weft_plan_free(o);
    }
    return s;
}

static weft_status deal(const split *t)
{
    weft_status s = WEFT_OK;
    for (int64_t k = 0; k < t->shards; k++) {
        t->out[k].in_rows = t->p->in_rows;
        t->out[k].align = t->p->align;
    }
    for (int64_t b = 0; b < t->p->batches && s == WEFT_OK; b++)
        s = add_batch(t, b);
    return end_parts(t->p, s, t->shards, t->out);
}

/* Empties the parts, and checks the arguments. function: the start of the message, "plan_split: ". */
static weft_status begin_parts(const weft_plan *plan, int parts, weft_plan *out, const char *function)
{
    for (int k = 0; out && k < parts; k++)
        out[k] = (weft_plan){ 0 };
    if (!plan || !out || parts < 1 || plan->shard)
        return weft_plan_refuse(WEFT_EARG, "%sexpected a whole plan, 1 part or more and an array for their "
                                           "plans%s",
                                function, plan && plan->shard ? "; this one is of a shard" : "");
    return weft__plan_is_sound(plan, INT64_MAX, function);
}

weft_status weft_plan_split(const weft_plan *plan, int shards, weft_plan *out)
{
    weft_status s = begin_parts(plan, shards, out, "plan_split: ");
    if (s != WEFT_OK)
        return s;
    int64_t rows = weft__plan_most_rows(plan);
    split t = { .p = plan, .shards = shards, .rows = rows ? rows : 1, .out = out };
    WEFT__PLAN_SCOPE;
    t.local = weft__plan_memory(plan->segments, sizeof *t.local);
    return t.local ? deal(&t) : WEFT_ENOMEM;
}

/* ---- context parallelism ---- */
/* cells: chunks are equal parts of the rounded length. end [ranks, most rows]: the columns where rows end. */
typedef struct {
    const weft_plan *p;
    int64_t ranks, rows;
    bool cells;
    int64_t *end;
    weft_plan *out;
} context;

/* Returns the first token of a chunk of a segment, which may be beyond its last token. */
static int64_t chunk_begin(const context *t, int32_t length, int64_t chunk)
{
    int64_t align = t->p->align, all = t->cells ? (length + align - 1) / align * align : length,
            begin = all * chunk / (2 * t->ranks);
    return begin < length ? begin : length;
}

static weft_status add_chunk(const context *t, int64_t rank, const weft_segment *s, int64_t chunk, bool later)
{
    int64_t begin = chunk_begin(t, s->length, chunk), length = chunk_begin(t, s->length, chunk + 1) - begin,
            *end = t->end + rank * t->rows + s->row, column = *end;
    if (!length && (s->length || rank || later)) /* the first rank has the empty sequences */
        return WEFT_OK;
    if (t->cells) {
        int64_t align = t->p->align, all = (s->length + align - 1) / align * align;
        column = s->column / t->ranks + (later ? all / (2 * t->ranks) : 0);
    }
    *end = column + length;
    return weft_plan_add(t->out + rank, (weft_segment){ s->sequence, column, s->offset + (int32_t)begin,
                                                        (int32_t)length, s->row, -1 });
}

static weft_status cut_batch(const context *t, const weft_plan_batch *b)
{
    weft_status s = WEFT_OK;
    int64_t width = t->cells ? b->width / t->ranks : 0;
    for (int64_t i = 0; i < t->ranks * t->rows; i++)
        t->end[i] = 0;
    for (int64_t i = b->first; i < b->first + b->n && s == WEFT_OK; i++) {
        const weft_segment *from = t->p->segment + i;
        if (from->carry >= 0)
            return weft_plan_refuse(WEFT_EARG,
                                    "plan_split_context: segment %lld carries a state; expected a plan "
                                    "without carried states",
                                    (long long)i);
        for (int64_t r = 0; r < t->ranks && s == WEFT_OK; r++) {
            s = add_chunk(t, r, from, r, false);
            s = s == WEFT_OK ? add_chunk(t, r, from, 2 * t->ranks - 1 - r, true) : s;
        }
    }
    for (int64_t i = 0; i < t->ranks * t->rows; i++)
        width = t->end[i] > width ? t->end[i] : width;
    for (int64_t r = 0; r < t->ranks && s == WEFT_OK; r++)
        s = weft_plan_end_batch(t->out + r, b->rows, width);
    return s;
}

weft_status weft_plan_split_context(const weft_plan *plan, int ranks, weft_plan *out)
{
    weft_status s = begin_parts(plan, ranks, out, "plan_split_context: ");
    if (s != WEFT_OK)
        return s;
    bool cells = plan->align && plan->align % (2 * (int64_t)ranks) == 0;
    context t = { plan, ranks, weft__plan_most_rows(plan), cells, NULL, out };
    WEFT__PLAN_SCOPE;
    t.end = weft__plan_memory(ranks * t.rows, sizeof *t.end);
    s = t.end ? WEFT_OK : WEFT_ENOMEM;
    for (int64_t b = 0; b < plan->batches && s == WEFT_OK; b++)
        s = cut_batch(&t, plan->batch + b);
    for (int r = 0; r < ranks; r++) {
        out[r].in_rows = true;
        out[r].align = t.cells ? plan->align / (2 * ranks) : 0;
    }
    return end_parts(plan, s, ranks, out);
}
