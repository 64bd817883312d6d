/* chart.h - draws a chart as a part of a picture or a page. */
#ifndef WEFT_IO_CHART_H
#define WEFT_IO_CHART_H
#include "io/pictures/scale.h"

/* Draws a chart at 0, 0. small: with narrow margins, few marks, and names at the ends of curves in place of
 * a legend. The file's style sheet has the classes of svg.c. */
void weft__draw_chart(weft__svg *, const weft_chart *, double width, double height, bool small);
#endif
