/* cells.h - the columns of cells.def as functions, which the compiler folds if the cell is constant. C and
 * C++: the tables of the CPU and nvcc include it. kernels.h has the type weft__cell. */
#ifndef WEFT_SHARED_CELLS_H
#define WEFT_SHARED_CELLS_H

#ifdef __cplusplus
#define CELL_FACT __host__ __device__ constexpr
#else
#define CELL_FACT static inline
#endif
enum { CELL_GATES, CELL_SLOTS, CELL_STATES, CELL_FLOPS };
#define CELL(name, gpu, gates, slots, states, x, h, names, flops, ...) \
    case WEFT__##name:                                                 \
        return column == CELL_GATES  ? gates :                         \
               column == CELL_SLOTS  ? slots :                         \
               column == CELL_STATES ? states :                        \
                                       flops;
CELL_FACT int weft__cell_number(weft__cell cell, int column)
{
    switch (cell) {
#include "core/cells.def"
    default: return 0;
    }
}
CELL_FACT int weft__gates(weft__cell cell)  { return weft__cell_number(cell, CELL_GATES); }
CELL_FACT int weft__slots(weft__cell cell)  { return weft__cell_number(cell, CELL_SLOTS); }
CELL_FACT int weft__states(weft__cell cell) { return weft__cell_number(cell, CELL_STATES); }
CELL_FACT int weft__flops(weft__cell cell)  { return weft__cell_number(cell, CELL_FLOPS); }

/* ---- maps: the block of W_ih, or W_hh, that belongs to a slot; -1: no block ---- */
#define CELL_BLOCK(slot, ...) CELL_BLOCK_(slot, __VA_ARGS__, -1, -1, -1, -1)
#define CELL_BLOCK_(slot, a, b, c, d, ...) \
    ((slot) == 0 ? (a) : (slot) == 1 ? (b) : (slot) == 2 ? (c) : (slot) == 3 ? (d) : -1)
#define CELL_LIST(...) __VA_ARGS__
#define CELL(name, gpu, gates, slots, states, x, h, ...) \
    case WEFT__##name:                                   \
        return of_h ? CELL_BLOCK(slot, CELL_LIST h) : CELL_BLOCK(slot, CELL_LIST x);
CELL_FACT int weft__block_of(weft__cell cell, bool of_h, int slot)
{
    switch (cell) {
#include "core/cells.def"
    default: return -1;
    }
}
CELL_FACT int weft__block_of_x(weft__cell cell, int slot) { return weft__block_of(cell, false, slot); }
CELL_FACT int weft__block_of_h(weft__cell cell, int slot) { return weft__block_of(cell, true, slot); }
/* Returns the slot that a block is added to. */
CELL_FACT int weft__slot_of(weft__cell cell, bool of_h, int block)
{
    return weft__block_of(cell, of_h, 0) == block ? 0 :
           weft__block_of(cell, of_h, 1) == block ? 1 :
           weft__block_of(cell, of_h, 2) == block ? 2 :
                                                    3;
}
/* Returns the slot without input, whose sums begin with a bias of h, or -1. */
CELL_FACT int weft__slot_of_h_alone(weft__cell cell)
{
    for (int slot = 0; slot < weft__slots(cell); slot++)
        if (weft__block_of_x(cell, slot) < 0)
            return slot;
    return -1;
}
/* Returns the number of consecutive blocks, from this one on, whose slots are also consecutive. One product
 * or sum covers them. The slot without input is always separate. */
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
