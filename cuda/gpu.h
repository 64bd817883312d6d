/* gpu.h - the state of a context's GPU, shared by device.cu and memory.cu. */
#ifndef WEFT_GPU_H
#define WEFT_GPU_H
#include "cuda/cuda.h"

/* size and number of the ring's parts; alignment in bytes */
enum { PART = 1 << 20, PARTS = 4, ALIGNED = 256 };

struct gpu {
    gpu_context context;
    int generation;                              /* value of device.cu's fork counter at open */
    cudaStream_t stream;
    cudaMemPool_t pool; bool freed;              /* NULL if unsupported; was memory freed since a trim? */
    blas *products;                              /* opened at first use */
    /* sent: recorded after a part's copies; ring_offset: next free byte */
    char *ring; cudaEvent_t sent[PARTS]; size_t ring_offset;
    /* the copy that is not sent yet: destination, offset in the ring, size */
    char *pending_to; size_t pending_offset, pending_bytes;
    unsigned *counters;                          /* allocated at first use */
    uint64_t *words; size_t word_count; unsigned next_tag;        /* as above */
    /* one block of mapped memory: its host address and its device address */
    fault_cell *fault, *device_fault; unsigned long long launches;
    /* sync: WEFT_SYNC, wait after each kernel; managed: WEFT_MANAGED, the host may access device memory */
    bool sync, managed;
};

static inline gpu *gpu_of(const weft__device *d) { return (gpu *)d->handle; }

/* memory.cu */
void pool_open(weft__device *);                  /* uses no pool if the device has none */
void pool_close(weft__device *);                 /* frees pool and working memory, after the stream's work */
void pool_trim(weft__device *);                  /* call after a wait */
#endif
