/* api_pictures.h - pictures: charts, matrices, texts, a cell, batches, a roofline.
 *
 * SVG, written whole or not at all; the same bytes for the same numbers, in every locale; on a dark
 * page in dark colours; of colours that colour-blind readers can tell apart; without a script.
 * What means something tells its numbers to a pointer that rests on it, by a <title>. Texts are in
 * UTF-8, NULL is none. A status and weft_file_message say what was refused, as of all files.
 *
 * Contents: curves, matrices, coloured texts, a cell with its numbers, batches, a roofline, the
 * tape. */
#ifndef WEFT_API_PICTURES_H
#define WEFT_API_PICTURES_H
#include "../core/api_core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- curves ---- */
/* name: in the legend; NULL or "": not there. low, if not NULL: not a curve but a band, the area
 * between low and y, light and below all curves, in the colour of the curve before it (the first:
 * in its own). Where a number is not finite curves and bands have a gap. */
typedef struct {
    const char *name;
    int64_t n;
    const double *x, *y;
    bool right_axis;
    const double *low;
} weft_curve;
/* Curves over axes, with the labels of x, of the left y and of the right one. A base of 2 or 10
 * makes an axis logarithmic, marked at powers (0: even); what is not above 0 is left out there. */
typedef struct {
    const char *title, *x_label, *left, *right;
    int x_base, y_base;
    const weft_curve *curves;
    int64_t n;
} weft_chart;
/* Charts in one picture, 1 .. 100, row by row, as many in a row as there are columns (0 means 1).
 * One chart without a title of its own is the whole picture. */
WEFT_API weft_status weft_plot_lines(const char *path, const char *title, const weft_chart *charts,
                                     int64_t n, int columns) WEFT_MUST_USE;

/* ---- numbers of either sign as colours ---- */
/* Blue from low up to the middle, which is light grey, orange from there to high; what lies beyond
 * has the colour of the end, what is not finite is hatched or black. low and high both 0: to either
 * side as far as the number that is farthest from the middle. Else low <= middle <= high, of which
 * one side may be empty: { .high = 1 } is grey to orange. label: what the numbers are, beside the
 * scale. A scale of NULL is all 0. */
typedef struct { double low, middle, high; const char *label; } weft_colour_scale;

/* ---- matrices ---- */
/* weights [rows, columns] in 0 .. 1, at most 250,000, hatched where one is not finite; rows and
 * columns labels, or NULL. */
WEFT_API weft_status weft_plot_heatmap(const char *path, const char *title, int rows, int columns,
                                       const double *weights, const char *const *row_labels,
                                       const char *const *column_labels) WEFT_MUST_USE;
/* The same of values of either sign: gates, states, gradients. */
WEFT_API weft_status weft_plot_diverging_heatmap(const char *path, const char *title, int rows,
                                                 int columns, const double *values,
                                                 const char *const *row_labels,
                                                 const char *const *column_labels,
                                                 const weft_colour_scale *scale) WEFT_MUST_USE;

/* ---- a text coloured by a number a byte ---- *
 * The n bytes of a text, each on the colour of its value: a state or a gradient over what was read.
 * Blanks and printable ASCII stand as they are, a backslash and all other bytes escaped: \\, \n,
 * \xc3. A line ends after a newline, or where no more than `columns` fit. */
typedef enum { WEFT_COLOURS_AUTO, WEFT_COLOURS_ALWAYS, WEFT_COLOURS_NEVER } weft_colours;
typedef struct {
    weft_colour_scale scale;
    int columns;                                 /* of a line, 8 .. 1000; 0 means 72 */
    weft_colours colours;                        /* of weft_print_text */
} weft_text_colours;
/* As a picture, of at most 100,000 bytes; opts NULL: all 0. */
WEFT_API weft_status weft_plot_text(const char *path, const char *title, const char *text,
                                    int64_t n, const double *values,
                                    const weft_text_colours *opts) WEFT_MUST_USE;
