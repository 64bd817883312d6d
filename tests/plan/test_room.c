/* test_room.c - tests rows with other limits than tokens, by examples worked by hand and by their rules:
 * modified first fit decreasing, greedy knapsack, squares, align, longer, costs of ranks, and context
 * parallelism. */
#include <math.h>
#include "plans.h"
#include "tests/failing_malloc.h"

enum { MOST = 60 };

/* ---- examples worked by hand ---- */
/* Writes the rows as text: lengths, with + between neighbours, a | between rows. */
static void write_rows(const weft_plan *p, char *to)
{
    for (int64_t b = 0; b < p->batches; b++)
        for (int64_t i = 0; i < p->batch[b].n; i++) {
            const weft_segment *s = p->segment + p->batch[b].first + i;
            bool first = !b && !i, same = i && s[-1].row == s->row;
            to += sprintf(to, "%s%d", first ? "" : same ? "+" : "|", (int)s->length);
        }
}

Test(room, packs_as_worked_by_hand)
{
    static const int32_t pairs[] = { 11, 34, 3, 26, 16, 36, 14, 31, 12, 27, 5 }, six[] = { 6, 5, 4, 3, 2, 2 },
                         few[] = { 3, 5, 1, 4 }, ranks[] = { 5, 3, 3, 2 }, longer[] = { 6, 3 };
    static const struct {
        const char *text, *rows;
        const int32_t *len;
        int64_t n, dropped, l1;
    } by_hand[] = {
        { "modified_first_fit_decreasing:capacity=60", "36+12+11|34+26|31+27|16+14+5+3", pairs, 11, 0, 4 },
        { "modified_first_fit_decreasing:capacity=60,limit=2", "36+16|34+26|31+27|14+12|11+5|3", pairs, 11,
          0, 4 },
        { "first_fit_decreasing:capacity=60", "36+16+5+3|34+26|31+27|14+12+11", pairs, 11, 0, 4 },
        { "greedy_knapsack:capacity=10", "6+2|5+2|4+3", six, 6, 0, 3 },
        { "greedy_knapsack:capacity=10,extra=1", "6|5|4+2|3+2", six, 6, 0, 3 },
        { "first_fit_decreasing:capacity=10", "6+4|5+3+2|2", six, 6, 0, 3 },
        { "first_fit_decreasing:capacity=10,squares=50", "6+3|5+4|2+2", six, 6, 0, 3 },
        { "worst_fit_decreasing:capacity=10,squares=40", "6|5+2+2|4+3", six, 6, 0, 3 },
        { "first_fit:capacity=8,align=4", "3+1|5|4", few, 4, 0, 3 },
        { "chunk:capacity=8,align=4", "3+4|1+1|4", few, 4, 0, 3 },
        { "balance:ranks=2", "5+2|3+3", ranks, 4, 0, 0 },
        { "balance:ranks=2,per_square=1", "5|3+3+2", ranks, 4, 0, 0 },
        { "balance:ranks=2,per_square=1,method=kk", "5|3+3+2", ranks, 4, 0, 0 },
        { "first_fit:capacity=4,longer=split", "4|2|3", longer, 2, 0, 3 },
        { "first_fit:capacity=4,longer=truncate", "4|3", longer, 2, 2, 2 },
        { "first_fit:capacity=4,longer=drop", "3", longer, 2, 6, 1 },
        { "best_fit_split:capacity=10,squares=17", "4|3+2", longer, 2, 0, 1 },
    };
    for (int i = 0; i < COUNT(by_hand); i++) {
        char rows[200] = "";
        PLAN p = plan_of(by_hand[i].text, by_hand[i].len, by_hand[i].n);
        weft_plan_figures f;
        const char *capacity = strstr(by_hand[i].text, "capacity=");
        PLANS(weft_plan_measure(&p, by_hand[i].len, by_hand[i].n, capacity ? atoi(capacity + 9) : 0, &f));
        write_rows(&p, rows);
        cr_assert_str_eq(rows, by_hand[i].rows, "%s: %s", by_hand[i].text, rows);
        cr_assert(f.dropped == by_hand[i].dropped && f.l1 == by_hand[i].l1 && f.l2 <= f.rows, "%s: %lld %lld",
                  by_hand[i].text, (long long)f.dropped, (long long)f.l1);
    }
}

