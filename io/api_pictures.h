/* api_pictures.h - pictures: charts, matrices, texts, a cell, batches, the tape.
 *
 * Functions write an SVG file at `path`, whole or not at all. An existing file is replaced. The
 * same numbers give the same bytes in every locale. On a dark page colours are dark, and
 * colour-blind readers can distinguish them. Pictures contain no script. Marks show their values as
 * tooltips. Texts are in UTF-8; NULL means no text. Functions keep no pointer. They return WEFT_OK
 * or an error, which weft_file_message explains; WEFT_EARG: an argument out of its range.
 *
 * Contents: curves, matrices, coloured texts, a cell with its numbers, batches, the tape. */
#ifndef WEFT_API_PICTURES_H
#define WEFT_API_PICTURES_H
#include "../core/api_core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- curves ---- */
/* A curve through points. A point with x, y or low that is not finite leaves a gap. A curve of up
 * to 32 points whose x ascend has a dot at each point. Any other curve has dots only at points
 * without a line to a neighbour. A band has no dots. */
typedef struct {
    const char *name;         /* in the legend; NULL or "": the curve has no entry there */
    int64_t n;                /* number of points, 0 or more */
    const double *x, *y;      /* [n] each, in any order of x */
    bool right_axis;          /* y belongs to the right axis, not to the left one */
    /* [n] makes this entry a band: the area between low and y, drawn below all curves. Its colour
     * is that of the last curve before it in `curves`; if there is none, of the first curve after
     * it. NULL: a curve. */
    const double *low;
} weft_curve;
/* A chart. A logarithmic axis has marks at powers of its base, and leaves out points whose number
 * is not above 0. If the legend needs a second row and all curves end at one x, names next to these
 * ends replace the legend. */
typedef struct {
    const char *title;
    const char *x_label;      /* label of the x axis */
    const char *left, *right; /* labels of the left and of the right y axis */
    int x_base, y_base;       /* 0: linear; 2 or 10: logarithmic. y_base is for both y axes */
    const weft_curve *curves; /* [n] */
    int64_t n;                /* number of curves and bands, 0 or more */
} weft_chart;
/* Draws n charts, 1 .. 100, in one picture, row by row. columns: charts in a row; 0 means 1. A
 * single chart without a title fills the picture. Errors: charts NULL; x or y of points NULL; a
 * base other than 0, 2 and 10. Like matplotlib.pyplot.plot. */
WEFT_API weft_status weft_plot_lines(const char *path, const char *title, const weft_chart *charts,
                                     int64_t n, int columns) WEFT_MUST_USE;

/* ---- numbers as colours ---- */
/* A scale of colours: blue at low, light grey at middle, orange at high. A number beyond low or
 * high has the colour of that end. NaN and infinities are hatched in weft_plot_heatmap, and black
 * in other pictures. A scale of NULL means all 0, except in weft_plot_heatmap. */
typedef struct {
    /* low <= middle <= high and low < high, all within +-1e100; low = middle gives grey to orange.
     * low = high = 0: the range is symmetric about middle and covers all finite values. */
    double low, middle, high;
    const char *label;        /* name of the numbers, drawn next to the scale */
} weft_colour_scale;

/* ---- matrices ---- */
/* Draws a matrix: values [rows, columns], row by row; rows * columns is 1 .. 250,000. row_labels
 * [rows] and column_labels [columns] may be NULL. With up to 400 cells, each has a tooltip; with
 * more, none has. scale NULL: weights in 0 .. 1, white to blue, such as attention. Errors: values
 * NULL; a scale out of order. Like matplotlib.pyplot.imshow. */
WEFT_API weft_status weft_plot_heatmap(const char *path, const char *title, int rows, int columns,
                                       const double *values, const char *const *row_labels,
                                       const char *const *column_labels,
                                       const weft_colour_scale *scale) WEFT_MUST_USE;

