/* rounding.h - how a thread rounds: its rounding mode, and whether denormals count as 0. A host program may
 * change both at any time, and a task must give the same bits on whichever thread it runs; traps and flags
 * are the thread's own affair. */
#ifndef WEFT_ROUNDING_H
#define WEFT_ROUNDING_H
#include <stdint.h>
#if defined __SSE__
#include <xmmintrin.h>
enum { WEFT__ROUNDING = 0xE040 };                /* of MXCSR: rounding, flush to zero, denormals are zeros */
static inline uint64_t weft__control(void)                  { return _mm_getcsr(); }
static inline void     weft__set_control(uint64_t control)  { _mm_setcsr((uint32_t)control); }
#elif defined __aarch64__
/* of FPCR: rounding, flush to zero, also of half precision; default NaN */
enum { WEFT__ROUNDING = 0x3C80000 };
static inline uint64_t weft__control(void)
{
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return control;
}
static inline void weft__set_control(uint64_t control) { __asm__ volatile("msr fpcr, %0" : : "r"(control)); }
#else
#include <fenv.h>
enum { WEFT__ROUNDING = -1 };
static inline uint64_t weft__control(void)                  { return (uint64_t)fegetround(); }
static inline void     weft__set_control(uint64_t control)  { fesetround((int)control); }
#endif

static inline uint64_t weft__rounding(void) { return weft__control() & (uint64_t)WEFT__ROUNDING; }
static inline void weft__round_as(uint64_t rounding)
{
    uint64_t now = weft__control();
    if ((now & (uint64_t)WEFT__ROUNDING) != rounding)
        weft__set_control((now & ~(uint64_t)WEFT__ROUNDING) | rounding);
}
#endif
