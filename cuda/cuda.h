/* cuda.h - what all files of the CUDA back end share: launching, errors, scratch memory, indices out of
 * range.
 *
 * The sources are C++ only as far as nvcc wants it: no classes, templates where a kernel has variants. They
 * compile twice: by nvcc, and by g++ against tests/emu/cuda_emu.h, which runs the same kernels on the CPU. So
 * a kernel is started by LAUNCH, shared memory is declared by SHARED or DYN_SHARED, and PTX stands only in
 * the wrappers of ptx.h.
 *
 * Sums are taken in an order that depends on sizes alone: the same batch gives the same bits every time. No
 * float atomics. */
#ifndef WEFT_CUDA_H
#define WEFT_CUDA_H
#include <stdint.h>
#ifndef WEFT_EMULATED                            /* else the command line includes the emulation first */
#include <cublasLt.h>
#include <cuda_runtime.h>
/* so that float[8][9] declares an array; and what is not deduced */
template <class T> struct same_ { typedef T type; };
/* With `count` attributes, or none. The error is this launch's own; that of the thread may be the host
 * program's. */
template <class... P>
static inline cudaError_t launch_as(const cudaLaunchAttribute *as, unsigned count, void (*kernel)(P...),
                                    dim3 grid, dim3 threads, size_t shared, cudaStream_t stream,
                                    typename same_<P>::type... arguments)
{
    const cudaLaunchConfig_t how = { grid,   threads, shared, stream, const_cast<cudaLaunchAttribute *>(as),
                                     count };
    return cudaLaunchKernelEx(&how, kernel, arguments...);
}
#define LAUNCH_RAW(kernel, grid, threads, shared, stream, ...) \
    launch_as(NULL, 0, kernel, grid, threads, shared, stream, ##__VA_ARGS__)
#define SHARED(name, ...) __shared__ typename same_<__VA_ARGS__>::type name
#define DYN_SHARED(type, name)                                     \
    extern __shared__ __align__(128) unsigned char name##_bytes[]; \
    type *name = (type *)name##_bytes
#endif
#include "core/kernels.h"
#include "core/shared/philox.h"

/* ---- architectures ---- */
/* A source that asks for ARCH, sm_ARCH, or has what only some architectures have, is compiled for one after
 * the other and is named in the Makefile's CUDA_EACH. The others are compiled once, for all. */
enum { EVERY_ARCH = 0 };                         /* the emulation's code, and the host's */
#ifndef WEFT_ONCE
#ifdef __CUDA_ARCH__
enum { ARCH = __CUDA_ARCH__ / 10 };
#else
enum { ARCH = EVERY_ARCH };
#endif
#endif

/* ---- the kernels' names ---- */
/* K(fill) is weft_cuda_fill; a wrong signature or a forgotten one does not compile or link. */
#define K(name) weft_cuda_##name
#define SERVICE(result, name, parameters)       result K(name) parameters;
#define KERNEL(result, name, parameters, names) SERVICE(result, name, parameters)
#include "core/kernels.def"

/* of others than the first nothing is remembered */
enum { MOST_GPUS = 64 };
/* FNV-1a (Fowler, Noll and Vo). */
static inline uint64_t hash_of(const void *bytes, size_t n)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 1099511628211u;
    return hash;
}

/* ---- a context's GPU ---- */
typedef struct gpu gpu;                          /* device.cu; hangs at weft__device.handle */
/* Sends the uploads that wait in the ring. */
cudaStream_t   stream_of(weft__device *);
typedef struct blas blas;                        /* blas.cu */
blas          *blas_of(weft__device *);          /* made when the first product asks; NULL: it failed */
blas          *blas_open(weft__device *);
void           blas_close(weft__device *, blas *);               /* of one that may be NULL */
/* At least that many bytes until the next call of this, 256-byte aligned, contents gone; NULL, and
 * d->failure says why. */
void          *scratch(weft__device *, size_t bytes);
/* COUNTERS zeros of the device's, for blocks that count who of them is done; whoever is last leaves zeros.
 * NULL: as above. */
enum { COUNTERS = 1024 };
unsigned      *counters_of(weft__device *);
/* At least that many words for kernels whose blocks send each other numbers by words with a tag, and `tags`
 * tags from *first on that no word there has. NULL: as above. */
uint64_t      *words_of(weft__device *, size_t words, unsigned tags, unsigned *first);
/* Note the first failure ("fill: an illegal memory access ..") and are true if there is or was one. The
 * kernel is __func__. */
