/* api_report.h - what a context runs on, what it holds, and where its time goes.
 *
 * Contents: usage, the profile. */
#ifndef WEFT_API_REPORT_H
#define WEFT_API_REPORT_H
#include "../api_core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- usage ---- */
/* Writes what the context runs on, and of a GPU: which code it has found there, which ways
 * recurrent layers go by their size, and where what was found out is kept. Nothing for NULL. */
WEFT_API void weft_print_device(FILE *file, weft *w);
typedef struct {
    /* Bytes held now: all that the context has asked the allocator for, with itself, its threads
     * and the kernels' scratch, but without the rounding up of each block. On a GPU the memory of
     * tensors, optimisers and scratch, without that of CUDA and cuBLAS. */
    int64_t host_bytes;
    int64_t device_bytes;
    int64_t allocations;           /* blocks asked for since weft_open, without scratch */
    int64_t tape;                  /* entries */
    int64_t host_peak;             /* the most bytes held since weft_open */
    int64_t device_peak;
    int64_t kept_weights;          /* packed weights, of the host's bytes (weft_opts) */
    int64_t launches;              /* GPU, since weft_open: kernels, products, copies within it */
    /* GPU: passes of recurrent layers that ran before the choice of their kernel was settled. A
     * step that adds none runs the kernels of all later steps, so measure from there on. */
    int64_t trials;
    /* GPU: passes of recurrent layers by a kernel for each step, and by one kernel for all steps
     * in blocks, in clusters, in groups of blocks. */
    int64_t recurrent[4];
} weft_usage;
/* Returns what the context holds and has done. Zeros for NULL. */
WEFT_API weft_usage weft_usage_of(const weft *w);

/* ---- the profile ---- */
/* One operator, forward or backward, since profiling began: how often it ran; its time without the
 * operators that it called in turn; the arithmetic of its kernels that multiply (products,
 * recurrent layers, attention), in FLOPs, 0 of others; the bytes of its inputs and results,
 * backward of their gradients, too; and its launches, as weft_usage counts them. */
typedef struct {
    const char *name;
    bool backward;
    int64_t calls;
    double ms;
    double flops;
    double bytes;
    int64_t launches;
} weft_profile_row;
typedef struct {
    int64_t n;
    const weft_profile_row *rows;                /* [n], the longest time first */
    double ms;                                   /* of everything */
    double beside_ms;                            /* of no operator: the program's own work */
} weft_profile;
/* Times operators from now on, or no more; returns what it was. Off at first, unless WEFT_LOG=2
 * asks for the table of these rows at weft_close. On, an operator reads a clock twice (some 0.1 us)
 * and on a GPU is waited for; off, it pays one branch. Results keep their bits. */
WEFT_API bool weft_set_profiling(weft *w, bool on);
/* What was timed so far; the rows are the context's, good until the next call of this function or
 * of weft_reset_profile. No rows if nothing was. */
WEFT_API weft_profile weft_profile_of(weft *w);
/* Forgets what was timed so far; profiling stays on, or off. */
WEFT_API void weft_reset_profile(weft *w);

#ifdef __cplusplus
}
#endif
#endif
