/* run.h - the state that the files of `weft lab` share: options, data, results.
 *
 * Unless a comment differs, a function that returns false or NULL has printed the error. */
#ifndef WEFT_TOOLS_LAB_RUN_H
#define WEFT_TOOLS_LAB_RUN_H
#include "tools/lab/lab.h"
#include "tools/plan/cost.h"

enum { MOST_PLANNERS = 64, SEEDS = 3, POINTS = 40, MOST_ROUNDS = 64 };

/* The options. padded: batches of this planner run padded. limit: maximal number of sequences. update: tokens
 * of an update; 0: chosen. target: bits a token that end the learning; 0: none. from: a file of plans or
 * NULL. lengths: print the lengths only. record, report: files to write or NULL. repeat: a record or NULL. */
typedef struct {
    const char *corpus, *out, *from, *record, *report, *repeat;
    bool lengths;
    char *planner[MOST_PLANNERS];
    bool padded[MOST_PLANNERS];
    int planners;
    int64_t threads, rounds, epochs, seeds, limit, hidden, update;
    double seconds, target, lr, dropout;
    bool quick, calibrate;
    unsigned leave_out;                         /* one bit for each experiment, in their order */
} lab_asked;

/* Results by their cause, see the record below. */
typedef enum { LAB_COUNTED, LAB_COMPUTED, LAB_TIMED, LAB_SECTIONS } lab_section;

/* A run. Each sequence ends with an end token. held: sequences for testing. few: a part of train, for
 * frequent experiments; few_of [few.n]: their numbers in train. label [planners]: names of padded plans, or
 * NULL. made [planners]: plans of train; of_few [planners]: plans of few. named: planners without those of
 * --from. corpus: its SHA-256. notes: lists of results. page: results. */
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
    json_t *notes[LAB_SECTIONS];
    char corpus[65];
    int named;
    double started, cpu, wall;                  /* cpu, wall: seconds of the timed passes */
} lab_run;

/* lab.c: returns whether to stop: the user interrupted, or the time is over. Called between batches. */
bool lab_stops(const lab_run *);
/* progress.c: show the current work, and its share done, 0 .. 1, on a terminal. */
void lab_progress(const lab_run *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void lab_progress_at(const lab_run *, double share);
/* Clears the line of progress, before other output. */
void lab_end_progress(void);
/* Writes the names of the experiments that are not left out, with commas between, and returns text. */
const char *lab_experiments(unsigned leave_out, char text[200]);
/* record.c: writes a line to the file of single measurements, and adds its numbers to the record. key, text:
 * another member, or NULL. */
typedef struct {
    const char *name;
    double value;
} lab_number;
void lab_note(const lab_run *, const char *experiment, const char *planner, const char *key, const char *text,
              const lab_number *, int n);
#define NOTE(r, experiment, planner, ...) NOTE_TEXT(r, experiment, planner, NULL, NULL, __VA_ARGS__)
#define NOTE_TEXT(r, experiment, planner, key, text, ...)                            \
    lab_note(r, experiment, planner, key, text, (const lab_number[]){ __VA_ARGS__ }, \
             (int)(sizeof((const lab_number[]){ __VA_ARGS__ }) / sizeof(lab_number)))
/* Prints the error of a model and returns false. */
bool lab_refuse(const char *planner, weft *w);

/* ---- model.c: the language model: an embedding, an LSTM, dropout, and scores of the next token. A function
 * that returns false has printed nothing; the context holds the message. ---- */
typedef struct {
    weft *w;
    weft_module *m;
    weft_embedding *table;
    weft_rnn *lstm;
    weft_dropout_layer *drop;
    weft_linear *scores;
    weft_optim *optim;
    weft_carried *kept;                         /* NULL until lab_model_carries */
    bool padded;
} lab_model;

/* Opens a model of the run's size. padded: plans without rows of cells run padded instead of packed. False:
 * the context has failed and holds the message. The caller closes w in any case. */
bool lab_model_open(lab_model *, const lab_run *, uint64_t seed, double dropout, bool padded);
/* Allocates the carried states for plans like this one, once. */
bool lab_model_carries(lab_model *, const weft_plan *);
/* Runs a layer on x, padded. The result is ragged again. */
weft_tensor *lab_run_padded(weft_rnn *, const weft_plan_step *, weft_tensor *x);
/* Returns the loss of a batch. Each token is predicted from those before it in its sequence; token 0 precedes
 * the first. weights: of the tokens; NULL: all 1. */
weft_loss lab_model_loss(lab_model *, const weft_plan_step *, const weft_dataset *, weft_tensor *weights);
/* Makes one update from a batch, with the gradient clipped to norm 1. */
bool lab_model_update(lab_model *, const weft_plan *, int64_t batch, const weft_dataset *);
/* Returns bits a token on other data, or NaN if the context has failed. */
double lab_model_bits(lab_model *, const weft_dataset *);

/* data.c: reads the corpus, removes duplicates and holds out every twentieth sequence. */
bool lab_read(lab_run *);
void lab_free_data(lab_run *);
/* plans.c: fills made and of_few, by the planners and from the file, with all results that need no run. */
bool lab_make_plans(lab_run *);
void lab_free_plans(lab_run *);

/* The record of a run as JSON, and its repetition.
 * Members: weft, date, command, options, planners, seeds, machine, environment, corpus, stopped; then three
 * lists of results, one object for each measurement: "counted" depends on corpus, plans and version;
 * "computed" has the same bits in each layout and number of threads, on one instruction set; "timed" has
 * milliseconds and seconds. seal: the SHA-256 of all other members. */
enum { LAB_FORMAT = 1 };
extern const char *const lab_sections[LAB_SECTIONS];
/* record.c: notes the figures of plan i. */
void lab_note_plan(const lab_run *, int i);
/* The caller frees the record by json_decref. */
json_t *lab_make_record(const lab_run *, const char *command);
bool lab_write_record(const char *path, const json_t *);
/* sealed: the seal matches, so the record was not changed by hand. */
json_t *lab_read_record(const char *path, bool *sealed);
/* Fills options that are not set from a record, which must outlive them. */
bool lab_take_record(lab_asked *, const char *path, const json_t *);
/* repeat.c: returns whether the corpus that was read has the record's hash. */
bool lab_same_corpus(const lab_run *, const char *path, const json_t *record);
/* Prints the differences. Returns GOOD if all counted and computed numbers are equal to the bit. */
int lab_compare_records(const json_t *was, const json_t *now, bool sealed);

/* The experiments. Each keeps the results that it has when the time is over. */
typedef bool lab_experiment(lab_run *);
lab_experiment lab_measure_times, lab_compare_layouts, lab_contaminate, lab_measure_gradients, lab_learn,
    lab_ask_adversaries, lab_compare_costs;

/* probe.c: runs a plan through an LSTM with random weights. Returns the output of each token, [tokens,
 * PROBE_WIDTH], sequence by sequence. planner: for the error. */
enum { PROBE_COLUMNS = 8, PROBE_WIDTH = 16 };
typedef enum { PROBE_PLAN, PROBE_PADDED } probe_layout;
bool lab_probe(const char *planner, const weft_plan *, const weft_dataset *, probe_layout, weft_real *out);
/* Draws rows of normal numbers for sequences of these lengths. Freed by corpus_free. */
bool lab_probe_data(const weft_dataset *of, weft_dataset *out);
#endif
