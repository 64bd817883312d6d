/* recur_table.h - defines a file's table of persistent kernels, by cell, reset, size and direction. The
 * including file defines the entries FORWARD and BACKWARD (C, RESET, SIZE), and SMALLEST of three sizes. */
#define BOTH(C, RESET, SIZE) { FORWARD(C, RESET, SIZE), BACKWARD(C, RESET, SIZE) }
#define SIZES(C, RESET)                                                                             \
    {                                                                                               \
        BOTH(C, RESET, SMALLEST), BOTH(C, RESET, 2 * SMALLEST), BOTH(C, RESET, 4 * SMALLEST)         \
    }
#define persistent(of) { SIZES(WEFT__##of, false), SIZES(WEFT__##of, true) },
#define general        {},
#define CELL(name, gpu, ...) gpu
static const persistent_kernel kernels[][2][3][2] = {
#include "core/cells.def"
};
