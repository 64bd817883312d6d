/* bench.h - settings, timing, counting and JSON output that all cases of the benchmark share. */
#ifndef WEFT_BENCH_H
#define WEFT_BENCH_H
#include "weft_lab.h"

typedef struct settings {
    weft_opts   open; int runs; bool quick, tiny;
    const char *layout;                          /* --layout; NULL: the first layout of each case */
    /* GF/s of one core, and of all threads: see flops.c */
    double      peak[2];
    /* memory of a step of the current case, see train.c; 0: unknown */
    double      step_bytes;
    /* where a child that measures this memory stores it; otherwise NULL */
    double     *growth;
} settings;

/* Floating point operations of a pass's products on real tokens, see formula.c. */
typedef struct work { double forward, train; } work;

/* The fields of one measurement, the same as in the peers' programs. */
typedef struct row {
    const char *name, *what, *lengths, *layout, *pass;   /* what: the operation of the case pack, or NULL */
    int64_t     B, T, I, H, tokens, horizon;     /* horizon: future steps of a forecast */
    int         layers, heads, beams;
    /* case growth: the size that grows, the vocabulary, whether the layer is lean */
    const char *axis; int64_t vocabulary; bool lean;
    bool        bidirectional;
    /* of one training step with formula()'s weights, to prove equal work */
    double      loss, norm;
    work        work;
    int64_t     allocations;                     /* in the measured steps */
    int64_t     launches;                        /* of a step, on a GPU */
    int64_t     recurrent[4];                    /* passes of recurrent layers, see weft_usage */
    /* pack: least bytes to move, and the time of a plain copy of them */
    double      bytes, copy_ms;
} row;

enum { MOST_RUNS = 1000 };
typedef struct times { int n; double ms[MOST_RUNS]; } times;

/* --cpu-time: now_ms returns the CPU time of the process instead of elapsed time. */
extern bool by_cpu_time;
double now_ms(void);
/* Returns true after two steps in a row without a trial of a GPU kernel, or after 100 steps. Call it after
 * each step. Start from { 0 }. */
typedef struct settling { int64_t trials; int steps, quiet; } settling;
bool   settled(weft *w, settling *s);
/* Sets the launches and kernels of a row to those of n steps since `before`. */
void   count_launches(row *r, weft *w, const weft_usage *before, int n);
/* Records a time. Returns true while more runs are needed (at most 20 s in all). */
bool   more(times *t, double ms, const settings *s);
double median(times *t);                         /* sorts */
int    by_value(const void *, const void *);     /* for qsort of doubles */
void   emit(const settings *s, weft *w, const row *r, times *t);
/* Returns whether the context has failed, and prints its message to stderr. */
bool   failed(weft *w, const char *where);
/* Returns the index of value in a comma-separated list of names, or -1. */
int    which_of(const char *names, const char *value);
/* Returns zeroed memory for the current shape, or ends the program if memory is exhausted. */
void  *keep(int64_t n, size_t size);
void   free_kept(void);

/* Returns number i of the array of this name: in -1/2 .. 1/2, in steps of 2^-16. */
double formula(const char *name, int64_t i);
/* Fill a tensor with scale times the formula; fill_padded a padded one [n, T, width], with 0 after each
 * sequence; set_weights every parameter of a module, by its PyTorch name. They return false if memory is
 * exhausted. They run no step, because that would change the memory of the measured one. */
bool fill_formula(weft_tensor *kept, const char *name, double scale);
bool fill_padded(weft_tensor *kept, const char *name, double scale, const weft_lengths *l);
bool set_weights(weft_module *m, double scale);
/* "triangle": T, T-1, .. 1, T ..; "equal": T; "uniform": lo + (x >> 8) % (T - lo + 1) with lo = max(1, T / 8)
 * and x <- (1103515245 x + 12345) mod 2^31 from the seed. Stores their sum; the memory is of keep(). */
int32_t *make_lengths(const char *kind, uint64_t seed, int64_t n, int32_t longest, int64_t *sum);

/* Add the work of parts. dx: the gradient of the input is computed. pairs: of a query and a key. */
void add_linear(work *to, double rows, int64_t in, int64_t out, bool dx);
void add_recurrent(work *to, double tokens, int gates, int64_t in, int64_t hidden, bool dx);
void add_attention(work *to, double pairs, int64_t width_of_keys, int64_t width_of_values);

/* Returns the peak in GF/s of these threads with the instruction set `isa` (weft_device_name); 0 if this CPU
 * lacks it. */
double fma_peak(const char *isa, int threads);

/* One shape of a case; `run` opens a context, builds, and measures. */
typedef bool run_case(row r, const settings *s);
/* Limits the shape with --tiny, measures the memory of a step, and runs. layouts: those of the case; the
 * first is the default. */
bool measure(run_case *run, row r, const char *layouts, const settings *s);
/* Runs a task in a child process and copies its result. Returns false if the child failed. */
bool in_child(void (*task)(void *user, void *result), void *user, void *result, size_t size);
/* Returns the memory of a step of this shape, measured in a child process; 0 if unknown. The next two begin
 * and end such a measurement. */
double step_bytes(run_case *run, row r, const settings *s);
double begin_growth(void), growth_since(double begin);

/* A training case. loss: computes one loss. graphs: number of losses in a step. all: the parameters. step:
 * runs a whole step; NULL: zero_grad, forward and backward of one loss. Both passes are measured and printed.
 * Equal work is proved by the sum of the losses and the norm of the summed gradients. */
typedef struct training {
    weft *w; weft_module *all;
    weft_tensor *(*loss)(void *user); int graphs;
    void (*step)(void *user, bool train);
    void *user;
    row   row;
} training;
bool measure_training(training *t, const settings *s);

typedef bool bench_case(const settings *s);
bench_case bench_net, bench_lstm, bench_gru, bench_bilstm, bench_mingru, bench_scan, bench_long,
    bench_sweep, bench_never_slower, bench_slow_pack, bench_attention, bench_growth,
    bench_transformer_lstm, bench_tft, bench_g2p, bench_decode, bench_gemm, bench_pack, bench_plan,
    bench_conv, bench_crf, bench_ctc;
#endif
