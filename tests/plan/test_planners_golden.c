/* test_planners_golden.c - plans of tests/golden/planners.json, made by an independent program: small cases
 * in full, larger ones by how many rows they have. */
#include <jansson.h>
#include "plans.h"

static json_t *golden(void)
{
    char path[512];
    snprintf(path, sizeof path, "%s/golden/planners.json",
             getenv("WEFT_TESTS") ? getenv("WEFT_TESTS") : "tests");
    json_error_t e;
    json_t *file = json_load_file(path, 0, &e);
    cr_assert(file, "%s: %s", path, e.text);
    return file;
}

static int64_t lengths_of(const json_t *c, int32_t **len)
{
    const json_t *list = json_object_get(c, "lengths");
    int64_t n = (int64_t)json_array_size(list);
    *len = calloc((size_t)n + 1, sizeof **len);
    for (int64_t i = 0; i < n; i++)
        (*len)[i] = (int32_t)json_integer_value(json_array_get(list, (size_t)i));
    return n;
}

/* "name:key=value,.." of a case's options */
static void words_of(const json_t *c, char *to, size_t size)
{
    const char *key;
    json_t *value, *number;
    size_t at = (size_t)snprintf(to, size, "%s", json_string_value(json_object_get(c, "planner"))), i;
    char before = ':';
    json_object_foreach(json_object_get(c, "options"), key, value)
    {
        at += (size_t)snprintf(to + at, size - at, "%c%s=", before, key), before = ',';
        if (json_is_boolean(value))
            at += (size_t)snprintf(to + at, size - at, "%s", json_is_true(value) ? "yes" : "no");
        else if (!json_is_array(value))
            at += (size_t)snprintf(to + at, size - at, "%g", json_number_value(value));
        json_array_foreach(value, i, number) at +=
            (size_t)snprintf(to + at, size - at, "%s%g", i ? "/" : "", json_number_value(number));
    }
    cr_assert(at < size);
}

static void hold_batches(const char *name, const weft_plan *p, const json_t *want)
{
    cr_assert_eq((size_t)p->batches, json_array_size(want), "%s", name);
    for (int64_t b = 0; b < p->batches; b++) {
        const json_t *batch = json_array_get(want, (size_t)b);
        cr_assert_eq((size_t)p->batch[b].n, json_array_size(batch), "%s: batch %lld", name, (long long)b);
        for (int64_t i = 0; i < p->batch[b].n; i++)
            cr_assert_eq(p->segment[p->batch[b].first + i].sequence,
                         json_integer_value(json_array_get(batch, (size_t)i)), "%s: batch %lld", name,
                         (long long)b);
    }
}

static void hold_rows(const char *name, const weft_plan *p, const json_t *want)
{
    int64_t i = 0, before = 0;
    size_t r = 0;
    for (int64_t b = 0; b < p->batches; before += p->batch[b++].rows)
        for (; i < p->batch[b].first + p->batch[b].n; i++) {
            const weft_segment *s = p->segment + i;
            size_t row = (size_t)(before + s->row), place = i && row == r ? 1 : 0;
            static size_t at;
            at = place ? at + 1 : 0, r = row;
            const json_t *piece = json_array_get(json_array_get(want, row), at);
            cr_assert(piece && s->sequence == json_integer_value(json_array_get(piece, 0)) &&
                          s->offset == json_integer_value(json_array_get(piece, 1)) &&
                          s->length == json_integer_value(json_array_get(piece, 2)),
                      "%s: row %zu, piece %zu", name, row, at);
        }
    size_t pieces = 0, k;
    json_t *row;
    json_array_foreach((json_t *)want, k, row) pieces += json_array_size(row);
    cr_assert(before == (int64_t)json_array_size(want) && (size_t)p->segments == pieces, "%s", name);
}

/* The lengths of each row, as a number that does not depend on their order, nor on that of the rows. */
static uint64_t print_of_row(uint64_t sum) { return sum * 0x9E3779B97F4A7C15u ^ (sum >> 31) * sum; }

