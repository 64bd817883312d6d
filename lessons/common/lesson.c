/* lesson.c - the program of a lesson: NN check|show ANSWER.so PRINTS, NN draw ANSWER.so PRINTS FILE.svg.
 * ANSWER.so is the compiled answer. PRINTS gets the answer's own output. The last line on standard
 * error is the verdict. */
#include "common/lesson.h"
#include "common/answer.h"
#include <stdarg.h>
#include <unistd.h>

/* Printed forms of the patterns in uninitialised memory, see lesson.sh and answer_paint. */
static const char *const patterns[] = { "never written", "2122219134", "-16843010" };
enum { PATTERNS = sizeof patterns / sizeof *patterns, MOST_NUMBERS = 1024 };

_Noreturn void hint(const char *format, ...)
{
    char text[512];
    va_list list;
    va_start(list, format);
    int n = snprintf(text, sizeof text, "hint: ");
    vsnprintf(text + n, sizeof text - (size_t)n, format, list);
    va_end(list);
    for (int k = 0; k < PATTERNS; k++)
        if (strstr(text, patterns[k])) {
            n = (int)strlen(text);
            snprintf(text + n, sizeof text - (size_t)n,
                     "; this number is in memory that was never written");
            break;
        }
    answer_verdict(text);
}

bool near(const double *got, const double *want, int n, double tolerance)
{
    for (int i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) <= tolerance * (1 + fabs(want[i]))))
            return false;
    return true;
}

bool is(double got, double want) { return near(&got, &want, 1, 1e-12); }

int first_off(const double *got, const double *want, int n, double tolerance)
{
    int i = 0;
    while (i < n && near(got + i, want + i, 1, tolerance))
        i++;
    return i;
}

bool all_zero(const double *x, int n)
{
    while (n > 0 && x[n - 1] == 0)
        n--;
    return n == 0;
}

void hint_of_known(double got, const known_mistake *list, int n)
{
    for (int k = 0; k < n; k++)
        if (is(got, list[k].gives))
            hint("%s", list[k].hint);
}

void hint_of_mistakes(const double *got, int n, double tolerance, const char *const *hints, int first,
                      int last, void (*make)(int mistake, double *wrong))
{
    static double wrong[MOST_NUMBERS];
    for (int m = first; m <= last; m++) {
        make(m, wrong);
        if (near(got, wrong, n, tolerance))
            hint("%s", hints[m]);
    }
}

void hint_of_float(const char *what, const double *got, const double *want, int n)
{
    if (!near(got, want, n, 1e-12) && near(got, want, n, 1e-5))
        hint("%s right to about six digits, not to twelve: use double instead of float", what);
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
    char text[512];
    snprintf(text, sizeof text, "weft reports: %s", weft_error_message(w));
    answer_verdict(text);
}

void lesson_close(weft *w)
{
    lesson_ok(w);
    weft_close(w);
}

static const char *formatted(double x, int n)
{
    static char text[8][32];
    static int turn;
    char *to = text[turn++ % 8];
    snprintf(to, sizeof text[0], fabs(x) > 1e290 ? "never written" : "%.*g", n, x);
    return isnan(x) ? "nan" : to;
}

const char *digits(double x) { return formatted(fabs(x) < 1e-12 ? 0 : x, 4); }

const char *digits_unlike(double x, double y)
{
    char one[32] = "", other[32] = "";
    int n = 3;
    while (n < 17 && !strcmp(one, other)) {
        n++;
        snprintf(one, sizeof one, "%.*g", n, x);
        snprintf(other, sizeof other, "%.*g", n, y);
    }
    return formatted(x, n);
}

/* ---- the answer's memory, filled and limited, through the linker's --wrap ---- */
void *__wrap_malloc(size_t bytes), *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *p, size_t bytes);

static void *given(void *p, bool wanted)
{
    if (!p && wanted)
        answer_verdict("it needs too much memory");
    return p;
}

/* Fills memory, unless the address sanitizer does. Bytes of 255 are NaN as a double, -1 as an int. */
void *__asan_get_report_address(void) __attribute__((weak));
void *__wrap_malloc(size_t bytes)
{
    void *p = given(malloc(bytes), bytes);
    return p && !__asan_get_report_address ? memset(p, 255, bytes) : p;
}
void *__wrap_calloc(size_t n, size_t bytes) { return given(calloc(n, bytes), n && bytes); }
void *__wrap_realloc(void *p, size_t bytes) { return given(realloc(p, bytes), bytes); }

/* ---- the program ---- */
/* Checks with spare memory first, because a wrong index then leads to a hint, not to a crash. */
static void check_twice(void)
{
    check();
    answer_exact(true);
    check();
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    bool draws = !strcmp(what, "draw"), checks = !strcmp(what, "check");
    if (argc != 4 + draws || (!draws && !checks && strcmp(what, "show"))) {
        fprintf(stderr, "usage: %s check|show|draw ANSWER.so PRINTS [FILE.svg]\n", argv[0]);
        return 2;
    }
    if (!fence_exists())
        fprintf(stderr, "note: this system has no seccomp: an answer can open files and start processes\n");
    answer_start(draws ? ANSWER_DRAWN : checks ? ANSWER_CHECKED : ANSWER_SHOWN, argv[2], argv[3]);
    if (checks)
        check_twice();
    else if (answer_here() && draws)
        draw(argv[4]);
    else if (answer_here())
        show();
    answer_finish();
}
