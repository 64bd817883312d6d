/* test_tape_pictures.c - tests pictures of the tape as SVG and for graphviz: a box for each entry and leaf,
 * an arrow for each input, numbers and gradients. No arrow crosses a box, and drawing changes nothing. */
#include "tests/core/comma.h"
#include "pictures.h"

TestSuite(tape_pictures, .init = begin, .fini = remove_picture);

/* micrograd's README: g = 24.7041, dg/da = 138.8338, dg/db = 645.5773 */
static weft_tensor *expression(weft *w)
{
    weft_tensor *a = weft_scalar(w, -4), *b = weft_scalar(w, 2);
    weft_tensor *c = weft_add(a, b), *d = weft_add(weft_mul(a, b), weft_pow(b, 3));
    c = weft_add(c, weft_add(c, weft_scalar(w, 1)));
    c = weft_add(c, weft_sub(weft_add(weft_scalar(w, 1), c), a));
    d = weft_add(d, weft_add(weft_scale(d, 2), weft_relu(weft_add(b, a))));
    d = weft_add(d, weft_add(weft_scale(d, 3), weft_relu(weft_sub(b, a))));
    weft_tensor *e = weft_sub(c, d), *f = weft_square(e), *g = weft_scale(f, .5);
    return weft_add(g, weft_div(weft_scalar(w, 10), f));
}

static void drawn(weft *w, weft_tensor *of)
{
    DRAWN(weft_plot_tape(path, nasty, w, of));
    OK(w);
}

static char *picture(weft *w, weft_tensor *of)
{
    char *text = drawn_text(weft_plot_tape(path, nasty, w, of));
    OK(w);
    return text;
}

TABLE_TEST(tape_pictures, show_numbers_and_gradients)
{
    weft_tensor *g = expression(w);
    weft_neg(g);                             /* has not led to g */
    int64_t entries = weft_usage_of(w).tape;
    char *text = picture(w, g);
    cr_assert_eq(weft_usage_of(w).tape, entries, "drawing must not record");
    cr_assert_eq(count(text, "<g class=\"node\">"), 24 + 5);
    cr_assert_eq(count(text, "marker-end"), 2 * 17 + 7);
    static const char *const parts[] = { "<title>given0 [] = -4, gradient 138.8</title>",
                                         "<title>given1 [] = 2, gradient 645.6</title>",
                                         ">24.7 | 1<", ">%1 pow<", ">exponent=3<",
                                         "<title>%23 = add(%21, %22) -&gt; [] = 24.7, gradient 1</title>",
                                         "number | gradient of %23 by it" };
    for (int i = 0; i < COUNT(parts); i++)
        cr_assert(strstr(text, parts[i]), "no %s", parts[i]);
    cr_assert(!strstr(text, "neg") && !strstr(text, "<script"));
    text = picture(w, NULL);
    cr_assert(count(text, "<g class=\"node\">") == 24 + 5 + 1 && strstr(text, "%24 neg") &&
                  strstr(text, ">24.7<") && !strstr(text, "gradient"),
              "must draw all of the tape without gradients");
}

/* ---- layout ---- */
typedef struct { double x, y, wide, high; } box;

static int boxes_of(const char *text, box *boxes)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, "</title><rect x=\"")); at++, n++)
        cr_assert_eq(sscanf(at, "</title><rect x=\"%lf\" y=\"%lf\" width=\"%lf\" height=\"%lf\"", &boxes[n].x,
                            &boxes[n].y, &boxes[n].wide, &boxes[n].high),
                     4);
    return n;
}

static bool meet(const box *a, const box *b)
{
    return a->x < b->x + b->wide && b->x < a->x + a->wide && a->y < b->y + b->high && b->y < a->y + a->high;
}

