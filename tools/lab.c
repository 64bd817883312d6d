/* lab.c - `weft lab`: experiments on planners and a small language model; a page of what came out. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "tools/lab/run.h"

/* ---- the time, and the user who wants no more of it ---- */
static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
}

static bool is_late(const lab_run *r) { return seconds_now() - r->started > r->asked.seconds; }
bool lab_stops(const lab_run *r) { return interrupted || is_late(r); }

bool lab_refuse(const char *planner, weft *w)
{
    lab_end_progress();
    say_error(FAILED, "lab: %s: %s", planner, weft_error_message(w));
    return false;
}

lab_model_opts lab_model_of(const lab_run *r, uint64_t seed, double dropout)
{
    int64_t quarter = r->asked.hidden / 4;
    return (lab_model_opts){ .classes = r->classes,
                             .embedding = quarter > 32 ? quarter : 32,
                             .hidden = r->asked.hidden,
                             .dropout = dropout,
                             .lr = r->asked.lr,
                             .threads = (int)r->asked.threads,
                             .seed = seed };
}

static void free_run(lab_run *r)
{
    lab_free_plans(r);
    free(r->adversary), free(r->cost), free(r->curve), free(r->point);
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
    char device[64], date[32], words[256] = "";
    time_t now = time(NULL);
    struct tm day;
    int threads = (int)r->asked.threads;
    snprintf(device, sizeof device, "%d thread%s; LSTM of %lld", threads, threads == 1 ? "" : "s",
             (long long)r->asked.hidden);
    if (r->costs)
        snprintf(
            words, sizeof words,
            "A layer, %s, forwards and backwards on the first batches of each plan; predicted from steps of "
            "1, 2, 4 .. 128 rows.",
            r->layer.name);
    strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &day));
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
                .target = r->asked.target,
                .cost = r->cost,
                .costs = r->costs,
                .cost_words = words,
                .exact = r->exact,
                .contamination = r->contamination,
                .adversary = r->adversary,
                .exacts = r->exacts,
                .contaminations = r->contaminations,
                .adversaries = r->adversaries };
    return write_page(r->asked.out, &out);
}

static const struct {
    const char *name;
    bool (*run)(lab_run *);
} experiment[] = { { "layouts", lab_compare_layouts },
                   { "contamination", lab_contaminate },
                   { "adversaries", lab_ask_adversaries },
                   { "cost", lab_compare_costs },
                   { "times", lab_measure_times },
                   { "learning", lab_learn },
                   { "gradients", lab_measure_gradients } };
enum { EXPERIMENTS = sizeof experiment / sizeof *experiment };

/* "NAME,NAME"; false: the error was said. */
static bool choose_experiments(const char *names, unsigned *leave_out)
{
    *leave_out = ~0u;
    for (const char *at = names;; at++) {
        size_t n = strcspn(at, ",");
        int i = 0;
        while (i < EXPERIMENTS && (strlen(experiment[i].name) != n || strncmp(experiment[i].name, at, n)))
            i++;
        if (i == EXPERIMENTS)
            return say_error(USAGE,
                             "lab: --only: there is no experiment \"%.*s\"; layouts, contamination, "
                             "adversaries, cost, times, learning and gradients are there",
                             n < 40 ? (int)n : 40, at),
                   false;
        *leave_out &= ~(1u << i);
        if (!*(at += n))
            return true;
    }
}

/* What a program that makes plans for `--from` has to read. */
static int print_lengths(const lab_run *r)
{
    for (int64_t i = 0; i < r->train.n; i++)
        printf("%d\n", (int)r->train.len[i]);
    return fflush(stdout) || ferror(stdout) ? say_error(FAILED, "lab: stdout cannot be written") : GOOD;
}

