/* test_plan_extremes.c - tests numbers at the ends of their types. Plans, options and figures whose sums
 * would overflow are refused with a message. Sanitizer builds check that nothing overflows. */
#include "tests/plan/plans.h"
#include "plan/options.h"

static const int64_t extremes[] = { INT64_MIN, INT64_MIN + 1, -1, 0, 1, 3, INT32_MAX - 1, INT32_MAX,
                                    (int64_t)INT32_MAX + 1, (int64_t)1 << 40, (int64_t)1 << 60,
                                    INT64_MAX / 2 + 1, INT64_MAX - 1, INT64_MAX };
enum { EXTREMES = COUNT(extremes) };
static const int32_t three[] = { 2, 0, 5 };

/* A good plan of three sequences: two batches of rows. */
static void good_plan(weft_plan *p, weft_segment *s, weft_plan_batch *b)
{
    s[0] = (weft_segment){ 0, 0, 0, 2, 0, -1 };
    s[1] = (weft_segment){ 1, 2, 0, 0, 0, -1 };
    s[2] = (weft_segment){ 2, 0, 0, 5, 0, -1 };
    b[0] = (weft_plan_batch){ 0, 2, 1, 2 }, b[1] = (weft_plan_batch){ 2, 1, 1, 5 };
    *p = (weft_plan){ .sequences = 3, .tokens = 7, .not_empty = 2, .batches = 2, .segments = 3,
                      .batch = b, .segment = s };
}

static bool is_natural(const weft_plan_figures *f)
{
    return f->cells >= 0 && f->steps >= 0 && f->rows >= 0 && f->runs >= 0 && f->tokens >= 0 &&
           f->empty >= 0 && f->l1 >= 0 && f->l2 >= 0 && f->fill >= 0 && f->mean_live >= 0;
}

/* Returns whether every function refuses the plan, or none does. alike false: some do not read the faulty
 * number. */
static bool all_refuse(const weft_plan *p, bool alike)
{
    weft_plan_figures f;
    weft_token_weights weights;
    weft_plan_work work;
    weft_plan_meetings meetings;
    weft_plan_prediction ms;
    weft_plan_disturbance much;
    weft_plan part[2];
    double order;
    const weft_plan_cost cost = { .points = 2, .rows = { 1, 2 }, .step_ms = { 1, 2 } };
    const weft_status got[] = { weft_plan_measure(p, three, 3, 5, &f),
                                weft_plan_weigh(p, WEFT_MEAN_OF_SEQUENCES, &weights),
                                weft_plan_count_work(p, &work),
                                weft_plan_count_meetings(p, 1, &meetings),
                                weft_plan_predict(p, &cost, false, &ms),
                                weft_plan_predict(p, &cost, true, &ms),
                                weft_plan_disturb(p, three, 3, &much),
                                weft_plan_autocorrelation(p, &order),
                                weft_plan_split(p, 2, part) };
    weft_plan_free(part), weft_plan_free(part + 1);
    cr_assert(got[0] != WEFT_OK || is_natural(&f), "cells %lld", (long long)f.cells);
    for (int i = 1; alike && i < COUNT(got); i++)
        cr_assert((got[i] == WEFT_OK) == (got[0] == WEFT_OK), "%d: %s", i, weft_plan_message());
    cr_assert(got[0] == WEFT_OK || *weft_plan_message());
    return got[0] != WEFT_OK;
}

Test(plan_extremes, numbers_at_the_end_of_their_type_are_refused)
{
    enum { FIRST, N, ROWS, WIDTH, SEQUENCE, COLUMN, ROW, LENGTH, SEQUENCES, TOKENS, SEGMENTS, FIELDS };
    weft_plan p;
    weft_segment s[3];
    weft_plan_batch b[2];
    good_plan(&p, s, b);
    cr_assert(!all_refuse(&p, true) && weft_plan_check(&p, three, 3, 0) == WEFT_OK, "%s",
              weft_plan_message());
    for (int field = FIRST; field < FIELDS; field++)
        for (int i = 0; i < EXTREMES; i++) {
            int64_t x = extremes[i], narrow = x < INT32_MIN ? INT32_MIN : x > INT32_MAX ? INT32_MAX : x;
            good_plan(&p, s, b);
            int64_t *wide[FIELDS] = { [FIRST] = &b[1].first,       [N] = &b[0].n,
                                      [ROWS] = &b[0].rows,         [WIDTH] = &b[0].width,
                                      [SEQUENCE] = &s[1].sequence, [COLUMN] = &s[0].column,
                                      [SEQUENCES] = &p.sequences,  [TOKENS] = &p.tokens,
                                      [SEGMENTS] = &p.segments };
            if (field == ROW || field == LENGTH)
                *(field == ROW ? &s[0].row : &s[0].length) = (int32_t)narrow;
            else if (field == SEGMENTS && x > 3)
                continue;                        /* the array is shorter, which no function can detect */
            else
                *wide[field] = x;
            if (field != SEQUENCES || x < 4 || x > INT32_MAX)     /* measures have memory for each */
                all_refuse(&p, field != SEQUENCE && field != SEQUENCES);
            bool checked = weft_plan_check(&p, three, 3, 0) == WEFT_OK;
            cr_assert(checked || *weft_plan_message());
            cr_assert(!checked || (x >= 0 && x <= (int64_t)1 << 48), "field %d: %lld", field, (long long)x);
        }
}

