/* pronouncer.h - the model of examples/g2p.c: it reads letters and writes phones.
 *
 * A bidirectional LSTM reads the letters of a word. Two decoders with attention (Luong et al. 2015) start
 * from its last states. The first writes the phones from first to last, the second from last to first. Both
 * propose pronunciations by beam search, and the proposal with the highest probability under both together
 * is the result (Liu et al. 2016). A CTC model (Rao et al. 2015) has no decoder: each letter gives two steps,
 * and each step a phone or the blank. Several models of both kinds can propose and choose together,
 * with an n-gram model (joint.h). */
#ifndef EXAMPLES_PRONOUNCER_H
#define EXAMPLES_PRONOUNCER_H
#include "joint.h"
#include "options.h"

/* LIMIT: largest number of phones of a decoded word. MODELS: largest number of models together */
enum { LIMIT = 32, DECODERS = 2, MODELS = 8 };

typedef struct {
    int64_t hidden, embed, layers, decoders, ctc;
    double dropout;
} model_opts;
typedef struct {
    weft_embedding *phones;
    weft_rnn *rnn;
    weft_linear *bridge_h, *bridge_c, *combine, *output;
    weft_attention_layer *attention;
    weft_dropout_layer *drop_phones, *drop_output;
    int64_t hidden;
} decoder;
typedef struct model {
    weft *w;
    weft_module *all;
    weft_embedding *letters;
    weft_rnn *encoder;
    weft_dropout_layer *drop_letters;
    decoder decoder[DECODERS];
    int decoders;                                /* 0 with CTC */
    weft_linear *steps;                          /* CTC: logits of a letter's two steps; NULL: decoders */
    weft_ema *average;                           /* NULL: none */
    weft_parallel *ranks;                        /* they share the evaluation */
    joint *joint;                                /* NULL, or the n-gram model that chooses too */
    struct model *next;                          /* NULL, or another model that pronounces with this one */
} model;
typedef struct {
    weft_tensor *memory;
    weft_state last;
} encoded;

/* Makes a model that writes `classes` phones, the mark among them. */
model model_new(weft *w, const model_opts *opts, const training_settings *train, int classes);
/* Exchanges the weights of all models with their averages. */
void swap_averages(const model *m);

typedef struct {
    int64_t n;
    int32_t *letters, *read;                     /* tokens end to end; length of each word */
    int32_t *before[DECODERS], *after[DECODERS]; /* inputs and targets of the decoders */
    int32_t *write;                              /* their lengths */
    int32_t *phones, *said;                      /* phones without marks, and their numbers */
    int64_t letter_count, phone_count;
} batch;

/* Returns an empty batch for n words of up to longest_word letters and most_phones phones. batch_free frees
 * it. */
batch batch_new(size_t n, size_t longest_word, size_t most_phones);
void batch_free(batch *b);
void batch_empty(batch *b);
/* Adds a word's letters, and its n phones in both orders with a mark before the first and after the last. */
void batch_add(batch *b, const char *word, const int32_t *phones, int32_t n);

/* Reads the letters of a batch. */
encoded encode(const model *m, const batch *b);
/* Returns decoder k's logits [N, classes] of whole pronunciations with teacher forcing, and the targets [N]
 * in *right. map: NULL, or receives the attention's weights, as from weft_attention_run. */
weft_tensor *logits(const model *m, int k, const encoded *e, const batch *b, weft_tensor **right,
                    weft_tensor **map);
/* Returns the losses [n] of a CTC model and their weights [n], 0 for words of too few letters. */
weft_tensor *ctc_losses(const model *m, const encoded *e, const batch *b, weft_tensor **weight);
/* Returns the best phones of n words; those of word i begin at tokens + i * best * limit. All decoders of all
 * models and the n-gram model of the first propose and choose. beam 1: the first decoder of the first model
 * alone writes the most probable phones. limit: phones of a decoder and of a proposal. The caller frees the
 * result by weft_decoded_free and weft_clear. */
weft_decoded pronounce(const model *m, const char *const *words, int64_t n, int64_t limit, int64_t beam);
#endif
