/* hunt_compare.c - compares a program's bits in two configurations, sequence by sequence, and finds the
 * smallest program that still differs. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "hunt.h"

static bool same(weft_real a, weft_real b) { return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b)); }

/* Finds and describes the first difference of sequence s in numbers from .. from + n - 1. */
static bool unlike(const char *what, int s, const weft_real *a, const weft_real *b, int64_t from, int64_t n,
                   char *why, size_t size)
{
    for (int64_t i = from; i < from + n; i++)
        if (!same(a[i], b[i]))
            return snprintf(why, size, "%s of sequence %d, number %lld: %.9g and %.9g", what, s,
                            (long long)(i - from), (double)a[i], (double)b[i]);
    return false;
}

bool hunt_results_differ(const hunt_program *p, const hunt_result *a, const hunt_result *b, char *why,
                         size_t size)
{
    if (*a->failure || *b->failure)
        return snprintf(why, size, "failed: %.180s | %.180s", a->failure, b->failure);
    int64_t at = 0;
    for (int s = 0; s < p->n; at += p->len[s], s++)
        if (unlike("output", s, a->y, b->y, at * a->width, p->len[s] * a->width, why, size)
            || unlike("input gradient", s, a->dx, b->dx, at * p->width, p->len[s] * p->width, why, size)
            || unlike("state gradient", s, a->ds, b->ds, s * HUNT_STATE, HUNT_STATE, why, size))
            return true;
    return false;
}

bool hunt_differs(const hunt_program *p, const hunt_way *first, const hunt_way *way, char *why, size_t size)
{
    hunt_result a = hunt_run(p, first), b = hunt_run(p, way);
    bool differ = hunt_results_differ(p, &a, &b, why, size);
    hunt_end(&a), hunt_end(&b);
    return differ;
}

hunt_program hunt_shrunk(hunt_program p, const hunt_way *first, const hunt_way *way)
{
    char why[600];
    for (bool smaller = true; smaller;) {
        smaller = false;
        for (int i = p.steps; i-- > 0;) {
            hunt_program q = hunt_without_step(&p, i);
            if (hunt_differs(&q, first, way, why, sizeof why))
                p = q, smaller = true;
        }
        for (int n = p.n / 2; n > 0; n /= 2)
            for (int from = 0; from + n <= p.n; from += n) {
                hunt_program q = hunt_without_sequences(&p, from, n);
                if (hunt_differs(&q, first, way, why, sizeof why))
                    p = q, smaller = true;
            }
    }
    return p;
}
