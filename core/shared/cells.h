/* cells.h - what cells.def says of each cell, as functions that a compiler folds where the cell is known. C
 * and C++: the CPU's tables include them, and so does nvcc. */
#ifndef WEFT_SHARED_CELLS_H
#define WEFT_SHARED_CELLS_H
#include <stddef.h>

#define CELL(name, ...) WEFT__##name,
typedef enum {
#include "core/cells.def"
    WEFT__CELLS
} weft__cell;

#ifdef __cplusplus
#define CELL_FACT __host__ __device__ constexpr
#else
#define CELL_FACT static inline
#endif
#define CELL(name, gpu, gates, slots, states, ...) case WEFT__##name: return gates;
CELL_FACT int weft__gates(weft__cell cell)
{
    switch (cell) {
#include "core/cells.def"
    default: return 0;
    }
}
#define CELL(name, gpu, gates, slots, states, ...) case WEFT__##name: return slots;
CELL_FACT int weft__slots(weft__cell cell)
{
    switch (cell) {
#include "core/cells.def"
    default: return 0;
    }
}
#define CELL(name, gpu, gates, slots, states, ...) case WEFT__##name: return states;
CELL_FACT int weft__states(weft__cell cell)
{
    switch (cell) {
#include "core/cells.def"
    default: return 0;
    }
}
#define CELL(name, gpu, gates, slots, states, x, h, names, flops, ...) case WEFT__##name: return flops;
CELL_FACT int weft__flops(weft__cell cell)
{
    switch (cell) {
#include "core/cells.def"
    default: return 0;
    }
}

/* ---- maps: which block of the weights of x, of h, belongs to a slot; -1: none ---- */
#define CELL_BLOCK(slot, ...) CELL_BLOCK_(slot, __VA_ARGS__, -1, -1, -1, -1)
#define CELL_BLOCK_(slot, a, b, c, d, ...) \
    ((slot) == 0 ? (a) : (slot) == 1 ? (b) : (slot) == 2 ? (c) : (slot) == 3 ? (d) : -1)
#define CELL_LIST(...) __VA_ARGS__
#define CELL(name, gpu, gates, slots, states, x, h, ...) \
    case WEFT__##name:                                   \
        return CELL_BLOCK(slot, CELL_LIST x);
CELL_FACT int weft__block_of_x(weft__cell cell, int slot)
{
    switch (cell) {
#include "core/cells.def"
    default: return -1;
    }
}
#define CELL(name, gpu, gates, slots, states, x, h, ...) \
    case WEFT__##name:                                   \
        return CELL_BLOCK(slot, CELL_LIST h);
CELL_FACT int weft__block_of_h(weft__cell cell, int slot)
{
    switch (cell) {
#include "core/cells.def"
    default: return -1;
    }
}
CELL_FACT int weft__block_of(weft__cell cell, bool of_h, int slot)
{
    return of_h ? weft__block_of_h(cell, slot) : weft__block_of_x(cell, slot);
}
/* The slot that a block is summed up in. */
CELL_FACT int weft__slot_of(weft__cell cell, bool of_h, int block)
{
    return weft__block_of(cell, of_h, 0) == block ? 0 :
           weft__block_of(cell, of_h, 1) == block ? 1 :
           weft__block_of(cell, of_h, 2) == block ? 2 :
                                                    3;
}
/* The slot that only h has a part in: its sums begin with h's bias. -1: there is none. */
CELL_FACT int weft__slot_of_h_alone(weft__cell cell)
{
    for (int slot = 0; slot < weft__slots(cell); slot++)
        if (weft__block_of_x(cell, slot) < 0)
            return slot;
    return -1;
}
/* How many blocks from this one on lie in slots beside each other, too: what is one product, or one sum, in
 * all of them. Such a slot is apart. */
CELL_FACT int weft__blocks_from(weft__cell cell, bool of_h, int block)
{
    const int first = weft__slot_of(cell, of_h, block), alone = weft__slot_of_h_alone(cell);
    int n = 1;
    while (first != alone && block + n < weft__gates(cell) &&
           weft__slot_of(cell, of_h, block + n) == first + n && first + n != alone)
        n++;
    return n;
}
#undef CELL_LIST
#undef CELL_BLOCK_
#undef CELL_BLOCK
#undef CELL_FACT
#endif
