/* fast_recur.h - recurrent layers by vectors, tiles of registers and threads. Included after K(name) is defined.
 *
 * The weights are packed once a call. A thread owns a block of sequences for the whole recurrence, so nobody waits for anybody;
 * blocks are of about equal work, the longest sequences first. A step of a block is one product (fast_recur_tile.h; the gates'
 * slots already hold what it adds to) and one pass of the cell (fast_recur_cell.h), which finds the sums in the cache. Backward
 * is the cell first, then the product with the transposed weights.
 *
 * Where there are too few sequences for that, and the weights are many, a team of threads shares a block: each has some columns of every
 * product, so that it reads but its share of the weights, and they meet after each. Who computes a sum changes no bit of it. */
#include "core/cpu.h"
#include "core/fast_recur_cell.h"
#include "core/fast_recur_tile.h"
#include "core/shared_recur.h"
#ifdef TILES
#include "core/fast_recur_tiles.h"
#endif

enum {
    RECUR_BYTES = 1 << 18,                       /* gates of a block in one step: they stay in the second cache */
    RECUR_ROWS  = 4 * TILE_ROWS,                 /* but as many rows as make reading the weights worth it */
    RECUR_SMALL = 200000,                        /* multiply-adds that are not worth waking a thread */
    RECUR_FEW   = TILE_ROWS,                     /* sequences of a thread: with fewer it waits for weights, not for sums */
    RECUR_MANY  = 1 << 17                        /* weights that are too many for a second cache: a share of them is read sooner */
};

/* Weights, where they come from, and the column of the gates that their product adds to (forward) or takes (backward). */
typedef struct { packed_weights w; const real *from; int64_t slot; } recur_part;

/* Tokens beside each other in one step, whose states of the step before lie beside each other, too. first: they begin here, from the
 * first states of `sequence` and those after it (-1: from zeros). */
typedef struct { int64_t row, n, column; const real *h, *c; bool first; int64_t sequence, block; int me; recur_ahead *ahead; } recur_run;   /* h, c NULL: zeros */

typedef struct recur_job {
    const weft__recurrence *r;
    bool back;
    void (*step)(const struct recur_job *, const recur_run *);
    void (*end)(const struct recur_job *, int64_t block);        /* when all its steps are done; may be NULL */
    recur_cell *cell;
    int64_t gates;                               /* columns of r->gates */
    recur_part part[3];                          /* h's, two if a GRU: n's h side is not the slot of n; then the projection */
    int parts, products;                         /* with and without the projection */
    real *zeros, *arrived;                       /* [hidden]; [sequences, hidden] gradients of h before the projection */
    int64_t *cut, blocks;                        /* [blocks + 1] the first sequence of each block */
    int64_t most;                                /* sequences of a block */
    int threads, team;                           /* of the pool; that share a block */
    weft__meeting *meeting;                      /* [threads] of each block's team */
#ifdef TILES
    recur_tiles tiles;                           /* instead of the packed weights */
#endif
} recur_job;
#ifdef TILES
#define RECUR_TILES(j) ((j)->tiles.parts)
#else
#define RECUR_TILES(j) 0
#endif

/* ---- before the first step: weights, memory, blocks ---- */
static void recur_add_part(recur_job *j, const real *w, int64_t out, int64_t in, int64_t slot)      /* w [out, in] */
{
    packed_weights p = { .k = j->back ? out : in, .n = j->back ? in : out };
    j->part[j->parts++] = (recur_part){ p, w, slot };
}
static void recur_pack(void *argument, int64_t i)           /* task i: panel i, counted through all parts */
{
    const recur_job *j = argument;
    const recur_part *p = j->part;
    for (; i >= packed_panels(p->w.n); p++)
        i -= packed_panels(p->w.n);
    pack_panel(!j->back, p->from, p->w.k, p->w.n, i, p->w.panel + i * p->w.k * PANEL);
}
static int64_t recur_live(const weft__recurrence *r)        { return r->to > r->from ? r->live.host[r->from] : 0; }   /* with a token in these steps */
static int64_t recur_tokens(const weft__recurrence *r)      { return r->start.host[r->to] - r->start.host[r->from]; }
static int64_t recur_lines(int64_t n)                       { return (n + 15) / 16 * 16; }   /* to whole lines of the cache */

