/* gradient_blocks.c - collects copies of blocks, and buffers to zero, and runs them in one launch. */
#include "autograd/op.h"

void weft__run_blocks(const weft_call *c, weft__blocks *all)
{
    if (all->n)
        RUN(c, blocks, all->n, all->block);
    all->n = 0;
}

void weft__add_block(const weft_call *c, weft__blocks *all, weft__block_copy one)
{
    bool first = all->n == sizeof all->block / sizeof *all->block;
    for (int64_t i = 0; i < all->n; i++)         /* an input may occur twice */
        first |= one.add && all->block[i].y == one.y;
    if (first)
        weft__run_blocks(c, all);
    all->block[all->n++] = one;
}

void weft__add_zeros(const weft_call *c, weft__blocks *all, real *to, int64_t n)
{
    weft__add_block(c, all, (weft__block_copy){ .rows = 1, .width = n, .ldx = n, .y = to, .ldy = n });
}
