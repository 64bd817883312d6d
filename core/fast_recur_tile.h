/* fast_recur_tile.h - rows times packed weights, y [m, n] += x [m, k] w, the one product that a recurrence needs.
 *
 * An element of y is summed in one register, from what was in y, over k in ascending order. So its bits depend on its row of x
 * and on w alone, not on m, on the tile it falls into, or on where k is cut in pieces. */
#ifndef WEFT_FAST_RECUR_TILE_H
#define WEFT_FAST_RECUR_TILE_H
#include "core/vector.h"

enum {
    PANEL = 2 * VLEN,                            /* columns of a panel; a tile is some rows by one panel or more */
#if VBYTES == 64
    TILE_ROWS = 12, TILE_SUMS = 24,              /* 32 registers: the sums, a row of the panel, an x */
#else
    TILE_ROWS = 6, TILE_SUMS = 12,
#endif
    TILE_PANELS = 4,
    DEEP = 16384 / (PANEL * (int)sizeof(real))   /* rows of a panel that stay in the first cache while all rows of x pass */
};

/* w [k, n] in panels: panel p is [k, PANEL], columns p * PANEL on, zeros beyond n. */
typedef struct { real *panel; int64_t k, n; } packed_weights;

static inline int64_t packed_panels(int64_t n)              { return (n + PANEL - 1) / PANEL; }
static inline int64_t packed_size(int64_t k, int64_t n)     { return packed_panels(n) * k * PANEL; }

/* to[i][c] = w[c][i] for i < k, c < columns, VLEN at most, and 0 beyond; rows of w are k long, those of `to` `row` apart. */
static void pack_transposed(const real *w, int64_t k, int64_t columns, real *to, int64_t row)
{
    vec x[VLEN];
    for (int64_t i = 0, left; i < k; i += VLEN) {
        left = k - i;
        for (int c = 0; c < VLEN; c++)
            x[c] = c < columns ? v_load_to(w + c * k + i, left) : v_set(0);
        v_transpose(x);
        for (int64_t r = 0; r < VLEN && r < left; r++)
            v_store(to + (i + r) * row, x[r]);
    }
}
static void pack_straight(const real *w, int64_t k, int64_t n, int64_t columns, real *to)
{
    for (int64_t i = 0; i < k; i++)
        v_store(to + i * PANEL, columns > 0 ? v_load_to(w + i * n, columns) : v_set(0));
}
/* Panel p of w [k, n], or of the transpose of w [n, k]. */
static void pack_panel(bool transposed, const real *w, int64_t k, int64_t n, int64_t p, real *to)
{
    for (int64_t c = p * PANEL; c < (p + 1) * PANEL; c += VLEN, to += VLEN)
        if (transposed)
            pack_transposed(w + (c < n ? c * k : 0), k, n - c, to, PANEL);
        else
            pack_straight(w + (c < n ? c : 0), k, n, n - c, to);
}

/* What the next step will read: fetched into the first cache, some lines with each tile of this one. */
typedef struct recur_ahead { const char *at, *end; } recur_ahead;
static inline void recur_fetch(recur_ahead *f)
{
    enum { LINE = 64, AT_ONCE = 8 };
    for (int i = 0; i < AT_ONCE && f->at < f->end; i++, f->at += LINE)
        __builtin_prefetch(f->at);
}

#ifdef __clang__                                 /* must be whole, or the sums do not become registers */
#define EACH(i, n) _Pragma("clang loop unroll(full)") for (int i = 0; i < (n); i++)
#else
#define EACH(i, n) _Pragma("GCC unroll 16") for (int i = 0; i < (n); i++)
#endif
#define INLINE static inline __attribute__((always_inline))

/* rows x panels of y, by k rows of each panel, which lie `far` apart. */
#define ARGUMENTS int64_t k, const real *x, int64_t ldx, const real *w, int64_t far, real *y, int64_t ldy
INLINE void tile_by(const int rows, const int panels, ARGUMENTS)
{
    vec sum[TILE_ROWS][2 * TILE_PANELS], b[2 * TILE_PANELS];
    EACH(r, rows)
        EACH(v, 2 * panels)
            sum[r][v] = v_load(y + r * ldy + v * VLEN);
    for (int64_t i = 0; i < k; i++, w += PANEL) {
        EACH(v, 2 * panels)
            b[v] = v_load(w + v / 2 * far + v % 2 * VLEN);
        EACH(r, rows)
            EACH(v, 2 * panels)
                sum[r][v] = v_fma(v_set(x[r * ldx + i]), b[v], sum[r][v]);
    }
    EACH(r, rows)
        EACH(v, 2 * panels)
            v_store(y + r * ldy + v * VLEN, sum[r][v]);
}

