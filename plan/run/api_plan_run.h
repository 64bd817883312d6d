/* api_plan_run.h - running a plan: loaders by a planner, batches, tokens, carried states, the loss.
 *
 * Contents: loaders by a planner, running a plan. */
#ifndef WEFT_API_PLAN_RUN_H
#define WEFT_API_PLAN_RUN_H
#include "../../rnn/api_rnn.h"
#include "../api_plan.h"
#include "api_loader.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- loaders by a planner ---- */
/* Makes a loader of n sequences of the lengths len [n], as weft_loader_new does, with batches by
 * any planner. planner must outlive the loader; the other arguments are copied. opts NULL: all
 * defaults. Each epoch is a new plan of len by opts. Without opts->shuffle all plans are equal,
 * unless the planner always draws, like random. Draws come from the context's stream
 * "loader.<name>"; opts->seed, epoch and stream are not read. Makes the first plan immediately.
 * Errors, with an inert loader: those of weft_loader_new; the planner refuses the plan. Like
 * DataLoader(batch_sampler=..) of torch. */
WEFT_API weft_loader *weft_plan_loader_new(weft *w, const char *name, int64_t n, const int32_t *len,
                                           const weft_planner *planner,
                                           const weft_plan_opts *opts);
/* Returns the number of the next batch in *plan, from 0. Returns -1 at the end of an epoch; the
 * next call begins another. Works with every loader; weft_loader_next is an error if the planner
 * may cut sequences. The loader owns the plan. The call after -1 replaces the plan, so first end
 * the step of its last batch by weft_clear. After an error: -1, and *plan is NULL. */
WEFT_API int64_t weft_loader_next_batch(weft_loader *l, const weft_plan **plan);

/* ---- running a plan ---- *
 * A batch of a plan is a ragged batch whose sequences are the plan's segments. The id of a segment
 * is its sequence and its offset is where it begins, so dropout masks are those of whole sequences.
 * Outputs are those of whole sequences, to the bit, where the plan cuts none or carries states on.
 * So are gradients, except for gradients that would flow over a cut.
 *
 *     weft_carried *kept = weft_carried_new(m, "kept", lstm, &plan);
 *     for (int64_t b = 0; b < plan.batches; b++) {
 *         weft_plan_step s = weft_plan_step_of(w, &plan, b);
 *         weft_tensor *x = weft_embedding_run(table, weft_plan_tokens(&s, &data, -1, 0));
 *         weft_rnn_out out = weft_rnn_run_plan(lstm, x, &s, kept);
 *         .. */
typedef struct {
    weft *w;
    const weft_plan *plan;       /* not copied; the program keeps it until the step has ended */
    int64_t batch;               /* number of the batch in the plan */
    weft_lengths lengths;        /* lengths, ids and offsets of the segments */
    weft_placement placement;    /* places of the segments if plan->in_rows; otherwise rows is 0 */
} weft_plan_step;
/* Returns batch number `batch` of a plan. The arrays belong to the step. The plan is not copied, so
 * the program keeps it until the step has ended. Error: no such batch; lengths.n is then 0 and the
 * context has failed. */
WEFT_API weft_plan_step weft_plan_step_of(weft *w, const weft_plan *plan, int64_t batch);
/* Returns the tokens of the batch from a data set of the planned sequences, a ragged copy in the
 * layout CONCAT: reals [N, columns], or ints [N]. For token t of a sequence it returns token t +
 * shift of the whole sequence; -1 gives the token before, the input of a language model. Beyond the
 * ends of the sequence it returns `outside`, in a row of reals in each column. Errors: a planned
 * sequence that is missing or too short in the data set; a failed read. */
WEFT_API weft_tensor *weft_plan_tokens(const weft_plan_step *step, const weft_dataset *data,
                                       int32_t shift, int32_t outside);
/* States that one batch leaves for the next: buffers <name>.h and, if the layer has c, <name>.c of
 * m, [layers, states + 1, width], which checkpoints hold. The last of the states + 1 is zeros. */
typedef struct weft_carried weft_carried;
/* Makes a store for the states that r carries from batch to batch, zeros at first: a submodule
 * `name` of m, owned by the context. `states` is the most states that a batch of `plan` carries; in
 * a plan in rows at least the rows of a batch. The store also serves another plan of the same
 * shard, such as that of the next epoch, whose batches carry at most that many. With
 * weft_plan_split all ranks make a store for each part; only the rank of a shard fills its store,
 * and weft_parallel_save saves it from there. Errors, with an inert store: an argument is NULL; a
 * plan that carries states with a layer of two directions. Like a stateful layer of Keras. */
WEFT_API weft_carried *weft_carried_new(weft_module *m, const char *name, weft_rnn *r,
                                        const weft_plan *plan);
/* Runs a layer over the batch; x is ragged, in any layout. Each segment starts with the state that
 * its .carry names, or with zeros. Stores in kept, detached, the states with which the next batch
 * starts. If the next batch carries no states, or does not exist, kept is unchanged. kept may be
 * NULL if the plan carries no states. y has the layout ROWS for a plan in rows, otherwise PACKED;
 * .last has a state for each segment. Errors: those of weft_rnn_run; the batch carries states, and
 * the last run with kept was not of the batch before. */
WEFT_API weft_rnn_out weft_rnn_run_plan(weft_rnn *r, weft_tensor *x, const weft_plan_step *step,
                                        weft_carried *kept);
/* Declares that the carried states are those after batch number `batch`. Call this after loading a
 * checkpoint: the file has the states, but not the number of their batch. Negative: after none. */
WEFT_API void weft_carried_set_batch(weft_carried *kept, int64_t batch);
/* Returns loss.sum divided by a number, rank 0, for weft_backward. BATCH: by loss.weight; 0 if the
 * weight is 0. PLAN: by the tokens in segments of step->plan / its batches, masked tokens included;
 * for a part of weft_plan_split the tokens of that part. SEQUENCES: by the sequences of the whole
 * plan / its batches, without empty sequences; compute the loss with weft_plan_weights as its mask.
 * weft_parallel_add takes the loss itself, undivided. Like num_items_in_batch of Transformers. */
WEFT_API weft_tensor *weft_plan_loss(const weft_plan_step *step, weft_loss loss,
                                     weft_plan_mean mean);
/* Returns for each token of the batch 1 / the length of its whole sequence: ragged reals [N],
 * CONCAT, without gradient. Use them as the mask of a loss, and pass that loss to weft_plan_loss
 * with WEFT_MEAN_OF_SEQUENCES. len [plan->sequences]: the lengths that were planned. Errors: len
 * NULL; other lengths. */
WEFT_API weft_tensor *weft_plan_weights(const weft_plan_step *step, const int32_t *len);

#ifdef __cplusplus
}
#endif
#endif