/* Checks that boxes do not overlap, and that arrows go down in a free column and across within a gap. */
static void lies_well(const char *text)
{
    box boxes[128], run, over;
    int n = boxes_of(text, boxes), arrows = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            cr_assert(!meet(&boxes[i], &boxes[j]), "boxes %d and %d", i, j);
    for (int i = 1; i < n; i++)
        cr_assert(boxes[i].y >= boxes[i - 1].y, "box %d is above the previous operator", i);
    for (const char *at = text; (at = strstr(at, "<path class=\"axis\" d=\"M")); at++, arrows++) {
        double x, y, turn, a, b, c, d, end_x, end_y;
        cr_assert_eq(sscanf(at, "<path class=\"axis\" d=\"M%lf %lfV%lfC%lf %lf %lf %lf %lf %lf", &x, &y,
                            &turn, &a, &b, &c, &d, &end_x, &end_y),
                     9);
        cr_assert(turn >= y && end_y > turn, "an arrow leads down");
        run = (box){ x - .5, y + .5, 1, turn - y - 1 };
        over = (box){ fmin(x, end_x), turn + .5, fabs(x - end_x) + .5, end_y - turn - 1 };
        for (int i = 0; i < n; i++)
            cr_assert(!(run.high > 0 && meet(&run, &boxes[i])) && !meet(&over, &boxes[i]),
                      "arrow %d through box %d", arrows, i);
    }
    cr_assert(arrows > 0);
}

CPU_TEST(tape_pictures, arrows_avoid_boxes)
{
    expression(w);
    char *text = picture(w, NULL);
    lies_well(text);
    for (int k = 0; k < rounds(60, 600); k++) {
        weft_clear(w);
        weft_tensor *x[64] = { weft_scalar(w, 1), weft_scalar(w, 2), weft_zeros(w, WEFT_SHAPE(2)) };
        int n = 3, entries = 1 + (int)dice(50);
        for (int i = 0; i < entries; i++, n++) {
            weft_tensor *some[5];
            for (int j = 0; j < 5; j++)
                some[j] = weft_reshape(x[dice((uint64_t)n)], WEFT_SHAPE(-1));
            x[n] = dice(4) ? weft_mul(x[dice((uint64_t)n)], x[dice((uint64_t)n)]) : weft_neg(x[n - 1]);
            if (dice(8) == 0)
                weft_concat(some, 1 + (int64_t)dice(5), 0);
        }
        OK(w);
        if (weft_plot_tape(path, NULL, w, x[n - 1]) != WEFT_OK)
            continue;                            /* too many boxes */
        text = text_of_file();
        well_formed(text);
        lies_well(text);
    }
}

/* ---- drawing changes nothing ---- */
typedef struct { weft_module *m; weft_rnn *rnn; } net;
static weft_tensor *loss_of(weft *w, const net *n)
{
    static const int32_t len[] = { 2, 3, 0 };
    static const weft_real x[10] = { 1, -1, 2, -2, 3, -3, 4, -4, 5, -5 };
    weft_tensor *in = weft_ragged(w, x, 2, &(weft_lengths){ .n = 3, .len = len });
    return weft_mean_all(weft_square(weft_rnn_run(n->rnn, in, WEFT_ZERO_STATE).y));
}

TABLE_TEST(tape_pictures, backward_after_drawing_has_the_same_bits)
{
    net n = { .m = weft_module_new(w, "net") };
    n.rnn = weft_lstm_new(n.m, "lstm", &(weft_rnn_opts){ .input = 2, .hidden = 3 });
    weft_tensor *dw = weft_grad(weft_find_parameter(n.m, "lstm.weight_hh_l0"));
    weft_real g[2][36];
    for (int k = 0; k < 2; k++) {
        weft_tensor *loss = loss_of(w, &n);
        weft_zero_grad(n.m);
        if (k)
            drawn(w, loss);
        weft_backward(loss);
        weft_read(dw, g[k], sizeof g[k]);
        OK(w);
        if (k)
            drawn(w, loss);                  /* also after the backward */
        weft_clear(w);
    }
    same_bits("dW", g[1], g[0], 36);
    char *text = text_of_file();
    well_formed(text);
    cr_assert(strstr(text, ">net.lstm.weight_ih_l0<") && strstr(text, ">layer=0<") &&
                  strstr(text, "net.lstm.weight_ih_l0 [12, 2]</title>"),
              "%s", text);
}

CPU_TEST(tape_pictures, have_the_same_bytes_in_every_locale)
{
    weft_tensor *g = expression(w);
    char *text[2];
    for (int k = 0; k < 2; k++) {
        if (k)
            comma_begin();
        text[k] = picture(w, g);
        comma_end();
    }
    cr_assert_str_eq(text[0], text[1]);
}

