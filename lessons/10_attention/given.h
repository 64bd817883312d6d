/* given.h - the network of lesson 10: writes digits backwards. */
#ifndef WEFT_LESSON_10_GIVEN
#define WEFT_LESSON_10_GIVEN
#include "lesson.h"

enum { EMBED = 16, HIDDEN = 32, WIDTH = 32, BATCH = 32, MOST = 8 };
typedef struct {
    weft *w;
    weft_module *m;
    weft_embedding *embed;
    weft_rnn *reads, *writes;
    weft_attention_layer *looks;
    weft_linear *says;
} network;

/* show.c: an untrained one; scores [tokens] of one query [dq] for memory's rows
 * [tokens, dm] by the parameters of an attention layer, which are looked up by name
 * below m. */
network network_open(unsigned seed);
void additive_scores(const weft_module *m, const char *name, int tokens,
                     const double *query, const double *memory, double *score);

/* show.c: a decoder of weft's network, which has read n digits. */
typedef struct {
    decoder d;
    network *net;
    weft_tensor *memory;
    weft_state state;
    double scores[CLASSES];
} reading;
void reading_begin(reading *r, network *net, const int32_t *digits, int n);
/* show.c: what weft_decode writes after the same digits; its length. */
int by_weft(network *net, const int32_t *digits, int n, int limit, int *out);
#endif
