/* plan.c - `weft plan`: plans of a file of lengths, side by side. */
#include <stdlib.h>
#include <string.h>
#include "tools/corpora.h"
#include "tools/plan.h"

/* ---- JSON ---- */
static void json_string(const char *text)
{
    putchar('"');
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c == '"' || *c == '\\')
            printf("\\%c", *c);
        else if (*c < ' ')
            printf("\\u%04x", *c);
        else
            putchar(*c);
    putchar('"');
}

static void json_batches(const planned *t, const int32_t *len)
{
    const weft_plan *p = &t->plan;
    printf(", \"batches\": [");
    for (int64_t b = 0; b < p->batches; b++) {
        printf("%s[", b ? ", " : "");
        for (int64_t i = p->batch[b].first; i < p->batch[b].first + p->batch[b].n; i++) {
            const weft_segment *s = p->segment + i;
            const char *comma = i > p->batch[b].first ? ", " : "";
            if (t->planner->promises & WEFT_PLAN_WHOLE ||
                (!s->offset && s->length == len[s->sequence] && !s->length))
                printf("%s%lld", comma, (long long)s->sequence);
            else
                printf("%s[%lld, %d, %d]", comma, (long long)s->sequence, (int)s->offset, (int)s->length);
        }
        putchar(']');
    }
    putchar(']');
}

static void json_piece(const weft_segment *s, bool more)
{
    printf("%s[%lld, %d, %d]", more ? ", " : "", (long long)s->sequence, (int)s->offset, (int)s->length);
}

/* Ours come row after row; those of others in any order. */
static bool come_by_rows(const weft_plan *p, const weft_plan_batch *b)
{
    for (int64_t i = b->first + 1; i < b->first + b->n; i++)
        if (p->segment[i].row < p->segment[i - 1].row)
            return false;
    return true;
}

static void json_batch_of_rows(const weft_plan *p, const weft_plan_batch *b, bool first)
{
    int64_t i = b->first, end = b->first + b->n;
    bool sorted = come_by_rows(p, b);
    for (int64_t r = 0; r < b->rows; r++) {
        bool more = false;
        printf("%s[", first && !r ? "" : ", ");
        for (i = sorted ? i : b->first; i < end && (!sorted || p->segment[i].row == r); i++)
            if (p->segment[i].row == r)
                json_piece(p->segment + i, more), more = true;
        putchar(']');
    }
}

static void json_figures(const planned *t)
{
    const weft_plan_figures *f = &t->figures;
    printf(", \"figures\": {\"batches\": %lld, \"rows\": %lld, \"segments\": %lld, \"tokens\": %lld, "
           "\"cells\": %lld, \"fill\": %.9g, \"steps\": %lld, \"runs\": %lld, \"mean_live\": %.9g, "
           "\"segments_per_row\": %.9g, \"eta2\": %.9g, \"empty\": %lld, \"dropped\": %lld, \"cuts\": %lld",
           (long long)f->batches, (long long)f->rows, (long long)f->segments, (long long)f->tokens,
           (long long)f->cells, f->fill, (long long)f->steps, (long long)f->runs, f->mean_live,
           f->segments_per_row, f->eta2, (long long)f->empty, (long long)f->dropped, (long long)f->cuts);
    if (t->opts.capacity)
        printf(", \"l1\": %lld, \"l2\": %lld", (long long)f->l1, (long long)f->l2);
    printf("}}");
}

static void json_plan(const planned *t, const int32_t *len)
{
    printf("{\"planner\": ");
    json_string(t->text);
    if (t->plan.in_rows) {
        printf(", \"rows\": [");
        for (int64_t b = 0; b < t->plan.batches; b++)
            json_batch_of_rows(&t->plan, t->plan.batch + b, !b);
        putchar(']');
    } else {
        json_batches(t, len);
    }
    json_figures(t);
}

static void print_json(const planned *all, int n, const int32_t *len)
{
    printf("{\"plans\": [");
    for (int i = 0; i < n; i++) {
        printf("%s", i ? ",\n " : "");
        json_plan(all + i, len);
    }
    printf("]}\n");
}

