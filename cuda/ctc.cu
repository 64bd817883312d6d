/* ctc.cu - CTC; core/shared/ctc.h has the formulas. One thread owns a sequence. */
#include "cuda/cuda.h"
#include "core/shared/ctc.h"

__global__ static void ctc_weight_each(weft__ctc c, const real *mask, real *y, faults f)
{
    for (int64_t s = first_index(); s < c.sequences; s += index_step()) {
        ctc_fault wrong = { 0, 0, 0 };
        y[s] = mask ? mask[s] : 1;
        if (y[s] == 0 || ctc_fits(&c, s, c.offset.device, c.label_offset.device, &wrong))
            continue;
        y[s] = 0;
        if (!(c.skip && wrong.below == WEFT__NO_FIT))
            within(f, wrong.row, wrong.value, wrong.below < 0 ? INT64_MAX : 0, wrong.below);
    }
}
void K(ctc_weight)(weft__device *d, const weft__ctc *c, const real *mask, real *y)
{
    LAUNCH(d, ctc_weight_each, blocks_for(c->sequences), THREADS, 0, *c, mask, y, faults_of(d));
}

__global__ static void ctc_each(weft__ctc c, real *y)
{
    for (int64_t s = first_index(); s < c.sequences; s += index_step()) {
        const ctc_part p = ctc_sequence(&c, s, c.offset.device, c.label_offset.device);
        y[s] = c.weight[s] == 0 ? 0 : c.weight[s] * (real)ctc_loss(&p);
    }
}
void K(ctc)(weft__device *d, const weft__ctc *c, real *y)
{
    LAUNCH(d, ctc_each, blocks_for(c->sequences, 32), 32, 0, *c, y);
}

__global__ static void ctc_back_each(weft__ctc c, const real *dy, real *dx, bool add)
{
    for (int64_t s = first_index(); s < c.sequences; s += index_step()) {
        const ctc_part p = ctc_sequence(&c, s, c.offset.device, c.label_offset.device);
        const real g = c.weight[s] == 0 ? 0 : c.weight[s] * dy[s];
        real *to = dx + c.offset.device[s] * c.classes;
        if (g != 0)
            ctc_gradient(&p, g, to, add);
        for (int64_t i = 0; g == 0 && !add && i < p.steps * p.classes; i++)
            to[i] = 0;
    }
}
void K(ctc_back)(weft__device *d, const weft__ctc *c, const real *dy, real *dx, bool add)
{
    LAUNCH(d, ctc_back_each, blocks_for(c->sequences, 32), 32, 0, *c, dy, dx, add);
}
