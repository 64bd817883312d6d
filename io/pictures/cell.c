/* cell.c - draws one step of one unit of an LSTM or a GRU: wires, boxes and circles, with a number at each.
 *
 * The picture follows C. Olah, Understanding LSTM Networks, 2015. draw_lstm and draw_gru give the positions.
 * In the GRU r multiplies the product of h and its matrix, as in PyTorch and cuDNN. */
#include <string.h>
#include "io/pictures/scale.h"

enum { WIDTH = 1000, HEIGHT = 650, SHOWN = 4 };
static const double PLATE = 58, PLATE_HIGH = 20;
enum { TOP_WIRE = 140, BOTTOM_WIRE = 430 };      /* c or h of the unit; x and h of all units */

typedef struct {
    weft__svg svg;
    const weft_cell_numbers *n;
    weft__scale scale;
} picture;

/* ---- shapes ---- */
static void wire(picture *p, const char *path)
{
    weft__svg_put(&p->svg, "<path class=\"wire\" d=\"%s\"/>\n", path);
}

static void arrow(picture *p, const char *path)
{
    weft__svg_put(&p->svg, "<path class=\"wire\" marker-end=\"url(#tip)\" d=\"%s\"/>\n", path);
}

static void four_joints(picture *p, const double (*centre)[2])
{
    for (int k = 0; k < 4; k++)
        weft__svg_put(&p->svg, "<circle cx=\"%g\" cy=\"%g\" r=\"4\" class=\"joint\"/>\n", centre[k][0],
                      centre[k][1]);
}

/* Draws a text in a box around x, y; `hint` is its name for screen readers. */
static void box(picture *p, double x, double y, int width, int height, int round_, const char *class_,
                const char *text, const char *hint)
{
    weft__svg_put(&p->svg,
                  "<g><title>%s</title>\n<rect x=\"%g\" y=\"%g\" width=\"%d\" height=\"%d\" rx=\"%d\" "
                  "class=\"%s\"/>\n",
                  hint, x - width / 2, y - height / 2, width, height, round_, class_);
    weft__svg_text(&p->svg, x, y + 5, "on-light", WEFT__MIDDLE, text);
    weft__svg_put(&p->svg, "</g>\n");
}

/* Draws a matrix and its activation. */
static void layer(picture *p, double x, double y, const char *text, const char *hint)
{
    box(p, x, y, strlen(text) > 4 ? 88 : 60, 34, 4, "layer", text, hint);
}

static void operation(picture *p, double x, double y, const char *text, const char *hint)
{
    int width = strlen(text) > 3 ? 52 : 32;      /* UTF-8: a sign is two bytes */
    box(p, x, y, width, 32, 16, "operation", text, hint);
}

/* Draws a number on its colour, in the middle of a wire, with its name on the left or above. */
static void plate(picture *p, double x, double y, const char *name, double value, bool above)
{
    char text[WEFT__SHORT];
    weft__paint paint = weft__scale_paint(&p->scale, value);
    weft__svg_put(&p->svg,
                  isfinite(value) ? "<g><title>%s = %.6g</title>\n" : "<g><title>%s is not finite</title>\n",
                  name, value + 0.0);
    weft__svg_put(
        &p->svg,
        "<rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" rx=\"5\" fill=\"%s\" class=\"plate\"/>\n",
        x - PLATE / 2, y - PLATE_HIGH / 2, PLATE, PLATE_HIGH, paint.fill);
    weft__svg_text(&p->svg, x, y + 4.5, paint.ink, WEFT__MIDDLE, weft__short_number(text, value, 3));
    if (above)
        weft__svg_text(&p->svg, x, y - PLATE_HIGH / 2 - 5, "wire-name", WEFT__MIDDLE, name);
    else
        weft__svg_text(&p->svg, x - PLATE / 2 - 6, y + 4.5, "wire-name", WEFT__END, name);
    weft__svg_put(&p->svg, "</g>\n");
}

