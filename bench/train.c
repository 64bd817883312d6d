/* train.c - measures a training case: the forward pass without the tape, a training step with it, and the
 * loss and gradient norm that prove equal work. */
#include <malloc.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bench.h"

/* Loss and gradient norm of one training step. */
static void prove(training *t)
{
    weft_zero_grad(t->all);
    for (int i = 0; i < t->graphs; i++) {
        weft_tensor *loss = t->loss(t->user);
        weft_backward(loss);
        t->row.loss += (double)weft_item(loss);
        weft_clear(t->w);
    }
    t->row.norm = (double)weft_item(weft_clip_grad_norm(t->all, (weft_real)INFINITY, 0));
    weft_clear(t->w);
}

static void step(const training *t, bool train)
{
    weft_set_grad_enabled(t->w, train);
    if (t->step) {
        t->step(t->user, train);
    } else {
        if (train)
            weft_zero_grad(t->all);
        weft_tensor *loss = t->loss(t->user);
        if (train)
            weft_backward(loss);
    }
    weft_synchronize(t->w);
    weft_clear(t->w);
}

/* Runs one step in a child process, where the gradients already exist. */
static bool grow(const training *t, const settings *s)
{
    weft_zero_grad(t->all);
    double begin = begin_growth();
    step(t, true);
    *s->growth = growth_since(begin);
    return weft_ok(t->w);
}

static bool measure_pass(training *t, const settings *s, bool train)
{
    times    total = { 0 };
    settling warm = { weft_usage_of(t->w).trials, 0, 0 };
    double   start;
    do
        step(t, train);
    while (!settled(t->w, &warm));
    weft_usage before = weft_usage_of(t->w);
    do {
        start = now_ms();
        step(t, train);
    } while (more(&total, now_ms() - start, s));
    t->row.allocations = weft_usage_of(t->w).allocations - before.allocations;
    count_launches(&t->row, t->w, &before, total.n);
    t->row.pass = train ? "train" : "forward";
    if (failed(t->w, t->row.name))
        return false;
    emit(s, t->w, &t->row, &total);
    return true;
}

bool measure_training(training *t, const settings *s)
{
    if (s->growth)
        return grow(t, s);
    prove(t);
    return measure_pass(t, s, false) && measure_pass(t, s, true);
}

/* ---- memory of a step: the growth of a process' peak ----
 *
 * A child builds the case and runs one training step. Parameters, their gradients and the inputs exist before
 * it; the peers' programs do the same. First the child runs the case with one sequence of one token and
 * releases free memory, so that data loaded, started or made once does not count as part of a step.
 * Linux only: /proc/self/clear_refs resets the peak to the current size. */
/* In bytes, "VmRSS:" or "VmHWM:"; 0: not available. */
static double resident(const char *field)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    long long kib = 0;
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, field, strlen(field)))
            sscanf(line + strlen(field), "%lld", &kib);
    if (f)
        fclose(f);
    return (double)kib * 1024;
}

static bool set_peak_back(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "w");
    bool ok = f && fputs("5", f) >= 0;
    return (f ? !fclose(f) : false) && ok;
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
    bool ok = id > 0 && waitpid(id, &status, 0) == id && !status;
    memcpy(result, shared, size);
    munmap(shared, size);
    return ok;
}

typedef struct stepping {
    run_case *run;
    row row;
    const settings *s;
} stepping;

static void grow_in_child(void *user, void *result)
{
    stepping *it = user;
    settings options = *it->s;
    row small = it->row;
    options.growth = result;
    small.B = small.T = 1;
    small.horizon = small.horizon ? 1 : 0;
    if (!it->run(small, &options) || !it->run(it->row, &options))
        *options.growth = 0;
}

double step_bytes(run_case *run, row r, const settings *s)
{
    double growth = 0;
    if (s->open.device == WEFT_CUDA)             /* a CUDA context does not survive fork */
        return 0;
    bool ok = in_child(grow_in_child, &(stepping){ run, r, s }, &growth, sizeof growth);
    return ok && growth > 0 ? growth : 0;
}

static void cut_down(row *r)
{
    static const int64_t limit[] = { 8, 12, 16, 16, 6 };
    int64_t *value[] = { &r->B, &r->T, &r->I, &r->H, &r->horizon };
    for (int i = 0; i < 5; i++)
        *value[i] = *value[i] < limit[i] ? *value[i] : limit[i];
}

bool measure(run_case *run, row r, const char *layouts, const settings *s)
{
    static char own[16];
    snprintf(own, sizeof own, "%.*s", (int)strcspn(layouts, " "), layouts);
    r.layout = s->layout ? s->layout : own;
    if (!strstr(layouts, r.layout)) {
        fprintf(stderr, "weft_bench: %s has no layout \"%s\", but: %s\n", r.name, r.layout, layouts);
        return false;
    }
    if (s->tiny)
        cut_down(&r);
    settings options = *s;
    options.step_bytes = step_bytes(run, r, s);
    bool ok = run(r, &options);
    free_kept();
    return ok;
}
