/* planners.c - the table of the library's planners, by number and by name. */
#include <stdio.h>
#include <string.h>
#include "core/nearest.h"
#include "plan/options.h"
#include "plan/planners.h"

#define PLANNER(name, source, about, options, promises)                                                \
    static weft_status plan_##name(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p) \
    {                                                                                                  \
        return weft__plan_in_room(weft__planner_##name, options, len, n, o, p);                       \
    }
#include "plan/planners.def"
#undef PLANNER
#define PLANNER(name, source, about, options, promises)                                                \
    { #name, source, about, options, promises, plan_##name },
static const weft_planner all[] = {
#include "plan/planners.def"
};

int weft_planner_count(void) { return (int)(sizeof all / sizeof *all); }

const weft_planner *weft_planner_at(int i) { return i >= 0 && i < weft_planner_count() ? all + i : NULL; }

/* ---- by name ---- */
static _Thread_local char missed[160];

static const char *name_at(int i, const void *context)
{
    (void)context;
    return weft_planner_at(i) ? weft_planner_at(i)->name : NULL;
}

const weft_planner *weft_planner_named(const char *name)
{
    missed[0] = 0;
    for (int i = 0; name && i < weft_planner_count(); i++)
        if (!strcmp(all[i].name, name))
            return all + i;
    const char *near = name ? weft__nearest(name, name_at, NULL) : NULL;
    bool file = name && strstr(name, ".so") != NULL;
    snprintf(missed, sizeof missed, "unknown planner %s%.60s%s%s%s%s", name ? "\"" : "", name ? name : "NULL",
             name ? "\"" : "", file ? "; write the path of a file, ./" : near ? "; \"" : "",
             file ? "x.so:NAME" : near ? near : "", !file && near ? "\" is near" : "");
    weft_plan_refuse(WEFT_EARG, "%s", missed);
    return NULL;
}

const char *weft__planner_error(void) { return missed; }
