/* parse.c - reads a planner and its options from "name:key=value,key=value". */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/os.h"
#include "core/nearest.h"
#include "plan/options.h"

enum { WORD = 64 };

/* ---- names ---- */
/* Returns the i-th option that a planner takes, seed and epoch included; NULL after the last. */
static const char *option_name(int i, const void *context)
{
    for (const weft__plan_option *option = weft__plan_option_list; option->name; option++)
        if ((option->kind == WEFT__SEED || weft__planner_takes(context, option->name)) && !i--)
            return option->name;
    return NULL;
}

weft_status weft__no_such_option(const weft_planner *planner, const char *key)
{
    const char *near = weft__nearest(key, option_name, planner), *taken = planner->options;
    if (!taken || !*taken)
        taken = taken ? "none" : "any";
    return weft_plan_refuse(WEFT_EARG, "%s: unknown option \"%.60s\"%s%s%s; expected: %s", planner->name, key,
                            near ? ", \"" : "", near ? near : "", near ? "\" is near" : "", taken);
}

/* ---- values ---- */
typedef struct {
    const weft_planner *planner;
    weft_plan_opts *o;
    int64_t *list, room;
    int64_t sizes;
    uint64_t seen; /* bit i: option i of the list was given */
} parsing;

static bool parse_integer(const char *text, char **end, int64_t *value)
{
    errno = 0;
    *value = strtoll(text, end, 10);
    return *end != text && !errno;
}

static weft_status bad_value(const parsing *t, const char *key, const char *value, const char *expected)
{
    return weft_plan_refuse(WEFT_EARG, "%s: %s is \"%.60s\"; expected %s", t->planner->name, key, value,
                            expected);
}

/* Reads numbers between slashes into the remaining memory of the list. */
static weft_status parse_list(parsing *t, const char *key, const char *value)
{
    int64_t *first = t->list, n = 0;
    char *end;
    for (const char *p = value;; p = end + 1, n++) {
        if (n == t->room || !parse_integer(p, &end, first + n) || (*end && *end != '/'))
            return bad_value(t, key, value, "a list of numbers, 5/10/20,");
        if (!*end)
            break;
    }
    n++;
    t->list += n;
    t->room -= n;
    bool bounds = !strcmp(key, "bounds");
    *(bounds ? &t->o->bounds : &t->o->sizes) = first;
    *(bounds ? &t->o->edges : &t->sizes) = n;
    return WEFT_OK;
}

static weft_status parse_number(parsing *t, const weft__plan_option *option, const char *value)
{
    char *end;
    int64_t v = 0;
    double d = 0;
    if (option->kind == WEFT__REAL) {
        d = weft__plain_number(value, &end);
        if (end == value || *end || !isfinite(d))
            return bad_value(t, option->name, value, "a number");
        memcpy((char *)t->o + option->field, &d, sizeof d);
        return WEFT_OK;
    }
    if (!parse_integer(value, &end, &v) || *end)
        return bad_value(t, option->name, value, "a whole number");
    if (!v && weft__planner_needs(t->planner, option)) /* 0 would mean that the option is not given */
        return weft_plan_refuse(WEFT_EARG, "%s: %s is 0; expected 1 or more", t->planner->name, option->name);
    memcpy((char *)t->o + option->field, &v, sizeof v);
    return WEFT_OK;
}

static weft_status parse_word(parsing *t, const weft__plan_option *option, const char *value)
{
    size_t n = strlen(value);
    int number = 0;
    for (const char *word = option->words; word; word = strchr(word, ' '), number++) {
        word += *word == ' ';
        if (strcspn(word, " ") == n && !strncmp(word, value, n)) {
            memcpy((char *)t->o + option->field, &number, sizeof number);
            return WEFT_OK;
        }
    }
    return weft_plan_refuse(WEFT_EARG, "%s: %s is \"%.60s\"; expected one of: %s", t->planner->name,
                            option->name, value, option->words);
}

