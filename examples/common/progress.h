/* progress.h - how far a training is: on a terminal a bar, ten times a second; elsewhere a line now and
 * then. */
#ifndef EXAMPLES_PROGRESS_H
#define EXAMPLES_PROGRESS_H
#include "weft.h"

/* first: the update with which this process begins; tokens since then, of all ranks; waited: seconds
 * before. */
typedef struct { double start, shown, waited; int64_t first, tokens; const weft_parallel *ranks; } progress;

progress progress_begin(int64_t first, const weft_parallel *ranks);
double   progress_seconds(const progress *p);
/* Updates a second of this process. */
double   progress_rate(const progress *p, int64_t done);
/* Tokens a second of all ranks, and the share of the time that a rank waits for others. */
double   progress_tokens(const progress *p), progress_waiting(const progress *p);
/* Both into a line of the log, with the seconds. */
void     progress_log(const progress *p, weft_journal *log);
/* Whether this rank speaks for all: another may have to, since the one before is gone, and then it goes on
 * with the journal path (NULL: none). */
bool     progress_speaks(const progress *p, bool before, const char *path, weft_journal **log);
/* Whether it is time to show something; after it text, as printf, between the bar and the tokens a second and
 * the time that is left. */
bool     progress_due(progress *p, int64_t done);
void progress_show(const progress *p, int64_t done, int64_t total, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The bar goes, so that a line can be printed. */
void     progress_wipe(void);
#endif
