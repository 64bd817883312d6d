/* figures.c - figures of a plan alone: bounds on rows, live rows, variance of lengths. */
#include <stdlib.h>
#include <string.h>
#include "plan/plan.h"

/* ---- bounds on rows ---- */
static int64_t rows_for(int64_t tokens, int64_t capacity)
{
    return tokens / capacity + (tokens % capacity != 0);
}

/* Computes L2 of Martello & Toth (1990), the largest bound over all K up to half a row. Sequences longer than
 * capacity - K need a row each. So do those longer than half a row, but the remaining sequences of K or more
 * may use their gaps; the rest of these needs more rows. order: descending lengths. long_ones: the number of
 * lengths above half a row. sum[i]: tokens of the first i. */
static int64_t martello_toth(const int32_t *len, const int32_t *order, int64_t n, int64_t capacity,
                             const int64_t *sum)
{
    int64_t most = rows_for(sum[n], capacity), long_ones = 0, alone = 0;
    while (long_ones < n && len[order[long_ones]] > capacity / 2)
        long_ones++;
    alone = long_ones;
    for (int64_t end = long_ones, k;; end++) { /* those before `end` are K or longer; K = 0 .. capacity / 2 */
        if (end < n && end + 1 < n && len[order[end + 1]] == len[order[end]])
            continue;
        k = end < n ? len[order[end]] : 0;
        int64_t last = end < n ? end + 1 : n;
        while (alone && len[order[alone - 1]] <= capacity - k)
            alone--;
        while (alone < long_ones && len[order[alone]] > capacity - k)
            alone++;
        int64_t beside = (long_ones - alone) * capacity - (sum[long_ones] - sum[alone]),
                rest = sum[last] - sum[long_ones] - beside,
                rows = long_ones + (rest > 0 ? rows_for(rest, capacity) : 0);
        most = rows > most ? rows : most;
        if (end >= n)
            return most;
    }
}

/* Computes the bounds for the lengths of the segments, rounded up to the plan's align. If sequences are cut,
 * only ceil(tokens / capacity) is a bound. */
static weft_status bounds(const weft_plan *p, int64_t capacity, weft_plan_figures *f)
{
    int64_t n = p->segments, align = p->align ? p->align : 1, *sum = weft__plan_memory(n + 1, sizeof *sum);
    int32_t *order = weft__plan_order(n), *len = weft__plan_memory(n, sizeof *len);
    if (!order || !sum || !len)
        return WEFT_ENOMEM;
    for (int64_t i = 0; i < n; i++) {
        int64_t cells = (p->segment[i].length + align - 1) / align * align;
        len[i] = cells < INT32_MAX ? (int32_t)cells : INT32_MAX;
    }
    if (!weft__plan_sort(len, order, n, true, 0))
        return WEFT_ENOMEM;
    sum[0] = 0;
    for (int64_t i = 0; i < n; i++)
        sum[i + 1] = sum[i] + len[order[i]];
    f->l1 = rows_for(sum[n], capacity);
    f->l2 = f->cuts ? f->l1 : martello_toth(len, order, n, capacity, sum);
    return WEFT_OK;
}

/* ---- live rows ---- */
int64_t weft__plan_tokens_of(const weft_plan *p, int64_t batch)
{
    const weft_plan_batch *b = p->batch + batch;
    int64_t tokens = 0;
    for (int64_t i = b->first; i < b->first + b->n; i++)
        tokens += p->segment[i].length;
    return tokens;
}

int64_t weft__plan_most_segments(const weft_plan *p)
{
    int64_t most = 0;
    for (int64_t b = 0; b < p->batches; b++)
        most = p->batch[b].n > most ? p->batch[b].n : most;
    return most;
}

int64_t weft__plan_most_rows(const weft_plan *p)
{
    int64_t most = 0;
    for (int64_t b = 0; b < p->batches; b++)
        most = p->batch[b].rows > most ? p->batch[b].rows : most;
    return most;
}

int weft__plan_by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Counts the distinct numbers above 0 in a sorted array. */
static int64_t distinct(const int64_t *number, int64_t n)
{
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++)
        found += number[i] > 0 && (!i || number[i] != number[i - 1]);
    return found;
}

/* Lists the rows with a segment in row [segments], sorted, and returns their number. A batch may have far
 * more rows than segments. */
static int64_t number_rows(const weft_plan *p, const weft_plan_batch *b, int64_t *row)
{
    int64_t n = 0;
    for (int64_t i = 0; i < b->n; i++)
        row[i] = p->segment[b->first + i].row;
    qsort(row, (size_t)b->n, sizeof *row, weft__plan_by_number);
    for (int64_t i = 0; i < b->n; i++)
        if (!n || row[i] != row[n - 1])
            row[n++] = row[i];
    return n;
}

