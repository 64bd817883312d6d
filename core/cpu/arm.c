/* arm.c - the features of an ARM CPU, by the system's list. */
#include "core/cpu/cpu.h"
#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#ifndef HWCAP2_BF16
#define HWCAP2_BF16 (1 << 14)
#endif
bool weft__arm_has_bf16(void) { return getauxval(AT_HWCAP2) & HWCAP2_BF16; }
#else
bool weft__arm_has_bf16(void) { return false; }
#endif
