/* test_packer.c - tests that a packer makes the rows of the planner for the whole list, with any points of
 * save and restore. */
#include "plans.h"

enum { MOST = 300, CAPACITY = 24, NONE = 1 << 30 };

/* The rows of a plan, by number. closed: the number of sequences after which a row is final, and `order`
 * within that step. */
typedef struct {
    int64_t tokens, n, piece[MOST], closed;
} expected;

/* Fills in the rows of the plan, and their order of closing. A full row closes at its last sequence. If
 * `open` rows are open and another opens, the fullest closes. The others close at the end. Returns the
 * number of rows. */
static int64_t replay(const weft_plan *p, const int32_t *len, int64_t n, int64_t limit, int64_t open,
                      expected *row, int64_t *order)
{
    int64_t rows = p->batches ? p->batch[0].rows : 0, done = 0, opened = 0, where[MOST];
    int64_t gap[MOST], pieces[MOST];
    for (int64_t i = 0; i < n; i++)
        where[i] = -1;
    for (int64_t i = 0; i < p->segments; i++)
        where[p->segment[i].sequence] = p->segment[i].row;
    memset(row, 0, (size_t)rows * sizeof *row);
    for (int64_t i = 0; i < n; i++) {
        int64_t r = where[i], fullest = -1, count = 0;
        if (r < 0 || !len[i])
            continue;
        for (int64_t k = 0; r == opened && k < opened; k++)
            if (!row[k].closed && ++count && (fullest < 0 || gap[k] < gap[fullest]))
                fullest = k;
        if (r == opened && count == open)
            row[order[done++] = fullest].closed = i + 1;
        if (r == opened)
            gap[r] = CAPACITY, pieces[r] = 0, opened++;
        cr_assert(!row[r].closed, "the plan adds to a closed row");
        row[r].piece[row[r].n++] = i;
        row[r].tokens += len[i];
        gap[r] -= len[i];
        if (!gap[r] || ++pieces[r] == limit)
            row[order[done++] = r].closed = i + 1;
    }
    for (int64_t r = 0; r < rows; r++)
        if (!row[r].closed)
            row[order[done++] = r].closed = NONE;
    cr_assert_eq(done, rows);
    return rows;
}

static weft_packer *packer_of(const char *text)
{
    const weft_planner *planner;
    weft_plan_opts o;
    void *memory;
    weft_packer *p;
    PLANS(weft_plan_parse(text, &planner, &o, &memory));
    PLANS(weft_packer_new(planner, &o, &p));
    free(memory);
    return p;
}

/* Takes all final rows, which must be the next of the expected ones. */
static void take(weft_packer *p, const expected *row, const int64_t *order, int64_t step, int64_t *taken,
                 const char *text)
{
    for (weft_packed_row r; weft_packer_next(p, &r); ++*taken) {
        const expected *e = row + order[*taken];
        cr_assert(r.number == order[*taken] && r.tokens == e->tokens && r.n == e->n && e->closed == step,
                  "%s: row %lld after %lld, expected %lld after %lld", text, (long long)r.number,
                  (long long)step, (long long)order[*taken], (long long)e->closed);
        for (int64_t i = 0; i < r.n; i++)
            cr_assert_eq(r.piece[i].id, e->piece[i], "%s: row %lld", text, (long long)r.number);
    }
}

/* Replaces the packer by one that has its state. */
static weft_packer *moved(weft_packer *p, const char *text)
{
    int64_t n = weft_packer_state_size(p), *state = calloc((size_t)n + 3, sizeof *state);
    weft_packer *next = packer_of(text);
    weft_packer_get_state(p, state);
    PLANS(weft_packer_set_state(next, state, n + (int64_t)dice(4)));
    cr_assert_eq(weft_packer_count(p), weft_packer_count(next));
    weft_packer_free(p);
    free(state);
    return next;
}

