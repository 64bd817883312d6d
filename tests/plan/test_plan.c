/* test_plan.c - tests plans: refused options and their messages, and a program's own planner with planted
 * faults. */
#include "plans.h"
#include "tests/core/comma.h"

static const int32_t five[] = { 3, 0, 5, 2, 4 };

Test(plan, bad_options_are_named)
{
    const weft_planner *planner;
    weft_plan_opts o;
    void *memory;
    weft_plan p;
    static const struct {
        const char *text, *says;
    } bad[] = {
        { "first_fitt:capacity=4", "unknown planner \"first_fitt\"; \"first_fit\" is near" },
        { "ends.so:snake", "unknown planner \"ends.so\"; write the path of a file, ./x.so:NAME" },
        { "", "unknown planner \"\"" },
        { "first_fit:capacty=4", "first_fit: unknown option \"capacty\", \"capacity\" is near" },
        { "order:capacity=4", "order: unknown option \"capacity\"" },
        { "first_fit:capacity", "capacity has no value" },
        { "first_fit:capacity=4x", "capacity is \"4x\"; expected a whole number" },
        { "first_fit:capacity=99999999999999999999", "a whole number" },
        { "tokens:budget=9,sort=maybe", "sort is \"maybe\"; expected yes or no" },
        { "balance:ranks=2,method=best", "method is \"best\"; expected one of: lpt kk" },
        { "first_fit:capacity=0", "first_fit: capacity is 0; expected 1 or more" },
        { "geometric:ratio=two", "ratio is \"two\"; expected a number" },
        { "buckets:bounds=3/5,sizes=1/2", "2 bounds and 2 sizes" },
        { "first_fit:capacity=4,longer=lon", "longer is \"lon\"; expected one of: refuse "
                                            "split truncate drop" },
        { "buckets:bounds=3//5,sizes=1", "a list of numbers" },
    };
    for (int i = 0; i < COUNT(bad); i++) {
        REFUSED(weft_plan_parse(bad[i].text, &planner, &o, &memory), WEFT_EARG, bad[i].says);
        cr_assert(!planner && !memory);
    }
    static const struct {
        const char *text, *says;
    } wrong[] = {
        { "first_fit", "first_fit: capacity is missing; expected 1 or more" },
        { "random", "random: count is missing; expected 1 or more" },
        { "first_fit:capacity=-3", "capacity is -3; expected 1 or more" },
        { "first_fit:capacity=9,limit=-1", "limit is -1; expected 0 or more" },
        { "first_fit:capacity=4", "sequence 2 has 5 tokens; expected at most the capacity, 4" },
        { "spfhp:capacity=4", "sequence 2 has 5 tokens" },
        { "first_fit:capacity=9,squares=24", "has 5 tokens; expected at most the root of squares, 4" },
        { "first_fit:capacity=9,align=4", "capacity is 9; expected a multiple of align, 4" },
        { "best_fit:capacity=8,align=4,squares=15,longer=drop", "squares is 15; expected at least the square "
                                                                "of align, 16" },
        { "balance:ranks=2,per_square=-1", "balance: per_square: sequence 0 costs -6" },
        { "balance:ranks=2,per_square=1e308", "expected a finite number, 0 or more" },
        { "spfhp:capacity=2000000000", "expected at most 16777216" },
        { "tokens:budget=4,sort=no", "tokens: sequence 2 has 5 tokens; expected at most the budget, 4" },
        { "order", "order: count and tokens are missing" },
        { "pool", "count and tokens are missing" },
        { "buckets", "bounds, and one size more than bounds" },
        { "buckets:bounds=5/3,sizes=1/1/1", "bounds that rise" },
        { "geometric:budget=9,least=2,ratio=1", "ratio is 1; expected more than 1" },
        { "refill", "slots is missing" },
        { "streams:slots=2", "window is missing" },
        { "balance", "ranks is missing" },
        { "chunk:capacity=3000000000", "at most 2147483647" },
    };
    for (int i = 0; i < COUNT(wrong); i++) {
        PLANS(weft_plan_parse(wrong[i].text, &planner, &o, &memory));
        REFUSED(weft_plan_make(planner, five, 5, &o, &p), WEFT_EARG, wrong[i].says);
        cr_assert(!p.segment && !p.batch && !p.batches);
        free(memory);
    }
    planner = weft_planner_named("order");
    o = (weft_plan_opts){ .count = 2 };
    REFUSED(weft_plan_make(planner, (int32_t[]){ 1, -2 }, 2, &o, &p), WEFT_EARG, "sequence 1 has length -2");
    REFUSED(weft_plan_make(planner, NULL, 2, &o, &p), WEFT_EARG, "without lengths");
    REFUSED(weft_plan_make(NULL, five, 5, &o, &p), WEFT_EARG, "a planner and a plan");
    REFUSED(weft_plan_parse(NULL, &planner, &o, &memory), WEFT_EARG, "a text");
    cr_assert(!weft_planner_named("nothing") && !weft_planner_named(NULL) && !weft_planner_at(-1));
}

