/* program.h - code that the example programs share: exit with a message, memory, time, signals, a context,
 * files. */
#ifndef EXAMPLES_PROGRAM_H
#define EXAMPLES_PROGRAM_H
#include <stdio.h>
#include "weft_lab.h"
#include "weft_parallel.h"
#include "weft_plot.h"

/* The program's name, in its messages; each program defines it. */
extern const char program[];

/* Prints a message and ends the program. status 1: an error. 2: a wrong call, which only the first rank
 * reports. */
_Noreturn void quit(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Returns whether this process is the first rank, or was started without a launcher. */
bool   first_of_ranks(void);
void  *memory(size_t n, size_t size);            /* zeroed; quits if memory is exhausted */
double seconds(void);                            /* of a monotonic clock */

/* Catches Ctrl-C and SIGTERM. The first only asks the program to stop; the second ends it immediately. */
void   obey_signals(void);
/* Returns the signal that arrived, or 0. */
int    signal_came(void);
/* Returns whether a signal arrived at any rank; all ranks get the same answer. */
bool   stopping(const weft_parallel *ranks);

/* Opens a context, or quits with its message. */
weft  *open_context(weft_device device, int64_t seed, int64_t threads);
/* Quits if the context has failed. The message begins with the text of format, which names the operation. */
void   check_context(const weft *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Quits with the library's message if a function on files failed. */
void   check_file(weft_status status);
/* Returns whether the file exists. */
bool   is_there(const char *path);
/* Closes a file. Quits if a write failed, or if file is NULL because it could not be opened. */
void   end_file(FILE *file, const char *path);
/* Returns the path of a file in a folder, in a buffer that the next call overwrites. */
const char *path_in(const char *folder, const char *name);
/* Returns the numbers of a tensor. The caller frees them. */
double *numbers_of(weft_tensor *x);
/* Draws a matrix [rows, columns] of weights with at most 40 by 70 cells. A cell is the mean of several
 * elements, scaled so that the largest is 1; the title names that mean. Labels count from first_row and
 * first_column. */
void draw_matrix(const char *path, const char *title, int64_t rows, int64_t columns, int64_t first_row,
                 int64_t first_column, const double *weights);
#endif
