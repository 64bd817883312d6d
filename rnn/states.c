/* states.c - converts between states in the user's order and rows in packed order.
 *
 * The recurrent operator needs first states with the longest sequence first. The user's states are in the
 * user's order, stacked over layers and directions. Each conversion is a gather of n rows. The last state of
 * a sequence is the row of its last token, or in reverse of its first. An empty sequence keeps its first
 * state. */
#include "autograd/fused.h"
#include "rnn/rnn.h"

/* ---- index arrays ---- */
static void fill_stacks(const weft__state_map *e, int stacked)
{
    const weft_batch *b = e->batch;
    int32_t *order = weft__index_values(e->order), *empty = weft__index_values(e->empty);
    for (int64_t k = 0; k < stacked; k++)
        for (int64_t s = 0; s < b->n; s++) {
            order[k * e->stride + s] = (int32_t)(k * b->n + b->sorted.host[s]);
            if (empty)
                empty[k * e->stride + s] = b->len[s] ? -1 : (int32_t)(k * b->n + s);
        }
}

static void fill_last(const weft__state_map *e, bool reverse)
{
    const weft_batch *b = e->batch;
    const weft__form x = { .batch = (weft_batch *)(uintptr_t)b, .layout = e->layout, .place = e->place };
    int32_t *last = weft__index_values(e->last[reverse]);
    for (int64_t s = 0; s < b->n; s++)
        last[s] = b->len[s] ? (int32_t)weft__row_of(b, &x, s, reverse ? 0 : b->len[s] - 1) : -1;
}

static weft__state_map *ends_new(weft *w, const weft__form *x, int stacked)
{
    const weft_batch *b = x->batch;
    /* Every part begins on a cache line, as tensors do. */
    int64_t stride = (b->n + 15) / 16 * 16, all = stride * stacked;
    weft__state_map *e = weft__take(w, WEFT__ARENA_BATCHES, sizeof *e);
    if (!e || all >= INT32_MAX) {
        weft__fail(w, WEFT_EARG,
                   "rnn: %d states for each of %lld sequences; expected fewer than 2^31. Split the batch",
                   stacked, (long long)b->n);
        return NULL;
    }
    *e = (weft__state_map){ NULL, b, x->layout, x->place, stacked, stride, .empty = { NULL, NULL } };
    /* The arrays are allocated and sent in the same order, so one copy sends them. */
    struct { weft__ints *index; int64_t n;
    } needed[] = { { &e->order, all }, { &e->last[0], b->n }, { &e->last[1], b->n }, { &e->empty, all } };
    const int several = b->n > (b->longest ? b->live.host[0] : 0) ? 4 : 3; /* 4: some are empty */
    for (int i = 0; i < several; i++)
        *needed[i].index = weft__index(w, needed[i].n);
    if (w->status)
        return NULL;
    fill_stacks(e, stacked), fill_last(e, false), fill_last(e, true);
    for (int i = 0; i < several; i++)
        weft__upload_index(w, needed[i].index, needed[i].n);
    return e;
}

const weft__state_map *weft__state_map_of(const weft__form *x, int stacked)
{
    weft_batch *b = x->batch;
    for (weft__state_map *e = b->slot; e; e = e->next)
        if (e->layout == x->layout && e->place == x->place && e->stacked == stacked)
            return e;
    weft__state_map *e = ends_new(b->w, x, stacked);
    if (!e)
        return NULL;
    e->next = b->slot;
    return weft__set_undoable(b->w, &b->slot, e) ? e : NULL;
}

/* ---- gather by a part of an index array ---- */
weft_tensor *weft__select_rows(weft_tensor *rows, weft__ints index, int64_t from, int64_t n)
{
    weft *w = rows->w;
    weft__form f = weft__plain(WEFT_I32, 1, &n);
    weft_tensor *t = weft__header(w, &f);
    if (!t)
        return &w->nil;
    t->data = (real *)(void *)((int32_t *)(uintptr_t)index.device + from);
    return weft_index_select(rows, t);
}

weft_tensor *weft__rows_of_stack(weft_tensor *stack)
{
    return weft_reshape(stack, WEFT_SHAPE(weft_size(stack, 0) * weft_size(stack, 1), weft_size(stack, 2)));
}

/* ---- for beams ---- */
static bool parents_are_possible(weft *w, const weft_tensor *stack, const int32_t *parent, int64_t n)
{
    w->running = "state_select";
    if (!WEFT__IS_USABLE(w, stack, "state_select: the state"))
        return false;
    if (stack->f.rank != 3 || stack->f.batch || stack->f.type != WEFT_REAL)
        weft__fail(
            w, WEFT_ESHAPE,
            "state_select: the state is %s; expected plain [layers * directions, sequences, width] of reals",
            WEFT__TEXT(&stack->f));
    else if (n < 0 || (n && !parent) || (stack->f.size[0] && n > INT32_MAX / stack->f.size[0]))
        weft__fail(w, WEFT_EARG,
                   "state_select: %lld parents%s; expected 0 or more, fewer than 2^31 with layers",
                   (long long)n, parent ? "" : ", NULL");
    for (int64_t j = 0; j < n && !w->status; j++)
        if (parent[j] < 0 || parent[j] >= stack->f.size[1])
            weft__fail(w, WEFT_EARG, "state_select: parent[%lld] is %d; expected 0 .. %lld", (long long)j,
                       parent[j], (long long)stack->f.size[1] - 1);
    return !w->status;
}

static weft_tensor *select_states(weft *w, weft_tensor *stack, const int32_t *parent, int64_t n)
{
    if (!parents_are_possible(w, stack, parent, n))
        return &w->nil;
    int64_t stacked = stack->f.size[0], rows = stack->f.size[1];
    int32_t *index = weft__take(w, WEFT__ARENA_CALLS, stacked * n * (int64_t)sizeof *index);
    if (!index)
        return &w->nil;
    for (int64_t k = 0; k < stacked; k++)
        for (int64_t j = 0; j < n; j++)
            index[k * n + j] = (int32_t)(k * rows + parent[j]);
    weft_tensor *chosen =
        weft_index_select(weft__rows_of_stack(stack), weft_ints(w, index, WEFT_SHAPE(stacked * n)));
    return weft_reshape(chosen, WEFT_SHAPE(stacked, n, stack->f.size[2]));
}

weft_state weft_state_select(weft_state s, const int32_t *parent, int64_t n)
{
    weft *w = weft__context(LIST(s.h, s.c));
    return (weft_state){ s.h ? select_states(w, s.h, parent, n) : NULL,
                         s.c ? select_states(w, s.c, parent, n) : NULL };
}