Test(packer, has_the_rows_of_the_planner_for_the_whole_list)
{
    static const char *const names[] = { "next_fit", "first_fit", "best_fit", "worst_fit" };
    static expected row[MOST];
    int32_t len[MOST];
    int64_t order[MOST];
    for (int trial = 0; trial < 1200; trial++) {
        int rule = trial % 4;
        int64_t n = any_lengths(len, MOST, CAPACITY), limit = (int64_t)dice(5), taken = 0;
        int64_t open = rule ? 1 + (int64_t)dice(dice(2) ? 4 : 60) : 1;
        char text[120], with_open[30] = "";
        if (rule)
            snprintf(with_open, sizeof with_open, ",open=%lld", (long long)open);
        snprintf(text, sizeof text, "%s:capacity=%d,limit=%lld%s", names[rule], CAPACITY, (long long)limit,
                 with_open);
        PLAN whole = plan_of(text, len, n);
        int64_t rows = replay(&whole, len, n, limit ? limit : NONE, open, row, order);
        weft_packer *p = packer_of(text);
        for (int64_t i = 0; i < n; i++) {
            PLANS(weft_packer_add(p, i, len[i]));
            if (!dice(8))
                p = moved(p, text); /* with the final rows of this step */
            take(p, row, order, i + 1, &taken, text);
        }
        weft_packer_end(p);
        p = dice(2) ? moved(p, text) : p;
        take(p, row, order, NONE, &taken, text);
        cr_assert_eq(taken, rows, "%s: %lld rows of %lld", text, (long long)taken, (long long)rows);
        weft_packer_free(p);
    }
}

Test(packer, refuses_a_damaged_state_and_keeps_its_own)
{
    const char *text = "best_fit:capacity=24,open=3";
    weft_packer *p = packer_of(text), *other = packer_of("best_fit:capacity=24,open=4");
    for (int i = 0; i < 9; i++)
        PLANS(weft_packer_add(p, i, 7 + 2 * i % 9));
    int64_t n = weft_packer_state_size(p), state[100], now[100];
    cr_assert(n < 100);
    weft_packer_get_state(p, state);
    for (int64_t i = 0; i < n; i++)
        for (int bit = 0; bit < 64; bit += 1 + (int)dice(9)) {
            state[i] ^= (int64_t)((uint64_t)1 << bit);
            REFUSED(weft_packer_set_state(p, state, n), WEFT_EFORMAT, "damaged");
            state[i] ^= (int64_t)((uint64_t)1 << bit);
        }
    for (int64_t i = 0; i < n; i++)
        REFUSED(weft_packer_set_state(p, state, i), WEFT_EFORMAT, "damaged");
    REFUSED(weft_packer_set_state(other, state, n), WEFT_EFORMAT, "open=4");
    weft_packer_get_state(p, now);
    cr_assert(!memcmp(now, state, (size_t)n * sizeof *now));
    REFUSED(weft_packer_add(p, 5, 25), WEFT_EARG, "sequence 5 has 25 tokens; expected 0 .. 24");
    REFUSED(weft_packer_add(p, 5, -1), WEFT_EARG, "has -1");
    weft_packer_free(p);
    weft_packer_free(other);
}

Test(packer, refuses_planners_and_options_that_need_more_than_the_open_rows)
{
    weft_packer *p;
    weft_plan_opts o = { .capacity = 8 };
    REFUSED(weft_packer_new(NULL, &o, &p), WEFT_EARG, "found planner NULL");
    REFUSED(weft_packer_new(weft_planner_named("spfhp"), &o, &p), WEFT_EARG, "found planner spfhp");
    REFUSED(weft_packer_new(weft_planner_named("best_fit"), &o, &p), WEFT_EARG, "open is missing");
    REFUSED(weft_packer_new(weft_planner_named("best_fit"), NULL, &p), WEFT_EARG, "capacity is missing");
    o = (weft_plan_opts){ .capacity = 8, .open = 2, .shuffle = true };
    REFUSED(weft_packer_new(weft_planner_named("best_fit"), &o, &p), WEFT_EARG, "shuffle");
    cr_assert(!p);
    weft_packer_free(NULL);
}
