/* test_placement.c - rows for a batch in the user's order: those of first fit, looked for row by row. */
#include "plans.h"

enum { MOST = 80, LONGEST = 30 };

static int64_t plainly(const int32_t *len, int64_t n, int64_t width, int32_t *row, int32_t *column)
{
    int64_t fill[MOST] = { 0 }, rows = 0;
    for (int64_t s = 0; s < n; s++) {
        int64_t r = 0;
        row[s] = column[s] = 0;
        if (!len[s])
            continue;
        while (fill[r] + len[s] > width)
            r++;
        row[s] = (int32_t)r, column[s] = (int32_t)fill[r], fill[r] += len[s];
        rows = r + 1 > rows ? r + 1 : rows;
    }
    return rows ? rows : n > 0;
}

Test(placement, is_that_of_first_fit)
{
    int32_t len[MOST], row[2][MOST], column[2][MOST];
    dice_seed(5);
    for (int round = 0; round < rounds(2000, 20000); round++) {
        int64_t n = any_lengths(len, MOST, LONGEST), width = LONGEST + (int64_t)dice(40), rows = -1;
        PLANS(weft_first_fit(&(weft_lengths){ .n = n, .len = len }, width, row[0], column[0], &rows));
        cr_assert_eq(rows, plainly(len, n, width, row[1], column[1]));
        cr_assert(!n || (!memcmp(row[0], row[1], (size_t)n * sizeof **row) &&
                         !memcmp(column[0], column[1], (size_t)n * sizeof **row)));
    }
}

Test(placement, of_nothing_and_of_what_does_not_fit)
{
    int32_t row[2] = { 7, 7 }, column[2] = { 7, 7 };
    int64_t rows = -1;
    weft_lengths l = { .n = 2, .len = (int32_t[]){ 0, 0 } };
    PLANS(weft_first_fit(&l, 0, row, column, &rows));
    cr_assert(rows == 1 && !row[0] && !row[1] && !column[0] && !column[1]);
    l.n = 0;
    PLANS(weft_first_fit(&l, 5, NULL, NULL, &rows));
    cr_assert_eq(rows, 0);
    l = (weft_lengths){ .n = 2, .len = (int32_t[]){ 1, 6 } };
    REFUSED(weft_first_fit(&l, 5, row, column, &rows), WEFT_EARG, "sequence 1");
    l = (weft_lengths){ .n = 1, .len = (int32_t[]){ 1 } };
    REFUSED(weft_first_fit(&l, 0, row, column, &rows), WEFT_EARG, "rows of width 0");
}
