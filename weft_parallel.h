/* weft_parallel.h - for training by several processes, on one machine or many.
 *
 * Contents: shards of a batch, sums and results over all ranks, checkpoints. */
#ifndef WEFT_PARALLEL_LEVEL_H
#define WEFT_PARALLEL_LEVEL_H
#include "weft.h"
#include "parallel/api_parallel.h"
#endif
