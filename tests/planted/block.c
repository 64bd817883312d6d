/* block.c - a planted bug: a block of the context's allocator that is never given back. The net is CLEAN. */
#include "../check.h"
#include "core/inside.h"

Test(planted, block)
{
    weft *w = open_on(WEFT_CPU);
    w->dev.allocate(64, w->dev.user);
    CLEAN(w);
}
