/* cpu.h - what the CPU's kernels know beyond the contract: which thread of the pool they run on, and scratch
 * memory. Every function that a kernel file defines is static: an AVX-512 copy of a shared one could be
 * linked for a machine without it. */
#ifndef WEFT_CPU_H
#define WEFT_CPU_H
#include <stdatomic.h>
#include "core/device.h"

/* threads.c: 0 for the thread that called weft__parallel, 1 .. threads - 1 for the pool's own. */
int weft__worker(void);
/* So many tasks of one weft__parallel, and no fewer, are sure to run at once: they may wait for one
 * another. 1 within a task. */
int weft__together(weft__device *);
/* Waits until `of` tasks that run at once are there, again and again; begun with zeros. */
typedef struct weft__meeting { atomic_int here, round; } weft__meeting;
void weft__meet(weft__meeting *, int of);
/* cpu.c: at least that many bytes of the device's workspace, 64-byte aligned, its old contents gone. NULL:
 * the device has failed, and there is nothing to be done instead: another kernel would give other bits. */
void *weft__scratch(weft__device *, size_t bytes);
/* random.c: what the kernel `random` is on every instruction set. */
void weft__random(int64_t n, uint64_t key, uint64_t from, bool normal, real a, real b, real *y);
/* amx.c: whether the chip's tiles give the bits that tiles.h promises; the process must have the
 * permission to use them. */
bool weft__amx_agrees(void);
#endif
