/* given.h - lesson 7: room for a packing, and weft's own of the same lengths. */
#ifndef WEFT_LESSON_07_GIVEN
#define WEFT_LESSON_07_GIVEN
#include "lesson.h"

enum { MOST = 40, ROOM = MOST * MOST }; /* sequences and steps; rows */
/* Arrays for a packing, filled with -1; one row more each, to see what is written
 * behind the end. */
typedef struct {
    packing p;
    int32_t memory[5][ROOM + 1];
} room;
/* show.c */
void room_clear(room *r);
/* By weft: batch_sizes, the two indices, and which token is in which row. */
void by_weft(int n, const int32_t *len, room *r);
#endif
