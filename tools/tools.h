/* tools.h - what the subcommands of `weft` share. */
#ifndef WEFT_TOOLS_H
#define WEFT_TOOLS_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { GOOD = 0, FAILED = 1, USAGE = 2 };        /* exit statuses */

/* A subcommand; arguments without the names of command and subcommand. Returns an exit status. */
typedef struct { const char *name, *usage, *about; int (*run)(int argc, char **argv); } subcommand;
extern const subcommand subcommand_plan, subcommand_corpora, subcommand_lab, subcommand_gpu;

/* The text of an error, as the last line on stderr; returns status. */
__attribute__((format(printf, 2, 3))) int say_error(int status, const char *format, ...);

/* lengths.c: integers between white space; path "-": stdin. To be freed; NULL after an error, which was
 * said. */
int32_t *read_lengths(const char *path, int64_t *n);

/* measure.c: of a clock that nobody sets; it has no beginning of its own. */
double seconds_now(void);
/* Sorts n numbers, 1 or more; q of them, 0 .. 1, are below what it returns: on the line between the two that
 * are nearest. */
double quantile(double *x, int n, double q);
#endif