TABLE_TEST(tape_pictures, are_valid_graphviz)
{
    weft_tensor *g = expression(w);
    weft_tensor *p = weft_parameter(weft_module_new(w, "n\"et\\"), "\x01\xFFweight", WEFT_SHAPE(2),
                                    (weft_init){ WEFT_INIT_ZERO, 0, 0 });
    g = weft_mul(g, weft_sum_all(p));
    for (int k = 0; k < 2; k++) {
        strcpy(strrchr(path, '.'), k ? ".gv" : ".dot");
        drawn(w, g);
        char *text = text_of_file();
        cr_assert(!strncmp(text, "digraph tape {\n", 15) && !strcmp(text + strlen(text) - 2, "}\n"));
        cr_assert_eq(count(text, "[label="), 26 + 6);
        cr_assert_eq(count(text, " -> n"), 2 * 17 + 7 + 3);
        cr_assert(strstr(text, "\"%23 add\\n24.7 | 0\"") && strstr(text, "\"given0\\n-4 | 0\""), "%s",
                  text);
        cr_assert(strstr(text, "label=\"n\\\"et\\\\.\xEF\xBF\xBD\xEF\xBF\xBDweight\\n[2]\""), "%s", text);
        bool inside = false;                 /* a quoted text, which ends in its line */
        for (const char *at = text; *at; at += 1 + (*at == '\\')) {
            inside ^= *at == '"';
            cr_assert(!inside || *at != '\n');
        }
        unlink(path);
    }
}

/* ---- refused calls ---- */
CPU_TEST(tape_pictures, invalid_arguments_are_refused)
{
    weft *other = open_on(WEFT_CPU);
    weft_tensor *x = weft_scalar(w, 1), *stale = weft_neg(weft_scalar(w, 2));
    char *before = picture(w, stale);
#define UNDRAWN(of, status, part)                                                       \
    cr_assert(weft_plot_tape(path, "t", w, of) == (status) && strstr(weft_file_message(), part), "%s", \
              weft_file_message())
    UNDRAWN(x, WEFT_EARG, "weft_plot_tape: expected an operator's result on the tape");
    UNDRAWN(weft_neg(weft_scalar(other, 2)), WEFT_EARG, "is of another context");
    UNDRAWN(weft_argmax(weft_zeros(w, WEFT_SHAPE(2)), 0), WEFT_EARG, "expected a tensor of reals");
    weft_clear(w);
    UNDRAWN(NULL, WEFT_EARG, "the tape is empty");
    UNDRAWN(stale, WEFT_EARG, "is of a step that has ended");
    weft_tensor *y = weft_scalar(w, 1), *early = NULL;
    for (int i = 0; i < 100; i++, early = i == 50 ? y : early)
        y = weft_neg(y);
    UNDRAWN(y, WEFT_EARG, "101 operators and leaves; expected at most 100 as SVG; pass an earlier tensor, "
                          "which has fewer, or a path that ends in .dot");
    OK(w);
    char *after = text_of_file();
    cr_assert_str_eq(before, after);
    drawn(w, early);
    strcpy(strrchr(path, '.'), ".dot");
    drawn(w, y);
    unlink(path);
    cr_assert_eq(weft_plot_tape("/nowhere/a.svg", "t", w, early), WEFT_EIO);
    cr_assert_eq(weft_plot_tape("/nowhere/a.dot", "t", w, early), WEFT_EIO);
    cr_assert_eq(weft_plot_tape(path, "t", NULL, early), WEFT_EARG);
    OK(w);
    CLEAN(other);
    begin();
}

/* An error of the backward fails the context, and no file is written. Without gradients the tape is drawn. */
Test(tape_pictures, errors_of_backward_are_reported)
{
    weft *w = open_on(WEFT_CPU);
    weft_tensor *p = weft_parameter(weft_module_new(w, "m"), "p", WEFT_SHAPE(1),
                                    (weft_init){ WEFT_INIT_CONSTANT, 2, 0 });
    weft_tensor *y = weft_sum_all(weft_square(p));
    weft_assign(p, weft_full(w, 3, WEFT_SHAPE(1)));
    cr_assert_eq(weft_plot_tape(path, "t", w, y), WEFT_EARG);
    cr_assert(strstr(weft_file_message(), "weft_plot_tape: ") && strstr(weft_file_message(), "m.p"), "%s",
              weft_file_message());
    cr_assert(!weft_ok(w) && access(path, F_OK));
    char *text = drawn_text(weft_plot_tape(path, "a failed step, without its numbers", w, NULL));
    cr_assert(strstr(text, ">%0 square<") && strstr(text, ">[1]<") && !strstr(text, "= 2"));
    CLEAN_FAILED(w);
}
