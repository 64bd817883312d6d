/* shard.h - a shard: a part of a batch that is computed separately. */
#ifndef WEFT_CORE_SHARD_H
#define WEFT_CORE_SHARD_H
#include "core/api_author.h"

typedef struct weft__shard {
    int64_t n;
    const int64_t *id;                           /* [n] number of each sequence in the whole batch */
    const int64_t *device_id;                    /* [n] copy on the device */
    uint64_t salt;                               /* changes the keys of random streams; 0: leaves them */
    int number;                                  /* 1 + index of the shard; 0: the whole batch */
} weft__shard;

/* ragged/shard.c */
void        weft__shard_begin(weft *, const weft__shard *);
void        weft__shard_end(weft *);
/* Returns false, and fails the context, if a shard is being computed. For functions of whole batches. */
bool        weft__refuse_in_shard(weft *, const char *function);
#endif
