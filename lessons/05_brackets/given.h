/* given.h - lesson 5: an LSTM that is trained to read brackets and quotes. */
#ifndef WEFT_LESSON_05_GIVEN
#define WEFT_LESSON_05_GIVEN
#include "lesson.h"

enum { TEXTS = 50, LONG = 40, LONGEST = 120, MOST = TEXTS * LONGEST };
/* Arrays for MOST tokens, and the record that points to them. */
typedef struct {
    record r;
    double c[MOST * UNITS], h[MOST * UNITS], target[MOST * OUTPUTS];
} reading;

/* show.c: a network, the same in each run: 4,000 updates with texts of 5 to 40 tokens,
 * in half a second. */
typedef struct net net;
net *net_trained(void);
void net_free(net *n);
/* Run the network over new texts of one length, or over one text of letters ( ) ". */
void net_reads(net *n, int texts, int length, reading *to);
void net_reads_text(net *n, const char *text, reading *to);
#endif
