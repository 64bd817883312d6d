/* given.h - lesson 5: texts of brackets and quotes, and an LSTM that has learnt to read
 * them. */
#ifndef WEFT_LESSON_05_GIVEN
#define WEFT_LESSON_05_GIVEN
#include "lesson.h"

enum { TEXTS = 50, LONG = 40, LONGEST = 120, MOST = TEXTS * LONGEST };
/* Numbers of MOST tokens, and the record that points to them. */
typedef struct {
    record r;
    double c[MOST * UNITS], h[MOST * UNITS], target[MOST * OUTPUTS];
} reading;

/* show.c: the same net each time: 4,000 updates with texts of 5 to 40 tokens, half a
 * second. */
typedef struct net net;
net *net_trained(void);
void net_free(net *n);
/* Reads `texts` texts of that length that it has not seen; or one text of the letters (
 * ) ". */
void net_reads(net *n, int texts, int length, reading *to);
void net_reads_text(net *n, const char *text, reading *to);
#endif
