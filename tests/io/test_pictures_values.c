/* test_pictures_values.c - tests pictures of numbers as colours: each against golden bytes, colours that
 * colour-blind readers can distinguish, numbers as text, and refused calls. */
#include "pictures.h"
#include "io/pictures/scale.h"

TestSuite(pictures_values, .init = begin, .fini = remove_picture);

/* ---- colours ---- */
static double linear(int c) { return c <= 10 ? c / 255.0 / 12.92 : pow((c / 255.0 + .055) / 1.055, 2.4); }
static double luminance(const char *fill)        /* of WCAG 2 */
{
    unsigned r, g, b;
    cr_assert_eq(sscanf(fill, "#%2x%2x%2x", &r, &g, &b), 3);
    return .2126 * linear((int)r) + .7152 * linear((int)g) + .0722 * linear((int)b);
}

static double contrast(weft__paint p)
{
    double a = luminance(p.fill) + .05, b = !strcmp(p.ink, "white") ? 1.05 : .05;
    return fmax(a, b) / fmin(a, b);
}

Test(pictures_values, ink_is_legible_on_every_colour)
{
    for (int r = 0; r < 256; r += 5)
        for (int g = 0; g < 256; g += 5)
            for (int b = 0; b < 256; b += 5) {
                weft__paint p = weft__paint_of((int[]){ r, g, b });
                cr_assert(contrast(p) >= 4.5, "%s on %s", p.ink, p.fill);
            }
}

Test(pictures_values, both_sides_of_a_scale_darken_alike)
{
    const weft__scale both = { -1, 0, 1, NULL, false }, weights = { 0, 0, 1, NULL, true };
    double before[3] = { 1, 1, 1 };
    for (int i = 0; i <= 100; i++)
        for (int side = 0; side < 3; side++) {
            weft__paint p = weft__scale_paint(side == 2 ? &weights : &both, (side ? i : -i) / 100.0);
            double l = luminance(p.fill);
            cr_assert(l <= before[side], "colour %d of side %d is lighter than the previous one", i, side);
            cr_assert(contrast(p) >= 4.5, "%s on %s", p.ink, p.fill);
            before[side] = l;
            if (side == 1)
                cr_assert(fabs(before[0] - before[1]) < .06, "place %d: luminance %g and %g", i, before[0],
                          l);
        }
    cr_assert(before[0] < .08 && before[1] < .08 && before[2] < .08);
    cr_assert_str_eq(weft__scale_paint(&both, 0).fill, "#eeeeee");
    cr_assert_str_eq(weft__scale_paint(&both, -1).fill, "#084594");
    cr_assert_str_eq(weft__scale_paint(&both, 1).fill, "#8c2d04");
    cr_assert_str_eq(weft__scale_paint(&weights, 0).fill, "#ffffff");
    cr_assert_str_eq(weft__scale_paint(&weights, 1).fill, "#08306b");
    cr_assert_str_eq(weft__scale_paint(&both, NAN).fill, "#000000");
}

Test(pictures_values, numbers_have_few_digits)
{
    static const struct { double value; int digits; const char *text;
    } some[] = {
        { 0, 3, "0" },
        { -0.0, 3, "0" },
        { 1, 3, "1" },
        { .1234, 3, "0.123" },
        { -12.345, 3, "-12.3" },
        { 999.4, 3, "999" },
        { 999.6, 3, "1000" },
        { 12345, 3, "12345" },
        { 123456, 3, "1.2e5" },
        { .00123, 3, "0.00123" },
        { .000123, 3, "1.2e-4" },
        { -1e-10, 3, "-1.0e-10" },
        { 1e100, 3, "1.0e100" },
        { -.98765, 2, "-0.99" },
        { 99.7, 2, "100" },
        { 5e-324, 3, "4.9e-324" },
        { NAN, 3, "NaN" },
        { INFINITY, 3, "Inf" },
        { -INFINITY, 3, "-Inf" },
        { -1.7e308, 4, "-1.70e308" },
    };
    char text[WEFT__SHORT];
    for (int i = 0; i < COUNT(some); i++)
        cr_assert_str_eq(weft__short_number(text, some[i].value, some[i].digits), some[i].text);
}