/* ---- inputs ---- */
/* Draws a column of numbers of x or h around y. If not all fit, the unit's own is among them. */
static void column(picture *p, double y, const char *name, const char *head, const double *values, int64_t n,
                   int64_t own)
{
    char label[40];
    int64_t shown = n > SHOWN ? SHOWN - 1 : n;
    double top = y - (double)(n > SHOWN ? SHOWN : n ? n : 1) / 2 * 24 + 12;
    weft__svg_text(&p->svg, 60, top - 20, "head", WEFT__START, head);
    for (int64_t k = 0; k < shown; k++, top += 24) {
        int64_t i = n > SHOWN && k == shown - 1 && own >= shown ? own : k;
        snprintf(label, sizeof label, "%s[%lld]", name, (long long)i);
        plate(p, 120, top, label, values[i], false);
    }
    if (n > shown)
        weft__svg_textf(&p->svg, 120, top + 4, "small", WEFT__MIDDLE, "and %lld more",
                        (long long)(n - shown));
    if (!n)
        weft__svg_text(&p->svg, 120, top + 4, "small", WEFT__MIDDLE, "x is empty");
}

static void draw_inputs(picture *p)
{
    weft__svg_put(&p->svg,
                  "<rect x=\"230\" y=\"84\" width=\"650\" height=\"376\" rx=\"22\" class=\"body\"/>\n");
    wire(p, "M150 430H184M150 560H190Q200 560 200 550V440Q200 430 210 430");
    wire(p, "M184 430H210");
    column(p, BOTTOM_WIRE, "h", "h(t-1), of all units", p->n->h, p->n->hidden, p->n->unit);
    column(p, 560, "x", "x(t)", p->n->x, p->n->inputs, -1);
    weft__svg_text(&p->svg, 200, 414, "small", WEFT__MIDDLE, "h and x");
}

static void draw_lstm(picture *p, double tanh_c)
{
    const weft_cell_numbers *n = p->n;
    const double *g = n->gates;
    draw_inputs(p);
    wire(p, "M290 430V156M550 430V156M800 140V244");
    arrow(p, "M60 140H974");
    arrow(p, "M420 430V230Q420 220 430 220H532");
    arrow(p, "M210 430H670Q680 430 680 420V270Q680 260 690 260H782");
    arrow(p, "M800 276V420Q800 430 810 430H974");
    four_joints(p, (const double[][2]){ { 290, 430 }, { 420, 430 }, { 550, 430 }, { 800, 140 } });
    layer(p, 290, 370, "\xCF\x83", "forget gate: sigmoid of W x + U h + b");
    layer(p, 420, 370, "\xCF\x83", "input gate: sigmoid of W x + U h + b");
    layer(p, 550, 370, "tanh", "candidate: tanh of W x + U h + b");
    layer(p, 680, 370, "\xCF\x83", "output gate: sigmoid of W x + U h + b");
    operation(p, 290, TOP_WIRE, "\xC3\x97", "times");
    operation(p, 550, TOP_WIRE, "+", "plus");
    operation(p, 550, 220, "\xC3\x97", "times");
    operation(p, 800, 186, "tanh", "tanh, without a matrix");
    operation(p, 800, 260, "\xC3\x97", "times");
    plate(p, 120, TOP_WIRE, "c(t-1)", n->c, true);
    plate(p, 290, 310, "f", g[1], false);
    plate(p, 420, 310, "i", g[0], false);
    plate(p, 550, 310, "g", g[2], false);
    plate(p, 680, 310, "o", g[3], false);
    plate(p, 420, TOP_WIRE, "f c(t-1)", g[1] * n->c, true);
    plate(p, 550, 181, "i g", g[0] * g[2], false);
    plate(p, 800, 223, "tanh c(t)", tanh_c, false);
    plate(p, 920, TOP_WIRE, "c(t)", n->c_next, true);
    plate(p, 920, BOTTOM_WIRE, "h(t)", n->h_next, true);
}

