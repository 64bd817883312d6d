/* test_pictures.c - tests charts as SVG: well-formed XML for any labels, shapes that match the numbers, and
 * whole files or none. */
#include "tests/core/comma.h"
#include "pictures.h"

TestSuite(pictures, .init = begin, .fini = remove_picture);

static char *lines(const weft_chart *charts, int64_t n, int columns)
{
    return drawn_text(weft_plot_lines(path, nasty, charts, n, columns));
}

/* The element that begins at `at`. */
static const char *element(const char *at)
{
    size_t n = (size_t)(strstr(at, "/>") - at);
    return (char *)lent((content){ (unsigned char *)strndup(at, n), n }).at;
}

Test(pictures, curves_show_their_points)
{
    double x[100], y[100], z[100];
    for (int i = 0; i < 100; i++) {
        x[i] = i * 100;
        y[i] = i == 50 ? NAN : exp(-i / 20.0);
        z[i] = 40 - i / 10.0;
    }
    const weft_curve curves[] = { { "loss", 100, x, y, false, NULL },
                                  { nasty, 20, x, z, true, NULL },
                                  { NULL, 0, NULL, NULL, true, NULL },
                                  { "outline", 4, (double[]){ 1, 1, 2, 2 }, x, true, NULL } };
    char *text = lines(&(weft_chart){ NULL, "updates", "loss", nasty, 0, 0, curves, 4 }, 1, 0);
    cr_assert(strstr(text, "viewBox=\"0 0 960 480\"") && !strstr(text, "translate("));
    cr_assert_eq(count(text, "<circle"), 20, "few points must have dots, an outline none");
    cr_assert_eq(count(text, "class=\"curve\""), 4);
    const char *first = element(strstr(text, "class=\"curve\""));
    const char *straight = element(strstr(text, "#d55e00\" d"));
    cr_assert_eq(count(first, "M"), 2, "a NaN lifts the pen: %s", first);
    cr_assert(count(first, "l") < 60 && count(first, "l") > 10, "few points on a smooth curve: %s", first);
    cr_assert_eq(count(straight, "l"), 1, "two points of a straight line: %s", straight);
}

/* Each omitted point is within the allowed distance of the path. */
Test(pictures, path_omits_only_points_on_its_line)
{
    enum { N = 400 };
    for (int k = 0; k < rounds(30, 300); k++) {
        double x[N], y[N], at[2], step[2];
        for (int i = 0; i < N; i++) {
            x[i] = i;
            y[i] = sin(i * (double)dice_real(0, 1) / 20) * 50 + (dice(5) ? 0 : (double)dice_real(-9, 9));
        }
        y[0] = -100;
        y[N - 1] = 100;                          /* the axis: -100 .. 100 on 334 pixels */
        const weft_curve curve = { "c", N, x, y, false, NULL };
        char *text = lines(&(weft_chart){ .curves = &curve, .n = 1 }, 1, 1);
        const char *d = strchr(strstr(text, "class=\"curve\""), 'M');
        int length, i = 0;
        cr_assert_eq(sscanf(d, "M%lf %lf%n", &at[0], &at[1], &length), 2);
        for (d += length; sscanf(d, " l%lf%lf%n", &step[0], &step[1], &length) == 2; d += length) {
            for (; i < N && 78 + 804. * x[i] / (N - 1) <= at[0] + step[0] + .05; i++) {
                double part = (78 + 804. * x[i] / (N - 1) - at[0]) / step[0];
                double off = at[1] + part * step[1] - (418 - 334 * (y[i] + 100) / 200);
                cr_assert(fabs(off) / hypot(1, step[1] / step[0]) < .3, "point %d: %g", i, off);
            }
            at[0] += step[0];
            at[1] += step[1];
        }
        cr_assert_eq(i, N);
    }
}

Test(pictures, odd_numbers_give_valid_curves)
{
    static const double odd[] = { 0,    -0.0,   1,        -1,        1e-300, 1e300,      -1e300,
                                  1e99, 5e-324, INFINITY, -INFINITY, NAN,    12345678.9, 1 + 1e-12 };
    static const int bases[] = { 0, 2, 10 };
    for (int k = 0; k < rounds(600, 6000); k++) {
        double x[8], y[8];
        int64_t n = (int64_t)dice(9);
        for (int64_t i = 0; i < n; i++) {
            x[i] = odd[dice(COUNT(odd))];
            y[i] = odd[dice(COUNT(odd))];
        }
        weft_curve c = { "c", n, x, y, dice(2), dice(2) ? x : NULL };
        weft_chart chart = { .curves = &c, .n = (int)dice(2) };
        if (dice(2))
            chart = (weft_chart){
                "t", .x_base = bases[dice(3)], .y_base = bases[dice(3)], .curves = &c, .n = 1
            };
        DRAWN(weft_plot_lines(path, NULL, &chart, 1, (int)dice(2)));
        char *text = text_of_file();
        cr_assert(well_formed(text) < 200);
    }
}