/* ---- a text coloured by a number a byte ---- */
/* Options of weft_plot_text. */
typedef struct {
    weft_colour_scale scale;
    int columns;              /* characters of a line, 8 .. 1000; \xc3 counts as 4. 0: 72 */
} weft_text_colours;
/* Draws the n bytes of a text, 0 .. 100,000, each on the colour of its number in values [n], such
 * as a state or a gradient. Printable ASCII is drawn as it is. A backslash and all other bytes are
 * drawn as in C: \\, \n, \xc3. A line ends after a newline, or before a byte that does not fit.
 * text needs no final 0. opts NULL: all 0. Errors: text or values NULL with n above 0. */
WEFT_API weft_status weft_plot_text(const char *path, const char *title, const char *text,
                                    int64_t n, const double *values,
                                    const weft_text_colours *opts) WEFT_MUST_USE;

/* ---- a cell with its numbers ---- */
typedef enum { WEFT_CELL_LSTM, WEFT_CELL_GRU } weft_cell_kind;
/* One step of one unit of a cell. x and h: the step's input, and h of all units before the step. c:
 * the unit's c before the step. gates: the unit's gates after sigmoid or tanh, i f g o of an LSTM,
 * r z n of a GRU. c_next, h_next: the unit's c and h after the step. */
typedef struct {
    weft_cell_kind kind;
    int64_t inputs, hidden, unit;                /* unit: 0 .. hidden - 1 */
    const double *x, *h;                         /* [inputs], [hidden] */
    double c, gates[4], c_next, h_next;          /* a GRU has no c, c_next, gates[3] */
} weft_cell_numbers;
/* Draws the wires of the cell, after C. Olah, Understanding LSTM Networks, 2015, with a number at
 * each wire. Below the drawing are the formulas of c_next and h_next. Their results are computed
 * from h, c and gates, but tanh in h_next from the given c_next. If a result differs from the given
 * c_next or h_next by more than .001 (1 + |result|), its formula shows both numbers. Errors:
 * numbers or h NULL; x NULL with inputs above 0; a unit outside 0 .. hidden - 1. */
WEFT_API weft_status weft_plot_cell(const char *path, const char *title,
                                    const weft_cell_numbers *numbers) WEFT_MUST_USE;

/* ---- batches ---- */
/* Draws a batch in three layouts: padded, with hatched padding, packed and concatenated. The padded
 * layout has at most 100,000 cells. labels and values are NULL, or have an entry for each token,
 * sequence after sequence in the user's order.
 * values NULL: a cell has the colour of its sequence; scale and placement are not read. values,
 * such as gradients: a cell has the colour of its value, a tooltip, and a stripe in the colour of
 * its sequence. Large cells of the padded layout also show their value as text. A fourth drawing
 * shows the layout ROWS by placement; NULL: by weft_first_fit with the longest length as width.
 * Errors: lengths NULL; a length below 0; sequences of the placement that overlap. */
WEFT_API weft_status weft_plot_batch(const char *path, const char *title,
                                     const weft_lengths *lengths, const char *const *labels,
                                     const double *values, const weft_colour_scale *scale,
                                     const weft_placement *placement) WEFT_MUST_USE;

/* ---- the tape ---- */
/* Draws the tape of w as a graph: a box for each entry, as weft_print_tape lists it, for each
 * parameter and for each tensor given by the program; an arrow from each result to the operators
 * that take it. An SVG file has at most 100 boxes (60 are easy to read), from top to bottom in the
 * order of the tape. If path ends in .dot or .gv the file has the language of graphviz instead, of
 * at most 10,000 boxes.
 *
 * A box of a tensor with one element shows its number. of NULL: draws the whole tape. Otherwise
 * `of` is a result of reals on the tape: draws only the entries on which `of` depends. A box with a
 * number then also shows the gradient of the sum of `of` by that number. If weft_gradients fails,
 * the context and this function fail. Waits for the device. Records nothing.
 * Errors: w NULL; an empty tape; too many boxes; a context that has failed. */
WEFT_API weft_status weft_plot_tape(const char *path, const char *title, weft *w,
                                    weft_tensor *of) WEFT_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
