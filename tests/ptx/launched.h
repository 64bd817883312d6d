/* launched.h - the emulation's interface to the interpreter. */
#ifndef WEFT_PTX_LAUNCHED_H
#define WEFT_PTX_LAUNCHED_H
#include "tests/emu/runtime.h"

namespace ptx {
/* With WEFT_EMU_PTX, executes the kernel's PTX, sets l.failure on an error and returns true. Otherwise
 * returns false. */
bool interpreted(emu::Launch &l);
/* Returns NULL, or why a GPU would reject the launch. */
const char *refused(const emu::Launch &l);
} // namespace ptx
#endif