/* ---- options in the struct ---- */
Test(plan, options_of_other_planners_are_refused)
{
    const int64_t bounds[] = { 3 }, sizes[] = { 1, 1 };
    const struct {
        const char *planner;
        weft_plan_opts o;
        const char *says;
    } bad[] = {
        { "streams", { .slots = 2, .window = 3, .count = 4 },
          "streams: unknown option \"count\"; expected: slots window shuffle" },
        { "order", { .count = 2, .capacity = 4 }, "order: unknown option \"capacity\"" },
        { "order", { .count = 2, .keep_order = true }, "order: unknown option \"sort\"" },
        { "order", { .count = 2, .carry = true }, "order: unknown option \"carry\"" },
        { "order", { .count = 2, .bounds = bounds, .sizes = sizes, .edges = 1 },
          "unknown option \"bounds\"" },
        { "order", { .count = 2, .sizes = sizes }, "order: unknown option \"sizes\"" },
        { "order", { .count = 2, .ratio = 1.5 }, "order: unknown option \"ratio\"" },
        { "order", { .count = 2, .method = WEFT_BALANCE_KK }, "order: unknown option \"method\"" },
        { "order", { .count = -1, .pool = -2 }, "order: unknown option \"pool\"" },
        { "random", { .count = 2, .shuffle = true }, "random: unknown option \"shuffle\"" },
        { "fold", { .capacity = 8, .rows = 2, .limit = 1 }, "fold: unknown option \"" },
        { "random", { .count = 2, .tokens = 9 }, "random: unknown option \"tokens\"" },
        { "refill", { .slots = 2, .cost = (double[]){ 0 } }, "refill: unknown option \"cost\"" },
        { "random", { .count = 2, .longer = WEFT_LONGER_DROP }, "random: unknown option \"longer\"" },
        { "balance", { .ranks = 2, .per_square = 1, .cost = (double[]){ 1, 1, 1, 1, 1 } }, "not both" },
        { "balance", { .ranks = 2, .cost = (double[]){ 1, 1, -1, 1, 1 } }, "cost: sequence 2 costs -1" },
    };
    for (int i = 0; i < COUNT(bad); i++) {
        weft_plan p;
        REFUSED(weft_plan_make(weft_planner_named(bad[i].planner), five, 5, &bad[i].o, &p), WEFT_EARG,
                bad[i].says);
        cr_assert(!p.segment && !p.batch);
    }
    PLAN p;
    const weft_plan_opts drawn = { .count = 2, .seed = 7, .epoch = 3 };
    PLANS(weft_plan_make(weft_planner_named("order"), five, 5, &drawn, &p));
}

Test(plan, missing_planner_is_reported_by_both_functions)
{
    weft_plan p;
    cr_assert_null(weft_planner_named("bucket"));
    cr_assert(strstr(weft_plan_message(), "unknown planner \"bucket\"; \"buckets\" is near"));
    REFUSED(weft_plan_make(weft_planner_named("bucket"), five, 5, NULL, &p), WEFT_EARG,
            "plan_make: the planner is NULL: weft_planner_named: unknown planner \"bucket\"; \"buckets\" "
            "is near");
    cr_assert(weft_planner_named("order"));
    REFUSED(weft_plan_make(NULL, five, 5, NULL, &p), WEFT_EARG, "a planner and a plan to be made");
}

Test(plan, numbers_have_points_in_a_comma_locale)
{
    const weft_planner *planner;
    weft_plan_opts o;
    void *memory;
    comma_begin();
    weft_status points = weft_plan_parse("geometric:ratio=1.5,least=2,budget=64", &planner, &o, &memory);
    double ratio = o.ratio;
    free(memory);
    weft_status commas = weft_plan_parse("geometric:ratio=1;5", &planner, &o, &memory);
    weft_plan_refuse(WEFT_EARG, "%g", 1.5);
    cr_assert_str_eq(weft_plan_message(), "1.5");
    comma_end();
    cr_assert(points == WEFT_OK && ratio == 1.5 && commas == WEFT_EARG);
}

