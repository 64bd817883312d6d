/* random.h - random streams of a context, and draws. */
#ifndef WEFT_CORE_RANDOM_H
#define WEFT_CORE_RANDOM_H
#include "core/report/api_report.h"

/* outside: the count outside of the shard at work */
struct weft_stream {
    weft_stream *next;
    weft *w;
    char name[48];
    uint64_t key;
    uint64_t count;
    uint64_t outside;
};

/* What a context draws by. */
typedef struct weft__draws {
    uint64_t seed;
    uint64_t draw;                               /* the number of this step's dropout masks; saved */
    bool counted;                                /* draw has moved on already, after a batch's shards */
    weft_stream *streams;
} weft__draws;

/* random.c */
uint64_t weft__hash(uint64_t seed, const char *text);
double   weft__standard_normal(uint64_t draw);
/* Returns the largest span up to the given one for which from + span is at most to. */
weft_real weft__span_within(weft_real from, weft_real to, weft_real span);
#endif
