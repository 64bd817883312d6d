/* series.h - reads time series with classes, in the format .ts of the archives UCR and UEA. */
#ifndef EXAMPLES_SERIES_H
#define EXAMPLES_SERIES_H
#include "weft.h"

enum { MOST_CLASSES = 64 };
/* series: rows of channels. label [n]: the number of a class. */
typedef struct { weft_dataset series; int32_t *label; } part;
typedef struct {
    part train, test;
    int32_t classes;
    char name[MOST_CLASSES][32];                 /* of a class */
} problem;

/* Reads FOLDER/NAME/NAME_TRAIN.ts and NAME_TEST.ts, or quits with the file and what is wrong. The memory
 * lives until the program ends. */
problem read_problem(const char *folder, const char *name);
#endif
