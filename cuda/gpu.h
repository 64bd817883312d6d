/* gpu.h - a context's GPU, as device.cu, memory.cu and graphs.cu have it. */
#ifndef WEFT_GPU_H
#define WEFT_GPU_H
#include "cuda/cuda.h"

/* bytes and parts of the ring of uploads */
enum { PART = 1 << 20, PARTS = 4, ALIGNED = 256 };

/* What graphs.cu knows of a context's steps. */
enum { KNOWN_STEPS = 16, MADE_GRAPHS = 32 };
/* of which launches, and when it was last sent; NULL: none */
struct made_graph { uint64_t of; cudaGraphExec_t graph; int64_t used; };
struct graphs {
    bool on;                                     /* asked for, and nothing has gone wrong */
    bool repeats;                                /* this step's launches are held back */
    bool open; int64_t held;                     /* some are, so many */
    int pieces, credit;                          /* of this step, that were sent; for making graphs */
    /* what was launched: of the step, since the last piece was sent; of steps before, in a ring */
    uint64_t step, piece, known[KNOWN_STEPS]; int next;
    size_t uploaded;                             /* bytes, in this step */
    made_graph made[MADE_GRAPHS];
    int64_t sent, making;                        /* graphs; of them, those that had to be made */
};

struct gpu {
    gpu_context context;
    int generation;                              /* of processes, when it was opened */
    cudaStream_t stream;
    cudaMemPool_t pool; bool gave_back;          /* NULL: there is none; since it was last looked at */
    struct graphs graphs;
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
/* graphs.cu */
void graphs_open(weft__device *), graphs_close(weft__device *);
void graphs_note(weft__device *, const char *launch);            /* what has gone to the stream */
void graphs_begin(weft__device *);               /* before anything does: holds it back, if that is wanted */
void graphs_submit(weft__device *);              /* what is held back, uploads that wait excepted */
/* device.cu */
void next_part(weft__device *);                  /* of the ring */
#endif