/* ---- a table ---- */
static void print_table(const planned *all, int n)
{
    int width = 7;
    for (int i = 0; i < n; i++)
        width = (int)strlen(all[i].text) > width ? (int)strlen(all[i].text) : width;
    printf("%-*s %8s %8s %11s %6s %9s %9s %6s %6s %8s %8s\n", width, "planner", "batches", "rows", "cells",
           "fill", "steps", "runs", "live", "eta2", "l1", "l2");
    for (int i = 0; i < n; i++) {
        const weft_plan_figures *f = &all[i].figures;
        printf("%-*s %8lld %8lld %11lld %6.3f %9lld %9lld %6.1f %6.3f", width, all[i].text,
               (long long)f->batches, (long long)f->rows, (long long)f->cells, f->fill, (long long)f->steps,
               (long long)f->runs, f->mean_live, f->eta2);
        if (all[i].opts.capacity)
            printf(" %8lld %8lld", (long long)f->l1, (long long)f->l2);
        putchar('\n');
    }
}

/* ---- the command ---- */
static bool make(planned *t, const int32_t *len, int64_t n)
{
    if (is_foreign(t->text) && !plan_foreign(t, len, n))
        return false;
    if ((!t->planner && (weft_plan_parse(t->text, &t->planner, &t->opts, &t->memory) != WEFT_OK ||
                         weft_plan_make(t->planner, len, n, &t->opts, &t->plan) != WEFT_OK)) ||
        weft_plan_measure(&t->plan, len, n, t->opts.capacity, &t->figures) != WEFT_OK)
        return say_error(FAILED, "plan: %s", weft_plan_message()), false;
    return true;
}

static void free_all(planned *all, int n)
{
    for (int i = 0; i < n; i++)
        weft_plan_free(&all[i].plan), free(all[i].memory);
    free(all);
}

static int plan_all(const char *path, const char *named, int n, char **planners, bool json, int seconds)
{
    int64_t sequences;
    int32_t *len = named ? corpus_lengths(named, &sequences) : read_lengths(path, &sequences);
    planned *all = len ? calloc((size_t)n, sizeof *all) : NULL;
    bool good = all != NULL;
    if (len && !all)
        say_error(FAILED, "plan: no memory for %d plans", n);
    for (int i = 0; i < n && good; i++) {
        all[i].text = planners[i], all[i].seconds = seconds;
        good = make(all + i, len, sequences);
    }
    if (good && json)
        print_json(all, n, len);
    else if (good)
        print_table(all, n);
    if (good && (fflush(stdout) || ferror(stdout)))
        good = say_error(FAILED, "plan: stdout cannot be written") == GOOD;
    free_all(all, all ? n : 0);
    free(len);
    return good ? GOOD : FAILED;
}

static int list_planners(void)
{
    for (int i = 0; i < weft_planner_count(); i++) {
        const weft_planner *p = weft_planner_at(i);
        printf("%-22s %-52s %s\n%-22s %s\n", p->name, p->about, p->source, "", p->options);
    }
    return fflush(stdout) || ferror(stdout) ? FAILED : GOOD;
}

static int run_plan(int argc, char **argv)
{
    bool json = false;
    int at = 0, seconds = 60;
    const char *named = NULL;
    for (; at < argc && argv[at][0] == '-' && argv[at][1]; at++)
        if (!strcmp(argv[at], "--json"))
            json = true;
        else if (!strcmp(argv[at], "--list"))
            return list_planners();
        else if (!strcmp(argv[at], "--corpus") && at + 1 < argc)
            named = argv[++at];
        else if (!strncmp(argv[at], "--seconds=", 10) && (seconds = atoi(argv[at] + 10)) > 0)
            ;
        else
            return say_error(USAGE, "plan: there is no option %.60s; usage: weft plan %s", argv[at],
                             subcommand_plan.usage);
    if (argc - at < (named ? 1 : 2))
        return say_error(USAGE, "plan: a file of lengths and a planner are expected; usage: weft plan %s",
                         subcommand_plan.usage);
    at += !named;
    return plan_all(argv[at - !named], named, argc - at, argv + at, json, seconds);
}

const subcommand subcommand_plan = {
    "plan", "[--list] [--json] [--seconds=60] LENGTHS|--corpus NAME PLANNER..",
    "plans a file of lengths: PLANNER is name[:key=value[,key=value]..] or PATH/x.so:NAME[:options], which\n"
    "      runs in a process of its own for so many seconds at most",
    run_plan
};