static weft_status parse_value(parsing *t, const weft__plan_option *option, const char *value)
{
    bool yes = !strcmp(value, "yes"), no = !strcmp(value, "no"), set = option->kind == WEFT__YES ? yes : no;
    switch (option->kind) {
    case WEFT__YES:
    case WEFT__NOT:
        if (!yes && !no)
            return bad_value(t, option->name, value, "yes or no");
        memcpy((char *)t->o + option->field, &set, sizeof set);
        return WEFT_OK;
    case WEFT__WORD:
        return parse_word(t, option, value);
    case WEFT__LIST_OF:
        return parse_list(t, option->name, value);
    default:
        return parse_number(t, option, value);
    }
}

static weft_status parse_option(parsing *t, char *key)
{
    char *value = strchr(key, '=');
    if (value)
        *value++ = 0;
    for (const weft__plan_option *option = weft__plan_option_list; option->name; option++) {
        uint64_t bit = (uint64_t)1 << (option - weft__plan_option_list);
        if (strcmp(option->name, key) ||
            (option->kind != WEFT__SEED && !weft__planner_takes(t->planner, key)))
            continue;
        if (!value || t->seen & bit)
            return weft_plan_refuse(WEFT_EARG, "%s: %s %s; expected %s=.. once", t->planner->name, key,
                                    value ? "is given twice" : "has no value", key);
        t->seen |= bit;
        return parse_value(t, option, value);
    }
    return weft__no_such_option(t->planner, key);
}

static weft_status parse_options(parsing *t, char *text)
{
    weft_status s = WEFT_OK;
    for (char *next; text && s == WEFT_OK; text = next) {
        next = strchr(text, ',');
        if (next)
            *next++ = 0;
        s = parse_option(t, text);
    }
    if (s == WEFT_OK && t->o->sizes && t->sizes != t->o->edges + 1)
        s = weft_plan_refuse(WEFT_EARG, "%s: %lld bounds and %lld sizes; expected one size more than bounds",
                             t->planner->name, (long long)t->o->edges, (long long)t->sizes);
    return s;
}

weft_status weft_plan_parse_options(const weft_planner *planner, const char *text, weft_plan_opts *opts,
                                    void **memory)
{
    if (!planner || !planner->name || !opts || !memory)
        return weft_plan_refuse(WEFT_EARG,
                                "plan_parse_options: NULL; expected a planner, and pointers for options and "
                                "memory");
    *opts = (weft_plan_opts){ 0 };
    *memory = NULL;
    if (!text || !*text)
        return WEFT_OK;
    size_t n = strlen(text);
    int64_t *list = malloc((n + 1) * (sizeof *list + 1)); /* the lists, followed by the text */
    if (!list)
        return weft_plan_refuse(WEFT_ENOMEM, "plan_parse_options: no memory");
    parsing t = { planner, opts, list, (int64_t)n, 0, 0 };
    weft_status s = parse_options(&t, memcpy(list + n, text, n + 1));
    *memory = s == WEFT_OK ? list : NULL;
    if (s == WEFT_OK)
        return s;
    free(list);
    *opts = (weft_plan_opts){ 0 };
    return s;
}

weft_status weft_plan_parse(const char *text, const weft_planner **planner, weft_plan_opts *opts,
                            void **memory)
{
    char name[WORD];
    if (!text || !planner || !opts || !memory)
        return weft_plan_refuse(WEFT_EARG,
                                "plan_parse: NULL; expected a text, and pointers for planner, options and "
                                "memory");
    *planner = NULL;
    *opts = (weft_plan_opts){ 0 };
    *memory = NULL;
    size_t n = strcspn(text, ":");
    snprintf(name, sizeof name, "%.*s", n < sizeof name ? (int)n : (int)sizeof name - 1, text);
    const weft_planner *found = weft_planner_named(name);
    if (!found)
        return WEFT_EARG;
    weft_status s = weft_plan_parse_options(found, text[n] ? text + n + 1 : NULL, opts, memory);
    *planner = s == WEFT_OK ? found : NULL;
    return s;
}
