/* state_rows.c - two operators that move states between stacks [stacked, n, width] and packed rows. Each
 * moves h and c of all layers and directions in one launch, instead of one gather for each part. */
#include "autograd/fused.h"
#include "rnn/rnn.h"

enum { STATES = WEFT__STATES, PARTS = 64 };      /* maximum layers times directions */
typedef weft__state_move move;
static const move *attributes_of(const weft_call *c) { return c->attributes; }
static int64_t width_of(const weft_tensor *x)   { return x->f.size[x->f.rank - 1]; }

/* Adds a block with one row for each sequence. */
static void move_rows(const weft_call *c, weft__blocks *all, int64_t width, const real *x, real *y, bool add,
                      const int32_t *from, const int32_t *to)
{
    weft__add_block(c, all,
                    (weft__block_copy){ .rows = attributes_of(c)->e->batch->n,
                                        .width = width,
                                        .x = x,
                                        .ldx = width,
                                        .y = y,
                                        .ldy = width,
                                        .add = add,
                                        .from = from,
                                        .to = to });
}

/* ---- first states: part k of the stacks, in packed order ---- */
static const int32_t *packed_order(const weft_call *c)
{
    const weft__state_map *e = attributes_of(c)->e;
    return e->order.device + attributes_of(c)->k * e->stride;
}
static bool first_shape(weft_call *c)
{
    for (int s = 0; s < c->n; s++)
        weft_op_set_shape(c->y[s], WEFT_REAL, WEFT_SHAPE(attributes_of(c)->e->batch->n, width_of(c->x[s])));
    return true;
}
static void first_run(weft_call *c)
{
    weft__blocks all = { 0 };
    for (int s = 0; s < c->n; s++)
        move_rows(c, &all, width_of(c->x[s]), X(c, s), Y(c, s), false, packed_order(c), NULL);
    weft__run_blocks(c, &all);
}
static void first_fused(const weft_call *c)
{
    weft__blocks all = { 0 };
    for (int s = 0; s < c->n; s++) {
        bool add;
        const int64_t width = width_of(c->x[s]), of_part = attributes_of(c)->e->batch->n * width;
        const int64_t before = attributes_of(c)->k * of_part, behind = count(c->x[s]) - before - of_part;
        const real *dy = weft_op_dy(c, s);
        real *dx = dy ? weft_op_dx(c, s, &add) : NULL;
        if (!dx)
            continue;
        if (!add && before)                      /* order contains each row of the part */
            weft__add_zeros(c, &all, dx, before);
        if (!add && behind > 0)
            weft__add_zeros(c, &all, dx + before + of_part, behind);
        move_rows(c, &all, width, dy, dx, add, NULL, packed_order(c));
    }
    weft__run_blocks(c, &all);
}
static void first_composed(const weft_call *c, weft_tensor **y)
{
    for (int s = 0; s < c->n; s++)
        y[s] = weft__select_rows(weft__rows_of_stack(c->x[s]), attributes_of(c)->e->order,
                                 attributes_of(c)->k * attributes_of(c)->e->stride,
                                 attributes_of(c)->e->batch->n);
}

