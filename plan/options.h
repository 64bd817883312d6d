/* options.h - the options of plans by name: which field each is, and what may stand there. */
#ifndef WEFT_PLAN_OPTIONS_H
#define WEFT_PLAN_OPTIONS_H
#include <stddef.h>
#include "plan/plan.h"

/* COUNT: 0 or more; NEEDED: 1 or more, in every planner that takes it; RATIO: more than 1; NOT: a field that
 * is false where the option says yes. */
typedef enum {
    WEFT__COUNT, WEFT__NEEDED, WEFT__RATIO, WEFT__YES, WEFT__NOT, WEFT__LIST_OF, WEFT__METHOD, WEFT__SEED
} weft__option_kind;
typedef struct { const char *name; weft__option_kind kind; size_t field; } weft__plan_option;
/* NULL-terminated by its name. */
extern const weft__plan_option weft__plan_option_list[];
/* Whether a planner takes the option of that name. */
bool weft__planner_takes(const weft_planner *, const char *option);
/* Returns whether a planner requires an option that it takes to be 1 or more. */
bool weft__planner_needs(const weft_planner *, const weft__plan_option *);
/* The name of the list that is nearest to a word, by edits; NULL if none is near. name(i): NULL ends it. */
const char *weft__nearest(const char *word, const char *(*name)(int i, const void *of), const void *of);
#endif
