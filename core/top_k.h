/* top_k.h - selects the k best of many scores, or sorts all of them. */
#ifndef WEFT_BEST_H
#define WEFT_BEST_H
#include <stdint.h>

/* A heap of the k best scores, with the worst on top. For equal scores the lowest id is best. */
typedef struct weft__scored { double score; int64_t id; } weft__scored;
typedef struct weft__best { weft__scored *heap; int64_t k, n; } weft__best;
void weft__best_offer(weft__best *, double score, int64_t id);
void weft__best_sort(weft__best *);              /* sorts, best first; nothing may be offered afterwards */
#endif
