/* fast_recur_small.h - small recurrent layers whole: a token's projection, recurrence and cell in one go, and backward its dx and its
 * share of the weights' gradients while its gates are in the first cache. What is large in such a layer is not the arithmetic but the
 * gates' buffer: it is written once forward, and once backward. Where x is a table, a token's projection is a row of sums by its id, and
 * backward gates' gradients are added up by ids.
 *
 * Sequences are cut into blocks by what the batch is, not by the number of threads: each block sums gradients of the weights of
 * its own, and those are added in the order of the blocks. So they have the same bits with any number of threads. */
#include "core/fast_recur_units.h"

enum {
    SMALL_WEIGHTS = 40960,                       /* of both matrices: they and a block's sums lie in the second cache */
    SMALL_BLOCKS  = 16,
    SMALL_TOKENS  = 32, SMALL_RUNS = 16          /* that wait to be summed, at most: the sums go through registers once for all */
};
typedef struct { int64_t row, n; const real *h; } small_run;                 /* h: before it, or NULL */
typedef struct { small_run run[SMALL_RUNS]; int64_t runs, tokens; } small_waiting;

typedef struct {
    recur_job j;
    const weft__recur_layer *l;
    unit_weights forward;
    packed_weights to_x;                         /* backward: of w_ih, if dx is of tokens */
    real *sums; int64_t each, of_h;              /* of each block, rows of slots: of_h, one for each input or id; one for each number of h; one of biases */
    small_waiting *waiting;                      /* of each block */
    int64_t most_blocks;
} small_job;

static bool is_small(const weft__recur_layer *l)
{
    return !l->r.w_hr && (l->inputs + l->r.width) * layer_slots(l) <= SMALL_WEIGHTS;
}

/* ---- memory ---- */
static size_t small_divide(small_job *s, char *memory)           /* NULL: only says how many bytes that is */
{
    const weft__recur_layer *l = s->l;
    const int64_t S = layer_slots(l), front = recur_lines((int64_t)(recur_divide(&s->j, NULL) / sizeof(real)) + 1);
    int64_t at[5] = { front };
    s->forward = (unit_weights){ .cell = l->r.cell, .hidden = l->r.hidden, .inputs = l->inputs, .width = l->r.width,
                                 .x_gates = l->r.cell == WEFT__GRU ? 3 : 4, .h_gates = l->r.cell == WEFT__GRU ? 3 : 4 };
    s->forward.each = (4 + (l->inputs + l->r.width) * s->forward.x_gates) * VLEN;
    s->to_x = (packed_weights){ .k = layer_gates(l), .n = l->dx.to && !l->ids ? l->inputs : 0 };
    s->of_h = l->ids ? l->rows : l->inputs;
    s->each = recur_lines((s->of_h + l->r.width + 1) * S);
    at[1] = at[0] + (s->j.back ? 0 : recur_lines(unit_panels(&s->forward) * s->forward.each));
    at[2] = at[1] + (s->j.back ? recur_lines(packed_size(s->to_x.k, s->to_x.n)) : 0);
    at[3] = at[2] + (s->j.back ? s->most_blocks * s->each : 0);
    at[4] = at[3] + (s->j.back ? s->most_blocks * (int64_t)(sizeof *s->waiting / sizeof(real)) : 0);
    if (!memory)
        return (size_t)at[4] * sizeof(real);
    recur_divide(&s->j, memory);
    s->forward.panel = (real *)(void *)memory + at[0], s->to_x.panel = (real *)(void *)memory + at[1], s->sums = (real *)(void *)memory + at[2];
    s->waiting = (small_waiting *)((real *)(void *)memory + at[3]);
    return 0;
}
static void small_pack(void *argument, int64_t i)
{
    small_job *s = argument;
    if (!s->j.back)
        unit_pack(&s->forward, s->l, i);
    else if (i < packed_panels(s->to_x.n))
        pack_panel(false, s->l->w_ih, s->to_x.k, s->to_x.n, i, s->to_x.panel + i * s->to_x.k * PANEL);
    else
        recur_pack(&s->j, i - packed_panels(s->to_x.n));
}
static int64_t small_pack_tasks(const small_job *s)
{
    int64_t n = s->j.back ? packed_panels(s->to_x.n) : unit_panels(&s->forward);
    for (int i = 0; i < s->j.parts; i++)
        n += packed_panels(s->j.part[i].w.n);
    return n;
}
static bool small_prepare(weft__device *d, small_job *s)
{
    recur_describe(&s->j);
    if (!s->j.back)
        s->j.parts = s->j.products = 0;
    s->most_blocks = SMALL_BLOCKS + 1 + recur_live(s->j.r) / s->j.most;
    s->most_blocks = s->most_blocks < recur_live(s->j.r) ? s->most_blocks : recur_live(s->j.r);
    char *memory = weft__scratch(d, small_divide(s, NULL));
    if (!memory)
        return false;
    small_divide(s, memory);
    memset(s->j.zeros, 0, (size_t)s->j.r->hidden * sizeof(real));
    for (int64_t i = 0, n = small_pack_tasks(s); i < n; i++)      /* too little to wake anybody */
        small_pack(s, i);
    for (int64_t i = 0; s->l->ids && !s->j.back && i < s->l->rows; i++)
        unit_sums_of(&s->forward, s->l->x, i, s->l->of_rows);
    recur_cut(&s->j, SMALL_BLOCKS);
    s->j.team = 1;
    return true;
}

