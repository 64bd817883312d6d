/* gates.c - what the gates of the cells of core/cells.def are called. */
#include <string.h>
#include "rnn/rnn.h"

const char *weft__gate_names(weft__cell cell)
{
#define CELL(name, gpu, gates, slots, states, x, h, names, ...) names,
    static const char *const of[] = {
#include "core/cells.def"
    };
    return of[cell];
}

int weft__gate_of(weft__cell cell, char letter)
{
    const char *names = weft__gate_names(cell), *at = letter ? strchr(names, letter) : NULL;
    return at ? (int)(at - names) / 2 : -1;
}