static void draw_gru(picture *p)
{
    const weft_cell_numbers *n = p->n;
    double r = n->gates[0], z = n->gates[1], new = n->gates[2], h = n->h[n->unit];
    draw_inputs(p);
    wire(p, "M210 430H690Q700 430 700 420V156M420 430V156M560 430V286M420 200H480");
    arrow(p, "M60 140H974");
    arrow(p, "M290 430V280Q290 270 300 270H542");
    arrow(p, "M576 270H668");
    arrow(p, "M512 200H682");
    four_joints(p, (const double[][2]){ { 290, 430 }, { 420, 430 }, { 560, 430 }, { 420, 200 } });
    layer(p, 290, 370, "\xCF\x83", "reset gate: sigmoid of W x + U h + b");
    layer(p, 420, 370, "\xCF\x83", "update gate: sigmoid of W x + U h + b");
    layer(p, 560, 370, "U h + b'", "h through the matrix of the candidate");
    layer(p, 700, 370, "W x + b", "x through the matrix of the candidate");
    operation(p, 420, TOP_WIRE, "\xC3\x97", "times");
    operation(p, 700, TOP_WIRE, "+", "plus");
    operation(p, 560, 270, "\xC3\x97", "times");
    operation(p, 496, 200, "1 \xE2\x88\x92", "one minus");
    operation(p, 700, 200, "\xC3\x97", "times");
    operation(p, 700, 270, "tanh", "tanh of the sum of both");
    plate(p, 120, TOP_WIRE, "h(t-1), this unit", h, true);
    plate(p, 290, 320, "r", r, false);
    plate(p, 420, 320, "z", z, false);
    plate(p, 700, 235, "n", new, false);
    plate(p, 560, TOP_WIRE, "z h(t-1)", z * h, true);
    plate(p, 566, 200, "1 - z", 1 - z, true);
    plate(p, 700, 170, "(1 - z) n", (1 - z) * new, false);
    plate(p, 920, TOP_WIRE, "h(t)", n->h_next, true);
}

/* ---- formulas ---- */
/* Draws a formula with its numbers: the computed result, and the given one if it differs. */
static void formula(picture *p, double y, const char *letters, const char *numbers, double result,
                    double given)
{
    char text[WEFT__SHORT], more[48] = "";
    bool same = fabs(result - given) <= 1e-3 * (1 + fabs(result)) || (isnan(result) && isnan(given));
    if (!same)
        snprintf(more, sizeof more, ", but %s was given", weft__short_number(text, given, 4));
    weft__svg_textf(&p->svg, 240, y, "formula", WEFT__START, "%s = %s = %s%s", letters, numbers,
                    weft__short_number(text, result, 4), more);
}

/* "a × b", a negative b in brackets. */
static const char *product(char out[2 * WEFT__SHORT + 8], double a, double b)
{
    char left[WEFT__SHORT], right[WEFT__SHORT];
    snprintf(out, 2 * WEFT__SHORT + 8, b < 0 ? "%s \xC3\x97 (%s)" : "%s \xC3\x97 %s",
             weft__short_number(left, a, 4), weft__short_number(right, b, 4));
    return out;
}

static void sum_of_products(char out[128], double a, double b, double c, double d)
{
    char left[2 * WEFT__SHORT + 8], right[2 * WEFT__SHORT + 8];
    snprintf(out, 128, "%s + %s", product(left, a, b), product(right, c, d));
}

static void draw_lstm_formulas(picture *p, double c, double tanh_c)
{
    char numbers[128];
    const weft_cell_numbers *n = p->n;
    sum_of_products(numbers, n->gates[1], n->c, n->gates[0], n->gates[2]);
    formula(p, 500, "c(t) = f c(t-1) + i g", numbers, c, n->c_next);
    formula(p, 526, "h(t) = o tanh c(t)", product(numbers, n->gates[3], tanh_c), n->gates[3] * tanh_c,
            n->h_next);
    weft__svg_text(&p->svg, 240, 560, "small", WEFT__START,
                   "i, f, o = \xCF\x83(W x + U h + b), g = tanh(W x + U h + b), each with rows of its own of "
                   "W, U and b");
}

