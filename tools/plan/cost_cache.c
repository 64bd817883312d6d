/* cost_cache.c - what steps cost, as JSON: constants from a file, and what was measured here, kept in
 * ${XDG_CACHE_HOME:-$HOME/.cache}/weft for each device, number of threads, cell, width and precision. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "tools/plan/explain.h"

/* ---- reading ---- */
static bool refuse(const char *path, const char *key, const char *what)
{
    return say_error(FAILED, "plan: %s: \"%s\" %s", path, key, what), false;
}

static bool read_number(const char *path, const json_t *all, const char *key, double *out)
{
    const json_t *is = json_object_get(all, key);
    if (is && (!json_is_number(is) || json_number_value(is) < 0))
        return refuse(path, key, "is no number of 0 or more");
    *out = is ? json_number_value(is) : *out;
    return true;
}

/* A list of as many numbers as there are points. */
static bool read_list(const char *path, const json_t *all, const char *key, int points, double *out)
{
    const json_t *is = json_object_get(all, key);
    if (!json_is_array(is) || json_array_size(is) != (size_t)points || points < 1 ||
        points > WEFT_COST_POINTS)
        return say_error(FAILED, "plan: %s: \"%s\" is no list of %s numbers; at most %d are expected", path,
                         key, points < 1 || points > WEFT_COST_POINTS ? "1 or more" : "as many",
                         WEFT_COST_POINTS),
               false;
    for (int i = 0; i < points; i++) {
        const json_t *one = json_array_get(is, (size_t)i);
        if (!json_is_number(one))
            return refuse(path, key, "has something that is no number");
        out[i] = json_number_value(one);
    }
    return true;
}

static bool has_known_keys(const char *path, const json_t *all)
{
    static const char *const known[] = { "rows",       "ms",       "batch_ms",  "blocks", "long_tokens",
                                         "long_share", "token_ms", "error",     "device", "measured",
                                         "segment_ms", "weft",     "precision", "hidden", "cell",
                                         "input",      "threads" };
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)all, key, value)
    {
        bool is_known = false;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            is_known = is_known || !strcmp(key, known[i]);
        if (!is_known)
            return refuse(path, key,
                          "is none of its keys: rows, ms, batch_ms, token_ms, segment_ms, blocks, "
                          "long_tokens, long_share, error, device");
    }
    return true;
}

static bool read_batches(const char *path, const json_t *all, weft_plan_cost *c)
{
    double one = 0;
    if (json_is_array(json_object_get(all, "batch_ms")))
        return read_list(path, all, "batch_ms", c->points, c->batch_ms);
    for (int i = 0; i < c->points; i++)
        if (!read_number(path, all, "batch_ms", &one))
            return false;
        else
            c->batch_ms[i] = one;
    return true;
}

static bool read_table(const char *path, const json_t *all, weft_plan_cost *c)
{
    size_t points = json_array_size(json_object_get(all, "rows"));
    *c = (weft_plan_cost){ .points = points <= WEFT_COST_POINTS ? (int)points : 0, .error = MODEL_ERROR };
    if (!json_is_object(all))
        return say_error(FAILED, "plan: %s: an object with \"rows\" and \"ms\" is expected", path), false;
    bool good = has_known_keys(path, all) && read_list(path, all, "rows", c->points, c->rows) &&
                read_list(path, all, "ms", c->points, c->ms) && read_batches(path, all, c) &&
                read_number(path, all, "token_ms", &c->token_ms) &&
                read_number(path, all, "segment_ms", &c->segment_ms) &&
                read_number(path, all, "blocks", &c->blocks) &&
                read_number(path, all, "long_tokens", &c->long_tokens) &&
                read_number(path, all, "long_share", &c->long_share) &&
                read_number(path, all, "error", &c->error);
    if (good && isnan(weft_plan_step_ms(c, 1)))
        return say_error(FAILED,
                         "plan: %s: \"rows\" that ascend from above 0, \"ms\" above 0, \"batch_ms\" of 0 or "
                         "more and "
                         "\"blocks\" of 0 .. 1 are expected",
                         path),
               false;
    return good;
}

