/* g2p_options.h - what the user of g2p can choose. The settings make the model and its training; they are saved with it. */
#ifndef G2P_OPTIONS_H
#define G2P_OPTIONS_H
#include "weft.h"

typedef struct {
    int64_t hidden, embed, layers, decoder_layers, batch, pool, epochs, warmup, seed, words;
    double  lr, dropout, smoothing, decay, clip, average;
} settings;
enum { SETTINGS = 16 };

typedef struct {
    settings    set;
    bool        given[SETTINGS];                 /* on the command line */
    const char *data, *out, *log, *pictures, *test, *say;
    char      **words;                           /* of --say */
    int         count;
    bool        resume;
    int64_t     threads, beam, every;
    weft_device device;
} options;

/* Reads the command line; --help and mistakes end the program. */
options command_line(int argc, char **argv);
/* The settings as items of a file. */
void    settings_items(settings *s, weft_item_of_user items[SETTINGS]);
/* The settings of the file `path` into o; those given on the command line must agree. */
void    settings_of_file(options *o, const char *path);
/* The settings as members of a line of the log. */
void    settings_log(const settings *s, weft_journal *log);
/* The command that goes on with a run: this one with --resume. */
void    print_resume(int argc, char **argv);
#endif
