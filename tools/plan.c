/* plan.c - `weft plan`: plans of a file of lengths, side by side. */
#include <stdlib.h>
#include <string.h>
#include "tools/corpora/corpora.h"
#include "tools/plan/cost.h"
#include "tools/plan/shape.h"

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

static bool json_plan(const planned *t, const int32_t *len)
{
    printf("{\"planner\": ");
    json_string(t->text);
    if (t->plan.in_rows || !is_one_a_row(&t->plan)) {
        printf(", \"rows\": [");
        for (int64_t b = 0; b < t->plan.batches; b++)
            json_batch_of_rows(&t->plan, t->plan.batch + b, !b);
        putchar(']');
    } else {
        json_batches(t, len);
    }
    bool good = json_shape(t);
    json_figures(t);
    return good;
}

static bool print_json(const planned *all, int n, const int32_t *len)
{
    bool good = true;
    printf("{\"plans\": [");
    for (int i = 0; i < n && good; i++) {
        printf("%s", i ? ",\n " : "");
        good = json_plan(all + i, len);
    }
    printf("]}\n");
    return good;
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
/* What was asked for: the page's file or NULL, the file of plans or NULL; named: lengths names a corpus. */
typedef struct {
    bool json, times, named;
    int seconds;
    const char *report, *from, *lengths;
    char **planners, *command;
    int n;
    const char *explain, *costs;
    int threads;
    layer_asked layer;
} asked;

static bool make(planned *t, const int32_t *len, int64_t n)
{
    double start = seconds_now();
    if (is_foreign(t->text) && !plan_foreign(t, len, n))
        return false;
    if (!t->planner && (weft_plan_parse(t->text, &t->planner, &t->opts, &t->memory) != WEFT_OK ||
                        weft_plan_make(t->planner, len, n, &t->opts, &t->plan) != WEFT_OK))
        return say_error(FAILED, "plan: %s", weft_plan_message()), false;
    t->ms = 1e3 * (seconds_now() - start);
    return true;
}

static bool measure(planned *t, const int32_t *len, int64_t n)
{
    return weft_plan_measure(&t->plan, len, n, t->opts.capacity, &t->figures) == WEFT_OK ||
           (say_error(FAILED, "plan: %s", weft_plan_message()), false);
}

bool make_planned(planned *t, const int32_t *len, int64_t n) { return make(t, len, n) && measure(t, len, n); }

static void free_all(planned *all, int n)
{
    for (int i = 0; i < n; i++)
        weft_plan_free(&all[i].plan), free(all[i].memory);
    free(all);
}

/* The planners' plans, then those of the file. A planner of others that fails does not stop the rest: it is
 * left out, and *failed is set. */
static bool make_all(const asked *a, const int32_t *len, int64_t n, planned **all, int *count, bool *failed)
{
    *all = calloc((size_t)a->n + 1, sizeof **all);
    bool good = *all || say_error(FAILED, "plan: no memory for %d plans", a->n) == GOOD;
    *count = 0;
    for (int i = 0; i < a->n && good; i++) {
        planned *t = *all + (*count)++;
        t->text = a->planners[i], t->seconds = a->seconds;
        if (make(t, len, n))
            continue;
        good = is_foreign(t->text);
        *failed = true, weft_plan_free(&t->plan);
        if (good)
            *t = (planned){ 0 }, --*count;
    }
    int by_planners = *count;
    good = good && (!a->from || read_plans(a->from, len, n, all, count));
    for (int i = 0; i < *count && good; i++) {
        planned *t = *all + i;
        if (!t->planner || t->own.name || i >= by_planners)
            t->planner = &t->own, t->own.name = t->text; /* the array has moved */
        good = measure(t, len, n);
    }
    return good;
}

static bool explain(const asked *a, const planned *all, int count, const int32_t *len, int64_t n)
{
    layer_cost cost;
    if (!(a->costs ? read_costs(a->costs, &cost) : costs_of(&a->layer, &cost)))
        return false;
    return explain_plans(all, count, len, n, &cost);
}

static int plan_all(const asked *a)
{
    int64_t n;
    int32_t *len = a->named ? corpus_lengths(a->lengths, &n) : read_lengths(a->lengths, &n);
    planned *all = NULL;
    int count = 0;
    bool failed = false, good = len && make_all(a, len, n, &all, &count, &failed) && (count || !failed);
    if (good && a->report)
        good = report_plans(a->report, a->lengths, len, n, all, count, a->command, a->times);
    if (good && a->json)
        good = print_json(all, count, len);
    else if (good)
        print_table(all, count);
    if (good && a->explain)
        good = explain(a, all, count, len, n);
    if (good && (fflush(stdout) || ferror(stdout)))
        good = say_error(FAILED, "plan: stdout cannot be written") == GOOD;
    free_all(all, count);
    free(len);
    return good && !failed ? GOOD : FAILED;
}

static int list_planners(void)
{
    for (int i = 0; i < weft_planner_count(); i++) {
        const weft_planner *p = weft_planner_at(i);
        printf("%-22s %-52s %s\n%-22s %s\n", p->name, p->about, p->source, "", p->options);
    }
    return fflush(stdout) || ferror(stdout) ? FAILED : GOOD;
}

const char *value_of(const char *option, int argc, char **argv, int *at)
{
    size_t n = strlen(option);
    if (strncmp(argv[*at], option, n))
        return NULL;
    if (argv[*at][n] == '=')
        return argv[*at] + n + 1;
    return !argv[*at][n] && *at + 1 < argc ? argv[++*at] : NULL;
}

/* A whole number above 0; 0: it is none. */
static int whole(const char *text)
{
    char *end;
    long n = strtol(text, &end, 10);
    return end > text && !*end && n > 0 && n <= 1 << 20 ? (int)n : 0;
}

static bool read_option(asked *a, int argc, char **argv, int *at)
{
    const char *value;
    if (!strcmp(argv[*at], "--json"))
        return a->json = true;
    if (!strcmp(argv[*at], "--times"))
        return a->times = true;
    if (!strcmp(argv[*at], "--explain"))
        return a->explain = "lstm:128", true;
    if (!strncmp(argv[*at], "--explain=", 10))
        return a->explain = argv[*at] + 10, true;
    if ((value = value_of("--costs", argc, argv, at)))
        return a->costs = value, *value != 0;
    if ((value = value_of("--threads", argc, argv, at)))
        return (a->threads = whole(value)) > 0;
    if ((value = value_of("--seconds", argc, argv, at)))
        return (a->seconds = whole(value)) > 0;
    if ((value = value_of("--corpus", argc, argv, at)))
        return a->lengths = value, a->named = true;
    if ((value = value_of("--report", argc, argv, at)))
        return a->report = value, *value != 0;
    if ((value = value_of("--from", argc, argv, at)) && !a->from)
        return a->from = value, *value != 0;
    return false;
}

/* As a shell would read it again; NULL: no memory. */
char *command_line(const char *name, int argc, char **argv)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    for (int i = -1; i < argc && to; i++) {
        const char *word = i < 0 ? name : argv[i];
        bool plain =
            i < 0 || (*word && !word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                  "0123456789-_=:,./+@%")]);
        fprintf(to, "%s%s", i < 0 ? "" : " ", plain ? "" : "'");
        for (; *word; word++)
            !plain &&*word == '\'' ? fputs("'\\''", to) : fputc(*word, to);
        fputs(plain ? "" : "'", to);
    }
    return to && !fclose(to) ? text : NULL;
}

