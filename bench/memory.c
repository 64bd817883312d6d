/* memory.c - what memory a step takes: how far the peak of a process' resident memory grows over what it held
 * before, in a child that builds the case and runs one training step. Parameters, their gradients and the
 * inputs are there before; the peers' programs do the same in the same way, so what is compared is all that
 * one step has to have beside them.
 *
 * Before that the child has run the same case with one sequence of one token, and given back what was free:
 * what is read from disk, started or made once in a process is not part of a step. Linux alone:
 * /proc/self/clear_refs sets the peak back to what is held. */
#include <malloc.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bench.h"

/* In bytes, "VmRSS:" or "VmHWM:"; 0: there is none. */
static double resident(const char *which)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    long long kib = 0;
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, which, strlen(which)))
            sscanf(line + strlen(which), "%lld", &kib);
    if (f)
        fclose(f);
    return (double)kib * 1024;
}

static bool set_peak_back(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "w");
    bool good = f && fputs("5", f) >= 0;
    return (f ? !fclose(f) : false) && good;
}

double begin_growth(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
    return set_peak_back() ? resident("VmRSS:") : 0;
}

double growth_since(double begin) { return begin > 0 ? resident("VmHWM:") - begin : 0; }

bool in_child(void (*task)(void *user, void *result), void *user, void *result, size_t size)
{
    void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return false;
    fflush(NULL);
    pid_t id = fork();
    if (!id) {
        task(user, shared);
        _exit(0);
    }
    int status = 1;
    bool good = id > 0 && waitpid(id, &status, 0) == id && !status;
    memcpy(result, shared, size);
    munmap(shared, size);
    return good;
}

typedef struct stepping {
    run_case *run;
    row row;
    const settings *s;
} stepping;

static void grow_in_child(void *user, void *result)
{
    stepping *it = user;
    settings told = *it->s;
    row small = it->row;
    told.growth = result;
    small.B = small.T = 1;
    small.horizon = small.horizon ? 1 : 0;
    if (!it->run(small, &told) || !it->run(it->row, &told))
        *told.growth = 0;
}

double step_bytes(run_case *run, row r, const settings *s)
{
    double growth = 0;
    if (s->open.device == WEFT_CUDA)             /* its context does not live on in a child */
        return 0;
    bool good = in_child(grow_in_child, &(stepping){ run, r, s }, &growth, sizeof growth);
    return good && growth > 0 ? growth : 0;
}
