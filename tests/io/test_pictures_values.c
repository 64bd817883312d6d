/* test_pictures_values.c - pictures of numbers of either sign: each once to the byte, colours that all can
 * tell apart, numbers as texts, and what is refused. */
#include "pictures.h"
#include "io/pictures/scale.h"

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
    double a = luminance(p.fill) + .05, b = luminance(p.ink) + .05;
    return fmax(a, b) / fmin(a, b);
}

Test(pictures_values, an_ink_is_legible_on_every_colour)
{
    for (int r = 0; r < 256; r += 5)
        for (int g = 0; g < 256; g += 5)
            for (int b = 0; b < 256; b += 5) {
                weft__paint p = weft__paint_of((int[]){ r, g, b });
                cr_assert(contrast(p) >= 4.5, "%s on %s", p.ink, p.fill);
            }
}

Test(pictures_values, colours_get_darker_alike_to_either_side_under_a_legible_ink)
{
    double before[2] = { 1, 1 };
    for (int i = 0; i <= 100; i++)
        for (int side = 0; side < 2; side++) {
            weft__paint p = weft__place_paint((side ? i : -i) / 100.0);
            double l = luminance(p.fill);
            cr_assert(l <= before[side], "place %d of side %d is lighter than the one before", i, side);
            cr_assert(contrast(p) >= 4.5, "%s on %s", p.ink, p.fill);
            before[side] = l;
            if (side)
                cr_assert(fabs(before[0] - before[1]) < .06, "place %d: luminance %g and %g", i, before[0],
                          l);
        }
    cr_assert(before[0] < .08 && before[1] < .08);
    cr_assert_str_eq(weft__place_paint(0).fill, "#eeeeee");
    cr_assert_str_eq(weft__place_paint(-1).fill, "#084594");
    cr_assert_str_eq(weft__place_paint(1).fill, "#8c2d04");
    cr_assert_str_eq(weft__scale_paint(&(weft__scale){ -1, 0, 1, NULL }, NAN).fill, "#000000");
}

Test(pictures_values, short_numbers)
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

Test(pictures_values, scales)
{
    weft__scale s;
    const double values[] = { -1, 3, NAN, INFINITY };
    DRAWN(weft__scale_of("f", NULL, values, 4, &s));
    cr_assert(s.low == -3 && s.middle == 0 && s.high == 3, "as far to either side");
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
    begin();
    static const weft_colour_scale bad[] = { { 1, 0, 2, NULL },   { -1, 3, 2, NULL },  { 2, 2, 2, NULL },
                                             { 1, 1, -1, NULL },  { NAN, 0, 1, NULL }, { 0, NAN, 0, NULL },
                                             { -1, 0, INFINITY, NULL }, { -1e101, 0, 1, NULL } };
    for (int i = 0; i < COUNT(bad); i++)
        REFUSED("f: a scale from ", weft__scale_of("f", &bad[i], values, 4, &s));
}

