/* cuda_emu.h - as much of CUDA as the back end uses, on a CPU: so that its sources are compiled by a plain
 * C++17 compiler and every kernel runs, slowly, in tests on machines without a GPU, under sanitizers, and in
 * orders that a GPU takes once a year.
 *
 *     g++ -std=c++17 -x c++ -include tests/emu/cuda_emu.h -I. -Wall -Wextra -fPIC -c cuda/sums.cu
 *     g++ -std=c++17 ... -c tests/emu/fibers.cpp   (and block, memory, streams, cublas, cores)
 *
 * It is stricter than a GPU where bugs hide. Its environment, read anew at each use:
 *     WEFT_EMU_ORDER   0 forward, 1 reverse, 2 scattered: in which order threads run (fibers.h)
 *     WEFT_EMU_SEED    0 lazy, 1 eager, more: by lot: in which order streams run (runtime.h); and the lots of
 *                      order 2
 *     WEFT_EMU_ASYNC   0 cp.async and st.async at once, 1 as late as they may (cores.h)
 *     WEFT_EMU_GUARD   0: the host may look into device memory
 *     WEFT_EMU_MEMORY  bytes of device memory; more is cudaErrorMemoryAllocation
 *     WEFT_EMU_DEVICES devices (2)
 *     WEFT_EMU_FAIL    a kernel whose name contains this fails as by an illegal address, and the device is
 *                      lost until cudaDeviceReset
 *     WEFT_EMU_REFUSE  the launch of such a kernel is refused
 *     WEFT_EMU_WRONG   such a kernel's tensor cores err; WEFT_EMU_LOSE: what it sends to other blocks never
 *                      comes
 *     WEFT_EMU_CC      75, 80, 86, 89, 90, 100, 110, 120: the GPU's compute capability, with its shared
 *                      memory and clusters; for 75 and 86 there is no code, 89 runs that for 80, the
 *                      code for 100 and what the driver makes for 110 are of the PTX of 90
 *     WEFT_EMU_CODE    80, 90, 120: the plug-in's code was made from PTX for this sm_ alone
 *     WEFT_EMU_SKIP    1: no kernel and no product is executed, so that a step's launches can be counted at
 *                      shapes that would take hours
 *     WEFT_EMU_SAY     1: the name of each kernel that is launched, and of each product, on stderr
 *     WEFT_EMU_PTX     a folder with NAME.CC.ptx for each cuda/NAME.cu and compute capability, as the build
 *                      keeps it: kernels are executed as nvcc has made them (tests/ptx)
 *     WEFT_EMU_PTX_SAY a file to which the name of each kernel that is executed so is added
 *     WEFT_EMU_TIMES   "block_kernel=5 forward_units=.3": what events tell, so many milliseconds for each
 *                      such kernel and nothing else
 *     WEFT_EMU_QUERIES 0: what is asked of a device's and a kernel's attributes is refused
 *     WEFT_EMU_PROCESSORS  multiprocessors (16)
 *     WEFT_EMU_DRIVER  the CUDA version that the driver knows (13000)
 *
 * It cannot show: what nvcc makes of a kernel and how tensor cores cut (WEFT_EMU_PTX does), weak memory
 * order, bank conflicts, occupancy, registers, time. */
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
