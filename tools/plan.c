/* plan.c - `weft plan`: plans a list of lengths with several planners and compares the plans. */
#include <stdlib.h>
#include <string.h>
#include "tools/corpora/corpora.h"
#include "tools/options.h"
#include "tools/plan/verdict.h"

static void print_table(const planned *all, int n)
{
    int width = 7;
    bool dropped = false;
    for (int i = 0; i < n; i++) {
        width = (int)strlen(all[i].text) > width ? (int)strlen(all[i].text) : width;
        dropped = dropped || all[i].figures.dropped;
    }
    printf("%-*s %8s %8s %11s %6s %9s %9s %6s %6s%s %8s %8s\n", width, "planner", "batches", "rows", "cells",
           "fill", "steps", "runs", "live", "eta2", dropped ? "   dropped" : "", "l1", "l2");
    for (int i = 0; i < n; i++) {
        const weft_plan_figures *f = &all[i].figures;
        printf("%-*s %8lld %8lld %11lld %6.3f %9lld %9lld %6.1f %6.3f", width, all[i].text,
               (long long)f->batches, (long long)f->rows, (long long)f->cells, f->fill, (long long)f->steps,
               (long long)f->runs, f->mean_live, f->eta2);
        if (dropped)
            printf(" %9lld", (long long)f->dropped);
        if (all[i].opts.capacity)
            printf(" %8lld %8lld", (long long)f->l1, (long long)f->l2);
        putchar('\n');
    }
}

/* The options. report, from: files or NULL. lengths: a file, or the name of a corpus. layer: from the
 * text explain, unless costs come from a file. */
typedef struct {
    bool json, times, list, calibrate, stream, flush;
    int64_t seconds, threads;
    const char *report, *from, *lengths, *corpus, *export, *state;
    char **planners, *command;
    int n;
    const char *explain, *costs;
    layer_asked layer;
} asked;

static bool make(planned *t, const int32_t *len, int64_t n)
{
    double start = seconds_now();
    const weft_planner *named;
    if (is_foreign(t->text)) {
        if (!plan_foreign(t, len, n))
            return false;
    } else if (weft_plan_parse(t->text, &named, &t->opts, &t->memory) == WEFT_OK &&
               weft_plan_make(named, len, n, &t->opts, &t->plan) == WEFT_OK)
        t->planner = *named;
    else
        return say_failure("plan: %s", weft_plan_message());
    t->ms = 1e3 * (seconds_now() - start);
    return true;
}

static bool measure(planned *t, const int32_t *len, int64_t n)
{
    return weft_plan_measure(&t->plan, len, n, t->opts.capacity, &t->figures) == WEFT_OK ||
           say_failure("plan: %s", weft_plan_message());
}

bool make_planned(planned *t, const int32_t *len, int64_t n) { return make(t, len, n) && measure(t, len, n); }

void free_planned(planned *all, int n)
{
    for (int i = 0; i < n && all; i++)
        weft_plan_free(&all[i].plan), free(all[i].memory);
    free(all);
}

/* Makes the planners' plans, then reads those of the file. A foreign planner that fails is left out and sets
 * *failed. */
static bool make_all(const asked *a, const int32_t *len, int64_t n, planned **all, int *count, bool *failed)
{
    bool ok = true;
    *all = get_memory(a->n, sizeof **all);
    *count = 0;
    for (int i = 0; i < a->n && ok; i++) {
        planned *t = *all + (*count)++;
        t->text = a->planners[i];
        t->seconds = (int)a->seconds;
        if (make(t, len, n))
            continue;
        ok = is_foreign(t->text);
        *failed = true;
        weft_plan_free(&t->plan);
        if (ok) {
            *t = (planned){ 0 };
            --*count;
        }
    }
    ok = ok && (!a->from || read_plans(a->from, len, n, all, count));
    for (int i = 0; i < *count && ok; i++)
        ok = measure(*all + i, len, n);
    return ok;
}

/* Prints the plans and, with costs, the verdict on them. */
static bool print_plans(const asked *a, const planned *all, int count, const int32_t *len, int64_t n,
                        const layer_cost *costs)
{
    VERDICT v = { 0 };
    bool ok = !a->json || !costs || judge_made(&v, all, count, len, n, costs);
    if (ok && a->json)
        print_json(all, count, len, costs ? &v : NULL);
    else if (ok)
        print_table(all, count);
    return ok && (a->json || !costs || explain_plans(all, count, len, n, costs));
}

