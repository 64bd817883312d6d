/* beam.c - beam search: keeps the K best beginnings of every sequence.
 *
 * An ending competes if it is among the K best continuations. A sequence is finished when no beginning can
 * overtake the last of the hypotheses to return. Each token is a node that refers to the previous one, so a
 * hypothesis is a path back from its last node. Beginnings that can no longer win are dropped. This changes
 * no result: their continuations are worse still and take no place among the K best that a possible winner
 * needs. */
#include <math.h>
#include <string.h>
#include "rnn/decode.h"

enum { NO_NODE = -1 };
typedef struct { int64_t before; int32_t token; } path_node;
/* `penalised` orders hypotheses; -inf marks an unused entry. last: its last node. */
typedef struct { double penalised, score; int64_t last; int32_t length; } hypothesis;
/* Log probability and last node of each row. */
typedef struct { double *score; int64_t *node; } beginnings;
typedef struct {
    weft__decoder d;
    beginnings now, next;
    hypothesis *best;                            /* [n, best], best first */
    path_node *nodes; int64_t count, capacity;
    weft__best k_best; /* 2 K continuations, at most K of them endings */
} search;

/* length: tokens, including the end */
static double penalised(const search *b, double score, int64_t length)
{
    return b->d.o->length_penalty == 0 ? score : score / pow((double)length, b->d.o->length_penalty);
}

/* Returns an upper bound of a beginning's penalised score: scores only fall; a longer length lifts them. */
static double best_penalised(const search *b, double score, int64_t length)
{
    int64_t next = length < b->d.o->limit ? length + 1 : length;
    return penalised(b, score, b->d.o->length_penalty > 0 ? b->d.o->limit : next);
}

/* Returns the penalised score that a new hypothesis must exceed. */
static double threshold(const search *b, int64_t s) { return b->best[(s + 1) * b->d.best - 1].penalised; }

static void consider(search *b, int64_t s, hypothesis h)
{
    hypothesis *best = b->best + s * b->d.best;
    int64_t i = b->d.best - 1;
    if (!(h.penalised > best[i].penalised))
        return;
    for (; i > 0 && h.penalised > best[i - 1].penalised; i--)
        best[i] = best[i - 1];
    best[i] = h;
}

static beginnings beginnings_new(weft *w, int64_t rows)
{
    return (beginnings){ weft__take(w, WEFT__ARENA_CALLS, rows * (int64_t)sizeof(double)),
                         weft__take(w, WEFT__ARENA_CALLS, rows * (int64_t)sizeof(int64_t)) };
}

static bool begin_search(search *b)
{
    weft *w = b->d.w;
    int64_t n = b->d.n, K = b->d.beams;
    b->now = beginnings_new(w, n * K);
    b->next = beginnings_new(w, n * K);
    b->best = weft__take(w, WEFT__ARENA_CALLS, n * b->d.best * (int64_t)sizeof *b->best);
    b->k_best.heap = weft__take(w, WEFT__ARENA_CALLS, 2 * K * (int64_t)sizeof *b->k_best.heap);
    b->k_best.k = 2 * K;
    if (w->status)
        return false;
    for (int64_t s = 0; s < n; s++) {
        b->next.score[s] = 0;
        b->next.node[s] = NO_NODE;
    }
    for (int64_t i = 0; i < n * b->d.best; i++)
        b->best[i] = (hypothesis){ -HUGE_VAL, -HUGE_VAL, NO_NODE, -1 };
    return true;
}

/* ---- the nodes ---- */
static bool room_for_nodes(search *b, int64_t more)
{
    weft *w = b->d.w;
    if (b->count + more <= b->capacity)
        return true;
    int64_t capacity = 2 * (b->count + more);
    path_node *p = weft__allocate(w, (size_t)capacity * sizeof *p);
    if (p && b->count)
        memcpy(p, b->nodes, (size_t)b->count * sizeof *p);
    if (p)
        weft__release(w, b->nodes), b->nodes = p, b->capacity = capacity;
    return p;
}

/* Takes the memory of nodes that the context keeps between searches. A search inside a step of another one
 * allocates its own; the larger block is kept. */
static void take_nodes(search *b)
{
    size_t bytes;
    b->nodes = weft__take_spare(b->d.w, &bytes);
    b->capacity = (int64_t)(bytes / sizeof *b->nodes);
}

static int64_t node_new(search *b, int32_t token, int64_t before)
{
    b->nodes[b->count] = (path_node){ before, token };
    return b->count++;
}

