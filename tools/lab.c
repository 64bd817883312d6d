/* lab.c - `weft lab`: runs experiments on planners with a small language model, and writes a page. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "tools/lab/run.h"
#include "tools/options.h"

/* ---- time limit and interruption ---- */
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
    return say_failure("lab: %s: %s", planner, weft_error_message(w));
}

static void free_run(lab_run *r)
{
    lab_free_plans(r);
    free(r->page.adversary);
    free(r->page.cost);
    free(r->curve);
    free(r->point);
    weft_journal_close(r->times);
    for (int i = 0; i < LAB_SECTIONS; i++)
        json_decref(r->notes[i]);
    lab_free_data(r);
}

/* ---- output ---- */
/* Writes the path of a file next to the page, and returns it. */
static const char *next_to_page(const lab_run *r, const char *ending, char path[4096])
{
    size_t n = strlen(r->asked.out), stem = n > 5 && !strcmp(r->asked.out + n - 5, ".html") ? n - 5 : n;
    snprintf(path, 4096, "%.*s%s", stem < 4000 ? (int)stem : 4000, r->asked.out, ending);
    return path;
}

/* Opens the file of single measurements, and writes the sizes of the data. */
static bool open_times(lab_run *r)
{
    char path[4096];
    if (r->asked.out &&
        weft_journal_open(next_to_page(r, "-times.jsonl", path), false, &r->times) != WEFT_OK)
        return say_failure("lab: %s", weft_file_message());
    weft_journal_text(r->times, "experiment", "data");
    weft_journal_number(r->times, "sequences", (double)r->train.n);
    weft_journal_number(r->times, "tokens", (double)r->train.offset[r->train.n]);
    weft_journal_number(r->times, "held_out_sequences", (double)r->held.n);
    weft_journal_number(r->times, "held_out_tokens", (double)r->held.offset[r->held.n]);
    weft_journal_line_end(r->times);
    return true;
}

/* Says how busy the machine was while times were taken. Returns NULL if none were. */
static const char *describe_load(const lab_run *r, char *text, size_t size)
{
    double load, spread = 0;
    if (r->wall <= 0)
        return NULL;
    for (int i = 0; i < r->asked.planners; i++) {
        const lab_plan *p = r->page.plan + i;
        if (p->median_ms > 0)
            spread = fmax(spread, (p->p90_ms - p->p10_ms) / p->median_ms);
    }
    int n = snprintf(text, size,
                     "CPU time was %.0f %% of the wall time of the timed passes, of %d thread%s; the widest "
                     "range of a plan is %.0f %% of its median",
                     100 * r->cpu / r->wall, (int)r->asked.threads, r->asked.threads == 1 ? "" : "s",
                     100 * spread);
    if (getloadavg(&load, 1) == 1 && n > 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n, "; load %.1f", load);
    return text;
}

/* Writes the page, the record and the report. Returns the record, or NULL after a printed error. */
static json_t *write_results(lab_run *r, const char *command)
{
    char device[64], date[32], over[64], busy[200], names[200], left_out[240];
    int threads = (int)r->asked.threads;
    lab *page = &r->page;
    snprintf(over, sizeof over, "the limit of %g s was over; --seconds extends it", r->asked.seconds);
    snprintf(left_out, sizeof left_out, "--only left out %s", lab_experiments(~r->asked.leave_out, names));
    snprintf(device, sizeof device, "%d thread%s; LSTM of %lld", threads, threads == 1 ? "" : "s",
             (long long)r->asked.hidden);
    page->corpus = r->asked.corpus;
    page->n = r->train.n;
    page->len = r->train.len;
    page->plans = r->asked.planners;
    page->command = command;
    page->device = device;
    date_now(DATE, date);
    page->date = date;
    page->target = r->asked.target;
    page->stopped = interrupted        ? "the experiments were interrupted" :
                    is_late(r)         ? over :
                    r->asked.leave_out ? left_out :
                                         NULL;
    page->layer = page->costs ? &r->layer : NULL;
    page->busy = describe_load(r, busy, sizeof busy);
    json_t *record = lab_make_record(r, command);
    if ((!r->asked.out || write_page(r->asked.out, page)) &&
        (!r->asked.record || lab_write_record(r->asked.record, record)) &&
        (!r->asked.report || write_paper(r->asked.report, page, record, r->asked.record)))
        return record;
    json_decref(record);
    return NULL;
}

static const struct {
    const char *name;
    lab_experiment *run;
} experiment[] = { { "layouts", lab_compare_layouts },     { "contamination", lab_contaminate },
                   { "adversaries", lab_ask_adversaries }, { "cost", lab_compare_costs },
                   { "times", lab_measure_times },         { "learning", lab_learn },
                   { "gradients", lab_measure_gradients } };
enum { EXPERIMENTS = sizeof experiment / sizeof *experiment };

