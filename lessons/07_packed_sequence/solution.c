/* Lesson 7, solved. */
#include "lesson.h"

int conjugate(int n, const int32_t *part, int32_t *out)
{
#ifdef START
    (void)n, (void)part, (void)out;     /* begin here: the others can use it */
    return 0;                                   /* the count of numbers in out */
#else
    int count = 0;
    for (int i = 0; i < n; i++)
        count = part[i] > count ? part[i] : count;
    for (int k = 0; k < count; k++) {
        out[k] = 0;
        for (int i = 0; i < n; i++)
            out[k] += part[i] > k;
    }
    return count;
#endif
}

#ifndef START
/* Insertion: a sequence moves before shorter ones only, so ties keep their order. */
static void sort(int n, const int32_t *len, int32_t *sorted)
{
    for (int s = 0; s < n; s++) {
        int place = s;
        for (; place > 0 && len[sorted[place - 1]] < len[s]; place--)
            sorted[place] = sorted[place - 1];
        sorted[place] = s;
    }
}
#endif

void pack_index(int n, const int32_t *len, packing *p)
{
    p->n = n, p->rows = 0;
    p->steps = conjugate(n, len, p->batch_sizes);
#ifdef START
    for (int s = 0; s < n; s++)
        p->sorted[s] = p->unsorted[s] = s;      /* is the longest first? */
    /* write sequence and position of each row, and count the rows */
#else
    sort(n, len, p->sorted);
    for (int place = 0; place < n; place++)
        p->unsorted[p->sorted[place]] = place;
    for (int t = 0; t < p->steps; t++)
        for (int place = 0; place < p->batch_sizes[t]; place++) {
            p->sequence[p->rows] = p->sorted[place];
            p->position[p->rows] = t;
            p->rows++;
        }
#endif
}

void unpack(const packing *p, const double *data, double *padded)
{
    for (int i = 0; i < p->n * p->steps; i++)
        padded[i] = 0;
#ifdef START
    (void)data;                 /* then copy each row of data to its place */
#else
    for (int t = 0, row = 0; t < p->steps; t++)
        for (int place = 0; place < p->batch_sizes[t]; place++)
            padded[p->sorted[place] * p->steps + t] = data[row++];
#endif
}
