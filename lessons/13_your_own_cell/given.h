/* Lesson 13: makes a step one of weft's cells, with two sums of tokens and no sum of
 * states. */
#ifndef WEFT_LESSON_13_GIVEN
#define WEFT_LESSON_13_GIVEN
#include "lesson.h"

static inline weft_cell cell_of(weft_cell_step *step)
{
    static const weft_cell_parameter own = { "v", WEFT_CELL_VECTOR, 1, NULL };
    return (weft_cell){ .name = "light",
                        .gate_names = "n f",
                        .gates = 2,
                        .gates_h = -1,
                        .own = &own,
                        .own_count = 1,
                        .step = step };
}
#endif
