/* program.h - code that the example programs share: how they end, memory, time, signals, a context, texts of
 * files. */
#ifndef EXAMPLES_PROGRAM_H
#define EXAMPLES_PROGRAM_H
#include <stdio.h>
#include "weft_lab.h"
#include "weft_parallel.h"
#include "weft_plot.h"

/* The program's name, in its messages; each program defines it. */
extern const char program[];

/* A message and the end of the program: 1 for what went wrong, 2 for a wrong call, of which the first of
 * several ranks speaks for all. */
_Noreturn void quit(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Whether a launcher has started this process as the first of its ranks, or none has. */
bool   first_of_ranks(void);
void  *memory(size_t n, size_t size);            /* zeroed, or quits */
double seconds(void);                            /* of a clock that no one sets */

/* From now on the first Ctrl-C, or SIGTERM, is a wish, the second ends the program at once. */
void   obey_signals(void);
/* The signal that came, 0 if none. */
int    signal_came(void);
/* Whether one came, to any of the ranks; the same on all of them. */
bool   stopping(const weft_parallel *ranks);

/* A context, or the end with its message. */
weft  *open_context(weft_device device, int64_t seed, int64_t threads);
/* Quits unless all is well with it; what was being done stands in the message, as printf. */
void   check_context(const weft *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Quits with the library's message unless a function on files went well. */
void   check_file(weft_status status);
/* Whether there is such a file. */
bool   is_there(const char *path);
/* Quits unless everything has been written to the file, NULL if it could not be opened. Closes it. */
void   end_file(FILE *file, const char *path);
/* Returns the path of a file in a folder, in a buffer that the next call overwrites. */
const char *path_in(const char *folder, const char *name);
/* Returns the numbers of a tensor. The caller frees them. */
double *numbers_of(weft_tensor *x);
/* Draws a matrix [rows, columns] of weights by at most 40 by 70 cells. Each is the mean of several elements,
 * and 1 is the largest mean, which the title gets. Labels count from first_row and first_column. */
void draw_matrix(const char *path, const char *title, int64_t rows, int64_t columns, int64_t first_row,
                 int64_t first_column, const double *weights);
#endif
