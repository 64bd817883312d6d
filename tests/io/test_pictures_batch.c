/* test_pictures_batch.c - tests pictures of a batch in its layouts: one cell for each token and each piece of
 * padding, with the values of the tokens, and refused calls. */
#include "pictures.h"

TestSuite(pictures_batch, .init = begin, .fini = remove_picture);

Test(pictures_batch, matches_the_readme)              /* docs/batch.svg, to the byte */
{
    static const char words[] = "bartlesoncorroboratesfirebombedindovinamausolfplanedshibbolethvaclav";
    static const int32_t len[] = { 9, 12, 10, 8, 7, 6, 10, 6 };
    char letters[sizeof words][2];
    const char *labels[sizeof words];
    for (size_t i = 0; words[i]; i++) {
        letters[i][0] = words[i];
        letters[i][1] = 0;
        labels[i] = letters[i];
    }
    const weft_lengths lengths = { .n = COUNT(len), .len = len };
    DRAWN(weft_plot_batch(path, "A batch: padded, packed, concatenated", &lengths, labels, NULL, NULL, NULL));
    golden("../../../docs/batch.svg");
}

Test(pictures_batch, shows_values_of_tokens)
{
    static const char *const labels[] = { "the", "cat", NULL, "a", "<b>", nasty };
    const int32_t len[] = { 3, 0, 1, 2 }, row[] = { 1, -7, 0, 0 }, column[] = { 1, 99, 3, 0 };
    const double values[] = { .5, -.25, NAN, 1, -1e-9, .125 };
    const weft_lengths lengths = { .n = 4, .len = len };
    DRAWN(weft_plot_batch(path, "What reaches each token", &lengths, labels, values,
                          &(weft_colour_scale){ .label = "dL/dx" }, NULL));
    golden("batch_values.svg");
    char *text = drawn_text(weft_plot_batch(path, "by hand", &lengths, NULL, values, NULL,
                                      &(weft_placement){ 2, 4, row, column }));
    cr_assert(strstr(text, "rows: 2 x 4 = 8 cells, 2 of them pads (25 %)"));
    cr_assert_eq(count(text, "class=\"pad\""), 6 + 2);
}

Test(pictures_batch, each_token_and_pad_has_a_cell)
{
    static const char *labels[20 * 12];
    static double values[240];
    for (int i = 0; i < COUNT(labels); i++) {
        labels[i] = i % 7 ? (i % 5 ? "x" : nasty) : NULL;
        values[i] = i + 1;
    }
    for (int k = 0; k < rounds(100, 1000); k++) {
        int32_t len[20], row[20], column[20];
        weft_lengths l = { .n = (int64_t)dice(20), .len = len };
        int64_t tokens = dice_lengths(len, l.n, 12), longest = 0, rows = 0;
        bool valued = dice(2);
        for (int64_t i = 0; i < l.n; i++)
            longest = len[i] > longest ? len[i] : longest;
        char *text = drawn_text(weft_plot_batch(path, "batch", &l, dice(2) && !valued ? labels : NULL,
                                                valued ? values : NULL, NULL, NULL)),
             want[80];
        if (valued && longest)
            cr_assert_eq(weft_first_fit(&l, longest, row, column, &rows), WEFT_OK);
        int64_t pads = l.n * longest - tokens + (rows ? rows * longest - tokens : 0);
        cr_assert_eq(count(text, "class=\"pad\""), pads);
        /* two grids, two strips; the pattern, the ground */
        if (!valued)
            cr_assert_eq(count(text, "<rect") - pads - 3, 4 * tokens);
        int at = 0;
        for (int64_t i = 0; i < l.n && valued; i++)
            for (int t = 0; t < len[i]; t++) {
                snprintf(want, sizeof want, "<title>sequence %d, token %d: %d</title>", (int)i, t, ++at);
                cr_assert_eq(count(text, want), 5, "%s", want);
            }
    }
}

Test(pictures_batch, large_batches_are_drawn_up_to_the_limit)
{
    enum { N = 2000 };
    static int32_t len[N];
    for (int i = 0; i < N; i++)
        len[i] = (int32_t)dice(50);
    DRAWN(weft_plot_batch(path, "many", &(weft_lengths){ .n = N, .len = len }, NULL, NULL, NULL, NULL));
    len[0] = 49000;
    DRAWN(weft_plot_batch(path, "one long", &(weft_lengths){ .n = 2, .len = len }, NULL, NULL, NULL, NULL));
    unlink(path);
    REFUSED("at most 100000 cells",
            weft_plot_batch(path, "t", &(weft_lengths){ .n = N, .len = len }, NULL, NULL, NULL, NULL));
}

Test(pictures_batch, invalid_batches_are_refused)
{
    const int32_t len[] = { 2, 3 }, first[] = { 0, 0 }, after[] = { 0, 2 }, negative[] = { -1, 2 },
                  late[] = { 0, 3 };
    const double values[] = { 1, 2, 3, 4, 5 };
    const weft_lengths l = { .n = 2, .len = len };
    static const struct {
        weft_placement at;
        int row, column;                         /* which of the arrays */
        const char *part;
    } bad[] = {
        { { 1, 5, NULL, NULL }, 0, 0, "sequence 1 has 3 tokens, in row 0 from column 0 on" },
        { { 1, 5, NULL, NULL }, 0, 3, "sequence 1 has 3 tokens, in row 0 from column 3 on" },
        { { 1, 5, NULL, NULL }, 0, 2, "from column -1 on" },
        { { 1, 5, NULL, NULL }, 2, 1, "in row -1" },
        { { 2, 5, NULL, NULL }, 1, 0, "in row 2" },
        { { 1, 5, NULL, NULL }, -1, 1, "weft_plot_batch: a placement of 1 rows" },
        { { INT64_MAX, INT64_MAX, NULL, NULL }, 0, 1, "at most 100000 cells" },
        { { -1, 5, NULL, NULL }, 0, 1, "a placement of -1 rows" },
    };
    const int32_t *const arrays[] = { first, after, negative, late };
    REFUSED("weft_plot_batch: lengths is NULL", weft_plot_batch(path, "t", NULL, NULL, values, NULL, NULL));
    REFUSED("weft_plot_batch: lengths are negative",
            weft_plot_batch(path, "t", &(weft_lengths){ .n = 1, .len = negative }, NULL, NULL, NULL, NULL));
    REFUSED("a scale from",
            weft_plot_batch(path, "t", &l, NULL, values, &(weft_colour_scale){ 2, 0, 1, NULL }, NULL));
    for (int i = 0; i < COUNT(bad); i++) {
        weft_placement at = bad[i].at;
        at.row = bad[i].row < 0 ? NULL : arrays[bad[i].row];
        at.column = arrays[bad[i].column];
        REFUSED(bad[i].part, weft_plot_batch(path, "t", &l, NULL, values, NULL, &at));
    }
    DRAWN(weft_plot_batch(path, "t", &l, NULL, values, NULL, &(weft_placement){ 1, 5, first, after }));
}
