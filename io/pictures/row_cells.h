/* row_cells.h - where the sequences of a batch lie in the layout `rows`, cell by cell. */
#ifndef WEFT_IO_ROW_CELLS_H
#define WEFT_IO_ROW_CELLS_H
#include "io/io.h"

/* taken: [rows, width], 1 + the sequence in that cell, 0: a pad. found: of a placement of ours. */
typedef struct { weft_placement at; int32_t *taken, *found; } weft__row_cells;
/* The caller's placement, or if that is NULL first fit in rows as wide as the longest sequence; refused if it
 * has more than `most` cells, or is none of these sequences. Behind both weft__row_cells_end is called. */
weft_status weft__row_cells_of(const weft_lengths *lengths, int64_t longest, const weft_placement *given,
                               int64_t most, weft__row_cells *out);
void        weft__row_cells_end(weft__row_cells *);
#endif
