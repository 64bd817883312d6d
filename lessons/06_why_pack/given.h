/* given.h - lesson 6: one bidirectional LSTM, and its two directions as layers of their
 * own. */
#ifndef WEFT_LESSON_06_GIVEN
#define WEFT_LESSON_06_GIVEN
#include "lesson.h"

typedef struct {
    weft_module *m;
    weft_rnn *both, *one[2]; /* one[0] has both's forward weights, one[1] the others */
} layers;
/* show.c: new layers in w, with weights from w's seed. */
layers layers_new(weft *w);
/* The weight of a direction, "weight_ih", in both or in the layer of its own. */
weft_tensor *weight_of(const layers *l, const char *name, bool reverse, bool own);
/* x [n, T, INPUTS] of dice, the same for the same seed, with `pad` in its pads. */
weft_tensor *padded_of(weft *w, unsigned seed, int n, int T, const int32_t *len,
                       double pad);
#endif
