/* missing_clear.c - warns on stderr, once per context, if a program never calls weft_clear. Its steps then
 * keep all their memory until none is left. The warning comes after a thousand steps, and only if the tape is
 * long: a program that calls weft_rewind instead keeps nothing. */
#include <string.h>
#include "core/report/log.h"

enum { MANY = 1000 };

bool weft__log_is_off(void)
{
    const char *level = weft__variable("WEFT_LOG");
    return level && !strcmp(level, "0");
}

static void count_call(weft *w, int *count, const char *function)
{
    if (inside(w)->missing_clear.step != w->step) {
        inside(w)->missing_clear.step = w->step;
        inside(w)->missing_clear.backwards = inside(w)->missing_clear.updates = 0;
    }
    if (++*count < MANY || inside(w)->missing_clear.warned || weft__notify(w, WEFT__ENTRIES, NULL) < MANY)
        return;
    inside(w)->missing_clear.warned = true;
    if (!weft__log_is_off() && !weft__launched_rank())
        weft__warn("%d calls of %s since the last weft_clear: their tensors are still held, %.1f MB so far. "
                   "Call weft_clear once per step. WEFT_LOG=0 silences this",
                   *count, function, (double)(inside(w)->host_bytes + inside(w)->device_bytes) / 1e6);
}

void weft__count_backward(weft *w) { count_call(w, &inside(w)->missing_clear.backwards, "weft_backward"); }

void weft__count_update(weft *w) { count_call(w, &inside(w)->missing_clear.updates, "weft_optim_step"); }
