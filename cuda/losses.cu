/* losses.cu - cross entropy; weft__entropy has the formula. One group of threads owns a row. It does not read
 * the logits of rows that do not count. */
#include "cuda/groups.h"

__device__ static inline real weight_of(const weft__entropy &e, int64_t c)
{
    return e.class_weight ? e.class_weight[c] : 1;
}
__device__ static inline real mask_of(const weft__entropy &e, int64_t r)   { return e.mask ? e.mask[r] : 1; }
/* Returns the class of a row, or -1 if it does not count. The thread with `notes` reports a bad class. */
__device__ static int64_t class_of(const weft__entropy &e, const int32_t *class_, int64_t r, faults f,
                                   bool notes)
{
    if (r >= e.rows || mask_of(e, r) == 0 || (e.has_ignore && class_[r] == e.ignore))
        return -1;
    int64_t c = class_[r];
    if (notes)
        within(f, r, c, 0, e.classes);
    return c >= 0 && c < e.classes ? c : -1;
}
__global__ static void entropy_weight_each(weft__entropy e, const int32_t *class_, real *y, faults f)
{
    for (int64_t r = first_index(); r < e.rows; r += index_step()) {
        int64_t c = class_of(e, class_, r, f, true);
        y[r] = c < 0 ? 0 : mask_of(e, r) * weight_of(e, c);
    }
}
void K(entropy_weight)(weft__device *d, const weft__entropy *e, const int32_t *class_, real *y)
{
    LAUNCH(d, entropy_weight_each, blocks_for(e->rows), THREADS, 0, *e, class_, y, faults_of(d));
}

/* Returns log sum exp of n consecutive numbers, computed by a group. */
__device__ static real log_total(group g, int64_t n, const real *x)
{
    real most = -(real)INFINITY, sum = 0;
    EACH_LANE(j, g, n)
        most = merged<LARGEST>(x[j], most);
    most = together<LARGEST>(g, most);
    EACH_LANE(j, g, n)
        sum += exp(x[j] - most);
    return most + log(together<SUM>(g, sum));
}
__global__ static void entropy_each(weft__entropy e, const real *logits, const int32_t *class_, real *y,
                                    faults f)
{
    group g = group_along();
    int64_t r = group_number(), c = class_of(e, class_, r, f, g.lane == 0), n = c < 0 ? 0 : e.classes;
    const real *x = logits + r * e.classes;
    real total = log_total(g, n, x), all = 0;
    EACH_LANE(j, g, e.smoothing != 0 ? n : 0)
        all += if_given(weight_of(e, j), weight_of(e, j) * (total - x[j]));
    all = together<SUM>(g, all);
    const real own = c < 0 ? 0 : (1 - e.smoothing) * weight_of(e, c);
    if (r < e.rows && g.lane == 0)
        y[r] = c < 0 ? 0 :
                       mask_of(e, r) *
                           (if_given(own, own * (total - x[c])) + e.smoothing / (real)n * all);
}
void K(entropy)(weft__device *d, const weft__entropy *e, const real *logits, const int32_t *class_, real *y)
{
    LAUNCH_SHAPE(d, entropy_each, groups_along(e->rows, lanes_for(e->classes)), *e, logits, class_, y,
                 faults_of(d));
}
__global__ static void entropy_back_each(weft__entropy e, const real *logits, const int32_t *class_,
                                         const real *dy, real *dx, bool add, faults f)
{
    group g = group_along();
    int64_t r = group_number(), c = class_of(e, class_, r, f, g.lane == 0), n = c < 0 ? 0 : e.classes;
    const real *x = logits + r * e.classes;
    real total = log_total(g, n, x), share = e.smoothing / (real)e.classes, own = 0, factor = 0, all = 0;
    EACH_LANE(j, g, share != 0 ? n : 0)
        all += weight_of(e, j);
    all = together<SUM>(g, all);
    if (c >= 0) {
        own = (1 - e.smoothing) * weight_of(e, c);
        factor = mask_of(e, r) * dy[r];
    }
    EACH_LANE(j, g, r < e.rows ? e.classes : 0) {
        const real of_p = own + share * all, p = c < 0 ? 0 : exp(x[j] - total);
        const real v = factor * (if_given(of_p, of_p * p) - (j == c ? own : 0) - share * weight_of(e, j));
        put(dx + r * e.classes + j, c < 0 ? 0 : if_given(factor, v), add);
    }
}
void K(entropy_back)(weft__device *d, const weft__entropy *e, const real *logits, const int32_t *class_,
                     const real *dy, real *dx, bool add)
{
    LAUNCH_SHAPE(d, entropy_back_each, groups_along(e->rows, lanes_for(e->classes)), *e, logits, class_, dy,
                 dx, add, faults_of(d));
}
