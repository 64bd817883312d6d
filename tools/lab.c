/* lab.c - `weft lab`: experiments on planners and a small language model; a page of what came out. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "tools/lab/run.h"

/* ---- the time, and the user who wants no more of it ---- */
static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
}

double lab_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool is_late(const lab_run *r) { return lab_seconds() - r->started > r->asked.seconds; }
bool lab_stops(const lab_run *r) { return interrupted || is_late(r); }

void lab_progress(const lab_run *r, const char *format, ...)
{
    if (!isatty(STDERR_FILENO))
        return;
    va_list list;
    va_start(list, format);
    fprintf(stderr, "\r\033[K%4.0f s  ", lab_seconds() - r->started);
    vfprintf(stderr, format, list);
    va_end(list);
    fflush(stderr);
}

void lab_end_progress(void)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K");
}

bool lab_refuse(const char *planner, weft *w)
{
    lab_end_progress();
    say_error(FAILED, "lab: %s: %s", planner, weft_error_message(w));
    return false;
}

lab_model_opts lab_model_of(const lab_run *r, uint64_t seed, double dropout)
{
    return (lab_model_opts){ .classes = r->classes,
                             .embedding = 32,
                             .hidden = r->asked.hidden,
                             .dropout = dropout,
                             .lr = 5e-3,
                             .threads = r->asked.threads,
                             .seed = seed };
}

/* ---- plans ---- */
static bool make_plans(lab_run *r)
{
    size_t n = (size_t)r->asked.planners;
    r->made = calloc(n, sizeof *r->made), r->of_few = calloc(n, sizeof *r->of_few);
    r->plan = calloc(n, sizeof *r->plan), r->exact = calloc(n + 1, sizeof *r->exact);
    r->contamination = calloc(n + 1, sizeof *r->contamination);
    bool good = (r->made && r->of_few && r->plan && r->exact && r->contamination) ||
                say_error(FAILED, "lab: no memory for %zu plans", n) == GOOD;
    for (size_t i = 0; i < n && good; i++) {
        r->made[i].text = r->of_few[i].text = r->asked.planner[i];
        r->made[i].seconds = r->of_few[i].seconds = 60;
        good = make_planned(r->made + i, r->train.len, r->train.n) &&
               make_planned(r->of_few + i, r->few.len, r->few.n) &&
               lab_begin_plan(r->plan + i, r->made + i, r->train.len, r->train.n, 5);
        if (good && r->made[i].ms > 0)
            r->plan[i].planner_ms = r->made[i].ms;
    }
    return good;
}

static void free_run(lab_run *r)
{
    for (int i = 0; i < r->asked.planners; i++) {
        if (r->made)
            weft_plan_free(&r->made[i].plan), free(r->made[i].memory);
        if (r->of_few)
            weft_plan_free(&r->of_few[i].plan), free(r->of_few[i].memory);
    }
    free(r->made), free(r->of_few), free(r->plan), free(r->exact), free(r->contamination);
    free(r->cost_words), free(r->adversary), free(r->curve), free(r->point);
    weft_journal_close(r->times);
    lab_free_data(r);
}

/* ---- what is written ---- */
static bool open_times(lab_run *r)
{
    char path[4096];
    size_t n = strlen(r->asked.out), stem = n > 5 && !strcmp(r->asked.out + n - 5, ".html") ? n - 5 : n;
    snprintf(path, sizeof path, "%.*s-times.jsonl", stem < 4000 ? (int)stem : 4000, r->asked.out);
    return weft_journal_open(path, false, &r->times) == WEFT_OK ||
           (say_error(FAILED, "lab: %s", weft_file_message()), false);
}

/* How large the parts are that models learn from and are tested by. */
static bool write_sizes(const lab_run *r)
{
    weft_journal_text(r->times, "experiment", "data");
    weft_journal_number(r->times, "sequences", (double)r->train.n);
    weft_journal_number(r->times, "tokens", (double)r->train.offset[r->train.n]);
    weft_journal_number(r->times, "held_out_sequences", (double)r->held.n);
    weft_journal_number(r->times, "held_out_tokens", (double)r->held.offset[r->held.n]);
    weft_journal_line_end(r->times);
    return true;
}

static bool write_results(const lab_run *r, const char *command)
{
    char device[64], date[32];
    time_t now = time(NULL);
    struct tm day;
    int threads = r->asked.threads;
    snprintf(device, sizeof device, "%d thread%s; LSTM of %lld", threads, threads == 1 ? "" : "s",
             (long long)r->asked.hidden);
    strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &day));
    lab_cost cost[MOST_PLANNERS];
    for (int i = 0; i < r->asked.planners; i++)
        cost[i] = (lab_cost){ r->made[i].text, r->plan[i].predicted_ms, r->plan[i].median_ms, true };
    lab out = { .corpus = r->asked.corpus,
                .n = r->train.n,
                .len = r->train.len,
                .plan = r->plan,
                .plans = r->asked.planners,
                .command = command,
                .version = weft_version(),
                .seed = "1",
                .device = device,
                .date = date,
                .exact = r->exact,
                .contamination = r->contamination,
                .adversary = r->adversary,
                .cost = cost,
                .costs = r->cost_words ? r->asked.planners : 0,
                .cost_words = r->cost_words,
                .exacts = r->exacts,
                .contaminations = r->contaminations,
                .adversaries = r->adversaries };
    return write_page(r->asked.out, &out);
}

