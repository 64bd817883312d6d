/* decode.h - what greedy, sampled and beam decoding share: the loop's memory and checks, and the rows that go
 * on from step to step. */
#ifndef WEFT_DECODE_H
#define WEFT_DECODE_H
#include "core/top_k.h"
#include "rnn/rnn.h"

/* what a log probability may be: 0, but for rounding */
#define WEFT__LOG_P_MOST 1e-4

/* The hypotheses that are alive, those of a sequence together: the last token of each, whose it is, and the
 * row of the step before that it continues. */
typedef struct { int64_t n; int32_t *token, *sequence, *parent; } weft__rows_alive;

/* Every step's tensors end before the next one, so that memory does not grow; the states go over in two
 * buffers in turn, because a new state may be made of the one before, even a view of it. */
typedef struct weft__decoder {
    weft *w; const char *name;
    const weft_decode_opts *o;
    weft_decode_step_fn *step; void *user;
    /* beams: rows of a sequence at most; best: hypotheses of it that are given; classes: known after the
     * first step; at: steps taken */
    int64_t n, beams, best, classes, at;
    /* of this step, and of the next one, which is being put together */
    weft__rows_alive now, next;
    int32_t *rows_of;                            /* [n] of this step */
    int64_t *fed;                                /* [n] where in the prompts each one's tokens begin */
    weft_state first, made;                      /* made: by the newest step */
    struct { bool is; weft__form f; real *buffer[2]; } state[2];  /* h, c */
    /* of the decoding; after the first step, with the buffers below it */
    weft_mark start, mark;
    bool recording, training;
    weft_decoded out;
} weft__decoder;

/* Checks everything, makes room for the result, and has the first rows in `next`; false on failure. Always
 * followed by weft__decoder_end. */
bool weft__decoder_begin(weft__decoder *, int64_t n, weft_state first);
/* `next` are the rows now: their log probabilities [rows, classes], or what the step says they are. NULL on
 * failure. They live until the next step; `next` is empty. */
weft_tensor *weft__decoder_step(weft__decoder *);
/* One more row of the next step. */
void weft__decoder_go_on(weft__decoder *, int32_t token, int64_t sequence, int64_t parent);
/* Of a sequence, at the newest step: the token of its prompt that comes next; -1: it is written on. */
int32_t weft__decoder_given(const weft__decoder *, int64_t sequence);
/* How many tokens of its own it has, the newest step's included. */
int64_t weft__decoder_length(const weft__decoder *, int64_t sequence);
/* A score that is no number: fails, naming step and sequence. */
void weft__decoder_bad(weft__decoder *, int64_t sequence);
/* The result; on failure an empty one. */
weft_decoded weft__decoder_end(weft__decoder *);
/* Beam search, begin and end with it, by a decoder that has its context, name, options, step and user. */
weft_decoded weft__decode_beams(const weft__decoder *, int64_t n, weft_state first);
#endif
