/* progress.c - see progress.h. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "program.h"
#include "progress.h"

enum { AT_FIRST = 10 };                          /* updates; before them there is nothing to show */

progress progress_begin(int64_t first, const weft_parallel *ranks)
{
    return (progress){
        .start = seconds(), .waited = weft_parallel_place_of(ranks).waited, .first = first, .ranks = ranks
    };
}

double progress_seconds(const progress *p) { return seconds() - p->start; }

double progress_rate(const progress *p, int64_t done)
{
    double spent = progress_seconds(p);
    return spent > 0 ? (double)(done - p->first) / spent : 0;
}

double progress_tokens(const progress *p)
{
    double spent = progress_seconds(p);
    return spent > 0 ? (double)p->tokens / spent : 0;
}

double progress_waiting(const progress *p)
{
    double spent = progress_seconds(p);
    return spent > 0 ? (weft_parallel_place_of(p->ranks).waited - p->waited) / spent : 0;
}

void progress_log(const progress *p, weft_journal *log)
{
    weft_journal_number(log, "tokens_per_second", progress_tokens(p));
    weft_journal_number(log, "waiting", progress_waiting(p));
    weft_journal_number(log, "seconds", progress_seconds(p));
}

bool progress_speaks(const progress *p, bool before, const char *path, weft_journal **log)
{
    bool now = weft_parallel_place_of(p->ranks).rank == 0;
    if (now && !before && path && weft_journal_open(path, true, log) != WEFT_OK)
        quit(1, "%s", weft_file_message());
    return now;
}

bool progress_due(progress *p, int64_t done)
{
    double now = seconds();
    if (done - p->first < AT_FIRST || now - p->shown < (isatty(STDERR_FILENO) ? 0.1 : 15))
        return false;
    p->shown = now;
    return true;
}

void progress_show(const progress *p, int64_t done, int64_t total, const char *format, ...)
{
    bool terminal = isatty(STDERR_FILENO);
    double share = total ? (double)done / (double)total : 1, rate = progress_rate(p, done);
    double left = rate > 0 ? (double)(total - done) / rate : 0;
    char bar[] = "                              ";
    memset(bar, '=', (size_t)(share * (sizeof bar - 1)));
    fprintf(stderr, terminal ? "\r\033[K[%s] %3.0f %%  " : "%s%3.0f %%  ", terminal ? bar : "", 100 * share);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "  %.0f tokens/s", progress_tokens(p));
    if (weft_parallel_place_of(p->ranks).ranks > 1)
        fprintf(stderr, "  waiting %.0f %%", 100 * progress_waiting(p));
    fprintf(stderr, "  %d:%02d left%s", (int)(left / 60), (int)left % 60, terminal ? "" : "\n");
}

void progress_wipe(void)
{
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
}
