/* g2p_judge.h - the errors of a model on words that were kept apart, by the average of its weights. */
#ifndef G2P_JUDGE_H
#define G2P_JUDGE_H
#include "g2p_data.h"
#include "g2p_model.h"

/* Over words [n], with that many beams. Every rank judges its share, and all know the sum. said: NULL, or a
 * file that the first rank writes: a line a word, and what the model says. */
score judge(const model *m, const dictionary *d, const int64_t *words, int64_t n, int64_t beam,
            const char *said);
#endif
