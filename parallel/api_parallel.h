/* api_parallel.h - training on many machines: each rank, a process, works on its shards of every
 * batch, and all have the same gradients, to the bit.
 *
 * Contents: making it, an update, sums over a batch, results in the batch's order, checkpoints, the
 * end.
 *
 *     weft_parallel *p = weft_parallel_new(m, &(weft_parallel_opts){ .shards = 8 });
 *     while ((index = weft_loader_next(loader, &n)) != NULL) {    // of all ranks, the same on all
 *         weft_parallel_begin(p, index, n);
 *         for (weft_part part; weft_parallel_next(p, &part);)
 *             weft_parallel_add(p, the loss of part.index[0 .. part.n - 1]);
 *         weft_optim_step(adam);
 *     }
 *
 * `mpirun -n 4 program` starts four ranks; started alone the same program is the only rank, and
 * does what four would do, one shard after another: gradient accumulation, for a batch that does
 * not fit. What comes of an update depends on the number of shards, and not on how many ranks share
 * them. All ranks call the functions below in the same order. docs/design/parallel.md tells how it
 * works. */
#ifndef WEFT_API_PARALLEL_H
#define WEFT_API_PARALLEL_H
#include "../io/api_io.h"
#include "../nn/api_loss.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- making it ---- */
typedef struct weft_parallel weft_parallel;
/* shards: into how many parts every batch is cut; 0: as many as ranks. len [n]: the lengths of the
 * data's sequences, by which it is cut, copied; NULL: all count alike. timeout: seconds until a
 * rank that does not answer is given up; 0: WEFT_PARALLEL_TIMEOUT, or else 600. no_signals: SIGTERM
 * and SIGUSR1 stay as they are, see weft_parallel_stopping. */
typedef struct {
    int shards;
    int64_t n;
    const int32_t *len;
    double timeout;
    bool no_signals;
} weft_parallel_opts;
/* For the parameters below m; opts NULL: all 0. The transport is WEFT_PARALLEL: openmpi, mpich, the
 * absolute path of a plug-in, or none; by default that of the launcher, mpirun or srun, which has
 * started the program, and none without one. Ranks whose model, seed, precision or instruction set
 * differ fail, and so do fewer shards than ranks. Owned by the context; one that cannot be made is
 * an inert one, with no shard at all. */
WEFT_API weft_parallel *weft_parallel_new(weft_module *m, const weft_parallel_opts *opts);
/* This process among all ranks, and among those of its machine, both counted from 0; the shards;
 * the transport, "none" without one; and seconds that a rank has waited for others so far, in
 * exchanges and where all meet: the mean over ranks, the same on all, as of the last batch. */
typedef struct {
    int rank, ranks, local_rank, local_ranks, shards;
    const char *transport;
    double waited;
} weft_parallel_place;
WEFT_API weft_parallel_place weft_parallel_place_of(const weft_parallel *p);

/* ---- an update ---- */
/* Begins a batch of n sequences, index [n] as weft_loader_next gives them, the same on all ranks;
 * NULL: 0 .. n - 1. It is cut into shards of about as many tokens each, the longest first (Graham
 * 1969), in the batch's order within each. Zeroes the gradients below m. */
WEFT_API void weft_parallel_begin(weft_parallel *p, const int32_t *index, int64_t n);
/* Begins batch `batch` of a plan that weft_plan_split has dealt to the shards, a plan each: parts
 * [shards], the same on all ranks. Where it carries states, each shard has its own weft_carried,
 * made by all ranks for all shards, and the loop its own plan:
 *     weft_plan_step s = weft_plan_step_of(w, &parts[part.shard], batch);
 *     weft_rnn_out out = weft_rnn_run_plan(lstm, x, &s, kept[part.shard]);
 * part has the sequences of which the segments are, places count shard after shard. The sum of
 * losses is divided by the batch's weight, WEFT_MEAN_OF_BATCH. A rank that is lost takes its states
 * with it: then the job ends even where the transport could go on. */