static int plan_all(const asked *a)
{
    int64_t n;
    SCOPED int32_t *len = a->corpus ? corpus_lengths(a->lengths, &n) : read_lengths(a->lengths, &n);
    planned *all = NULL;
    int count = 0;
    if (len && !n && !a->json)
        fprintf(stderr, "weft: plan: %s: found no lengths\n", strcmp(a->lengths, "-") ? a->lengths : "stdin");
    bool failed = false, ok = len && make_all(a, len, n, &all, &count, &failed) && (count || !failed);
    layer_cost cost, *costs = a->explain ? &cost : NULL;
    ok = ok && (!costs || (a->costs ? read_costs(a->costs, &cost) : costs_of(&a->layer, &cost)));
    if (ok && a->report)
        ok = report_plans(a->report, a->lengths, len, n, all, count, a->command, a->times, costs);
    if (ok && a->export)
        ok = export_plan(a->export, all);
    ok = ok && print_plans(a, all, count, len, n, costs);
    free_planned(all, count);
    return ok && finish_output("plan", GOOD) == GOOD && !failed ? GOOD : FAILED;
}

static int list_planners(void)
{
    for (int i = 0; i < weft_planner_count(); i++) {
        const weft_planner *p = weft_planner_at(i);
        printf("%-22s %-52s %s\n%-22s %s\n", p->name, p->about, p->source, "", p->options);
    }
    return finish_output("plan", GOOD);
}

char *command_line(const char *name, int argc, char **argv)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    for (int i = -1; i < argc; i++) {
        const char *word = i < 0 ? name : argv[i];
        bool plain =
            i < 0 || (*word && !word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                  "0123456789-_=:,./+@%")]);
        fprintf(to, "%s%s", i < 0 ? "" : " ", plain ? "" : "'");
        for (; *word; word++)
            !plain &&*word == '\'' ? fputs("'\\''", to) : fputc(*word, to);
        fputs(plain ? "" : "'", to);
    }
    fclose(to);
    return text;
}

/* ---- options ---- */
#define AT(f) offsetof(asked, f)
static const option options[] = {
    IS_FLAG("--calibrate", AT(calibrate), "with --explain: measure the layer again and renew the cache"),
    IS_TEXT("--corpus", "NAME", AT(corpus), "plan lengths of a corpus, not of a file; see weft corpora"),
    IS_TEXT("--costs", "FILE.json", AT(costs), "with --explain: read the layer's costs from a file"),
    { .name = "--explain",
      .value = "CELL:UNITS",
      .about = "predict the time of each plan and recommend one; CELL: lstm, gru,\n"
               "elman, cifg, mgu or attention (lstm:128)",
      .kind = OPTION_TEXT,
      .field = AT(explain),
      .is_value = is_layer,
      .otherwise = "lstm:128" },
    IS_TEXT("--export", "FILE", AT(export),
            "write the plan of the only planner to FILE.jsonl or FILE.npz:\n"
            "cu_seqlens, max_seqlen, position_ids, document_ids, pieces"),
    IS_FLAG("--flush", AT(flush), "with --state: print the open rows at the end, and keep none"),
    IS_TEXT_ONCE("--from", "FILE.jsonl", AT(from),
                 "add plans from a file, one a line, or as --json prints them"),
    IS_FLAG("--json", AT(json), "print the plans as JSON instead of a table"),
    IS_FLAG("--list", AT(list), "list the planners with sources and options; the only argument"),
    IS_OUTPUT("--report", ".html", AT(report), "write a page on all plans"),
    IS_WHOLE("--seconds", AT(seconds), 1 << 20, "time limit of a planner from a shared object (60)"),
    IS_TEXT("--state", "FILE.npy", AT(state),
            "with --stream: begin with the open rows of FILE, and write them\n"
            "at the end instead of printing them"),
    IS_FLAG("--stream", AT(stream), "read lengths as they come, and print each row when it is final"),
    IS_WHOLE("--threads", AT(threads), 1024, "with --explain: threads of the layer (1)"),
    IS_FLAG("--times", AT(times), "with --report: also show the time of each planner"),
    { 0 }
};

