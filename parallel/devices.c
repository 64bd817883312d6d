/* devices.c - two ranks on one GPU share its time and its memory: nothing fails, it is only slow, so it is
 * said. */
#include <string.h>
#include <unistd.h>
#include "parallel/parallel.h"

typedef struct unit { uint64_t gpu; char host[64]; } unit;

/* The first rank before q with its GPU; -1: none. */
static int shares_with(const weft_parallel *p, int q)
{
    const unit *a = weft__said(p, q);
    for (int r = 0; a->gpu && r < q; r++) {
        const unit *b = weft__said(p, r);
        if (a->gpu == b->gpu && !strcmp(a->host, b->host))
            return r;
    }
    return -1;
}

bool weft__devices_are_told(weft_parallel *p)
{
    unit mine = { .gpu = p->w->dev.unit };
    gethostname(mine.host, sizeof mine.host - 1);
    if (!weft__hand_out(p, "weft_parallel_new", &mine, sizeof mine))
        return false;
    weft__end_texts(p, offsetof(unit, host), sizeof mine.host);
    int many = 0, first = 0, second = 0;
    for (int q = p->world.ranks; q-- > 0;)
        if (shares_with(p, q) >= 0)
            many++, second = q, first = shares_with(p, q);
    p->linked.shared = many;
    if (many && p->world.rank == 0 && !weft__silenced())
        fprintf(stderr,
                "weft: ranks %d and %d share one GPU of %s%s: start one rank a GPU; WEFT_LOG=0 silences "
                "this\n",
                first, second, ((const unit *)weft__said(p, first))->host,
                many > 1 ? ", and so do others" : "");
    return true;
}
