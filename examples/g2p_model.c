/* g2p_model.c - reading and writing; see g2p_model.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/program.h"
#include "g2p_data.h"
#include "g2p_model.h"

/* ---- the layers ---- */
model model_new(weft *w, const settings *s, int classes)
{
    weft_module *m = weft_module_new(w, "g2p");
    double p = s->dropout;
    int64_t h = s->hidden, e = s->embed;
    weft_rnn_opts reads = {
        .input = e, .hidden = h, .layers = (int)s->layers, .bidirectional = true, .dropout = p
    };
    weft_rnn_opts writes = { .input = e, .hidden = h, .layers = (int)s->decoder_layers, .dropout = p };
    model it = {
        .w = w,
        .all = m,
        .hidden = h,
        .decoder_layers = s->decoder_layers,
        .letters = weft_embedding_new(m, "letters", &(weft_embedding_opts){ .rows = LETTERS, .columns = e }),
        .phones = weft_embedding_new(m, "phones", &(weft_embedding_opts){ .rows = classes, .columns = e }),
        .encoder = weft_lstm_new(m, "encoder", &reads),
        .decoder = weft_lstm_new(m, "decoder", &writes),
        .bridge_h =
            weft_linear_new(m, "bridge_h", &(weft_linear_opts){ .in = 2 * h, .out = s->decoder_layers * h }),
        .bridge_c =
            weft_linear_new(m, "bridge_c", &(weft_linear_opts){ .in = 2 * h, .out = s->decoder_layers * h }),
        .attention = weft_attention_new(
            m, "attention", &(weft_attention_layer_opts){ .kind = WEFT_GENERAL, .dq = h, .dm = 2 * h }),
        .combine = weft_linear_new(m, "combine", &(weft_linear_opts){ .in = 3 * h, .out = h }),
        .output = weft_linear_new(m, "output", &(weft_linear_opts){ .in = h, .out = classes }),
        .drop_letters = weft_dropout_new(m, "drop_letters", &(weft_dropout_opts){ .p = p }),
        .drop_phones = weft_dropout_new(m, "drop_phones", &(weft_dropout_opts){ .p = p }),
        .drop_output = weft_dropout_new(m, "drop_output", &(weft_dropout_opts){ .p = p }),
    };
    it.average = s->average > 0 ? weft_ema_new(m, s->average) : NULL;
    it.ranks = weft_parallel_new(m, &(weft_parallel_opts){ .shards = (int)s->shards });
    return it;
}

/* [2 L, n, H], the encoder's last states -> [D, n, H] for the decoder, from both directions of the top
 * layer. */
static weft_tensor *bridge(const model *m, weft_linear *l, weft_tensor *last)
{
    int64_t n = weft_size(last, 1);
    /* [n, 2, H] */
    weft_tensor *top = weft_transpose(weft_slice(last, 0, -2, weft_size(last, 0)), 0, 1);
    weft_tensor *y = weft_tanh(weft_linear_run(l, weft_reshape(top, WEFT_SHAPE(n, 2 * m->hidden))));
    return weft_transpose(weft_reshape(y, WEFT_SHAPE(n, m->decoder_layers, m->hidden)), 0, 1);
}

encoded encode(const model *m, const int32_t *letters, const weft_lengths *lengths)
{
    weft_tensor *x = weft_dropout_run(
        m->drop_letters, weft_embedding_run(m->letters, weft_ragged_ints(m->w, letters, lengths)));
    weft_rnn_out out = weft_rnn_run(m->encoder, x, WEFT_ZERO_STATE);
    weft_state first = { bridge(m, m->bridge_h, out.last.h), bridge(m, m->bridge_c, out.last.c) };
    return (encoded){ out.y, first };
}

/* y [N, H] of the decoder, and what it has seen of the memory -> logits [N, classes]. */
static weft_tensor *scores(const model *m, weft_tensor *y, weft_tensor *seen)
{
    weft_tensor *both = weft_tanh(weft_linear_run(m->combine, weft_concat(WEFT_LIST(y, seen), 1)));
    return weft_linear_run(m->output, weft_dropout_run(m->drop_output, both));
}

weft_tensor *logits(const model *m, const encoded *e, const int32_t *before, const weft_lengths *lengths,
                    weft_tensor **map)
{
    weft_tensor *x = weft_dropout_run(m->drop_phones,
                                      weft_embedding_run(m->phones, weft_ragged_ints(m->w, before, lengths)));
    weft_tensor *y = weft_rnn_run(m->decoder, x, e->first).y;
    return scores(m, y, weft_attention_run(m->attention, y, e->memory, WEFT_ALL_KEYS, map));
}

/* ---- writing phones, one at a time ---- */
typedef struct { const model *m; weft_attention_memory memory; } writer;

static weft_tensor *next_phones(weft_decode_rows *rows, void *user)
{
    const writer *it = user;
    weft_rnn_out out =
        weft_rnn_step(it->m->decoder, weft_embedding_run(it->m->phones, rows->tokens), rows->state);
    rows->state = out.last;
    weft_tensor *seen = weft_attention_query(it->m->attention, weft_decode_ragged(rows, out.y), it->memory,
                                             WEFT_ALL_KEYS, NULL);
    return scores(it->m, out.y, weft_plain(seen));
}

weft_decoded pronounce(const model *m, const int32_t *letters, const weft_lengths *lengths, int64_t limit,
                       int64_t beam)
{
    weft_decode_opts how = { .begin = MARK,
                             .end = MARK,
                             .has_begin = true,
                             .has_end = true,
                             .limit = limit,
                             .beams = (int)beam,
                             .length_penalty = beam > 1 };
    weft_decoded said = { 0 };
    WEFT_NO_GRAD(m->w) WEFT_EVAL(m->w) {
        encoded e = encode(m, letters, lengths);
        writer it = { m, weft_attention_project(m->attention, e.memory) };
        said = weft_decode(m->w, lengths->n, e.first, next_phones, &it, &how);
    }
    if (!weft_ok(m->w))
        quit(1, "%s", weft_error_message(m->w));
    return said;
}

int32_t *spell(int32_t *to, const char *word, int32_t *length)
{
    *length = (int32_t)strlen(word);
    for (; *word; word++)
        *to++ = *word - 'a';
    return to;
}
