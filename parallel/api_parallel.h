/* api_parallel.h - training by several processes (ranks): each computes some shards of every batch,
 * and all ranks get the same gradients, bit by bit.
 *
 * Contents: making it, an update, sums over a batch, results in the batch's order, checkpoints, the
 * end. An error of one rank fails the contexts of all, with its message. With p NULL or inert,
 * functions do nothing and return false, zeros, NULL or NaN, unless a comment names another result.
 *
 *     weft_parallel *p = weft_parallel_new(m, &(weft_parallel_opts){ .shards = 8 });
 *     while ((index = weft_loader_next(loader, &n)) != NULL) {    // the same on all ranks
 *         weft_parallel_begin(p, index, n);
 *         for (weft_part part; weft_parallel_next(p, &part);)
 *             weft_parallel_add(p, the loss of part.index[0 .. part.n - 1]);
 *         weft_optim_step(adam);
 *     }
 *
 * `mpirun -n 4 program` starts four ranks. Started alone, the same program is the only rank and
 * computes all shards one after the other: gradient accumulation, for a batch that does not fit in
 * memory. Results depend on the number of shards, not of ranks. All ranks call the functions below
 * in the same order. docs/design/parallel.md describes the implementation. */
#ifndef WEFT_API_PARALLEL_H
#define WEFT_API_PARALLEL_H
#include "../io/api_io.h"
#include "../nn/api_loss.h"
#include "../plan/api_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- making it ---- */
typedef struct weft_parallel weft_parallel;
typedef struct {
    int shards;                  /* parts of every batch, ranks .. 2^20; 0: the number of ranks */
    int64_t n;                   /* sequences of the data; 0 if len is NULL */
    const int32_t *len;          /* [n] their lengths, copied: shards of a batch get similar sums of
                                  * lengths. NULL: similar numbers of sequences */
    double timeout;              /* seconds until a silent rank counts as lost. 0: the environment
                                  * variable WEFT_PARALLEL_TIMEOUT if set, otherwise 600 */
    bool no_signals;             /* no handlers of SIGTERM and SIGUSR1 (weft_parallel_stopping) */
} weft_parallel_opts;
/* Makes the parallel training of the parameters below m; opts NULL: all 0. A batch trains all
 * parameters that exist when it begins. Their values must be equal on all ranks; weft copies none
 * and compares them every 100th update. The environment variable WEFT_PARALLEL selects the
 * transport: openmpi, mpich, the absolute path of a plug-in, or none. If it is not set: the
 * transport of the launcher (mpirun or srun) that started the program, none without a launcher.
 * Owned by the context. After an error the result is inert, without shards.
 * Errors: ranks that differ in parameters (path, shape), lengths, seed, precision or instruction
 * set; fewer shards than ranks. Like torch.distributed.init_process_group with
 * DistributedDataParallel. */
WEFT_API weft_parallel *weft_parallel_new(weft_module *m, const weft_parallel_opts *opts);
typedef struct {
    int rank;                    /* number of this process among all ranks, from 0 */
    int ranks;                   /* number of all ranks */
    int local_rank;              /* its number among the ranks of this machine, from 0 */
    int local_ranks;             /* number of ranks of this machine */
    int shards;                  /* parts of every batch */
    const char *transport;       /* its name, valid until the process ends; "none" without one */
    double waited;               /* seconds that a rank has waited for others since
                                  * weft_parallel_new, mean over ranks, as of the last batch */
} weft_parallel_place;
/* Returns the place of this process among the ranks. If p is NULL or inert: rank 0 of 1, no shards.
 * Like torch.distributed.get_rank and get_world_size. */
WEFT_API weft_parallel_place weft_parallel_place_of(const weft_parallel *p);

/* ---- an update ---- */
/* Begins a batch of n sequences, 0 or more. index [n]: their numbers in the data, as from
 * weft_loader_next, the same on all ranks, copied. index NULL: 0 .. n - 1. Cuts the batch into
 * shards with similar sums of lengths (.len), the longest sequences first (Graham 1969); each shard
 * keeps the batch's order. Zeroes the gradients of the module if the tape is on. Errors: an index
 * outside .len; shards of the last batch that are not done. Like DistributedSampler. */
WEFT_API void weft_parallel_begin(weft_parallel *p, const int32_t *index, int64_t n);
/* Begins batch `batch` of a plan; weft_parallel_next and weft_parallel_add follow as usual. parts
 * [shards], from weft_plan_split, is the same on all ranks; the program keeps it until the batch
 * ends. If the plan carries states, every rank makes the stores of all shards, in the same order:
 * kept[k] = weft_carried_new(m, a name of its own, lstm, &parts[k]), see weft_plan.h. Only the
 * rank that computes shard k fills kept[k]. A shard runs its inputs x by
 *     weft_plan_step s = weft_plan_step_of(w, &parts[part.shard], batch);
 *     weft_rnn_out out = weft_rnn_run_plan(lstm, x, &s, kept[part.shard]);
 * part.index has the sequence of each segment of the shard. part.place counts segments from 0,
 * shard by shard: first those of shard 0, then those of shard 1, .. The sum of losses is divided by
 * the batch's weight (WEFT_MEAN_OF_BATCH). A lost rank loses its states, so the job ends. Errors:
 * no such batch, parts for another number of shards. */
