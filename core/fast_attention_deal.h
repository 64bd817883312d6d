/* fast_attention_deal.h - attention's work in pieces, a head's block of queries, of keys or all of it, the largest pieces first, so that
 * threads end together on few long sequences as on many short ones. */
#ifndef WEFT_FAST_ATTENTION_DEAL_H
#define WEFT_FAST_ATTENTION_DEAL_H
#include "core/fast_attention_tile.h"

enum {
    KEYS = 256, QUERIES = 378,                   /* of a block, at most; queries in whole tiles */
    ALL_HEADS = -1,
    WORTH_DEALING = 100000                       /* multiply-adds that are worth waking a thread */
};
typedef enum { BY_QUERIES, BY_KEYS, BY_HEADS } division;
typedef struct attention_piece { int32_t s, h; int64_t part; } attention_piece;      /* h may be ALL_HEADS; part: which block */
typedef struct dealt { attention_piece *piece; int64_t pieces; } dealt;

/* The heads' gradients of shared values add up, so one task has them all. */
static bool heads_share(const weft__attention *a) { return a->shared_values && a->dv_; }
static inline int64_t heads_apart(const weft__attention *a, division by) { return by != BY_QUERIES && heads_share(a) ? 1 : a->heads; }

/* n queries in blocks of at most so many, a multiple of MR: the blocks are about equal, in whole tiles. */
static inline int64_t even_block(int64_t n, int64_t most) { return n > most ? up(parts(n, parts(n, most)), MR) : most; }

static int64_t parts_of(const weft__attention *a, division by, int64_t s)
{
    int64_t queries = a->q_offset.host[s + 1] - a->q_offset.host[s], keys = a->k_offset.host[s + 1] - a->k_offset.host[s];
    return by == BY_QUERIES ? parts(queries, even_block(queries, QUERIES)) : by == BY_KEYS ? parts(keys, KEYS) : queries > 0 && keys > 0;
}
static int64_t pieces_of(const weft__attention *a, division by)
{
    int64_t n = 0;
    for (int64_t s = 0; s < a->sequences; s++)
        n += parts_of(a, by, s);
    return n * heads_apart(a, by);
}
/* The scores of that part, about. */
static double scores_in(const weft__attention *a, division by, int64_t s, int64_t part)
{
    int64_t queries = a->q_offset.host[s + 1] - a->q_offset.host[s], keys = a->k_offset.host[s + 1] - a->k_offset.host[s];
    int64_t block = even_block(queries, QUERIES), i = part * block, m = least(block, queries - i), j = part * KEYS, n = least(KEYS, keys - j);
    if (by == BY_QUERIES)
        return (double)m * (double)weft__keys_seen(a->causal, i + m - 1, queries, keys);
    if (by == BY_HEADS)
        return (double)queries * (double)keys;
    int64_t without = weft__first_seeing(a->causal, j, queries, keys);
    return without < queries ? (double)n * (double)(queries - without) : 0;
}

/* Pieces into classes by powers of two of their work, the largest first. */
enum { CLASSES = 64 };
static int class_by_work(double work)
{
    int e;
    (void)frexp(work, &e);
    return CLASSES - 1 - (e < 0 ? 0 : e < CLASSES ? e : CLASSES - 1);
}
typedef void each_part(void *to, division by, const weft__attention *a, int64_t s, int64_t part, double work);
static void for_each_part(const weft__attention *a, division by, each_part *visit, void *to)
{
    for (int64_t s = 0; s < a->sequences; s++)
        for (int64_t part = 0, n = parts_of(a, by, s); part < n; part++)
            visit(to, by, a, s, part, scores_in(a, by, s, part));
}
typedef struct sorting { int64_t next[CLASSES + 1]; double all, most; attention_piece *piece; } sorting;
static void count_part(void *to, division by, const weft__attention *a, int64_t s, int64_t part, double work)
{
    sorting *o = to;
    (void)s, (void)part;
    o->next[class_by_work(work) + 1] += heads_apart(a, by);
    o->all += work * (double)heads_apart(a, by), o->most = work > o->most ? work : o->most;
}
static void place_part(void *to, division by, const weft__attention *a, int64_t s, int64_t part, double work)
{
    sorting *o = to;
    for (int32_t h = 0; h < heads_apart(a, by); h++)
        o->piece[o->next[class_by_work(work)]++] = (attention_piece){ (int32_t)s, heads_apart(a, by) < a->heads ? ALL_HEADS : h, part };
}
static void deal(weft__device *d, const weft__attention *a, division by, dealt *to, weft__task *task, void *argument)
{
    sorting o = { .piece = to->piece };
    for_each_part(a, by, count_part, &o);
    for (int c = 0; c < CLASSES; c++)
        o.next[c + 1] += o.next[c];
    to->pieces = o.next[CLASSES];
    for_each_part(a, by, place_part, &o);
    if (o.all * (double)(a->dk + a->dv) >= WORTH_DEALING)
        weft__parallel(d, to->pieces, task, argument);
    else
        for (int64_t i = 0; i < to->pieces; i++)
            task(argument, i);
}
/* Whether the largest piece would keep a thread much longer than its share. */
static bool uneven(const weft__attention *a, division by, int64_t threads)
{
    sorting o = { .piece = NULL };
    for_each_part(a, by, count_part, &o);
    return (double)threads * o.most > 1.4 * o.all;
}
#endif
