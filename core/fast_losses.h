/* fast_losses.h - cross entropy, for forty classes as for fifty thousand: threads own rows, vectors go along the classes. */
#include "core/fast_norm.h"
#include "core/loops_losses.h"

typedef struct entropy_job {
    const weft__entropy *e; const real *logits, *dy; const int32_t *class_;
    real *y, all; bool add;                      /* all: the sum of the classes' weights */
} entropy_job;

static void look_for_faults(weft__device *d, const weft__entropy *e, const int32_t *class_)
{
    for (int64_t r = 0; r < e->rows; r++)
        class_of(d, e, class_, r);
}
/* class_of for a thread, which leaves the fault alone: it has been found. */
static int64_t counted_class(const entropy_job *j, int64_t r)
{
    weft__device nobody = { .fault.is = true };
    return class_of(&nobody, j->e, j->class_, r);
}
/* sum of w (lse - x), which smoothing shares out. */
static real smoothed_sum(const weft__entropy *e, const real *x, real lse)
{
    vec all = v_set(0);
    EACH_VECTOR(i, e->classes) {
        int64_t n = e->classes - i;
        vec v = lse - v_load_to(x + i, n);
        v = e->class_weight ? v_load_to(e->class_weight + i, n) * v : v;
        all += n < VLEN ? v_select(lanes_below(n), v, v_set(0)) : v;
    }
    return v_sum(all);
}
static void entropy_rows(const void *job, int64_t from, int64_t to)
{
    const entropy_job *j = job;
    const weft__entropy *e = j->e;
    for (int64_t r = from, n = e->classes; r < to; r++) {
        const real *x = j->logits + r * n;
        int64_t c = counted_class(j, r);
        real lse = c < 0 ? 0 : log_sum_exp(n, NULL, x), all = c >= 0 && e->smoothing != 0 ? smoothed_sum(e, x, lse) : 0;
        j->y[r] = c < 0 ? 0 : mask_of(e, r) * ((1 - e->smoothing) * weight_of(e, c) * (lse - x[c]) + e->smoothing / (real)n * all);
    }
}
static void K(entropy)(weft__device *d, const weft__entropy *e, const real *logits, const int32_t *class_, real *y)
{
    look_for_faults(d, e, class_);
    entropy_job j = { .e = e, .logits = logits, .class_ = class_, .y = y };
    each_range(d, e->rows, rows_a_chunk(4 * e->classes), entropy_rows, &j);
}

static void entropy_back_rows(const void *job, int64_t from, int64_t to)
{
    const entropy_job *j = job;
    const weft__entropy *e = j->e;
    real share = e->smoothing / (real)e->classes;
    for (int64_t r = from, n = e->classes; r < to; r++) {
        const real *x = j->logits + r * n;
        real *dx = j->y + r * n;
        int64_t c = counted_class(j, r);
        if (c < 0) {
            if (!j->add)
                memset(dx, 0, (size_t)n * sizeof *dx);
            continue;
        }
        real lse = log_sum_exp(n, NULL, x), g = mask_of(e, r) * j->dy[r], own = (1 - e->smoothing) * weight_of(e, c);
        real of_p = g * (own + share * j->all);
        EACH_VECTOR(i, n) {
            vec v = of_p * exp_low(v_load_to(x + i, n - i) - lse);
            if (share != 0)
                v -= g * share * (e->class_weight ? v_load_to(e->class_weight + i, n - i) : v_set(1));
            v_store_to(dx + i, j->add ? v_load_to(dx + i, n - i) + v : v, n - i);
        }
        dx[c] -= g * own;
    }
}
static void K(entropy_back)(weft__device *d, const weft__entropy *e, const real *logits, const int32_t *class_, const real *dy,
                            real *dx, bool add)
{
    entropy_job j = { .e = e, .logits = logits, .dy = dy, .class_ = class_, .y = dx, .add = add };
    for (int64_t i = 0; i < e->classes; i++)
        j.all += weight_of(e, i);
    look_for_faults(d, e, class_);
    each_range(d, e->rows, rows_a_chunk(4 * e->classes), entropy_back_rows, &j);
}