/* ---- a program's own planner ---- */
/* Faults in a plan of two batches: a changed number of segment 4, or the named fault. */
typedef enum { FINE, ROW, COLUMN, SEQUENCE, LENGTH, CARRIES, TWICE, LOSES, TOO_WIDE, NO_BATCH, LIES } fault;
static const struct {
    fault is;
    int32_t value;
    const char *says;
} faults[] = {
    { LOSES, 0, "4 tokens are missing, the first in sequence 4; expected 0, " },
    { TWICE, 0, "segment 3, 5 tokens of sequence 2 from token 0 on, in row 1 from column 0 on: its first" },
    { TOO_WIDE, 0, "in row 0 from column 0 on: expected a position in the 2 rows of 4 cells of its batch" },
    { ROW, 2, "in row 2 from column 2 on: expected a position in the 2 rows" },
    { COLUMN, 1, "in row 1 from column 1 on: another segment ends at column 2 of the row" },
    { SEQUENCE, 5, "of sequence 5 from token 0 on, in row 1 from column 2 on: expected a sequence below 5" },
    { LENGTH, 5, "5 tokens of sequence 4 from token 0 on, in row 1 from column 2 on: expected tokens of" },
    { LENGTH, 3, "expected all 4 tokens, because the planner promises whole sequences" },
    { NO_BATCH, 0, "3 segments are outside all batches" },
    { CARRIES, 0, "carries the state of a segment that ends before token 3 of sequence 0" },
    { LIES, 0, "own: the planner made fewer than the 1048581 segments in 2 batches that it reports" }
};
static fault now;
static int32_t value;

static weft_status plan_own(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    (void)n, (void)o;
    weft_segment s[] = { { 0, 0, 0, len[0], 0, -1 },
                         { 1, 0, 0, len[1], 1, -1 },
                         { 2, 0, 0, len[2], 0, now == CARRIES ? value : -1 },
                         { 3, 0, 0, len[3], 1, -1 },
                         { now == SEQUENCE ? value : 4, now == COLUMN ? value : 2, 0,
                           now == LENGTH ? value : len[4], now == ROW ? value : 1, -1 } };
    if (now == TWICE)
        s[3] = s[2], s[3].row = 1, s[4].column = 5;
    p->in_rows = true;
    weft_status st = WEFT_OK;
    for (int i = 0; i < 5 - (now == LOSES) && st == WEFT_OK; i++) {
        st = weft_plan_add(p, s[i]);
        if (st == WEFT_OK && (i == 1 || i == 4 - (now == LOSES)) && !(now == NO_BATCH && i > 1))
            st = weft_plan_end_batch(p, 2, now == TOO_WIDE ? 4 : 9);
    }
    p->segments += now == LIES ? 1 << 20 : 0;
    return st;
}

Test(plan, program_planner_is_checked)
{
    const weft_planner own = { .name = "own", .plan = plan_own, .promises = WEFT_PLAN_WHOLE };
    weft_plan p;
    now = FINE;
    PLANS(weft_plan_make(&own, five, 5, NULL, &p));
    cr_assert(p.batches == 2 && p.segments == 5 && p.tokens == 14 && p.empty == 0);
    PLANS(weft_plan_check(&p, five, 5, WEFT_PLAN_WHOLE | WEFT_PLAN_IN_ORDER));
    weft_plan_free(&p);
    for (int i = 0; i < COUNT(faults); i++) {
        now = faults[i].is;
        value = faults[i].value;
        REFUSED(weft_plan_make(&own, five, 5, NULL, &p), WEFT_EFORMAT, faults[i].says);
        cr_assert(!p.segment && !p.batches);
    }
    cr_assert_eq(weft_plan_refuse(WEFT_EARG, "of %d", 3), WEFT_EARG);
    cr_assert_str_eq(weft_plan_message(), "of 3");
    weft_plan_free(NULL), weft_plan_free(&p);
    REFUSED(weft_plan_add(NULL, (weft_segment){ 0 }), WEFT_EARG, "plan is NULL");
    REFUSED(weft_plan_end_batch(&p, -1, 0), WEFT_EARG, "-1 rows of 0 cells; expected 0 .. 2147483647 rows");
    REFUSED(weft_plan_check(NULL, five, 5, 0), WEFT_EARG, "a plan");
    REFUSED(weft_plan_measure(NULL, five, 5, 0, &(weft_plan_figures){ 0 }), WEFT_EARG, "a plan");
}

