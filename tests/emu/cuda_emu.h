/* cuda_emu.h - emulates the part of CUDA that the back end uses, on a CPU. A C++17 compiler compiles the
 * back end's sources, and every kernel runs, slowly, on machines without a GPU, under sanitizers, and in
 * thread orders that are rare on a GPU. mk/cuda.mk has the commands.
 *
 * It is stricter than a GPU where bugs hide. It reads these variables again at each use:
 *     WEFT_EMU_ORDER   order of threads: 0 forward, 1 reverse, 2 random (fibers.h)
 *     WEFT_EMU_SEED    order of streams: 0 lazy, 1 eager, 2 and more random (runtime.h); also the seed of
 *                      thread order 2
 *     WEFT_EMU_ASYNC   cp.async and st.async complete 0 immediately, 1 as late as allowed (cores.h)
 *     WEFT_EMU_GUARD   0: the host may access device memory
 *     WEFT_EMU_MEMORY  bytes of device memory; more is cudaErrorMemoryAllocation
 *     WEFT_EMU_DEVICES devices (2)
 *     WEFT_EMU_FAIL    a kernel whose name contains this fails with an illegal address, and the device is
 *                      lost until cudaDeviceReset
 *     WEFT_EMU_REFUSE  the launch of such a kernel is refused
 *     WEFT_EMU_WRONG   such a kernel's tensor cores give wrong products
 *     WEFT_EMU_LOSE    such a kernel's stores to other blocks are lost
 *     WEFT_EMU_CC      75, 80, 86, 89, 90, 100, 110, 120: the GPU's compute capability, with its shared
 *                      memory and clusters. 75 and 86 have no code, 89 runs the code of 80, and the code of
 *                      100 and 110 is compiled from the PTX of 90, for 110 by the driver
 *     WEFT_EMU_CODE    80, 90, 120: the plug-in contains code from the PTX of this sm_ only
 *     WEFT_EMU_SKIP    1: executes no kernel and no product, to count a step's launches at shapes that would
 *                      take hours
 *     WEFT_EMU_SAY     1: prints the name of each launched kernel and of each product to stderr
 *     WEFT_EMU_PTX     a folder with NAME.CC.ptx for each cuda/NAME.cu and compute capability, from the
 *                      build: executes the PTX of nvcc instead of the C++ (tests/ptx)
 *     WEFT_EMU_PTX_LOG a file: appends the name of each kernel that is executed from PTX
 *     WEFT_EMU_TIMES   "block_kernel=5 forward_units=.3": milliseconds of these kernels in event times; all
 *                      other work takes 0
 *     WEFT_EMU_QUERIES 0: refuses queries of device and kernel attributes
 *     WEFT_EMU_PROCESSORS  multiprocessors (16)
 *     WEFT_EMU_DRIVER  the CUDA version that the driver supports (13000)
 *
 * It does not show nvcc's code and the rounding of tensor cores (WEFT_EMU_PTX does), weak memory order, bank
 * conflicts, occupancy, registers, time. */
#ifndef WEFT_EMU_H
#define WEFT_EMU_H
#define WEFT_EMULATED 1                          /* to the sources: CUDA's own headers are not needed */
#include "tests/emu/fibers.h"
#include "tests/emu/launch.h"
#include "tests/emu/runtime.h"
#include "tests/emu/cublas.h"
#include "tests/emu/nccl.h"
#include "tests/emu/cores.h"
#endif
