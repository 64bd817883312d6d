/* fast_recur_units.h - a tile of a recurrent step that is done when its sums are: some rows by VLEN units, all gates of a unit in one
 * tile, so the cell finds them in registers.
 *
 * A panel holds the weights of VLEN units (of an RNN, which has one gate, 4 VLEN): its bias, a row for each input, a row for each
 * state before, a vector for each gate. A sum is one chain: the bias, inputs in ascending order, states in ascending order. So
 * its bits depend on its token alone. */
#ifndef WEFT_FAST_RECUR_UNITS_H
#define WEFT_FAST_RECUR_UNITS_H
#include "core/fast_recur_cell.h"
#include "core/fast_recur_tile.h"

#if VBYTES == 64
enum { UNIT_ROWS = 6 };                          /* times four gates: 24 of 32 registers */
#else
enum { UNIT_ROWS = 3 };
#endif

/* The panels of one layer. A GRU's n has two sums, of inputs and of states: each side has three gates, but the tile four sums. */
typedef struct { weft__cell cell; int64_t hidden, inputs, width; int x_gates, h_gates; real *panel; int64_t each; } unit_weights;

/* Rows of a tile: tokens beside each other. ids: not of x, but of sums with it, [.., slots], a row for each id; NULL: there are none. before
 * NULL: from zeros; c_step: from one c before to the next. */
typedef struct { const real *x, *sums; const int32_t *ids; const real *before, *c_before; real *gates, *c, *h; int64_t c_step; } unit_rows;

#ifdef __clang__
#define EACH(i, n) _Pragma("clang loop unroll(full)") for (int i = 0; i < (n); i++)
#else
#define EACH(i, n) _Pragma("GCC unroll 16") for (int i = 0; i < (n); i++)
#endif
#define INLINE static inline __attribute__((always_inline))

INLINE int64_t unit_columns(const unit_weights *w)           { return w->cell < WEFT__GRU ? 4 * VLEN : VLEN; }
INLINE int64_t unit_panels(const unit_weights *w)            { return (w->hidden + unit_columns(w) - 1) / unit_columns(w); }
INLINE int unit_slot(const bool of_h, const int gates, int g) { return of_h && gates == 3 && g == 2 ? 3 : g; }

/* ---- packing ---- */
/* Gate g of the panel that begins at unit j: rows [n, k] of weights, columns of the panel's rows, `row` apart. */
static void unit_pack_side(const unit_weights *w, const real *from, int64_t k, int64_t j, int gates, real *to)
{
    for (int g = 0; g < gates; g++) {
        int64_t first = w->cell < WEFT__GRU ? j + g * VLEN : g * w->hidden + j, left = w->hidden - (w->cell < WEFT__GRU ? first : j);
        pack_transposed(from + (left > 0 ? first * k : 0), k, left, to + g * VLEN, gates * VLEN);
    }
}
static void unit_pack_bias(const unit_weights *w, const real *b_ih, const real *b_hh, int64_t j, real *to)
{
    const bool gru = w->cell == WEFT__GRU, rnn = w->cell < WEFT__GRU;
    for (int g = 0; g < 4; g++)
        for (int i = 0; i < VLEN; i++) {
            int64_t unit = rnn ? j + g * VLEN + i : j + i, at = rnn ? unit : (gru && g == 3 ? 2 : g) * w->hidden + unit;
            bool there = b_ih && unit < w->hidden, of_x = !(gru && g == 3), of_h = !(gru && g == 2);
            to[g * VLEN + i] = !there ? 0 : of_x && of_h ? b_ih[at] + b_hh[at] : of_x ? b_ih[at] : b_hh[at];
        }
}
static void unit_pack(const unit_weights *w, const weft__recur_layer *l, int64_t p)
{
    real *to = w->panel + p * w->each;
    int64_t j = p * unit_columns(w);
    unit_pack_bias(w, l->b_ih, l->b_hh, j, to);
    unit_pack_side(w, l->w_ih, w->inputs, j, w->x_gates, to += 4 * VLEN);
    unit_pack_side(w, l->r.w_hh, w->width, j, w->h_gates, to + w->inputs * w->x_gates * VLEN);
}

