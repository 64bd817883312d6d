/* scan.cu - linear recurrences along runs of rows. A thread has one column of a run and walks along its
 * rows in order, so its bits depend on nothing else. The loads of AHEAD rows are issued together; only the
 * chain of products is sequential. */
#include "cuda/groups.h"

/* few threads in a block, so that more multiprocessors have one */
enum { AHEAD = 8, COLUMNS = 64 };

__device__ static void scan_column(const weft__scan &k, int64_t run, int64_t column)
{
    const int64_t rows = run_length(&k.s, run);
    real y = k.first ? k.first[run * k.s.inner + column] : 0;
    for (int64_t i = 0; i < rows; i += AHEAD) {
        real a[AHEAD], b[AHEAD];
        for (int l = 0; l < AHEAD; l++)
            if (i + l < rows) {
                a[l] = k.a[scan_factor(&k, run, i + l) + column];
                b[l] = k.b[scan_row(&k, run, i + l) + column];
            }
        for (int l = 0; l < AHEAD; l++)
            if (i + l < rows) {
                y = k.later && y == 0 ? b[l] : fma(a[l], y, b[l]);
                k.y[scan_row(&k, run, i + l) + column] = y;
            }
    }
}
/* Rows from `end` - 1 down; values of rows before the first are those of `first`. */
__device__ static void scan_column_back(const weft__scan &k, int64_t run, int64_t column)
{
    const real first = k.first ? k.first[run * k.s.inner + column] : 0;
    real carry = 0;
    for (int64_t end = run_length(&k.s, run); end > 0; end -= AHEAD) {
        real a[AHEAD], dy[AHEAD], before[AHEAD];
        for (int l = 0; l < AHEAD; l++)
            if (end > l) {
                a[l] = k.a[scan_factor(&k, run, end - 1 - l) + column];
                dy[l] = k.dy[scan_row(&k, run, end - 1 - l) + column];
                before[l] = end - 1 > l ? k.y[scan_row(&k, run, end - 2 - l) + column] : first;
            }
        for (int l = 0; l < AHEAD; l++)
            if (end > l) {
                const int64_t at = scan_row(&k, run, end - 1 - l) + column;
                const real g = dy[l] + carry;
                carry = if_given(g, g * a[l]);
                if (k.db.to)
                    put(k.db.to + at, g, k.db.add);
                if (k.da.to)
                    put(k.da.to + at, if_given(g, g * before[l]), k.da.add);
            }
    }
    if (k.dfirst.to)
        put(k.dfirst.to + run * k.s.inner + column, carry, k.dfirst.add);
}
template <bool BACK> __global__ static void scan_each(weft__scan k)
{
    for (int64_t i = first_index(); i < k.s.count * k.s.inner; i += index_step())
        (BACK ? scan_column_back : scan_column)(k, i / k.s.inner, i % k.s.inner);
}
void K(scan)(weft__device *d, const weft__scan *k)
{
    LAUNCH(d, scan_each<false>, blocks_for(k->s.count * k->s.inner, COLUMNS), COLUMNS, 0, *k);
}
void K(scan_back)(weft__device *d, const weft__scan *k)
{
    LAUNCH(d, scan_each<true>, blocks_for(k->s.count * k->s.inner, COLUMNS), COLUMNS, 0, *k);
}
