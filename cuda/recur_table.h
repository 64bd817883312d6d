/* recur_table.h - makes the table of a file's kernels for all steps, by cell, by whether columns are several
 * sequences, by three sizes and by direction. The file that includes it defines FORWARD and BACKWARD
 * (C, RESET, SIZE), each an entry of the table, and SMALLEST, the first size. */
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
