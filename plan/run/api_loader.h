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
/* How the loader makes batches. It shuffles the sequences, sorts each pool of them by length, cuts
 * each pool into batches, and shuffles all batches of the epoch. A batch ends where it would exceed
 * count or tokens, and at the end of its pool. */
typedef struct {
    int64_t count;       /* most sequences of a batch; 0: no limit, then tokens is required */
    /* Most tokens of a batch, without pads; 0: no limit. A longer sequence is a batch alone. */
    int64_t tokens;
    /* Size of a pool in batches: the sequences that fill this many batches are sorted together. 0
     * means 50; 1: batches have mixed lengths. */
    int pool;
    bool keep_order;     /* neither shuffles nor sorts: cuts the given order into batches */
} weft_loader_opts;
typedef struct weft_loader weft_loader;
/* Makes a loader of n sequences of the lengths len [n], each 0 or more; n is below 2^31 - 1. name:
 * at most 30 bytes. Arrays are copied. The loader shuffles by the context's stream "loader.<name>".
 * Errors: another loader's name; opts NULL; count and tokens both 0, or one below 0; a length below
 * 0; the loader is inert. Like torch.utils.data.BatchSampler. */
WEFT_API weft_loader *weft_loader_new(weft *w, const char *name, int64_t n, const int32_t *len,
                                      const weft_loader_opts *opts);
/* Returns the next batch: an array of *size indices into len, owned by the loader, valid until the
 * next call. At the end of an epoch it returns NULL and *size 0; the call after that begins another
 * epoch. It also returns NULL in a failed context, so check weft_ok. */
WEFT_API const int32_t *weft_loader_next(weft_loader *l, int64_t *size);
/* Returns the number of batches of the epoch in progress, or of the last one if it has ended.
 * Before the first epoch, and after weft_loader_set_state to a position between epochs, it returns
 * the number of the next epoch's batches. 0 for NULL. */
WEFT_API int64_t weft_loader_batches(weft_loader *l);
/* Returns the number of epochs begun so far; 0 for NULL. weft_loader_set_state restores it. */
WEFT_API int64_t weft_loader_epoch(const weft_loader *l);
/* A position: epochs begun, batches returned (-1 between epochs), the counter of the loader's
 * stream at the start of this epoch (or the next), a fingerprint of lengths and options. */
typedef struct { int64_t at[4]; } weft_loader_state;
/* Returns the position of a loader, for a checkpoint item of four WEFT_I64; zeros for NULL. Like
 * StatefulDataLoader.state_dict. */
WEFT_API weft_loader_state weft_loader_get_state(const weft_loader *l);
/* Sets the position to one of weft_loader_get_state, also of an earlier run. weft_loader_next then
 * returns the batch that followed that position. The order depends on the context's seed and on the
 * stream's counter. This function restores the counter only, so the seed must be that of the run
 * that saved. weft_load restores the seed and changes the counter: call it first. Errors: a
 * position of a loader with other lengths or options, or a damaged position; the loader is
 * unchanged. Like StatefulDataLoader.load_state_dict. */
WEFT_API void weft_loader_set_state(weft_loader *l, weft_loader_state state);

#ifdef __cplusplus
}
#endif
#endif
