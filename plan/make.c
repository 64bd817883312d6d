/* make.c - makes a plan by a planner: checks the options before, and the plan afterwards. */
#include <stdio.h>
#include <string.h>
#include "core/report/api_report.h"
#include "plan/options.h"

#define OPTION(name, kind) { #name, WEFT__##kind, offsetof(weft_plan_opts, name), NULL }
#define WORDS(name, words) { #name, WEFT__WORD, offsetof(weft_plan_opts, name), words }
const weft__plan_option weft__plan_option_list[] = {
    OPTION(count, NEEDED),
    OPTION(tokens, COUNT),
    OPTION(pool, COUNT),
    OPTION(budget, NEEDED),
    OPTION(multiple, COUNT),
    { "sort", WEFT__NOT, offsetof(weft_plan_opts, keep_order), NULL },
    OPTION(bounds, LIST_OF),
    OPTION(sizes, LIST_OF),
    OPTION(ratio, REAL),
    OPTION(least, NEEDED),
    OPTION(k, NEEDED),
    OPTION(capacity, NEEDED),
    OPTION(limit, COUNT),
    OPTION(squares, COUNT),
    OPTION(align, COUNT),
    WORDS(longer, "refuse split truncate drop"),
    OPTION(extra, COUNT),
    OPTION(carry, YES),
    OPTION(slots, NEEDED),
    OPTION(window, NEEDED),
    OPTION(longest_first, YES),
    OPTION(ranks, NEEDED),
    WORDS(method, "lpt kk"),
    OPTION(per_square, REAL),
    OPTION(rows, COUNT),
    OPTION(open, COUNT),
    OPTION(lookahead, COUNT),
    OPTION(shuffle, YES),
    OPTION(seed, SEED),
    OPTION(epoch, SEED),
    { NULL, WEFT__COUNT, 0, NULL }
};

bool weft__planner_takes(const weft_planner *planner, const char *option)
{
    size_t n = strlen(option);
    if (!planner->options)
        return true; /* a program's planner that names no options takes all */
    for (const char *found = planner->options; (found = strstr(found, option)); found += n)
        if ((found == planner->options || found[-1] == ' ') && (found[n] == ' ' || !found[n]))
            return true;
    return false;
}

/* ---- options ---- */
static const void *field_of(const weft_plan_opts *o, const weft__plan_option *option)
{
    return (const char *)o + option->field;
}

/* A planner that also takes tokens checks count against it. */
bool weft__planner_needs(const weft_planner *planner, const weft__plan_option *option)
{
    return option->kind == WEFT__NEEDED && planner->options &&
           !(!strcmp(option->name, "count") && weft__planner_takes(planner, "tokens"));
}

static bool is_given(const weft_plan_opts *o, const weft__plan_option *option)
{
    const void *field = field_of(o, option);
    switch (option->kind) {
    case WEFT__REAL:    return *(const double *)field != 0;
    case WEFT__LIST_OF: return *(const int64_t *const *)field != NULL;
    case WEFT__WORD:    return *(const int *)field != 0;
    case WEFT__SEED:    return false;
    case WEFT__YES:
    case WEFT__NOT:     return *(const bool *)field;
    default:            return *(const int64_t *)field != 0;
    }
}

/* An option that the planner would ignore is an error. */
static weft_status check_names(const weft_planner *planner, const weft_plan_opts *o)
{
    for (const weft__plan_option *option = weft__plan_option_list; option->name; option++)
        if (is_given(o, option) && !weft__planner_takes(planner, option->name))
            return weft__no_such_option(planner, option->name);
    return o->cost && !weft__planner_takes(planner, "per_square") ? weft__no_such_option(planner, "cost") :
                                                                    WEFT_OK;
}