Test(pictures, bands_lie_below_curves)
{
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
    char *text = lines(&(weft_chart){ NULL, "x", "l", "r", 0, 0, curves, 7 }, 1, 0);
    cr_assert_eq(count(text, "class=\"curve\""), 3);
    cr_assert_eq(count(text, "<path class=\"band\""), 4);
    cr_assert_eq(count(text, "<rect x"), 6, "the legend must have the named curves");
    cr_assert_eq(count(text, "<circle"), 0, "bands have no dots");
    cr_assert(strstr(text, "<path class=\"curve\"") > strstr(text, "<path class=\"band\" fill=\"#d55e00\""),
              "bands must be drawn first");
    /* pieces: all but y's gap; also but low's; the inner one; the empty one */
    static const int want[] = { 2, 3, 1, 0 };
    static const char *const colours[] = { "#0072b2", "#d55e00", "#d55e00", "#009e73" };
    const char *at = text;
    for (int k = 0; k < 4; k++) {
        cr_assert_not_null(at = strstr(at, "<path class=\"band\""));
        const char *one = element(at++);
        cr_assert_eq(count(one, "M"), want[k], "%d: %s", k, one);
        cr_assert_eq(count(one, "Z"), want[k]);
        cr_assert(strstr(one, colours[k]), "must have the colour of the previous curve: %d: %s", k, one);
    }
    cr_assert_eq(count(text, "\"#cc79a7\""), 0, "bands must not use a colour");
    cr_assert(strstr(text, ">-20<"), "the axis must include low");
}

/* Names too wide for one row are placed, without overlap, at the ends of curves that end at one x. Otherwise
 * the legend has more rows. All stay inside the picture. A curve without a name gets no label. */
Test(pictures, long_names_take_several_rows)
{
    static const char long_one[] = "a name of thirty characters or so";
    const double x[] = { 0, 1 }, flat[] = { 1, 1 };
    weft_curve curves[7];
    for (int n = 1; n <= 6; n++)
        for (int legend = 0; legend < 2; legend++) {
            for (int k = 0; k < n; k++)
                curves[k] = (weft_curve){ long_one, 2, x, flat, false, NULL };
            curves[n] = (weft_curve){ "", 2, x, x, true, NULL };
            char *text = lines(&(weft_chart){ .curves = curves, .n = n + legend }, 1, 0);
            cr_assert_eq(count(text, long_one), n);
            double rows = 0, before = -1;
            for (const char *at = text; (at = strstr(at, long_one)); at++) {
                const char *start = at;
                double from, y;
                while (strncmp(start, "<text", 5))
                    start--;
                cr_assert_eq(sscanf(start, "<text x=\"%lf\" y=\"%lf\"", &from, &y), 2);
                cr_assert(from + 7. * (double)strlen(long_one) < 960, "%d: at %g", n, from);
                cr_assert(n < 3 || legend || before < 0 || fabs(y - before) > 14, "%g and %g", before, y);
                rows += y > before || y < before;
                before = y;
            }
            cr_assert_eq(rows, n < 3 || legend ? (n + 1) / 2 : n, "%d names: %g rows", n, rows);
        }
}

/* Returns the position of this value on an axis of the n-th chart, from the cx or cy of its dot. */
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

Test(pictures, axes_can_be_logarithmic)
{
    const double x[] = { 32, 64, 128, 256, 512 }, y[] = { 1, 10, 1000, -3, 0 };
    const weft_curve curve = { "c", 5, x, y, false, NULL };
    const weft_chart charts[] = { { "even", "T", "ms", NULL, 0, 0, &curve, 1 },
                                  { nasty, "T", "ms", NULL, 2, 10, &curve, 1 },
                                  { .y_base = 2 } };
    char *text = lines(charts, 3, 0);
    cr_assert(strstr(text, "viewBox=\"0 0 960 1484\"") && strstr(text, "translate(0 1004)"), "one column");
    text = lines(charts, 3, 2);
    cr_assert_eq(count(text, "<circle"), 5 + 3, "0 and -3 have no logarithm");
    cr_assert(strstr(text, "viewBox=\"0 0 1120 804\"") && strstr(text, "translate(560 44)") &&
              strstr(text, "translate(0 424)"));
    static const char *const tips[] = { "32: 1", "64: 10", "128: 1000" };
    double at[3], up[3], even[3];
    for (int i = 0; i < 3; i++) {
        at[i] = place(text, 1, "cx=", tips[i]);
        up[i] = place(text, 1, "cy=", tips[i]);
        even[i] = place(text, 0, "cx=", tips[i]);
    }
    cr_assert(at[1] > at[0] && fabs(2 * at[1] - at[0] - at[2]) < .3, "even steps for powers of two: %g %g %g",
              at[0], at[1], at[2]);
    cr_assert(up[1] < up[0] && fabs(3 * up[1] - 2 * up[0] - up[2]) < .4, "and of ten: %g %g %g", up[0], up[1],
              up[2]);
    cr_assert(fabs((even[2] - even[1]) - 2 * (even[1] - even[0])) < .4);
    cr_assert(up[2] > 90, "no curve along the frame: %g", up[2]);
}

