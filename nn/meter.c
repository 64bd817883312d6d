/* meter.c - a running mean in buckets of length. Sums of double: an epoch of float losses adds up without
 * loss. */
#include <math.h>
#include "nn/api_loss.h"

static int buckets(const weft_meter *m)          /* 0: of NULL */
{
    if (!m)
        return 0;
    int edges = m->edges < 0 ? 0 : m->edges < WEFT_BUCKETS ? m->edges : WEFT_BUCKETS - 1;
    return edges + 1;
}

void weft_meter_add(weft_meter *meter, double sum, double weight)
{
    if (buckets(meter) > 1) {
        meter->other_sum += sum;
        meter->other_weight += weight;
    } else
        weft_meter_add_bucket(meter, 0, sum, weight);
}

void weft_meter_add_bucket(weft_meter *meter, int64_t length, double sum, double weight)
{
    int i = 0;
    while (i + 1 < buckets(meter) && length >= meter->edge[i])
        i++;
    if (meter) {
        meter->sum[i] += sum;
        meter->weight[i] += weight;
    }
}

double weft_meter_mean(const weft_meter *meter)
{
    double sum = meter ? meter->other_sum : 0, weight = meter ? meter->other_weight : 0;
    for (int i = 0; i < buckets(meter); i++) {
        sum += meter->sum[i];
        weight += meter->weight[i];
    }
    return weight != 0 ? sum / weight : (double)NAN;
}
