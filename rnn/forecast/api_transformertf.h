/* api_transformertf.h - the sequence helpers of TransformerTF under its names.
 *
 * Contents: when to pack, moving pads, packing and unpacking, checking pads, masks. */
#ifndef WEFT_API_TRANSFORMERTF_H
#define WEFT_API_TRANSFORMERTF_H
#include "../../autograd/api_autograd.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the sequence helpers of TransformerTF ---- *
 * Its names (antolu/transformertf, utils/sequence.py) for this library's functions. Padded tensors
 * are plain [n, T, ..] with n lengths of 0 .. T; LEFT: data first. Unlike there, how the data lie
 * is said, never guessed from zeros, and bad lengths are errors that name the sequence. */
/* That library's rule, a pure function: all equal, none or NULL: no; else if the lengths differ by
 * more than a tenth of the longest, or there are 8 sequences or more. It is advice about time:
 * nothing here asks it, and ragged tensors are right with either answer. */
WEFT_API bool weft_should_use_packing(const weft_lengths *lengths);
/* The data of each sequence moved from one side of its row to the other, [n, T, ..] -> [n, T,
 * ..]; pads become 0 (weft_move_pads). */
WEFT_API weft_tensor *weft_align_encoder_sequences(weft_tensor *padded, const weft_lengths *lengths,
                                                   weft_align from, weft_align to);
/* [n, T, ..] -> packed, data where align says; of a decoder's, first
 * (weft_pack_padded_sequence). Sequences need no order. */
WEFT_API weft_tensor *weft_pack_encoder_sequences(weft_tensor *padded, const weft_lengths *lengths,
                                                  weft_align align);
WEFT_API weft_tensor *weft_pack_decoder_sequences(weft_tensor *padded, const weft_lengths *lengths);
/* Ragged -> [n, total, ..], data first, then 0; total 0: the longest. lengths, if not NULL, is
 * set to those of the sequences, owned by the step. */
WEFT_API weft_tensor *weft_unpack_to_fixed_length(weft_tensor *ragged, int64_t total,
                                                  weft_lengths *lengths);
/* Whether all that lies beside the data is 0 (NaN is not); if not the context fails, naming
 * sequence and step. NULL lengths: true. Waits for the device and reads the whole tensor: a check
 * of a first batch. */
WEFT_API bool weft_validate_encoder_alignment(weft_tensor *padded, const weft_lengths *lengths,
                                              weft_align align);
/* [n, size]: 1 where there is a pad, else 0; inverse: 1 where the data are. A constant. */
WEFT_API weft_tensor *weft_create_mask(weft *w, int64_t size, const weft_lengths *lengths,
                                       weft_align align, bool inverse);
typedef struct {
    bool not_causal;
    weft_align encoder_align, decoder_align;
} weft_attention_mask_opts;
/* [n, future, past + future]: 1 where query i of the decoder may not look, else 0. Keys are the
 * encoder's steps, forbidden in pads, then the decoder's: forbidden from i itself on (strictly
 * past), or, not_causal, in pads. decoder NULL: every sequence is full; opts NULL: zeros. A
 * constant; the mask of weft_softmax is the opposite, 1 where a key takes part. */
WEFT_API weft_tensor *weft_get_attention_mask(weft *w, const weft_lengths *encoder, int64_t past,
                                              const weft_lengths *decoder, int64_t future,
                                              const weft_attention_mask_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
