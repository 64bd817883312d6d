/* Lesson 7: padded is written step after step. */
#include "lesson.h"

int conjugate(int n, const int32_t *part, int32_t *out)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        count = part[i] > count ? part[i] : count;
    for (int k = 0; k < count; k++) {
        out[k] = 0;
        for (int i = 0; i < n; i++)
            out[k] += part[i] > k;
    }
    return count;
}

/* Insertion: a sequence moves before shorter ones only, so equals keep their order. */
static void sort(int n, const int32_t *len, int32_t *sorted)
{
    for (int s = 0; s < n; s++) {
        int place = s;
        for (; place > 0 && len[sorted[place - 1]] < len[s]; place--)
            sorted[place] = sorted[place - 1];
        sorted[place] = s;
    }
}

void pack_index(int n, const int32_t *len, packing *p)
{
    p->n = n, p->rows = 0;
    p->steps = conjugate(n, len, p->batch_sizes);
    sort(n, len, p->sorted);
    for (int place = 0; place < n; place++)
        p->unsorted[p->sorted[place]] = place;
    for (int t = 0; t < p->steps; t++)
        for (int place = 0; place < p->batch_sizes[t]; place++) {
            p->sequence[p->rows] = p->sorted[place];
            p->position[p->rows] = t;
            p->rows++;
        }
}

void unpack(const packing *p, const double *data, double *padded)
{
    for (int i = 0; i < p->n * p->steps; i++)
        padded[i] = 0;
    for (int t = 0, row = 0; t < p->steps; t++)
        for (int place = 0; place < p->batch_sizes[t]; place++)
            padded[t * p->n + p->sorted[place]] = data[row++];
}