static void recur_describe(recur_job *j)
{
    static recur_cell *const cells[][2] = {
        [WEFT__RNN_TANH] = { rnn_tanh, rnn_tanh_back }, [WEFT__RNN_RELU] = { rnn_relu, rnn_relu_back },
        [WEFT__GRU] = { gru, gru_back }, [WEFT__LSTM] = { lstm, lstm_back },
    };
    const weft__recurrence *r = j->r;
    int64_t H = r->hidden;
    j->cell = cells[r->cell][j->back];
    j->gates = r->cell < WEFT__GRU ? H : 4 * H;
    recur_add_part(j, r->w_hh, r->cell == WEFT__GRU ? 2 * H : j->gates, r->width, 0);
    if (r->cell == WEFT__GRU)
        recur_add_part(j, r->w_hh + 2 * H * H, H, H, 3 * H);
    j->products = j->parts;
    if (r->w_hr)
        recur_add_part(j, r->w_hr, r->width, H, 0);
    j->most = RECUR_BYTES / (j->gates * (int64_t)sizeof(real));
    j->most = j->most < RECUR_ROWS ? RECUR_ROWS : j->most;
}
/* Divides memory between all that a job needs; NULL: only says how many bytes that is. */
static size_t recur_divide(recur_job *j, void *memory)
{
    const weft__recurrence *r = j->r;
    int64_t at[7] = { 0 }, n = 0;
    for (; n < j->parts; n++)
        at[n + 1] = at[n] + (RECUR_TILES(j) ? 0 : packed_size(j->part[n].w.k, j->part[n].w.n));
    at[n + 1] = at[n] + recur_lines(r->hidden);
    at[n + 2] = at[n + 1] + (j->back && r->w_hr ? recur_lines(recur_live(r) * r->hidden) : 0);
    at[n + 3] = at[n + 2] + recur_lines((int64_t)(sizeof *j->meeting / sizeof(real)) * j->threads);
    if (!memory)
        return (size_t)at[n + 3] * sizeof(real) + (size_t)(recur_live(r) + 1) * sizeof *j->cut;
    for (int i = 0; i < j->parts; i++)
        j->part[i].w.panel = (real *)memory + at[i];
    j->zeros = (real *)memory + at[n], j->arrived = (real *)memory + at[n + 1], j->meeting = (weft__meeting *)((real *)memory + at[n + 2]);
    j->cut = (int64_t *)((real *)memory + at[n + 3]);
    return 0;
}
/* Cuts the sequences into blocks of about equal numbers of tokens. */
static void recur_cut(recur_job *j, int64_t wanted)
{
    const weft__recurrence *r = j->r;
    int64_t tokens = 0, all = recur_tokens(r), length = r->to, n = recur_live(r);
    j->blocks = 0, j->cut[0] = 0;
    for (int64_t s = 0; s < n; s++) {
        while (r->live.host[length - 1] <= s)
            length--;
        tokens += length - r->from;
        if (s + 1 == n || tokens * wanted >= (j->blocks + 1) * all || s + 1 - j->cut[j->blocks] == j->most)
            j->cut[++j->blocks] = s + 1;
    }
}
#ifdef TILES
static void *recur_memory(weft__device *d, recur_job *j)      /* for all that is in recur_divide and, behind it, for tiles */
{
    recur_tiles *t = &j->tiles;
    t->parts = recur_parts(d, j->r);
    for (int i = 0; i < j->parts; i++)
        t->w[i] = recur_weights(t->parts, j->part[i].from, !j->back, j->part[i].w.k, j->part[i].w.n);
    j->most = t->parts && j->most < RECUR_TILES_ROWS ? RECUR_TILES_ROWS : j->most;
    size_t own = (recur_divide(j, NULL) + sizeof(tile) - 1) / sizeof(tile) * sizeof(tile);
    int threads = weft__pool_threads(d->pool);
    char *memory = weft__scratch(d, own + (t->parts ? recur_divide_tiles(t, j->parts, j->most, threads, NULL) : 0));
    if (memory && t->parts)
        recur_divide_tiles(t, j->parts, j->most, threads, (tile *)(memory + own));
    return memory;
}
static void recur_pack_tiles(weft__device *d, const recur_job *j)
{
    for (int i = 0; i < j->parts; i++)
        pack_for_all(d, &j->tiles.w[i]);
}
#else
static void *recur_memory(weft__device *d, recur_job *j)      { return weft__scratch(d, recur_divide(j, NULL)); }
static void recur_pack_tiles(weft__device *d, const recur_job *j)     { (void)d, (void)j; }
#endif
static void recur_pack_all(weft__device *d, recur_job *j)
{
    int64_t panels = 0;
    for (int i = 0; i < j->parts; i++)
        panels += packed_panels(j->part[i].w.n);
    if (RECUR_TILES(j))
        recur_pack_tiles(d, j);
    else
        weft__parallel(d, panels, recur_pack, j);
}
/* How many blocks, and threads to each: a team where there are but few rows to a thread, and many weights. */
static void recur_share(weft__device *d, recur_job *j)
{
    int64_t live = recur_live(j->r), weights = j->gates * j->r->width, work = recur_tokens(j->r) * weights;
    int together = live < j->threads * RECUR_FEW && weights >= RECUR_MANY && work >= RECUR_SMALL ? weft__together(d) : 1;
    recur_cut(j, work < RECUR_SMALL ? 1 : together < 2 ? j->threads : live < RECUR_FEW ? 1 : live / RECUR_FEW);
    j->team = j->blocks < together ? together / (int)j->blocks : 1;
    memset(j->meeting, 0, (size_t)j->threads * sizeof *j->meeting);
}
static bool recur_prepare(weft__device *d, recur_job *j)
{
    j->threads = weft__pool_threads(d->pool);
    recur_describe(j);
    void *memory = recur_memory(d, j);
    if (!memory)
        return false;
    recur_divide(j, memory);
    memset(j->zeros, 0, (size_t)j->r->hidden * sizeof(real));
    recur_pack_all(d, j);
    recur_share(d, j);
    return true;
}

