/* rounding.h - rounding mode and denormals of a thread. The program may change both at any time, but a task
 * must give the same bits on each thread. Kernels use the caller's rounding mode and flush denormals to 0, if
 * the CPU has a mode for it: riscv64 and s390x have none. Traps and flags of the thread stay unchanged. */
#ifndef WEFT_ROUNDING_H
#define WEFT_ROUNDING_H
#include <stdint.h>
#if defined __SSE__
#include <xmmintrin.h>
/* MXCSR: rounding, flush to zero, denormals are zeros; the last two */
enum { WEFT__ROUNDING = 0xE040, WEFT__DENORMALS = 0x8040 };
static inline uint64_t weft__control(void)                  { return _mm_getcsr(); }
static inline void     weft__set_control(uint64_t control)  { _mm_setcsr((uint32_t)control); }
#elif defined __aarch64__
/* FPCR: rounding, flush to zero (also half precision), default NaN; flush to zero */
enum { WEFT__ROUNDING = 0x3C80000, WEFT__DENORMALS = 0x1000000 };
static inline uint64_t weft__control(void)
{
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return control;
}
static inline void weft__set_control(uint64_t control) { __asm__ volatile("msr fpcr, %0" : : "r"(control)); }
#else
#include <fenv.h>
enum { WEFT__ROUNDING = -1, WEFT__DENORMALS = 0 };
static inline uint64_t weft__control(void)                  { return (uint64_t)fegetround(); }
static inline void     weft__set_control(uint64_t control)  { fesetround((int)control); }
#endif

/* Treats denormals as 0 in this thread, because arithmetic on them is up to a hundred times slower. Returns
 * the value for weft__restore_denormals. */
static inline uint64_t weft__flush_denormals(void)
{
    const uint64_t now = weft__control(), flushed = now | (uint64_t)WEFT__DENORMALS;
    if (now != flushed)
        weft__set_control(flushed);
    return now;
}
/* Restores the caller's mode and keeps flags that were raised in the meantime. */
static inline void weft__restore_denormals(uint64_t before)
{
    if ((before & (uint64_t)WEFT__DENORMALS) != (uint64_t)WEFT__DENORMALS)
        weft__set_control((weft__control() & ~(uint64_t)WEFT__DENORMALS) |
                          (before & (uint64_t)WEFT__DENORMALS));
}

static inline uint64_t weft__rounding(void) { return weft__control() & (uint64_t)WEFT__ROUNDING; }
static inline void weft__round_as(uint64_t rounding)
{
    uint64_t now = weft__control();
    if ((now & (uint64_t)WEFT__ROUNDING) != rounding)
        weft__set_control((now & ~(uint64_t)WEFT__ROUNDING) | rounding);
}
#endif
