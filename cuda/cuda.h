/* cuda.h - declarations shared by all CUDA sources: launches, errors, scratch memory, index checks.
 *
 * The sources use little C++: no classes except one scope guard, and templates for variants of a kernel. nvcc
 * compiles them for the GPU. g++ compiles them with tests/emu/cuda_emu.h, which runs the kernels on the CPU.
 * So start kernels with LAUNCH, declare shared memory with SHARED or DYN_SHARED, and use PTX only through
 * ptx.h.
 *
 * The order of a sum depends only on sizes, so the same batch gives the same bits every time. Float atomics
 * are not used. */
#ifndef WEFT_CUDA_H
#define WEFT_CUDA_H
#include <stdint.h>
#ifndef WEFT_EMULATED                            /* otherwise the command line includes the emulation */
#include <cublasLt.h>
#include <cuda_runtime.h>
/* Lets SHARED declare an array from the type float[8][9], and prevents template argument deduction. */
template <class T> struct same_ { typedef T type; };
/* Launches with `count` attributes. Returns this launch's own error, because the thread's last error may come
 * from the host program. */
template <class... P>
static inline cudaError_t launch_as(const cudaLaunchAttribute *attrs, unsigned count, void (*kernel)(P...),
                                    dim3 grid, dim3 threads, size_t shared, cudaStream_t stream,
                                    typename same_<P>::type... arguments)
{
    const cudaLaunchConfig_t config = { grid, threads, shared, stream,
                                        const_cast<cudaLaunchAttribute *>(attrs), count };
    return cudaLaunchKernelEx(&config, kernel, arguments...);
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
/* A source that uses ARCH or a feature of only some architectures is compiled once for each of them, see
 * CUDA_EACH in mk/cuda.mk. All others are compiled once. */
enum { EVERY_ARCH = 0 };                         /* in the emulation and in host code */
#ifndef WEFT_ONCE
#ifdef __CUDA_ARCH__
enum { ARCH = __CUDA_ARCH__ / 10 };
#else
enum { ARCH = EVERY_ARCH };
#endif
#endif

/* ---- the kernels' names ---- */
/* K(fill) is weft_cuda_fill. A kernel that is missing or has a wrong signature does not compile or link. */
#define K(name) weft_cuda_##name
#define SERVICE(result, name, parameters)       result K(name) parameters;
#define KERNEL(result, name, parameters, names) SERVICE(result, name, parameters)
#include "core/kernels.def"

/* contexts, handles and measurements are cached for devices 0 to MOST_GPUS - 1 */
enum { MOST_GPUS = 64 };
/* Returns the FNV-1a hash (Fowler, Noll, Vo). */
static inline uint64_t hash_of(const void *bytes, size_t n)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 1099511628211u;
    return hash;
}

/* ---- a context's GPU ---- */
typedef struct gpu gpu;                          /* gpu.h; stored in weft__device.handle */
/* Sends pending uploads and returns the context's stream. */
cudaStream_t   stream_of(weft__device *);
typedef struct blas blas;                        /* blas.cu */
blas          *blas_of(weft__device *);          /* opened at the first call; NULL after a failure */
blas          *blas_open(weft__device *);
void           blas_close(weft__device *, blas *);               /* accepts NULL */
/* Returns at least `bytes` bytes of device memory, aligned to 256 bytes. They are valid until the next call
 * and not initialised. On failure sets d->failure and returns NULL. */
void          *scratch(weft__device *, size_t bytes);
/* Returns COUNTERS zeros in device memory, with which blocks count how many of them have finished. The last
 * block resets its counter to 0. NULL on failure. */
enum { COUNTERS = 1024 };
unsigned      *counters_of(weft__device *);
/* Returns at least `words` words through which blocks send each other tagged numbers. Sets *first to the
 * first of `tags` tags that no word contains yet. NULL on failure. */
uint64_t      *words_of(weft__device *, size_t words, unsigned tags, unsigned *first);
/* fail and failed record the first failure ("fill: an illegal memory access ..") and return true if there is
 * or was one. kernel is __func__. */
bool           fail(weft__device *, weft_status, const char *format, ...);
bool           failed(weft__device *, cudaError_t, const char *kernel);
bool           blas_failed(weft__device *, cublasStatus_t, const char *what);
/* Returns true if the call failed. Clears the thread's last CUDA error then, because the caller has handled
 * it and the host program must not see it. */
