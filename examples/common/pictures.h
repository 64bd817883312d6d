/* pictures.h - what the example programs share when they draw. */
#ifndef EXAMPLES_PICTURES_H
#define EXAMPLES_PICTURES_H
#include "weft.h"

/* Returns the path of a file in a folder, in a buffer that the next call overwrites. */
const char *path_in(const char *folder, const char *name);
/* Returns the numbers of a tensor. The caller frees them. */
double *numbers_of(weft_tensor *x);
/* Draws a matrix [rows, columns] of weights by at most 40 by 70 cells. Each is the mean of several elements,
 * and 1 is the largest mean, which the title gets. Labels count from first_row and first_column. */
void draw_matrix(const char *path, const char *title, int64_t rows, int64_t columns, int64_t first_row,
                 int64_t first_column, const double *weights);
#endif
