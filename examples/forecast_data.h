/* forecast_data.h - a magnet's field that remembers: series of cycles of the current, and the field by a
 * model of hysteresis.
 *
 * Columns of a frame: "I" the current, "dI" its change since the row before (both are programmed, so known in
 * advance), and "B" the field. */
#ifndef FORECAST_DATA_H
#define FORECAST_DATA_H
#include "weft.h"

typedef enum { TRAIN, VALIDATION, TEST } part;
/* noise: standard deviation of what is measured, in the unit of B */
typedef struct { int64_t series, seed; double noise; } field_opts;

/* The series of a part: as many as opts says for training, an eighth of that (but 4 or more) for the others.
 * Series number i of a part has the same numbers whatever their number, and on every machine. To be ended by
 * weft_frame_free. */
weft_frame field_series(part p, const field_opts *opts);
#endif