/* ---- matrices ---- */
Test(pictures_values, diverging_heatmap)
{
    static const char *const rows[] = { "i", "f", "g", nasty },
                            *const columns[] = { "(", "the second", ")", NULL, "." };
    const double values[] = { .5,    .25,     0,   -0.0,      1,   -2, 2, -1, 1.5, 1e-9,
                              .1234, -.00056, NAN, -INFINITY, 123, 3,  0, 0,  0,   0 };
    begin();
    DRAWN(weft_plot_diverging_heatmap(path, "Gates & <gradients>", 4, 5, values, rows, columns,
                                      &(weft_colour_scale){ -2, 0, 2, "d loss / d gate" }));
    golden("diverging_heatmap.svg");
    char *text = text_of_file();
    cr_assert_eq(count(text, "url(#hatch)"), 2, "what is not finite");
    cr_assert_eq(count(text, "<title>") - 1, 20);
    cr_assert(strstr(text, "fill=\"#084594\"><title>-2<") && strstr(text, "fill=\"#8c2d04\"><title>2<") &&
              strstr(text, "fill=\"#8c2d04\"><title>123<") && strstr(text, "fill=\"#eeeeee\"><title>0<"));
    cr_assert(!strstr(text, ">-0<") && strstr(text, "rotate(-40") && strstr(text, "d loss / d gate"));
    free(text);
    for (int k = 0; k < rounds(30, 300); k++) {
        static double some[3600];
        static const double odd[] = { 0, -0.0, 1, -1, 1e300, -1e300, 5e-324, NAN, INFINITY, -INFINITY, 1e-5 };
        int r = 1 + (int)dice(60), c = 1 + (int)dice(60);
        for (int i = 0; i < r * c; i++)
            some[i] = dice(3) ? odd[dice(COUNT(odd))] : (double)dice_real(-1, 1);
        DRAWN(weft_plot_diverging_heatmap(path, NULL, r, c, some, NULL, NULL, NULL));
        text = text_of_file();
        well_formed(text);
        cr_assert_eq(count(text, "<title>") - 1, r * c);
        free(text);
    }
    unlink(path);
    REFUSED("weft_plot_diverging_heatmap: 0 x 5 values",
            weft_plot_diverging_heatmap(path, "t", 0, 5, values, rows, columns, NULL));
    REFUSED("values is NULL", weft_plot_diverging_heatmap(path, "t", 1, 5, NULL, rows, columns, NULL));
    REFUSED("65536 x 65536",
            weft_plot_diverging_heatmap(path, "t", 65536, 65536, values, rows, columns, NULL));
    REFUSED("a scale from 1 over 0 to 0", weft_plot_diverging_heatmap(path, "t", 4, 5, values, NULL, NULL,
                                                                      &(weft_colour_scale){ .low = 1 }));
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

Test(pictures_values, cells)
{
    begin();
    weft_cell_numbers n = an_lstm();
    DRAWN(weft_plot_cell(path, "One step of an LSTM", &n));
    golden("lstm.svg");
    char *text = text_of_file();
    static const char *const tips[] = {
        "c(t-1) = -0.5", "f = 0.5",          "i = 0.75",     "g = -0.5",
        "o = 0.25",      "f c(t-1) = -0.25", "i g = -0.375", "tanh c(t) = -0.5546",
        "c(t) = -0.625", "h(t) = -0.13865",  "x[0] = 1",     "x[1] = 0",
        "h[0] = 0.25",   "h[1] = -0.125"
    };
    for (int i = 0; i < COUNT(tips); i++)
        cr_assert(strstr(text, tips[i]), "no %s", tips[i]);
    cr_assert(!strstr(text, "was given"));
    free(text);
    weft_cell_numbers g = { .kind = WEFT_CELL_GRU, .inputs = 2, .hidden = 6, .unit = 4, .x = x_of, .h = h_of,
                            .gates = { .5, .75, .5 }, .h_next = -.625 };
    DRAWN(weft_plot_cell(path, "One step of a GRU", &g));
    golden("gru.svg");
    text = text_of_file();
    static const char *const of_gru[] = { "h(t-1), this unit = -1<",
                                          "r = 0.5",
                                          "z = 0.75",
                                          "n = 0.5",
                                          "z h(t-1) = -0.75",
                                          "1 - z = 0.25",
                                          "(1 - z) n = 0.125",
                                          "h(t) = -0.625",
                                          "h[4] = -1",
                                          "and 3 more" };
    for (int i = 0; i < COUNT(of_gru); i++)
        cr_assert(strstr(text, of_gru[i]), "no %s", of_gru[i]);
    cr_assert(!strstr(text, "was given"));
    free(text);
    unlink(path);
}

Test(pictures_values, a_cell_whose_numbers_do_not_agree)
{
    begin();
    weft_cell_numbers n = an_lstm();
    n.gates[0] = .5;                             /* i and f in the wrong order, say */
    n.gates[1] = .75;
    DRAWN(weft_plot_cell(path, nasty, &n));
    char *text = text_of_file();
    well_formed(text);
    cr_assert(strstr(text, "0.75 \xC3\x97 (-0.5) + 0.5 \xC3\x97 (-0.5) = -0.625"), "equal by chance: %s",
              text);
    free(text);
    n.c = NAN, n.inputs = 0, n.x = NULL, n.h_next = INFINITY;
    DRAWN(weft_plot_cell(path, NULL, &n));
    text = text_of_file();
    well_formed(text);
    cr_assert(strstr(text, "c(t-1) is not finite") && strstr(text, ">NaN<") && strstr(text, "x is empty") &&
              strstr(text, "= NaN, but -0.625 was given") && strstr(text, ", but Inf was given"));
    free(text);
    unlink(path);
    weft_cell_numbers bad = an_lstm();
    REFUSED("weft_plot_cell: numbers is NULL", weft_plot_cell(path, "t", NULL));
    REFUSED("h is NULL", (bad.h = NULL, weft_plot_cell(path, "t", &bad)));
    bad = an_lstm();
    REFUSED("x is NULL", (bad.x = NULL, weft_plot_cell(path, "t", &bad)));
    bad = an_lstm();
    REFUSED("unit 2 of 2", (bad.unit = 2, weft_plot_cell(path, "t", &bad)));
    REFUSED("unit -1 of 2", (bad.unit = -1, weft_plot_cell(path, "t", &bad)));
    bad = an_lstm();
    REFUSED("kind is 7", (bad.kind = (weft_cell_kind)7, weft_plot_cell(path, "t", &bad)));
    bad = an_lstm();
    REFUSED("-1 inputs", (bad.inputs = -1, weft_plot_cell(path, "t", &bad)));
}

/* ---- batches ---- */
Test(pictures_values, batch_values)
{
    static const char *const labels[] = { "the", "cat", NULL, "a", "<b>", nasty };
    const int32_t len[] = { 3, 0, 1, 2 }, row[] = { 1, -7, 0, 0 }, column[] = { 1, 99, 3, 0 };
    const double values[] = { .5, -.25, NAN, 1, -1e-9, .125 };
    const weft_lengths lengths = { .n = 4, .len = len };
    begin();
    DRAWN(weft_plot_batch_values(path, "What reaches each token", &lengths, labels, values,
                                 &(weft_colour_scale){ .label = "dL/dx" }, NULL));
    golden("batch_values.svg");
    char *text = text_of_file();
    cr_assert_eq(count(text, ": not finite</title>"), 5, "once in each drawing");
    cr_assert_eq(count(text, "sequence 2, token 0, a: 1<"), 5);
    cr_assert(strstr(text, "rows: 2 x 3 = 6 cells, 0 of them pads"));
    free(text);
    DRAWN(weft_plot_batch_values(path, "by hand", &lengths, NULL, values, NULL,
                                 &(weft_placement){ 2, 4, row, column }));
    text = text_of_file();
    well_formed(text);
    cr_assert(strstr(text, "rows: 2 x 4 = 8 cells, 2 of them pads (25 %)"));
    cr_assert_eq(count(text, "class=\"pad\""), 6 + 2);
    free(text);
    DRAWN(weft_plot_batch_values(path, "nothing", &(weft_lengths){ .n = 0 }, NULL, NULL, NULL, NULL));
    const int32_t none[] = { 0, 0 };
    DRAWN(weft_plot_batch_values(path, "nothing", &(weft_lengths){ .n = 2, .len = none }, NULL, NULL, NULL,
                                 NULL));
    text = text_of_file();
    well_formed(text);
    free(text);
    unlink(path);
}

Test(pictures_values, batch_values_are_where_their_tokens_are)
{
    begin();
    static double values[240];
    for (int k = 0; k < rounds(40, 400); k++) {
        int32_t len[20];
        weft_lengths l = { .n = (int64_t)dice(20), .len = len };
        int64_t tokens = dice_lengths(len, l.n, 12), longest = 0;
        for (int i = 0; i < tokens; i++)
            values[i] = i + 1;
        for (int64_t i = 0; i < l.n; i++)
            longest = len[i] > longest ? len[i] : longest;
        DRAWN(weft_plot_batch_values(path, "batch", &l, NULL, values, NULL, NULL));
        char *text = text_of_file(), want[80];
        well_formed(text);
        int at = 0;
        for (int64_t i = 0; i < l.n; i++)
            for (int t = 0; t < len[i]; t++) {
                snprintf(want, sizeof want, "<title>sequence %d, token %d: %d</title>", (int)i, t, ++at);
                cr_assert_eq(count(text, want), 5, "%s", want);
            }
        cr_assert_eq(count(text, "<g>"), 5 * tokens);
        free(text);
    }
    unlink(path);
}

Test(pictures_values, batch_values_refuse)
{
    begin();
    const int32_t len[] = { 2, 3 }, first[] = { 0, 0 }, after[] = { 0, 2 }, negative[] = { -1, 2 },
                  late[] = { 0, 3 };
    const double values[] = { 1, 2, 3, 4, 5 };
    const weft_lengths l = { .n = 2, .len = len };
    unlink(path);
    REFUSED("weft_plot_batch_values: lengths is NULL",
            weft_plot_batch_values(path, "t", NULL, NULL, values, NULL, NULL));
    REFUSED("values is NULL; one of each of 5 tokens",
            weft_plot_batch_values(path, "t", &l, NULL, NULL, NULL, NULL));
    REFUSED("a scale from",
            weft_plot_batch_values(path, "t", &l, NULL, values, &(weft_colour_scale){ 2, 0, 1, NULL }, NULL));
    DRAWN(weft_plot_batch_values(path, "t", &l, NULL, values, NULL, &(weft_placement){ 1, 5, first, after }));
    unlink(path);
    REFUSED(
        "sequence 1 has 3 tokens, in row 0 from column 0 on",
        weft_plot_batch_values(path, "t", &l, NULL, values, NULL, &(weft_placement){ 1, 5, first, first }));
    REFUSED(
        "sequence 1 has 3 tokens, in row 0 from column 3 on",
        weft_plot_batch_values(path, "t", &l, NULL, values, NULL, &(weft_placement){ 1, 5, first, late }));
    REFUSED("from column -1 on", weft_plot_batch_values(path, "t", &l, NULL, values, NULL,
                                                        &(weft_placement){ 1, 5, first, negative }));
    REFUSED("in row -1", weft_plot_batch_values(path, "t", &l, NULL, values, NULL,
                                                &(weft_placement){ 1, 5, negative, after }));
    REFUSED("in row 2", weft_plot_batch_values(path, "t", &l, NULL, values, NULL,
                                               &(weft_placement){ 2, 5, after, first }));
    REFUSED("a placement of 1 rows", weft_plot_batch_values(path, "t", &l, NULL, values, NULL,
                                                            &(weft_placement){ 1, 5, NULL, after }));
    REFUSED("at most 100000 cells",
            weft_plot_batch_values(path, "t", &l, NULL, values, NULL,
                                   &(weft_placement){ INT64_MAX, INT64_MAX, first, after }));
    REFUSED("a placement of -1 rows", weft_plot_batch_values(path, "t", &l, NULL, values, NULL,
                                                             &(weft_placement){ -1, 5, first, after }));
}

/* ---- a roofline ---- */
static const weft_roofline_point kernels[] = { { "softmax", .25, 2 }, { "LSTM, H 64", 2, 14 },
                                               { nasty, 9, 61 },      { "LSTM, H 512", 20, 100 },
                                               { NULL, 10, 60 },      { "above", .5, 8 } };

static void dot_of(const char *text, const char *tip, double at[2])
{
    const char *circle = strstr(text, tip);
    cr_assert(circle, "no %s", tip);
    while (strncmp(circle, "<circle", 7))
        circle--;
    cr_assert_eq(sscanf(circle, "<circle cx=\"%lf\" cy=\"%lf\"", &at[0], &at[1]), 2);
}

Test(pictures_values, roofline)
{
    begin();
    DRAWN(weft_plot_roofline(path, "Where the time goes", 100, 10, kernels, 5));
    golden("roofline.svg");
    DRAWN(weft_plot_roofline(path, "t", 100, 10, kernels, 6));
    char *text = text_of_file();
    cr_assert(strstr(text, "softmax: 0.25 FLOPs for each byte, 2 GF/s, 80 % of the roof") &&
              strstr(text, "LSTM, H 512: 20 FLOPs for each byte, 100 GF/s, 100 % of the roof") &&
              strstr(text, ">60 %</text>") && strstr(text, ">above, 160 %</text>"));
    /* the roof goes through a point that is on it, and rises one decade a decade up to the ridge */
    double flat[2], one[2], two[2], roof[6];
    cr_assert_eq(sscanf(strstr(text, "class=\"roof\" d=\"M"), "class=\"roof\" d=\"M%lf %lfL%lf %lfL%lf %lf",
                        &roof[0], &roof[1], &roof[2], &roof[3], &roof[4], &roof[5]),
                 6);
    dot_of(text, "LSTM, H 512: 20", flat);
    dot_of(text, "<title>10 FLOPs", one);
    dot_of(text, "LSTM, H 64: 2", two);
    cr_assert(flat[1] == roof[3] && roof[3] == roof[5] && flat[0] > roof[2] && flat[0] < roof[4],
              "on the flat roof");
    cr_assert_eq(one[0], roof[2], "the ridge is at 10");
    double x_decade = (one[0] - two[0]) / log10(5), y_decade = (two[1] - one[1]) / log10(60 / 14.);
    cr_assert(fabs((roof[1] - roof[3]) / y_decade - (roof[2] - roof[0]) / x_decade) < .01, "the slope is 1");
    free(text);
    unlink(path);
}

Test(pictures_values, rooflines_of_any_numbers)
{
    begin();
    for (int k = 0; k < rounds(100, 1000); k++) {
        weft_roofline_point p[100];
        int n = (int)dice(101);
        for (int i = 0; i < n; i++)
            p[i] = (weft_roofline_point){ dice(4) ? "a kernel" : nasty, pow(10, (double)dice_real(-12, 12)),
                                          pow(10, (double)dice_real(-12, 12)) };
        DRAWN(weft_plot_roofline(path, NULL, pow(10, (double)dice_real(-12, 12)),
                                 pow(10, (double)dice_real(-12, 12)), n ? p : NULL, n));
        char *text = text_of_file();
        well_formed(text);
        cr_assert_eq(count(text, "<circle"), n);
        free(text);
    }
    unlink(path);
    REFUSED("weft_plot_roofline: a peak of 0 GF/s", weft_plot_roofline(path, "t", 0, 1, kernels, 1));
    REFUSED("a bandwidth of nan GB/s", weft_plot_roofline(path, "t", 1, NAN, kernels, 1));
    REFUSED("101 points", weft_plot_roofline(path, "t", 1, 1, kernels, 101));
    REFUSED("-1 points", weft_plot_roofline(path, "t", 1, 1, kernels, -1));
    REFUSED("points is NULL", weft_plot_roofline(path, "t", 1, 1, NULL, 2));
    const weft_roofline_point bad[] = { { "a", 1, 1 }, { "b", 1, -1 } }, worse[] = { { "a", INFINITY, 1 } };
    REFUSED("point 1 has 1 FLOPs for each byte and -1 GF/s", weft_plot_roofline(path, "t", 1, 1, bad, 2));
    REFUSED("point 0 has inf FLOPs", weft_plot_roofline(path, "t", 1, 1, worse, 1));
}
