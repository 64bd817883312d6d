/* plan.h - a plan on the command line, and the functions of `weft plan` on it.
 *
 * A function that returns false has printed the error. */
#ifndef WEFT_TOOLS_PLAN_H
#define WEFT_TOOLS_PLAN_H
#include "tools/tools.h"
#include "weft_lab.h"

/* text: name and options of the planner. planner: its record; .plan is NULL for a foreign planner, which has
 * a limit in seconds, and for a plan that was read. padded: its batches run padded, not packed. ms: the
 * planner's time. */
typedef struct {
    const char *text;
    weft_planner planner;
    int seconds;
    bool padded;
    double ms;
    weft_plan_opts opts;
    void *memory;
    weft_plan plan;
    weft_plan_figures figures;
} planned;

/* Declares plans that are freed at the end of the block. */
#define PLAN __attribute__((cleanup(weft_plan_free))) weft_plan

/* plan.c: makes the plan that text describes, and measures it. */
bool make_planned(planned *t, const int32_t *len, int64_t n);
/* Frees n plans and their array, which may be NULL. */
void free_planned(planned *, int n);
/* Returns the command line, quoted for a shell. The caller frees it. */
char *command_line(const char *name, int argc, char **argv);
/* Returns whether all texts name planners with valid options; if not, the error is printed. */
bool are_planners(const subcommand *, char *const *text, int n);
/* Returns, for each segment, the segment of the batch before that ends where it begins, or -1. The caller
 * frees the array. */
int32_t *possible_carries(const weft_plan *);
/* foreign.c: return whether a text names a shared object; make its plan. */
bool is_foreign(const char *text);
bool plan_foreign(planned *, const int32_t *len, int64_t n);
/* from.c: adds the plans of a file to *all [*count], which it reallocates. */
bool read_plans(const char *path, const int32_t *len, int64_t n, planned **all, int *count);
/* stream.c: packs the lengths of a file, or of stdin ("-"), and prints each final row. state: the file of the
 * open rows, or NULL. flush: prints the open rows at the end in spite of it. Returns an exit status. */
int plan_stream(const char *lengths, const char *planner, const char *state, bool flush);
/* export.c: writes a plan as JSON lines or as NumPy's .npz. */
bool export_plan(const char *file, const planned *);
bool is_export_file(const char *file);
#endif
