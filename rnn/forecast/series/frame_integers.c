/* frame_integers.c - columns of integers that a double does not hold: their numbers are less an origin, one
 * of these integers. */
#include <math.h>
#include "rnn/forecast/series/frame.h"

bool weft__frame_integer(const weft_frame *f, int64_t c, int64_t row, int64_t *integer)
{
    double v = f->column[c][row];
    return v == trunc(v) && fabs(v) < 0x1p63 &&
           !__builtin_add_overflow((int64_t)v, f->origin[c], integer);
}

const char *weft__frame_number(const weft_frame *f, int64_t c, int64_t row, char text[64])
{
    int64_t integer;
    if (!f->origin[c])
        snprintf(text, 64, "%.17g", f->column[c][row]);
    else if (weft__frame_integer(f, c, row, &integer))
        snprintf(text, 64, "%lld", (long long)integer);
    else
        snprintf(text, 64, "%lld + %.17g", (long long)f->origin[c], f->column[c][row]);
    return text;
}

weft_status weft__frame_integers(const char *where, const weft_frame *f, bool gaps)
{
    char text[64];
    int64_t integer;
    for (int64_t c = 0; c < f->columns; c++)
        for (int64_t r = 0; f->origin[c] && r < f->rows; r++)
            if (!weft__frame_integer(f, c, r, &integer) && !(gaps && isnan(f->column[c][r])))
                return weft__file_fail(WEFT_EARG,
                                       "%s: column \"%.100s\", row %lld of all: %s; its origin is not 0, so "
                                       "integers are expected",
                                       where, f->name[c], (long long)r, weft__frame_number(f, c, r, text));
    return WEFT_OK;
}
