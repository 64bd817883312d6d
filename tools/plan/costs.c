/* costs.c - reads and writes the costs of a layer as JSON. The cache has one file for each CPU, device,
 * threads, cell, width, precision and version. */
#include <errno.h>
#include <jansson.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "tools/plan/cost.h"

static bool read_numbers(const json_t *object, const char *key, double *to, int *n)
{
    const json_t *list = json_object_get(object, key);
    size_t size = json_array_size(list);
    if (!json_is_array(list) || size < 2 || size > WEFT_COST_POINTS)
        return false;
    for (size_t i = 0; i < size; i++)
        if (!json_is_number(json_array_get(list, i)))
            return false;
        else
            to[i] = json_number_value(json_array_get(list, i));
    *n = (int)size;
    return true;
}

/* The numbers after the lists, in the order of the file. */
#define NUMBER(field) { #field, offsetof(weft_plan_cost, field) }
static const struct {
    const char *key;
    size_t field;
} numbers[] = { NUMBER(token_ms),    NUMBER(piece_ms),   NUMBER(batch_ms), NUMBER(far_ms),
                NUMBER(near_tokens), NUMBER(far_tokens), NUMBER(error),    NUMBER(pair_ms) };
enum { NUMBERS = sizeof numbers / sizeof *numbers };

/* Returns the error as text, or NULL. */
static const char *read_object(const json_t *object, layer_cost *out)
{
    weft_plan_prediction r;
    const char *name = json_string_value(json_object_get(object, "name"));
    int n;
    *out = (layer_cost){ .cost = { .points = 0 } };
    if (!json_is_object(object) || !name || !*name)
        return "expected an object with a \"name\"";
    snprintf(out->name, sizeof out->name, "%s", name);
    bool steps = json_object_get(object, "rows") || !json_object_get(object, "pair_ms");
    if (steps && (!read_numbers(object, "rows", out->cost.rows, &out->cost.points) ||
                  !read_numbers(object, "step_ms", out->cost.step_ms, &n) || n != out->cost.points))
        return "expected \"rows\" and \"step_ms\", lists of equal length, 2 .. 16";
    if (json_object_get(object, "start_ms") &&
        (!steps || !read_numbers(object, "start_ms", out->cost.start_ms, &n) || n != out->cost.points))
        return "expected \"start_ms\", a list as long as \"rows\"";
    for (int i = 0; i < NUMBERS; i++) {
        const json_t *value = json_object_get(object, numbers[i].key);
        if (value && !json_is_number(value))
            return "expected numbers after \"step_ms\"";
        *(double *)((char *)&out->cost + numbers[i].field) = json_number_value(value);
    }
    return weft_plan_predict(&(weft_plan){ 0 }, &out->cost, false, &r) == WEFT_OK ? NULL :
                                                                                    weft_plan_message();
}

bool read_costs(const char *path, layer_cost *out)
{
    json_error_t e;
    json_auto_t *all = json_load_file(path, JSON_REJECT_DUPLICATES, &e);
    const char *error = all ? read_object(all, out) : NULL;
    if (!all && json_error_code(&e) == json_error_cannot_open_file)
        say_error(FAILED, "plan: --costs %s: %s", path, strerror(errno));
    else if (!all)
        say_error(FAILED, "plan: --costs %s:%d: %s; expected JSON", path, e.line, e.text);
    else if (error)
        say_error(FAILED, "plan: --costs %s: %s", path, error);
    return all && !error;
}

/* ---- the cache ---- */
/* Keeps letters, digits, - and _ in the name. Returns false if no folder for a cache exists. */
static bool cache_path(const layer_asked *a, char *path, size_t size)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    bool has_cache = cache && *cache == '/';
    char cpu[COST_NAME], key[2 * COST_NAME + 1];
    int n = 0;
    weft *w = weft_open(&(weft_opts){ .seed = 1, .threads = a->threads });
    bool ok = weft_ok(w) || say_failure("plan: --explain: %s", weft_error_message(w));
    cpu_model(cpu, sizeof cpu);
    if (ok && (has_cache || (home && *home == '/'))) {
        snprintf(key, sizeof key, "%s-%s", cpu, weft_device_name(w));
        for (char *c = key; *c; c++)
            *c = strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", *c) ? *c : '-';
        n = snprintf(path, size, "%s%s/weft/costs/%s-%dt-%s-%lld-%s-%s.json", has_cache ? cache : home,
                     has_cache ? "" : "/.cache", key, weft_threads(w), a->cell, (long long)a->hidden,
                     sizeof(weft_real) == 8 ? "f64" : "f32", weft_version());
    }
    weft_close(w);
    return n > 0 && (size_t)n < size;
}

static void put_numbers(FILE *to, const char *key, const double *x, int n)
{
    fprintf(to, ", \"%s\": [", key);
    for (int i = 0; i < n; i++)
        fprintf(to, "%s%.9g", i ? ", " : "", x[i]);
    fputc(']', to);
}

static void write_costs(char *path, const layer_cost *l)
{
    char *text SCOPED = NULL, date[32];
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (to) {
        date_now(DATE, date);
        fprintf(to, "{\"name\": \"%s\", \"date\": \"%s\"", l->name, date);
        if (l->cost.points) {
            put_numbers(to, "rows", l->cost.rows, l->cost.points);
            put_numbers(to, "step_ms", l->cost.step_ms, l->cost.points);
            put_numbers(to, "start_ms", l->cost.start_ms, l->cost.points);
        }
        for (int i = 0; i < NUMBERS; i++)
            fprintf(to, ", \"%s\": %.9g", numbers[i].key,
                    *(const double *)((const char *)&l->cost + numbers[i].field));
        fputs("}\n", to);
    }
    for (char *slash = path + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = 0;
        mkdir(path, 0777); /* it may exist */
    }
    if (!to || fclose(to) || weft_write_file(path, text, size) != WEFT_OK)
        fprintf(stderr, "weft: plan: cannot write %s, so the costs of the layer are not cached\n", path);
}

/* Damaged files and implausible costs are reported and measured again. A missing file is not reported. */
static bool read_cache(const char *path, layer_cost *out)
{
    json_error_t e;
    json_auto_t *all = json_load_file(path, JSON_REJECT_DUPLICATES, &e);
    bool ok = all && !read_object(all, out), plausible = ok && is_plausible(&out->cost);
    if (!ok && (all || json_error_code(&e) != json_error_cannot_open_file))
        fprintf(stderr, "weft: plan: %s is damaged; measuring the layer again\n", path);
    else if (ok && !plausible)
        fprintf(stderr,
                "weft: plan: in %s a step of more rows costs less than one of fewer; measuring the "
                "layer again\n",
                path);
    return plausible;
}

bool costs_of(const layer_asked *a, layer_cost *out)
{
    char path[4096];
    bool has_place = cache_path(a, path, sizeof path);
    if (has_place && !a->renew && read_cache(path, out))
        return true;
    if (!calibrate(a, out))
        return false;
    if (*out->doubt)
        fprintf(stderr,
                "weft: plan: the costs of the layer are uncertain and not cached: %s. Measure again when "
                "the machine is quiet.\n",
                out->doubt);
    else if (has_place)
        write_costs(path, out);
    return true;
}
