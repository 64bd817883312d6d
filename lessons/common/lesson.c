/* lesson.c - the program of a lesson: NN serve [remember]. It reads requests, one per line:
 *   check|both|show|draw FILL SECONDS FOLDER
 * FOLDER/answer.so is the compiled answer. Each request gets its own processes, which write the answer's
 * own output to FOLDER/said, the lesson's numbers to FOLDER/shown, a picture to FOLDER/in/picture.svg, and
 * the verdict and "end" to the pipe FOLDER/reply. Memory that the answer allocates holds bytes of FILL. */
#define _GNU_SOURCE
#include "common/lesson.h"
#include "common/answer.h"
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Printed forms of the patterns in uninitialised memory, see lesson.sh and answer_paint. */
static const char *const patterns[] = { "never written", "2122219134", "-16843010" };
enum { PATTERNS = sizeof patterns / sizeof *patterns, MOST_NUMBERS = 1024 };

static const char *const *mistake_names, *const *mistake_hints;
static int mistakes;

void lesson_mistakes(int n, const char *const *names, const char *const *hints)
{
    mistakes = n, mistake_names = names, mistake_hints = hints;
}

/* Returns a mistake's name, or what all hints of this place have in common. */
static const char *name_of(const char *format, const char *text)
{
    for (int m = 1; m < mistakes; m++)
        if (mistake_hints[m] && *mistake_hints[m] && strstr(text, mistake_hints[m]))
            return mistake_names[m];
    return strcmp(format, "%s") ? format : text;
}

_Noreturn void hint(const char *format, ...)
{
    char text[512];
    va_list list;
    va_start(list, format);
    const char *also = "";
    int n = snprintf(text, sizeof text, "hint: ");
    vsnprintf(text + n, sizeof text - (size_t)n, format, list);
    va_end(list);
    answer_name(name_of(format, text));
    if (answer_keeps())
        also = "; a static or global variable keeps a value from one call to the next: do results "
               "depend on earlier calls?";
    for (int k = 0; k < PATTERNS; k++)
        if (strstr(text, patterns[k]))
            also = "; this number is in memory that was never written";
    n = (int)strlen(text);
    snprintf(text + n, sizeof text - (size_t)n, "%s", also);
    answer_verdict(text);
}

bool is_near(double got, double want, double tolerance)
{
    return isinf(want) ? got == want : fabs(got - want) <= tolerance * (1 + fabs(want));
}

bool is(double got, double want) { return is_near(got, want, 1e-12); }

int first_off(const double *got, const double *want, int n, double tolerance)
{
    int i = 0;
    while (i < n && is_near(got[i], want[i], tolerance))
        i++;
    return i;
}

bool near(const double *got, const double *want, int n, double tolerance)
{
    return first_off(got, want, n, tolerance) >= n;
}

bool all_zero(const double *x, int n)
{
    while (n > 0 && x[n - 1] == 0)
        n--;
    return n == 0;
}

void hint_of_known(const char *function, double got, double want, const known_mistake *list, int n)
{
    char text[400];
    snprintf(text, sizeof text, "%s is", function);
    hint_of_float(text, &got, &want, 1);
    for (int k = 0; k < n; k++)
        if (is(got, list[k].gives)) {
            snprintf(text, sizeof text, "%s %s", function, list[k].hint);
            hint("%s", text);
        }
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
    int exact = 0;
    for (int k = 0; k < n; k++)
        if (got[k] == 0 && fabs(want[k]) > 1e-30)
            return; /* a float would not be 0 */
        else
            exact += is(got[k], want[k]);
    if (2 * exact < n && near(got, want, n, 1e-5)) /* a float rounds most numbers */
        hint("%s right to about six digits, not to twelve: use double instead of float", what);
}

void old_values(double *x, int n, bool nan)
{
    for (int k = 0; k < n; k++)
        x[k] = nan ? NAN : 7;
}

bool same_ints(const int *a, const int *b, int n)
{
    return n <= 0 || !memcmp(a, b, (size_t)n * sizeof *a);
}

double dot(const double *a, const double *b, int n)
{
    double sum = 0;
    for (int k = 0; k < n; k++)
        sum += a[k] * b[k];
    return sum;
}