static void read_back(const search *b)
{
    for (int64_t i = 0; i < b->d.n * b->d.best; i++) {
        const hypothesis *h = &b->best[i];
        int32_t *to = b->d.result.tokens + i * b->d.o->limit;
        b->d.result.len[i] = h->length;
        b->d.result.score[i] = h->score;
        for (int64_t t = h->length, index = h->last; t-- > 0; index = b->nodes[index].before)
            to[t] = b->nodes[index].token;
    }
}

/* ---- one sequence, one step ---- */
/* Offers the continuations of the rows [rows, classes] from `first` on. Returns false if a score is NaN, or
 * none is above -inf. */
static bool offer_all(search *b, int64_t first, int64_t rows, const real *log_p)
{
    int64_t C = b->d.classes;
    b->k_best.n = 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < C; j++) {
            double p = (double)log_p[i * C + j];
            if (!(p <= WEFT__LOG_P_MOST))
                return false;
            double score = b->now.score[first + i] + p;
            if (score > -HUGE_VAL && (b->k_best.n < b->k_best.k || score > b->k_best.heap[0].score))
                weft__best_offer(&b->k_best, score, i * C + j);
        }
    weft__best_sort(&b->k_best);
    return b->k_best.n > 0;
}

static void add_row(search *b, int32_t token, int64_t s, int64_t parent, double score, int64_t node)
{
    b->next.score[b->d.next.n] = score;
    b->next.node[b->d.next.n] = node;
    weft__decoder_add_row(&b->d, token, s, parent);
}

/* Fills the next step's rows with the K best continuations. At the limit they compete as they are. */
static void continue_with(search *b, int64_t s, int64_t first)
{
    int64_t K = b->d.beams, C = b->d.classes, alive = 0, length = weft__decoder_length(&b->d, s);
    bool cut = length == b->d.o->limit;
    int64_t from = b->d.next.n;
    for (int64_t i = 0; i < b->k_best.n && alive < K; i++) {
        weft__scored x = b->k_best.heap[i];
        int32_t token = (int32_t)(x.id % C);
        int64_t row = first + x.id / C, before = b->now.node[row];
        if (token != b->d.o->end)
            add_row(b, token, s, row, x.score, node_new(b, token, before)), alive++;
        else if (i < K)
            consider(b, s,
                     (hypothesis){ penalised(b, x.score, length), x.score, before, (int32_t)length - 1 });
    }
    for (int64_t r = from; cut && r < from + alive; r++)
        consider(b, s,
                 (hypothesis){ penalised(b, b->next.score[r], length), b->next.score[r],
                               b->next.node[r], (int32_t)length });
    while (alive > 0 &&
           (cut || !(best_penalised(b, b->next.score[from + alive - 1], length) > threshold(b, s))))
        alive--;                                 /* rows are sorted by score */
    b->d.next.n = from + alive;
}

static bool expand(search *b, const real *log_p)
{
    const weft__active_rows *now = &b->d.now;
    for (int64_t r = 0, rows; r < now->n; r += rows) {
        int64_t s = now->sequence[r];
        int32_t given = weft__prompt_token(&b->d, s);
        rows = b->d.row_count[s];
        if (given >= 0) {
            add_row(b, given, s, r, 0, NO_NODE);
        } else if (offer_all(b, r, rows, log_p + r * b->d.classes)) {
            continue_with(b, s, r);
        } else {
            weft__fail_scores(&b->d, s);
            return false;
        }
    }
    return true;
}

static bool take_step(search *b)
{
    weft *w = b->d.w;
    beginnings now = b->next;
    b->next = b->now;
    b->now = now;
    weft_tensor *scores = weft__decoder_step(&b->d);
    int64_t numbers = b->d.now.n * b->d.classes;
    real *log_p = scores ? weft__take(w, WEFT__ARENA_CALLS, numbers * (int64_t)sizeof *log_p) : NULL;
    return log_p && room_for_nodes(b, b->d.n * b->d.beams) &&
           weft__read(scores, log_p, (size_t)numbers * sizeof *log_p) == WEFT_OK && expand(b, log_p);
}

weft_decoded weft__decode_beams(const weft__decoder *d, int64_t n, weft_state first)
{
    search b = { .d = *d };
    bool ok = weft__decoder_begin(&b.d, n, first) && begin_search(&b);
    if (ok)
        take_nodes(&b);
    while (ok && b.d.next.n && !b.d.w->status)
        ok = take_step(&b);
    if (ok && !b.d.w->status)
        read_back(&b);
    weft__return_spare(b.d.w, b.nodes, (size_t)b.capacity * sizeof *b.nodes);
    return weft__decoder_end(&b.d);
}