static const char *text_of(const json_t *all, const char *key)
{
    const char *text = json_string_value(json_object_get(all, key));
    return text ? text : "";
}

bool read_costs(const char *path, costs *c)
{
    json_error_t e;
    json_t *all = json_load_file(path, JSON_REJECT_DUPLICATES, &e);
    if (!all)
        return say_error(FAILED, "plan: %s:%d: %s; constants as JSON are expected", path,
                         e.line > 0 ? e.line : 1, e.text),
               false;
    bool good = read_table(path, all, &c->table);
    snprintf(c->device, sizeof c->device, "%s",
             *text_of(all, "device") ? text_of(all, "device") : "a device");
    snprintf(c->from, sizeof c->from, "constants of %.200s, not measured here", path);
    json_decref(all);
    return good;
}

/* ---- what was measured here ---- */
static bool cache_path(const costs *c, char *path, size_t n)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    uint64_t hash = 14695981039346656037u;
    if (!(cache && *cache) && !(home && *home))
        return false;
    for (const char *at = c->device; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 1099511628211u;
    for (const char *at = weft_version(); *at; at++)
        hash = (hash ^ (unsigned char)*at) * 1099511628211u;
    int used = snprintf(path, n, "%s%s/weft/cost-%s-%lld-%d-%s-%08x.json", cache && *cache ? cache : home,
                        cache && *cache ? "" : "/.cache", c->layer.cell, (long long)c->layer.hidden,
                        c->threads, c->precision, (unsigned)(hash ^ hash >> 32));
    return used > 0 && (size_t)used < n;
}

/* The file is of this device, and no other whose name has the same number. */
static bool is_ours(const costs *c, const json_t *all)
{
    return !strcmp(text_of(all, "device"), c->device) && !strcmp(text_of(all, "weft"), weft_version());
}

bool read_cached_costs(costs *c)
{
    char path[4096];
    json_error_t e;
    if (!cache_path(c, path, sizeof path) || access(path, F_OK))
        return false;
    json_t *all = json_load_file(path, JSON_REJECT_DUPLICATES, &e);
    bool good = all && is_ours(c, all) && read_table(path, all, &c->table);
    if (good)
        snprintf(c->from, sizeof c->from, "measured here on %.20s", text_of(all, "measured"));
    else
        fprintf(stderr, "weft: plan: %s is damaged; measuring anew\n", path);
    json_decref(all);
    return good;
}

static json_t *list(const double *x, int n)
{
    json_t *all = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(all, json_real(x[i]));
    return all;
}

static json_t *described(const costs *c, const char *date)
{
    const weft_plan_cost *t = &c->table;
    return json_pack("{s:s, s:s, s:s, s:i, s:s, s:I, s:I, s:s, s:o, s:o, s:o, s:f, s:f, s:f, s:f, s:f, s:f}",
                     "weft", weft_version(), "measured", date, "device", c->device, "threads", c->threads,
                     "cell", c->layer.cell, "input", (json_int_t)c->layer.input, "hidden",
                     (json_int_t)c->layer.hidden, "precision", c->precision, "rows", list(t->rows, t->points),
                     "ms", list(t->ms, t->points), "batch_ms", list(t->batch_ms, t->points), "token_ms",
                     t->token_ms, "segment_ms", t->segment_ms, "blocks", t->blocks, "long_tokens",
                     t->long_tokens, "long_share", t->long_share, "error", t->error);
}

/* Whole or not at all; that nothing can be kept is no error. */
void keep_costs(const costs *c)
{
    char path[4096], temporary[4200], date[32];
    time_t now = time(NULL);
    struct tm day;
    if (!cache_path(c, path, sizeof path))
        return;
    for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = 0;
        (void)(mkdir(path, 0777) && errno != EEXIST);
        *at = '/';
    }
    strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &day));
    snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid());
    json_t *all = described(c, date);
    if (all &&
        (json_dump_file(all, temporary, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) || rename(temporary, path)))
        unlink(temporary);
    json_decref(all);
}