Test(room, figures_tell_the_imbalance)
{
    static const int32_t len[] = { 5, 3, 3, 2 };
    PLAN p = plan_of("balance:ranks=2", len, 4);
    weft_plan_figures f;
    PLANS(weft_plan_measure(&p, len, 4, 0, &f));
    cr_assert(fabs(f.imbalance - 7 * 2 / 13.) < 1e-12 && fabs(f.imbalance_squares - 29 * 2 / 47.) < 1e-12);
}

Test(room, measured_costs_balance_ranks)
{
    static const int32_t len[] = { 4, 4, 4, 4 };
    char rows[40];
    for (int kk = 0; kk < 2; kk++) {
        const weft_plan_opts o = { .ranks = 2, .method = kk, .cost = (double[]){ 1e-3, 8e-3, 0, 3e-3 } };
        PLAN p;
        PLANS(weft_plan_make(weft_planner_named("balance"), len, 4, &o, &p));
        write_rows(&p, rows);
        cr_assert(!strcmp(rows, "4|4+4+4") && p.segment[0].sequence == 1, "%s", rows);
    }
}

/* ---- rules, on random lengths ---- */
Test(room, pieces_keep_their_limits)
{
    static const char *const name[] = { "next_fit", "first_fit", "best_fit", "worst_fit",
                                        "first_fit_decreasing", "worst_fit_decreasing", "greedy_knapsack",
                                        "best_fit_split" };
    dice_seed(46);
    for (int k = 0; k < rounds(400, 4000); k++) {
        int32_t len[MOST];
        int64_t n = any_lengths(len, MOST, 50), align = 1 + (int64_t)dice(5),
                capacity = align * (1 + (int64_t)dice(9)),
                squares = align * align + (int64_t)dice((uint64_t)(capacity * capacity)),
                sum[MOST * 50] = { 0 };
        char text[120];
        snprintf(text, sizeof text, "%s:capacity=%lld,squares=%lld,align=%lld%s", name[k % COUNT(name)],
                 (long long)capacity, (long long)squares, (long long)align,
                 k % COUNT(name) == 7 ? "" : k & 8 ? ",longer=split" : ",longer=truncate");
        PLAN p = plan_of(text, len, n);
        cr_assert(p.align == align || align == 1);
        for (int64_t i = 0; i < p.segments; i++) {
            int64_t cells = (p.segment[i].length + align - 1) / align * align;
            sum[p.segment[i].row] += cells * cells;
            cr_assert(sum[p.segment[i].row] <= squares && p.segment[i].column % align == 0, "%s", text);
        }
        if (align > 1 && p.segments) { /* a check that cannot fail would show nothing */
            p.segment[0].column++;
            cr_assert_eq(weft_plan_check(&p, len, n, 0), WEFT_EFORMAT);
        }
    }
}

/* ---- context parallelism ---- */
static double causal(int64_t from, int64_t length) /* tokens attended to by a chunk */
{
    return (double)length * ((double)from + ((double)length + 1) / 2);
}

/* Checks the parts against the plan: each token once, both chunks in order, equal work. */
static void is_cut(const weft_plan *p, const int32_t *len, int64_t n, int ranks)
{
    weft_plan part[6];
    int64_t tokens = 0, next[6] = { 0 };
    PLANS(weft_plan_split_context(p, ranks, part));
    for (int64_t i = 0; i < p->segments; i++) {
        const weft_segment *s = p->segment + i;
        double least = 1e300, most = 0;
        int64_t at = s->offset, end = (int64_t)s->offset + s->length, back = end;
        for (int r = 0; r < ranks; r++) {
            double work = 0;
            int64_t last = -1;
            for (const weft_segment *c; next[r] < part[r].segments; next[r]++, last = c->offset) {
                c = part[r].segment + next[r];
                if (c->sequence != s->sequence || c->offset < s->offset || (s->length && c->offset >= end) ||
                    c->offset <= last)
                    break;
                cr_assert(c->row == s->row && (c->offset == at || c->offset + c->length == back));
                at += c->offset == at ? c->length : 0;
                back -= c->offset + c->length == back && c->offset != at - c->length ? c->length : 0;
                work += causal(c->offset - s->offset, c->length);
            }
            least = work < least ? work : least, most = work > most ? work : most;
        }
        cr_assert(!s->length || at == back, "segment %lld: %lld %lld", (long long)i, (long long)at,
                  (long long)back);
        if (p->align <= 1)
            cr_assert_leq(most - least, 3. * s->length + 2);
        else if (s->length % p->align == 0)
            cr_assert_float_eq(most, least, 1e-9);
    }
    for (int r = 0; r < ranks; r++) {
        PLANS(weft_plan_check(part + r, len, n, 0));
        cr_assert(part[r].batches == p->batches && next[r] == part[r].segments);
        for (int64_t b = 0; b < p->batches; b++)
            cr_assert(part[r].batch[b].rows == p->batch[b].rows &&
                      part[r].batch[b].width == part->batch[b].width &&
                      (p->align <= 1 || part[r].batch[b].width == p->batch[b].width / ranks));
        tokens += p->tokens - part[r].dropped;
    }
    for (int r = 0; r < ranks; r++)
        weft_plan_free(part + r);
    cr_assert_eq(tokens, p->tokens - p->dropped);
}

