/* decode.h - what greedy, sampled and beam decoding share: the loop's memory and checks, and the k best of
 * many scores. */
#ifndef WEFT_DECODE_H
#define WEFT_DECODE_H
#include "core/best.h"
#include "rnn/rnn.h"

/* Every step's tensors end before the next one, so that memory does not grow; the states go over in two
 * buffers in turn, because a new state may be made of the one before, even a view of it. */
typedef struct weft__decoder {
    weft *w; const char *name;
    const weft_decode_opts *o;
    weft_decode_step_fn *step; void *user;
    /* rows = n beams; classes: known after the first step; at: steps taken */
    int64_t n, beams, rows, classes, at;
    weft_state first;
    struct { bool is; weft__form f; real *buffer[2]; } state[2];  /* h, c */
    /* of the decoding; after the first step, with the buffers below it */
    weft_mark start, mark;
    bool recording, training;
    weft_decoded out;
} weft__decoder;

/* Checks everything, makes room for the result; false on failure. Always followed by weft__decoder_end. */
bool weft__decoder_begin(weft__decoder *, int64_t n, int64_t beams, weft_state first);
/* The scores [rows, classes] after tokens [rows] (host); before, row r takes over the state of row parent[r]
 * (NULL: its own). NULL on failure. They live until the next step. */
weft_tensor *weft__decoder_step(weft__decoder *, const int32_t *tokens, const int32_t *parent);
/* A score that is no number: fails, naming step and sequence. */
void weft__decoder_bad(weft__decoder *, int64_t sequence);
/* The result; on failure an empty one. */
weft_decoded weft__decoder_end(weft__decoder *);
/* Beam search, begin and end with it, by a decoder that has its context, name, options, step and user. */
weft_decoded weft__decode_beams(const weft__decoder *, int64_t n, weft_state first);
#endif
