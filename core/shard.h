/* shard.h - a part of a batch that is worked on by itself. */
#ifndef WEFT_CORE_SHARD_H
#define WEFT_CORE_SHARD_H
#include "core/api_author.h"

typedef struct weft__shard {
    int64_t n;
    const int64_t *id;                           /* [n] the sequences' numbers in the whole batch */
    const int64_t *device_id;                    /* the same on the device */
    uint64_t salt;                               /* what its streams draw by; 0: as outside */
    int number;                                  /* 1 + which of several it is; 0: the whole batch */
} weft__shard;

/* ragged/shard.c */
void        weft__shard_begin(weft *, const weft__shard *);
void        weft__shard_end(weft *);
/* For a function of whole batches: false, and the context fails, if a shard is at work. */
bool        weft__outside_shards(weft *, const char *function);
#endif