/* Scratch with one number for each segment of a batch: row numbers; of each row its end, its tokens and the
 * sum of its squared lengths. */
typedef struct {
    int64_t *row, *ends, *tokens;
    double *squares;
} loads;

/* Counts the distinct lengths above 0 of a batch's rows: only there does the number of live rows change. Adds
 * to the sums of the figures' imbalances: as if each row had the load of the fullest. */
static void measure_rows(const weft_plan *p, const weft_plan_batch *b, const loads *t, weft_plan_figures *f)
{
    bool few = b->rows <= b->n;
    int64_t rows = few ? b->rows : number_rows(p, b, t->row), tokens = 0;
    double squares = 0;
    memset(t->ends, 0, (size_t)rows * sizeof *t->ends);
    memset(t->tokens, 0, (size_t)rows * sizeof *t->tokens);
    memset(t->squares, 0, (size_t)rows * sizeof *t->squares);
    for (int64_t i = b->first; i < b->first + b->n; i++) {
        const weft_segment *s = p->segment + i;
        int64_t end = s->column + s->length, key = s->row,
                k = few ? key :
                          (int64_t *)bsearch(&key, t->row, (size_t)rows, sizeof key, weft__plan_by_number) -
                              t->row;
        t->ends[k] = end > t->ends[k] ? end : t->ends[k];
        t->tokens[k] += s->length;
        t->squares[k] += (double)s->length * s->length;
        tokens = t->tokens[k] > tokens ? t->tokens[k] : tokens;
        squares = t->squares[k] > squares ? t->squares[k] : squares;
    }
    f->imbalance += (double)b->rows * (double)tokens;
    f->imbalance_squares += (double)b->rows * squares;
    qsort(t->ends, (size_t)rows, sizeof *t->ends, weft__plan_by_number);
    f->runs += distinct(t->ends, rows);
}

static weft_status measure_batches(const weft_plan *p, weft_plan_figures *f)
{
    int64_t most = weft__plan_most_segments(p), *room = weft__plan_memory(3 * most, sizeof *room);
    loads t = { room, room + most, room + 2 * most, weft__plan_memory(most, sizeof *t.squares) };
    double squares = 0;
    if (!room || !t.squares)
        return WEFT_ENOMEM;
    for (int64_t b = 0; b < p->batches; b++)
        measure_rows(p, p->batch + b, &t, f);
    for (int64_t i = 0; i < p->segments; i++)
        squares += (double)p->segment[i].length * p->segment[i].length;
    f->imbalance /= f->tokens ? (double)f->tokens : 1;
    f->imbalance_squares /= squares > 0 ? squares : 1;
    return WEFT_OK;
}

/* ---- variance ---- */
/* Returns the between-batch over the total sum of squares of segment lengths. */
static double eta_squared(const weft_plan *p)
{
    double mean = 0, total = 0, between = 0;
    for (int64_t i = 0; i < p->segments; i++)
        mean += p->segment[i].length;
    mean /= p->segments ? (double)p->segments : 1;
    for (int64_t i = 0; i < p->segments; i++)
        total += (p->segment[i].length - mean) * (p->segment[i].length - mean);
    for (int64_t b = 0; b < p->batches; b++) {
        double n = (double)p->batch[b].n, away = n > 0 ? (double)weft__plan_tokens_of(p, b) / n - mean : 0;
        between += n * away * away;
    }
    return total > 0 ? between / total : 0;
}

static void count(const weft_plan *p, weft_plan_figures *f)
{
    f->batches = p->batches;
    f->segments = p->segments;
    f->empty = p->empty;
    f->dropped = p->dropped;
    for (int64_t b = 0; b < p->batches; b++) {
        f->rows += p->batch[b].rows;
        f->steps += p->batch[b].width;
        f->cells += p->batch[b].rows * p->batch[b].width;
    }
    for (int64_t i = 0; i < p->segments; i++) {
        f->tokens += p->segment[i].length;
        f->cuts += p->segment[i].offset > 0;
    }
    f->fill = f->cells ? (double)f->tokens / (double)f->cells : 0;
    f->mean_live = f->steps ? (double)f->tokens / (double)f->steps : 0;
    f->segments_per_row = f->rows ? (double)f->segments / (double)f->rows : 0;
    f->eta2 = eta_squared(p);
}

