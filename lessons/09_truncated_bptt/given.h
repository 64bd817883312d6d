/* given.h - the text of lesson 9. */
#ifndef WEFT_LESSON_09_GIVEN
#define WEFT_LESSON_09_GIVEN
#include "lesson.h"

/* A sequence begins with a key, one of a .. d. Other letters and question marks follow,
 * and after each question mark the key comes again. */
enum { SEQUENCES = 24, SHORTEST = 20, LONGEST = 180 };
enum { LETTERS = 8, HIDDEN = 16, SLOTS = 8 };
static const char alphabet[] = "abcdxyz?";
typedef struct {
    int32_t len[SEQUENCES], letter[SEQUENCES * LONGEST]; /* end to end */
    int32_t start[SEQUENCES], tokens;
} text;
#endif
