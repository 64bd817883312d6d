/* api_plan_run.h - running a plan: its batches as ragged batches, the tokens of a data set for
 * them, the states that a recurrent layer carries from batch to batch, and what a loss is divided
 * by. */
#ifndef WEFT_API_PLAN_RUN_H
#define WEFT_API_PLAN_RUN_H
#include "../io/api_io.h"
#include "../plan/api_plan.h"
#include "api_rnn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- running a plan ---- *
 * A batch of a plan is a ragged batch whose sequences are the plan's segments: the id of each is
 * the sequence that it is of, its offset where it begins, so dropout masks are those of whole
 * sequences. Outputs are those of whole sequences, to the bit, where the plan cuts none or carries
 * states on; gradients, too, but for what would flow over a cut.
 *
 *     weft_carried *kept = weft_carried_new(m, "kept", lstm, &plan);
 *     for (int64_t b = 0; b < plan.batches; b++) {
 *         weft_plan_step s = weft_plan_step_of(w, &plan, b);
 *         weft_tensor *x = weft_embedding_run(table, weft_plan_tokens(&s, &data, -1, 0));
 *         weft_rnn_out out = weft_rnn_run_plan(lstm, x, &s, kept);
 *         .. */
/* Batch `batch` of a plan; the arrays belong to the step, the plan to the program, until the step
 * has ended. placement: of a plan in rows, else its rows are 0. After an error the context has
 * failed, and n is 0. */
typedef struct {
    weft *w;
    const weft_plan *plan;
    int64_t batch;
    weft_lengths lengths;
    weft_placement placement;
} weft_plan_step;
WEFT_API weft_plan_step weft_plan_step_of(weft *w, const weft_plan *plan, int64_t batch);
/* Its tokens of a data set of the sequences that were planned for, [N, columns], or ints [N];
 * copied at once. shift: each token's neighbour so many tokens later in its whole sequence, -1: the
 * one before, which a language model reads; where there is none, `outside`. */
WEFT_API weft_tensor *weft_plan_tokens(const weft_plan_step *step, const weft_dataset *data,
                                       int32_t shift, int32_t outside);
/* A ragged tensor of this batch in the layout `rows` as the plan says, or packed. */
WEFT_API weft_tensor *weft_plan_to_layout(const weft_plan_step *step, weft_tensor *x);
/* The last states of a layer that the next batch carries on: buffers <name>.h and <name>.c of m
 * [layers, states + 1, width], saved with it. For plans that carry as many states as this one, or
 * as it has rows. Owned by the context. Of a plan of weft_plan_split they are that shard's alone:
 * only the rank that works on the shard has them, and weft_parallel_save saves them from there. A
 * plan that carries states, and a layer of two directions, whose second begins at a sequence's end,
 * are an error. */
typedef struct weft_carried weft_carried;
WEFT_API weft_carried *weft_carried_new(weft_module *m, const char *name, weft_rnn *r,
                                        const weft_plan *plan);
/* weft_rnn_run of the batch, x in any of its layouts: from the states that the batch before has
 * left, or zeros, as the plan says; what the next batch needs is kept, detached. kept may be NULL
 * if the plan carries none, and is left alone then. Batches that carry must come one after the
 * other. */
WEFT_API weft_rnn_out weft_rnn_run_plan(weft_rnn *r, weft_tensor *x, const weft_plan_step *step,
                                        weft_carried *kept);
/* After a checkpoint was loaded: what is kept are the states after that batch. */
WEFT_API void weft_carried_set_batch(weft_carried *kept, int64_t batch);
/* The loss of the batch divided as `mean` says, see weft_plan_mean: of BATCH by its own weight, of
 * PLAN by tokens of the plan / batches; of SEQUENCES the loss must have weft_plan_weights for a
 * mask. Rank 0, for weft_backward; 0 of a batch without weight. */
WEFT_API weft_tensor *weft_plan_loss(const weft_plan_step *step, weft_loss loss,
                                     weft_plan_mean mean);
/* 1 / length of its sequence for each token, [N]; len: the lengths that were planned for. */
WEFT_API weft_tensor *weft_plan_weights(const weft_plan_step *step, const int32_t *len);

#ifdef __cplusplus
}
#endif
#endif
