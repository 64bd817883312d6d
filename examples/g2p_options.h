/* g2p_options.h - what the user of g2p can choose. The settings make the model and its training; they are
 * saved with it. */
#ifndef G2P_OPTIONS_H
#define G2P_OPTIONS_H
#include "common/options.h"

typedef struct {
    int64_t hidden, embed, layers, decoder_layers, batch, shards, pool, epochs, warmup, seed, words;
    double  lr, dropout, smoothing, decay, clip, average;
} settings;
enum { SETTINGS = 17 };

typedef struct {
    settings    set;
    bool        given[OPTIONS];                  /* on the command line */
    const char *data, *out, *log, *pictures, *test, *say, *said;
    char      **words;                           /* of --say */
    int         count;
    bool        resume;
    int64_t     threads, beam, every;
    weft_device device;
} options;

extern const option_table g2p_table;
/* Reads the command line; --help and mistakes end the program. */
options command_line(int argc, char **argv);
#endif
