/* ints.cu - operators on integers, and range checks of numbers. One thread computes one element. Ids are few
 * compared with the numbers they select, so wider loads would gain nothing. */
#include "core/shared/ints.h"
#include "cuda/groups.h"

#define EACH(i, n) for (int64_t i = first_index(); i < (n); i += index_step())

__global__ static void binary_ints_each(int f, weft__grid g, int64_t n, const int32_t *a, const int32_t *b,
                                        int32_t *y)
{
    EACH(i, n)
        y[i] = weft__of_ints(f, a[place_in(g, g.rank, 0, i)], b[place_in(g, g.rank, 1, i)]);
}
void K(binary_ints)(weft__device *d, int f, const weft__grid *g, const int32_t *a, const int32_t *b,
                    int32_t *y)
{
    int64_t n = elements_of(g);
    LAUNCH(d, binary_ints_each, blocks_for(n), THREADS, 0, f, *g, n, a, b, y);
}
__global__ static void compare_ints_each(int f, weft__grid g, int64_t n, const int32_t *a, const int32_t *b,
                                         real *y)
{
    EACH(i, n)
        y[i] = weft__holds_of_ints(f, a[place_in(g, g.rank, 0, i)], b[place_in(g, g.rank, 1, i)]);
}
void K(compare_ints)(weft__device *d, int f, const weft__grid *g, const int32_t *a, const int32_t *b, real *y)
{
    int64_t n = elements_of(g);
    LAUNCH(d, compare_ints_each, blocks_for(n), THREADS, 0, f, *g, n, a, b, y);
}
__global__ static void select_ints_each(weft__grid g, int64_t n, const real *condition, const int32_t *a,
                                        const int32_t *b, int32_t *y)
{
    EACH(i, n)
        y[i] = condition[place_in(g, g.rank, 0, i)] != 0 ? a[place_in(g, g.rank, 1, i)]
                                                         : b[place_in(g, g.rank, 2, i)];
}
void K(select_ints)(weft__device *d, const weft__grid *g, const real *condition, const int32_t *a,
                    const int32_t *b, int32_t *y)
{
    int64_t n = elements_of(g);
    LAUNCH(d, select_ints_each, blocks_for(n), THREADS, 0, *g, n, condition, a, b, y);
}
__global__ static void spread_ints_each(weft__grid g, int64_t n, const int32_t *x, int32_t *y)
{
    EACH(i, n)
        y[i] = x[place_in(g, g.rank, 0, i)];
}
void K(spread_ints)(weft__device *d, const weft__grid *g, const int32_t *x, int32_t *y)
{
    int64_t n = elements_of(g);
    LAUNCH(d, spread_ints_each, blocks_for(n), THREADS, 0, *g, n, x, y);
}
__global__ static void segment_ints_each(weft__segments s, int f, const int32_t *x, int32_t *y)
{
    EACH(i, s.count * s.inner) {
        const int64_t run = i / s.inner, n = run_length(&s, run);
        const int32_t *v = x + first_row(&s, run) * s.inner + i % s.inner;
        int32_t all = n ? v[0] : 0;
        for (int64_t r = 1; r < n; r++)
            all = weft__of_ints(f, all, v[r * s.inner]);
        y[i] = all;
    }
}
void K(segment_ints)(weft__device *d, const weft__segments *s, int f, const int32_t *x, int32_t *y)
{
    LAUNCH(d, segment_ints_each, blocks_for(s->count * s->inner), THREADS, 0, *s, f, x, y);
}
__global__ static void check_range_each(int64_t n, real low, real high, const real *x, faults f)
{
    EACH(i, n)
        if (x[i] < low || x[i] > high)
            within(f, i, 0, 0, -2);
}
void K(check_range)(weft__device *d, int64_t n, real low, real high, const real *x)
{
    LAUNCH(d, check_range_each, blocks_for(n), THREADS, 0, n, low, high, x, faults_of(d));
}
