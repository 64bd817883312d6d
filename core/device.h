/* device.h - devices: threads, kernel tables, GPUs, libraries opened at run time. */
#ifndef WEFT_CORE_DEVICE_H
#define WEFT_CORE_DEVICE_H
#include "core/os.h"
#include "core/kernels.h"

/* ---- threads.c: threads start at the first parallel call ---- */
typedef void weft__task(void *argument, int64_t index);
struct weft__pool *weft__pool_new(weft__device *, int threads);
void           weft__pool_end(weft__device *, struct weft__pool *);
int            weft__pool_threads(const struct weft__pool *);
size_t         weft__pool_bytes(const struct weft__pool *);
/* Runs all tasks, in any order, and returns when all are done. */
void           weft__parallel(weft__device *, int64_t tasks, weft__task *, void *argument);

/* ---- choice of kernels: each function returns NULL and writes a reason ---- */
/* cpu.c: Returns the table for this machine and the environment variables. */
const weft__kernels *weft__cpu_kernels(weft_device, weft_precision, char *reason, size_t);
/* plugin.c: Returns the table of libweft_cuda.so. */
const weft__kernels *weft__cuda_kernels(char *reason, size_t);
/* gpu_probe.c: Returns whether this process has an NVIDIA GPU. Loads the driver's library only. */
bool weft__driver_has_gpu(char *reason, size_t);
/* blas.c: Returns OpenBLAS, or the library that WEFT_GEMM names. NULL: use the own kernels. In that case
 * `reason` is not "" if the program or WEFT_GEMM requested a library that is missing. */
weft__blas_gemm *weft__blas(weft_gemm, char *reason, size_t);
/* Opens a library, "openblas" or a path. name: its version and the CPU that it computes for. NULL, with a
 * reason: a failure. */
weft__blas_gemm *weft__open_blas(const char *library, char name[160], char *reason, size_t);
/* blas_choice.c: Returns OpenBLAS if it is 1.3 times faster than the kernels of d, otherwise NULL. */
weft__blas_gemm *weft__faster_blas(weft__device *d);
/* plugin.c: Opens a plug-in by its file name, or returns NULL. A function that is not NULL checks the machine
 * first. The caller holds WEFT__LOADING. */
typedef bool weft__plugin_check(char *reason, size_t);
void *weft__open_plugin(const char *file, weft__plugin_check *, char *reason, size_t);

/* ---- launcher.c ---- */
int weft__cores(void); /* cores for this process: its share, if the machine runs several ranks */
int   weft__cpus(void);           /* processors of this process (its binding) */
int   weft__local_rank(void);     /* rank on this machine; 0 without a launcher */
bool  weft__is_launched(void);    /* whether a launcher has started this process */
int   weft__launched_rank(void);  /* rank in the whole job; 0 without a launcher */
/* Returns the process that started the ranks: the nearest ancestor that is not a rank. */
int   weft__launcher(void);
/* Returns an even share of the launcher's processors, at most the number in `own`. If `own` is not a
 * subset of the launcher's, returns the number in `own`. */
int   weft__share_of_cores(const weft__cpu_set *own, const weft__cpu_set *launcher, int ranks);

/* ---- lock.c: locks of the process for opening libraries and for libhdf5; fork waits for them ---- */
typedef enum { WEFT__LOADING, WEFT__FILES, WEFT__LOCKS } weft__lock_of;
void  weft__lock(weft__lock_of);
void  weft__unlock(weft__lock_of);
#endif
