/* Lesson 10: the functions that you write. */
#ifndef WEFT_LESSON_10
#define WEFT_LESSON_10
#include "weft.h"

/* Computes attention with one query per sequence, for n sequences end to end. Sequence
 * s has len[s] tokens, 0 or more. score [sum of len] has each token's score for its
 * sequence's query, and memory [sum of len, width] has a row for each token. Writes
 * weight [sum of len], the softmax of the scores within each sequence, and context [n,
 * width], the sum of the memory's rows with these weights. An empty sequence has a
 * context of zeros. */
void attend(int n, const int *len, const double *score, int width, const double *memory,
            double *weight, double *context);

/* A decoder. step feeds it a token and returns the scores [classes] of the next token.
 * coin returns a new random number, at least 0 and below 1. */
enum { BEGIN, END, DIGIT0, CLASSES = DIGIT0 + 10 };
typedef struct decoder decoder;
struct decoder {
    int classes;
    const double *(*step)(decoder *d, int token);
    double (*coin)(decoder *d);
    void *given;                                 /* read by step and coin */
};

/* Writes a sequence to out and returns its number of tokens, at most `limit`. The first
 * step reads BEGIN. The decoder's own token has the largest score (in a tie, the first
 * such token). If it is END, the sequence ends and END is not written. Otherwise write
 * it. The next step then reads a token for the same place: gold's if gold is not NULL
 * and a coin is below `share`, otherwise the decoder's own. gold [limit] is the right
 * sequence, or NULL. Toss a coin after each written token, before the next step. After
 * the last of `limit` tokens a toss is optional. With gold NULL, toss no coin. */
int decode(decoder *d, const int *gold, double share, int limit, int *out);
#endif
