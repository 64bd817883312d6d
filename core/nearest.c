/* nearest.c - suggests the name nearest to a misspelt word, by Levenshtein distance (1966). */
#include "core/nearest.h"
#include <string.h>

enum { WORD = 64 };

static int least(int a, int b, int c)
{
    int smaller = a < b ? a : b;
    return smaller < c ? smaller : c;
}

/* Returns the distance, or WORD if a string is longer than WORD. Keeps one row of the usual table. */
static int edits(const char *a, const char *b)
{
    size_t na = strlen(a), nb = strlen(b);
    int row[WORD + 1];
    if (na > WORD || nb > WORD)
        return WORD;
    for (size_t j = 0; j <= nb; j++)
        row[j] = (int)j;
    for (size_t i = 1; i <= na; i++) {
        int corner = row[0]++;
        for (size_t j = 1; j <= nb; j++) {
            int above = row[j];
            row[j] = least(above + 1, row[j - 1] + 1, corner + (a[i - 1] != b[j - 1]));
            corner = above;
        }
    }
    return row[nb];
}

const char *weft__nearest(const char *word, const char *(*name)(int i, const void *user), const void *user)
{
    const char *best = NULL;
    size_t half = strlen(word) / 2;
    int fewest = half < WORD ? (int)half + 1 : WORD + 1;
    for (int i = 0; name(i, user); i++) {
        int n = edits(word, name(i, user));
        if (n < fewest) {
            fewest = n;
            best = name(i, user);
        }
    }
    return best;
}
