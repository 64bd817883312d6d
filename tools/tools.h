/* tools.h - what the subcommands of `weft` share. */
#ifndef WEFT_TOOLS_H
#define WEFT_TOOLS_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { GOOD = 0, FAILED = 1, USAGE = 2 };        /* exit statuses */

/* A subcommand. about: one line; usage: the operands; details: paragraphs of its help; options: ends with an
 * empty one, NULL if there are none. run gets the arguments after the subcommand's name and returns an exit
 * status. */
struct option;
typedef struct {
    const char *name, *about, *usage, *details;
    const struct option *options;
    int (*run)(int argc, char **argv);
} subcommand;
extern const subcommand subcommand_plan, subcommand_corpora, subcommand_lab, subcommand_gpu;

/* Prints an error as the last line on stderr and returns status. */
__attribute__((format(printf, 2, 3))) int say_error(int status, const char *format, ...);
/* The same for FAILED; false. */
#define say_failure(...) (say_error(FAILED, __VA_ARGS__) == GOOD)
/* Returns memory for n things of so many bytes, and one more, all zeros. get_more changes the size of an
 * array. Both end the command with an error if there is none. */
void *get_memory(int64_t n, size_t bytes);
void *get_more(void *, int64_t n, size_t bytes);
/* Flushes stdout and returns status; FAILED, with an error, if something could not be written. */
int finish_output(const char *name, int status);
/* measure.c: */
/* Returns seconds of a clock that is never set; only differences mean something. */
double seconds_now(void);
/* Returns the seconds for which a CPU has run this thread. */
double cpu_seconds(void);
/* Compares two int32_t, for qsort. */
int by_length(const void *, const void *);
/* Sorts n numbers, 1 or more, and returns their quantile q, 0 .. 1, interpolated between the two nearest. */
double quantile(double *x, int n, double q);
#endif
