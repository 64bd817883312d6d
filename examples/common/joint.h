/* joint.h - a joint n-gram model of letters and phones (Bisani & Ney 2008) for g2p.c.
 *
 * A graphone is a letter with its 0, 1 or 2 phones: knife = k:- n:n i:ay f:f e:-. The model gives the
 * probability of a sequence of graphones. It learns in a second and makes other errors than a network. */
#ifndef EXAMPLES_JOINT_H
#define EXAMPLES_JOINT_H
#include "dictionary.h"

typedef struct joint joint;
/* LONGEST: largest number of letters of a word; BEST: pronunciations of a search; ORDERS: longest n-gram */
enum { LONGEST = 64, BEST = 16, ORDERS = 12 };
/* phones: [n], numbers from 1. node: used by the search only. */
typedef struct {
    double log_p;
    int32_t node, n;
    uint8_t phones[2 * LONGEST];
} pronunciation;

/* Aligns the letters and phones of n entries by EM. Returns the graphones of all entries, each ended by a
 * mark, and stores their number. Leaves out words above LONGEST letters, and entries with more than two
 * phones for a letter. The caller frees the result. */
int32_t *joint_align(entry *const *pair, int64_t n, int64_t *count);
/* Makes a model of n-grams up to `order` from the result of joint_align, with interpolated Kneser-Ney
 * smoothing. The caller frees it by joint_free. */
joint *joint_new(const int32_t *graphones, int64_t count, int order);
void joint_free(joint *j);
/* Stores the most probable pronunciations of a word, the best first, with the log probabilities of word and
 * phones together. Returns their number, at most BEST; 0: a word above LONGEST letters, or with a letter that
 * the training words lack. word: letters a to z. must: NULL, or the only pronunciation [n] to consider.
 * One search of a model at a time. */
int32_t joint_search(const joint *j, const char *word, const int32_t *must, int32_t n,
                     pronunciation best[BEST]);
#endif