WEFT_API void weft_parallel_begin_plan(weft_parallel *p, const weft_plan *parts, int64_t batch);
typedef struct {
    int shard;                   /* its number, from 0 */
    int64_t n;                   /* sequences of the shard */
    const int32_t *index;        /* [n] their numbers in the data */
    const int32_t *place;        /* [n] their places in the batch, from 0 */
} weft_part;
/* Returns true and sets *part to this rank's next shard that is not empty. The arrays of *part are
 * valid until the next call. Returns false after the last shard. All ranks then have the gradients
 * of the whole batch, divided by its weight. A parameter with a gradient from any shard has one on
 * all ranks. Call this function until it returns false; an earlier weft_parallel_begin is an error.
 * Inside a shard, a ragged tensor of part.n sequences made with weft_lengths.id NULL has part.place
 * as ids, so dropout masks are those of the whole batch; with another number of sequences dropout
 * is an error. weft_dataset_batch keeps the ids of the data set. With several shards a named stream
 * draws other numbers in each shard and each batch. After the shard the stream has the position
 * that it had before the shard. With one shard it goes on as usual. Inside a shard, using a loader,
 * saving and loading are errors. If one rank fails, all fail with its message; check weft_ok after
 * the last call. */
WEFT_API bool weft_parallel_next(weft_parallel *p, weft_part *part);
/* Adds the loss of the present shard. If the tape was on in weft_parallel_begin, it runs
 * weft_backward of loss.sum, and every shard needs a loss. With the tape off, a shard without a
 * loss adds sum 0 and weight 0. Runs weft_clear, which also ends tensors made before
 * weft_parallel_begin; without a loss weft_parallel_next does. Errors: no shard; a second loss.
 * Like loss.backward() under no_sync(). */
WEFT_API void weft_parallel_add(weft_parallel *p, weft_loss loss);
/* Returns the batch's loss, sum / weight, on all ranks, once weft_parallel_next has returned false;
 * NaN before that, or if the weight is 0. Like torch.distributed.all_reduce(loss). */
WEFT_API double weft_parallel_mean(const weft_parallel *p);

/* ---- sums over a batch ---- */
enum { WEFT_PARALLEL_VALUES = 16 };
/* Adds values [n], n in 0 .. 16, of the present shard, such as counts of right answers: values[k]
 * to sum k. Sums begin at 0 for each batch. Call this before weft_parallel_add, once or more. */
WEFT_API void weft_parallel_add_values(weft_parallel *p, const double *values, int n);
/* Returns the 16 sums over the whole batch, the same on all ranks, once weft_parallel_next has
 * returned false; zeros before that. Owned by p; valid until the next weft_parallel_begin. Like
 * torch.distributed.all_reduce. */
WEFT_API const double *weft_parallel_values(const weft_parallel *p);

/* ---- results in the batch's order ---- */
/* Stores a result, such as a decoded sequence, for sequence part.index[i] of the present shard. It
 * copies `n` bytes of any kind, 0 .. 2^31 - 1; bytes may be NULL for 0. Call it before the next
 * weft_parallel_next. Errors: i outside 0 .. part.n - 1; a second result for a sequence. */
WEFT_API void weft_parallel_put(weft_parallel *p, int64_t i, const void *bytes, int64_t n);
typedef struct {
    const void *bytes;           /* aligned for numbers; NULL if the sequence has no result */
    int64_t n;                   /* number of bytes */
} weft_parallel_result;
/* Returns the stored results of all ranks, one entry for each sequence in the batch's order. *n is
 * their number; n may be NULL. The last call of weft_parallel_next has exchanged the results, so a
 * single rank may call this. NULL and *n = 0 before that, or if no rank stored any. Owned by p;
 * valid until the next weft_parallel_begin. Like torch.distributed.all_gather_object. */
WEFT_API const weft_parallel_result *weft_parallel_gathered(const weft_parallel *p, int64_t *n);

/* ---- checkpoints ---- */
/* Saves a checkpoint of m, o and items [n], as weft_save does. Rank 0 writes the file to `path`;
 * the path of other ranks is not used. All ranks return its status. Adds an item "parallel.shards",
 * a name that items must not have. p NULL: WEFT_EARG. Like torch.save if rank == 0. */
WEFT_API weft_status weft_parallel_save(weft_parallel *p, const char *path, weft_module *m,
                                        weft_optim *o, const weft_checkpoint_item *items,
                                        int64_t n) WEFT_MUST_USE;
/* Loads a checkpoint of weft_parallel_save: rank 0 reads the file and sends it to all ranks; the
 * others do not need it. Each rank passes its m, o and items [n], as to weft_load. Any number of
 * ranks continues with the same bits. If weft_parallel_opts.shards was 0, p gets the file's number
 * of shards. WEFT_EARG: p is NULL, opts.shards was set and differs from the file's, or there are
 * more ranks than shards; nothing is loaded. WEFT_EFORMAT: a file without "parallel.shards". */
WEFT_API weft_status weft_parallel_load(weft_parallel *p, const char *path, weft_module *m,
                                        weft_optim *o, const weft_checkpoint_item *items,
                                        int64_t n) WEFT_MUST_USE;

/* ---- the end ---- */
/* Returns true after any rank got SIGTERM or SIGUSR1, on all ranks from the same update on. The
 * program should then save and end. weft_parallel_new sets the handlers of these signals, unless
 * there is one rank, opts.no_signals is set or the program has its own; then this is false. */
WEFT_API bool weft_parallel_stopping(const weft_parallel *p);

#ifdef __cplusplus
}
#endif
#endif