/* ---- a tile ---- */
INLINE void unit_sums(const int rows, const int gates, const bool of_h, int64_t k, const real *x, int64_t ldx, const real *w, vec sum[][4])
{
    for (int64_t i = 0; i < k; i++, w += gates * VLEN) {
        vec a[UNIT_ROWS];
        EACH(r, rows)
            a[r] = v_set(x[r * ldx + i]);
        EACH(g, gates) {
            vec b = v_load(w + g * VLEN);
            EACH(r, rows)
                sum[r][unit_slot(of_h, gates, g)] = v_fma(a[r], b, sum[r][unit_slot(of_h, gates, g)]);
        }
    }
}
/* The cell, from sums in memory: they leave the registers here in any case. */
INLINE void unit_lstm(const int rows, const unit_rows *t, int64_t H, int64_t j, int64_t left, vec sum[][4])
{
    for (int r = 0; r < rows; r++) {
        real *gates = t->gates + r * 4 * H + j;
        vec i = v_sigmoid(sum[r][0]), f = v_sigmoid(sum[r][1]), g = v_tanh(sum[r][2]), o = v_sigmoid(sum[r][3]);
        vec c = v_fma(f, v_load_to(t->c_before + r * t->c_step + j, left), i * g);
        v_store_to(gates, i, left), v_store_to(gates + H, f, left), v_store_to(gates + 2 * H, g, left), v_store_to(gates + 3 * H, o, left);
        v_store_to(t->c + r * H + j, c, left);
        sum[r][0] = c, sum[r][1] = o;
    }
    for (int r = 0; r < rows; r++)
        v_store_to(t->h + r * H + j, sum[r][1] * v_tanh(sum[r][0]), left);
}
INLINE void unit_gru(const int rows, const unit_rows *t, int64_t H, int64_t j, int64_t left, vec sum[][4])
{
    for (int r = 0; r < rows; r++) {
        real *gates = t->gates + r * 4 * H + j;
        vec reset = v_sigmoid(sum[r][0]), z = v_sigmoid(sum[r][1]), fresh = v_tanh(v_fma(reset, sum[r][3], sum[r][2]));
        vec before = t->before ? v_load_to(t->before + r * H + j, left) : v_set(0);
        v_store_to(gates, reset, left), v_store_to(gates + H, z, left), v_store_to(gates + 2 * H, fresh, left);
        v_store_to(gates + 3 * H, sum[r][3], left);
        v_store_to(t->h + r * H + j, v_fma(z, before - fresh, fresh), left);
    }
}
INLINE void unit_rnn(const bool relu, const int rows, const unit_rows *t, int64_t H, int64_t j, int64_t left, vec sum[][4])
{
    for (int r = 0; r < rows; r++)
        for (int g = 0; g < 4 && g * VLEN < left; g++) {
            vec y = relu ? v_max(v_set(0), sum[r][g]) : v_tanh(sum[r][g]);    /* in this order NaN stays */
            v_store_to(t->gates + r * H + j + g * VLEN, y, left - g * VLEN);
            v_store_to(t->h + r * H + j + g * VLEN, y, left - g * VLEN);
        }
}
/* Where a row of slots has gate g of the panel that begins at unit j; how many units of it there are. */
INLINE int64_t unit_slot_at(const unit_weights *w, const weft__cell cell, int64_t j, int g) { return cell < WEFT__GRU ? j + g * VLEN : g * w->hidden + j; }
INLINE int64_t unit_left(const unit_weights *w, const weft__cell cell, int64_t j, int g)    { return w->hidden - j - (cell < WEFT__GRU ? g * VLEN : 0); }

