/* run.c - runs tests one after the other, each in its own process: test_ROOM [-SUITE/NAME]
 * [SUITE | SUITE/NAME]... Those after a - are left out. */
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/cross/criterion/criterion.h"

enum { SKIPPED = 77, LIMIT = 900 };
cr_test *cr_tests;
static bool failed;

void cr_failed(bool ends, const char *file, int line, const char *what, ...)
{
    va_list list;
    va_start(list, what);
    const char *format = va_arg(list, const char *);
    fprintf(stderr, "%s:%d: %s ", file, line, what);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    va_end(list);
    failed = true;
    if (ends)
        _exit(1);
}
_Noreturn void cr_skip(void) { _exit(SKIPPED); }

static bool is_asked(const cr_test *t, int n, char **arg)
{
    char name[256];
    snprintf(name, sizeof name, "%s/%s", t->suite, t->name);
    bool asked = n < 2;
    for (int i = 1; i < n; i++) {
        if (*arg[i] == '-' && !strcmp(arg[i] + 1, name))
            return false;
        asked = asked || !strcmp(arg[i], t->suite) || !strcmp(arg[i], name);
    }
    return asked;
}

static const cr_test *suite_of(const cr_test *t)
{
    const cr_test *s = cr_tests;
    while (s && (s->body || strcmp(s->suite, t->suite)))
        s = s->next;
    return s ? s : t;
}

/* Returns the status of the test's process. */
static int run(const cr_test *t)
{
    int status;
    const cr_test *s = suite_of(t);
    void (*init)(void) = t->init ? t->init : s->init, (*fini)(void) = t->fini ? t->fini : s->fini;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(LIMIT);
        if (init)
            init();
        t->body();
        if (fini)
            fini();
        fflush(NULL);
        _exit(failed);
    }
    return child < 0 || waitpid(child, &status, 0) != child ? -1 : status;
}

int main(int n, char **arg)
{
    int good = 0, bad = 0, skipped = 0;
    for (const cr_test *t = cr_tests; t; t = t->next) {
        if (!t->body || t->disabled || !is_asked(t, n, arg))
            continue;
        int status = run(t);
        bool expected = t->signal ? WIFSIGNALED(status) && WTERMSIG(status) == t->signal :
                                    WIFEXITED(status) && WEXITSTATUS(status) == t->exit_code;
        bool skips = WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED;
        good += expected && !skips, skipped += skips, bad += !expected && !skips;
        if (!expected && !skips)
            fprintf(stderr, "FAILED %s/%s (status %x)\n", t->suite, t->name, (unsigned)status);
    }
    printf("%d passed, %d failed, %d skipped\n", good, bad, skipped);
    return bad != 0 || good + skipped == 0;
}
