/* run.h - what the files of `weft lab` share: what was asked for, the data, what has been measured. */
#ifndef WEFT_TOOLS_LAB_RUN_H
#define WEFT_TOOLS_LAB_RUN_H
#include "tools/lab/lab.h"
#include "tools/lab/model.h"
#include "tools/plan/cost.h"

enum { MOST_PLANNERS = 64, SEEDS = 3, POINTS = 40, MOST_ROUNDS = 64 };

/* padded: this planner's batches run padded. limit: at most so many sequences; update: tokens of an update,
 * 0: chosen; target: bits a token at which learning ends, 0: it goes on. from: a file of plans or NULL;
 * lengths: only those of the sequences are asked for. */
typedef struct {
    const char *corpus, *out, *from;
    bool lengths;
    char *planner[MOST_PLANNERS];
    bool padded[MOST_PLANNERS];
    int planners;
    int64_t threads, rounds, epochs, seeds, limit, hidden, update;
    double seconds, target, lr, dropout;
    bool quick, calibrate;
    unsigned leave_out;                         /* a bit for each experiment, in their order */
} lab_asked;

/* Each sequence ends with a token of its own, so that a model learns where to end. held: sequences that no
 * model learns from. few: some of those it learns from, for what is done often; few_of [few.n]: which.
 * label [planners]: of those that run padded, else NULL. made [planners] of all, of_few [planners] of those.
 * page: the results. */
typedef struct {
    lab_asked asked;
    weft_dataset train, held, few;
    int64_t *few_of;
    int64_t classes;
    planned *made, *of_few;
    char *label[MOST_PLANNERS], no_curve[MOST_PLANNERS][120];
    lab page;
    layer_cost layer;
    lab_curve (*curve)[SEEDS];
    lab_point (*point)[SEEDS][POINTS + 1];
    weft_journal *times;
    double started;
} lab_run;

/* lab.c: whether to stop, because the user or the time says so; asked between two batches. */
bool lab_stops(const lab_run *);
/* progress.c, on a terminal: what is being done from now on; how much of it is done, 0 .. 1. */
void lab_progress(const lab_run *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void lab_progress_at(const lab_run *, double share);
/* Before anything else is said. */
void lab_end_progress(void);
/* times.c: writes a line of the file of single measurements: the experiment, a planner, and numbers. */
typedef struct {
    const char *name;
    double value;
} lab_number;
void lab_note(const lab_run *, const char *experiment, const char *planner, const lab_number *, int n);
#define NOTE(r, experiment, planner, ...)                                 \
    lab_note(r, experiment, planner, (const lab_number[]){ __VA_ARGS__ }, \
             (int)(sizeof((const lab_number[]){ __VA_ARGS__ }) / sizeof(lab_number)))
/* The error of a model; false. */
bool lab_refuse(const char *planner, weft *w);
lab_model_opts lab_model_of(const lab_run *, uint64_t seed, double dropout);

/* data.c: the corpus without its repetitions, every twentieth of it held out. False: the error was
 * said. */
bool lab_read(lab_run *);
void lab_free_data(lab_run *);
/* plans.c: made and of_few, by the planners and from the file, and what is known of each plan without
 * running anything. False: the error was said. */
bool lab_make_plans(lab_run *);
void lab_free_plans(lab_run *);

/* The experiments; each leaves what it could measure before the time was over. False: an error, which was
 * said. */
bool lab_measure_times(lab_run *);
bool lab_compare_layouts(lab_run *);
bool lab_contaminate(lab_run *);
bool lab_measure_gradients(lab_run *);
bool lab_learn(lab_run *);
bool lab_ask_adversaries(lab_run *);
bool lab_compare_costs(lab_run *);

/* probe.c: an LSTM of random weights on rows of reals; what comes of each token of each sequence of a
 * plan, [tokens, PROBE_WIDTH], sequence by sequence. planner: for the error. */
enum { PROBE_COLUMNS = 8, PROBE_WIDTH = 16 };
typedef enum { PROBE_PLAN, PROBE_PADDED } probe_layout;
bool lab_probe(const char *planner, const weft_plan *, const weft_dataset *, probe_layout, weft_real *out);
/* Rows of normal numbers for sequences of these lengths; to be freed by corpus_free. */
bool lab_probe_data(const weft_dataset *of, weft_dataset *out);
#endif
