/* given.h - the network of lesson 10, which writes digits backwards. */
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

/* show.c: creates an untrained network. additive_scores computes score [tokens] of a
 * query [dq] and memory's rows [tokens, dm], with the parameters of the attention layer
 * `name` of m. */
network network_open(unsigned seed);
void additive_scores(const weft_module *m, const char *name, int tokens,
                     const double *query, const double *memory, double *score);

/* show.c: a decoder of a network that has read n digits. */
typedef struct {
    decoder d;
    network *net;
    weft_tensor *memory;
    weft_state state;
    double scores[CLASSES];
} reading;
void reading_begin(reading *r, network *net, const int32_t *digits, int n);
/* show.c: decodes the same digits with weft_decode. Returns the length. */
int by_weft(network *net, const int32_t *digits, int n, int limit, int *out);
#endif
