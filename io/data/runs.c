/* runs.c - rows of equal ids become one sequence, wherever they are in the file. A run is rows of one id that
 * follow one another; runs of one id are gathered at the place of the first. */
#include <stdlib.h>
#include <string.h>
#include "io/data/csv.h"

bool weft__runs_add(weft__runs *r, const char *id, int64_t row)
{
    weft__stretch *last = r->n ? &r->run[r->n - 1] : NULL;
    if (last && (!id || !strcmp(id, last->id)))
        return last->rows++, true;
    if (r->n == r->room) {
        int64_t room = r->room ? 2 * r->room : 64;
        weft__stretch *more = realloc(r->run, (size_t)room * sizeof *more);
        if (!more)
            return false;
        r->run = more, r->room = room;
    }
    r->run[r->n] = (weft__stretch){ id, row, 1, r->n };
    r->n++;
    return true;
}

static int by_id(const void *a, const void *b)
{
    const weft__stretch *p = a, *q = b;
    int order = strcmp(p->id, q->id);
    return order ? order : (p->group > q->group) - (p->group < q->group);
}

static int by_group(const void *a, const void *b)
{
    const weft__stretch *p = a, *q = b;
    int order = (p->group > q->group) - (p->group < q->group);
    return order ? order : (p->first > q->first) - (p->first < q->first);
}

void weft__runs_by_id(weft__runs *r)
{
    if (r->n)
        qsort(r->run, (size_t)r->n, sizeof *r->run, by_id);
}

bool weft__runs_gather(weft__runs *r)
{
    bool joined = false;
    if (r->n < 2)
        return false;
    weft__runs_by_id(r);
    for (int64_t i = 1; i < r->n; i++)
        if (!strcmp(r->run[i].id, r->run[i - 1].id))
            r->run[i].group = r->run[i - 1].group, joined = true;
    qsort(r->run, (size_t)r->n, sizeof *r->run, by_group);
    return joined;
}
