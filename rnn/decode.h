/* decode.h - the loop that greedy, sampled and beam decoding share: memory, checks, active rows. */
#ifndef WEFT_DECODE_H
#define WEFT_DECODE_H
#include "core/top_k.h"
#include "rnn/rnn.h"

/* Upper bound of a log probability: 0 with tolerance for rounding. */
#define WEFT__LOG_P_MOST 1e-4

/* The active hypotheses, by sequence: last token, sequence, and the row of the previous step. */
typedef struct { int64_t n; int32_t *token, *sequence, *parent; } weft__active_rows;

/* State of a decoding loop. Tensors of a step end before the next step, so memory does not grow. States are
 * copied to two buffers in turn, because a new state may be computed from the previous one, or be a view of
 * it. */
typedef struct weft__decoder {
    weft *w; const char *name;
    const weft_decode_opts *o;
    weft_decode_step_fn *step; void *user;
    /* beams: maximum rows of a sequence. best: returned hypotheses of a sequence. classes: known after the
     * first step. steps: number of steps so far. */
    int64_t n, beams, best, classes, steps;
    /* Rows of this step, and of the next one, which is being filled. */
    weft__active_rows now, next;
    int32_t *row_count;                          /* [n] rows of each sequence in this step */
    int64_t *prompt_offset;                      /* [n] offset of each prompt's tokens */
    weft_state first, new_state;                 /* new_state: the states after the last step */
    struct { bool given; weft__form f; real *buffer[2]; } state[2];  /* h and c */
    /* start: mark of the whole decoding. mark: after the first step and the buffers. */
    weft_mark start, mark;
    bool recording, training;
    weft_decoded result;
} weft__decoder;

/* Allocates the arrays of a result for its n, best and limit. Returns false if memory is exhausted. */
bool weft__decoded_new(weft *, const char *name, weft_decoded *);
/* Checks the arguments, allocates the result and fills `next` with the first rows. Returns false on failure.
 * Call decoder_end in either case. */
bool weft__decoder_begin(weft__decoder *, int64_t n, weft_state first);
/* Makes the rows of `next` current, empties `next` and calls the step function. Returns the log probabilities
 * [rows, classes], or with .log_probabilities the function's result, until the next step; or NULL. */
weft_tensor *weft__decoder_step(weft__decoder *);
/* Adds a row to the next step. */
void weft__decoder_add_row(weft__decoder *, int32_t token, int64_t sequence, int64_t parent);
/* Returns the next token of the sequence's prompt at the last step, or -1 after the prompt's end. */
int32_t weft__prompt_token(const weft__decoder *, int64_t sequence);
/* Returns the number of generated tokens of the sequence, including the last step's. */
int64_t weft__decoder_length(const weft__decoder *, int64_t sequence);
/* Fails the context for a score that is NaN, with step and sequence. */
void weft__fail_scores(weft__decoder *, int64_t sequence);
/* Returns the result and ends the loop. The result is empty on failure. */
weft_decoded weft__decoder_end(weft__decoder *);
/* Runs the whole beam search. The decoder has its context, name, options, step and user. */
weft_decoded weft__decode_beams(const weft__decoder *, int64_t n, weft_state first);
#endif