typedef void recur_tile(ARGUMENTS);
#define TILE(rows, panels)                                                      \
    static void tile_##rows##_##panels(ARGUMENTS)                               \
    {                                                                           \
        tile_by(rows, panels, k, x, ldx, w, far, y, ldy);                       \
    }
/* Few rows take more panels at a time, for a fused multiply-add waits some four cycles for the one before it. */
TILE(1, 1) TILE(2, 1) TILE(3, 1) TILE(4, 1) TILE(5, 1) TILE(6, 1) TILE(1, 4)
#if VBYTES == 64
TILE(7, 1) TILE(8, 1) TILE(9, 1) TILE(10, 1) TILE(11, 1) TILE(12, 1)
TILE(2, 4) TILE(3, 4) TILE(4, 2) TILE(5, 2) TILE(6, 2)
static recur_tile *const one_panel[] = { NULL, tile_1_1, tile_2_1, tile_3_1, tile_4_1, tile_5_1, tile_6_1,
                                         tile_7_1, tile_8_1, tile_9_1, tile_10_1, tile_11_1, tile_12_1 };
static recur_tile *const more_panels[] = { NULL, tile_1_4, tile_2_4, tile_3_4, tile_4_2, tile_5_2, tile_6_2 };
static inline int tile_panels(int64_t rows)                 { return rows <= 3 ? 4 : rows <= 6 ? 2 : 1; }
#else
TILE(2, 2) TILE(3, 2)
static recur_tile *const one_panel[] = { NULL, tile_1_1, tile_2_1, tile_3_1, tile_4_1, tile_5_1, tile_6_1 };
static recur_tile *const more_panels[] = { NULL, tile_1_4, tile_2_2, tile_3_2 };
static inline int tile_panels(int64_t rows)                 { return rows <= 1 ? 4 : rows <= 3 ? 2 : 1; }
#endif
#undef TILE
#undef ARGUMENTS
#undef INLINE
#undef EACH

/* The last panel where y ends within it: by way of a copy as wide as the panel. */
static void recur_edge(int64_t rows, int64_t k, const real *x, int64_t ldx, const real *w, real *y, int64_t ldy, int64_t columns)
{
    real copy[TILE_ROWS * PANEL] = { 0 };
    for (int64_t r = 0; r < rows; r++)
        memcpy(copy + r * PANEL, y + r * ldy, (size_t)columns * sizeof *y);
    one_panel[rows](k, x, ldx, w, 0, copy, PANEL);
    for (int64_t r = 0; r < rows; r++)
        memcpy(y + r * ldy, copy + r * PANEL, (size_t)columns * sizeof *y);
}
/* All rows of x, by rows from .. from + k of `panels` panels. The tiles are of about equal height: 7 rows are 4 and 3. */
static void recur_strip(const packed_weights *w, recur_ahead *f, int64_t p, int64_t panels, int64_t from, int64_t k, int64_t m,
                        const real *x, int64_t ldx, real *y, int64_t ldy)
{
    const real *panel = w->panel + (p * w->k + from) * PANEL;
    int64_t rows, columns = w->n - p * PANEL;
    for (int64_t tiles = (m + TILE_ROWS - 1) / TILE_ROWS; tiles; tiles--, m -= rows, x += rows * ldx, y += rows * ldy) {
        rows = (m + tiles - 1) / tiles;
        recur_fetch(f);
        if (columns < PANEL)
            recur_edge(rows, k, x + from, ldx, panel, y + p * PANEL, ldy, columns);
        else
            (panels > 1 ? more_panels : one_panel)[rows](k, x + from, ldx, panel, w->k * PANEL, y + p * PANEL, ldy);
    }
}
/* The columns of panels p .. end of y. */
static void recur_product(const packed_weights *w, int64_t p, int64_t end, recur_ahead *f, int64_t m, const real *x, int64_t ldx, real *y, int64_t ldy)
{
    int64_t many = tile_panels(m);
    for (int64_t panels; p < end; p += panels) {
        panels = p + many <= end && (p + many) * PANEL <= w->n ? many : 1;
        for (int64_t from = 0; from < w->k; from += DEEP)
            recur_strip(w, f, p, panels, from, w->k - from < DEEP ? w->k - from : DEEP, m, x, ldx, y, ldy);
    }
}
#endif
