/* g2p_options.c - one table of settings serves the command line, the help, the file and the log. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "g2p_data.h"
#include "g2p_options.h"

/* ---- the table ---- */
typedef struct { const char *name; size_t at; bool real; double preset, least, most; const char *what; } setting;
#define WHOLE(name, field, preset, least, most, what) { name, offsetof(settings, field), false, preset, least, most, what }
#define REAL(name, field, preset, least, most, what)  { name, offsetof(settings, field), true, preset, least, most, what }
static const setting table[] = {
    WHOLE("hidden", hidden, 128, 1, 4096, "units of each recurrent layer, in each direction"),
    WHOLE("embed", embed, 32, 1, 4096, "width of the vectors of letters and phones"),
    WHOLE("layers", layers, 2, 1, 8, "layers of the encoder"),
    WHOLE("decoder-layers", decoder_layers, 1, 1, 8, "layers of the decoder"),
    WHOLE("batch", batch, 32, 1, 65536, "words an update"),
    WHOLE("pool", pool, 50, 1, 1e6, "batches that are sorted by length together"),
    WHOLE("epochs", epochs, 8, 0, 1e6, "passes over the training words"),
    WHOLE("warmup", warmup, 300, 0, 1e9, "updates until the full learning rate"),
    WHOLE("seed", seed, 1, 0, 9e15, "of every random number"),
    WHOLE("words", words, 0, 0, 1e9, "take about so many words of the dictionary, 0: all"),
    REAL("lr", lr, 2.5e-3, 0, 10, "learning rate, after warm-up; a cosine leads to 0"),
    REAL("dropout", dropout, 0.1, 0, 0.95, "share of the units that are left out"),
    REAL("smoothing", smoothing, 0.05, 0, 0.95, "of the labels"),
    REAL("decay", decay, 0, 0, 10, "of the weights (AdamW)"),
    REAL("clip", clip, 2, 1e-9, 1e9, "the gradient's norm at most"),
    REAL("average", average, 0.9995, 0, 0.999999, "of the weights, decay an update; used to judge and to say; 0: none"),
};
_Static_assert(sizeof table / sizeof *table == SETTINGS, "a line of the table for each setting");

static int64_t *whole(settings *s, const setting *t) { return (int64_t *)(void *)((char *)s + t->at); }
static double *real(settings *s, const setting *t) { return (double *)(void *)((char *)s + t->at); }

static void help(void)
{
    printf("g2p --data DICT [--out FILE] [--resume] [--log FILE] [--pictures FOLDER] [--every UPDATES] [settings]\n"
           "g2p --test FILE [--data DICT] [--beam K]\n"
           "g2p --say FILE [--beam K] WORD...\n"
           "with [--threads N] [--device cpu|cuda|best], and in training these settings:\n\n");
    for (const setting *t = table; t < table + SETTINGS; t++)
        printf("  --%-16s %-8g %s\n", t->name, t->preset, t->what);
    exit(0);
}

static double number(const char *name, const char *text, bool whole_one, double least, double most)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= least && value <= most) || (whole_one && value != floor(value)))
        quit(2, "--%s: %s from %g to %g was expected, not \"%s\"", name, whole_one ? "a whole number" : "a number",
             least, most, text);
    return value;
}

static void set(options *o, int i, const char *text)
{
    double value = number(table[i].name, text, !table[i].real, table[i].least, table[i].most);
    if (table[i].real)
        *real(&o->set, &table[i]) = value;
    else
        *whole(&o->set, &table[i]) = (int64_t)value;
    o->given[i] = true;
}

static weft_device device(const char *name)
{
    static const char *const names[] = { [WEFT_BEST] = "best", [WEFT_CPU] = "cpu", [WEFT_REF] = "ref", [WEFT_CUDA] = "cuda" };
    for (int i = 0; i < 4; i++)
        if (!strcmp(name, names[i]))
            return (weft_device)i;
    quit(2, "--device: cpu, cuda or best was expected, not \"%s\"", name);
}

static const struct option others[] = {
    { "data", 1, NULL, 'd' },    { "out", 1, NULL, 'o' },  { "log", 1, NULL, 'l' },   { "pictures", 1, NULL, 'p' },
    { "test", 1, NULL, 't' },    { "say", 1, NULL, 's' },  { "beam", 1, NULL, 'k' },  { "threads", 1, NULL, 'j' },
    { "device", 1, NULL, 'v' },  { "every", 1, NULL, 'e' }, { "resume", 0, NULL, 'r' }, { "help", 0, NULL, 'h' },
};
enum { OTHERS = sizeof others / sizeof *others, FIRST = 1000 };

