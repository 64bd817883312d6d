/* api_ragged.h - ragged batches by their rows: layouts, pads, joined and split sequences.
 *
 * Contents: layouts, rows of other layers, lists of sequences, PyTorch's PackedSequence, pads,
 * pairs of tokens. */
#ifndef WEFT_API_RAGGED_H
#define WEFT_API_RAGGED_H
#include "api_autograd.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- layouts ---- */
/* Stores a ragged tensor in another layout: WEFT_PACKED or WEFT_CONCAT. */
WEFT_API weft_tensor *weft_to_layout(weft_tensor *ragged, weft_layout layout);
/* Stores a ragged tensor in the layout ROWS: [rows * width, ..], several whole sequences in each
 * row, pads 0. Errors: a placement with sequences that overlap. Like sequence packing. */
WEFT_API weft_tensor *weft_to_rows(weft_tensor *ragged, const weft_placement *placement);

/* ---- rows of other layers ---- */
/* Makes a ragged tensor of like's batch, in like's layout, from plain rows [tokens, ..] in the
 * user's order. Use it for one row per token that another layer made, such as a vector of the
 * characters of each word. Reals or ints. Errors: not one row for each token; rows of weft_plain
 * from another layout. */
WEFT_API weft_tensor *weft_ragged_rows(weft_tensor *plain, weft_tensor *like);
/* Copies row s of a plain tensor [n, ..] to every token of sequence s, in like's batch and layout.
 * Reals or ints. Like x.expand. */
WEFT_API weft_tensor *weft_broadcast_to_tokens(weft_tensor *per_sequence, weft_tensor *like);
/* Joins each sequence of b to the end of that of a. Both have the same number of sequences; ids are
 * a's. */
WEFT_API weft_tensor *weft_concat_sequences(weft_tensor *a, weft_tensor *b);
/* Splits each sequence: *a gets its first lengths.len[s] tokens, *b the rest. */
WEFT_API void weft_split_sequences(weft_tensor *joined, const weft_lengths *first, weft_tensor **a,
                                   weft_tensor **b);

/* ---- lists of sequences: plain tensors [T, ..], one or more, T of 0 or more ---- */
/* Packs n sequences to one ragged tensor. Like torch.nn.utils.rnn.pack_sequence. */
WEFT_API weft_tensor *weft_pack_sequence(weft_tensor *const *sequences, int64_t n);
/* Pads n sequences to a plain tensor [n, longest, ..]. Like torch.nn.utils.rnn.pad_sequence. */
WEFT_API weft_tensor *weft_pad_sequence(weft_tensor *const *sequences, int64_t n, double fill,
                                        weft_align align);
/* Returns the sequences of a ragged tensor in sequences [n], in the user's order. Like
 * torch.nn.utils.rnn.unpack_sequence. */
WEFT_API void weft_unpack_sequence(weft_tensor *ragged, weft_tensor **sequences);

/* ---- PyTorch's PackedSequence ---- */
/* Rows step by step, the longest sequence first, ties in the user's order. Arrays are in host
 * memory. ids and offsets are those of weft_lengths, in the user's order. */
typedef struct {
    weft_tensor *data;                           /* plain [sum of batch_sizes, ..] */
    const int32_t *batch_sizes;                  /* [steps] sequences longer than t */
    const int32_t *sorted_indices;               /* [sequences] the sequence in each place */
    const int32_t *unsorted_indices;             /* [sequences] the place of each sequence */
    const int64_t *ids;                          /* [sequences], or NULL: 0, 1, .. */
    const int32_t *offsets;                      /* [sequences], or NULL: 0 */
    int64_t steps;
    int64_t sequences;
} weft_packed_sequence;
/* Returns the fields of a ragged tensor of any layout. The step owns the arrays. Like
 * torch.nn.utils.rnn.PackedSequence. */
WEFT_API weft_packed_sequence weft_packed_sequence_of(weft_tensor *ragged);
/* Makes a ragged tensor in the layout PACKED from data and arrays, which it copies. One of the two
 * index arrays is enough; both NULL: the sequences are in sorted order. Errors: arrays that do not
 * agree. Like PackedSequence(data, ..). */
WEFT_API weft_tensor *weft_ragged_of(const weft_packed_sequence *packed);

/* ---- pads of plain tensors [n, T, ..] ---- */
/* Makes a mask [n, T] with 1 where the data are and 0 in pads. */
WEFT_API weft_tensor *weft_length_mask(weft *w, const weft_lengths *lengths, int64_t total,
                                       weft_align align);
/* Moves the data of each sequence from one side of its row to the other. */
WEFT_API weft_tensor *weft_move_pads(weft_tensor *padded, const weft_lengths *lengths,
                                     weft_align from, weft_align to);
/* Checks that all pads are 0; NaN is not. If one is not, it fails the context with a message that
 * names sequence and step. It waits for the device and reads the whole tensor, so call it for the
 * first batch only. */
WEFT_API bool weft_pads_are_zero(weft_tensor *padded, const weft_lengths *lengths,
                                 weft_align align);

/* ---- pairs of tokens ---- */
/* Makes a ragged batch of all pairs of a query and a key of the same sequence: one sequence for
 * each query row in CONCAT order, one token for each of its keys. *q_of_pair repeats the rows of q,
 * *k_of_pair gathers those of k. Use it for your own attention scores. */
WEFT_API void weft_pairs(weft_tensor *q, weft_tensor *k, weft_tensor **q_of_pair,
                         weft_tensor **k_of_pair);

#ifdef __cplusplus
}
#endif
#endif
