/* api_pictures.h - pictures: charts, matrices, texts, a cell, batches, the tape.
 *
 * Functions write an SVG file, whole or not at all: the same bytes for the same numbers in every
 * locale. Colours are dark on a dark page, and colour-blind readers can distinguish them. Pictures
 * contain no script. Marks show their values as tooltips. Texts are in UTF-8, NULL means none. An
 * existing file is replaced. Functions keep no pointer. The status and weft_file_message report
 * errors, as for all files; WEFT_EARG: an argument out of its range.
 *
 * Contents: curves, matrices, coloured texts, a cell with its numbers, batches, the tape. */
#ifndef WEFT_API_PICTURES_H
#define WEFT_API_PICTURES_H
#include "../core/api_core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- curves ---- */
/* A curve through points. A number that is not finite leaves a gap. A curve of up to 32 points,
 * whose x ascend, has a dot at each point; other curves only at a point between two gaps. */
typedef struct {
    const char *name;         /* in the legend; NULL or "": the curve has no entry there */
    int64_t n;                /* number of points, 0 or more */
    const double *x, *y;      /* [n] each, in any order of x */
    bool right_axis;          /* y belongs to the right axis, not to the left one */
    /* [n] makes this entry a band, the area between low and y, drawn below all curves. Its colour
     * is that of the curve before it in the chart, or of the first curve. NULL: a curve. */
    const double *low;
} weft_curve;
/* A chart. A logarithmic axis has marks at powers, and leaves out numbers that are not above 0. If
 * the legend needs a second row and all curves end at one x, names at these ends replace it. */
typedef struct {
    const char *title;
    const char *x_label;      /* label of the x axis */
    const char *left, *right; /* labels of the left and of the right y axis */
    int x_base, y_base;       /* 0: linear; 2 or 10: logarithmic. y_base is for both y axes */
    const weft_curve *curves; /* [n] */
    int64_t n;                /* number of curves and bands, 0 or more */
} weft_chart;
/* Draws n charts, 1 .. 100, in one picture, row by row. columns: number of charts in a row; 0 means
 * 1. One chart without a title fills the picture.
 * Errors: x or y NULL; a base other than 0, 2 and 10. Like matplotlib.pyplot.plot. */
WEFT_API weft_status weft_plot_lines(const char *path, const char *title, const weft_chart *charts,
                                     int64_t n, int columns) WEFT_MUST_USE;

/* ---- numbers as colours ---- */
/* A scale: blue at low, light grey at middle, orange at high. Numbers beyond an end have its
 * colour; NaN and infinities are hatched or black. In place of a scale NULL means all 0, except in
 * weft_plot_heatmap. */
typedef struct {
    /* low <= middle <= high and low < high, all within +-1e100. low = middle gives grey to orange.
     * low = high = 0: the range is symmetric about middle, any number, and covers all values. */
    double low, middle, high;
    const char *label;        /* a name of the numbers, next to the scale; NULL: no name */
} weft_colour_scale;

/* ---- matrices ---- */
/* Draws a matrix: values [rows, columns], row by row, with row_labels [rows] and column_labels
 * [columns], or NULL. rows * columns is 1 .. 250,000; up to 400 all cells have tooltips, above that
 * none has. scale NULL: weights in 0 .. 1, white to blue, such as attention. Errors: values NULL; a
 * scale out of order. Like matplotlib.pyplot.imshow. */
WEFT_API weft_status weft_plot_heatmap(const char *path, const char *title, int rows, int columns,
                                       const double *values, const char *const *row_labels,
                                       const char *const *column_labels,
                                       const weft_colour_scale *scale) WEFT_MUST_USE;

/* ---- a text coloured by a number a byte ---- */
/* Options of weft_plot_text. */
typedef struct {
    weft_colour_scale scale;
    int columns;              /* characters of a line, escapes included; 8 .. 1000, 0 means 72 */
} weft_text_colours;
/* Draws the n bytes of a text, at most 100,000, each on the colour of its value: a state or a
 * gradient over the text. Printable ASCII is drawn as it is, a backslash and all other bytes
 * escaped: \\, \n, \xc3. A line ends after a newline, or before a byte that does not fit. text
 * needs no final 0. opts NULL: all 0. Errors: text or values [n] NULL with n above 0. */
WEFT_API weft_status weft_plot_text(const char *path, const char *title, const char *text,
                                    int64_t n, const double *values,
                                    const weft_text_colours *opts) WEFT_MUST_USE;

/* ---- a cell with its numbers ---- */
typedef enum { WEFT_CELL_LSTM, WEFT_CELL_GRU } weft_cell_kind;
/* One step of one unit. x [inputs]; h [hidden] of the step before; c of the unit before the step
 * (LSTM); its gates after their sigmoid or tanh (i f g o, or r z n); its c and h after the step. */
typedef struct {
    weft_cell_kind kind;
    int64_t inputs, hidden, unit;                /* unit: 0 .. hidden - 1 */
    const double *x, *h;
    double c, gates[4], c_next, h_next;          /* c, c_next: of an LSTM */
} weft_cell_numbers;
/* Draws the wires of the cell, after C. Olah, Understanding LSTM Networks, 2015, with a number at
 * each and the formulas below. It computes the products and sums on the way; if they do not lead to
 * c_next and h_next, the formula shows both. Errors: h NULL, or x NULL with inputs above 0; a unit
 * outside 0 .. hidden - 1. */
WEFT_API weft_status weft_plot_cell(const char *path, const char *title,
                                    const weft_cell_numbers *numbers) WEFT_MUST_USE;

/* ---- batches ---- */
/* Draws a batch in three layouts: padded, with hatched padding, packed and concatenated. At most
 * 100,000 cells when padded. labels: one for each token, sequence after sequence, or NULL.
 * values NULL: cells have the colour of their sequence; scale and placement are not read. values: a
 * number for each token, sequence after sequence, such as its gradient. Cells then have the colours
 * of their values, tooltips, and a stripe in their sequence's colour; padded cells also show the
 * numbers. With values the layout `rows` is drawn last, by the placement. placement NULL: by
 * weft_first_fit with the width of the longest sequence.
 * Errors: lengths NULL; a length below 0; sequences of the placement that overlap. */
WEFT_API weft_status weft_plot_batch(const char *path, const char *title,
                                     const weft_lengths *lengths, const char *const *labels,
                                     const double *values, const weft_colour_scale *scale,
                                     const weft_placement *placement) WEFT_MUST_USE;

/* ---- the tape ---- */
/* Draws the tape of w as a graph: a box for each entry, as weft_print_tape lists it, for each
 * parameter and for each tensor given by the program; an arrow from each result to the operators
 * that take it. SVG of at most 100 boxes (60 are easy to read), from top to bottom in the order of
 * the tape. A path that ends in .dot or .gv gets the language of graphviz instead, of at most
 * 10,000 boxes.
 *
 * A tensor of one element shows its number. of NULL: draws the whole tape. Otherwise draws only
 * what `of`, a result of reals on the tape, depends on, and the gradient of its sum by each number.
 * If weft_gradients fails, the context and this function fail. Waits for the device. Records
 * nothing.
 * Errors: an empty tape; too many boxes; a context that has failed. */
WEFT_API weft_status weft_plot_tape(const char *path, const char *title, weft *w,
                                    weft_tensor *of) WEFT_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