static void choose(options *o, int option)
{
    switch (option) {
    case 'd': o->data = optarg; break;
    case 'o': o->out = optarg; break;
    case 'l': o->log = optarg; break;
    case 'p': o->pictures = optarg; break;
    case 't': o->test = optarg; break;
    case 's': o->say = optarg; break;
    case 'j': o->threads = (int64_t)number("threads", optarg, true, 1, 1024); break;
    case 'k': o->beam = (int64_t)number("beam", optarg, true, 1, 100); break;
    case 'e': o->every = (int64_t)number("every", optarg, true, 1, 1e9); break;
    case 'v': o->device = device(optarg); break;
    case 'r': o->resume = true; break;
    case 'h': help(); break;
    case '?': quit(2, "`g2p --help` lists the options");
    default: set(o, option - FIRST, optarg);
    }
}

static void must_be_a_folder(const char *path)   /* where pictures can be written: better known before the training */
{
    char inside[4096];
    snprintf(inside, sizeof inside, "%s/.", path);
    if (access(inside, W_OK | X_OK))
        quit(1, "--pictures %s: %s", path, strerror(errno));
}

options command_line(int argc, char **argv)
{
    options o = { .beam = 1, .every = 500, .out = "g2p.h5" };
    struct option all[SETTINGS + OTHERS + 1] = { 0 };
    for (int i = 0; i < SETTINGS; i++) {
        all[i] = (struct option){ table[i].name, 1, NULL, FIRST + i };
        if (table[i].real)
            *real(&o.set, &table[i]) = table[i].preset;
        else
            *whole(&o.set, &table[i]) = (int64_t)table[i].preset;
    }
    memcpy(all + SETTINGS, others, sizeof others);
    for (int option; (option = getopt_long(argc, argv, "", all, NULL)) != -1; )
        choose(&o, option);
    o.words = argv + optind;
    o.count = argc - optind;
    if (o.count && !o.say)
        quit(2, "\"%s\" is not an option; `g2p --help` lists them", o.words[0]);
    if (!o.data && !o.test && !o.say)
        quit(2, "--data DICT, --test FILE or --say FILE is wanted; `g2p --help` says more");
    if ((o.test != NULL) + (o.say != NULL) > 1 || (o.resume && !o.data))
        quit(2, "--test, --say and --data with --resume are three different things to do");
    if (o.pictures)
        must_be_a_folder(o.pictures);
    if (o.say && !o.count)
        quit(2, "--say FILE: which words?");
    return o;
}

/* ---- in a file, in a log ---- */
void settings_items(settings *s, weft_item_of_user items[SETTINGS])
{
    for (int i = 0; i < SETTINGS; i++)
        items[i] = (weft_item_of_user){ table[i].name, table[i].real ? WEFT_F64 : WEFT_I64, (char *)s + table[i].at, 1 };
}

static double value(settings s, int i) { return table[i].real ? *real(&s, &table[i]) : (double)*whole(&s, &table[i]); }

void settings_of_file(options *o, const char *path)
{
    settings asked = o->set;
    weft_item_of_user items[SETTINGS];
    settings_items(&o->set, items);
    if (weft_load_items(path, items, SETTINGS) != WEFT_OK)
        quit(1, "%s", weft_file_message());
    for (int i = 0; i < SETTINGS; i++)
        if (o->given[i] && value(asked, i) != value(o->set, i))
            quit(2, "%s was begun with --%s %g, not %g; leave that out", path, table[i].name, value(o->set, i), value(asked, i));
}

void settings_log(const settings *s, weft_journal *log)
{
    for (int i = 0; i < SETTINGS; i++)
        weft_journal_number(log, table[i].name, value(*s, i));
}

void print_resume(int argc, char **argv)
{
    bool resumes = false;
    printf("    ");
    for (int i = 0; i < argc; i++) {
        bool plain = strspn(argv[i], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=,:+") == strlen(argv[i]);
        printf(plain ? "%s " : "'%s' ", argv[i]);
        resumes = resumes || !strcmp(argv[i], "--resume");
    }
    puts(resumes ? "" : "--resume");
}
