/* program.c - see program.h. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "program.h"

bool first_of_ranks(void)
{
    static const char *const names[] = { "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID" };
    const char *rank = NULL;
    for (size_t i = 0; !rank && i < sizeof names / sizeof *names; i++)
        rank = getenv(names[i]);
    return !rank || atoi(rank) == 0;
}

_Noreturn void quit(int status, const char *format, ...)
{
    va_list arguments;
    if (status == 2 && !first_of_ranks()) {
        sleep(1);                                /* or the launcher ends the first one before it has spoken */
        exit(status);
    }
    va_start(arguments, format);
    fflush(stdout);
    fprintf(stderr, "%s: ", program);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(status);
}

void *memory(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size);
    if (!p)
        quit(1, "out of memory: %zu times %zu bytes", n, size);
    return p;
}

double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- signals ---- */
static volatile sig_atomic_t came;
static void stop(int signal) { came = signal; }

void obey_signals(void)
{
    struct sigaction once = { .sa_handler = stop, .sa_flags = (int)SA_RESETHAND };
    sigaction(SIGINT, &once, NULL);
    sigaction(SIGTERM, &once, NULL);
}

int signal_came(void) { return (int)came; }

bool stopping(const weft_parallel *ranks)
{
    bool many = weft_parallel_place_of(ranks).ranks > 1;
    return many ? weft_parallel_stopping(ranks) : signal_came();
}

/* ---- the library ---- */
void check_context(const weft *w, const char *format, ...)
{
    char doing[200];
    va_list arguments;
    if (weft_ok(w))
        return;
    va_start(arguments, format);
    vsnprintf(doing, sizeof doing, format, arguments);
    va_end(arguments);
    quit(1, "%s%s%s", doing, *doing ? ": " : "", weft_error_message(w));
}

void check_file(weft_status status)
{
    if (status != WEFT_OK)
        quit(1, "%s", weft_file_message());
}

weft *open_context(weft_device device, int64_t seed, int64_t threads)
{
    weft *w = weft_open(&(weft_opts){ .device = device, .seed = (uint64_t)seed, .threads = (int)threads });
    if (!weft_ok(w))
        quit(1, "%s", weft_error_message(w));
    return w;
}

bool is_there(const char *path) { return access(path, F_OK) == 0; }

void end_file(FILE *file, const char *path)
{
    bool good = file && !ferror(file);
    if (!file || fclose(file) || !good)
        quit(1, "%s: %s", path, strerror(errno));
}