const char *lab_experiments(unsigned leave_out, char text[200])
{
    int n = 0;
    for (int i = 0; i < EXPERIMENTS; i++)
        if (!(leave_out >> i & 1))
            n += snprintf(text + n, 200 - (size_t)n, "%s%s", n ? "," : "", experiment[i].name);
    return text;
}

/* Reads "NAME,NAME". Returns false after a printed error. */
static bool choose_experiments(void *to, const char *names)
{
    lab_asked *a = to;
    a->leave_out = (1u << EXPERIMENTS) - 1;
    for (const char *p = names;; p++) {
        size_t n = strcspn(p, ",");
        int i = 0;
        while (i < EXPERIMENTS && (strlen(experiment[i].name) != n || strncmp(experiment[i].name, p, n)))
            i++;
        if (i == EXPERIMENTS)
            return usage_failure(&subcommand_lab,
                                 "--only: found \"%.*s\"; expected layouts, contamination, adversaries, "
                                 "cost, times, learning or gradients",
                                 n < 40 ? (int)n : 40, p);
        a->leave_out &= ~(1u << i);
        if (!*(p += n))
            return true;
    }
}

/* was: the record to repeat, or NULL. */
static int run_all(lab_run *r, const char *command, const json_t *was, bool sealed)
{
    bool ok = lab_read(r) && (!was || lab_same_corpus(r, r->asked.repeat, was));
    if (ok && r->asked.lengths) { /* another program can plan them for `--from` */
        for (int64_t i = 0; i < r->train.n; i++)
            printf("%d\n", (int)r->train.len[i]);
        return finish_output("lab", GOOD);
    }
    if (!ok || !lab_make_plans(r) || !open_times(r))
        return FAILED;
    for (size_t i = 0; i < EXPERIMENTS && ok && !lab_stops(r); i++)
        ok = r->asked.leave_out >> i & 1 || experiment[i].run(r);
    lab_end_progress();
    bool late = is_late(r);
    json_auto_t *now = write_results(r, command);
    const char *out = r->asked.out ? r->asked.out : "the comparison";
    if (!now)
        return FAILED;
    int status = was && ok ? lab_compare_records(was, now, sealed) : ok ? GOOD : FAILED;
    if (ok && interrupted)
        return say_error(FAILED, "lab: interrupted; %s has the measurements so far", out);
    if (ok && late)
        fprintf(stderr, "weft: lab: the time limit of %g s is over; %s has the measurements so far\n",
                r->asked.seconds, out);
    return status;
}

static bool add(void *to, const char *planner, bool padded)
{
    lab_asked *a = to;
    if (a->planners == MOST_PLANNERS)
        return usage_failure(&subcommand_lab, "--planner: found more than %d; expected at most that many",
                             MOST_PLANNERS);
    a->padded[a->planners] = padded;
    a->planner[a->planners++] = (char *)planner;
    return true;
}
static bool add_planner(void *to, const char *value) { return add(to, value, false); }
static bool add_padded(void *to, const char *value) { return add(to, value, true); }

#define AT(f) offsetof(lab_asked, f)
static const option options[] = {
    IS_FLAG("--calibrate", AT(calibrate), "measure the layer's costs again and renew the cache"),
    IS_TEXT("--corpus", "NAME", AT(corpus), "corpus; see weft corpora"),
    IS_REAL("--dropout", "P", AT(dropout), .99, "dropout after the LSTM while learning (.1)"),
    IS_WHOLE("--epochs", AT(epochs), 1 << 20, "passes over all sequences while learning (2; quick 1)"),
    IS_TEXT_ONCE("--from", "FILE.jsonl", AT(from),
                 "add plans from a file, one a line, for the lengths of --lengths"),
    IS_WHOLE("--hidden", AT(hidden), 4096, "units of the LSTM (64; quick 32)"),
    IS_FLAG("--lengths", AT(lengths), "only print the lengths of the training sequences"),
    IS_WHOLE("--limit", AT(limit), 1 << 30, "largest number of different sequences (3000; quick 600)"),
    IS_REAL("--lr", "RATE", AT(lr), 100, "learning rate after warm-up; a tenth at the end (.005)"),
    IS_OWN("--only", "NAME,..", choose_experiments,
           "only these experiments: layouts, contamination, adversaries,\n"
           "cost, times, learning, gradients (all)"),
    IS_OUTPUT("--out", ".html", AT(out), "page to write; every measurement goes to FILE-times.jsonl"),
    IS_OWN("--padded", "PLANNER", add_padded, "planner whose batches run padded; may be repeated"),
    IS_OWN("--planner", "PLANNER", add_planner, "planner to compare; may be repeated"),
    IS_FLAG("--quick", AT(quick), "600 sequences, an LSTM of 32, at most a minute"),
    IS_OUTPUT("--record", ".json", AT(record), "record to write, for --repeat (FILE-record.json of --out)"),
    IS_TEXT("--repeat", "FILE.json", AT(repeat), "repeat a record and print the numbers that differ"),
    IS_OUTPUT("--report", ".md", AT(report), "write a short report with figures, in Markdown"),
    IS_WHOLE("--rounds", AT(rounds), MOST_ROUNDS, "timed passes of each plan (5; quick 3)"),
    IS_REAL("--seconds", "S", AT(seconds), 1 << 20, "time limit of all experiments (900; quick 60)"),
    IS_WHOLE("--seeds", AT(seeds), SEEDS, "models with different initial weights for learning (3)"),
    IS_REAL("--target", "BITS", AT(target), 64, "learning stops at this number of bits per token (never)"),
    IS_WHOLE("--threads", AT(threads), 1024, "threads of the model (1)"),
    IS_WHOLE("--update", AT(update), 1 << 30,
             "tokens per update while learning (1024, or the largest capacity)"),
    { 0 }
};