static void hold_multisets(const char *name, const weft_plan *p, const json_t *want)
{
    uint64_t got = 0, expected = 0, sum = 0;
    for (int64_t i = 0; i < p->segments; i++) {
        uint64_t l = (uint64_t)p->segment[i].length;
        sum += l * l * l * 2654435761u + l;
        if (i + 1 == p->segments || p->segment[i + 1].row != p->segment[i].row)
            got += print_of_row(sum), sum = 0;
    }
    size_t r, k;
    json_t *row, *piece;
    json_array_foreach((json_t *)want, r, row)
    {
        json_array_foreach(row, k, piece)
        {
            uint64_t l = (uint64_t)json_integer_value(json_array_get(piece, 2));
            sum += l * l * l * 2654435761u + l;
        }
        expected += print_of_row(sum), sum = 0;
    }
    cr_assert(got == expected && p->batch[0].rows == (int64_t)json_array_size(want), "%s", name);
}

static void hold_figures(const char *name, const weft_plan *p, const int32_t *len, int64_t n,
                         const json_t *want)
{
    weft_plan_figures f;
    PLANS(weft_plan_measure(p, len, n, 0, &f));
    const struct {
        const char *key;
        double is;
    } all[] = { { "batches", (double)f.batches }, { "tokens", (double)f.tokens },
                { "cells", (double)f.cells },     { "steps", (double)f.steps },
                { "runs", (double)f.runs },       { "eta2", f.eta2 } };
    for (int i = 0; i < COUNT(all); i++)
        cr_assert(fabs(all[i].is - json_number_value(json_object_get(want, all[i].key))) < 1e-6,
                  "%s: %s is %.9g", name, all[i].key, all[i].is);
}

Test(planners_golden, small_cases)
{
    json_t *file = golden(), *c;
    size_t i;
    int32_t *len;
    char words[512];
    json_array_foreach(json_object_get(file, "cases"), i, c)
    {
        words_of(c, words, sizeof words);
        int64_t n = lengths_of(c, &len);
        weft_plan p = plan_of(words, len, n);
        if (json_object_get(c, "batches")) {
            hold_batches(words, &p, json_object_get(c, "batches"));
            hold_figures(words, &p, len, n, json_object_get(c, "figures"));
        } else if (!strncmp(words, "spfhp", 5)) {
            hold_multisets(words, &p, json_object_get(c, "rows"));
        } else {
            hold_rows(words, &p, json_object_get(c, "rows"));
        }
        weft_plan_free(&p);
        free(len);
    }
    cr_assert_eq(i, 191);
    json_decref(file);
}

static void hold_count(const char *key, int64_t want, const int32_t *len, int64_t n, int64_t capacity,
                       const json_t *of)
{
    char words[128];
    weft_plan_figures f;
    size_t letters = strlen(key) - (strstr(key, "_at_most") ? 8 : 0);
    snprintf(words, sizeof words, "%.*s:capacity=%lld", (int)letters, key, (long long)capacity);
    weft_plan p = plan_of(words, len, n);
    PLANS(weft_plan_measure(&p, len, n, capacity, &f));
    cr_assert(key[letters] ? f.rows <= want : f.rows == want, "%s: %lld rows, expected %lld", words,
              (long long)f.rows, (long long)want);
    cr_assert(f.l1 == json_integer_value(json_object_get(of, "l1")) &&
              f.l2 == json_integer_value(json_object_get(of, "l2")) && f.rows >= f.l2);
    weft_plan_free(&p);
}

Test(planners_golden, counts)
{
    json_t *file = golden(), *c, *want;
    size_t i;
    int32_t *len;
    const char *key;
    json_array_foreach(json_object_get(file, "counts"), i, c)
    {
        int64_t n = lengths_of(c, &len), capacity = json_integer_value(json_object_get(c, "capacity"));
        json_object_foreach(json_object_get(c, "rows"), key, want) if (key[0] != 'l' || key[1] == 'p')
            hold_count(key, json_integer_value(want), len, n, capacity, json_object_get(c, "rows"));
        weft_plan filled = plan_of("refill:slots=16", len, n),
                  read = plan_of("streams:slots=16,window=8", len, n);
        cr_assert_eq(filled.batch[0].width, json_integer_value(json_object_get(c, "refill_16_steps")));
        cr_assert_eq(8 * read.batches, json_integer_value(json_object_get(c, "streams_16_8_steps")));
        weft_plan_free(&filled), weft_plan_free(&read);
        free(len);
    }
    json_decref(file);
}