bool           refused(cudaError_t);
/* Counts a launch and records its error. With WEFT_SYNC=1 also waits, so that an error names the kernel that
 * caused it. */
void           launched(weft__device *, cudaError_t, const char *kernel);

/* device.cu: gets the attributes of the code that the driver chose for this GPU; false: no code */
bool           code_found(cudaFuncAttributes *);
int            attribute_of(const weft__device *, cudaDeviceAttr);             /* 0 if unknown */

/* ---- link.cu: messages to the GPUs of other ranks; NULL without NCCL ---- */
const struct weft__links *links_of_gpus();

/* ---- current_device.cu: makes the context's GPU current, and later restores the caller's GPU ---- */
typedef struct CUctx_st *gpu_context;
gpu_context    context_on(weft__device *);       /* On failure sets d->failure and returns NULL. */
bool           enter(gpu_context);               /* true if it changed the GPU; then call leave() */
void           leave();
gpu_context    context_of(const weft__device *); /* device.cu; NULL if the device is not open */
/* device.cu: returns true and sets d->failure in a child of the process that opened d. Only close works
 * there. */
bool           is_orphan(weft__device *);
struct device_scope {                            /* Keeps the GPU current until the end of a scope. */
    bool entered;
    explicit device_scope(gpu_context c) : entered(enter(c)) {}
    ~device_scope() { if (entered) leave(); }
};

/* LAUNCH(d, kernel, grid, threads, bytes of dynamic shared memory, arguments...) does nothing after a failure
 * or for an empty grid. */
#define LAUNCH(d, kernel, grid, threads, shared, ...)                                                \
    do {                                                                                             \
        dim3 grid_ = (grid);                                                                         \
        if (!(d)->failure[0] && grid_.x && grid_.y && grid_.z) {                                     \
            launched(d, LAUNCH_RAW(kernel, grid_, dim3(threads), shared, stream_of(d), __VA_ARGS__), \
                     __func__);                                                                      \
        }                                                                                            \
    } while (0)

/* ---- grids: threads walk elements with a stride, so any size fits ---- */
enum { THREADS = 256, MOST_BLOCKS = 132 * 16 };
static inline dim3 blocks_for(int64_t n, int each = THREADS)
{
    int64_t blocks = (n + each - 1) / each;
    return dim3((unsigned)(blocks < MOST_BLOCKS ? blocks : (int64_t)MOST_BLOCKS));
}
/* for (int64_t i = first_index(); i < n; i += index_step()) */
__device__ static inline int64_t first_index() { return (int64_t)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ static inline int64_t index_step()  { return (int64_t)gridDim.x * blockDim.x; }

/* ---- indices out of range: report the lowest row of the first kernel that found one ---- */
/* In mapped host memory, so that the host reads it without a copy. Each launch that may find a bad index has
 * a number. A launch that finds a lower number than its own stored here writes nothing. */
typedef struct fault_cell {
    unsigned long long launch;                   /* lowest launch number; ~0: no fault */
    unsigned long long row_value;                /* row << 32 | value, for its lowest row; ~0: no fault */
    /* the upper limit that the value violates; the kernel's name, a host pointer */
    unsigned long long limit, kernel;
    /* number of the recurrent kernel that timed out (number_of in recur.h); ~0: none */
    unsigned timeout;
} fault_cell;
/* argument of a kernel */
typedef struct faults { fault_cell *cell; unsigned long long number; const char *kernel; } faults;
faults faults_for(weft__device *, const char *kernel);
#define faults_of(d) faults_for(d, __func__)     /* for one launch */
unsigned *timeout_flag(weft__device *);

/* Returns value if least <= value < below. Otherwise records a fault and returns -1. */
__device__ static inline int64_t within(faults f, int64_t row, int64_t value, int64_t least, int64_t below)
{
    if (value >= least && value < below)
        return value;
    if (atomicMin(&f.cell->launch, f.number) >= f.number) {
        atomicMin(&f.cell->row_value, (unsigned long long)row << 32 | (uint32_t)value);
        atomicExch(&f.cell->limit, (unsigned long long)below);
        atomicExch(&f.cell->kernel, (unsigned long long)f.kernel);
    }
    return -1;
}
__device__ static inline int64_t checked(faults f, int64_t row, int64_t value, int64_t below)
{
    return within(f, row, value, -1, below);
}

/* Writes y = v, or y += v. */
__device__ static inline void put(real *y, real v, bool add) { *y = add ? *y + v : v; }
#endif