/* ---- last states: stacks in the user's order. Inputs: h of each part, c of each, given states ---- */
static bool last_shape(weft_call *c)
{
    const move *m = attributes_of(c);
    for (int s = 0; s < m->states; s++)
        weft_op_set_shape(c->y[s], WEFT_REAL,
                          WEFT_SHAPE(m->parts, m->e->batch->n, width_of(c->x[s * m->parts])));
    return true;
}
static int given_input(const weft_call *c, int s)   /* -1: not given */
{
    const move *m = attributes_of(c);
    return m->given[s] ? m->states * m->parts + (s > 0 && m->given[0]) : -1;
}
static const int32_t *last_rows(const move *m, int k)  { return m->e->last[k % m->directions].device; }
static const int32_t *empty_rows(const move *m, int k) { return m->e->empty.device + k * m->e->stride; }
static void last_run(weft_call *c)
{
    const move *m = attributes_of(c);
    weft__blocks all = { 0 };
    for (int given = 0; given < 2; given++, weft__run_blocks(c, &all))
        for (int s = 0; s < m->states; s++) {
            const int64_t width = width_of(c->y[s]), of_part = m->e->batch->n * width;
            for (int k = 0; k < m->parts; k++)
                if (!given)
                    move_rows(c, &all, width, X(c, s * m->parts + k), Y(c, s) + k * of_part, false,
                             last_rows(m, k), NULL);
                else if (m->given[s])
                    move_rows(c, &all, width, X(c, given_input(c, s)), Y(c, s) + k * of_part, true,
                             empty_rows(m, k), NULL);
        }
}
/* Moves gradients of state s to those of its parts, dx, and of the given state. */
static void last_back(const weft_call *c, weft__blocks *all, int s, real *const *dx, real *given)
{
    const move *m = attributes_of(c);
    const real *dy = weft_op_dy(c, s);
    const int64_t width = width_of(c->y[s]), of_part = m->e->batch->n * width;
    for (int k = 0; dy && k < m->parts; k++)
        if (dx[k])
            move_rows(c, all, width, dy + k * of_part, dx[k], true, NULL, last_rows(m, k));
    for (int k = 0; dy && given && k < m->parts; k++)
        move_rows(c, all, width, dy + k * of_part, given, true, NULL, empty_rows(m, k));
}
/* Returns the gradient of input k for a caller that adds to each row once. */
static real *rows_added(const weft_call *c, int k, weft__blocks *zeros)
{
    bool add;
    real *dx = weft__dx_whole(c, k, &add);
    if (dx && !add)
        weft__add_zeros(c, zeros, dx, count(c->x[k]));
    return dx;
}
static void last_fused(const weft_call *c)
{
    const move *m = attributes_of(c);
    weft__blocks all = { 0 };
    weft__blocks zeros = { 0 };
    real *dx[STATES * PARTS] = { NULL }, *given[STATES] = { NULL };
    for (int s = 0; s < m->states; s++) {
        const bool has_dy = weft_op_dy(c, s);
        for (int k = s * m->parts; has_dy && k < (s + 1) * m->parts; k++)
            dx[k] = rows_added(c, k, &zeros);
        given[s] = has_dy && m->given[s] ? weft__dx_sum(c, given_input(c, s), &zeros) : NULL;
    }
    weft__run_blocks(c, &zeros);
    for (int s = 0; s < m->states; s++)
        last_back(c, &all, s, dx + s * m->parts, given[s]);
    weft__run_blocks(c, &all);
}
static void last_composed(const weft_call *c, weft_tensor **y)
{
    const move *m = attributes_of(c);
    const int64_t n = m->e->batch->n;
    for (int s = 0; s < m->states; s++) {
        weft_tensor *part[PARTS], *rows = m->given[s] ? weft__rows_of_stack(c->x[given_input(c, s)]) : NULL;
        for (int k = 0; k < m->parts; k++) {
            weft_tensor *x = weft_plain(c->x[s * m->parts + k]);
            part[k] = weft__select_rows(x, m->e->last[k % m->directions], 0, n);
            if (rows)
                part[k] = weft_add(part[k], weft__select_rows(rows, m->e->empty, k * m->e->stride, n));
        }
        y[s] = weft_reshape(weft_concat(part, m->parts, 0), WEFT_SHAPE(m->parts, n, width_of(c->y[s])));
    }
}

/* ---- the records: for h; for h and c ---- */
#define RECORD(which, its_results)                                                               \
    {                                                                                            \
        .name = #which "_states", .results = its_results, .layout = WEFT_ROWS, .moves = true,    \
        .unread = ~0u, .shape = which##_shape, .forward = which##_run, .fused = which##_fused,   \
        .composed = which##_composed                                                             \
    }
static const weft_op first_states[STATES] = { RECORD(first, 1), RECORD(first, 2) };
static const weft_op last_states[STATES] = { RECORD(last, 1), RECORD(last, 2) };

weft_state weft__first_states(const weft__state_map *e, weft_state stack, int k)
{
    weft_tensor *x[STATES], **y;
    const move m = { .e = e, .k = k };
    int n = 0;
    if (stack.h)
        x[n++] = stack.h;
    if (stack.c)
        x[n++] = stack.c;
    if (n == 0)
        return (weft_state){ NULL, NULL };
    y = weft__apply(&first_states[n - 1], x, n, &m, sizeof m)->y;
    return (weft_state){ stack.h ? y[0] : NULL, stack.c ? y[n - 1] : NULL };
}

weft_state weft__last_states(const weft__state_map *e, weft_tensor *const *h, weft_tensor *const *c,
                             int parts, int directions, weft_state first)
{
    weft_tensor *x[STATES * PARTS + STATES], **y;
    move m = { .e = e, .parts = parts, .directions = directions, .states = c ? 2 : 1 };
    int n = 0;
    for (int s = 0; s < m.states; s++)
        for (int k = 0; k < parts; k++)
            x[n++] = (s ? c : h)[k];
    for (int s = 0; s < m.states; s++) {
        weft_tensor *stack = s ? first.c : first.h;
        m.given[s] = stack && e->empty.host;
        if (m.given[s])
            x[n++] = stack;
    }
    y = weft__apply(&last_states[m.states - 1], x, n, &m, sizeof m)->y;
    return (weft_state){ y[0], c ? y[1] : NULL };
}
