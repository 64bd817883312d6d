/* options.h - the options of planners by name: their kinds of values and their fields in weft_plan_opts. */
#ifndef WEFT_PLAN_OPTIONS_H
#define WEFT_PLAN_OPTIONS_H
#include <stddef.h>
#include "plan/plan.h"

/* COUNT: 0 or more. NEEDED: 1 or more, required by every planner that takes it. REAL: a double. YES: a flag.
 * NOT: a flag that the value yes clears. WORD: an enum whose values 0, 1 .. have the option's words. */
typedef enum {
    WEFT__COUNT, WEFT__NEEDED, WEFT__REAL, WEFT__YES, WEFT__NOT, WEFT__LIST_OF, WEFT__WORD, WEFT__SEED
} weft__option_kind;
typedef struct {
    const char *name;
    weft__option_kind kind;
    size_t field;
    const char *words;
} weft__plan_option;
/* Ends with an entry whose name is NULL. */
extern const weft__plan_option weft__plan_option_list[];
/* Returns whether a planner takes the option of that name. */
bool weft__planner_takes(const weft_planner *, const char *option);
/* Refuses an option that the planner does not take, and returns WEFT_EARG. The message names the most similar
 * option that it takes. */
weft_status weft__no_such_option(const weft_planner *, const char *key);
/* Returns the message of this thread's last weft_planner_named; "" if that call found the planner, or
 * without such a call. */
const char *weft__planner_error(void);
/* Returns whether a planner requires an option that it takes to be 1 or more. */
bool weft__planner_needs(const weft_planner *, const weft__plan_option *);
#endif