static void draw_gru_formulas(picture *p)
{
    char numbers[128];
    const weft_cell_numbers *n = p->n;
    double z = n->gates[1], new = n->gates[2], h = n->h[n->unit];
    sum_of_products(numbers, 1 - z, new, z, h);
    formula(p, 500, "h(t) = (1 - z) n + z h(t-1)", numbers, (1 - z) * new + z * h, n->h_next);
    weft__svg_text(
        &p->svg, 240, 534, "small", WEFT__START,
        "r, z = \xCF\x83(W x + U h + b), n = tanh(W x + b + r (U h + b')), each with rows of its own of W, "
        "U, b and b'");
}

/* ---- the whole ---- */
static weft_status check(const weft_cell_numbers *n)
{
    static const char f[] = "weft_plot_cell";
    if (!n)
        return weft__file_fail(WEFT_EARG, "%s: numbers is NULL", f);
    if ((unsigned)n->kind > WEFT_CELL_GRU)
        return weft__file_fail(WEFT_EARG, "%s: kind is %d; expected WEFT_CELL_LSTM or WEFT_CELL_GRU", f,
                               (int)n->kind);
    if (n->inputs < 0 || n->hidden < 1 || n->unit < 0 || n->unit >= n->hidden)
        return weft__file_fail(WEFT_EARG,
                               "%s: unit %lld of %lld, and %lld inputs; expected a unit of 0 .. hidden - 1 "
                               "and inputs from 0 on",
                               f, (long long)n->unit, (long long)n->hidden, (long long)n->inputs);
    if (!n->h || (n->inputs && !n->x))
        return weft__file_fail(WEFT_EARG, "%s: %s is NULL", f, n->h ? "x" : "h");
    return WEFT_OK;
}

static void draw_style(picture *p)
{
    weft__svg_put(
        &p->svg,
        "<style>\n"
        ".wire { stroke: #555a60; stroke-width: 2; fill: none; stroke-linecap: round } "
        ".joint { fill: #555a60 }\n"
        ".body { fill: #f3f5f7; stroke: #b9c0c7; stroke-width: 1.5 }\n"
        ".layer { fill: #f8dc9d; stroke: #8a6d1a } .operation { fill: #eccbdd; stroke: #8c4a6c }\n"
        ".plate { stroke: #555a60; stroke-width: 1 } .wire-name { font-size: 12px; font-style: italic }\n"
        ".formula { font-size: 14px }\n"
        "@media screen and (prefers-color-scheme: dark) {\n"
        ".wire { stroke: #aab1b8 } .joint { fill: #aab1b8 } .body { fill: #1f2429; stroke: #4a525a }\n"
        "}\n"
        "</style>\n"
        "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"6\" refY=\"4\" markerWidth=\"6\" "
        "markerHeight=\"6\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" class=\"joint\"/></marker></defs>\n");
}

weft_status weft_plot_cell(const char *path, const char *title, const weft_cell_numbers *numbers)
{
    weft_status s = check(numbers);
    if (s)
        return s;
    picture p = { .n = numbers, .scale = { -1, 0, 1, "colours of the numbers", false } };
    double c = numbers->gates[1] * numbers->c + numbers->gates[0] * numbers->gates[2],
           tanh_c = tanh(numbers->c_next);
    weft__svg_begin(&p.svg, path, title, WIDTH, HEIGHT);
    draw_style(&p);
    weft__svg_textf(&p.svg, 24, 54, "symbol", WEFT__START, "%s, unit %lld of %lld",
                    numbers->kind == WEFT_CELL_GRU ? "GRU" : "LSTM", (long long)numbers->unit,
                    (long long)numbers->hidden);
    if (numbers->kind == WEFT_CELL_GRU) {
        draw_gru(&p);
        draw_gru_formulas(&p);
    } else {
        draw_lstm(&p, tanh_c);
        draw_lstm_formulas(&p, c, tanh_c);
    }
    weft__scale_bar(&p.svg, &p.scale, 240, 600, 200, false);
    return weft__svg_end(&p.svg);
}
