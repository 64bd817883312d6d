/* progress.h - how far a training is: on a terminal a bar, ten times a second; elsewhere a line now and
 * then. */
#ifndef EXAMPLES_PROGRESS_H
#define EXAMPLES_PROGRESS_H
#include <stdbool.h>
#include <stdint.h>

/* first: the update with which this process begins. */
typedef struct { double start, shown; int64_t first; } progress;

progress progress_begin(int64_t first);
double   progress_seconds(const progress *p);
/* Updates a second of this process. */
double   progress_rate(const progress *p, int64_t done);
/* Whether it is time to show something; after it text, as printf, between the bar and the time that is
 * left. */
bool     progress_due(progress *p, int64_t done);
void progress_show(const progress *p, int64_t done, int64_t total, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The bar goes, so that a line can be printed. */
void     progress_wipe(void);
#endif
