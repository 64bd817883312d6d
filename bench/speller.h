/* speller.h - the model of examples/g2p_model.c, without dropout, and words made by formula: what the cases
 * g2p and decode share. MARK begins and ends a pronunciation. */
#ifndef WEFT_BENCH_SPELLER_H
#define WEFT_BENCH_SPELLER_H
#include "bench.h"

enum { LETTERS = 26, CLASSES = 40, MARK = 0 };
typedef struct speller {
    weft *w; weft_module *all;
    weft_embedding *letters, *phones; weft_rnn *encoder, *decoder;
    weft_linear *bridge_h, *bridge_c, *combine, *output;
    weft_attention_layer *attention;
    int64_t H;
} speller;
/* embeddings of so many numbers, H units */
speller speller_new(weft *w, int64_t embed, int64_t H);
/* What it has read, and the decoder's first state. */
typedef struct { weft_tensor *memory; weft_state first; } spelled;
spelled speller_read(const speller *, const int32_t *letters, const weft_lengths *);
/* From the decoder's outputs, and what they have seen of the memory, the scores. */
weft_tensor *speller_scores(const speller *, weft_tensor *y, weft_tensor *seen);

/* So many words of at most `longest` letters, sorted by length or as they come; how long the pronunciation of
 * each is, its end counted; the letters end to end. */
typedef struct { int64_t n, letters, phones; int32_t *read, *write, *letter; } words;
bool words_new(words *, int64_t n, int32_t longest, bool sorted);
void words_free(words *);
#endif
