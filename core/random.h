/* random.h - the random streams of a context, and single draws. */
#ifndef WEFT_CORE_RANDOM_H
#define WEFT_CORE_RANDOM_H
#include "core/report/api_report.h"

/* outside: value of count outside the shard that is being computed */
struct weft_stream {
    weft_stream *next;
    weft *w;
    char name[48];
    uint64_t key;
    uint64_t count;
    uint64_t outside;
};

/* The state of all random numbers of a context. */
typedef struct weft__draws {
    uint64_t seed;
    uint64_t draw;                             /* number of this step's dropout masks; saved in checkpoints */
    bool counted;                                /* draw was already increased, after the shards of a batch */
    weft_stream *streams;
} weft__draws;

/* random.c */
uint64_t weft__hash(uint64_t seed, const char *text);
double   weft__standard_normal(uint64_t draw);
/* Returns the largest value that is at most span and keeps from + value <= to. */
weft_real weft__span_within(weft_real from, weft_real to, weft_real span);
#endif
