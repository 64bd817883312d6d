/* cpu.h - threads and scratch memory for CPU kernels. All functions of kernel files are static; otherwise the
 * linker could use an AVX-512 copy on a machine without AVX-512. */
#ifndef WEFT_CPU_H
#define WEFT_CPU_H
#include <stdatomic.h>
#include "core/device.h"

/* threads.c: Returns 0 in the thread that called weft__parallel, 1 .. threads - 1 in the pool's threads. */
int weft__worker(void);
/* Returns the number of tasks of one weft__parallel that are guaranteed to run concurrently, so they may wait
 * for each other. 1 within a task. */
int weft__concurrent_tasks(weft__device *);
/* A reusable barrier for `of` concurrent tasks. Initialise it with zeros. */
typedef struct weft__barrier { atomic_int here, round; } weft__barrier;
void weft__barrier_wait(weft__barrier *, int of);
/* cpu.c: Returns at least `bytes` of workspace, 64-byte aligned, with undefined contents. Without memory it
 * fails the device and returns NULL. Kernels have no fallback, because another path could change bits. */
void *weft__scratch(weft__device *, size_t bytes);
/* random.c: The kernel `random` of all instruction sets. */
void weft__random(int64_t n, uint64_t key, uint64_t from, bool normal, real a, real b, real *y);
/* amx.c: Returns whether the CPU's tiles give the bits that tiles.h defines. The process must have permission
 * to use tiles. */
bool weft__amx_agrees(void);
/* neon_bf16.c: Returns whether the compiler knew bfmmla. */
bool weft__bf16_is_compiled(void);
#endif
