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
/* Makes a loader as weft_loader_new does, with any planner, which must live as long; lists of opts
 * are copied, and opts may be NULL. Each epoch is a plan of these lengths and options, drawn from
 * the loader's stream. It makes the first plan immediately; if the planner refuses it the context
 * fails. Like DataLoader(batch_sampler=..) of torch. */
WEFT_API weft_loader *weft_plan_loader_new(weft *w, const char *name, int64_t n, const int32_t *len,
                                           const weft_planner *planner,
                                           const weft_plan_opts *opts);
/* Returns the number of the next batch in *plan; -1 at the end of an epoch, and the next call
 * begins another. The loader owns the plan; it is valid until the next epoch. After an error: -1,
 * and *plan is NULL. For planners that cut sequences, for which weft_loader_next is an error. */
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
    const weft_plan *plan;                       /* the program's, not copied */
    int64_t batch;                               /* its number in the plan */
    weft_lengths lengths;                        /* of the segments */
    weft_placement placement;                    /* of a plan in rows; otherwise rows is 0 */
} weft_plan_step;
/* Returns one batch of a plan. The arrays belong to the step; the plan is not copied, so the
 * program keeps it until the step has ended. Errors: no such batch; lengths.n is 0 and the context
 * has failed. */
WEFT_API weft_plan_step weft_plan_step_of(weft *w, const weft_plan *plan, int64_t batch);
/* Returns the tokens of the batch from a data set of the planned sequences, a ragged copy: reals
 * [N, columns], or ints [N]. shift: the distance to the token that is returned for each token, in
 * its whole sequence; -1 is the token before, the input of a language model. Outside the sequence:
 * `outside`. Errors: a planned sequence that the data set lacks or has with another length; a
 * failed read. */
WEFT_API weft_tensor *weft_plan_tokens(const weft_plan_step *step, const weft_dataset *data,
                                       int32_t shift, int32_t outside);
/* States that one batch leaves for the next: buffers <name>.h and <name>.c of m [layers, states +
 * 1, width], which checkpoints hold. */
typedef struct weft_carried weft_carried;
/* Makes a store for the states of r, zeros at first, with room for each batch of this plan; it also
 * fits plans that carry no more states and have no more rows. m and name are those of a submodule.
 * Owned by the context. With weft_plan_split each shard has its own, which only the rank of the
 * shard holds; weft_parallel_save saves them from there. Errors: NULL; a plan that carries states
 * with a layer of two directions. Like a stateful layer of Keras. */
WEFT_API weft_carried *weft_carried_new(weft_module *m, const char *name, weft_rnn *r,
                                        const weft_plan *plan);
/* Runs a layer over the batch, x in any of its layouts, from the states that the batch before has
 * left, or zeros, as the plan says. Keeps the states for the next batch, detached. kept may be NULL
 * if the plan carries nothing, and is unchanged then. Result and failure are as in weft_rnn_run.
 * Errors: the batch carries states, and the last run was not of the batch before. */
WEFT_API weft_rnn_out weft_rnn_run_plan(weft_rnn *r, weft_tensor *x, const weft_plan_step *step,
                                        weft_carried *kept);
/* Declares that the carried states are those after that batch. Call it after loading a checkpoint:
 * the file has the states, but not the number of their batch. Negative: after none. */
WEFT_API void weft_carried_set_batch(weft_carried *kept, int64_t batch);
/* Divides the loss of the batch as `mean` says (see weft_plan_mean): BATCH by its own weight, PLAN
 * by the mean number of tokens of a batch of the plan, SEQUENCES by the mean number of sequences;
 * its loss must have weft_plan_weights as mask. Rank 0, for weft_backward; 0 for a batch without
 * weight. Like num_items_in_batch of Transformers. */
WEFT_API weft_tensor *weft_plan_loss(const weft_plan_step *step, weft_loss loss,
                                     weft_plan_mean mean);
/* Returns 1 / length of its sequence for each token of the batch, ragged [N], a constant, as the
 * mask of a loss for WEFT_MEAN_OF_SEQUENCES. len: the lengths that were planned. */
WEFT_API weft_tensor *weft_plan_weights(const weft_plan_step *step, const int32_t *len);

#ifdef __cplusplus
}
#endif
#endif
