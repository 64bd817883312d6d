/* missing_clear.c - a line on stderr for a program that has forgotten weft_clear: the one mistake that fails
 * only when memory does. What a step made is held until then, so a thousand steps without it are told, once
 * in a context. A program that rewinds instead holds nothing, and its tape is short. */
#include <stdlib.h>
#include <string.h>
#include "core/report/log.h"

enum { MANY = 1000 };

bool weft__silenced(void)
{
    const char *level = secure_getenv("WEFT_LOG");
    return level && !strcmp(level, "0");
}

static void count_call(weft *w, int *count, const char *function)
{
    if (++*count < MANY || inside(w)->unended.told || weft__tell(w, WEFT__ENTRIES, NULL) < MANY)
        return;
    inside(w)->unended.told = true;
    if (!weft__silenced() && !weft__launched_rank())
        weft__warn("%d calls of %s since the last weft_clear: all that they made is held, %.1f MB so far; "
                   "weft_clear ends a step, WEFT_LOG=0 silences this",
                   *count, function, (double)(inside(w)->host_bytes + inside(w)->device_bytes) / 1e6);
}

static void restart_counts(weft *w)
{
    if (inside(w)->unended.step != w->step)
        inside(w)->unended.step = w->step, inside(w)->unended.walks = inside(w)->unended.updates = 0;
}

void weft__count_walk(weft *w)
{
    restart_counts(w);
    count_call(w, &inside(w)->unended.walks, "weft_backward");
}

void weft__count_update(weft *w)
{
    restart_counts(w);
    count_call(w, &inside(w)->unended.updates, "weft_optim_step");
}