static int run_plan(int argc, char **argv)
{
    asked a = { .seconds = 60, .threads = 1 };
    int at = 0;
    for (; at < argc && argv[at][0] == '-' && argv[at][1]; at++) {
        if (!strcmp(argv[at], "--list"))
            return list_planners();
        const char *option = argv[at];
        if (!read_option(&a, argc, argv, &at))
            return say_error(USAGE, "plan: there is no option %.60s; usage: weft plan %s", option,
                             subcommand_plan.usage);
    }
    a.explain = a.costs && !a.explain ? "lstm:128" : a.explain;
    if (a.explain && !parse_layer(a.explain, a.threads, &a.layer))
        return USAGE;
    if (a.explain && a.json)
        return say_error(USAGE, "plan: --json and --explain: one of both is expected");
    if (argc - at < !a.from + !a.named)
        return say_error(USAGE, "plan: a file of lengths and a planner are expected; usage: weft plan %s",
                         subcommand_plan.usage);
    a.lengths = a.named ? a.lengths : argv[at++];
    a.planners = argv + at, a.n = argc - at;
    a.command = command_line("weft plan", argc, argv);
    int status = a.command ? plan_all(&a) : say_error(FAILED, "plan: no memory");
    free(a.command);
    return status;
}

const subcommand subcommand_plan = {
    "plan",
    "[--list] [--json] [--report FILE.html [--times]] [--from FILE.jsonl] [--seconds=60] "
    "[--explain[=CELL:UNITS] [--threads=1] [--costs FILE.json]] LENGTHS|--corpus "
    "NAME PLANNER..",
    "plans a file of lengths: PLANNER is name[:key=value[,key=value]..] or PATH/x.so:NAME[:options], which\n"
    "      runs in a process of its own for so many seconds at most; --from adds plans from a file, one a "
    "line as\n"
    "      --json prints them; --report writes a page on all of them; --explain predicts what they\n"
    "      cost with such a layer here, measured once, or with the costs of a file, and says which to take",
    run_plan
};
