/* plan.h - what the files of `weft plan` share: a plan that was asked for. */
#ifndef WEFT_TOOLS_PLAN_H
#define WEFT_TOOLS_PLAN_H
#include "tools/tools.h"
#include "weft_lab.h"

/* text: the planner's name and options as they were given; own: the record of a foreign planner, which may
 * take so many seconds, or of a plan that was read; ms: how long it took. */
typedef struct {
    const char *text;
    const weft_planner *planner;
    weft_planner own;
    int seconds;
    double ms;
    weft_plan_opts opts;
    void *memory;
    weft_plan plan;
    weft_plan_figures figures;
} planned;

/* plan.c: plans as text says, and measures; t does not move after that. False: the error was said. */
bool make_planned(planned *t, const int32_t *len, int64_t n);
/* The command line as a shell would read it again, to be freed. */
char *command_line(const char *name, int argc, char **argv);
/* Returns whether all texts name planners with options that they take; the error was printed otherwise. */
bool are_planners(const subcommand *, char *const *text, int n);
/* json.c: prints plans. */
void print_json(const planned *all, int n, const int32_t *len);
/* For each segment the one of the batch before that ends where it begins, or -1; to be freed. */
int32_t *possible_carries(const weft_plan *);
/* foreign.c: whether a text names a shared object; and its plan. False: the error was said. */
bool is_foreign(const char *text);
bool plan_foreign(planned *, const int32_t *len, int64_t n);
/* from.c: the plans of a file, added to all [count], which moves. False: the error was said. */
bool read_plans(const char *path, const int32_t *len, int64_t n, planned **all, int *count);
/* report.c: the page of these plans; command: the line that asked for it. times: how long planners took is in
 * it, too. */
bool report_plans(const char *file, const char *corpus, const int32_t *len, int64_t n, const planned *all,
                  int count, const char *command, bool times);
#endif
