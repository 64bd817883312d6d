/* forecast_pictures.h - what a training leaves behind to look at, as SVG. */
#ifndef FORECAST_PICTURES_H
#define FORECAST_PICTURES_H
#include "forecast_arx.h"
#include "forecast_model.h"

enum { PER_EPOCH = 3 };                          /* loss, loss and RMSE in validation */
typedef struct {
    const model *m; const settings *set;
    const weft_frame *frame; weft_windows *windows;               /* of the test */
    const arx *ar;
    int64_t epochs; const double *history;       /* [epochs][PER_EPOCH] */
} gallery;

/* forecast.svg, attention.svg (if the model has attention) and curve.svg in a folder; quits if they cannot
 * be written. */
void draw(const char *folder, const gallery *g);
#endif
