/* options.h - describes options in a table, for the command line, the help, checkpoints and the log. */
#ifndef EXAMPLES_OPTIONS_H
#define EXAMPLES_OPTIONS_H
#include <stddef.h>
#include "weft_lab.h"

/* Types of the option's field in the program's struct, in order: int64_t, double, int64_t (the index of the
 * choice), weft_device, const char *, bool. */
typedef enum { WHOLE, REAL, CHOICE, DEVICE, TEXT, FLAG } option_kind;
typedef struct {
    const char *name;
    option_kind kind;
    size_t at;
    double preset, least, most;
    const char *what;                            /* text of the help; CHOICE and DEVICE: the list of names */
    const char *const *choices;                  /* names of CHOICE and DEVICE, ends with NULL */
} option;
/* Lines of a program's table. Its struct is called `options` and has the settings in its member `set`. */
#define SETTING(name, kind, field, preset, least, most, what) \
    { name, kind, offsetof(options, set.field), preset, least, most, what, NULL }
#define OTHER(name, kind, field, preset, least, most, what) \
    { name, kind, offsetof(options, field), preset, least, most, what, NULL }
/* usage: begins the help. The first `settings` of the n options define the model and its training. They are
 * saved and logged, and none of them is TEXT, FLAG or DEVICE. */
enum { OPTIONS = 64 };                           /* capacity */
typedef struct {
    const char *usage;
    const option *all;
    int n, settings;
} option_table;

/* Settings of every training. */
typedef struct {
    int64_t batch, shards, epochs, warmup, seed;
    double lr, decay, clip, average;
} training_settings;
/* Options of every training program. They are not saved. options_read adds them to the program's table. */
typedef struct {
    const char *out, *log, *pictures, *test;
    int64_t threads, every;
    weft_device device;
    bool resume;
    bool given[OPTIONS];                         /* options that were on the command line */
    int argc;
    char **argv;
} run_options;

/* Writes the presets into the program's struct. */
void   options_preset(const option_table *t, void *o);
/* Reads the command line and returns the index of the first argument that is not an option. --help and
 * mistakes end the program. run: receives the options of every training; NULL: the program does not train. */
int    options_read(const option_table *t, void *o, run_options *run, int argc, char **argv);
/* Writes the settings as items of a checkpoint: t->settings of them. */
void   options_items(const option_table *t, void *o, weft_checkpoint_item *items);
/* Reads the settings of the checkpoint `path` into o. Those given on the command line must agree. */
void   options_of_file(const option_table *t, void *o, const bool *given, const char *path);
/* Writes the settings as members of a line of the log. */
void   options_log(const option_table *t, void *o, weft_journal *log);
/* Prints the command that continues a run: this one with --resume. */
void   print_resume(const run_options *run);
#endif
