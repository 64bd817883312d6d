/* weft_plot.h - for pictures in SVG.
 *
 * Contents: charts, matrices, coloured texts, a cell with its numbers, batches, the tape. */
#ifndef WEFT_PLOT_LEVEL_H
#define WEFT_PLOT_LEVEL_H
#include "weft.h"
#include "io/api_pictures.h"
#endif