static bool is_complete(const lab_asked *a)
{
    bool plans = a->planners || a->from, out = a->out && *a->out;
    const char *missing = !a->corpus ? "--corpus NAME" : !plans ? "--planner PLANNER" : "--out FILE.html";
    return (a->corpus && (a->lengths || (plans && (out || a->repeat)))) ||
           usage_failure(&subcommand_lab, "found no %s; expected one", missing);
}

static void choose(lab_asked *a)
{
    a->limit = a->limit ? a->limit : a->quick ? 600 : 3000;
    a->hidden = a->hidden ? a->hidden : a->quick ? 32 : 64;
    a->seconds = a->seconds > 0 ? a->seconds : a->quick ? 60 : 900;
    a->rounds = a->rounds ? a->rounds : a->quick ? 3 : 5;
    a->epochs = a->epochs ? a->epochs : a->quick ? 1 : 2;
    a->seeds = a->seeds ? a->seeds : SEEDS;
    a->threads = a->threads ? a->threads : 1;
    a->lr = a->lr > 0 ? a->lr : 5e-3;
    a->dropout = a->dropout > 0 ? a->dropout : .1;
}

/* Reads the record to repeat, and its options. Returns an exit status. */
static int take_record(lab_asked *a, json_t **record, bool *sealed)
{
    struct stat old, new;
    if (a->planners || a->leave_out || a->quick || a->lengths)
        return usage_error(&subcommand_lab,
                           "--repeat: found --planner, --padded, --only, --quick or --lengths; "
                           "expected none, because the record has them");
    *record = lab_read_record(a->repeat, sealed);
    if (!*record || !lab_take_record(a, a->repeat, *record))
        return FAILED;
    if (a->record && !stat(a->repeat, &old) && !stat(a->record, &new) && old.st_ino == new.st_ino &&
        old.st_dev == new.st_dev)
        return usage_error(&subcommand_lab,
                           "--repeat: found the record %s as a file to write; expected "
                           "another --record or --out",
                           a->repeat);
    return GOOD;
}

static int run_lab(int argc, char **argv)
{
    lab_run r = { .started = seconds_now(), .notes = { json_array(), json_array(), json_array() } };
    json_auto_t *was = NULL;
    bool sealed = true;
    char path[4096], *command SCOPED = command_line("weft lab", argc, argv);
    int status = read_options(&subcommand_lab, &r.asked, &argc, argv);
    if (!status && argc)
        status = usage_error(&subcommand_lab,
                             "found \"%.60s\"; expected options only; give planners with --planner", argv[0]);
    if (!status && r.asked.out && !r.asked.record)
        r.asked.record = next_to_page(&r, "-record.json", path);
    if (!status && r.asked.repeat)
        status = take_record(&r.asked, &was, &sealed);
    if (!status &&
        (!is_complete(&r.asked) || !are_planners(&subcommand_lab, r.asked.planner, r.asked.planners)))
        status = USAGE;
    if (!status) {
        choose(&r.asked);
        sigaction(SIGINT,
                  &(struct sigaction){ .sa_handler = on_interrupt, .sa_flags = SA_RESETHAND | SA_RESTART },
                  NULL);
        status = run_all(&r, command, was, sealed);
    }
    free_run(&r);
    return status;
}

const subcommand subcommand_lab = {
    .name = "lab",
    .about = "runs experiments on planners with a small language model and writes a page",
    .usage = "--corpus NAME --planner PLANNER.. --out FILE.html [OPTION].. | --repeat FILE.json",
    .details = "Measures times, exactness, contamination, gradients, hard instances and learning for each "
               "planner.\n"
               "Writes a page, FILE-times.jsonl with every measurement, and FILE-record.json, which\n"
               "--repeat repeats.\n",
    .options = options,
    .run = run_lab
};