WEFT_API void weft_parallel_begin_plan(weft_parallel *p, const weft_plan *parts, int64_t batch);
/* A shard: n sequences of the batch, their numbers in the data, and their places in the batch. */
typedef struct {
    int shard;
    int64_t n;
    const int32_t *index, *place;
} weft_part;
/* The next shard of this rank that is not empty; false when there is none: then the gradients below
 * m are those of the whole batch, divided by its weight, on all ranks, and a parameter that any
 * shard has reached is reached. Inside a shard a ragged tensor without ids has the places for ids,
 * so masks of dropout are those of the whole batch; a named stream draws for the shard alone; the
 * position of a loader stays, and nothing is saved or loaded. If one rank fails, all do, with its
 * message. *part is valid until the next call. */
WEFT_API bool weft_parallel_next(weft_parallel *p, weft_part *part);
/* The loss of the shard at work: weft_backward of its sum, if the context records, and weft_clear.
 * Once for each shard. */
WEFT_API void weft_parallel_add(weft_parallel *p, weft_loss loss);
/* The batch's loss when its shards are done: sum / weight; NaN if the weight is 0. */
WEFT_API double weft_parallel_mean(const weft_parallel *p);

/* ---- sums over a batch ---- */
/* Up to 16 numbers of the shard at work, before weft_parallel_add: counts of what is right, say. */
enum { WEFT_PARALLEL_VALUES = 16 };
WEFT_API void weft_parallel_add_values(weft_parallel *p, const double *values, int n);
/* [16] their sums over the whole batch, in the order of the shards' tree, when the shards are done:
 * the same on all ranks. Valid until the next weft_parallel_begin. */
WEFT_API const double *weft_parallel_values(const weft_parallel *p);

/* ---- results in the batch's order ---- */
/* What has come of sequence i of the shard at work, that of part.index[i]: n bytes, copied, of any
 * kind; a decoded sequence, say. At most once for each, 2^31 - 1 bytes at most, before the next
 * weft_parallel_next. */
WEFT_API void weft_parallel_put(weft_parallel *p, int64_t i, const void *bytes, int64_t n);
/* What was put on any rank, by the place in the batch, *n of them; bytes NULL where nothing was. It
 * has come to all ranks in the last call of weft_parallel_next, so one of them may ask alone. NULL
 * while shards are at work, or if nothing was put. Owned by p, the bytes, too, which are aligned
 * for numbers; valid until the next weft_parallel_begin. */
typedef struct { const void *bytes; int64_t n; } weft_parallel_result;
WEFT_API const weft_parallel_result *weft_parallel_gathered(const weft_parallel *p, int64_t *n);

/* ---- checkpoints ---- */
/* weft_save, and weft_load, by rank 0; what has been read goes to all, so the others need no file,
 * and what is returned is the same on all ranks. The file
 * has the number of shards as the item "parallel.shards"; loading it with another number said in
 * weft_parallel_opts is WEFT_EARG, and so is one below the ranks. Any number of ranks goes on to
 * the same bytes. */
WEFT_API weft_status weft_parallel_save(weft_parallel *p, const char *path, weft_module *m,
                                        weft_optim *o, const weft_checkpoint_item *items,
                                        int64_t n) WEFT_MUST_USE;
WEFT_API weft_status weft_parallel_load(weft_parallel *p, const char *path, weft_module *m,
                                        weft_optim *o, const weft_checkpoint_item *items,
                                        int64_t n) WEFT_MUST_USE;

/* ---- the end ---- */
/* True on all ranks from the same update on, after SIGTERM or SIGUSR1 has come to any of them: save
 * and end. Handlers are set with more than one rank, where the program has none. */
WEFT_API bool weft_parallel_stopping(const weft_parallel *p);

#ifdef __cplusplus
}
#endif
#endif
