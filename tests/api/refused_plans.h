/* refused_plans.h - of test_refused.c: planners and plans, which belong to no context. */
#ifndef REFUSED_PLANS_H
#define REFUSED_PLANS_H
/* a plan, or a message */
#define PLANS(f, ...)                                                                                     \
    do {                                                                                                  \
        note(#f);                                                                                         \
        weft_status s = f(__VA_ARGS__);                                                                   \
        cr_assert(s == WEFT_OK || *weft_plan_message(), #f " says nothing");                              \
        after(b, #f, NOT_AT_ALL);                                                                         \
    } while (0)
static void plans(bad *b)
{
    const weft_planner *planner, *order = weft_planner_named("order");
    weft_plan p = { 0 };
    weft_plan_opts o = { .count = b->n, .capacity = b->n };
    weft_plan_figures f;
    weft_token_weights weights;
    weft_plan_meetings meetings;
    void *memory;
    note("weft_planner_count"), note("weft_plan_message");
    cr_assert(weft_planner_count() > 0 && weft_plan_message());
    TRY(weft_planner_at, b->i);                  TRY(weft_planner_named, b->name);
    PLANS(weft_plan_parse, b->name, &planner, &o, &memory);
    PLANS(weft_plan_parse_options, NULL, b->name, &o, &memory);
    PLANS(weft_plan_make, NULL, NULL, b->n, NULL, NULL);
    PLANS(weft_plan_make, order, NULL, b->n, &o, &p);
    PLANS(weft_plan_split, NULL, b->i, NULL);
    PLANS(weft_plan_check, NULL, NULL, b->n, ~0u); PLANS(weft_plan_check, &p, NULL, b->n, ~0u);
    PLANS(weft_plan_measure, &p, NULL, b->n, b->n, &f);
    PLANS(weft_first_fit, NULL, b->n, NULL, NULL, NULL);
    PLANS(weft_first_fit, b->l, b->n, NULL, NULL, &(int64_t){ 0 });
    PLANS(weft_plan_weigh, NULL, (weft_plan_mean)b->i, NULL);
    PLANS(weft_plan_weigh, &p, (weft_plan_mean)b->i, &weights);
    PLANS(weft_plan_count_work, NULL, NULL);     PLANS(weft_plan_autocorrelation, &p, NULL);
    PLANS(weft_plan_batch_sizes, &p, b->n, NULL, b->n); PLANS(weft_plan_live_rows, NULL, NULL, b->n);
    PLANS(weft_plan_count_meetings, &p, -1, &meetings); PLANS(weft_plan_count_meetings, NULL, b->i, NULL);
    PLANS(weft_plan_predict, NULL, NULL, b->i, NULL);
    PLANS(weft_plan_predict, &p, &(weft_plan_cost){ .points = b->i }, false, NULL);
    PLANS(weft_plan_disturb, NULL, NULL, b->n, NULL); TRY(weft_plan_choose, NULL, NULL, b->i, -1);
    PLANS(weft_plan_add, NULL, (weft_segment){ b->n, b->n, b->i, b->i, b->i, b->i });
    PLANS(weft_plan_end_batch, NULL, b->n, b->n);  PLANS(weft_plan_end_batch, &p, -1, b->n);
    TRY(weft_plan_refuse, WEFT_EARG, "%d", 1);   TRY(weft_plan_free, &p);
    cr_assert(!p.segment && !p.batch);
}
#endif
