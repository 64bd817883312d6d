/* top_k.h - the k best of many scores, or all of them in order. */
#ifndef WEFT_BEST_H
#define WEFT_BEST_H
#include <stdint.h>

/* The k best of many: a heap, the worst on top. Among equals the lowest id is best. */
typedef struct weft__scored { double score; int64_t id; } weft__scored;
typedef struct weft__best { weft__scored *at; int64_t k, n; } weft__best;
void weft__best_offer(weft__best *, double score, int64_t id);
void weft__best_sort(weft__best *);              /* best first; nothing may be offered after it */
#endif
