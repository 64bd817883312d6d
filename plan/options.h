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
/* Refuses an option that the planner does not take: sets the message, which names the nearest one that it
 * does, and returns WEFT_EARG. */
weft_status weft__no_such_option(const weft_planner *, const char *key);
/* Returns what this thread's last weft_planner_named did not find, with the nearest name; "" if it found one,
 * or was not called. */
const char *weft__planner_missed(void);
/* Returns whether a planner requires an option that it takes to be 1 or more. */
bool weft__planner_needs(const weft_planner *, const weft__plan_option *);
#endif
