/* options.c - reads, prints and stores options that a table describes; see options.h. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "options.h"
#include "program.h"

static void *field(const option *a, void *o) { return (char *)o + a->at; }

static void put(const option *a, void *o, double value)
{
    if (a->kind == REAL)
        *(double *)field(a, o) = value;
    else if (a->kind == WHOLE || a->kind == CHOICE)
        *(int64_t *)field(a, o) = (int64_t)value;
}

static double get(const option *a, void *o)
{
    return a->kind == REAL ? *(double *)field(a, o) : (double)*(int64_t *)field(a, o);
}

/* A setting's value as text, into out. */
static const char *text_of_value(const option *a, double value, char out[32])
{
    if (a->choices)
        return a->choices[(int)value];
    snprintf(out, 32, "%g", value);
    return out;
}

static double number(const option *a, const char *text)
{
    char *end;
    double value = strtod(text, &end);
    bool whole = a->kind == WHOLE;
    if (end == text || *end || !(value >= a->least && value <= a->most) || (whole && value != floor(value)))
        quit(2, "--%s: found \"%s\"; expected %s from %g to %g", a->name, text,
             whole ? "a whole number" : "a number", a->least, a->most);
    return value;
}

static int choice(const option *a, const char *text)
{
    for (int i = 0; a->choices[i]; i++)
        if (!strcmp(text, a->choices[i]))
            return i;
    quit(2, "--%s: found \"%s\"; expected %s", a->name, text, a->what);
}

static void set(const option *a, void *o, const char *text)
{
    switch (a->kind) {
    case WHOLE: case REAL: put(a, o, number(a, text)); break;
    case CHOICE: put(a, o, choice(a, text)); break;
    case DEVICE: *(weft_device *)field(a, o) = (weft_device)choice(a, text); break;
    case TEXT: *(const char **)field(a, o) = text; break;
    case FLAG: *(bool *)field(a, o) = true; break;
    }
}

/* ---- the command line ---- */
enum { FIRST = 1000, HELP = 'h' };

#define RUN(name, kind, field, preset, least, most, what) \
    { name, kind, offsetof(run_options, field), preset, least, most, what, NULL }
static const char *const devices[] = {
    [WEFT_BEST] = "best", [WEFT_CPU] = "cpu", [WEFT_REF] = "ref", [WEFT_CUDA] = "cuda", NULL
};
static const option of_every_run[] = {
    RUN("threads", WHOLE, threads, 0, 1, 1024, "threads on the CPU (all cores)"),
    RUN("every", WHOLE, every, 500, 1, 1e9, "updates between two checkpoints"),
    { "device", DEVICE, offsetof(run_options, device), 0, 0, 0, "cpu, cuda or best", devices },
    RUN("out", TEXT, out, 0, 0, 0, "checkpoint to write"),
    RUN("log", TEXT, log, 0, 0, 0, "log to write, lines of JSON"),
    RUN("pictures", TEXT, pictures, 0, 0, 0, "folder for pictures"),
    RUN("test", TEXT, test, 0, 0, 0, "checkpoint to test, without training"),
    RUN("resume", FLAG, resume, 0, 0, 0, "continue from --out if it exists"),
};
enum { OF_EVERY_RUN = sizeof of_every_run / sizeof *of_every_run };

static void print_options(const option *all, int n)
{
    static const char *const value[] = { "N", "X", "NAME", "NAME", "PATH", "" };     /* by kind */
    char text[32];
    for (const option *a = all; a < all + n; a++) {
        printf("  --%s %-*s %s", a->name, 19 - (int)strlen(a->name), value[a->kind], a->what);
        if (a->choices || (a->kind <= REAL && a->preset >= a->least))
            printf(" (%s)", text_of_value(a, a->preset, text));
        putchar('\n');
    }
}

