/* test_pictures_text.c - a text coloured by a number a byte: as a picture, in a terminal, and where there are
 * no colours. */
#include <pty.h>
#include "tests/core/comma.h"
#include "pictures.h"

static const char words[] = "a (b\n\\ \xC3\xA9)\t&<\"c\x01";
enum { LETTERS = sizeof words - 1 };
static const double of_words[] = { 0, .5, 1, -1, -.5, .25, -.25, NAN, .75, INFINITY, .1, -.1, 2, -2, 0, .3 };

Test(pictures_text, text)
{
    begin();
    cr_assert_eq(COUNT(of_words), LETTERS);
    const weft_text_colours opts = { { -1, 0, 1, "c of unit 3" }, 12, WEFT_COLOURS_AUTO };
    DRAWN(weft_plot_text(path, "One unit over a text", words, LETTERS, of_words, &opts));
    golden("text.svg");
    char *text = text_of_file();
    cr_assert_eq(count(text, "<title>") - 1, LETTERS, "a cell a byte");
    cr_assert(strstr(text, ">\\n</text>") && strstr(text, ">\\\\</text>") && strstr(text, ">\\xc3</text>") &&
              strstr(text, ">&lt;</text>"));
    cr_assert_eq(count(text, "y=\"92.0\" width"), 5, "a line ends after its newline");
    free(text);
    DRAWN(weft_plot_text(path, NULL, NULL, 0, NULL, NULL));
    text = text_of_file();
    well_formed(text);
    free(text);
    unlink(path);
    REFUSED("weft_plot_text: -1 bytes", weft_plot_text(path, "t", words, -1, of_words, NULL));
    REFUSED("text is NULL", weft_plot_text(path, "t", NULL, 3, of_words, NULL));
    REFUSED("values is NULL", weft_plot_text(path, "t", words, 3, NULL, NULL));
    REFUSED("lines of 7 columns",
            weft_plot_text(path, "t", words, 3, of_words, &(weft_text_colours){ .columns = 7 }));
    REFUSED("colours is 9", weft_plot_text(path, "t", words, 3, of_words,
                                           &(weft_text_colours){ .colours = (weft_colours)9 }));
    static char many[100001];
    static double zeros[100001];
    REFUSED("100001 bytes", weft_plot_text(path, "t", many, 100001, zeros, NULL));
}

Test(pictures_text, every_byte_is_shown_within_the_columns)
{
    begin();
    static char bytes[256];
    static double zeros[256];
    for (int i = 0; i < 256; i++)
        bytes[i] = (char)i;
    for (int columns = 8; columns < 80; columns += 9) {
        DRAWN(weft_plot_text(path, "all", bytes, 256, zeros, &(weft_text_colours){ .columns = columns }));
        char *text = text_of_file(), *at;
        well_formed(text);
        cr_assert_eq(count(text, "<title>") - 1, 256);
        for (at = text; (at = strstr(at, "<rect x=\"")); at++) {
            double x, y, wide;
            cr_assert_eq(sscanf(at, "<rect x=\"%lf\" y=\"%lf\" width=\"%lf\"", &x, &y, &wide), 3);
            if (y > 80)
                cr_assert(x + wide <= 24 + 10 * columns, "columns %d: x %g, width %g", columns, x, wide);
        }
        free(text);
    }
    unlink(path);
}

static char *printed(const weft_text_colours *opts)      /* to be freed */
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    DRAWN(weft_print_text(to, words, LETTERS, of_words, opts));
    fclose(to);
    return text;
}

Test(pictures_text, text_without_colours)
{
    weft_text_colours opts = { { -1, 0, 1, "c" }, 12, WEFT_COLOURS_AUTO };
    static const char want[] = "+  59\n"
                               "  a (b\\n\n"
                               "-    95\n"
                               "+ 2  ?   7   ?\n"
                               "  \\\\ \\xc3\\xa9)\n"
                               "-   2\n"
                               "+ 1  9  3\n"
                               "  \\t&<\"c\\x01\n"
                               "-   1 9\n"
                               "+9 is 1, nothing 0, -9 -1: c\n";
    for (int k = 0; k < 3; k++) {
        if (k == 1)
            comma_begin();
        opts.colours = k == 2 ? WEFT_COLOURS_NEVER : WEFT_COLOURS_AUTO;
        char *text = printed(&opts);
        comma_end();
        cr_expect_str_eq(text, want, "%d: %s", k, text);
        free(text);
    }
}

Test(pictures_text, text_in_colours)
{
    const double values[] = { -1, -1, 0, .4, .9, NAN };
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    DRAWN(
        weft_print_text(to, "ab\ncd\xFF", 6, values,
                        &(weft_text_colours){ .scale = { -1, 0, 1, NULL }, .colours = WEFT_COLOURS_ALWAYS }));
    fclose(to);
    static const char want[] =
        "\033[48;5;19;38;5;231mab\033[0;0m\\n\033[0m\n"
        "\033[48;5;215;38;5;16mc\033[0;48;5;130;38;5;231md\033[0;0;7;9m\\xff\033[0m\n"
        "-1 \033[48;5;19;38;5;231m  \033[48;5;27;38;5;231m  \033[48;5;69;38;5;16m  \033[48;5;111;38;5;16m  "
        "\033[48;5;153;38;5;16m  \033[0m 0 \033[48;5;223;38;5;16m  \033[48;5;215;38;5;16m  "
        "\033[48;5;208;38;5;16m  \033[48;5;166;38;5;16m  \033[48;5;130;38;5;231m  \033[0m 1\n";
    cr_assert_str_eq(text, want, "%s", text);
    free(text);
}

/* Whether a terminal gets colours. */
static bool terminal_gets_colours(const char *term, const char *no_color)
{
    int master, slave;
    char said[4096] = "";
    term ? setenv("TERM", term, 1) : unsetenv("TERM");
    no_color ? setenv("NO_COLOR", no_color, 1) : unsetenv("NO_COLOR");
    cr_assert_eq(openpty(&master, &slave, NULL, NULL, NULL), 0);
    FILE *to = fdopen(slave, "w");
    DRAWN(weft_print_text(to, "ab", 2, (double[]){ 1, -1 }, NULL));
    fclose(to);
    for (ssize_t at = 0, n; (n = read(master, said + at, sizeof said - 1 - (size_t)at)) > 0; )
        at += n;
    cr_assert(strchr(said, 'a') && strchr(said, 'b'), "%s", said);
    close(master);
    return strchr(said, '\033');
}

Test(pictures_text, colours_are_for_terminals_that_want_them)
{
    cr_assert(terminal_gets_colours("xterm-256color", NULL));
    cr_assert(terminal_gets_colours("xterm-256color", ""), "an empty NO_COLOR is none");
    cr_assert(!terminal_gets_colours("xterm-256color", "1"));
    cr_assert(!terminal_gets_colours("dumb", NULL));
    cr_assert(!terminal_gets_colours(NULL, NULL));
}

Test(pictures_text, print_text_refuses)
{
    begin();
    REFUSED("file is NULL", weft_print_text(NULL, "a", 1, of_words, NULL));
    REFUSED("weft_print_text: 2 bytes", weft_print_text(stderr, NULL, 2, of_words, NULL));
    FILE *full = fopen("/dev/full", "w");
    cr_assert_not_null(full);
    cr_assert_eq(weft_print_text(full, "a", 1, of_words, NULL), WEFT_EIO);
    cr_assert(strstr(weft_file_message(), "No space left"), "%s", weft_file_message());
    fclose(full);
}