static weft_status check_options(const weft_planner *planner, const weft_plan_opts *o)
{
    for (const weft__plan_option *option = weft__plan_option_list; option->name; option++) {
        if (!weft__planner_takes(planner, option->name) || option->kind > WEFT__NEEDED)
            continue;
        int64_t value = *(const int64_t *)field_of(o, option);
        bool needed = weft__planner_needs(planner, option);
        if (needed && !value)
            return weft_plan_refuse(WEFT_EARG, "%s: %s is missing; expected 1 or more", planner->name,
                                    option->name);
        if (value < 0)
            return weft_plan_refuse(WEFT_EARG, "%s: %s is %lld; expected %s", planner->name, option->name,
                                    (long long)value, needed ? "1 or more" : "0 or more");
        if (value > INT32_MAX && (!strcmp(option->name, "slots") || !strcmp(option->name, "ranks") ||
                                  !strcmp(option->name, "capacity") || !strcmp(option->name, "window") ||
                                  !strcmp(option->name, "align")))
            return weft_plan_refuse(WEFT_EARG, "%s: %s is %lld; expected at most %d", planner->name,
                                    option->name, (long long)value, INT32_MAX);
    }
    return WEFT_OK;
}

static weft_status check_lengths(const int32_t *len, int64_t n)
{
    if (n < 0 || n >= INT32_MAX || (n && !len))
        return weft_plan_refuse(WEFT_EARG, "plan_make: %lld sequences%s; expected 0 .. %d", (long long)n,
                                len ? "" : " without lengths", INT32_MAX - 1);
    for (int64_t i = 0; i < n; i++)
        if (len[i] < 0)
            return weft_plan_refuse(WEFT_EARG, "plan_make: sequence %lld has length %d; expected 0 or more",
                                    (long long)i, (int)len[i]);
    return WEFT_OK;
}

/* ---- making ---- */
static weft_status run(const weft_planner *planner, const int32_t *len, int64_t n, weft_plan_opts *o,
                       weft_plan *p)
{
    char name[48];
    snprintf(name, sizeof name, "plan.%lld", (long long)o->epoch);
    weft_stream *own = o->stream ? NULL : weft_stream_new(o->seed, name);
    o->stream = own ? own : o->stream;
    if (!o->stream)
        return weft_plan_refuse(WEFT_ENOMEM, "%s: no memory for a random stream", planner->name);
    WEFT__PLAN_SCOPE;
    weft_status s = planner->plan(len, n, o, p);
    weft_stream_free(own);
    if (s == WEFT_OK && !weft__plan_is_intact(p))
        s = weft_plan_refuse(WEFT_EFORMAT,
                             "%s: the planner made fewer than the %lld segments in %lld batches that it "
                             "reports; expected all",
                             planner->name, (long long)p->segments, (long long)p->batches);
    return s;
}

weft_status weft_plan_make(const weft_planner *planner, const int32_t *len, int64_t n,
                           const weft_plan_opts *opts, weft_plan *out)
{
    if (out)
        *out = (weft_plan){ 0 };
    if (!planner && *weft__planner_error())
        return weft_plan_refuse(WEFT_EARG, "plan_make: the planner is NULL: weft_planner_named: %s",
                                weft__planner_error());
    if (!planner || !planner->plan || !planner->name || !out)
        return weft_plan_refuse(WEFT_EARG, "plan_make: expected a planner and a plan to be made");
    weft_plan_opts o = opts ? *opts : (weft_plan_opts){ 0 };
    weft_status s = check_lengths(len, n);
    s = s == WEFT_OK ? check_names(planner, &o) : s;
    s = s == WEFT_OK ? check_options(planner, &o) : s;
    if (s != WEFT_OK)
        return s;
    weft__plan_set_counts(out, len, n);
    s = run(planner, len, n, &o, out);
    if (s == WEFT_OK) {
        out->empty = weft__plan_without_segment(out, len, n);
        unsigned broken = (o.shuffle ? WEFT_PLAN_IN_ORDER : 0) | (o.longer ? WEFT_PLAN_WHOLE : 0);
        s = weft_plan_check(out, len, n, planner->promises & ~broken);
    }
    if (s != WEFT_OK)
        weft_plan_free(out);
    return s;
}
