/* transformertf.c - the sequence helpers of TransformerTF under their names: whether to pack, aligning,
 * packing, masks. Each is this library's own function in the original's words; where the data lie is always
 * said, and length 0 is allowed. */
#include "autograd/fused.h"
#include "rnn/forecast/api_transformertf.h"

bool weft_should_use_packing(const weft_lengths *l)
{
    if (!l || l->n < 1 || !l->len)
        return false;
    int64_t least = l->len[0], most = l->len[0];
    for (int64_t s = 1; s < l->n; s++) {
        least = l->len[s] < least ? l->len[s] : least;
        most = l->len[s] > most ? l->len[s] : most;
    }
    return least != most && (10 * (most - least) > most || l->n >= 8);
}

/* ---- align, pack, unpack ---- */
weft_tensor *weft_align_encoder_sequences(weft_tensor *x, const weft_lengths *l, weft_align from,
                                          weft_align to)
{
    if ((unsigned)to > WEFT_ALIGN_RIGHT)
        return weft__failed(x, WEFT_EARG, "align_encoder_sequences", "to %d; one of weft_align is expected",
                            (int)to);
    return weft__is_padded(x, l, from, "align_encoder_sequences") ? weft_move_pads(x, l, from, to) :
                                                                    weft__inert_beside(x);
}

weft_tensor *weft_pack_encoder_sequences(weft_tensor *x, const weft_lengths *l, weft_align align)
{
    return weft__is_padded(x, l, align, "pack_encoder_sequences") ? weft_pack_padded_sequence(x, l, align) :
                                                                    weft__inert_beside(x);
}

weft_tensor *weft_pack_decoder_sequences(weft_tensor *x, const weft_lengths *l)
{
    bool sound = weft__is_padded(x, l, WEFT_ALIGN_LEFT, "pack_decoder_sequences");
    return sound ? weft_pack_padded_sequence(x, l, WEFT_ALIGN_LEFT) : weft__inert_beside(x);
}

weft_tensor *weft_unpack_to_fixed_length(weft_tensor *packed, int64_t total, weft_lengths *lengths)
{
    weft_lengths l = weft_lengths_of(packed);
    if (lengths)
        *lengths = l;
    if (packed && !weft__wrong(packed->w, packed) && !packed->f.batch)
        return weft__failed(packed, WEFT_EARG, "unpack_to_fixed_length", "a ragged tensor is expected");
    if (total && packed && !weft__lengths_fit(packed->w, &l, l.n, total, "unpack_to_fixed_length"))
        return &packed->w->nil;
    return weft_pad_packed_sequence(packed, total, 0, WEFT_ALIGN_LEFT);
}

bool weft_validate_encoder_alignment(weft_tensor *x, const weft_lengths *l, weft_align align)
{
    return l ? weft__pads_are_zero(x, l, align, "validate_encoder_alignment") : weft_ok(weft_context_of(x));
}

/* ---- masks; constants, so they are not on the tape ---- */
static bool maskable(weft *w, int64_t size, const weft_lengths *l, weft_align align, const char *function)
{
    if (!l || l->n < 0 || (l->n && !l->len))
        weft__fail(w, WEFT_EARG, "%s: lengths: %sNULL, or a negative n", function, l ? "len is " : "");
    else if (size < 0 || (unsigned)align > WEFT_ALIGN_RIGHT)
        weft__fail(w, WEFT_EARG, "%s: size %lld; 0 or more and one of weft_align are expected", function,
                   (long long)size);
    return !w->status && weft__lengths_fit(w, l, l->n, size, function);
}

static weft_tensor *pads(weft *w, int64_t size, const weft_lengths *l, weft_align align)
{
    /* 0 for each token, padded with 1 */
    return weft_pad_packed_sequence(weft_ragged(w, NULL, 0, l), size, 1, align);
}

weft_tensor *weft_create_mask(weft *w, int64_t size, const weft_lengths *l, weft_align align, bool inverse)
{
    w = w ? w : weft__no_context();
    if (!maskable(w, size, l, align, "create_mask"))
        return &w->nil;
    bool was = weft_set_grad_enabled(w, false);
    weft_tensor *mask = inverse ? weft_length_mask(w, l, size, align) : pads(w, size, l, align);
    weft_set_grad_enabled(w, was);
    return mask;
}

/* [1, size, size]: 1 where key j >= query i, itself included */
static weft_tensor *not_past(weft *w, int64_t size)
{
    weft_tensor *step = weft_to_reals(weft_arange(w, 0, size, 1));
    return weft_less_equal(weft_reshape(step, WEFT_SHAPE(1, size, 1)),
                           weft_reshape(step, WEFT_SHAPE(1, 1, size)));
}

/* [n or 1, queries or 1, T], spread */
static weft_tensor *for_each_query(weft *w, weft_tensor *forbidden, int64_t n, int64_t queries)
{
    return weft_add(forbidden, weft_zeros(w, WEFT_SHAPE(n, queries, 1)));
}

static bool both_fit(weft *w, const weft_lengths *encoder, int64_t past, const weft_lengths *decoder,
                     int64_t future, const weft_attention_mask_opts *o)
{
    const char *of_decoder = "get_attention_mask: decoder";
    if (!maskable(w, past, encoder, o->encoder_align, "get_attention_mask: encoder"))
        return false;
    if (decoder)
        return maskable(w, future, decoder, o->decoder_align, of_decoder) &&
               weft__lengths_fit(w, decoder, encoder->n, future, of_decoder);
    if (future < 0)
        weft__fail(w, WEFT_EARG, "%s: size %lld; 0 or more is expected", of_decoder, (long long)future);
    return !w->status;
}

weft_tensor *weft_get_attention_mask(weft *w, const weft_lengths *encoder, int64_t past,
                                     const weft_lengths *decoder, int64_t future,
                                     const weft_attention_mask_opts *opts)
{
    weft_attention_mask_opts o = opts ? *opts : (weft_attention_mask_opts){ 0 };
    w = w ? w : weft__no_context();
    if (!both_fit(w, encoder, past, decoder, future, &o))
        return &w->nil;
    bool was = weft_set_grad_enabled(w, false);
    int64_t n = encoder->n;
    weft_tensor *of_past = weft_reshape(pads(w, past, encoder, o.encoder_align), WEFT_SHAPE(n, 1, past));
    weft_tensor *of_future =
        !o.not_causal ? not_past(w, future) :
        decoder       ? weft_reshape(pads(w, future, decoder, o.decoder_align), WEFT_SHAPE(n, 1, future)) :
                        weft_zeros(w, WEFT_SHAPE(1, 1, future));
    weft_tensor *both[] = { for_each_query(w, of_past, n, future), for_each_query(w, of_future, n, future) };
    weft_tensor *mask = weft_concat(both, 2, 2);
    weft_set_grad_enabled(w, was);
    return mask;
}
