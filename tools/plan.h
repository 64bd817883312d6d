/* plan.h - what the files of `weft plan` share: a plan that was asked for. */
#ifndef WEFT_TOOLS_PLAN_H
#define WEFT_TOOLS_PLAN_H
#include "tools/tools.h"
#include "weft.h"

/* text: the planner's name and options as they were given; own: the record of a foreign planner, which may
 * take so many seconds. */
typedef struct {
    const char *text;
    const weft_planner *planner;
    weft_planner own;
    int seconds;
    weft_plan_opts opts;
    void *memory;
    weft_plan plan;
    weft_plan_figures figures;
} planned;

/* foreign.c: whether a text names a shared object; and its plan. False: the error was said. */
bool is_foreign(const char *text);
bool plan_foreign(planned *, const int32_t *len, int64_t n);
#endif
