/* block.c - a planted bug: a block of the context's allocator is never freed. CLEAN must find it. */
#include "../check.h"
#include "core/inside.h"

Test(planted, block)
{
    weft *w = open_on(WEFT_CPU);
    w->dev.allocate(64, w->dev.user);
    CLEAN(w);
}
