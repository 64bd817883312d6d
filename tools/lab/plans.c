/* plans.c - makes the plans of `weft lab`, by the given planners and from a file: of all training sequences
 * and of some of them. */
#include <stdlib.h>
#include <string.h>
#include "plan/plan.h"
#include "tools/lab/run.h"

/* Marks a plan whose batches run padded in its name. */
static bool name_padded(lab_run *r, int i)
{
    const char *text = r->asked.planner[i];
    size_t room = strlen(text) + sizeof " padded";
    if (r->made[i].plan.in_rows)
        return say_failure("lab: --padded %s: found rows of several sequences; expected one sequence in "
                           "each row",
                           text);
    r->label[i] = get_memory((int64_t)room, 1);
    snprintf(r->label[i], room, "%s padded", text);
    r->made[i].text = r->of_few[i].text = r->label[i];
    return r->made[i].padded = true;
}

static bool make_both(lab_run *r, int i)
{
    r->made[i].text = r->of_few[i].text = r->asked.planner[i];
    r->made[i].seconds = r->of_few[i].seconds = 60;
    return make_planned(r->made + i, r->train.len, r->train.n) &&
           make_planned(r->of_few + i, r->few.len, r->few.n) && (!r->asked.padded[i] || name_padded(r, i));
}

/* ---- plans from a file ---- */
/* Adds the segments of batch b that belong to chosen sequences, renumbered by number [all]. renamed[k]: the
 * new index of the batch's segment k, or -1 if left out. carried: the same for the batch before. */
static weft_status add_batch_of_few(const weft_plan *all, int64_t b, const int32_t *number,
                                    const int32_t *carried, int32_t *renamed, weft_plan *few)
{
    weft_status s = WEFT_OK;
    int32_t n = 0;
    for (int64_t k = 0; k < all->batch[b].n && s == WEFT_OK; k++) {
        weft_segment it = all->segment[all->batch[b].first + k];
        renamed[k] = number[it.sequence] < 0 ? -1 : n++;
        it.sequence = number[it.sequence];
        it.carry = it.carry < 0 ? -1 : carried[it.carry];
        if (renamed[k] >= 0)
            s = weft_plan_add(few, it);
        few->dropped -= renamed[k] >= 0 ? it.length : 0;
        few->empty -= renamed[k] >= 0 && !it.length;
    }
    return n && s == WEFT_OK ? weft_plan_end_batch(few, all->batch[b].rows, all->batch[b].width) : s;
}

/* Restricts a plan to some sequences. Their segments keep their places; the others are left out. */
static weft_status plan_few(const weft_plan *all, const int32_t *number, const weft_dataset *d,
                            weft_plan *few)
{
    int64_t most = weft__plan_most_segments(all);
    SCOPED int32_t *renamed = get_memory(2 * most, sizeof *renamed);
    *few = (weft_plan){ .in_rows = all->in_rows };
    weft__plan_set_counts(few, d->len, d->n);
    few->dropped = few->tokens;
    int32_t *carried = renamed + most;
    weft_status s = WEFT_OK;
    for (int64_t b = 0; b < all->batches && s == WEFT_OK; b++) {
        s = add_batch_of_few(all, b, number, carried, renamed, few);
        memcpy(carried, renamed, (size_t)all->batch[b].n * sizeof *carried);
    }
    return s == WEFT_OK ? weft_plan_check(few, d->len, d->n, 0) : s;
}

/* number [train.n]: index of a sequence in few, or -1. */
static bool add_read(lab_run *r, planned *read, const int32_t *number)
{
    int i = r->asked.planners;
    if (i == MOST_PLANNERS)
        return say_failure("lab: found more than %d plans; expected at most that many", MOST_PLANNERS);
    planned *all = r->made + i, *few = r->of_few + i;
    *all = *read;
    read->memory = NULL;
    read->plan = (weft_plan){ 0 };
    *few = (planned){ .text = all->text, .opts = all->opts, .planner = all->planner };
    r->asked.planner[i] = (char *)all->text;
    r->asked.planners++;
    return (weft_plan_measure(&all->plan, r->train.len, r->train.n, all->opts.capacity, &all->figures) ==
                WEFT_OK &&
            plan_few(&all->plan, number, &r->few, &few->plan) == WEFT_OK) ||
           say_failure("lab: %s: %s", all->text, weft_plan_message());
}

static bool read_file(lab_run *r)
{
    planned *read = NULL;
    int count = 0;
    SCOPED int32_t *number = get_memory(r->train.n, sizeof *number);
    for (int64_t i = 0; i < r->train.n; i++)
        number[i] = -1;
    for (int64_t i = 0; i < r->few.n; i++)
        number[r->few_of[i]] = (int32_t)i;
    bool ok = read_plans(r->asked.from, r->train.len, r->train.n, &read, &count);
    for (int i = 0; i < count && ok; i++)
        ok = add_read(r, read + i, number);
    free_planned(read, count);
    return ok;
}

bool lab_make_plans(lab_run *r)
{
    int n = MOST_PLANNERS;
    bool ok = true;
    r->made = get_memory(n, sizeof *r->made);
    r->of_few = get_memory(n, sizeof *r->of_few);
    r->page.plan = get_memory(n, sizeof *r->page.plan);
    r->page.exact = get_memory(n + 1, sizeof *r->page.exact);
    r->page.contamination = get_memory(n + 1, sizeof *r->page.contamination);
    r->named = r->asked.planners;
    for (int i = 0; i < r->named && ok; i++)
        ok = make_both(r, i);
    ok = ok && (!r->asked.from || read_file(r));
    int64_t update = 1024;
    for (int i = 0; i < r->asked.planners && ok; i++) {
        update = r->made[i].opts.capacity > update ? r->made[i].opts.capacity : update;
        ok = lab_begin_plan(r->page.plan + i, r->made + i, r->train.len, r->train.n, 5);
        if (ok && r->made[i].ms > 0)
            r->page.plan[i].planner_ms = r->made[i].ms;
        if (ok)
            lab_note_plan(r, i);
    }
    r->asked.update = r->asked.update ? r->asked.update : update;
    return ok;
}

void lab_free_plans(lab_run *r)
{
    free_planned(r->made, r->asked.planners);
    free_planned(r->of_few, r->asked.planners);
    for (int i = 0; i < r->asked.planners; i++)
        free(r->label[i]);
    free(r->page.plan), free(r->page.exact), free(r->page.contamination);
}