/* ---- one step of a block, run by run: the columns that go on, and those where a sequence begins ---- */
static const real *recur_of_first(const real *first, int64_t sequence, int64_t width)
{
    return first && sequence >= 0 ? first + sequence * width : NULL;
}
static recur_run recur_begins(const weft__recurrence *r, int64_t row, int64_t n, int64_t column, int64_t sequence)
{
    return (recur_run){ row, n, column, recur_of_first(r->h0, sequence, r->width), recur_of_first(r->c0, sequence, r->hidden), true, sequence, 0, 0, NULL };
}
/* The run of columns at .. at most end. */
static recur_run recur_next_run(const weft__recurrence *r, int64_t t, int64_t at, int64_t end)
{
    int64_t u = r->reverse ? t + 1 : t - 1, row = r->start.host[t] + at, n = 0;
    int64_t going = u >= 0 && u < r->steps ? r->live.host[u] : 0;                   /* so many have a row before */
    const int32_t *reset = r->reset.host;
    going = going < end ? going : end;
    while (at + n < going && (!reset || reset[row + n] == WEFT__ON))
        n += reset ? 1 : going - at;
    if (n == 0 && reset)
        return recur_begins(r, row, 1, at, reset[row]);
    if (n == 0)
        return recur_begins(r, row, end - at, at, at);
    int64_t before = r->start.host[u] + at;
    return (recur_run){ row, n, at, r->h + before * r->width, r->c ? r->c + before * r->hidden : NULL, false, -1, 0, 0, NULL };
}
/* Token i of a run; a state that is not there is the zeros for every token. */
static recur_token recur_token_of(const recur_job *j, const recur_run *run, int64_t i)
{
    const weft__recurrence *r = j->r;
    int64_t H = r->hidden, W = r->width, row = run->row + i, s = run->column + i;
    recur_token t = { .gates = r->gates + row * j->gates, .c = r->c ? r->c + row * H : NULL };
    t.h_before = run->h ? run->h + i * W : j->zeros, t.c_before = run->c ? run->c + i * H : j->zeros;
    t.h = r->w_hr ? r->raw + row * H : r->h + row * W;
    if (!j->back)
        return t;
    t.dh = r->w_hr ? j->arrived + s * H : r->carry_h + s * W;
    t.dy = r->w_hr || !r->dy ? NULL : r->dy + row * W, t.dyc = r->dyc ? r->dyc + row * H : NULL;
    t.dh_before = r->w_hr ? NULL : r->carry_h + s * W, t.dc = r->carry_c ? r->carry_c + s * H : NULL;
    return t;
}
static void recur_cells(const recur_job *j, const recur_run *run)
{
    for (int64_t i = run->me; i < run->n; i += j->team) {
        recur_token t = recur_token_of(j, run, i);
        j->cell(&t, j->r->hidden);
    }
}