_Noreturn static void help(const option_table *t, bool trains)
{
    if (!first_of_ranks())
        exit(0);
    printf("%s\noptions, with defaults in parentheses:\n", t->usage);
    print_options(t->all, t->n);
    print_options(of_every_run, trains ? OF_EVERY_RUN : 0);
    exit(0);
}

void options_preset(const option_table *t, void *o)
{
    for (const option *a = t->all; a < t->all + t->n; a++)
        put(a, o, a->preset);
}

/* A folder that cannot be written to is reported before a training, not after it. */
static void check_pictures(const char *folder)
{
    char inside[4096];
    snprintf(inside, sizeof inside, "%s/.", folder);
    if (access(inside, W_OK | X_OK))
        quit(1, "--pictures %s: %s", folder, strerror(errno));
}

int options_read(const option_table *t, void *o, run_options *run, int argc, char **argv)
{
    struct option all[OPTIONS + 2] = { 0 };
    const option *meant[OPTIONS];
    int n = t->n + (run ? OF_EVERY_RUN : 0);
    for (int i = 0; i < n; i++) {
        meant[i] = i < t->n ? &t->all[i] : &of_every_run[i - t->n];
        all[i] = (struct option){ meant[i]->name, meant[i]->kind != FLAG, NULL, FIRST + i };
    }
    all[n] = (struct option){ "help", 0, NULL, HELP };
    opterr = first_of_ranks();
    for (int i = 0; run && i < OF_EVERY_RUN; i++)
        put(&of_every_run[i], run, of_every_run[i].preset);
    for (int found; (found = getopt_long(argc, argv, "", all, NULL)) != -1; ) {
        if (found == HELP)
            help(t, run != NULL);
        if (found < FIRST)
            quit(2, "see %s --help", program);
        int i = found - FIRST;
        set(meant[i], i < t->n ? o : run, optarg);
        if (run)
            run->given[i] = true;
    }
    if (!run)
        return optind;
    if (run->pictures)
        check_pictures(run->pictures);
    run->argc = argc;
    run->argv = argv;
    return optind;
}

void print_resume(const run_options *run)
{
    bool resumes = false;
    printf("    ");
    for (int i = 0; i < run->argc; i++) {
        const char *word = run->argv[i];
        bool plain = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=,:+") ==
                     strlen(word);
        printf(plain ? "%s " : "'%s' ", word);
        resumes = resumes || !strcmp(word, "--resume");
    }
    puts(resumes ? "" : "--resume");
}

void options_items(const option_table *t, void *o, weft_checkpoint_item *items)
{
    for (int i = 0; i < t->settings; i++)
        items[i] = (weft_checkpoint_item){ t->all[i].name, t->all[i].kind == REAL ? WEFT_F64 : WEFT_I64,
                                           field(&t->all[i], o), 1 };
}

void options_of_file(const option_table *t, void *o, const bool *given, const char *path)
{
    double asked[OPTIONS];
    char text[2][32];
    weft_checkpoint_item items[OPTIONS];
    for (int i = 0; i < t->settings; i++)
        asked[i] = get(&t->all[i], o);
    options_items(t, o, items);
    check_file(weft_load(path, NULL, NULL, items, t->settings));
    for (int i = 0; i < t->settings; i++) {
        const option *a = &t->all[i];
        double value = get(a, o);
        if (!(value >= a->least && value <= a->most))
            quit(1, "%s: %s is %g; expected %g .. %g", path, a->name, value, a->least, a->most);
        if (given[i] && asked[i] != value)
            quit(2, "--%s: found %s; expected %s, as %s was begun", a->name,
                 text_of_value(a, asked[i], text[1]), text_of_value(a, value, text[0]), path);
    }
}

void options_log(const option_table *t, void *o, weft_journal *log)
{
    for (const option *a = t->all; a < t->all + t->settings; a++)
        if (a->kind == CHOICE)
            weft_journal_text(log, a->name, a->choices[*(int64_t *)field(a, o)]);
        else
            weft_journal_number(log, a->name, get(a, o));
}