int sum_of(int n, const int *x)
{
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

int largest_of(int n, const int *x)
{
    int largest = 0;
    for (int i = 0; i < n; i++)
        largest = x[i] > largest ? x[i] : largest;
    return largest;
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
    return isnan(x) ? "nan" : isinf(x) ? (x < 0 ? "-INFINITY" : "INFINITY") : to;
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
void *__wrap_realloc(void *p, size_t bytes), *__wrap_aligned_alloc(size_t alignment, size_t bytes);
static int fill = 255; /* 255: NaN as a double, -1 as an int */
enum { MOST_FILLED = 100000000 };

static void *given(void *p, bool wanted)
{
    if (!p && wanted)
        answer_verdict("it needs too much memory");
    return p;
}

static void *filled(void *p, size_t from, size_t bytes)
{
    given(p, bytes);
    call_allocates();
    if (p && bytes > from)
        memset((char *)p + from, fill, bytes - from < MOST_FILLED ? bytes - from : MOST_FILLED);
    return p;
}

void *__wrap_malloc(size_t bytes) { return filled(malloc(bytes), 0, bytes); }
void *__wrap_calloc(size_t n, size_t bytes) { return given(calloc(n, bytes), n && bytes); }
void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return filled(aligned_alloc(alignment, bytes), 0, bytes);
}
void *__wrap_realloc(void *p, size_t bytes)
{
    size_t before = p ? malloc_usable_size(p) : 0;
    return filled(realloc(p, bytes), before, bytes);
}

/* ---- the program ---- */
/* Checks with spare memory first, because a wrong index then leads to a hint, not to a crash. */
static void check_twice(void)
{
    check();
    answer_exact(true);
    check();
}

static _Noreturn void work(answer_job job, int answer, int seconds)
{
    answer_start(job, answer, "../said", seconds);
    if (job == ANSWER_CHECKED)
        check_twice();
    else if (answer_here() && job == ANSWER_SHOWN)
        show();
    else if (answer_here() && draw("picture.svg"))
        printf("%s\n", weft_file_message());
    answer_finish();
}

static char *name_in_list; /* of processes */

/* Works in another process. Returns whether the verdict is "right". */
static bool worked(answer_job job, int answer, int seconds)
{
    static const char names[][6] = { "check", "show", "draw" };
    int status = 1;
    memcpy(name_in_list, names[job], sizeof "serve");
    pid_t grader = fork();
    if (grader == 0)
        work(job, answer, seconds);
    waitpid(grader, &status, 0);
    return status == 0;
}

static void become(int descriptor, const char *path, int how)
{
    int file = open(path, how | O_CLOEXEC, 0600);
    if (file < 0)
        _exit(3);
    dup2(file, descriptor), close(file);
}

/* Serves one request. `both` is the second check, and then the lesson's program, which may take longer.
 * Standard input is no longer the requests, so an answer cannot read or send any; and while an answer
 * runs, its file has no name in any folder. */
static void serve_one(const char *line)
{
    char what[8];
    int seconds, at = 0;
    if (sscanf(line, "%7s %d %d %n", what, &fill, &seconds, &at) != 3 || chdir(line + at) || chdir("in"))
        _exit(3);
    become(STDIN_FILENO, "/dev/null", O_RDONLY), become(STDERR_FILENO, "../reply", O_WRONLY);
    become(STDOUT_FILENO, "../shown", O_WRONLY | O_CREAT | O_TRUNC);
    int answer = open("../answer.so", O_RDONLY);
    unlink("../answer.so");
    bool shows = !strcmp(what, "show"), draws = !strcmp(what, "draw");
    if (draws)
        worked(ANSWER_DRAWN, answer, 3 * seconds);
    else if (shows || (worked(ANSWER_CHECKED, answer, seconds) && !strcmp(what, "both")))
        worked(ANSWER_SHOWN, answer, 3 * seconds);
    dprintf(STDERR_FILENO, "end\n");
}

int main(int argc, char **argv)
{
    char line[4200];
    if (argc < 2 || strcmp(argv[1], "serve")) {
        fprintf(stderr, "usage: %s serve [remember]\n", argv[0]);
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL), name_in_list = argv[1];
    if (argc > 2 && remember)
        remember();
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        while (waitpid(-1, NULL, WNOHANG) > 0) {
        }
        if (fork() == 0) {
            serve_one(line);
            _exit(0);
        }
    }
}
