/* tools.h - errors, memory, clocks and the record of a subcommand, for all files of the command `weft`. */
#ifndef WEFT_TOOLS_H
#define WEFT_TOOLS_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { GOOD = 0, FAILED = 1, USAGE = 2 };        /* exit statuses */

/* A subcommand. about: one line. usage: the operands. details: paragraphs of its help. options: ends with an
 * empty record; NULL: no options. run gets the arguments after the subcommand's name and returns an exit
 * status. */
struct option;
typedef struct {
    const char *name, *about, *usage, *details;
    const struct option *options;
    int (*run)(int argc, char **argv);
} subcommand;
extern const subcommand subcommand_plan, subcommand_corpora, subcommand_lab, subcommand_gpu, subcommand_info,
    subcommand_list, subcommand_show, subcommand_diff, subcommand_convert, subcommand_check, subcommand_env,
    subcommand_run, subcommand_lengths;

/* Prints an error as the last line on stderr and returns status. */
__attribute__((format(printf, 2, 3))) int say_error(int status, const char *format, ...);
/* Prints an error as say_error does and returns false. */
#define say_failure(...) (say_error(FAILED, __VA_ARGS__) == GOOD)
/* Returns zeroed memory for n + 1 elements. get_more resizes an array. Both end the command with an error if
 * memory is exhausted. */
void *get_memory(int64_t n, size_t bytes);
void *get_more(void *, int64_t n, size_t bytes);
/* Before the declaration of a pointer: frees its memory at the end of the block. */
#define SCOPED __attribute__((cleanup(free_memory)))
void free_memory(void *pointer);
/* Flushes stdout and returns status, or prints an error and returns FAILED if a write failed. */
int finish_output(const char *name, int status);
/* Name of the compiler of this file. */
#ifdef __clang__
#define COMPILER __VERSION__ /* begins with its name */
#else
#define COMPILER "gcc " __VERSION__
#endif
/* ---- sha256.c ---- */
typedef struct { uint32_t state[8]; uint64_t bytes; unsigned char block[64]; } sha256;
#define SHA256_START \
    { .state = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, \
                 0x5be0cd19 } }
/* Adds bytes to a hash, or numbers of 4 bytes each, the lowest first. */
void sha256_add_bytes(sha256 *, const void *, size_t n);
void sha256_add(sha256 *, const int32_t *, int64_t n);
/* Ends a hash, writes it as 64 digits, and returns text. */
const char *sha256_end(sha256 *, char text[65]);
/* ---- measure.c ---- */
/* Returns seconds of a monotonic clock. Only differences have a meaning. */
double seconds_now(void);
/* Returns the CPU time of this thread in seconds. */
double cpu_seconds(void);
/* Writes the name of the CPU's model, or "unknown". */
void cpu_model(char *name, size_t size);
/* Writes the date in UTC, as strftime does. DATE: "2026-11-29". */
#define DATE "%Y-%m-%d"
void date_now(const char *format, char date[32]);
/* Compares two int32_t, for qsort. */
int by_length(const void *, const void *);
/* Sorts n >= 1 numbers and returns their quantile q, 0 .. 1, interpolated between its two neighbours. */
double quantile(double *x, int n, double q);
#endif
