/* given.h - lesson 7: arrays for a packing, and the packing that weft computes. */
#ifndef WEFT_LESSON_07_GIVEN
#define WEFT_LESSON_07_GIVEN
#include "lesson.h"

enum { MOST = 150, ROOM = MOST * MOST }; /* sequences and steps; rows */
/* The arrays of a packing. Each has one number more than it needs. */
typedef struct {
    packing p;
    int32_t memory[5][ROOM + 1];
} room;
/* show.c: fills the arrays of so many rows with -1. */
void room_clear(room *r, int rows);
/* Computes a packing with weft. */
void by_weft(int n, const int32_t *len, room *r);
#endif
