/* lesson.c - the program of a lesson: NN show, NN check, NN draw FILE. */
#include "common/lesson.h"
#include <stdarg.h>

_Noreturn void hint(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    printf("hint: ");
    vprintf(format, list);
    printf("\n");
    va_end(list);
    exit(1);
}

bool near(const double *got, const double *want, int n, double tolerance)
{
    for (int i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) <= tolerance * (1 + fabs(want[i]))))
            return false;
    return true;
}

/* ---- random numbers: Marsaglia's xorshift, 2003 ---- */
static unsigned state = 1;

void dice_seed(unsigned seed) { state = seed * 2654435769u + 1; }

static unsigned next(void)
{
    state ^= state << 13, state ^= state >> 17, state ^= state << 5;
    return state;
}

double dice(void)            { return next() / 2147483648.0 - 1; }
int    dice_below(int n)     { return (int)(next() % (unsigned)n); }
void   dice_fill(double *x, int n)
{
    for (int i = 0; i < n; i++)
        x[i] = dice();
}

/* ---- weft ---- */
weft *lesson_open(unsigned seed)
{
    weft *w = weft_open(&(weft_opts){ .seed = seed, .threads = 1, .device = WEFT_CPU });
    lesson_ok(w);
    return w;
}

void lesson_ok(weft *w)
{
    if (weft_ok(w))
        return;
    printf("weft says: %s\n", weft_error_message(w));
    exit(1);
}

void lesson_close(weft *w)
{
    lesson_ok(w);
    weft_close(w);
}

const char *digits(double x)
{
    static char text[8][32];
    static int turn;
    char *to = text[turn++ % 8];
    snprintf(to, sizeof text[0], "%.4g", fabs(x) < 1e-12 ? 0 : x);
    return to;
}

/* ---- the program ---- */
int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "show") && argc == 2)
        return show(), 0;
    if (!strcmp(what, "check") && argc == 2)
        return check(), puts("right"), 0;
    if (!strcmp(what, "draw") && argc == 3)
        return draw(argv[2]), 0;
    fprintf(stderr, "usage: %s show | check | draw FILE.svg\n", argv[0]);
    return 2;
}
