/* device.h - devices: threads, tables of kernels, GPUs, libraries that are opened. */
#ifndef WEFT_CORE_DEVICE_H
#define WEFT_CORE_DEVICE_H
#include <sched.h>
#include <sys/types.h>
#include "core/kernels.h"

/* ---- threads.c: threads start at the first parallel call ---- */
typedef void weft__task(void *argument, int64_t index);
struct weft__pool *weft__pool_new(weft__device *, int threads);
void           weft__pool_end(weft__device *, struct weft__pool *);
int            weft__pool_threads(const struct weft__pool *);
size_t         weft__pool_bytes(const struct weft__pool *);
/* Runs all tasks, in any order, and returns when all are done. */
void           weft__parallel(weft__device *, int64_t tasks, weft__task *, void *argument);

/* ---- which kernels: NULL, and why there are none ---- */
/* cpu.c: the table for this machine and the environment */
const weft__kernels *weft__cpu_kernels(weft_device, weft_precision, char *why, size_t);
/* plugin.c: the table of libweft_cuda.so */
const weft__kernels *weft__cuda_kernels(char *why, size_t);
/* gpu_probe.c: whether this process has an NVIDIA GPU; opens only the driver's library */
bool weft__driver_has_gpu(char *why, size_t);
/* blas.c: OpenBLAS, opened at run time, or what WEFT_GEMM says. NULL: the library's own kernels multiply; if
 * `why` is not "" then, what is wanted is not there. */
weft__blas_gemm *weft__blas(weft_gemm wanted, char *why, size_t);
/* plugin.c: opens a file from where plug-ins lie; NULL: why not. wanted: asked of the machine before; NULL:
 * nothing. The caller holds WEFT__LOADING. */
typedef bool weft__wanted(char *why, size_t);
void *weft__open_plugin(const char *file, weft__wanted *, char *why, size_t);

/* ---- launcher.c ---- */
int weft__cores(void); /* cores that this process may use: its share, if it is one of several ranks */
int   weft__cpus(void);           /* processors that it is bound to */
int   weft__local_rank(void);     /* its number among the ranks of this machine; 0: alone */
int   weft__launched_rank(void);  /* its number among all ranks; 0: alone */
/* The process that has bound the ranks, or not: the nearest one above that is no rank itself. */
pid_t weft__launcher(void);
/* An even share of the launcher's processors if it has mine, and not more than mine. */
int   weft__share_of_cores(const cpu_set_t *mine, const cpu_set_t *launcher, int ranks);

/* ---- lock.c: locks of the process, for which a fork waits: libraries that are opened, libhdf5 ---- */
typedef enum { WEFT__LOADING, WEFT__FILES, WEFT__LOCKS } weft__lock_of;
void  weft__lock(weft__lock_of);
void  weft__unlock(weft__lock_of);
#endif