static void marks_are(const weft_chart *chart, const char *const *some, const char *const *none)
{
    char *text = lines(chart, 1, 1);
    for (; *some; some++)
        cr_assert(strstr(text, *some), "no mark %s", *some);
    for (; *none; none++)
        cr_assert(!strstr(text, *none), "a mark %s", *none);
}

Test(pictures, axis_labels_have_one_notation)
{
    double x[] = { 32, 128 }, y[] = { 1, 900 };
    const weft_curve c = { "c", 2, x, y, false, NULL };
#define MARKS(...) (const char *const[]){ __VA_ARGS__, NULL }
    marks_are(&(weft_chart){ .x_base = 2, .y_base = 10, .curves = &c, .n = 1 },
              MARKS(">32<", ">64<", ">128<", ">1<", ">2<", ">5<", ">10<", ">1000<"),
              MARKS(">256<", ">2000<"));
    x[0] = 30;
    x[1] = 500;
    y[1] = 2;
    marks_are(&(weft_chart){ .x_base = 10, .curves = &c, .n = 1 }, MARKS(">50<", ">100<", ">500<"),
              MARKS(">20<", ">1000<"));
    y[0] = 1e-7;
    y[1] = 900;
    marks_are(&(weft_chart){ .y_base = 10, .curves = &c, .n = 1 },
              MARKS(">1e-8<", ">1e-2<", ">1e0<", ">1e2<"),
              MARKS(">0.01<", ">1<", ">1e-08<"));
}

/* ---- files ---- */
Test(pictures, have_the_same_bytes_in_every_locale)
{
    char *text[2];
    for (int k = 0; k < 2; k++) {
        if (k)
            comma_begin();
        text[k] = lines(&(weft_chart){ .curves = &(weft_curve){ "c", 2, (double[]){ .5, 1.25 },
                                                                (double[]){ 1e-3, 2.5 }, false, NULL },
                                       .n = 1 }, 1, 0);
        comma_end();
    }
    cr_assert_str_eq(text[0], text[1]);
}

/* The lines of a file are short, unless a text is long. */
Test(pictures, have_short_lines)
{
    static double y[2000], x[2000];
    for (int i = 0; i < 2000; i++) {
        x[i] = i;
        y[i] = (double)dice_real(-1, 1);
    }
    const weft_curve curve = { "c", 2000, x, y, false, NULL };
    for (int k = 0; k < 2; k++) {
        weft_status s = k ? weft_plot_lines(path, "t", &(weft_chart){ .curves = &curve, .n = 1 }, 1, 1) :
                            weft_plot_heatmap(path, "t", 40, 50, y, NULL, NULL, NULL);
        char *text = drawn_text(s);
        for (char *at = text; *at; at += strcspn(at, "\n") + 1)
            cr_assert(strcspn(at, "\n") <= 400, "%.60s", at);
        cr_assert_str_eq(text + strlen(text) - 8, "\n</svg>\n");
    }
}

Test(pictures, keep_the_old_file_on_errors)
{
    double one = 1;
    const weft_chart good = { .n = 0 }, no_curves = { .n = 1 }, base = { .x_base = 3 },
                     no_points = { .curves = &(weft_curve){ .n = 1 }, .n = 1 };
    REFUSED("weft_plot_lines: 0 charts", weft_plot_lines(path, "t", &good, 0, 1));
    REFUSED("weft_plot_lines: 101 charts", weft_plot_lines(path, "t", &good, 101, 1));
    REFUSED("charts is NULL", weft_plot_lines(path, "t", NULL, 1, 1));
    REFUSED("weft_plot_lines: 1 charts in -1 columns", weft_plot_lines(path, "t", &good, 1, -1));
    REFUSED("bases 0, 2 or 10", weft_plot_lines(path, "t", &base, 1, 1));
    REFUSED("chart 0: expected curves with x and y", weft_plot_lines(path, "t", &no_curves, 1, 1));
    REFUSED("chart 0: expected curves with x and y", weft_plot_lines(path, "t", &no_points, 1, 0));
    char *before = lines(&good, 1, 0);
    cr_assert_eq(weft_plot_lines(path, "t", &no_curves, 1, 0), WEFT_EARG);
    cr_assert_eq(weft_plot_heatmap("/nowhere/a.svg", "t", 1, 1, &one, NULL, NULL, NULL), WEFT_EIO);
    cr_assert(strstr(weft_file_message(), "/nowhere/a.svg"));
    cr_assert_eq(weft_plot_heatmap(NULL, "t", 1, 1, &one, NULL, NULL, NULL), WEFT_EARG);
    char *after = text_of_file();
    cr_assert_str_eq(before, after);
}
