/* api_ctc.h - losses of whole label sequences, and their best paths.
 *
 * Contents: connectionist temporal classification. N is the number of tokens (steps), n that of
 * sequences. */
#ifndef WEFT_API_CTC_H
#define WEFT_API_CTC_H
#include "api_rnn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- connectionist temporal classification ---- *
 * A path chooses a class at each step. To get its labels, merge equal neighbours, then remove the
 * blanks: with blank 0 the path 0 3 3 0 3 means the labels 3 3. So m labels need m + r steps if r
 * of them equal the label before. Graves et al. 2006. */
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
 * classes]; weft applies the softmax. labels: ints, ragged [M], with the same number of sequences
 * and other lengths. Sequences may be without labels (all blanks) or without steps (loss 0).
 * Computed with logarithms, so that nothing underflows. If no path is possible because of logits of
 * -inf, the loss is infinite and the gradient 0. Second derivatives run step by step in operators:
 * slow for long sequences. Unlike reduction="mean" in PyTorch, nothing is divided by the number of
 * labels.
 * Errors: labels that do not fit the steps, unless skip_infeasible; a label out of range or equal
 * to blank; the message names the sequence. On a GPU the error comes at the next wait. Like
 * torch.nn.CTCLoss. */
WEFT_API weft_loss weft_ctc(weft_tensor *logits, weft_tensor *labels, const weft_ctc_opts *opts);
/* Returns the loss of each sequence, times its mask, plain [n]. weight: NULL, or receives the
 * weights [n]; a sequence skipped as infeasible has loss and weight 0. Errors: as weft_ctc; both
 * results are then inert. Like reduction="none". */
WEFT_API weft_tensor *weft_ctc_losses(weft_tensor *logits, weft_tensor *labels,
                                      const weft_ctc_opts *opts, weft_tensor **weight);

/* Returns the most probable path that means the labels (Viterbi), so the steps of each label: the
 * class of each step, ints, ragged [N], of the batch of the logits. logits, labels, blank: as in
 * weft_ctc. If paths are equally probable, each label starts as early as possible. A sequence
 * without steps has an empty path. Runs on the host. No gradient. The path's log probability is the
 * sum of weft_gather(weft_log_softmax(logits, -1, NULL), path). Errors: as weft_ctc without
 * skip_infeasible; NaN or +inf; logits of -inf that leave no path. Like torchaudio's
 * forced_align. */
WEFT_API weft_tensor *weft_ctc_align(weft_tensor *logits, weft_tensor *labels, int32_t blank);

/* Takes the most probable class of each step and returns the labels that this path means, one
 * hypothesis for each sequence. Of equal classes the lower one wins. .score: log probability of the
 * path. .limit: the largest number of steps. logits: reals, ragged [N, classes]. The caller frees
 * the result by weft_decoded_free. On error n is 0, its arrays are NULL, and the context has
 * failed. Errors: other shapes, blank out of range, NaN. */
WEFT_API weft_decoded weft_ctc_greedy(weft_tensor *logits, int32_t blank);

/* Writes score [classes]: that of each class as the next label after label [n], such as the log
 * probability by a language model. score is 0 before. -inf forbids a label. It is called for each
 * prefix that enters the search, also for n = 0; equal prefixes must get equal scores. */
typedef void weft_ctc_scorer(void *user, int64_t sequence, const int32_t *label, int64_t n,
                             double *score);
typedef struct {
    int32_t          blank;     /* class of the blank, 0 .. classes - 1 */
    int              beams;     /* prefixes kept for each sequence, at most 65536; 0 means 16 */
    int              best;      /* hypotheses returned for each sequence, 1 .. beams; 0 means 1 */
    weft_ctc_scorer *scorer;    /* NULL: none */
    void            *user;      /* passed to the scorer */
    double           weight;    /* factor of the scorer's scores; 0 means 1 */
    double           bonus;     /* added for each label */
} weft_ctc_beam_opts;
/* Returns the most probable labels by prefix beam search, which adds the paths that mean the same
 * labels. .score: log p(labels | logits) + weight * sum of the scorer's scores + bonus * number of
 * labels. p is a lower bound, and exact if the search dropped no prefix. If scores are equal, the
 * prefix with the better beginning wins, then the lower class. Fewer than .best may exist. opts
 * NULL: the defaults. Runs on the host. .limit, memory and errors: as weft_ctc_greedy; also an
 * option out of range; NaN or +inf from the scorer. Graves 2012, Hannun et al. 2014. */
WEFT_API weft_decoded weft_ctc_beam(weft_tensor *logits, const weft_ctc_beam_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
