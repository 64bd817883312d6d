/* api_report.h - the device of a context, its time by operators, how a batch is stored.
 *
 * Contents: the device, pictures in text, random streams of the program, the profile. */
#ifndef WEFT_API_REPORT_H
#define WEFT_API_REPORT_H
#include "../api_core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the device ---- */
/* Prints the device of the context. For a GPU: which compiled code it uses, which kernels recurrent
 * layers use by size, and the file with the results of their timing. Prints nothing if file or w is
 * NULL. Like torch.cuda.get_device_properties. */
WEFT_API void weft_print_device(FILE *file, weft *w);
/* Returns the number of threads of the CPU's kernels; 1 for NULL. Like torch.get_num_threads. */
WEFT_API int weft_threads(const weft *w);
/* Waits until the device has finished all work, and fails the context if a kernel has failed. On a
 * CPU and for NULL it has nothing to wait for. Like torch.cuda.synchronize. */
WEFT_API void weft_synchronize(weft *w);

/* ---- pictures in text ---- */
/* Sets how weft_print shortens: an axis with more than `limit` elements shows its first and last
 * limit / 2; 0 shows all elements. Returns the previous limit, 8 in a new context; 0 for w NULL.
 * Errors: a limit below 0. Like torch.set_printoptions(threshold=..). */
WEFT_API int64_t weft_set_print_limit(weft *w, int64_t limit);
/* Prints which token is in each row: its sequence (a .. z, then 26, 27, ..) and its position; a dot
 * is a pad of ROWS. For the layout PACKED it first prints the staircase: one row for each sequence,
 * one column for each step. For a plain tensor prints "not ragged", for x NULL "NULL". file is
 * required. */
WEFT_API void weft_print_layout(FILE *file, const weft_tensor *x);

/* ---- random streams of the program ---- */
/* Makes a stream without a context, of this seed and name (1 .. 47 bytes, copied). Equal seeds and
 * names draw equal numbers. The program frees it by weft_stream_free. Returns NULL if it is out of
 * memory, or the name is NULL, empty or too long. Like torch.Generator().manual_seed(seed). */
WEFT_API weft_stream *weft_stream_new(uint64_t seed, const char *name);
/* Frees a stream of weft_stream_new. NULL is allowed, and a stream of weft_stream_of is ignored. */
WEFT_API void weft_stream_free(weft_stream *stream);
/* Draws 64 random bits; 0 from NULL. Like torch.Tensor.random_. */
WEFT_API uint64_t weft_stream_next(weft_stream *stream);

/* ---- the profile ---- */
/* One operator, forward or backward, since profiling began. */
typedef struct {
    const char *name;              /* of the operator; valid as long as the rows */
    bool backward;                 /* false: the row of the forward pass */
    int64_t calls;
    double ms;                     /* of all calls, without the operators that they called */
    double flops;                  /* all calls: products, recurrent layers, attention; others: 0 */
    double bytes;                  /* all calls: inputs and results; backward: also gradients */
    int64_t launches;              /* all calls, on a GPU: kernels, products, copies on it */
} weft_profile_row;
/* The times of a context since weft_set_profiling or weft_reset_profile. */
typedef struct {
    int64_t n;                                   /* number of rows */
    const weft_profile_row *rows;                /* [n], the longest time first */
    double ms;                                   /* sum of the rows and beside_ms */
    double beside_ms;                            /* outside operators: mostly the program's work */
} weft_profile;
/* Turns the timing of operators on or off, and returns the previous mode; false for NULL. It is off
 * at first; with WEFT_LOG=2 it is on, and weft_close prints the times. While on, each operator
 * reads the clock twice (some 0.1 us) and synchronises the GPU; while off it costs one branch.
 * Results keep their bits. Times of earlier periods stay. Like torch.profiler.profile. */
WEFT_API bool weft_set_profiling(weft *w, bool on);
/* Returns the times of operators so far, one row for each name and direction. The context owns the
 * rows; they are valid until the next call of this function or of weft_reset_profile. All 0 for
 * NULL, or if profiling was never on. Like key_averages of torch.profiler. */
WEFT_API weft_profile weft_profile_of(weft *w);
/* Forgets the times so far. Profiling stays on or off. NULL is allowed. */
WEFT_API void weft_reset_profile(weft *w);

#ifdef __cplusplus
}
#endif
#endif