static int run_all(lab_run *r, const char *command)
{
    bool good = lab_read(r);
    if (good && r->asked.lengths)
        return print_lengths(r);
    if (!good || !lab_make_plans(r) || !open_times(r) || !write_sizes(r))
        return FAILED;
    for (size_t i = 0; i < EXPERIMENTS && good && !lab_stops(r); i++)
        good = r->asked.leave_out >> i & 1 || experiment[i].run(r);
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

/* A number above 0, at most `most`; 0, and the error was said. */
static double real(const char *name, const char *text, double most)
{
    char *end;
    double x = strtod(text, &end);
    if (end > text && !*end && x > 0 && x <= most)
        return x;
    say_error(USAGE, "lab: %s is \"%.40s\"; a number above 0, at most %g, is expected", name, text, most);
    return 0;
}

/* 1: understood; 0: no such option; -1: wrong, which was said. */
static int read_number(lab_asked *a, int argc, char **argv, int *at)
{
    const struct {
        const char *name;
        int64_t *to, most;
    } whole[] = { { "--limit", &a->limit, 1 << 30 },   { "--hidden", &a->hidden, 4096 },
                  { "--update", &a->update, 1 << 30 }, { "--threads", &a->threads, 1024 },
                  { "--epochs", &a->epochs, 1 << 20 }, { "--rounds", &a->rounds, MOST_ROUNDS },
                  { "--seeds", &a->seeds, SEEDS } };
    const struct {
        const char *name;
        double *to, most;
    } reals[] = { { "--seconds", &a->seconds, 1 << 20 },
                  { "--target", &a->target, 64 },
                  { "--lr", &a->lr, 100 },
                  { "--dropout", &a->dropout, .99 } };
    const char *value;
    for (size_t k = 0; k < sizeof whole / sizeof *whole; k++)
        if ((value = value_of(whole[k].name, argc, argv, at)))
            return (*whole[k].to = number(whole[k].name, value, whole[k].most)) ? 1 : -1;
    for (size_t k = 0; k < sizeof reals / sizeof *reals; k++)
        if ((value = value_of(reals[k].name, argc, argv, at)))
            return (*reals[k].to = real(reals[k].name, value, reals[k].most)) > 0 ? 1 : -1;
    return 0;
}

static int read_option(lab_asked *a, int argc, char **argv, int *at)
{
    const char *value;
    if (!strcmp(argv[*at], "--quick"))
        return a->quick = true;
    if (!strcmp(argv[*at], "--lengths"))
        return a->lengths = true;
    if ((value = value_of("--corpus", argc, argv, at)))
        return a->corpus = value, 1;
    if ((value = value_of("--from", argc, argv, at)) && *value && !a->from)
        return a->from = value, 1;
    if ((value = value_of("--only", argc, argv, at)))
        return choose_experiments(value, &a->leave_out) ? 1 : -1;
    if ((value = value_of("--out", argc, argv, at)))
        return a->out = value, 1;
    for (int padded = 0; padded < 2; padded++)
        if ((value = value_of(padded ? "--padded" : "--planner", argc, argv, at))) {
            if (a->planners == MOST_PLANNERS)
                return say_error(USAGE, "lab: more than %d planners", MOST_PLANNERS), -1;
            a->padded[a->planners] = padded;
            return a->planner[a->planners++] = (char *)value, 1;
        }
    return read_number(a, argc, argv, at);
}

static bool is_complete(const lab_asked *a)
{
    bool plans = a->planners || a->from, out = a->out && *a->out;
    const char *missing = !a->corpus ? "--corpus NAME" :
                          !plans     ? "--planner PLANNER" :
                                       "--out FILE.html";
    return (a->corpus && (a->lengths || (plans && out))) ||
           (say_error(USAGE, "lab: %s is missing; usage: weft lab %s", missing, subcommand_lab.usage), false);
}

static void choose(lab_asked *a)
{
    a->limit = a->limit ? a->limit : a->quick ? 600 : 3000;
    a->hidden = a->hidden ? a->hidden : a->quick ? 32 : 64;
    a->seconds = a->seconds > 0 ? a->seconds : a->quick ? 60 : 900;
    a->rounds = a->rounds ? a->rounds : a->quick ? 3 : 5;
    a->epochs = a->epochs ? a->epochs : a->quick ? 1 : 2;
    a->seeds = a->seeds ? a->seeds : SEEDS, a->threads = a->threads ? a->threads : 1;
    a->lr = a->lr > 0 ? a->lr : 5e-3, a->dropout = a->dropout > 0 ? a->dropout : .1;
}

static int run_lab(int argc, char **argv)
{
    lab_run r = { .started = seconds_now() };
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
    "--corpus NAME --planner PLANNER [--planner ..] [--padded PLANNER] [--from FILE.jsonl] [--lengths] "
    "--out FILE.html [--quick] "
    "[--limit=3000] [--hidden=64] [--update=TOKENS] [--threads=1] [--seconds=900] [--rounds=5] [--epochs=2] "
    "[--seeds=3] [--lr=.005] [--dropout=.1] [--target=BITS] [--only=EXPERIMENT,..]",
    "experiments on planners with a small language model: times, exactness, contamination, gradients,\n"
    "      hard instances, learning; a page of them, and FILE-times.jsonl. --from adds plans of a file,\n"
    "      which another program has made of the lengths that --lengths prints",
    run_lab
};
