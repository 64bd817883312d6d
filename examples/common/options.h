/* options.h - one table of a program's options serves the command line, the help, the file and the log. */
#ifndef EXAMPLES_OPTIONS_H
#define EXAMPLES_OPTIONS_H
#include <stddef.h>
#include "weft.h"

/* The field of an option in the program's struct is an int64_t (WHOLE, and CHOICE: which one), double,
 * weft_device, const char * or bool. */
typedef enum { WHOLE, REAL, CHOICE, DEVICE, TEXT, FLAG } option_kind;
typedef struct {
    const char *name; option_kind kind; size_t at;
    double preset, least, most;
    const char *what;                            /* for the help */
    const char *const *choices;                  /* of CHOICE, ends with NULL */
} option;
/* Lines of a program's table, whose struct is called `options`, with the settings in its member `set`. */
#define SETTING(name, kind, field, preset, least, most, what)                     \
    {                                                                             \
        name, kind, offsetof(options, set.field), preset, least, most, what, NULL \
    }
#define OTHER(name, kind, field, preset, least, most)                         \
    {                                                                         \
        name, kind, offsetof(options, field), preset, least, most, NULL, NULL \
    }
/* The first `settings` of the n options make the model and its training: they are listed by the help,
 * saved and logged; none is TEXT, FLAG or DEVICE. */
enum { OPTIONS = 64 };                           /* n at most */
typedef struct { const char *usage; const option *all; int n, settings; } option_table;

/* The presets into the program's struct. */
void   options_preset(const option_table *t, void *o);
/* Reads the command line, sets given[i] of what stands there, returns where the other arguments begin;
 * --help and mistakes end the program. */
int    options_read(const option_table *t, void *o, bool *given, int argc, char **argv);
/* The settings as items of a file: t->settings of them. */
void   options_items(const option_table *t, void *o, weft_checkpoint_item *items);
/* The settings of the file `path` into o; those given on the command line must agree. */
void   options_of_file(const option_table *t, void *o, const bool *given, const char *path);
/* The settings as members of a line of the log. */
void   options_log(const option_table *t, void *o, weft_journal *log);
/* A folder that can be written to, or the end: better known before a training than after it. */
void   must_be_a_folder(const char *name, const char *path);
/* The command that goes on with a run: this one with --resume. */
void   print_resume(int argc, char **argv);
#endif