Test(pictures_values, scales_are_symmetric_by_default)
{
    weft__scale s;
    const double values[] = { -1, 3, NAN, INFINITY };
    DRAWN(weft__scale_of("f", NULL, values, 4, &s));
    cr_assert(s.low == -3 && s.middle == 0 && s.high == 3, "must be symmetric");
    DRAWN(weft__scale_of("f", &(weft_colour_scale){ .middle = 2 }, values, 4, &s));
    cr_assert(s.low == -1 && s.middle == 2 && s.high == 5);
    DRAWN(weft__scale_of("f", NULL, values + 2, 2, &s));
    cr_assert(s.low == -1 && s.high == 1, "of no numbers");
    DRAWN(weft__scale_of("f", &(weft_colour_scale){ .low = -1, .high = 4 }, values, 4, &s));
    cr_assert(weft__scale_place(&s, -2) == -1 && weft__scale_place(&s, -.5) == -.5 &&
              weft__scale_place(&s, 2) == .5 && weft__scale_place(&s, 9) == 1);
    DRAWN(weft__scale_of("f", &(weft_colour_scale){ .high = 2 }, values, 4, &s));
    cr_assert(weft__scale_place(&s, -1) == -1 && weft__scale_place(&s, 0) == 0 &&
                  weft__scale_place(&s, 1) == .5,
              "one side only");
    const double odd[] = { -1.7e308, 1.7e308, 5e-324 };
    DRAWN(weft__scale_of("f", NULL, odd, 3, &s));
    for (int i = 0; i < 3; i++)
        cr_assert(fabs(weft__scale_place(&s, odd[i])) <= 1);
    static const weft_colour_scale bad[] = { { 1, 0, 2, NULL },   { -1, 3, 2, NULL },  { 2, 2, 2, NULL },
                                             { 1, 1, -1, NULL },  { NAN, 0, 1, NULL }, { 0, NAN, 0, NULL },
                                             { -1, 0, INFINITY, NULL }, { -1e101, 0, 1, NULL } };
    for (int i = 0; i < COUNT(bad); i++)
        REFUSED("f: a scale from ", weft__scale_of("f", &bad[i], values, 4, &s));
}

/* ---- matrices ---- */
static char *map_of(int rows, int columns, const double *values, const weft_colour_scale *scale)
{
    return drawn_text(weft_plot_heatmap(path, NULL, rows, columns, values, NULL, NULL, scale));
}

/* The cells that the runs of a map cover; each is one of its 1,000 squares, covered once. */
static int covered(const char *text, int rows, int columns)
{
    static bool seen[3600];
    int n = 0, x, y, length;
    memset(seen, 0, sizeof seen);
    for (const char *at = strstr(text, "scale("); (at = strchr(at, 'M')); at++)
        if (sscanf(at, "M%d %dh%d", &x, &y, &length) == 3)
            for (int i = 0; i < length; i++, n++) {
                cr_assert(x + i < columns && y < rows && !seen[y * columns + x + i], "%d %d", x + i, y);
                seen[y * columns + x + i] = true;
            }
    return n;
}

Test(pictures_values, heatmaps_show_their_values)
{
    static const char *const rows[] = { "i", "f", "g", nasty },
                            *const columns[] = { "(", "the second", ")", NULL, "." };
    static const double odd[] = { 0, -0.0, 1, -1, 1e300, -1e300, 5e-324, NAN, INFINITY, -INFINITY, 1e-5 };
    const double values[] = { .5,    .25,     0,   -0.0,      1,   -2, 2, -1, 1.5, 1e-9,
                              .1234, -.00056, NAN, -INFINITY, 123, 3,  0, 0,  0,   0 };
    const double weights[] = { 0, 1, 0.25, 0.75, NAN, 2 };
    DRAWN(weft_plot_heatmap(path, "Gates & <gradients>", 4, 5, values, rows, columns,
                            &(weft_colour_scale){ -2, 0, 2, "d loss / d gate" }));
    golden("diverging_heatmap.svg");
    char *text = map_of(3, 2, weights, NULL);
    cr_assert(strstr(text, "fill=\"#ffffff\"><title>0.000") &&
              strstr(text, "fill=\"#08306b\"><title>1.000") && strstr(text, ">0.75</text>") &&
              strstr(text, ">0.25</text>"));
    for (int k = 0; k < rounds(60, 600); k++) {
        static double some[3600];
        int r = 1 + (int)dice(60), c = 1 + (int)dice(60);
        for (int i = 0; i < r * c; i++)
            some[i] = dice(3) ? odd[dice(COUNT(odd))] : (double)dice_real(-1, 1);
        text = map_of(r, c, some, dice(2) ? &(weft_colour_scale){ .middle = .25 } : NULL);
        if (r * c <= 400)
            cr_assert_eq(count(text, "<title>") - 1, r * c);
        else
            cr_assert_eq(covered(text, r, c), r * c);
    }
    unlink(path);
    REFUSED("weft_plot_heatmap: 0 x 5 values", weft_plot_heatmap(path, "t", 0, 5, values, NULL, NULL, NULL));
    REFUSED("values is NULL", weft_plot_heatmap(path, "t", 1, 5, NULL, rows, columns, NULL));
    REFUSED("65536 x 65536", weft_plot_heatmap(path, "t", 65536, 65536, values, NULL, NULL, NULL));
    REFUSED("a scale from 1 over 0 to 0",
            weft_plot_heatmap(path, "t", 4, 5, values, NULL, NULL, &(weft_colour_scale){ .low = 1 }));
}