/* ---- forward ---- */
static void small_forward(const recur_job *j, const recur_run *run)
{
    const small_job *s = (const small_job *)j;
    const weft__recurrence *r = j->r;
    const int32_t *ids = s->l->ids ? s->l->ids + run->row : NULL;
    unit_rows t = { .x = ids ? NULL : s->l->x + run->row * s->l->inputs, .sums = s->l->of_rows, .ids = ids,
                    .before = run->h, .c_before = run->c ? run->c : j->zeros, .c_step = run->c ? r->hidden : 0,
                    .gates = r->gates + run->row * j->gates, .c = r->c ? r->c + run->row * r->hidden : NULL, .h = r->h + run->row * r->hidden };
    unit_step(&s->forward, run->n, t);
}

/* ---- backward ---- */
#ifdef __clang__
#define EACH(i, n) _Pragma("clang loop unroll(full)") for (int i = 0; i < (n); i++)
#else
#define EACH(i, n) _Pragma("GCC unroll 16") for (int i = 0; i < (n); i++)
#endif
/* y [rows, 2 VLEN or `left`] += x^T d over some runs of m tokens: x [m, ..] from column i on, d [m, ..] from column c on */
typedef struct { const real *x, *d; int64_t m; } outer_run;
#define ARGUMENTS const outer_run *run, int64_t runs, int64_t i, int64_t ldx, int64_t c, int64_t ldd, real *y, int64_t ldy, int64_t left
static inline __attribute__((always_inline)) void outer_by(const int rows, const bool whole, ARGUMENTS)
{
    vec sum[TILE_ROWS][2];
    EACH(r, rows) {
        sum[r][0] = whole ? v_load(y + r * ldy) : v_load_to(y + r * ldy, left);
        sum[r][1] = whole ? v_load(y + r * ldy + VLEN) : v_set(0);
    }
    for (; runs > 0; runs--, run++) {
        const real *x = run->x + i, *d = run->d + c;
        for (int64_t t = 0; t < run->m; t++, x += ldx, d += ldd) {
            vec a = whole ? v_load(d) : v_load_to(d, left), b = whole ? v_load(d + VLEN) : v_set(0);
            EACH(r, rows) {
                sum[r][0] = v_fma(v_set(x[r]), a, sum[r][0]);
                if (whole)
                    sum[r][1] = v_fma(v_set(x[r]), b, sum[r][1]);
            }
        }
    }
    EACH(r, rows) {
        if (whole)
            v_store(y + r * ldy, sum[r][0]), v_store(y + r * ldy + VLEN, sum[r][1]);
        else
            v_store_to(y + r * ldy, sum[r][0], left);
    }
}
typedef void outer_tile(ARGUMENTS);
#define TILE(rows)                                                                                                     \
    static void outer_##rows(ARGUMENTS)      { outer_by(rows, true, run, runs, i, ldx, c, ldd, y, ldy, left); }        \
    static void outer_edge_##rows(ARGUMENTS) { outer_by(rows, false, run, runs, i, ldx, c, ldd, y, ldy, left); }
