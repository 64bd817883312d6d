/* shape.h - what JSON of a plan has beside its pieces, and which pieces could carry a state on. */
#ifndef WEFT_TOOLS_SHAPE_H
#define WEFT_TOOLS_SHAPE_H
#include "tools/plan/plan.h"

/* Whether pieces are one a row, from its first cell on, so that batches of pieces say all. */
bool is_one_a_row(const weft_plan *);
/* Prints ", \"capacity\": .." and whatever else a reader could not infer; false, with a message: no
 * memory. */
bool json_shape(const planned *);
/* For each segment the one of the batch before that ends where it begins, or -1; NULL: no memory. */
int32_t *possible_carries(const weft_plan *);
#endif
