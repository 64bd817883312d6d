/* bench.h - what the cases share: the settings of the command line, timing, counting, and the line of JSON
 * that each measurement is. */
#ifndef WEFT_BENCH_H
#define WEFT_BENCH_H
#include "weft_lab.h"

typedef struct settings {
    weft_opts   open; int runs; bool quick, tiny;
    const char *layout;                          /* --layout; NULL: what each case has first */
    /* GF/s that one core, and all threads, can do: see flops.c */
    double      peak[2];
    /* of the case that runs: what a step takes, see train.c; 0: not known */
    double      step_bytes;
    /* NULL, but in the child that finds that out: where it goes */
    double     *growth;
} settings;

/* Floating point operations that the products of a pass need, on real tokens: see formula.c. */
typedef struct work { double forward, train; } work;

/* One measurement's fields, those of the peers' programs. */
typedef struct row {
    const char *name, *what, *lengths, *layout, *pass;   /* what: of the case pack the operation, else NULL */
    int64_t     B, T, I, H, tokens, horizon;     /* horizon: steps of the future, of a forecast */
    int         layers, heads, beams;
    /* of the case growth: what grows; a vocabulary; a lean layer */
    const char *axis; int64_t vocabulary; bool lean;
    bool        bidirectional;
    /* of a training step with the weights of formula(): the proof of equal work */
    double      loss, norm;
    work        work;
    int64_t     allocations;                     /* in the steps that were measured */
    int64_t     launches;                        /* of a step, on a GPU */
    int64_t     recurrent[4];                    /* passes of recurrent layers, see weft_usage */
    /* pack: what must be moved at least, and the time of a plain copy of it */
    double      bytes, copy_ms;
} row;

enum { MOST_RUNS = 1000 };
typedef struct times { int n; double ms[MOST_RUNS]; } times;

/* --cpu-time: now_ms counts the processor time of the process, not the wall clock. */
extern bool by_cpu_time;
double now_ms(void);
/* Returns true when two steps in a row have tried no kernel of a GPU, or after 100 steps. Call it after each
 * step. Start from { 0 }. */
typedef struct settling { int64_t trials; int steps, quiet; } settling;
bool   settled(weft *w, settling *s);
/* Sets the launches and kernels of a row to those of n steps since `before`. */
void   count_launches(row *r, weft *w, const weft_usage *before, int n);
/* Notes a time; true while more runs are expected (no more than 20 s in all). */
bool   more(times *t, double ms, const settings *s);
double median(times *t);                         /* sorts */
void   emit(const settings *s, weft *w, const row *r, times *t);
/* A context that failed, to stderr; true if so. */
bool   failed(weft *w, const char *where);
/* Returns which of some names, separated by commas, a value is; -1: none. */
int    which_of(const char *names, const char *value);
/* Returns zeroed memory that lives as long as the shape that runs. Ends the program if there is none. */
void  *keep(int64_t n, size_t size);
void   free_kept(void);

/* Number i of an array that is called so: in -1/2 .. 1/2, by steps of 2^-16. */
double formula(const char *name, int64_t i);
/* scale times the formula; false: no memory. The same with 0 behind each sequence, [n, T, width]. Every
 * parameter of a module, called as PyTorch calls it. No step is needed for it, whose memory a measured one
 * would find there. */
bool fill_formula(weft_tensor *kept, const char *name, double scale);
bool fill_padded(weft_tensor *kept, const char *name, double scale, const weft_lengths *l);
bool set_weights(weft_module *m, double scale);
/* "triangle": T, T-1, .. 1, T ..; "equal": T; "uniform": lo + (x >> 8) % (T - lo + 1) with lo = max(1, T / 8)
 * and x <- (1103515245 x + 12345) mod 2^31 from the seed. The sum. */
int64_t make_lengths(const char *kind, uint64_t seed, int32_t *len, int64_t n, int32_t longest);

/* The work of parts, added; dx: whether the gradient of what goes in is expected, too. pairs: of a query and
 * a key. */
void add_linear(work *to, double rows, int64_t in, int64_t out, bool dx);
void add_recurrent(work *to, double tokens, int gates, int64_t in, int64_t hidden, bool dx);
void add_attention(work *to, double pairs, int64_t width_of_keys, int64_t width_of_values);

/* GF/s of that many threads in the instruction set of that name (weft_device_name); 0 if it is not one of
 * this CPU's. */
double fma_peak(const char *isa, int threads);

/* One shape of a case; `run` opens a context, builds, and measures. */
typedef bool run_case(row r, const settings *s);
/* Cuts the shape down if --tiny, finds out what memory a step takes, and runs. layouts: those that the
 * case has, the first is its own. */
bool measure(run_case *run, row r, const char *layouts, const settings *s);
/* Runs a task in a child and copies its result; false if the child failed. */
bool in_child(void (*task)(void *user, void *result), void *user, void *result, size_t size);
/* What a step of this shape takes in a process of its own, 0 if that cannot be known; the beginning of
 * such a step, and its end. */
double step_bytes(run_case *run, row r, const settings *s);
double begin_growth(void), growth_since(double begin);

/* Something that trains: `loss` makes a graph, a step is of so many; `all` are its parameters. `step` is a
 * whole step, NULL: zero_grad, forward, backward of one graph. Measures and emits both passes; the proof of
 * equal work is the sum of the graphs' losses, and the norm of the sum of their gradients. */
typedef struct training {
    weft *w; weft_module *all;
    weft_tensor *(*loss)(void *user); int graphs;
    void (*step)(void *user, bool train);
    void *user;
    row   row;
} training;
bool measure_training(training *t, const settings *s);

typedef bool bench_case(const settings *s);
bench_case bench_net, bench_lstm, bench_gru, bench_bilstm, bench_long, bench_sweep, bench_never_slower,
    bench_slow_pack, bench_attention, bench_growth, bench_transformer_lstm, bench_tft, bench_g2p,
    bench_decode, bench_gemm, bench_pack, bench_plan;
#endif
