/* g2p_model.h - the attention encoder-decoder of Luong et al. 2015: a bidirectional LSTM reads letters; an
 * LSTM that starts from its last states writes phones; after it every phone looks at all letters. Tokens are
 * end to end, lengths beside them. */
#ifndef G2P_MODEL_H
#define G2P_MODEL_H
#include "g2p_options.h"
#include "weft.h"

enum { LIMIT = 32 };                             /* phones of a word at most, when they are written */

typedef struct {
    weft *w;
    weft_module *all;
    weft_embedding *letters, *phones;
    weft_rnn *encoder, *decoder;
    weft_linear *bridge_h, *bridge_c, *combine, *output;
    weft_attention_layer *attention;
    weft_dropout_layer *drop_letters, *drop_phones, *drop_output;
    weft_ema *average;                       /* NULL: none */
    weft_parallel *ranks;                    /* which judge together */
    int64_t hidden, decoder_layers;
} model;
typedef struct { weft_tensor *memory; weft_state first; } encoded;

model        model_new(weft *w, const settings *s, int classes);
/* What the encoder makes of letters. */
encoded      encode(const model *m, const int32_t *letters, const weft_lengths *lengths);
/* Logits [N, classes] of whole pronunciations, where each phone has seen the right one before it. map: NULL,
 * or the attention's weights, as weft_attention_run gives them. */
weft_tensor *logits(const model *m, const encoded *e, const int32_t *before, const weft_lengths *lengths,
                    weft_tensor **map);
/* The best phones for words, by greedy or by beam search; to be ended by weft_decoded_free, and the step
 * by weft_clear. */
weft_decoded pronounce(const model *m, const int32_t *letters, const weft_lengths *lengths, int64_t limit,
                       int64_t beam);
/* The letters of a word as tokens, and their number; the place behind them. */
int32_t     *spell(int32_t *to, const char *word, int32_t *length);
#endif
