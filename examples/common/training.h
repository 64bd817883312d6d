/* training.h - runs a training: updates, epochs, checkpoints, the log, and a progress bar. A program calls
 * the functions in the order of this header. */
#ifndef EXAMPLES_TRAINING_H
#define EXAMPLES_TRAINING_H
#include "weft_parallel.h"
#include "options.h"

enum { TRAINING_ITEMS = 96 };                    /* capacity of a checkpoint's list of items */

typedef struct {
    const option_table *table;
    void *options;                               /* the program's struct */
    const run_options *run;
    const training_settings *set;

    /* callbacks of the program: loss of a shard; after each update, before weft_clear, with the gradient's
     * norm; after each epoch, where true ends the training early */
    void *user;
    weft_loss (*loss_of)(void *user, const weft_part *shard);
    void (*after_update)(void *user, weft_tensor *norm);
    bool (*after_epoch)(void *user);

    weft *w;
    weft_module *all, *trained;                  /* all is saved, trained is updated */
    weft_ema *average;                           /* NULL: none */
    weft_optim *optim;
    weft_loader *loader;
    weft_parallel *parallel;
    weft_journal *log;
    const int32_t *tokens;                       /* of each sequence */
    int64_t total;                               /* updates of all epochs */
    bool first;                                  /* this rank prints and logs */

    /* stored in the checkpoint: epochs done; whether the training is over; sum and number of losses */
    int64_t epochs, over;
    double meter[2];
    weft_loader_state position;
    weft_checkpoint_item items[TRAINING_ITEMS];
    int item_count;

    /* the bar: the loss that it shows and its digits; times; updates and tokens of this process */
    double loss;
    int digits;
    double start, shown, waited;
    int64_t begin, seen;
} training;

/* Reads the settings of the checkpoint `out` into the program's struct and returns true, if --resume was
 * given and the file exists. */
bool training_settings_of_file(const option_table *t, void *options, const run_options *run);
/* Creates optimiser, loader and ranks for n sequences. The loader sorts them by `size` in pools of batches.
 * tokens is not copied. */
void training_data(training *t, int64_t n, const int32_t *size, const int32_t *tokens, int64_t pool);
/* Adds items to the checkpoint, after the settings. The program keeps their data. */
void training_keep(training *t, const weft_checkpoint_item *items, int n);
/* Loads the checkpoint. Prints a line if --resume found no file. */
void training_resume(training *t, bool resumes);
/* Opens the log and writes the settings as its first line. */
void training_open_log(training *t, bool resumes);
/* Trains all epochs. After a signal it saves, prints how to continue, and returns false. */
bool training_run(training *t);
/* Returns the program's exit status: 0, or that of the signal that stopped it. */
int  training_status(const training *t);

/* Prints a line instead of the bar, on the first rank. */
void training_print(const training *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds speed and time to a line of the log and ends it. */
void training_end_line(const training *t);
/* Return the seconds, and the updates per second, of this process. */
double training_seconds(const training *t);
double training_rate(const training *t);
#endif
