/* given.h - lesson 6: a bidirectional LSTM, and each of its directions as a layer. */
#ifndef WEFT_LESSON_06_GIVEN
#define WEFT_LESSON_06_GIVEN
#include "lesson.h"

typedef struct {
    weft_module *m;
    weft_rnn *both, *one[2]; /* one[0], one[1]: the forward, the reverse weights */
} layers;
/* show.c: creates the layers in w, with weights from w's seed. */
layers layers_new(weft *w);
/* Returns a direction's weight, such as "weight_ih". own: that of its own layer. */
weft_tensor *weight_of(const layers *l, const char *name, bool reverse, bool own);
/* Returns x [n, T, INPUTS], random numbers from the seed, with `pad` in the pads. */
weft_tensor *padded_of(weft *w, unsigned seed, int n, int T, const int32_t *len,
                       double pad);
#endif
