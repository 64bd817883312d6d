/* nests.cu - loop nests: binary functions, selection, broadcasting, copies of blocks. The result is dense,
 * operands have steps. A nest that collapses to one axis (dense operands, scalars) uses a flat loop, any
 * other a loop over rows. */
#include "cuda/groups.h"

enum { SPREAD = WEFT__BINARIES, SELECT };        /* two additional functions: a; a != 0 ? b : c */

template <int F> __device__ static inline real operation(real a, real b, real c)
{
    (void)b, (void)c;
    switch (F) {
#define BINARY(name, value, ...) case WEFT__##name: return value;
#include "core/shared/pointwise.def"
    case SPREAD: break;
    case SELECT: return a != 0 ? b : c;
    }
    return a;
}
/* unused operands repeat the first */
typedef struct operands { const real *x[3]; } operands;

/* Returns true for consecutive aligned numbers, or one number for all. */
__device__ static inline bool fits(const real *x, int64_t step)
{
    return step == 0 || (step == 1 && aligned(x));
}
template <int F>
__global__ static void __launch_bounds__(THREADS) flat_each(weft__grid g, int64_t n, operands o, real *y,
                                                            bool add)
{
    const real *a = o.x[0], *b = o.x[1], *c = o.x[2];
    const int64_t i = g.step[0][0], j = g.step[1][0], k = g.step[2][0];
    const bool two = F != SPREAD, three = F == SELECT;
    const bool fit = aligned(y) && fits(a, i) && (!two || fits(b, j)) && (!three || fits(c, k));
    EACH_QUAD(e, n) {
        const bool whole = fit && e + 4 <= n;
        put_quad(y, e, n, whole,
                 each_of(add, add ? quad_at(y, e, n, whole) : quad{}, operation<F>,
                         quad_at(a, e, n, whole && i, i), two ? quad_at(b, e, n, whole && j, j) : quad{},
                         three ? quad_at(c, e, n, whole && k, k) : quad{}));
    }
}
template <int F> __global__ static void rows_each(weft__grid g, int64_t rows, operands o, real *y, bool add)
{
    int last = g.rank - 1;
    int64_t n = g.size[last], i = g.step[0][last], j = g.step[1][last], k = g.step[2][last];
    EACH_ROW(r, rows) {
        const real *a = o.x[0] + place_in(g, last, 0, r), *b = o.x[1], *c = o.x[2];
        b += F == SPREAD ? 0 : place_in(g, last, 1, r);
        c += F == SELECT ? place_in(g, last, 2, r) : 0;
        real *to = y + r * n;
        MAP_COLUMNS(n, e, to, onto(&to[e], add, operation<F>(a[e * i], b[e * j], c[e * k])))
    }
}
template <int F> static void run_nest(weft__device *d, const weft__grid *grid, operands o, real *y, bool add)
{
    weft__grid g = collapsed(grid, F == SPREAD ? 1 : F == SELECT ? 3 : 2);
    int64_t n = elements_of(&g), width = g.rank ? g.size[g.rank - 1] : 1;
    shape s = plane_of(n ? n / width : 0, width);
    if (g.rank <= 1)
        LAUNCH(d, flat_each<F>, blocks_of_quads(n), THREADS, 0, g, n, o, y, add);
    else
        LAUNCH(d, rows_each<F>, s.grid, s.threads, 0, g, n ? n / width : 0, o, y, add);
}

typedef void nest_fn(weft__device *, const weft__grid *, operands, real *, bool);
static nest_fn *const nests[] = {
#define BINARY(name, ...) run_nest<WEFT__##name>,
#include "core/shared/pointwise.def"
};
void K(binary)(weft__device *d, int f, const weft__grid *grid, const real *a, const real *b, real *y,
               bool add)
{
    nests[f](d, grid, { { a, b, a } }, y, add);
}
void K(select)(weft__device *d, const weft__grid *grid, const real *condition, const real *a, const real *b,
               real *y, bool add)
{
    run_nest<SELECT>(d, grid, { { condition, a, b } }, y, add);
}
void K(spread)(weft__device *d, const weft__grid *g, const real *x, real *y, bool add)
{
    run_nest<SPREAD>(d, g, { { x, x, x } }, y, add);
}

/* ---- blocks ---- */
/* Several copies in one launch. Copy i has its own plane of blocks from block `first` on, `across` blocks
 * wide, and `columns` threads side by side. */
enum { MOST_COPIES = 16 };
typedef struct one_block { weft__block_copy copy; unsigned first, across, columns; } one_block;
typedef struct some_blocks { int count; unsigned blocks; one_block copies[MOST_COPIES]; } some_blocks;
__global__ static void blocks_each(some_blocks all)
{
    int index = 0;
    while (index + 1 < all.count && blockIdx.x >= all.copies[index + 1].first)
        index++;
    const one_block &one = all.copies[index];
    const weft__block_copy &b = one.copy;
    const unsigned block = blockIdx.x - one.first, below = THREADS / one.columns;
    const unsigned end = index + 1 < all.count ? all.copies[index + 1].first : all.blocks;
    const int64_t j0 = (int64_t)(block % one.across) * one.columns + threadIdx.x % one.columns;
    for (int64_t r = (int64_t)(block / one.across) * below + threadIdx.x / one.columns; r < b.rows;
         r += (int64_t)((end - one.first) / one.across) * below) {
        const int64_t i = b.from ? b.from[r] : r, k = b.to ? b.to[r] : r;
        if (k < 0)
            continue;
        const real *from = b.x && i >= 0 ? b.x + i * b.ldx : NULL;
        real *to = b.y + k * b.ldy;
        MAP(j0, (int64_t)one.across * one.columns, b.width, j, to, onto(&to[j], b.add, from ? from[j] : 0))
    }
}
void K(blocks)(weft__device *d, int64_t n, const weft__block_copy *block)
{
    for (int64_t from = 0; from < n; from += MOST_COPIES) {
        some_blocks some = {};
        for (int64_t i = from; i < n && i < from + MOST_COPIES; i++) {
            const shape s = plane_of(block[i].width ? block[i].rows : 0, block[i].width);
            if (s.grid.y) {
                some.copies[some.count++] = { block[i], some.blocks, s.grid.x, s.threads.x };
                some.blocks += s.grid.x * s.grid.y;
            }
        }
        LAUNCH(d, blocks_each, dim3(some.blocks), THREADS, 0, some);
    }
}
__global__ static void block_ints_each(int64_t rows, int64_t width, const int32_t *x, int64_t ldx, int32_t *y,
                                       int64_t ldy)
{
    EACH_ROW(r, rows)
        for (int64_t j = first_column(); j < width; j += column_step())
            y[r * ldy + j] = x[r * ldx + j];
}
void K(block_ints)(weft__device *d, int64_t rows, int64_t width, const int32_t *x, int64_t ldx, int32_t *y,
                   int64_t ldy)
{
    LAUNCH_SHAPE(d, block_ints_each, plane_of(rows, width), rows, width, x, ldx, y, ldy);
}
