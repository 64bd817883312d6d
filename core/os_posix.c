/* os_posix.c - what Linux and macOS share, except files; see os.h. */
#include "core/os.h"
#include <dlfcn.h>
#include <fnmatch.h>
#include <locale.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif

int64_t weft__now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void weft__yield(void)         { sched_yield(); }
int weft__process(void)        { return (int)getpid(); }
int weft__parent_process(void) { return (int)getppid(); }

void weft__host_name(char *name, size_t size)
{
    if (gethostname(name, size))
        *name = 0;
    name[size - 1] = 0;
}

bool weft__same_letters(const char *a, const char *b) { return !strcasecmp(a, b); }
bool weft__matches(const char *pattern, const char *text) { return fnmatch(pattern, text, 0) == 0; }

bool weft__start_thread(pthread_t *thread, void *(*function)(void *), void *argument)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* a thread inherits the mask */
    int error = pthread_create(thread, NULL, function, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return !error;
}

bool weft__has_memory(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p != MAP_FAILED)
        munmap(p, bytes);
    return p != MAP_FAILED;
}

/* ---- dynamic libraries ---- */
void *weft__open_library(const char *file, char *reason, size_t size)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    const char *error = library ? NULL : dlerror();
    if (!library)
        snprintf(reason, size, "%s", error ? error : "no such library");
    return library;
}

bool weft__find_function(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol); /* POSIX allows this conversion, C does not */
    return symbol;
}

bool weft__set_variable(const char *name, const char *value)
{
    return value && !weft__variable(name) && !setenv(name, value, 0);
}

void weft__unset_variable(const char *name) { unsetenv(name); }

/* ---- signals ---- */
void weft__on_stop_signals(void (*fn)(int))
{
    static const int numbers[] = { SIGTERM, SIGUSR1 };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction now, ours = { .sa_handler = fn, .sa_flags = SA_RESTART };
        sigemptyset(&ours.sa_mask);
        if (!sigaction(numbers[i], NULL, &now) && now.sa_handler == SIG_DFL)
            sigaction(numbers[i], &ours, NULL);
    }
}

static const char *volatile last_words;
static struct sigaction before_alarm;

static void end_process(int number)
{
    const char *text = last_words;
    if (text)
        (void)!write(STDERR_FILENO, text, strlen(text));
    raise(number); /* ends the process, because of SA_RESETHAND */
}

void weft__alarm(unsigned seconds, const char *text)
{
    struct sigaction end = { .sa_handler = end_process, .sa_flags = (int)SA_RESETHAND };
    sigemptyset(&end.sa_mask);
    last_words = text;
    sigaction(SIGALRM, &end, &before_alarm);
    alarm(seconds);
}

void weft__no_alarm(void)
{
    alarm(0);
    sigaction(SIGALRM, &before_alarm, NULL);
}

/* ---- locale ---- */
/* newlocale cannot fail here: the "C" locale of glibc is a constant, without memory to free. */
void *weft__plain_locale(void)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return plain ? uselocale(plain) : (locale_t)0;
}

void weft__plain_locale_end(void *before)
{
    if (!before)
        return;
    locale_t plain = uselocale(before);
    if (plain != LC_GLOBAL_LOCALE && plain != (locale_t)before)
        freelocale(plain);
}

double weft__plain_number(const char *text, char **end)
{
    void *before = weft__plain_locale();
    double value = strtod(text, end);
    weft__plain_locale_end(before);
    return value;
}

int weft__plain_text(char *text, size_t size, const char *format, va_list list)
{
    void *before = weft__plain_locale();
    int n = vsnprintf(text, size, format, list);
    weft__plain_locale_end(before);
    return n;
}