bool           fail(weft__device *, weft_status, const char *format, ...);
bool           failed(weft__device *, cudaError_t, const char *kernel);
bool           blas_failed(weft__device *, cublasStatus_t, const char *what);
/* CUDA keeps a thread's last error for whoever asks for it: one of ours, which was returned to us, is
 * taken away. True if it is one. */
bool           refused(cudaError_t);
/* After every launch: its own error; with WEFT_SYNC=1 waits, so that the kernel that is named is the one
 * that failed. */
void           launched(weft__device *, cudaError_t, const char *kernel);

/* device.cu: what the driver says of the code that it has found for this GPU; false: nothing */
bool           code_found(cudaFuncAttributes *);
int            attribute_of(const weft__device *, cudaDeviceAttr);             /* 0 if it does not say */

/* ---- link.cu: to the GPUs of other ranks; NULL: made without NCCL ---- */
const struct weft__links *links_of_gpus();

/* ---- current_device.cu: the context's GPU becomes the thread's, and then whatever the caller had again ---- */
typedef struct CUctx_st *gpu_context;
gpu_context    context_on(weft__device *);       /* of that GPU; NULL, and d->failure says why */
bool           enter(gpu_context);               /* true: it was not there, and leave is called at the end */
void           leave();
gpu_context    context_of(const weft__device *); /* device.cu; NULL: not open */
/* device.cu: true, and d->failure, if a fork lies between its open and now; then it can only be closed */
bool           is_orphan(weft__device *);
struct visit {                                   /* for as long as it lives */
    bool entered;
    explicit visit(gpu_context c) : entered(enter(c)) {}
    ~visit() { if (entered) leave(); }
};

/* LAUNCH(d, kernel, grid, threads, bytes of dynamic shared memory, arguments...): nothing after a failure
 * or for an empty grid. */
#define LAUNCH(d, kernel, grid, threads, shared, ...)                                                \
    do {                                                                                             \
        dim3 grid_ = (grid);                                                                         \
        if (!(d)->failure[0] && grid_.x && grid_.y && grid_.z) {                                     \
            launched(d, LAUNCH_RAW(kernel, grid_, dim3(threads), shared, stream_of(d), __VA_ARGS__), \
                     __func__);                                                                      \
        }                                                                                            \
    } while (0)

/* ---- grids: one thread an element with a stride, so that any size runs ---- */
enum { THREADS = 256, MOST_BLOCKS = 132 * 16 };
static inline dim3 blocks_for(int64_t n, int each = THREADS)
{
    int64_t blocks = (n + each - 1) / each;
    return dim3((unsigned)(blocks < MOST_BLOCKS ? blocks : (int64_t)MOST_BLOCKS));
}
/* for (int64_t i = first_index(); i < n; i += index_step()) */
__device__ static inline int64_t first_index() { return (int64_t)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ static inline int64_t index_step()  { return (int64_t)gridDim.x * blockDim.x; }

/* ---- indices out of range: of the first kernel that met one, the lowest row ---- */
/* Mapped host memory, so that looking at it costs no copy. Each launch that may fault has a number; those
 * after the first to fault find a lower one than theirs, and write nothing. */
typedef struct fault_cell {
    unsigned long long first;                    /* the lowest number; ~0: none */
    unsigned long long at;                       /* row << 32 | value of its lowest row; ~0: none */
    /* what the value had to be below; the kernel's name, a pointer of the host's */
    unsigned long long below, by;
    /* the number of a kernel that has waited in vain (recur.h); ~0: none */
    unsigned timeout;
} fault_cell;
/* a kernel's argument */
typedef struct faults { fault_cell *cell; unsigned long long number; const char *by; } faults;
faults faults_for(weft__device *, const char *kernel);
#define faults_of(d) faults_for(d, __func__)     /* for one launch */
unsigned *timeout_flag(weft__device *);

/* value if least <= value < below, else -1 and a fault. */
__device__ static inline int64_t within(faults f, int64_t row, int64_t value, int64_t least, int64_t below)
{
    if (value >= least && value < below)
        return value;
    if (atomicMin(&f.cell->first, f.number) >= f.number) {
        atomicMin(&f.cell->at, (unsigned long long)row << 32 | (uint32_t)value);
        atomicExch(&f.cell->below, (unsigned long long)below);
        atomicExch(&f.cell->by, (unsigned long long)f.by);
    }
    return -1;
}
__device__ static inline int64_t checked(faults f, int64_t row, int64_t value, int64_t below)
{
    return within(f, row, value, -1, below);
}

/* y = v, or y += v. */
__device__ static inline void put(real *y, real v, bool add) { *y = add ? *y + v : v; }
#endif
