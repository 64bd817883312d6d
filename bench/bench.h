/* bench.h - what the cases share: the settings of the command line, timing, and the line of JSON that each measurement is. */
#ifndef WEFT_BENCH_H
#define WEFT_BENCH_H
#include "weft.h"

typedef struct settings { weft_opts open; int runs; bool quick, tiny; } settings;

/* One measurement's fields, those of the peers' programs. */
typedef struct row {
    const char *name, *what, *lengths, *layout, *pass;   /* what: of the case pack the operation, else NULL */
    int64_t     B, T, I, H, tokens, horizon;     /* horizon: steps of the future, of a forecast */
    int         layers;
    bool        bidirectional;
    double      loss, norm;                      /* of a training step with the weights of formula(): the proof of equal work */
    double      bytes, copy_ms;                  /* pack: what must be moved at least, and the time of a plain copy of it */
} row;

enum { MOST_RUNS = 1000 };
typedef struct times { int n; double ms[MOST_RUNS]; } times;

double now_ms(void);
/* Notes a time; true while more runs are wanted (no more than 20 s in all). */
bool   more(times *t, double ms, const settings *s);
double median(times *t);                         /* sorts */
void   emit(const settings *s, weft *w, const row *r, times *t);
/* A context that failed, to stderr; true if so. */
bool   failed(weft *w, const char *where);

/* Number i of an array that is called so: in -1/2 .. 1/2, by steps of 2^-16. */
double formula(const char *name, int64_t i);
/* scale times the formula; false: no memory. Every parameter of a module, called as PyTorch calls it. */
bool fill(weft_tensor *kept, const char *name, double scale);
bool set_weights(weft_module *m, double scale);
/* "triangle": T, T-1, .. 1, T ..; "equal": T; "uniform": lo + (x >> 8) % (T - lo + 1) with lo = max(1, T / 8) and
 * x <- (1103515245 x + 12345) mod 2^31 from the seed. The sum. */
int64_t make_lengths(const char *kind, uint64_t seed, int32_t *len, int64_t n, int32_t longest);

/* Something that trains: `loss` makes the graph of a step; `all` are its parameters. Measures and emits both passes. */
typedef struct training { weft *w; weft_module *all; weft_tensor *(*loss)(void *user); void *user; row row; } training;
bool measure_training(training *t, const settings *s);

bool bench_net(const settings *s), bench_lstm(const settings *s), bench_bilstm(const settings *s), bench_long(const settings *s);
bool bench_pack(const settings *s), bench_sweep(const settings *s), bench_transformer_lstm(const settings *s);
#endif
