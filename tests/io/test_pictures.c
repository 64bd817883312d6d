/* test_pictures.c - SVG: well-formed XML whatever the labels, the shapes that the numbers ask for, whole
 * files or none. */
#include "tests/core/comma.h"
#include "pictures.h"

/* ---- curves ---- */
Test(pictures, curves)
{
    begin();
    double x[100], y[100], z[100];
    for (int i = 0; i < 100; i++) {
        x[i] = i * 100;
        y[i] = i == 50 ? NAN : exp(-i / 20.0);
        z[i] = 40 - i / 10.0;
    }
    const weft_curve curves[] = { { "loss", 100, x, y, false, NULL },
                                  { nasty, 20, x, z, true, NULL },
                                  { NULL, 0, NULL, NULL, true, NULL } };
    const weft_chart chart = { NULL, "updates", "loss", nasty, 0, 0, curves, 3 };
    cr_assert_eq(weft_plot_lines(path, nasty, &chart, 1, 0), WEFT_OK, "%s", weft_file_message());
    char *text = text_of_file();
    well_formed(text);
    cr_assert(strstr(text, "viewBox=\"0 0 960 500\"") && !strstr(text, "translate("));
    cr_assert_eq(count(text, "<circle"), 20, "few points get dots");
    cr_assert_eq(count(text, "class=\"curve\""), 3);
    const char *d = strstr(text, "class=\"curve\"");
    char *first = strndup(d, (size_t)(strchr(d, '\n') - d));
    cr_assert(count(first, "M") == 2 && count(first, "L") == 97, "a NaN lifts the pen: %s", first);
    free(first);
    free(text);
    unlink(path);
}

Test(pictures, curves_of_odd_numbers)
{
    static const double odd[] = { 0,    -0.0,   1,        -1,        1e-300, 1e300,      -1e300,
                                  1e99, 5e-324, INFINITY, -INFINITY, NAN,    12345678.9, 1 + 1e-12 };
    begin();
    for (int k = 0; k < rounds(300, 3000); k++) {
        double x[8], y[8];
        int64_t n = (int64_t)dice(9);
        for (int64_t i = 0; i < n; i++) {
            x[i] = odd[dice(COUNT(odd))];
            y[i] = odd[dice(COUNT(odd))];
        }
        weft_curve one = { "c", n, x, y, dice(2), dice(2) ? x : NULL };
        weft_chart whole = { .curves = &one, .n = (int)dice(2) };
        cr_assert_eq(weft_plot_lines(path, NULL, &whole, 1, 0), WEFT_OK);
        char *text = text_of_file();
        cr_assert(well_formed(text) < 200);
        free(text);
        static const int bases[] = { 0, 2, 10 };
        weft_curve c = { "c", n, x, y, dice(2), dice(2) ? x : NULL };
        cr_assert_eq(
            weft_plot_lines(
                path, NULL,
                &(weft_chart){
                    "t", .x_base = bases[dice(3)], .y_base = bases[dice(3)], .curves = &c, .n = 1 },
                1, 1),
            WEFT_OK);
        text = text_of_file();
        cr_assert(well_formed(text) < 200);
        free(text);
    }
    unlink(path);
}

Test(pictures, bands)
{
    begin();
    enum { N = 100 };
    double x[N], y[N], low[N];
    for (int i = 0; i < N; i++) {
        x[i] = i;
        y[i] = i == 40 ? NAN : 1;
        low[i] = i == 70 ? -INFINITY : i == 5 ? -4 : 0;
    }
    const weft_curve curves[] = { { "a band first", N, x, y, false, x },
                                  { "past", N, x, y, false, NULL },
                                  { "truth", N, x, x, true, NULL },
                                  { "band", N, x, y, false, low },
                                  { "inner", 2, x, y, false, low },
                                  { "last", N, x, x, false, NULL },
                                  { .low = low } };
    cr_assert_eq(weft_plot_lines(path, "t", &(weft_chart){ NULL, "x", "l", "r", 0, 0, curves, 7 }, 1, 0),
                 WEFT_OK, "%s", weft_file_message());
    char *text = text_of_file();
    well_formed(text);
    cr_assert_eq(count(text, "class=\"curve\""), 3);
    cr_assert_eq(count(text, "<path class=\"band\""), 4);
    cr_assert_eq(count(text, "<rect x"), 3, "the legend's boxes, of those that have a name");
    cr_assert_eq(count(text, "<circle"), 0, "bands have no dots");
    cr_assert(strstr(text, "<path class=\"curve\"") > strstr(text, "<path class=\"band\" fill=\"#d55e00\""),
              "bands lie below");
    /* pieces: all but y's gap; also but low's; the inner one; the empty one */
    static const int want[] = { 2, 3, 1, 0 };
    const char *at = text;
    for (int k = 0; k < 4; k++) {
        cr_assert_not_null(at = strstr(at, "<path class=\"band\""));
        char *one = strndup(at, (size_t)(strchr(at, '\n') - at));
        cr_assert_eq(count(one, "M"), want[k], "%d: %s", k, one);
        cr_assert_eq(count(one, "Z"), want[k]);
        static const char *const colours[] = { "#0072b2", "#d55e00", "#d55e00", "#009e73" };
        cr_assert(strstr(one, colours[k]), "the colour of the curve before: %d: %s", k, one);
        free(one);
        at++;
    }
    cr_assert_eq(count(text, "\"#cc79a7\""), 0, "bands use no colours up");
    cr_assert(strstr(text, ">-20<"), "the axis has room for low");
    free(text);
    unlink(path);
}

