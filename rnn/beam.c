/* beam.c - beam search: for every sequence the K best beginnings so far are kept alive; an ending competes
 * when it is among the K best continuations, and a sequence is finished when nothing alive can overtake its
 * best hypothesis.
 *
 * Row s K + i is beam i of sequence s. Every step writes, for each row, its token and the row of the step
 * before that it continues: the hypotheses are paths in that trellis, and only the best path of each sequence
 * is read back in the end. A dead row has score -inf; at first all but one are, so that no two rows are ever
 * the same hypothesis. */
#include <math.h>
#include <string.h>
#include "rnn/decode.h"

/* the best one so far: `steps` tokens, back from `row` */
typedef struct { double worth, score; int64_t steps, row; bool done; } hypothesis;
typedef struct {
    weft__decoder d;
    double *score;                               /* [rows] log probability of each beginning; -inf: dead */
    int32_t *last, *parent;                      /* [rows] the trellis' newest step */
    hypothesis *best;                            /* [n] */
    int32_t *tokens, *parents; int64_t room;     /* [room, rows] the trellis */
    weft__best k_best;                           /* 2 K continuations: at most K of them are endings */
    double *next;                                /* [K] scores to be */
    int64_t going;
} search;

static double worth(const search *b, double score, int64_t length)    /* length: tokens, the end counted */
{
    return b->d.o->length_penalty == 0 ? score : score / pow((double)length, b->d.o->length_penalty);
}

/* The most that a beginning can come to: scores only fall, dividing by a longer length lifts them. */
static double promise(const search *b, double score)
{
    int64_t next = b->d.at < b->d.o->limit ? b->d.at + 1 : b->d.at;
    return worth(b, score, b->d.o->length_penalty > 0 ? b->d.o->limit : next);
}

static void consider(search *b, int64_t s, double score, int64_t length, int64_t steps, int64_t row)
{
    double w = worth(b, score, length);
    if (w > b->best[s].worth)
        b->best[s] = (hypothesis){ w, score, steps, row, false };
}

static bool begin_search(search *b)
{
    weft *w = b->d.w;
    int64_t rows = b->d.rows, n = b->d.n, K = b->d.beams;
    b->score = weft__take(w, &w->notes, rows * (int64_t)sizeof *b->score);
    b->last = weft__take(w, &w->notes, rows * (int64_t)sizeof *b->last);
    b->parent = weft__take(w, &w->notes, rows * (int64_t)sizeof *b->parent);
    b->best = weft__take(w, &w->notes, n * (int64_t)sizeof *b->best);
    b->next = weft__take(w, &w->notes, K * (int64_t)sizeof *b->next);
    b->k_best = (weft__best){ weft__take(w, &w->notes, 2 * K * (int64_t)sizeof *b->k_best.at), 2 * K, 0 };
    b->going = n;
    if (w->status)
        return false;
    for (int64_t r = 0; r < rows; r++)
        b->score[r] = r % K ? -HUGE_VAL : 0, b->last[r] = b->d.o->begin, b->parent[r] = (int32_t)r;
    for (int64_t s = 0; s < n; s++)
        b->best[s] = (hypothesis){ -HUGE_VAL, 0, 0, 0, false };
    return true;
}

/* ---- the trellis ---- */
static int32_t *grow_history(search *b, int32_t *old, int64_t room)
{
    weft *w = b->d.w;
    size_t row = (size_t)b->d.rows * sizeof *old;
    int32_t *p = weft__allocate(w, (size_t)room * row);
    if (p && old)
        memcpy(p, old, (size_t)b->room * row);
    if (p)
        weft__release(w, old);
    return p ? p : old;
}

static bool remember(search *b)                  /* the newest step, number at - 1 */
{
    int64_t t = b->d.at - 1, rows = b->d.rows;
    if (t == b->room) {
        int64_t room = b->room ? 2 * b->room : 32;
        b->tokens = grow_history(b, b->tokens, room), b->parents = grow_history(b, b->parents, room);
        b->room = room;
    }
    if (b->d.w->status)
        return false;
    memcpy(b->tokens + t * rows, b->last, (size_t)rows * sizeof *b->last);
    memcpy(b->parents + t * rows, b->parent, (size_t)rows * sizeof *b->parent);
    return true;
}

