/* repeat.c - compares a record with its repetition, number by number. */
#include <stdlib.h>
#include <string.h>
#include "tools/lab/run.h"

enum { ROWS = 20, NAME = 400 };
static const double tolerance = 1.25; /* of a time divided by the recorded one, or the inverse */

bool lab_same_corpus(const lab_run *r, const char *path, const json_t *record)
{
    const json_t *corpus = json_object_get(record, "corpus");
    const char *hash = json_string_value(json_object_get(corpus, "sha256")),
               *name = json_string_value(json_object_get(corpus, "name"));
    return !strcmp(hash, r->corpus) ||
           say_failure("lab: --repeat %s: found the corpus %s with the SHA-256 %s; expected the corpus %s "
                       "with %s: their lengths or tokens differ", path, r->asked.corpus, r->corpus,
                       name ? name : "?", hash);
}

/* ---- tables ---- */
static int printed;                              /* rows of this table */

/* flags: for json_dumps. */
static void print_row(const char *name, const json_t *was, const json_t *now, size_t flags)
{
    if (printed++ >= ROWS)
        return;
    char *text[2] = { was ? json_dumps(was, JSON_ENCODE_ANY | flags) : NULL,
                      now ? json_dumps(now, JSON_ENCODE_ANY | flags) : NULL };
    if (printed == 1)
        printf("%-64s %24s %24s\n", "difference", "recorded", "now");
    printf("%-64s %24s %24s\n", name, text[0] ? text[0] : "-", text[1] ? text[1] : "-");
    free(text[0]), free(text[1]);
}

static void end_table(void)
{
    if (printed > ROWS)
        printf("%d more differences are not printed\n", printed - ROWS);
    fputs(printed ? "\n" : "", stdout);
    printed = 0;
}

/* Writes the experiment, the planner, other marks of the entry, and the name of the number. */
static const char *name_of(const json_t *entry, const char *key, char name[NAME])
{
    static const char *const parts[] = { "experiment", "planner", "instance", "mean_of", "seed", "updates" };
    int n = 0;
    for (int i = 0; i < 6; i++) {
        const json_t *part = json_object_get(entry, parts[i]);
        if (json_is_string(part))
            n += snprintf(name + n, NAME - (size_t)n, "%.80s ", json_string_value(part));
        else if (part)
            n += snprintf(name + n, NAME - (size_t)n, "%s %lld ", parts[i],
                          (long long)json_integer_value(part));
    }
    snprintf(name + n, NAME - (size_t)n, "%.40s", key);
    return name;
}

/* Prints the members that differ, and returns their number. group: the first word of their names; NULL: named
 * by the entry. An object may be NULL. */
static int compare(const json_t *was, const json_t *now, const char *group)
{
    const json_t *side[] = { was, now };
    const char *key;
    json_t *value;
    char name[NAME];
    int differ = 0;
    for (int i = 0; i < 2; i++)
        json_object_foreach((json_t *)side[i], key, value) {
            const json_t *a = json_object_get(was, key), *b = json_object_get(now, key);
            bool numbers = json_is_number(a) && json_is_number(b);
            bool same = numbers ? json_number_value(a) == json_number_value(b) : json_equal(a, b);
            if (same || (i && a)) /* the first side had those that both have */
                continue;
            differ++;
            if (group)
                snprintf(name, NAME, "%s %s", group, key);
            print_row(group ? name : name_of(side[i], key, name), a, b, 0);
        }
    return differ;
}

/* Compares two lists of results and returns the number of differences. A record that was stopped may end
 * before its repetition. */
static int compare_lists(const json_t *was, const json_t *now, lab_section s)
{
    bool stopped = json_object_get(was, "stopped");
    const json_t *a = json_object_get(was, lab_sections[s]), *b = json_object_get(now, lab_sections[s]);
    int differ = 0;
    for (size_t i = 0; i < json_array_size(a) || (i < json_array_size(b) && !stopped); i++)
        differ += compare(json_array_get(a, i), json_array_get(b, i), NULL);
    return differ;
}

/* ---- times ---- */
/* Returns the sum for each experiment, planner and kind of time. */
static json_t *sum_times(const json_t *record)
{
    json_t *all = json_object(), *entry, *value;
    const char *key;
    size_t i;
    char name[NAME];
    json_array_foreach(json_object_get(record, "timed"), i, entry)
        json_object_foreach(entry, key, value)
            if (strstr(key, "ms") || !strcmp(key, "seconds")) {
                double before = json_number_value(json_object_get(all, name_of(entry, key, name)));
                json_object_set_new(all, name, json_real(before + json_number_value(value)));
            }
    return all;
}

static void compare_times(const json_t *was, const json_t *now)
{
    json_t *a = sum_times(was), *b = sum_times(now), *value;
    double *ratio = get_memory((int64_t)json_object_size(a), sizeof *ratio);
    const char *key;
    int n = 0, outside = 0;
    json_object_foreach(a, key, value) {
        double x = json_number_value(value), y = json_number_value(json_object_get(b, key));
        if (x < (strstr(key, " seconds") ? 1e-3 : 1) || y <= 0) /* too short to compare */
            continue;
        ratio[n++] = y / x;
        if (y / x > tolerance || x / y > tolerance)
            outside++, print_row(key, value, json_object_get(b, key), JSON_REAL_PRECISION(6));
    }
    end_table();
    if (n) {
        double middle = quantile(ratio, n, .5);
        printf("timed: now divided by recorded is %.2f in the median, %.2f to %.2f; %d of %d are beyond the "
               "tolerance of %g\n", middle, ratio[0], ratio[n - 1], outside, n, tolerance);
    }
    free(ratio), json_decref(a), json_decref(b);
}

int lab_compare_records(const json_t *was, const json_t *now, bool sealed)
{
    static const char *const conditions[] = { "weft", "options", "machine", "environment" };
    for (int i = 0; i < 4; i++)
        compare(json_object_get(was, conditions[i]), json_object_get(now, conditions[i]), conditions[i]);
    int counted = compare_lists(was, now, LAB_COUNTED), computed = compare_lists(was, now, LAB_COMPUTED);
    end_table();
    compare_times(was, now);
    printf("counted: %d differences; they depend on corpus, planners, version, and the CPU's architecture\n"
           "computed: %d differences; they have the same bits in each layout and number of threads, but "
           "may differ between instruction sets, matrix products and versions\n", counted, computed);
    if (!sealed)
        printf("the seal does not match: the record was changed after weft wrote it\n");
    return finish_output("lab", sealed && !counted && !computed ? GOOD : FAILED);
}