Test(plan_extremes, cells_of_all_batches_stay_below_2_63)
{
    weft_plan p;
    weft_segment s[3];
    weft_plan_batch b[5];
    weft_plan_figures f;
    good_plan(&p, s, b);
    for (int i = 2; i < 5; i++)
        b[i] = (weft_plan_batch){ 3, 0, INT32_MAX, INT32_MAX };
    p.batches = 4;
    cr_assert_eq(weft_plan_check(&p, three, 3, 0), WEFT_OK, "%s", weft_plan_message());
    p.batches = 5;
    REFUSED(weft_plan_check(&p, three, 3, 0), WEFT_EFORMAT,
            "batch 4 has 2147483647 rows of 2147483647 cells; expected 0 .. 2147483647 rows of 0 .. "
            "281474976710656 cells, and fewer than 2^63 cells in all batches");
    REFUSED(weft_plan_measure(&p, three, 3, 0, &f), WEFT_EFORMAT, "plan_measure: batch 4 has");
    REFUSED(weft_plan_measure(&p, three, 3, INT64_MAX, &f), WEFT_EARG, "capacity 9223372036854775807;");
    good_plan(&p, s, b), p.empty = 1;
    REFUSED(weft_plan_check(&p, three, 3, 0), WEFT_EFORMAT, "1 sequences of length 0 without a segment");
    b[1].n = INT64_MAX;
    REFUSED(weft_plan_check(&p, three, 3, 0), WEFT_EFORMAT,
            "batch 1 has 9223372036854775807 segments from segment 2 on; expected 0 .. 1 from 2 on");
}

Test(plan_extremes, too_large_batch_is_refused_at_its_end)
{
    PLAN p = { 0 };
    for (int i = 0; i < EXTREMES; i++)
        for (int k = 0; k < EXTREMES; k++) {
            bool fine = extremes[i] >= 0 && extremes[i] <= INT32_MAX && extremes[k] >= 0 &&
                        extremes[k] <= (int64_t)1 << 48;
            cr_assert_eq(weft_plan_end_batch(&p, extremes[i], extremes[k]) == WEFT_OK, fine);
        }
}

/* ---- options of the library's planners ---- */
static void with_option(const weft_planner *planner, const char *option)
{
    static const int32_t len[] = { 3, 1, 4, 1, 5, 0, 2 };
    for (int i = 0; i < EXTREMES; i++) {
        bool fills = !strcmp(option, "slots") || !strcmp(option, "ranks") || !strcmp(option, "capacity");
        if (fills && extremes[i] > 3 && extremes[i] <= INT32_MAX)
            continue;                            /* needs memory for all these rows */
        weft_plan_opts o = { .count = 2, .budget = 20, .capacity = 8, .slots = 2, .window = 4, .ranks = 2,
                             .ratio = 1.5, .least = 1, .k = 2, .bounds = (int64_t[]){ 2, 4 },
                             .sizes = (int64_t[]){ 1, 2, 3 }, .edges = 2 };
        for (const weft__plan_option *is = weft__plan_option_list; is->name; is++)
            if (!strcmp(is->name, option))
                memcpy((char *)&o + is->field, extremes + i, sizeof extremes[i]);
        PLAN p;
        weft_plan_figures f;
        if (weft_plan_make(planner, len, COUNT(len), &o, &p) == WEFT_OK)
            cr_assert(weft_plan_measure(&p, len, COUNT(len), 0, &f) != WEFT_OK || is_natural(&f), "%s, %s",
                      planner->name, option);
        else
            cr_assert(*weft_plan_message(), "%s, %s", planner->name, option);
    }
}

Test(plan_extremes, options_give_a_plan_or_a_message)
{
    for (int i = 0; i < weft_planner_count(); i++)
        for (const weft__plan_option *is = weft__plan_option_list; is->name; is++)
            if (is->kind <= WEFT__NEEDED && weft__planner_takes(weft_planner_at(i), is->name))
                with_option(weft_planner_at(i), is->name);
}