static void read_back(const search *b, int64_t s)
{
    const hypothesis *h = &b->best[s];
    int32_t *to = b->d.out.tokens + s * b->d.o->limit;
    b->d.out.len[s] = (int32_t)h->steps, b->d.out.score[s] = h->score;
    for (int64_t t = h->steps, row = h->row; t-- > 0; row = b->parents[t * b->d.rows + row])
        to[t] = b->tokens[t * b->d.rows + row];
}

/* ---- one sequence, one step ---- */
/* [K, classes]; false if a score is no number, or none is above -inf */
static bool offer_all(search *b, int64_t s, const real *log_p)
{
    int64_t K = b->d.beams, C = b->d.classes;
    b->k_best.n = 0;
    for (int64_t i = 0; i < K; i++)
        for (int64_t j = 0; b->score[s * K + i] > -HUGE_VAL && j < C; j++) {
            double score = b->score[s * K + i] + (double)log_p[i * C + j];
            if (isnan(score))
                return false;
            if (score > -HUGE_VAL)
                weft__best_offer(&b->k_best, score, i * C + j);
        }
    weft__best_sort(&b->k_best);
    return b->k_best.n > 0;
}

static void continue_with(search *b, int64_t s)
{
    int64_t K = b->d.beams, C = b->d.classes, alive = 0;
    for (int64_t i = 0; i < b->k_best.n && alive < K; i++) {
        weft__scored x = b->k_best.at[i];
        int32_t token = (int32_t)(x.id % C), from = (int32_t)(s * K + x.id / C);
        if (token != b->d.o->end)
            b->last[s * K + alive] = token, b->parent[s * K + alive] = from, b->next[alive++] = x.score;
        else if (i < K)
            consider(b, s, x.score, b->d.at, b->d.at - 1, from);
    }
    for (int64_t i = 0; i < K; i++) {
        b->score[s * K + i] = i < alive ? b->next[i] : -HUGE_VAL;
        if (i >= alive)
            b->last[s * K + i] = b->d.o->begin, b->parent[s * K + i] = (int32_t)(s * K + i);
    }
}

/* is it decided? The rows are in the order of their scores. */
static void decide(search *b, int64_t s)
{
    const double *score = b->score + s * b->d.beams;
    if (score[0] > -HUGE_VAL && promise(b, score[0]) > b->best[s].worth)
        return;
    b->best[s].done = true, b->going--;
    for (int64_t i = s * b->d.beams; i < (s + 1) * b->d.beams; i++)
        b->score[i] = -HUGE_VAL;
}

static bool expand(search *b, weft_tensor *scores)
{
    weft *w = b->d.w;
    int64_t each = b->d.beams * b->d.classes;
    real *log_p = weft__take(w, &w->notes, b->d.n * each * (int64_t)sizeof *log_p);
    if (!log_p || weft__read(weft_log_softmax(scores, 1, NULL), log_p,
                             (size_t)(b->d.n * each) * sizeof *log_p) != WEFT_OK)
        return false;
    for (int64_t s = 0; s < b->d.n; s++) {
        if (b->best[s].done)
            continue;
        if (!offer_all(b, s, log_p + s * each)) {
            weft__decoder_bad(&b->d, s);
            return false;
        }
        continue_with(b, s);
        decide(b, s);
    }
    return true;
}

static void finish_search(search *b)                    /* what the limit has cut competes as it is */
{
    for (int64_t s = 0; s < b->d.n; s++) {
        for (int64_t r = s * b->d.beams; r < (s + 1) * b->d.beams; r++)
            if (b->score[r] > -HUGE_VAL)
                consider(b, s, b->score[r], b->d.at, b->d.at, r);
        read_back(b, s);
    }
}

weft_decoded weft__decode_beams(const weft__decoder *d, int64_t n, weft_state first)
{
    search b = { .d = *d };
    bool good = weft__decoder_begin(&b.d, n, d->o->beams, first) && begin_search(&b);
    while (good && b.d.at < d->o->limit && b.going) {
        weft_tensor *scores = weft__decoder_step(&b.d, b.last, b.d.at ? b.parent : NULL);
        good = scores && expand(&b, scores) && remember(&b);
    }
    if (good && !b.d.w->status)
        finish_search(&b);
    weft__release(b.d.w, b.tokens), weft__release(b.d.w, b.parents);
    return weft__decoder_end(&b.d);
}
