/* speller.c - the model and the words of g2p and decode; see speller.h. */
#include <stdlib.h>
#include "speller.h"

speller speller_new(weft *w, int64_t embed, int64_t H)
{
    weft_module  *m = weft_module_new(w, "g2p");
    weft_rnn_opts reads = { .input = embed, .hidden = H, .layers = 2, .bidirectional = true },
                  writes = { .input = embed, .hidden = H };
    weft_embedding_opts letters = { .rows = LETTERS, .columns = embed },
                        phones = { .rows = CLASSES, .columns = embed };
    return (speller){
        .w = w,
        .all = m,
        .H = H,
        .letters = weft_embedding_new(m, "letters", &letters),
        .phones = weft_embedding_new(m, "phones", &phones),
        .encoder = weft_lstm_new(m, "encoder", &reads),
        .decoder = weft_lstm_new(m, "decoder", &writes),
        .bridge_h = weft_linear_new(m, "bridge_h", &(weft_linear_opts){ .in = 2 * H, .out = H }),
        .bridge_c = weft_linear_new(m, "bridge_c", &(weft_linear_opts){ .in = 2 * H, .out = H }),
        .attention = weft_attention_new(
            m, "attention", &(weft_attention_layer_opts){ .kind = WEFT_GENERAL, .dq = H, .dm = 2 * H }),
        .combine = weft_linear_new(m, "combine", &(weft_linear_opts){ .in = 3 * H, .out = H }),
        .output = weft_linear_new(m, "output", &(weft_linear_opts){ .in = H, .out = CLASSES }),
    };
}

/* [4, n, H], the encoder's last states -> [1, n, H], from both directions of the top layer. */
static weft_tensor *bridge(const speller *s, weft_linear *l, weft_tensor *last)
{
    int64_t n = weft_size(last, 1);
    weft_tensor *top =
        weft_reshape(weft_transpose(weft_slice(last, 0, -2, 4), 0, 1), WEFT_SHAPE(n, 2 * s->H));
    return weft_reshape(weft_tanh(weft_linear_run(l, top)), WEFT_SHAPE(1, n, s->H));
}

spelled speller_read(const speller *s, const int32_t *letters, const weft_lengths *lengths)
{
    weft_rnn_out read =
        weft_rnn_run(s->encoder, weft_embedding_run(s->letters, weft_ragged_ints(s->w, letters, lengths)),
                     WEFT_ZERO_STATE);
    weft_state first = { bridge(s, s->bridge_h, read.last.h), bridge(s, s->bridge_c, read.last.c) };
    return (spelled){ read.y, first };
}

weft_tensor *speller_scores(const speller *s, weft_tensor *y, weft_tensor *seen)
{
    weft_tensor *both = weft_concat(WEFT_LIST(y, seen), 1);
    return weft_linear_run(s->output, weft_tanh(weft_linear_run(s->combine, both)));
}

/* ---- words ---- */
static int by_length(const void *a, const void *b) { return *(const int32_t *)a - *(const int32_t *)b; }

bool words_new(words *w, int64_t n, int32_t longest, bool sorted)
{
    *w = (words){ .n = n,
                  .read = calloc((size_t)n, sizeof *w->read),
                  .write = calloc((size_t)n, sizeof *w->write) };
    if (!w->read || !w->write)
        return false;
    w->letters = make_lengths("uniform", 1, w->read, n, longest);
    if (sorted)
        qsort(w->read, (size_t)n, sizeof *w->read, by_length);
    for (int64_t i = 0; i < n; i++) {
        int32_t phones = w->read[i] - (int32_t)(i % 3);
        w->phones += w->write[i] = phones > 2 ? phones : 2;
    }
    w->letter = calloc((size_t)w->letters, sizeof *w->letter);
    for (int64_t i = 0; w->letter && i < w->letters; i++)
        w->letter[i] = (int32_t)((formula("word", i) + .5) * LETTERS);
    return w->letter;
}

void words_free(words *w)
{
    free(w->read), free(w->write), free(w->letter);
    *w = (words){ 0 };
}
