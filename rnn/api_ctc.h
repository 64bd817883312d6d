/* api_ctc.h - losses of whole label sequences, and their best paths.
 *
 * Contents: connectionist temporal classification, conditional random fields. N is the number of
 * tokens (steps), n that of sequences. */
#ifndef WEFT_API_CTC_H
#define WEFT_API_CTC_H
#include "api_rnn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- connectionist temporal classification ---- *
 * A path chooses a class at each step. Its labels are its classes without repetitions and then
 * without blanks: with blank 0 the path 0 3 3 0 3 means the labels 3 3. So m labels of which r
 * equal their predecessor need m + r steps. Graves et al. 2006. */
typedef struct {
    int32_t      blank;              /* class of the blank, 0 .. classes - 1 */
    /* A sequence with too few steps for its labels has loss 0 and weight 0; false: it is an error.
     * Like zero_infinity. */
    bool         skip_infeasible;
    weft_tensor *mask;               /* reals, plain [n]: a factor for each sequence; NULL: 1. Where
                                      * it is 0, neither logits nor labels are read. A constant */
} weft_ctc_opts;
/* Sums -log p(labels | logits) over the sequences, p being the sum over all paths that mean the
 * labels. Its weight is the number of sequences, or the sum of the mask. logits: reals, ragged [N,
 * classes]; weft applies the softmax. labels: ints, ragged [M], as many sequences as logits, of
 * lengths of their own. Sequences may be without labels (all blanks) or without steps (loss 0).
 * Computed with logarithms, so that nothing underflows. If no path is possible because of logits of
 * -inf, the loss is infinite and the gradient 0. Second derivatives run step by step in operators:
 * slow for long sequences. Unlike reduction="mean" in PyTorch, nothing is divided by the number of
 * labels.
 * Errors: labels that do not fit the steps, unless skip_infeasible; a label out of range or equal
 * to blank; the message names the sequence. On a GPU the error comes at the next wait. Like
 * torch.nn.CTCLoss. */
WEFT_API weft_loss weft_ctc(weft_tensor *logits, weft_tensor *labels, const weft_ctc_opts *opts);

/* Takes the most probable class of each step and returns the labels that this path means, one
 * hypothesis for each sequence. Of equal classes the lower one wins. .score: log probability of the
 * path. .limit: the largest number of steps. logits: reals, ragged [N, classes]. The caller frees
 * the result by weft_decoded_free. On error n is 0, its arrays are NULL, and the context has
 * failed. Errors: other shapes, blank out of range, NaN. */
WEFT_API weft_decoded weft_ctc_greedy(weft_tensor *logits, int32_t blank);

/* ---- linear-chain conditional random fields ---- *
 * A path gives each token a tag and has the score
 *     start[first tag] + sum emissions[t, tag t] + sum transitions[tag t - 1, tag t] + end[last]
 * Its probability is exp(score) / Z, where Z is the sum over all paths. Lafferty et al. 2001. */
typedef struct weft_crf weft_crf;
typedef struct {
    int64_t tags;                    /* number of tags; required */
} weft_crf_opts;
/* Makes the parameters start_transitions [tags], end_transitions [tags] and transitions [tags,
 * tags], uniform in +-0.1, below a new module of m. transitions[i, j] belongs to tag j after tag i.
 * opts is required. The context owns the result until weft_close. Errors: as weft_linear_new; the
 * layer is then inert, never NULL. Like CRF of pytorch-crf. */
WEFT_API weft_crf *weft_crf_new(weft_module *m, const char *name, const weft_crf_opts *opts);
/* Sums log Z - score over the sequences. Its weight is the number of tokens. emissions: reals,
 * ragged [N, tags]. tags: ints, ragged [N] of the same batch, 0 .. tags - 1. Operators compute it
 * step by step. A sequence without tokens has loss 0. Errors: other shapes; a tag out of range; c
 * NULL. Like reduction="token_mean". */
WEFT_API weft_loss weft_crf_loss(weft_crf *c, weft_tensor *emissions, weft_tensor *tags);
/* Returns the most probable path (Viterbi): ints, ragged [N], of the batch of emissions. Of equal
 * scores the lower tag wins. Runs on the host. No gradient. Errors: as weft_crf_loss; NaN. Like
 * CRF.decode. */
WEFT_API weft_tensor *weft_crf_best(weft_crf *c, weft_tensor *emissions);
/* Returns the probability of each tag at each token, over all paths: reals, ragged [N, tags], rows
 * of sum 1. It is the gradient of log Z by the emissions. While recording, it can be differentiated
 * again. Errors: as weft_crf_loss. */
WEFT_API weft_tensor *weft_crf_marginals(weft_crf *c, weft_tensor *emissions);

#ifdef __cplusplus
}
#endif
#endif