/* To a terminal, in its 256 colours. By WEFT_COLOURS_AUTO only if the file is a terminal, TERM is
 * not dumb, and NO_COLOR is not set; else above a line the digits 1 .. 9 stand for how far its
 * bytes are above the middle, below it for how far they are under it, ? where there is no number.
 * The scale comes last. WEFT_EIO if the file takes no more. */
WEFT_API weft_status weft_print_text(FILE *file, const char *text, int64_t n, const double *values,
                                     const weft_text_colours *opts) WEFT_MUST_USE;

/* ---- a cell with its numbers ---- */
typedef enum { WEFT_CELL_LSTM, WEFT_CELL_GRU } weft_cell_kind;
/* What went through one unit of a cell at one step: x [inputs], h [hidden] of the step before, and
 * of the unit c of the step before (an LSTM's), its gates after their sigmoid or tanh (i f g o, or
 * r z n), and what came out. */
typedef struct {
    weft_cell_kind kind;
    int64_t inputs, hidden, unit;                /* unit: 0 .. hidden - 1 */
    const double *x, *h;
    double c, gates[4], c_next, h_next;          /* c, c_next: of an LSTM */
} weft_cell_numbers;
/* The cell as a drawing of its wires, after C. Olah, Understanding LSTM Networks, 2015, with a
 * number at each and the formulas below. Products and sums on the way are worked out here: where
 * they do not lead to c_next and h_next the formula says so. */
WEFT_API weft_status weft_plot_cell(const char *path, const char *title,
                                    const weft_cell_numbers *numbers) WEFT_MUST_USE;

/* ---- batches ---- */
/* A batch as padded (pads hatched), packed and concatenated; labels: one for each token, concat
 * order (may be NULL). At most 100,000 cells when padded. */
WEFT_API weft_status weft_plot_batch(const char *path, const char *title,
                                     const weft_lengths *lengths,
                                     const char *const *labels) WEFT_MUST_USE;
/* The same with a value of each token in its cell, [tokens] in concat order, and coloured by it:
 * the gradient that reaches it, say; where there is room the number, too. The layout `rows` comes
 * last: by the placement, or if that is NULL by weft_first_fit with the longest sequence's width.
 * A sequence has a stripe of its own colour in its cells. */
WEFT_API weft_status weft_plot_batch_values(const char *path, const char *title,
                                            const weft_lengths *lengths, const char *const *labels,
                                            const double *values, const weft_colour_scale *scale,
                                            const weft_placement *placement) WEFT_MUST_USE;

/* ---- a roofline ---- */
/* A kernel: FLOPs for each byte that it moves, and its GF/s; both above 0. */
typedef struct { const char *name; double intensity, rate; } weft_roofline_point;
/* The points under the roof of a machine, min(peak, intensity bandwidth), on logarithmic axes
 * (Williams, Waterman, Patterson 2009): peak in GF/s, bandwidth in GB/s. At most 100 points. */
WEFT_API weft_status weft_plot_roofline(const char *path, const char *title, double peak,
                                        double bandwidth, const weft_roofline_point *points,
                                        int64_t n) WEFT_MUST_USE;

/* ---- the tape ---- */
/* The tape of w as a graph: a box an entry, as weft_print_tape has it, and one for each parameter
 * and each tensor that was given; an arrow from each result to the operators that take it. A path
 * that ends in .dot or .gv gets the language of graphviz, of at most 10,000 boxes, any other SVG,
 * of at most 100 (some 60 are read with ease), from top to bottom in the order of the tape.
 *
 * With `of`, a result on the tape: only what has led to it, and beside each number the gradient of
 * `of` by it, as weft_gradients finds it (so its errors, which are the context's, are this
 * function's, too); of NULL: the whole tape, numbers alone. Numbers and gradients are shown of
 * tensors of one element; the device is waited for; nothing stays on the tape. */
WEFT_API weft_status weft_plot_tape(const char *path, const char *title, weft *w,
                                    weft_tensor *of) WEFT_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
