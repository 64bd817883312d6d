/* api_ragged.h - ragged batches by their rows: layouts, pads, joined and split sequences.
 *
 * The functions are operators (see api_autograd.h) and take reals or ints.
 * weft_concat_sequences, weft_split_sequences and weft_pairs work between different batches. */
#ifndef WEFT_API_RAGGED_H
#define WEFT_API_RAGGED_H
#include "api_autograd.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- layouts ---- */
/* Stores a ragged tensor in the layout PACKED or CONCAT, by a copy; without a copy if it has that
 * layout. Errors: a plain tensor; another value of layout, such as ROWS (weft_to_rows). */
WEFT_API weft_tensor *weft_to_layout(weft_tensor *ragged, weft_layout layout);
/* Stores a ragged tensor in the layout ROWS: [rows * width, ..], several whole sequences in each
 * row, pads 0. It copies rows and placement.
 * Errors: sequences that overlap or leave their row. Like sequence packing. */
WEFT_API weft_tensor *weft_to_rows(weft_tensor *ragged, const weft_placement *placement);

/* ---- rows of other layers ---- */
/* Makes a ragged tensor of like's batch and layout from plain rows [tokens, ..] in the user's
 * order: one row for each token, without pads. A copy; a view if like is CONCAT. Use it for
 * rows of another layer, such as a vector for the letters of each word. weft_ragged_like takes rows
 * in like's order. Errors: not a row for each token; rows of weft_plain in another order. */
WEFT_API weft_tensor *weft_ragged_rows(weft_tensor *plain, weft_tensor *like);
/* Copies row s of a plain tensor [n, ..] to each token of sequence s, in the user's order. The
 * result has like's batch and layout; pads of ROWS are 0. Errors: not a row for each sequence of
 * like. Like x.expand. */
WEFT_API weft_tensor *weft_broadcast_to_tokens(weft_tensor *per_sequence, weft_tensor *like);
/* Joins sequence s of b to the end of sequence s of a, by a copy in the layout CONCAT. a and b have
 * equal numbers of sequences and rows of one shape and type. The result has a's ids, offsets 0. */
WEFT_API weft_tensor *weft_concat_sequences(weft_tensor *a, weft_tensor *b);
/* Splits each sequence s of joined after first->len[s] tokens: *a gets the tokens before, *b those
 * after, as copies in the layout CONCAT. *a and *b have the ids of joined, and offsets 0. So
 * dropout of *b differs from dropout of the uncut sequence. first->id and first->offset are not
 * read. a or b may be NULL. On error *a and *b are inert. Errors: not a length for each sequence;
 * one beyond its sequence. */
WEFT_API void weft_split_sequences(weft_tensor *joined, const weft_lengths *first, weft_tensor **a,
                                   weft_tensor **b);

/* ---- lists of sequences: n >= 1 plain tensors [T, ..], which differ at most in T >= 0 ---- */
/* Packs n sequences of any lengths to one ragged tensor in the layout PACKED, by a copy. Sequence s
 * has the id s. Like torch.nn.utils.rnn.pack_sequence(enforce_sorted=False). */
WEFT_API weft_tensor *weft_pack_sequence(weft_tensor *const *sequences, int64_t n);
/* Pads n sequences, reals or ints, to a plain tensor [n, longest, ..]. Pads get the value `fill`;
 * align is the side of the data. Like torch.nn.utils.rnn.pad_sequence(batch_first=True). */
WEFT_API weft_tensor *weft_pad_sequence(weft_tensor *const *sequences, int64_t n, double fill,
                                        weft_align align);
/* Copies each sequence to a plain tensor [T, ..] of the step, and writes the n tensors to the
 * program's array `sequences` [n] in the user's order. Errors, which write nothing: `ragged` is not
 * ragged; sequences is NULL. Like torch.nn.utils.rnn.unpack_sequence. */
WEFT_API void weft_unpack_sequence(weft_tensor *ragged, weft_tensor **sequences);

