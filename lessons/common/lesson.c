/* lesson.c - the program of a lesson: NN show, NN check [KEY], NN draw FILE. What the check says begins with
 * KEY, which the student's code does not know: so nothing else is taken for it, nor an end before it. */
#include "common/lesson.h"
#include <stdarg.h>
#include <unistd.h>

static char key[64];

_Noreturn void hint(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    printf("%shint: ", key);
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
    printf("%sweft says: %s\n", key, weft_error_message(w));
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

/* ---- what answers may not do ---- */
static _Noreturn void refuse(const char *what)
{
    char line[160];
    fflush(stdout);
    int n = snprintf(line, sizeof line, "\n%srefused: %s\n", key, what);
    _exit(write(STDOUT_FILENO, line, (size_t)n) == n ? 1 : 2);
}

/* By the linker's --wrap: of the program's own objects. */
void *__real_malloc(size_t bytes), *__wrap_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes), *__wrap_calloc(size_t n, size_t bytes);
void *__real_realloc(void *p, size_t bytes), *__wrap_realloc(void *p, size_t bytes);
int __wrap_fork(void), __wrap_vfork(void), __wrap_system(const char *command);
FILE *__wrap_popen(const char *command, const char *mode);

static void *given(void *p, bool wanted)
{
    if (!p && wanted)
        refuse("it asks for more memory than there is");
    return p;
}

void *__wrap_malloc(size_t bytes)            { return given(__real_malloc(bytes), bytes); }
void *__wrap_calloc(size_t n, size_t bytes)  { return given(__real_calloc(n, bytes), n && bytes); }
void *__wrap_realloc(void *p, size_t bytes)  { return given(__real_realloc(p, bytes), bytes); }

int   __wrap_fork(void)                      { refuse("it starts another process"); }
int   __wrap_vfork(void)                     { refuse("it starts another process"); }
int   __wrap_system(const char *command)
{
    refuse(command ? "it starts another process" : "it looks for a shell");
}
FILE *__wrap_popen(const char *command, const char *mode)
{
    (void)command, (void)mode;
    refuse("it starts another process");
}

/* ---- the program ---- */
static void take_key(char *argument)             /* and nobody finds it there any more */
{
    snprintf(key, sizeof key, "%s ", argument);
    memset(argument, 'x', strlen(argument));
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "show") && argc == 2)
        return show(), 0;
    if (!strcmp(what, "check") && argc <= 3) {
        if (argc == 3)
            take_key(argv[2]);
        check();
        printf("%sright\n", key);
        return 0;
    }
    if (!strcmp(what, "draw") && argc == 3)
        return draw(argv[2]), 0;
    fprintf(stderr, "usage: %s show | check [KEY] | draw FILE.svg\n", argv[0]);
    return 2;
}