/* ---- of a team: nobody goes on before all are here; what is not shared the first one does ---- */
static void recur_meet(const recur_job *j, const recur_run *run)
{
    if (j->team > 1)
        weft__meet(&j->meeting[run->block], j->team);
}
static bool recur_leads(const recur_run *run) { return run->me == 0; }
/* y [run->n, n] += x w, the i-th of the job's products: this thread's columns. */
static void recur_times(const recur_job *j, int i, const recur_run *run, const real *x, int64_t ldx, real *y, int64_t ldy)
{
    const packed_weights *w = &j->part[i].w;
    int64_t panels = packed_panels(w->n), from = panels * run->me / j->team, to = panels * (run->me + 1) / j->team;
#ifdef TILES
    if (j->tiles.parts) {
        recur_tile_product(&j->tiles, i, from * PANEL, to * PANEL, run->n, x, ldx, y, ldy);
        return;
    }
#endif
    recur_product(w, from, to, run->ahead, run->n, x, ldx, y, ldy);
}

/* ---- forward ---- */
static void recur_fourth_slot(const recur_job *j, const recur_run *run)
{
    int64_t H = j->r->hidden;
    for (int64_t i = 0; i < run->n; i++)
        memcpy(j->r->gates + (run->row + i) * 4 * H + 3 * H, j->r->b_hn ? j->r->b_hn : j->zeros, (size_t)H * sizeof(real));
}
static void recur_forward(const recur_job *j, const recur_run *run)
{
    const weft__recurrence *r = j->r;
    real *gates = r->gates + run->row * j->gates, *h = r->h + run->row * r->width;
    if (r->cell == WEFT__GRU && recur_leads(run))
        recur_fourth_slot(j, run);
    if (r->w_hr && recur_leads(run))
        memset(h, 0, (size_t)(run->n * r->width) * sizeof *h);
    if (r->cell == WEFT__GRU)
        recur_meet(j, run);
    for (int p = 0; run->h && p < j->products; p++)
        recur_times(j, p, run, run->h, r->width, gates + j->part[p].slot, j->gates);
    recur_meet(j, run);
    recur_cells(j, run);
    recur_meet(j, run);
    if (!r->w_hr)
        return;
    recur_times(j, j->products, run, r->raw + run->row * r->hidden, r->hidden, h, r->width);
    recur_meet(j, run);
}

/* ---- backward ---- */
static void recur_plus(int64_t n, const real *x, real *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] += x[i];
}
/* dh = carry + dy, and the carry starts anew. */
static void recur_arrive(const recur_job *j, const recur_run *run)
{
    const weft__recurrence *r = j->r;
    int64_t n = run->n * r->width, from = run->row * r->width;
    real *carry = r->carry_h + run->column * r->width, *raw = j->arrived + run->column * r->hidden;
    memcpy(r->dh + from, carry, (size_t)n * sizeof *carry);
    if (r->dy)
        recur_plus(n, r->dy + from, r->dh + from);
    memset(carry, 0, (size_t)n * sizeof *carry);
    memset(raw, 0, (size_t)(run->n * r->hidden) * sizeof *raw);
}
/* d raw = dh w_hr */
static void recur_unproject(const recur_job *j, const recur_run *run)
{
    const weft__recurrence *r = j->r;
    if (recur_leads(run))
        recur_arrive(j, run);
    recur_meet(j, run);
    recur_times(j, j->products, run, r->dh + run->row * r->width, r->width, j->arrived + run->column * r->hidden, r->hidden);
    recur_meet(j, run);
}
static void recur_keep_before(const weft__recurrence *r, const recur_run *run)
{
    size_t bytes = (size_t)(run->n * r->width) * sizeof(real);
    if (run->h)
        memcpy(r->h_before + run->row * r->width, run->h, bytes);
    else
        memset(r->h_before + run->row * r->width, 0, bytes);
}
/* What arrived at first states is their gradient; a column's sequence before finds zeros. */
static void recur_hand_over(const weft__recurrence *r, const recur_run *run, int64_t width, real *carry, real *first)
{
    real *from = carry + run->column * width;
    if (first && run->sequence >= 0)
        recur_plus(run->n * width, from, first + run->sequence * width);
    if (r->reset.host)
        memset(from, 0, (size_t)(run->n * width) * sizeof *from);
}
static void recur_backward(const recur_job *j, const recur_run *run)
{
    const weft__recurrence *r = j->r;
    bool wanted = !run->first || (r->dh0 && run->sequence >= 0);  /* else nobody wants what goes on from here */
    if (r->w_hr)
        recur_unproject(j, run);
    recur_cells(j, run);
    if (r->h_before && recur_leads(run))
        recur_keep_before(r, run);
    recur_meet(j, run);
    for (int p = 0; wanted && p < j->products; p++)
        recur_times(j, p, run, r->gates + run->row * j->gates + j->part[p].slot, j->gates, r->carry_h + run->column * r->width, r->width);
    recur_meet(j, run);
    if (!run->first)
        return;
    if (recur_leads(run))
        recur_hand_over(r, run, r->width, r->carry_h, r->dh0);
    if (r->carry_c && recur_leads(run))
        recur_hand_over(r, run, r->hidden, r->carry_c, r->dc0);
    recur_meet(j, run);
}