TILE(1) TILE(2) TILE(3) TILE(4) TILE(5) TILE(6)
static outer_tile *const outer_tiles[][6] = { { outer_1, outer_2, outer_3, outer_4, outer_5, outer_6 },
                                              { outer_edge_1, outer_edge_2, outer_edge_3, outer_edge_4, outer_edge_5, outer_edge_6 } };
#undef TILE
#undef EACH

/* y [k, n] += x^T d over all tokens of the runs, which are read where they are. */
static void outer_product(const outer_run *run, int64_t runs, int64_t k, int64_t ldx, int64_t n, int64_t ldd, real *y, int64_t ldy)
{
    enum { OUTER_ROWS = 6 };
    for (int64_t c = 0, columns; c < n; c += columns) {
        bool whole = n - c >= 2 * VLEN;
        columns = whole ? 2 * VLEN : VLEN;
        for (int64_t i = 0, rows; i < k; i += rows) {
            rows = k - i < OUTER_ROWS ? k - i : OUTER_ROWS;
            outer_tiles[!whole][rows - 1](run, runs, i, ldx, c, ldd, y + i * ldy + c, ldy, n - c);
        }
    }
}
/* Those that wait, as runs of inputs or of states before, with the gradients from column `slot` on; how many. */
static int64_t small_list(const small_job *s, const small_waiting *w, bool of_h, int64_t slot, outer_run *list)
{
    int64_t n = 0;
    for (int64_t i = 0; i < w->runs; i++) {
        const small_run *run = &w->run[i];
        const real *x = of_h ? run->h : s->l->x + run->row * s->l->inputs;
        if (x)
            list[n++] = (outer_run){ x, s->j.r->gates + run->row * s->j.gates + slot, run->n };
    }
    return n;
}
/* Gates' gradients of what waits to rows of sums: by ids, or all to one. */
static void small_add_rows(const small_job *s, const small_waiting *w, const int32_t *ids, real *sums)
{
    const int64_t S = s->j.gates;
    for (int64_t i = 0; i < w->runs; i++)
        for (int64_t row = w->run[i].row; row < w->run[i].row + w->run[i].n; row++)
            recur_plus(S, s->j.r->gates + row * S, sums + (ids ? ids[row] * S : 0));
}
/* What waits is added to the block's sums. */
static void small_sum_up(const recur_job *j, int64_t block)
{
    const small_job *s = (const small_job *)j;
    const weft__recur_layer *l = s->l;
    const int64_t S = j->gates, F = l->inputs, W = j->r->width, H = j->r->hidden, both = j->r->cell == WEFT__GRU ? 2 * H : S;
    small_waiting *w = &s->waiting[block];
    real *sums = s->sums + block * s->each, *of_h = sums + s->of_h * S;
    outer_run list[SMALL_RUNS];
    if (l->ids)
        small_add_rows(s, w, l->ids, sums);
    else if (l->db_ih.to || l->db_hh.to)
        small_add_rows(s, w, NULL, of_h + W * S);
    if (l->dw_ih.to && !l->ids)
        outer_product(list, small_list(s, w, false, 0, list), F, F, layer_gates(l), S, sums, S);
    if (l->dw_hh.to)
        outer_product(list, small_list(s, w, true, 0, list), W, W, both, S, of_h, S);
    if (l->dw_hh.to && both < S)
        outer_product(list, small_list(s, w, true, 3 * H, list), W, W, H, S, of_h + 3 * H, S);
    w->runs = w->tokens = 0;
}
static void small_backward(const recur_job *j, const recur_run *run)
{
    const small_job *s = (const small_job *)j;
    const weft__recur_layer *l = s->l;
    recur_backward(j, run);
    real *dx = l->dx.to && !l->ids ? l->dx.to + run->row * l->inputs : NULL;
    if (dx && !l->dx.add)
        memset(dx, 0, (size_t)(run->n * l->inputs) * sizeof *dx);
    if (dx)
        recur_product(&s->to_x, 0, packed_panels(s->to_x.n), run->ahead, run->n, j->r->gates + run->row * j->gates, j->gates, dx, l->inputs);
    small_waiting *w = &s->waiting[run->block];
    w->run[w->runs++] = (small_run){ run->row, run->n, run->h }, w->tokens += run->n;
    if (w->runs == SMALL_RUNS || w->tokens >= SMALL_TOKENS)
        small_sum_up(j, run->block);
}

