/* Lesson 10: the functions that you write. */
#ifndef WEFT_LESSON_10
#define WEFT_LESSON_10
#include "weft.h"

/* Attention of one query a sequence: n sequences end to end, sequence s of len[s]
 * tokens, 0 or more. score [sum of len]: how well each token fits its sequence's query;
 * memory [sum of len, width]: what the tokens have to say. Writes weight [sum of len],
 * the softmax of the scores within each sequence, and context [n, width], the memory's
 * rows summed with these weights: zeros if there are no tokens. */
void attend(int n, const int *len, const double *score, int width, const double *memory,
            double *weight, double *context);

/* A decoder: step tells it a token and returns the scores [classes] of the next one.
 * coin(d) is a random number, 0 or more and below 1, another one each time. */
enum { BEGIN, END, DIGIT0, CLASSES = DIGIT0 + 10 };
typedef struct decoder decoder;
struct decoder {
    int classes;
    const double *(*step)(decoder *d, int token);
    double (*coin)(decoder *d);
    void *given;                                 /* what step and coin look at */
};

/* Writes a sequence to out and returns how many tokens it has, `limit` at most. The
 * first step is told BEGIN. Of its scores the largest (of equals the first) is the
 * decoder's own token: if that is END the sequence has ended, and END is not written;
 * else it goes to out. Each later step is told a token for the place before it: gold's,
 * if there is a gold and a coin is below `share`, else the decoder's own. gold [limit]
 * is the right sequence, or NULL. A coin is tossed after each token that is written,
 * before the next step; after the last of `limit` tokens there is no next step, and it
 * may be tossed or not. Where gold is NULL none is tossed. */
int decode(decoder *d, const int *gold, double share, int limit, int *out);
#endif