/* Checks planners before lengths are read, by a plan of nothing. */
bool are_planners(const subcommand *s, char *const *text, int n)
{
    for (int i = 0; i < n; i++) {
        const weft_planner *named;
        weft_plan_opts o;
        PLAN plan = { 0 };
        SCOPED void *memory = NULL;
        if (!is_foreign(text[i]) && (weft_plan_parse(text[i], &named, &o, &memory) != WEFT_OK ||
                                     weft_plan_make(named, NULL, 0, &o, &plan) != WEFT_OK))
            return usage_failure(s, "%s", weft_plan_message());
    }
    return true;
}

/* Checks for options that exclude each other, and for missing arguments. */
static int check_asked(const asked *a, int operands)
{
    const subcommand *s = &subcommand_plan;
    if (a->costs && a->calibrate)
        return usage_error(s, "--costs: found with --calibrate; expected only one of them");
    if (a->times && !a->report)
        return usage_error(s, "--times: found without --report FILE.html; expected both");
    if (operands < !a->corpus + !a->from)
        return usage_error(s, "expected %s",
                           a->from   ? "a file of lengths" :
                           a->corpus ? "a planner" :
                                       "a file of lengths and a planner");
    /* --stream, --state and --export have one planner */
    bool others = a->json || a->report || a->explain || a->from || a->corpus || a->export;
    if ((a->state && !a->stream) || (a->flush && !a->state))
        return usage_error(s, "%s; expected both",
                           a->flush ? "--flush: found without --state" : "--state: found without --stream");
    if (a->stream && (others || operands != 2))
        return usage_error(s, "--stream: expected a file of lengths, one planner, and no option but --state");
    if (a->export && !is_export_file(a->export))
        return usage_error(s, "--export: found \"%.60s\"; expected FILE.jsonl or FILE.npz", a->export);
    if (a->export && operands + !!a->corpus + !!a->from != 2)
        return usage_error(s, "--export: found %d planners; expected one", operands - !a->corpus);
    return GOOD;
}

static int run_asked(asked *a, int argc, char **argv)
{
    a->explain = (a->costs || a->calibrate) && !a->explain ? "lstm:128" : a->explain;
    if (check_asked(a, argc))
        return USAGE;
    if (a->explain && !parse_layer(a->explain, (int)a->threads, &a->layer))
        return USAGE;
    a->layer.renew = a->calibrate;
    a->lengths = a->corpus ? a->corpus : argv[0];
    a->planners = argv + !a->corpus;
    a->n = argc - !a->corpus;
    if (!are_planners(&subcommand_plan, a->planners, a->n))
        return USAGE;
    return a->stream ? plan_stream(a->lengths, a->planners[0], a->state, a->flush) : plan_all(a);
}

static int run_plan(int argc, char **argv)
{
    asked a = { .seconds = 60, .threads = 1, .command = command_line("weft plan", argc, argv) };
    int given = argc, status = read_options(&subcommand_plan, &a, &argc, argv);
    if (!status && a.list)
        status = given == 1 ? list_planners() :
                              usage_error(&subcommand_plan, "--list: found other "
                                                            "arguments; expected none");
    else if (!status)
        status = run_asked(&a, argc, argv);
    free(a.command);
    return status;
}

const subcommand subcommand_plan = {
    .name = "plan",
    .about = "plans a file of lengths and compares the plans",
    .usage = "[OPTION].. LENGTHS|--corpus NAME PLANNER.. | --list",
    .details = "LENGTHS is a file that weft lengths reads without options, or - for standard input.\n"
               "PLANNER is NAME[:KEY=VALUE[,KEY=VALUE]..] from --list, or ./x.so:NAME[:OPTIONS],\n"
               "which runs in a separate process.\n\n"
               "Columns of the table:\n"
               "  rows, cells  of all batches\n"
               "  fill         share of cells with a token\n"
               "  steps        sum of the widths of the batches\n"
               "  runs         runs of steps with the same number of live rows\n"
               "  live         mean number of live rows\n"
               "  eta2         share of the lengths' variance between batches (0: like random ones)\n"
               "  l1, l2       lower bounds on rows: ceil(tokens / capacity); Martello and Toth's\n",
    .options = options,
    .run = run_plan
};