static int run_all(lab_run *r, const char *command)
{
    bool (*const experiment[])(lab_run *) = {
        lab_compare_layouts,   lab_contaminate, lab_ask_adversaries, lab_predict, lab_measure_times,
        lab_measure_gradients, lab_learn
    };
    bool good = lab_read(r) && make_plans(r) && open_times(r) && write_sizes(r);
    if (!good)
        return FAILED;
    for (size_t i = 0; i < sizeof experiment / sizeof *experiment && good && !lab_stops(r); i++)
        good = experiment[i](r);
    lab_end_progress();
    bool late = is_late(r);
    if (!write_results(r, command))
        return FAILED;
    if (good && interrupted)
        return say_error(FAILED, "lab: interrupted; %s has what was measured until then", r->asked.out);
    if (good && late)
        fprintf(stderr, "weft: lab: %g s are over; %s has what was measured until then\n", r->asked.seconds,
                r->asked.out);
    return good ? GOOD : FAILED;
}

/* ---- the command ---- */
/* A whole number in 1 .. most; 0, and the error was said. */
static int64_t number(const char *name, const char *text, int64_t most)
{
    char *end;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    if (end > text && !*end && !errno && n >= 1 && n <= most)
        return n;
    say_error(USAGE, "lab: %s is \"%.40s\"; a whole number in 1 .. %lld is expected", name, text,
              (long long)most);
    return 0;
}

/* 1: understood; 0: no such option; -1: wrong, which was said. */
static int read_option(lab_asked *a, int argc, char **argv, int *at)
{
    static const char *const names[] = { "--limit", "--hidden", "--update", "--threads", "--seconds" };
    static const int64_t most[] = { 1 << 30, 4096, 1 << 30, 1024, 1 << 20 };
    const char *value;
    int64_t got[5] = { 0 };
    if (!strcmp(argv[*at], "--quick"))
        return a->quick = true;
    if ((value = value_of("--corpus", argc, argv, at)))
        return a->corpus = value, 1;
    if ((value = value_of("--out", argc, argv, at)))
        return a->out = value, 1;
    if ((value = value_of("--planner", argc, argv, at))) {
        if (a->planners == MOST_PLANNERS)
            return say_error(USAGE, "lab: more than %d planners", MOST_PLANNERS), -1;
        return a->planner[a->planners++] = (char *)value, 1;
    }
    for (int k = 0; k < 5; k++)
        if ((value = value_of(names[k], argc, argv, at))) {
            if (!(got[k] = number(names[k], value, most[k])))
                return -1;
            a->limit = got[0] ? got[0] : a->limit, a->hidden = got[1] ? got[1] : a->hidden;
            a->update = got[2] ? got[2] : a->update, a->threads = got[3] ? (int)got[3] : a->threads;
            return a->seconds = got[4] ? (double)got[4] : a->seconds, 1;
        }
    return 0;
}

static bool is_complete(const lab_asked *a)
{
    const char *missing = !a->corpus   ? "--corpus NAME" :
                          !a->planners ? "--planner PLANNER" :
                                         "--out FILE.html";
    return (a->corpus && a->planners && a->out && *a->out) ||
           (say_error(USAGE, "lab: %s is missing; usage: weft lab %s", missing, subcommand_lab.usage), false);
}

static void choose(lab_asked *a)
{
    a->limit = a->limit ? a->limit : a->quick ? 600 : 3000;
    a->hidden = a->hidden ? a->hidden : a->quick ? 32 : 64;
    a->seconds = a->seconds > 0 ? a->seconds : a->quick ? 60 : 900;
    a->rounds = a->quick ? 3 : 5, a->epochs = a->quick ? 1 : 2;
}

static int run_lab(int argc, char **argv)
{
    lab_run r = { .asked = { .threads = 1 }, .started = lab_seconds() };
    for (int at = 0; at < argc; at++) {
        const char *option = argv[at];
        int understood = read_option(&r.asked, argc, argv, &at);
        if (understood <= 0)
            return understood ? USAGE :
                                say_error(USAGE, "lab: %.60s is not understood; usage: weft lab %s", option,
                                          subcommand_lab.usage);
    }
    if (!is_complete(&r.asked))
        return USAGE;
    choose(&r.asked);
    sigaction(SIGINT,
              &(struct sigaction){ .sa_handler = on_interrupt, .sa_flags = SA_RESETHAND | SA_RESTART }, NULL);
    char *command = command_line("weft lab", argc, argv);
    int status = command ? run_all(&r, command) : say_error(FAILED, "lab: no memory");
    free(command);
    free_run(&r);
    return status;
}

const subcommand subcommand_lab = {
    "lab",
    "--corpus NAME --planner PLANNER [--planner ..] --out FILE.html [--quick] [--limit=3000] [--hidden=64] "
    "[--update=TOKENS] [--threads=1] [--seconds=900]",
    "experiments on planners with a small language model: times, exactness, contamination, gradients,\n"
    "      hard instances, learning; a page of them, and FILE-times.jsonl",
    run_lab
};