/* Names that are too wide for one row of the legend go on in the next; none leaves the picture. A curve
   without a name (the last) has no place there. */
Test(pictures, a_legend_has_as_many_rows_as_it_needs)
{
    static const char long_one[] = "a name of thirty characters or so";
    const double x[] = { 0, 1 };
    weft_curve curves[7];
    for (int n = 1; n <= 6; n++) {
        begin();
        for (int k = 0; k <= n; k++)
            curves[k] = (weft_curve){ k < n ? long_one : "", 2, x, x, false, NULL };
        const weft_chart chart = { .curves = curves, .n = n + 1 };
        cr_assert_eq(weft_plot_lines(path, "t", &chart, 1, 0), WEFT_OK);
        char *text = text_of_file();
        well_formed(text);
        cr_assert_eq(count(text, long_one), n);
        cr_assert_eq(count(text, "stroke-width=\"4\""), n, "the legend's lines");
        double top = 1e9, bottom = 0;
        for (const char *at = text; (at = strstr(at, "stroke-width=\"4\"")); at++) {
            const char *line = at;
            double from, y;
            while (strncmp(line, "<line", 5))
                line--;
            cr_assert_eq(sscanf(line, "<line x1=\"%lf\" y1=\"%lf\"", &from, &y), 2);
            cr_assert(from + 31 + 7.5 * (double)strlen(long_one) < 960, "%d: at %g", n, from);
            top = y < top ? y : top, bottom = y > bottom ? y : bottom;
        }
        cr_assert_eq(bottom - top, 18 * ((n - 1) / 2), "%d names: %g to %g", n, top, bottom);
        free(text);
        unlink(path);
    }
}

/* Where a point of this value lies on the axis of the n-th chart, by its dot: cx or cy. */
static double place(const char *text, int chart, const char *axis, const char *tip)
{
    char want[64];
    for (; chart >= 0; chart--)
        cr_assert_not_null(text = strstr(text, "<g transform=\"translate") + 1);
    snprintf(want, sizeof want, "<title>%s</title>", tip);
    const char *end = strstr(text, want), *dot = end;
    cr_assert_not_null(end);
    while (strncmp(dot, "<circle", 7))
        dot--;
    return atof(strstr(dot, axis) + 4);
}