weft_status weft_plan_measure(const weft_plan *plan, const int32_t *len, int64_t n, int64_t capacity,
                              weft_plan_figures *out)
{
    if (out)
        *out = (weft_plan_figures){ 0 };
    if (!plan || !out || n < 0 || (n && !len) || capacity < 0 || capacity > INT32_MAX)
        return weft_plan_refuse(WEFT_EARG,
                                "plan_measure: %lld sequences, capacity %lld; expected a plan, its lengths, "
                                "a capacity of 0 .. %d and a pointer for figures",
                                (long long)n, (long long)capacity, INT32_MAX);
    weft_status sound = weft__plan_is_sound(plan, n, "plan_measure: ");
    if (sound != WEFT_OK)
        return sound;
    WEFT__PLAN_SCOPE;
    count(plan, out);
    weft_status s = measure_batches(plan, out);
    s = s == WEFT_OK && capacity ? bounds(plan, capacity, out) : s;
    if (s != WEFT_OK)
        *out = (weft_plan_figures){ 0 };
    return s;
}

/* ---- rows with a token at a step ---- */
weft_status weft_plan_batch_sizes(const weft_plan *plan, int64_t batch, int64_t *sizes, int64_t n)
{
    if (!plan || batch < 0 || batch >= plan->batches || n != plan->batch[batch].width || (n && !sizes))
        return weft_plan_refuse(WEFT_EARG,
                                "plan_batch_sizes: expected a plan, one of its batches and an array with a "
                                "number for each of its steps");
    weft_status sound = weft__plan_is_sound(plan, INT64_MAX, "plan_batch_sizes: ");
    if (sound != WEFT_OK)
        return sound;
    const weft_plan_batch *b = plan->batch + batch;
    memset(sizes, 0, (size_t)n * sizeof *sizes);
    for (int64_t i = b->first; i < b->first + b->n; i++) {
        const weft_segment *s = plan->segment + i;
        if (s->length)
            sizes[s->column]++;
        if (s->length && s->column + s->length < n)
            sizes[s->column + s->length]--;
    }
    for (int64_t t = 1; t < n; t++)
        sizes[t] += sizes[t - 1];
    return WEFT_OK;
}

/* Adds the steps of one batch with k live rows to steps[k]. That number changes only at the sorted begins and
 * ends. begin, end [pieces] are scratch. Returns false if more than `most` rows are live, so segments
 * overlap. */
static bool count_batch(const weft_plan *p, const weft_plan_batch *b, int64_t *begin, int64_t *end,
                        int64_t *steps, int64_t most)
{
    int64_t n = 0, column = 0, live = 0;
    for (int64_t i = b->first; i < b->first + b->n; i++) {
        const weft_segment *s = p->segment + i;
        if (s->length) {
            begin[n] = s->column;
            end[n++] = s->column + s->length;
        }
    }
    qsort(begin, (size_t)n, sizeof *begin, weft__plan_by_number);
    qsort(end, (size_t)n, sizeof *end, weft__plan_by_number);
    for (int64_t i = 0, k = 0; k < n;) {
        int64_t next = i < n && begin[i] < end[k] ? begin[i] : end[k];
        steps[live] += next - column;
        column = next;
        for (; k < n && end[k] == column; k++)
            live--;
        for (; i < n && begin[i] == column; i++)
            live++;
        if (live > most)
            return false;
    }
    steps[0] += b->width - column;
    return true;
}

weft_status weft__plan_live(const weft_plan *p, int64_t *steps, int64_t most, const char *function)
{
    WEFT__PLAN_SCOPE;
    int64_t pieces = weft__plan_most_segments(p), *room = weft__plan_memory(2 * pieces, sizeof *room);
    weft_status s = room ? WEFT_OK : WEFT_ENOMEM;
    memset(steps, 0, (size_t)(most + 1) * sizeof *steps);
    for (int64_t b = 0; b < p->batches && s == WEFT_OK; b++)
        if (!count_batch(p, p->batch + b, room, room + pieces, steps, most))
            s = weft_plan_refuse(WEFT_EFORMAT,
                                 "%sbatch %lld: segments overlap; expected at most %lld live rows", function,
                                 (long long)b, (long long)most);
    return s;
}

weft_status weft_plan_live_rows(const weft_plan *plan, int64_t *steps, int64_t n)
{
    weft_status sound = plan ? weft__plan_is_sound(plan, INT64_MAX, "plan_live_rows: ") : WEFT_OK;
    if (sound != WEFT_OK)
        return sound;
    int64_t rows = plan ? weft__plan_most_rows(plan) : 0;
    if (!plan || !steps || n != rows + 1)
        return weft_plan_refuse(WEFT_EARG,
                                "plan_live_rows: expected a plan and an array of %lld numbers, one more than "
                                "rows of a batch",
                                (long long)rows + 1);
    return weft__plan_live(plan, steps, rows, "plan_live_rows: ");
}
