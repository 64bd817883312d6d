/* test_recur_fold.c - tests recur and recur_back of every table when a column holds several consecutive
 * sequences: bit for bit against one column per sequence, and against the plain loops. */
#include "recur_layer.h"

/* The sequences of l in fewer columns, one after the other, here and there with a gap: the same layer,
 * token by token. */
typedef struct folded { layer l; int32_t reset[256]; int64_t columns; } folded;
static void place(folded *f, const layer *l, int32_t column_of[64], int32_t at[64])
{
    int32_t end[64] = { 0 };
    for (int64_t s = 0; s < l->n; s++) {
        int64_t c = (int64_t)dice((uint64_t)(1 + l->n / 2));
        at[s] = end[c] + (int32_t)(l->len[s] ? dice(2) : 0);
        column_of[s] = (int32_t)c;
        end[c] = l->len[s] ? at[s] + l->len[s] : end[c];
    }
    int32_t rank[64];
    for (int64_t c = 0; c < 64; c++) {           /* the longest column first */
        rank[c] = 0;
        for (int64_t other = 0; other < 64; other++)
            rank[c] += end[other] > end[c] || (end[other] == end[c] && other < c);
    }
    for (int64_t c = 0; c < 64; c++)
        f->l.len[rank[c]] = end[c];
    for (int64_t s = 0; s < l->n; s++)
        column_of[s] = rank[column_of[s]];
    for (f->columns = 0; f->columns < 64 && f->l.len[f->columns]; f->columns++) {}
}
static int64_t folded_row(const folded *f, const int32_t *column_of, const int32_t *at, int64_t s, int64_t t)
{
    return f->l.start[at[s] + t] + column_of[s];
}
static void carry_over(const double *from, int64_t row, double *to, int64_t to_row, int64_t width)
{
    memcpy(to + to_row * width, from + row * width, (size_t)width * sizeof *to);
}
static void both_passes(weft *w, const weft__recurrence *r)
{
    w->dev.k->recur(&w->dev, r);
    w->dev.k->recur_back(&w->dev, r);
    w->dev.k->wait(&w->dev);
}
static void same_folded(weft *w, const layer *l)
{
    folded f = { .l = *l };
    int32_t column_of[64], at[64];
    place(&f, l, column_of, at);
    f.l.n = f.columns;
    f.l.states = false;
    /* the sums and weights of a layer of columns; then those of l */
    fill(&f.l);
    memcpy(f.l.x + f.l.at_w, l->x + l->at_w, (size_t)(l->inputs - l->at_w) * sizeof *l->x);
    memset(f.l.dy, 0, (size_t)(f.l.tokens * l->W) * sizeof *f.l.dy),
        memset(f.l.dyc, 0, (size_t)(f.l.tokens * l->H) * sizeof *f.l.dyc);
    cr_assert(f.l.tokens <= COUNT(f.reset));
    for (int64_t i = 0; i < f.l.tokens; i++)
        f.reset[i] = WEFT__ANEW;
    for (int64_t s = 0; s < l->n; s++)
        for (int32_t t = 0; t < l->len[s]; t++) {
            int64_t from = l->start[t] + s, to = folded_row(&f, column_of, at, s, t);
            f.reset[to] = t == (l->reverse ? l->len[s] - 1 : 0) ? (int32_t)s : WEFT__ON;
            carry_over(l->x, from, f.l.x, to, l->G), carry_over(l->dy, from, f.l.dy, to, l->W),
                carry_over(l->dyc, from, f.l.dyc, to, l->H);
        }
    weft__recurrence plain = run(w, l, true), r = record(&f.l);
    add_backward(&f.l, &r);
    r.reset = (weft__ints){ f.reset, seen_by_kernels(f.reset, f.l.tokens) };
    r.sequences = l->n;
    r.h0 = plain.h0;
    r.c0 = plain.c0;
    r.dh0 = hold(l->n * l->W, sizeof(real));
    r.dc0 = plain.dc0 ? hold(l->n * l->H, sizeof(real)) : NULL;
    both_passes(w, &r);
    for (int64_t s = 0; s < l->n; s++)
        for (int32_t t = 0; t < l->len[s]; t++) {
            int64_t a = folded_row(&f, column_of, at, s, t), b = l->start[t] + s;
            same_in_company(text(l), r.gates + a * l->S, plain.gates + b * l->S, l->S);
            same_in_company(text(l), r.h + a * l->W, plain.h + b * l->W, l->W);
            same_in_company(text(l), r.h_before + a * l->W, plain.h_before + b * l->W, l->W);
            if (r.dh)
                same_in_company(text(l), r.dh + a * l->W, plain.dh + b * l->W, l->W);
        }
    for (int64_t i = 0; i < f.l.tokens; i++)     /* Gaps contribute nothing. */
        for (int64_t j = 0; j < l->S && f.reset[i] == WEFT__ANEW; j++)
            cr_assert(r.gates[i * l->S + j] == 0);
    same_in_company(text(l), r.dh0, plain.dh0, l->n * l->W);
    if (r.dc0)
        same_in_company(text(l), r.dc0, plain.dc0, l->n * l->H);
}
TABLE_TEST(recur_fold, columns_of_several_sequences_change_no_bit)
{
    static const int64_t sizes[] = { 5, 33, 70, 129 };
    for (int i = 0; i < COUNT(sizes); i++) {
        dice_seed((uint64_t)i);
        every_layer(w, sizes[i], 1 + (int64_t)dice(20), 5, same_folded);
    }
}

/* Tokens at random positions restart from zeros, with gradients at all tokens. Compared with the plain
 * loops. */
static weft__recurrence run_anew(weft *w, const layer *l, int32_t *reset)
{
    weft__recurrence r = record(l);
    add_backward(l, &r);
    r.reset = (weft__ints){ reset, seen_by_kernels(reset, l->tokens) };
    both_passes(w, &r);
    return r;
}
static void anew_as_the_plain_loops(weft *w, const layer *l)
{
    static int32_t reset[64 * 16];
    cr_assert(l->tokens <= COUNT(reset));
    for (int64_t t = 0; t < l->steps; t++)
        for (int64_t s = 0; s < l->live[t]; s++) {
            bool first = l->reverse ? t == l->len[s] - 1 : t == 0;
            reset[l->start[t] + s] = dice(3) == 0 ? WEFT__ANEW : first ? (int32_t)s : WEFT__ON;
        }
    weft__recurrence a = run_anew(w, l, reset), b = run_anew(plain_loops, l, reset);
    allowed = TOL(1e-12, 1e-5);
    each_array(l, &a, &b, near);
}
LOOPS_TEST(recur_fold, columns_with_resets_match_plain_loops)
{
    static const int64_t sizes[] = { 5, 33, 70, 129 };
    for (int i = 0; i < COUNT(sizes); i++) {
        dice_seed(3 + (uint64_t)i);
        every_layer(w, sizes[i], 1 + (int64_t)dice(12), 5, anew_as_the_plain_loops);
    }
}

/* As wide as a cluster of sixteen blocks of a GPU. */
LOOPS_TEST(recur_fold, wide_columns_with_resets_match_plain_loops)
{
    static const weft__cell cells[] = { WEFT__lstm, WEFT__gru, WEFT__rnn_tanh, WEFT__rnn_relu };
    for (int i = 0; i < COUNT(cells); i += CHECK_SANITIZED && getenv("WEFT_SMALL") ? 3 : 1)
        with_layer(w,
                   (layer){ .cell = cells[i], .bias = true, .H = 290, .W = 290, .n = 3, .len = { 3, 2, 2 } },
                   (uint64_t)i, anew_as_the_plain_loops);
}