Test(pictures, charts_by_powers)
{
    begin();
    const double x[] = { 32, 64, 128, 256, 0 }, y[] = { 1, 10, 1000, -3, 1 };
    const weft_curve curve = { "c", 5, x, y, false, NULL };
    const weft_curve between = { "b", 2, (double[]){ 30, 500 }, (double[]){ 1, 2 }, false, NULL };
    const weft_chart charts[] = { { "even", "T", "ms", NULL, 0, 0, &curve, 1 },
                                  { nasty, "T", "ms", NULL, 2, 10, &curve, 1 },
                                  { .y_base = 2 } };
    cr_assert_eq(weft_plot_lines(path, nasty, charts, 3, 0), WEFT_OK, "%s", weft_file_message());
    char *text = text_of_file();
    cr_assert(strstr(text, "viewBox=\"0 0 960 1544\"") && strstr(text, "translate(0 1044)"), "one column");
    free(text);
    cr_assert_eq(weft_plot_lines(path, nasty, charts, 3, 2), WEFT_OK, "%s", weft_file_message());
    text = text_of_file();
    well_formed(text);
    cr_assert_eq(count(text, "<circle"), 5 + 3, "0 and -3 have no logarithm");
    cr_assert(strstr(text, "viewBox=\"0 0 1920 1044\"") && strstr(text, "translate(960 44)") &&
              strstr(text, "translate(0 544)"));
    double at[] = { place(text, 1, "cx=", "32: 1"), place(text, 1, "cx=", "64: 10"),
                    place(text, 1, "cx=", "128: 1000") };
    double up[] = { place(text, 1, "cy=", "32: 1"), place(text, 1, "cy=", "64: 10"),
                    place(text, 1, "cy=", "128: 1000") };
    cr_assert(at[1] > at[0] && fabs(2 * at[1] - at[0] - at[2]) < .3, "even steps for powers of two: %g %g %g",
              at[0], at[1], at[2]);
    cr_assert(up[1] < up[0] && fabs(3 * up[1] - 2 * up[0] - up[2]) < .4, "and of ten: %g %g %g", up[0], up[1],
              up[2]);
    double even[] = { place(text, 0, "cx=", "32: 1"), place(text, 0, "cx=", "64: 10"),
                      place(text, 0, "cx=", "128: 1000") };
    cr_assert(fabs((even[2] - even[1]) - 2 * (even[1] - even[0])) < .4);
    const char *second = strstr(text, "translate(960 44)");
    static const char *const marks[] = { ">32<", ">64<", ">128<", ">1<", ">2<", ">5<", ">10<", ">1000<" };
    for (int i = 0; i < COUNT(marks); i++)
        cr_assert(strstr(second, marks[i]), "no mark %s", marks[i]);
    free(text);
    cr_assert_eq(weft_plot_lines(path, "t", &(weft_chart){ .x_base = 10, .curves = &between, .n = 1 }, 1, 1),
                 WEFT_OK);
    text = text_of_file();
    cr_assert(strstr(text, ">50<") && strstr(text, ">100<") && strstr(text, ">500<") &&
              !strstr(text, ">20<") && !strstr(text, ">1000<"));
    free(text);
    cr_assert_eq(weft_plot_lines(path, "t", charts, 0, 1), WEFT_EARG);
    cr_assert_eq(weft_plot_lines(path, "t", charts, 101, 1), WEFT_EARG);
    cr_assert_eq(weft_plot_lines(path, "t", NULL, 1, 1), WEFT_EARG);
    cr_assert_eq(weft_plot_lines(path, "t", charts, 1, -1), WEFT_EARG);
    cr_assert(strstr(weft_file_message(), "weft_plot_lines: 1 charts in -1 columns"));
    cr_assert_eq(weft_plot_lines(path, "t", &(weft_chart){ .x_base = 3 }, 1, 1), WEFT_EARG);
    cr_assert_eq(weft_plot_lines(path, "t", &(weft_chart){ .n = 1 }, 1, 1), WEFT_EARG);
    unlink(path);
}

/* ---- heat maps ---- */
Test(pictures, heatmap)
{
    static const char *const rows[] = { "f", nasty, NULL }, *const columns[] = { "p", "\xC3\xA9" };
    const double weights[] = { 0, 1, 0.25, 0.75, NAN, 2 };
    begin();
    cr_assert_eq(weft_plot_heatmap(path, "map", 3, 2, weights, rows, columns), WEFT_OK, "%s",
                 weft_file_message());
    char *text = text_of_file();
    well_formed(text);
    cr_assert(strstr(text, "fill=\"#ffffff\"><title>0.000") &&
              strstr(text, "fill=\"#08306b\"><title>1.000") && strstr(text, "\xC3\xA9"));
    cr_assert(count(text, "url(#hatch)") == 1 && strstr(text, ">75</text>") && strstr(text, ">25</text>"));
    free(text);
    for (int k = 0; k < rounds(30, 300); k++) {
        int r = 1 + (int)dice(60), c = 1 + (int)dice(60);
        weft_real some[3600];
        double all[3600];
        dice_fill(some, r * c, 0, 1);
        for (int i = 0; i < r * c; i++)
            all[i] = (double)some[i];
        cr_assert_eq(weft_plot_heatmap(path, "map", r, c, all, NULL, NULL), WEFT_OK);
        text = text_of_file();
        well_formed(text);
        cr_assert_eq(count(text, "<title>") - 1, r * c);
        free(text);
    }
    unlink(path);
}

/* ---- batches ---- */
Test(pictures, batch_has_a_cell_for_each_token_and_pad)
{
    static const char *labels[20 * 12];
    begin();
    for (int i = 0; i < COUNT(labels); i++)
        labels[i] = i % 7 ? (i % 5 ? "x" : nasty) : NULL;
    for (int k = 0; k < rounds(60, 600); k++) {
        int32_t len[20];
        weft_lengths l = { .n = (int64_t)dice(20), .len = len };
        int64_t tokens = dice_lengths(len, l.n, 12), longest = 0;
        for (int64_t i = 0; i < l.n; i++)
            longest = len[i] > longest ? len[i] : longest;
        cr_assert_eq(weft_plot_batch(path, "batch", &l, dice(2) ? labels : NULL), WEFT_OK, "%s",
                     weft_file_message());
        char *text = text_of_file();
        well_formed(text);
        cr_assert_eq(count(text, "class=\"pad\""), l.n * longest - tokens);
        /* two grids, two strips; hatch and ground */
        cr_assert_eq(count(text, "<rect") - count(text, "class=\"pad\"") - 3, 4 * tokens);
        free(text);
    }
    unlink(path);
}

