/* api_loader.h - loaders, which divide an epoch into batches.
 *
 * Contents: loaders. Loaders by any planner are in api_plan_run.h. The context owns loaders, and
 * errors fail it; with l NULL or inert, functions return 0 or NULL. */
#ifndef WEFT_API_LOADER_H
#define WEFT_API_LOADER_H
#include "../../io/api_io.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- loaders ---- */
/* How the loader makes batches. It shuffles an epoch, sorts pools of batches by length, cuts them
 * into batches, and shuffles the batches. */
typedef struct {
    int64_t count;       /* most sequences of a batch; 0: any, if tokens is set */
    int64_t tokens;      /* most tokens of a batch, without pads, one sequence at least; 0: any */
    int pool;            /* batches of a pool, 0 means 50; 1: batches of any lengths */
    bool keep_order;     /* only cut into batches */
} weft_loader_opts;
typedef struct weft_loader weft_loader;
/* Makes a loader of n sequences of these lengths, each 0 or more, which it copies. It shuffles by
 * the context's stream "loader.<name>", so no two loaders share a name, of 30 bytes at most. If it
 * cannot be made it is an inert one without batches. Errors: opts NULL, count and tokens both 0.
 * Like torch.utils.data.BatchSampler. */
WEFT_API weft_loader *weft_loader_new(weft *w, const char *name, int64_t n, const int32_t *len,
                                      const weft_loader_opts *opts);
/* Returns the next batch: the indices of *size sequences, valid until the next call. NULL and size
 * 0 at the end of an epoch, and the next call begins another; also NULL in a failed context
 * (weft_ok). */
WEFT_API const int32_t *weft_loader_next(weft_loader *l, int64_t *size);
/* Returns the number of batches of the present epoch, also after its end. Before the first epoch,
 * or after weft_loader_set_state to a position between two, it is that of the next one. */
WEFT_API int64_t weft_loader_batches(weft_loader *l);
/* Returns the number of epochs begun so far, which a position contains; 0 for NULL. */
WEFT_API int64_t weft_loader_epoch(const weft_loader *l);
/* A position: epochs begun, batches returned (-1 between epochs), the stream, a fingerprint. */
typedef struct { int64_t at[4]; } weft_loader_state;
/* Returns the position of a loader, for a checkpoint item of four WEFT_I64; zeros for NULL. Like
 * StatefulDataLoader.state_dict. */
WEFT_API weft_loader_state weft_loader_get_state(const weft_loader *l);
/* Sets the position of a loader of the same sequences and options, from weft_loader_get_state.
 * Errors: a position of another loader, or a damaged one; the loader is unchanged. Like
 * StatefulDataLoader.load_state_dict. */
WEFT_API void weft_loader_set_state(weft_loader *l, weft_loader_state state);

#ifdef __cplusplus
}
#endif
#endif