/* ---- a text ---- */
static const char words[] = "a (b\n\\ \xC3\xA9)\t&<\"c\x01";
enum { LETTERS = sizeof words - 1 };
static const double of_words[] = { 0, .5, 1, -1, -.5, .25, -.25, NAN, .75, INFINITY, .1, -.1, 2, -2, 0, .3 };

Test(pictures_values, text_is_coloured_by_value)
{
    cr_assert_eq(COUNT(of_words), LETTERS);
    DRAWN(weft_plot_text(path, "One unit over a text", words, LETTERS, of_words,
                         &(weft_text_colours){ { -1, 0, 1, "c of unit 3" }, 12 }));
    golden("text.svg");
    drawn_text(weft_plot_text(path, NULL, NULL, 0, NULL, NULL));
    unlink(path);
    static char many[100001];
    static double zeros[100001];
    REFUSED("weft_plot_text: -1 bytes", weft_plot_text(path, "t", words, -1, of_words, NULL));
    REFUSED("text is NULL", weft_plot_text(path, "t", NULL, 3, of_words, NULL));
    REFUSED("values is NULL", weft_plot_text(path, "t", words, 3, NULL, NULL));
    REFUSED("lines of 7 columns",
            weft_plot_text(path, "t", words, 3, of_words, &(weft_text_colours){ .columns = 7 }));
    REFUSED("100001 bytes", weft_plot_text(path, "t", many, 100001, zeros, NULL));
}

Test(pictures_values, text_shows_every_byte_within_its_columns)
{
    static char bytes[256];
    static double zeros[256];
    for (int i = 0; i < 256; i++)
        bytes[i] = (char)i;
    for (int columns = 8; columns < 80; columns += 9) {
        char *text = drawn_text(
            weft_plot_text(path, "all", bytes, 256, zeros, &(weft_text_colours){ .columns = columns }));
        cr_assert_eq(count(text, "<title>") - 1, 256);
        for (char *at = text; (at = strstr(at, "<rect x=\"")); at++) {
            double x, y, wide;
            cr_assert_eq(sscanf(at, "<rect x=\"%lf\" y=\"%lf\" width=\"%lf\"", &x, &y, &wide), 3);
            if (y > 80)
                cr_assert(x + wide <= 24 + 10 * columns, "columns %d: x %g, width %g", columns, x, wide);
        }
    }
}

/* ---- a cell ---- */
static const double x_of[] = { 1, 0 }, h_of[] = { .25, -.125, .5, 0, -1, .75 };
static weft_cell_numbers an_lstm(void)
{
    weft_cell_numbers n = { .kind = WEFT_CELL_LSTM, .inputs = 2, .hidden = 2, .unit = 1, .x = x_of, .h = h_of,
                            .c = -.5, .gates = { .75, .5, -.5, .25 }, .c_next = -.625 };
    n.h_next = .25 * tanh(-.625);
    return n;
}

Test(pictures_values, cells_show_their_numbers)
{
    weft_cell_numbers n = an_lstm(), g = { .kind = WEFT_CELL_GRU, .inputs = 2, .hidden = 6, .unit = 4,
                                           .x = x_of, .h = h_of, .gates = { .5, .75, .5 }, .h_next = -.625 };
    DRAWN(weft_plot_cell(path, "One step of an LSTM", &n));
    golden("lstm.svg");
    DRAWN(weft_plot_cell(path, "One step of a GRU", &g));
    golden("gru.svg");
}

Test(pictures_values, inconsistent_cell_is_refused)
{
    weft_cell_numbers n = an_lstm();
    n.gates[0] = .5;                             /* such as i and f exchanged */
    n.gates[1] = .75;
    char *text = drawn_text(weft_plot_cell(path, nasty, &n));
    cr_assert(strstr(text, "0.75 \xC3\x97 (-0.5) + 0.5 \xC3\x97 (-0.5) = -0.625"), "equal by chance: %s",
              text);
    n.c = NAN;
    n.inputs = 0;
    n.x = NULL;
    n.h_next = INFINITY;
    text = drawn_text(weft_plot_cell(path, NULL, &n));
    cr_assert(strstr(text, "c(t-1) is not finite") && strstr(text, ">NaN<") && strstr(text, "x is empty") &&
              strstr(text, "= NaN, but -0.625 was given") && strstr(text, ", but Inf was given"));
    unlink(path);
#define BAD(part, field, value)                                                \
    do {                                                                       \
        weft_cell_numbers bad = an_lstm();                                     \
        REFUSED(part, (bad.field = value, weft_plot_cell(path, "t", &bad)));   \
    } while (0)
    REFUSED("weft_plot_cell: numbers is NULL", weft_plot_cell(path, "t", NULL));
    BAD("h is NULL", h, NULL);
    BAD("x is NULL", x, NULL);
    BAD("unit 2 of 2", unit, 2);
    BAD("unit -1 of 2", unit, -1);
    BAD("kind is 7", kind, (weft_cell_kind)7);
    BAD("-1 inputs", inputs, -1);
}

