/* magnet.h - data for examples/forecast.c: cycles of a magnet's current, and its field by a model of
 * hysteresis.
 *
 * Columns of a frame: "I" the current, "dI" its change since the row before (both are programmed, so known in
 * advance), and "B" the field. */
#ifndef EXAMPLES_MAGNET_H
#define EXAMPLES_MAGNET_H
#include "weft.h"

typedef enum { TRAIN, VALIDATION, TEST } part;
/* noise: standard deviation of the measured field, in the unit of B */
typedef struct {
    int64_t series, seed;
    double noise;
} field_opts;

/* Makes the series of a part: opts->series for training, an eighth of that (4 or more) for the others. Series
 * number i of a part has the same numbers for any count, on every machine. End it by weft_frame_free. */
weft_frame field_series(part p, const field_opts *opts);
/* Returns the rows of a series, and its field from a row on. */
int64_t series_rows(const weft_frame *f, int64_t series);
const double *field_from(const weft_frame *f, int64_t series, int64_t row);
#endif