Test(plan, pieces_may_have_any_order)
{
    weft_segment s[] = { { 0, 0, 2, 1, 0, -1 }, { 0, 1, 0, 2, 0, -1 }, { 0, 0, 3, 2, 0, 0 } };
    weft_plan_batch b[] = { { 0, 2, 1, 3 }, { 2, 1, 1, 2 } };
    weft_plan p = { .batches = 2, .segments = 3, .batch = b, .segment = s };
    REFUSED(weft_plan_check(&p, (int32_t[]){ 5 }, 1, 0), WEFT_EFORMAT,
            "0 of 0 sequences as not empty, with 0 tokens; expected 1 of 1, with 5 tokens");
    int64_t *counts[] = { &p.sequences, &p.not_empty, &p.tokens };
    p.sequences = p.not_empty = 1, p.tokens = 5;
    PLANS(weft_plan_check(&p, (int32_t[]){ 5 }, 1, 0));
    for (int i = 0; i < 3; i++) {
        ++*counts[i];
        REFUSED(weft_plan_check(&p, (int32_t[]){ 5 }, 1, 0), WEFT_EFORMAT, "expected 1 of 1");
        --*counts[i];
    }
    REFUSED(weft_plan_check(&p, (int32_t[]){ 5 }, 1, WEFT_PLAN_CARRIES), WEFT_EFORMAT,
            "from token 2 on, in row 0 from column 0 on: it carries no state");
    s[2].carry = 2;
    REFUSED(weft_plan_check(&p, (int32_t[]){ 5 }, 1, 0), WEFT_EFORMAT, "expected a segment below 2");
    s[2].carry = -1, p.dropped = 1;
    REFUSED(weft_plan_check(&p, (int32_t[]){ 5 }, 1, 0), WEFT_EFORMAT, "0 tokens are missing");
    p.tokens = 6;
    PLANS(weft_plan_check(&p, (int32_t[]){ 6 }, 1, 0));
}

Test(plan, depends_on_seed_and_epoch)
{
    int32_t len[100];
    for (int i = 0; i < 100; i++)
        len[i] = 1 + i % 13;
    weft_plan a = plan_of("random:count=7,seed=1", len, 100), b = plan_of("random:count=7,seed=1", len, 100),
              c = plan_of("random:count=7,seed=2", len, 100),
              d = plan_of("random:count=7,seed=1,epoch=1", len, 100);
    size_t bytes = 100 * sizeof *a.segment;
    cr_assert(!memcmp(a.segment, b.segment, bytes) && memcmp(a.segment, c.segment, bytes) &&
              memcmp(a.segment, d.segment, bytes) && memcmp(c.segment, d.segment, bytes));
    weft_plan_free(&a), weft_plan_free(&b), weft_plan_free(&c), weft_plan_free(&d);
    weft_stream *s = weft_stream_new(3, "mine");
    weft_plan_opts o = { .count = 7, .stream = s };
    PLANS(weft_plan_make(weft_planner_named("random"), len, 100, &o, &a));
    PLANS(weft_plan_make(weft_planner_named("random"), len, 100, &o, &b));
    cr_assert(memcmp(a.segment, b.segment, bytes), "the stream advances");
    weft_plan_free(&a), weft_plan_free(&b);
    weft_stream_free(s), weft_stream_free(NULL);
    cr_assert(!weft_stream_new(1, NULL) && !weft_stream_new(1, ""));
}

/* ---- rows for a batch in the user's order ---- */
Test(plan, first_fit_function_matches_the_planner)
{
    int32_t len[80], row[80], column[80];
    dice_seed(5);
    for (int round = 0; round < rounds(500, 20000); round++) {
        int64_t n = any_lengths(len, 80, 30), width = 30 + (int64_t)dice(40), rows = -1;
        char words[40];
        snprintf(words, sizeof words, "first_fit:capacity=%lld", (long long)width);
        PLAN p = plan_of(words, len, n);
        PLANS(weft_first_fit(&(weft_lengths){ .n = n, .len = len }, width, row, column, &rows));
        cr_assert_eq(rows, p.batches ? p.batch->rows : n > 0);
        for (int64_t i = 0; i < p.segments; i++)
            cr_assert(row[p.segment[i].sequence] == p.segment[i].row &&
                      column[p.segment[i].sequence] == p.segment[i].column);
        for (int64_t i = 0; i < n; i++)
            cr_assert(len[i] || (!row[i] && !column[i]));
    }
}

Test(plan, first_fit_function_handles_empty_and_long_sequences)
{
    int32_t row[2] = { 7, 7 }, column[2] = { 7, 7 };
    int64_t rows = -1;
    weft_lengths l = { .n = 2, .len = (int32_t[]){ 0, 0 } };
    PLANS(weft_first_fit(&l, 0, row, column, &rows));
    cr_assert(rows == 1 && !row[0] && !row[1] && !column[0] && !column[1]);
    l.n = 0;
    PLANS(weft_first_fit(&l, 5, NULL, NULL, &rows));
    cr_assert_eq(rows, 0);
    l = (weft_lengths){ .n = 2, .len = (int32_t[]){ 1, 6 } };
    REFUSED(weft_first_fit(&l, 5, row, column, &rows), WEFT_EARG, "sequence 1");
    l = (weft_lengths){ .n = 1, .len = (int32_t[]){ 1 } };
    REFUSED(weft_first_fit(&l, 0, row, column, &rows), WEFT_EARG, "width is 0");
}