/* ---- a block, all steps ---- */
static int64_t recur_step(const recur_job *j, int64_t i)          /* the i-th that is walked */
{
    const weft__recurrence *r = j->r;
    return r->reverse == j->back ? r->from + i : r->to - 1 - i;
}
/* The end of a block's columns at step t. */
static int64_t recur_end(const recur_job *j, int64_t b, int64_t t)
{
    return j->cut[b + 1] < j->r->live.host[t] ? j->cut[b + 1] : j->r->live.host[t];
}
/* The gates of the block after the i-th step: all else that it reads is little beside them. */
static recur_ahead recur_ahead_of(const recur_job *j, int64_t b, int64_t i)
{
    const weft__recurrence *r = j->r;
    if (i + 1 >= r->to - r->from)
        return (recur_ahead){ NULL, NULL };
    int64_t t = recur_step(j, i + 1), row = r->start.host[t] + j->cut[b], n = recur_end(j, b, t) - j->cut[b];
    const char *at = (const char *)(r->gates + row * j->gates);
    return (recur_ahead){ at, n > 0 ? at + n * j->gates * (int64_t)sizeof(real) : at };
}
/* Few rows of x [tokens, width], those of the block in the i-th step: too few for the chip to see what comes next. */
static void recur_fetch_rows(const recur_job *j, int64_t b, int64_t i, const real *x, int64_t width)
{
    enum { LINE = 64 / sizeof(real), FEW_LINES = 32 };
    const weft__recurrence *r = j->r;
    if (!x || i >= r->to - r->from)
        return;
    int64_t t = recur_step(j, i), n = (recur_end(j, b, t) - j->cut[b]) * width;
    const real *at = x + (r->start.host[t] + j->cut[b]) * width;
    for (int64_t l = 0; n <= FEW_LINES * LINE && l < n; l += LINE)
        __builtin_prefetch(at + l);
}
/* What the steps after this one will read of the states and of what arrives. */
static void recur_fetch_states(const recur_job *j, int64_t b, int64_t i)
{
    const weft__recurrence *r = j->r;
    if (!j->back)
        return;
    recur_fetch_rows(j, b, i + 2, r->h, r->width);
    recur_fetch_rows(j, b, i + 2, r->c, r->hidden);
    recur_fetch_rows(j, b, i + 1, r->dy, r->width);
}
static void recur_block(void *argument, int64_t task)
{
    const recur_job *j = argument;
    const weft__recurrence *r = j->r;
    int64_t b = task / j->team;
    for (int64_t i = 0; i < r->to - r->from; i++) {
        int64_t t = recur_step(j, i), end = recur_end(j, b, t);
        recur_ahead soon = recur_ahead_of(j, b, i);
        recur_fetch_states(j, b, i);
        for (int64_t at = j->cut[b]; at < end;) {
            recur_run run = recur_next_run(r, t, at, end);
            run.block = b, run.me = (int)(task % j->team), run.ahead = &soon;
            j->step(j, &run);
            at += run.n;
        }
    }
    if (j->end)
        j->end(j, b);
#ifdef TILES
    if (j->tiles.parts)
        tiles_release();
#endif
}
static void recur_all(weft__device *d, const weft__recurrence *r, bool back)
{
    recur_job j = { .r = r, .back = back, .step = back ? recur_backward : recur_forward };
    if (recur_live(r) && recur_prepare(d, &j))
        weft__parallel(d, j.blocks * j.team, recur_block, &j);
}
static void K(recur)(weft__device *d, const weft__recurrence *r)          { recur_all(d, r, false); }
static void K(recur_back)(weft__device *d, const weft__recurrence *r)     { recur_all(d, r, true); }

#include "core/fast_recur_small.h"

static void K(recur_layer)(weft__device *d, const weft__recur_layer *l)
{
    if (recur_live(&l->r) && is_small(l))
        small_layer(d, l, false);
    else
        layer_forward(d, l);
}
static void K(recur_layer_back)(weft__device *d, const weft__recur_layer *l)
{
    if (recur_live(&l->r) && is_small(l))
        small_layer(d, l, true);
    else
        layer_backward(d, l);
}