/* docs/batch.svg, to the byte: "bartleson" and seven more words. */
Test(pictures, batch_of_the_readme)
{
    static const char words[] = "bartlesoncorroboratesfirebombedindovinamausolfplanedshibbolethvaclav";
    static const int32_t len[] = { 9, 12, 10, 8, 7, 6, 10, 6 };
    char letters[sizeof words][2];
    const char *labels[sizeof words];
    begin();
    for (size_t i = 0; words[i]; i++) {
        letters[i][0] = words[i], letters[i][1] = 0;
        labels[i] = letters[i];
    }
    const weft_lengths lengths = { .n = COUNT(len), .len = len };
    cr_assert_eq(weft_plot_batch(path, "One batch of words in three layouts", &lengths, labels), WEFT_OK);
    golden("../../../docs/batch.svg");
    unlink(path);
}

Test(pictures, large_batches)
{
    enum { N = 2000 };
    static int32_t len[N];
    begin();
    for (int i = 0; i < N; i++)
        len[i] = (int32_t)dice(50);
    cr_assert_eq(weft_plot_batch(path, "many", &(weft_lengths){ .n = N, .len = len }, NULL), WEFT_OK);
    len[0] = 49000;
    cr_assert_eq(weft_plot_batch(path, "one long", &(weft_lengths){ .n = 2, .len = len }, NULL), WEFT_OK);
    cr_assert_eq(weft_plot_batch(path, "too much", &(weft_lengths){ .n = N, .len = len }, NULL), WEFT_EARG);
    unlink(path);
}

/* ---- files ---- */
Test(pictures, same_bytes_in_every_locale)
{
    begin();
    double x[] = { 0.5, 1.25 }, y[] = { 1e-3, 2.5 };
    char *text[2];
    for (int k = 0; k < 2; k++) {
        if (k)
            comma_begin();
        cr_assert_eq(
            weft_plot_lines(path, "t",
                            &(weft_chart){ NULL, "x", "l", NULL, 0, 0,
                                           &(weft_curve){ "c", 2, x, y, false, NULL }, 1 },
                            1, 0),
            WEFT_OK);
        text[k] = text_of_file();
        comma_end();
    }
    cr_assert_str_eq(text[0], text[1]);
    free(text[0]);
    free(text[1]);
    unlink(path);
}

Test(pictures, refuse_and_leave_the_old_file)
{
    begin();
    int32_t negative = -1;
    double one = 1;
    cr_assert_eq(weft_plot_heatmap(path, "t", 1, 1, &one, NULL, NULL), WEFT_OK);
    char *before = text_of_file();
    cr_assert_eq(weft_plot_heatmap(path, "t", 0, 1, &one, NULL, NULL), WEFT_EARG);
    cr_assert_eq(weft_plot_heatmap(path, "t", 1, 1, NULL, NULL, NULL), WEFT_EARG);
    cr_assert_eq(weft_plot_heatmap(path, "t", 1 << 20, 1 << 20, &one, NULL, NULL), WEFT_EARG);
    cr_assert_eq(weft_plot_lines(path, "t", &(weft_chart){ .n = 1 }, 1, 0), WEFT_EARG);
    cr_assert_eq(weft_plot_lines(path, "t", &(weft_chart){ .curves = &(weft_curve){ .n = 1 }, .n = 1 }, 1, 0),
                 WEFT_EARG);
    cr_assert(strstr(weft_file_message(), "weft_plot_lines: chart 0: curves with x and y"));
    cr_assert_eq(weft_plot_batch(path, "t", NULL, NULL), WEFT_EARG);
    cr_assert_eq(weft_plot_batch(path, "t", &(weft_lengths){ .n = 1, .len = &negative }, NULL), WEFT_EARG);
    cr_assert_eq(weft_plot_heatmap("/nowhere/a.svg", "t", 1, 1, &one, NULL, NULL), WEFT_EIO);
    cr_assert(strstr(weft_file_message(), "/nowhere/a.svg"));
    cr_assert_eq(weft_plot_heatmap(NULL, "t", 1, 1, &one, NULL, NULL), WEFT_EARG);
    char *after = text_of_file();
    cr_assert_str_eq(before, after);
    free(before);
    free(after);
    unlink(path);
}
