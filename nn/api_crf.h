/* api_crf.h - conditional random fields over the tags of a sequence.
 *
 * Contents: linear-chain conditional random fields. N is the number of tokens. */
#ifndef WEFT_API_CRF_H
#define WEFT_API_CRF_H
#include "api_layers.h"
#include "api_loss.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- linear-chain conditional random fields ---- *
 * A path gives each token a tag and has the score
 *     start[first tag] + sum emissions[t, tag t] + sum transitions[tag t - 1, tag t] + end[last]
 * Its probability is exp(score) / Z, where Z is the sum over all paths. Lafferty et al. 2001. */
typedef struct weft_crf weft_crf;
typedef struct {
    int64_t tags;                    /* number of tags, 1 .. 46340; required */
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
