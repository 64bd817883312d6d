/* progress.c - shows the current experiment and its progress in one line of a terminal. */
#include <stdarg.h>
#include <unistd.h>
#include "tools/lab/run.h"

enum { COLUMNS = 79 };

/* Static, because a process has one terminal. */
static char words[200];
static double drawn;

/* share: 0 .. 1, or below 0 if unknown. */
static void draw(const lab_run *r, double share)
{
    char line[300], part[16] = "";
    if (share >= 0)
        snprintf(part, sizeof part, "%3.0f %%  ", 100 * fmin(share, 1));
    snprintf(line, sizeof line, "%4.0f s  %s%s", seconds_now() - r->started, part, words);
    fprintf(stderr, "\r\033[K%.*s", COLUMNS, line);
    fflush(stderr);
    drawn = seconds_now();
}

void lab_progress(const lab_run *r, const char *format, ...)
{
    if (!isatty(STDERR_FILENO))
        return;
    va_list list;
    va_start(list, format);
    vsnprintf(words, sizeof words, format, list);
    va_end(list);
    draw(r, -1);
}

void lab_progress_at(const lab_run *r, double share)
{
    if (isatty(STDERR_FILENO) && seconds_now() - drawn >= .1)
        draw(r, share);
}

void lab_end_progress(void)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K");
}
