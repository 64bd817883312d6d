/* powers.c - sequences cut into powers of two, so that no batch has a pad. */
#include <stdlib.h>
#include "plan/planners.h"

enum { POWERS = 31 };

/* Pieces of a power that wait. */
typedef struct {
    weft_segment *piece;
    int64_t n, most;
} waiting;

static weft_status emit(weft_plan *p, waiting *b)
{
    weft_status s = WEFT_OK;
    for (int64_t i = 0; i < b->n && s == WEFT_OK; i++) {
        b->piece[i].row = (int32_t)i;
        s = weft_plan_add(p, b->piece[i]);
    }
    b->n = 0;
    return s == WEFT_OK ? weft__plan_end_whole(p) : s;
}

static weft_status deal(const int32_t *len, const int32_t *order, int64_t n, waiting *b, weft_plan *p)
{
    weft_status s = WEFT_OK;
    for (int64_t at = 0; at < n; at++) {
        int64_t i = order[at];
        int32_t offset = 0;
        for (int k = POWERS - 1; k >= 0 && s == WEFT_OK; k--) {
            if (!(len[i] >> k & 1))
                continue;
            b[k].piece[b[k].n++] = (weft_segment){ i, 0, offset, (int32_t)1 << k, 0, -1 };
            offset += (int32_t)1 << k;
            s = b[k].n == b[k].most ? emit(p, b + k) : WEFT_OK;
        }
    }
    for (int k = 0; k < POWERS && s == WEFT_OK; k++)
        s = b[k].n ? emit(p, b + k) : WEFT_OK;
    return s;
}

static weft_status plan_powers(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    waiting b[POWERS] = { { 0 } };
    int64_t there[POWERS] = { 0 };
    weft_status s = WEFT_OK;
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < POWERS; k++)
            there[k] += len[i] >> k & 1;
    for (int k = 0; k < POWERS && s == WEFT_OK; k++) {
        b[k].most = o->budget >> k > 1 ? o->budget >> k : 1;
        b[k].piece = weft__plan_memory(there[k] < b[k].most ? there[k] : b[k].most, sizeof *b[k].piece);
        s = b[k].piece ? WEFT_OK : WEFT_ENOMEM;
    }
    int32_t *order = s == WEFT_OK ? weft__plan_drawn(o, n) : NULL;
    if (s == WEFT_OK)
        s = order ? deal(len, order, n, b, p) : WEFT_ENOMEM;
    free(order);
    for (int k = 0; k < POWERS; k++)
        free(b[k].piece);
    return s == WEFT_OK ? weft__plan_shuffle_batches(o, p) : s;
}
const weft_planner weft__planner_powers = { .name = "powers",
                                            .source = "dataset decomposition, Pouransari et al. 2024",
                                            .about = "pieces of 2^k tokens",
                                            .options = "budget shuffle",
                                            .promises = 0,
                                            .plan = plan_powers };
