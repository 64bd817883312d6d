/* gpu.h - a context's GPU, as device.cu and memory.cu have it. */
#ifndef WEFT_GPU_H
#define WEFT_GPU_H
#include "cuda/cuda.h"

/* bytes and parts of the ring of uploads */
enum { PART = 1 << 20, PARTS = 4, ALIGNED = 256 };

struct gpu {
    gpu_context context;
    int generation;                              /* of processes, when it was opened */
    cudaStream_t stream;
    cudaMemPool_t pool; bool gave_back;          /* NULL: there is none; since it was last looked at */
    blas *products;                              /* made when the first asks */
    /* sent: the copies of a part; at: the next byte */
    char *ring; cudaEvent_t sent[PARTS]; size_t at;
    /* the copy that is not sent yet: where to, where in the ring, how many bytes */
    char *to; size_t from, waiting;
    unsigned *counters;                          /* made when the first kernel asks */
    uint64_t *words; size_t word_count; unsigned next_tag;        /* so are these */
    /* one piece of memory, seen by host and device */
    fault_cell *fault, *fault_there; unsigned long long launches;
    /* WEFT_SYNC: wait after each kernel; WEFT_MANAGED: the host may look into memory */
    bool sync, managed;
};

static inline gpu *gpu_of(const weft__device *d) { return (gpu *)d->handle; }

/* memory.cu */
void pool_open(weft__device *);                  /* if the device has any */
void pool_close(weft__device *);                 /* what K(close) still has; the stream is empty then */
void pool_trim(weft__device *);                  /* after a wait */
#endif