/* Biases and inputs. */
INLINE void unit_begin(const int rows, const weft__cell cell, const unit_weights *w, const real *panel, const real *x, vec sum[][4])
{
    EACH(r, rows)
        EACH(g, 4)
            sum[r][g] = v_load(panel + g * VLEN);
    unit_sums(rows, cell == WEFT__GRU ? 3 : 4, false, w->inputs, x, w->inputs, panel + 4 * VLEN, sum);
}
/* They are there already, of each id. */
INLINE void unit_look_up(const int rows, const weft__cell cell, const unit_weights *w, int64_t j, const unit_rows *t, vec sum[][4])
{
    const int64_t S = cell < WEFT__GRU ? w->hidden : 4 * w->hidden;
    EACH(r, rows) {
        const real *from = t->sums + t->ids[r] * S;
        EACH(g, 4) {
            int64_t left = unit_left(w, cell, j, g);
            sum[r][g] = left > 0 ? v_load_to(from + unit_slot_at(w, cell, j, g), left) : v_set(0);
        }
    }
}
INLINE void unit_tile(const int rows, const weft__cell cell, const unit_weights *w, int64_t p, const unit_rows *t)
{
    const int gates = cell == WEFT__GRU ? 3 : 4;
    const real *panel = w->panel + p * w->each, *of_h = panel + (4 + w->inputs * gates) * VLEN;
    int64_t j = p * unit_columns(w), left = w->hidden - j;
    vec sum[UNIT_ROWS][4];
    if (t->ids)
        unit_look_up(rows, cell, w, j, t, sum);
    else
        unit_begin(rows, cell, w, panel, t->x, sum);
    if (t->before)
        unit_sums(rows, gates, true, w->width, t->before, w->width, of_h, sum);
    vec done[UNIT_ROWS][4];
    EACH(r, rows)
        EACH(g, 4)
            done[r][g] = sum[r][g];
    if (cell == WEFT__LSTM)
        unit_lstm(rows, t, w->hidden, j, left, done);
    else if (cell == WEFT__GRU)
        unit_gru(rows, t, w->hidden, j, left, done);
    else
        unit_rnn(cell == WEFT__RNN_RELU, rows, t, w->hidden, j, left, done);
}

typedef void unit_tile_fn(const unit_weights *w, int64_t p, const unit_rows *t);
#define TILE(rows, name, cell) \
    static void name##_units_##rows(const unit_weights *w, int64_t p, const unit_rows *t) { unit_tile(rows, cell, w, p, t); }
#define UNIT_TILES(rows) TILE(rows, rnn_tanh, WEFT__RNN_TANH) TILE(rows, rnn_relu, WEFT__RNN_RELU) TILE(rows, gru, WEFT__GRU) TILE(rows, lstm, WEFT__LSTM)
#define OF(rows) { rnn_tanh_units_##rows, rnn_relu_units_##rows, gru_units_##rows, lstm_units_##rows }     /* in the order of weft__cell */
UNIT_TILES(1) UNIT_TILES(2) UNIT_TILES(3)
#if VBYTES == 64
UNIT_TILES(4) UNIT_TILES(5) UNIT_TILES(6)
static unit_tile_fn *const unit_tiles[][4] = { OF(1), OF(2), OF(3), OF(4), OF(5), OF(6) };
#else
static unit_tile_fn *const unit_tiles[][4] = { OF(1), OF(2), OF(3) };
#endif
#undef OF
#undef UNIT_TILES
#undef TILE

/* All units of m tokens beside each other: by groups of rows that stay in the first cache while all panels pass. */
static void unit_step(const unit_weights *w, int64_t m, unit_rows t)
{
    enum { GROUP = 8 * UNIT_ROWS };
    const int64_t H = w->hidden, S = w->cell < WEFT__GRU ? H : 4 * H, panels = unit_panels(w);
    for (int64_t from = 0; from < m; from += GROUP)
        for (int64_t p = 0; p < panels; p++)
            for (int64_t i = from, rows; i < m && i < from + GROUP; i += rows) {
                unit_rows at = { t.ids ? NULL : t.x + i * w->inputs, t.sums, t.ids ? t.ids + i : NULL, t.before ? t.before + i * w->width : NULL,
                                 t.c_before + i * t.c_step, t.gates + i * S, t.c ? t.c + i * H : NULL, t.h + i * H, t.c_step };
                rows = m - i < UNIT_ROWS ? m - i : UNIT_ROWS;
                unit_tiles[rows - 1][w->cell](w, p, &at);
            }
}
/* The sums that row i of a table x begins with, for every unit: the same chains as of a token. */
static void unit_sums_of(const unit_weights *w, const real *x, int64_t i, real *sums)
{
    const int64_t S = w->cell < WEFT__GRU ? w->hidden : 4 * w->hidden;
    for (int64_t p = 0; p < unit_panels(w); p++) {
        const real *panel = w->panel + p * w->each;
        vec sum[1][4];
        if (w->cell == WEFT__GRU)
            unit_begin(1, WEFT__GRU, w, panel, x + i * w->inputs, sum);
        else
            unit_begin(1, WEFT__LSTM, w, panel, x + i * w->inputs, sum);
        for (int g = 0; g < 4; g++) {
            int64_t j = p * unit_columns(w), left = unit_left(w, w->cell, j, g);
            if (left > 0)
                v_store_to(sums + i * S + unit_slot_at(w, w->cell, j, g), sum[0][g], left);
        }
    }
}
#undef INLINE
#undef EACH
#endif
