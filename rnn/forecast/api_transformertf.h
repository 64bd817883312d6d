/* api_transformertf.h - TransformerTF's names (antolu/transformertf, utils/sequence.py).
 *
 * Contents: when to pack, moving pads, packing and unpacking, checking pads, masks.
 *
 * Everything here is inline and calls public functions only. Padded tensors are plain [n, T, ..]
 * with n lengths of 0 .. T. An argument gives the side of the data (WEFT_ALIGN_LEFT: data first);
 * zeros in the data do not matter. A bad length, or NULL if no comment allows it, fails the context
 * and gives an inert tensor; the message names the sequence. */
#ifndef WEFT_API_TRANSFORMERTF_H
#define WEFT_API_TRANSFORMERTF_H
#include "../../autograd/api_ragged.h"
#include "../../core/api_author.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns whether packing saves time, by TransformerTF's rule: lengths differ by more than a tenth
 * of the longest, or there are 8 sequences or more and lengths differ at all. NULL or no sequence:
 * false. A program needs this only to do as TransformerTF does: weft's ragged tensors give right
 * results whatever it returns. */
static inline bool weft_should_use_packing(const weft_lengths *lengths)
{
    if (!lengths || lengths->n < 1 || !lengths->len)
        return false;
    int64_t shortest = lengths->len[0];
    int64_t longest = lengths->len[0];
    for (int64_t s = 1; s < lengths->n; s++) {
        shortest = lengths->len[s] < shortest ? lengths->len[s] : shortest;
        longest = lengths->len[s] > longest ? lengths->len[s] : longest;
    }
    bool differ_much = 10 * (longest - shortest) > longest;
    return shortest != longest && (differ_much || lengths->n >= 8);
}

/* Moves the data of each sequence from side `from` to side `to` of its row. Pads become 0. */
static inline weft_tensor *weft_align_encoder_sequences(weft_tensor *padded,
                                                        const weft_lengths *lengths,
                                                        weft_align from, weft_align to)
{
    return weft_move_pads(padded, lengths, from, to);
}

/* Packs [n, T, ..] to a ragged tensor; gradients flow. Lengths need not be sorted. */
static inline weft_tensor *weft_pack_encoder_sequences(weft_tensor *padded,
                                                       const weft_lengths *lengths,
                                                       weft_align align)
{
    return weft_pack_padded_sequence(padded, lengths, align);
}

/* Packs [n, T, ..], whose data are first, to a ragged tensor; gradients flow. */
static inline weft_tensor *weft_pack_decoder_sequences(weft_tensor *padded,
                                                       const weft_lengths *lengths)
{
    return weft_pack_padded_sequence(padded, lengths, WEFT_ALIGN_LEFT);
}

/* Pads a ragged tensor to [n, total, ..], data first, then 0. total 0: the longest length; a total
 * below it is an error. If lengths is not NULL, *lengths is set to the lengths of the sequences,
 * also after that error; the step owns its arrays. lengths->n is 0 if `ragged` is not ragged. */
static inline weft_tensor *weft_unpack_to_fixed_length(weft_tensor *ragged, int64_t total,
                                                       weft_lengths *lengths)
{
    if (lengths)
        *lengths = weft_lengths_of(ragged);
    return weft_pad_packed_sequence(ragged, total, 0, WEFT_ALIGN_LEFT);
}

/* Checks that all pads are 0 and returns true. Otherwise it fails the context and returns false, as
 * weft_pads_are_zero does. lengths NULL: true unless the context has failed. */
static inline bool weft_validate_encoder_alignment(weft_tensor *padded, const weft_lengths *lengths,
                                                   weft_align align)
{
    return lengths ? weft_pads_are_zero(padded, lengths, align) :
                     weft_ok(weft_context_of(padded));
}

/* Returns reals [n, size], a constant: 1 at pads, 0 at data. inverse: 0 at pads, 1 at data. align:
 * side of the data. size 0: the longest length. */
static inline weft_tensor *weft_create_mask(weft *w, int64_t size, const weft_lengths *lengths,
                                            weft_align align, bool inverse)
{
    weft_tensor *mask = NULL;
    WEFT_NO_GRAD(w)
    {
        mask = weft_length_mask(w, lengths, size, align);
        mask = inverse ? mask : weft_sub(weft_scalar(w, 1), mask);
    }
    return mask;
}

typedef struct {
    bool not_causal;                 /* a step sees all of the future */
    weft_align encoder_align;        /* of the past */
    weft_align decoder_align;        /* of the future; read only with not_causal */
} weft_attention_mask_opts;

/* Returns reals [n, future, past + future], a constant: 1 where decoder step i may not attend to a
 * key, otherwise 0. Keys are the past's, then the future's. The mask of weft_softmax is the
 * opposite. Pads of the encoder are always 1. Causal: decoder steps from i on are also 1; decoder
 * is not read and may be NULL. not_causal: pads of the decoder are 1; decoder NULL: it has no pads.
 * opts NULL: causal, both sides LEFT. past and future: the padded lengths T, not below a length. */
static inline weft_tensor *weft_get_attention_mask(weft *w, const weft_lengths *encoder,
                                                   int64_t past, const weft_lengths *decoder,
                                                   int64_t future,
                                                   const weft_attention_mask_opts *opts)
{
    const bool causal = !opts || !opts->not_causal;
    const weft_align past_align = opts ? opts->encoder_align : WEFT_ALIGN_LEFT;
    const int64_t n = encoder ? encoder->n : 0;
    const int64_t keys[] = { n, 1, past };
    const int64_t later_keys[] = { causal || !decoder ? 1 : n, 1, future };
    const int64_t queries[] = { 1, future, 1 };
    const int64_t all_queries[] = { n, future, 1 };
    weft_tensor *mask = NULL;
    WEFT_NO_GRAD(w)
    {
        weft_tensor *step = weft_to_reals(weft_arange(w, 0, future, 1));
        weft_tensor *pads = weft_create_mask(w, past, encoder, past_align, false);
        weft_tensor *later = NULL;
        if (causal)
            later = weft_less_equal(weft_reshape(step, 3, queries),
                                    weft_reshape(step, 3, later_keys));
        else if (decoder)
            later = weft_reshape(weft_create_mask(w, future, decoder, opts->decoder_align, false),
                                 3, later_keys);
        else
            later = weft_zeros(w, 3, later_keys);
        weft_tensor *every = weft_zeros(w, 3, all_queries);
        weft_tensor *both[] = { weft_add(weft_reshape(pads, 3, keys), every),
                                weft_add(later, every) };
        mask = weft_concat(both, 2, 2);
    }
    return mask;
}

#ifdef __cplusplus
}
#endif
#endif