Test(room, context_parts_have_equal_work)
{
    dice_seed(47);
    for (int k = 0; k < rounds(300, 3000); k++) {
        int32_t len[MOST];
        int64_t n = any_lengths(len, MOST, 90);
        int ranks = 1 + (int)dice(6);
        char aligned[100];
        snprintf(aligned, sizeof aligned, "%s:capacity=%d,rows=3,align=%d",
                 k & 1 ? "best_fit_decreasing" : "chunk", ranks * 2 * 100, ranks * 2);
        const char *const text[] = { aligned, "first_fit:capacity=100,rows=2", "order:count=4",
                                     "chunk:capacity=40" };
        PLAN p = plan_of(text[k / 2 % 4], len, n);
        is_cut(&p, len, n, ranks);
    }
}

Test(room, context_splits_as_worked_by_hand)
{
    static const int32_t len[] = { 8, 5 };
    weft_plan p = plan_of("first_fit:capacity=16,align=4", len, 2), part[2], again[2];
    static const weft_segment want[2][4] = {
        { { 0, 0, 0, 2, 0, -1 }, { 0, 2, 6, 2, 0, -1 }, { 1, 4, 0, 2, 0, -1 } },
        { { 0, 0, 2, 2, 0, -1 }, { 0, 2, 4, 2, 0, -1 }, { 1, 4, 2, 2, 0, -1 }, { 1, 6, 4, 1, 0, -1 } }
    };
    PLANS(weft_plan_split_context(&p, 2, part));
    for (int r = 0; r < 2; r++) {
        cr_assert(part[r].segments == 3 + r && part[r].batch->width == 8 && part[r].shard == r + 1);
        cr_assert(!memcmp(part[r].segment, want[r], (size_t)part[r].segments * sizeof **want));
    }
    REFUSED(weft_plan_split_context(part, 2, again), WEFT_EARG, "this one is of a shard");
    weft_plan_free(part), weft_plan_free(part + 1);
    REFUSED(weft_plan_split_context(&p, 0, part), WEFT_EARG,
            "plan_split_context: expected a whole plan, 1 part");
    weft_status s;
    FOR_EACH_FAILURE(s, weft_plan_split_context(&p, 2, part))
        cr_assert(s == WEFT_ENOMEM && !part[0].segment && !part[1].batch, "allocation %ld", failing.at);
    weft_plan_free(part), weft_plan_free(part + 1), weft_plan_free(&p);
    p = plan_of("streams:slots=1,window=4", len, 2);
    REFUSED(weft_plan_split_context(&p, 2, part), WEFT_EARG, "segment 1 carries a state");
    weft_plan_free(&p);
}

Test(room, plans_survive_failure_of_each_allocation)
{
    static const int32_t len[] = { 9, 2, 30, 4, 7, 7, 1 };
    static const struct {
        const char *name;
        weft_plan_opts o;
    } made[] = {
        { "modified_first_fit_decreasing", { .capacity = 32, .limit = 3 } },
        { "greedy_knapsack", { .capacity = 32, .squares = 1200, .align = 4, .extra = 1 } },
        { "first_fit", { .capacity = 16, .squares = 200, .longer = WEFT_LONGER_SPLIT } },
        { "balance", { .ranks = 2, .per_square = .5 } },
        { "balance", { .ranks = 2, .per_square = .5, .method = WEFT_BALANCE_KK, .align = 2 } },
    };
    for (int i = 0; i < COUNT(made); i++) {
        const weft_planner *planner = weft_planner_named(made[i].name);
        PLAN p;
        weft_status s;
        FOR_EACH_FAILURE(s, weft_plan_make(planner, len, COUNT(len), &made[i].o, &p))
            cr_assert(s == WEFT_ENOMEM && !p.segment && !p.batch, "%s: allocation %ld", made[i].name,
                      failing.at);
        PLANS(s);
        cr_assert(!COUNTED || failing.at > 6);
    }
}