/* ---- the blocks' sums become gradients ---- */
static void small_add_up(void *argument, int64_t row)             /* one row of the sums over all blocks, into the first */
{
    const small_job *s = argument;
    for (int64_t b = 1; b < s->j.blocks; b++)
        recur_plus(s->j.gates, s->sums + b * s->each + row * s->j.gates, s->sums + row * s->j.gates);
}
/* to [G, n] (+)= the transpose of sums [n, S]; of_h: a GRU's last gate has a slot of its own. */
static void small_give(const small_job *s, weft__into into, bool of_h, int64_t n, const real *sums)
{
    const int64_t H = s->j.r->hidden, G = layer_gates(s->l), S = s->j.gates;
    for (int64_t g = 0; into.to && g < G; g++) {
        const int64_t slot = of_h && s->j.r->cell == WEFT__GRU && g >= 2 * H ? g + H : g;
        for (int64_t i = 0; i < n; i++)
            into.to[g * n + i] = onto(&into.to[g * n + i], into.add, sums[i * S + slot]);
    }
}
static void small_give_all(weft__device *d, small_job *s)
{
    const weft__recur_layer *l = s->l;
    const int64_t F = l->inputs, W = l->r.width, S = s->j.gates;
    real *of_h = s->sums + s->of_h * S;
    weft__parallel(d, s->of_h + W + 1, small_add_up, s);
    small_give(s, l->dw_hh, true, W, of_h);
    if (l->ids) {                                /* products of their own, which need the scratch that the sums are in */
        memcpy(l->of_rows, s->sums, (size_t)(l->rows * S) * sizeof(real));
        layer_rows_back(d, l);
        return;
    }
    small_give(s, l->dw_ih, false, F, s->sums);
    small_give(s, l->db_ih, false, 1, of_h + W * S);
    small_give(s, l->db_hh, true, 1, of_h + W * S);
}

static bool small_layer(weft__device *d, const weft__recur_layer *l, bool back)
{
    weft__recurrence r = l->r;
    r.h_before = NULL;
    small_job s = { .j = { .r = &r, .back = back, .step = back ? small_backward : small_forward, .end = back ? small_sum_up : NULL }, .l = l };
    if (!small_prepare(d, &s))
        return false;
    if (back)
        memset(s.sums, 0, (size_t)(s.j.blocks * s.each) * sizeof *s.sums), memset(s.waiting, 0, (size_t)s.j.blocks * sizeof *s.waiting);
    weft__parallel(d, s.j.blocks, recur_block, &s.j);
    if (back)
        small_give_all(d, &s);
    return true;
}