/* ---- PyTorch's PackedSequence ---- */
/* Rows step by step, in each step in sorted order: the longest sequence first, ties in the user's
 * order. Arrays are in host memory. ids and offsets: as in weft_lengths, in the user's order. */
typedef struct {
    weft_tensor *data;                           /* plain [sum of batch_sizes, ..] */
    const int32_t *batch_sizes;                  /* [steps]; [t]: sequences longer than t tokens */
    const int32_t *sorted_indices;               /* [k]: user's number of sequence k as sorted */
    const int32_t *unsorted_indices;             /* [s]: sorted position of the user's sequence s */
    const int64_t *ids;                          /* [sequences], or NULL: 0, 1, .. */
    const int32_t *offsets;                      /* [sequences], or NULL: 0 */
    int64_t steps;                               /* tokens of the longest sequence */
    int64_t sequences;                           /* extent of the four arrays above */
} weft_packed_sequence;
/* Returns the fields of a ragged tensor of any layout. The step owns data and arrays; data is a
 * view if the layout is PACKED, otherwise a copy. On error data is inert and the rest 0. Like
 * torch.nn.utils.rnn.PackedSequence. */
WEFT_API weft_packed_sequence weft_packed_sequence_of(weft_tensor *ragged);
/* Makes a ragged tensor in the layout PACKED from data and arrays. It copies the arrays. weft sorts
 * sequences of equal length in the user's order. If these arrays do so too, the result is a view of
 * data, otherwise a copy. One of the two index arrays is enough. If both are NULL, the user's order
 * is the sorted order. Errors: data that are not plain; arrays that do not agree. Like
 * PackedSequence(data, ..). */
WEFT_API weft_tensor *weft_ragged_of(const weft_packed_sequence *packed);

/* ---- pads of plain tensors [n, T, ..] ---- */
/* Makes a plain mask of reals [n, T], 1 for data and 0 in pads. align: side of the data. total: T;
 * 0: the longest length. Errors: another total below the longest length; a length below 0. */
WEFT_API weft_tensor *weft_length_mask(weft *w, const weft_lengths *lengths, int64_t total,
                                       weft_align align);
/* Copies a plain padded tensor [n, T, ..] and moves the data of each sequence from the side `from`
 * to the side `to`. Pads of the result are 0. Errors: not n lengths, or one outside 0 .. T. */
WEFT_API weft_tensor *weft_move_pads(weft_tensor *padded, const weft_lengths *lengths,
                                     weft_align from, weft_align to);
/* Checks that all pads of a plain [n, T, ..] are 0 and returns true; NaN is not 0. If a pad is not
 * 0, returns false and fails the context; the message names sequence and step. align is the side of
 * the data. It waits for the device and reads the whole tensor, so call it for the first batch
 * only. Errors, with false: not n lengths, or one outside 0 .. T. */
WEFT_API bool weft_pads_are_zero(weft_tensor *padded, const weft_lengths *lengths,
                                 weft_align align);

/* ---- pairs of tokens ---- */
/* Makes rows for all pairs of a query and a key of the same sequence. q [Nq, ..] and k [Nk, ..] are
 * ragged, with equal numbers of sequences; lengths and rows may differ. *q_of_pair [P, ..] gets the
 * query of each pair, *k_of_pair [P, ..] the key. P is the sum of queries times keys over the
 * sequences. The results are copies in the layout CONCAT. Their batch is new: one sequence for each
 * query, in the user's order, with one token for each key; ids are 0 .. Nq - 1. q_of_pair or
 * k_of_pair may be NULL. On error both results are inert. Your own attention: score the rows,
 * weft_softmax along axis 0, multiply by the values: *k_of_pair of a second weft_pairs(q, v), v of
 * k's batch. weft_pool by SUM then gives a plain [Nq, ..], weft_ragged_rows(.., q) a ragged one.
 * Errors: unequal numbers of sequences; 2^31 - 1 pairs or more. */
WEFT_API void weft_pairs(weft_tensor *q, weft_tensor *k, weft_tensor **q_of_pair,
                         weft_tensor **k_of_pair);

#ifdef __cplusplus
}
#endif
#endif
