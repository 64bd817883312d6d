/* launched.h - where the emulation hands its launches over. */
#ifndef WEFT_PTX_LAUNCHED_H
#define WEFT_PTX_LAUNCHED_H
#include "tests/emu/runtime.h"

namespace ptx {
/* With WEFT_EMU_PTX: executes the kernel's PTX; l.failure says what went wrong. Otherwise false. */
bool interpreted(emu::Launch &l);
/* NULL, or why a GPU would refuse that launch. */
const char *refused(const emu::Launch &l);
} // namespace ptx
#endif
