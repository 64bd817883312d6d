/* context.c - opens a context on a device, ends its steps, and closes it. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "core/report/check.h"
#include "core/report/log.h"
#include "core/report/profile.h"

enum { MOST_THREADS = 1024, PRINTED = 8 };

static bool is_open(const weft *w) { return w && !weft__is_no_context(w); }

/* The default allocator. Large blocks use huge pages where the system supports them, see
 * docs/design/memory.md. */
static void *allocate(size_t bytes, void *user)
{
    (void)user;
    return weft__allocate_pages(bytes);
}
static void release(void *p, void *user) { (void)user; free(p); }

/* ---- opening ---- */
static const char *device_variable(void)
{
    const char *value = weft__variable("WEFT_DEVICE");
    return value ? value : "";
}

static bool override_device(weft_opts *o, char *reason, size_t size)
{
    static const struct {
        const char *name;
        weft_device device;
    } names[] = { { "best", WEFT_BEST }, { "cpu", WEFT_CPU }, { "ref", WEFT_REF }, { "cuda", WEFT_CUDA } };
    const char *value = device_variable();
    if (!*value)
        return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t n = strlen(names[i].name);
        if (strncmp(value, names[i].name, n) || (value[n] && value[n] != ':'))
            continue;
        const char *number = value[n] ? value + n + 1 : "0";
        char *end = NULL;
        long index = *number >= '0' && *number <= '9' ? strtol(number, &end, 10) : -1;
        if (index < 0 || index > INT_MAX || *end)
            break;
        o->device = names[i].device;
        o->index = (int)index;
        return true;
    }
    snprintf(reason, size, "WEFT_DEVICE=%s: expected best, cpu, ref, cuda or cuda:1", value);
    return false;
}

static bool override_threads(weft_opts *o)
{
    const char *value = weft__variable("WEFT_THREADS");
    char *end = NULL;
    if (!value || !*value)
        return true;
    long n = *value >= '0' && *value <= '9' ? strtol(value, &end, 10) : -1;
    if (n < 0 || n > MOST_THREADS || *end)
        return false;
    o->threads = (int)n;
    return true;
}

/* BEST tries the GPU first. `reason` is kept for the log if the CPU is used. */
static bool open_device(weft__device *d, weft_device device, char *reason, size_t size)
{
    if (device == WEFT_BEST || device == WEFT_CUDA)
        d->k = weft__cuda_kernels(reason, size);
    if (d->k && d->k->open(d))
        return true;
    if (d->k)
        snprintf(reason, size, "open: %s", d->failure);
    d->failure[0] = 0;
    d->lost = false;
    const weft_device cpu = device == WEFT_BEST ? WEFT_CPU : device;
    d->k = device == WEFT_CUDA ? NULL : weft__cpu_kernels(cpu, d->precision, reason, size);
    return d->k && d->k->open(d);
}

static bool is_set(const char *variable) { return weft__variable(variable) && *weft__variable(variable); }

/* A choice by timing may differ between processes, so ranks and `deterministic` contexts make none. */
static void choose_blas(weft__device *d)
{
    if (strcmp(d->k->name, "generic") || d->deterministic || is_set("WEFT_GEMM") || is_set("WEFT_ISA") ||
        weft__is_launched())
        return;
    d->blas = weft__faster_blas(d);
    d->blas_is_default = d->blas;
}

static void configure(weft *w, const weft_opts *o)
{
    char reason[320] = "";
    weft_opts real_opts = *o;
    bool known = override_device(&real_opts, reason, sizeof reason), check = false;
    /* the local rank chooses the GPU unless the program or the user named one */
    w->dev.by_rank = !real_opts.index && !strchr(known ? device_variable() : "", ':');
    w->dev.index = w->dev.by_rank ? weft__local_rank() : real_opts.index;
    if ((unsigned)o->precision > WEFT_BF16 || o->threads < 0)
        weft__fail(w, WEFT_EARG,
                   "open: %d threads, precision %d; expected 0 threads or more and one of weft_precision",
                   o->threads, (int)o->precision);
    else if (!weft__log_level(&w->dev.log))
        weft__fail(w, WEFT_EARG, "open: WEFT_LOG=%s: expected 0, 1 or 2", weft__variable("WEFT_LOG"));
    else if (!weft__check_requested(&check))
        weft__fail(w, WEFT_EARG, "open: WEFT_CHECK=%s: expected 0 or 1", weft__variable("WEFT_CHECK"));
    else if (!override_threads(&real_opts))
        weft__fail(w, WEFT_EARG, "open: WEFT_THREADS=%s: expected 0 .. %d", weft__variable("WEFT_THREADS"),
                   MOST_THREADS);
    else if (!known || !open_device(&w->dev, real_opts.device, reason, sizeof reason))
        weft__fail(w, WEFT_EDEVICE, "%s", reason);
    if (!w->dev.k)
        /* a failed context needs a table of kernels: it can still be closed and return its message */
        w->dev.k = &weft__ref;
    w->dev.lost = w->status;                     /* but no kernel may run */
    if (o->gemm == WEFT_DEFAULT_GEMM && !w->status)
        choose_blas(&w->dev);
    int threads = real_opts.threads ? real_opts.threads : weft__cores();
    w->dev.pool = weft__pool_new(&w->dev, w->status ? 1 : threads);
    if (!w->dev.pool)
        weft__fail(w, WEFT_ENOMEM, "open: no memory for a pool of %d threads", threads);
    weft__log_open(w, w->dev.log, reason);
    weft__check_environment();
    if (check)
        weft__check_open(w);
}

static bool opens_blas(weft *w, weft_gemm choice)
{
    char reason[320] = "";
    w->dev.blas = weft__blas(choice, reason, sizeof reason);
    if (*reason)
        weft__fail(w, WEFT_EDEVICE, "open: %s", reason);
    return !w->status;
}

static bool options_are_sound(weft *w, const weft_opts *o)
{
    if ((unsigned)o->device > WEFT_CUDA)
        weft__fail(w, WEFT_EARG, "open: device %d; expected one of weft_device", (int)o->device);
    else if (o->threads > MOST_THREADS)
        weft__fail(w, WEFT_EARG, "open: %d threads; expected 0 .. %d", o->threads, MOST_THREADS);
    else if (!o->allocate != !o->release)
        weft__fail(w, WEFT_EARG, "open: %s is NULL; expected both allocate and release, or neither",
                   o->allocate ? "release" : "allocate");
    else if ((unsigned)o->gemm > WEFT_OPENBLAS_GEMM)
        weft__fail(w, WEFT_EARG, "open: gemm %d; expected one of weft_gemm", (int)o->gemm);
    return !w->status && opens_blas(w, o->gemm);
}

weft *weft_open(const weft_opts *opts)
{
    const weft_opts defaults = { 0 }, *options = opts ? opts : &defaults;
    weft_opts o = *options;
    if (!o.allocate || !o.release) {
        o.allocate = allocate;
        o.release = release;
    }
    weft *w = o.allocate(sizeof(weft__inside), o.user);
    if (!w)
        return weft__no_memory();
    memset(w, 0, sizeof(weft__inside));
    inside(w)->memory.allocate = o.allocate;
    inside(w)->memory.release = o.release;
    inside(w)->memory.user = o.user;
    bool own = o.allocate != allocate;
    w->dev = (weft__device){ .allocate = own ? weft__allocate_by_program : allocate,
                             .release = own ? weft__release_by_program : release,
                             .user = w,
                             .precision = o.precision,
                             .deterministic = o.deterministic };
    w->random.seed = o.seed;
    w->step = 1;
    w->recording = w->training = true;
    w->lean = o.lean;
    w->kept_limit = o.kept_weights;
    inside(w)->print_limit = PRINTED;
    weft__arena *a = inside(w)->arena;
    a[WEFT__ARENA_HEADERS].permanent = a[WEFT__ARENA_HEADERS_ODD].permanent = true;
    a[WEFT__ARENA_DATA].device = a[WEFT__ARENA_GRADS].device = a[WEFT__ARENA_MAPS].device = true;
    w->nil = (weft_tensor){ .w = w };
    if (!options_are_sound(w, options)) {
        /* opens it anyway: the program can then close it and read its message */
        o.device = WEFT_REF;
        o.threads = 1;
    }
    configure(w, &o);
    return w;
}

/* The plain name, for dlsym. Programs link to the name in the header. */
#ifdef __APPLE__ /* has no aliases */
WEFT_API weft *weft__open_by_name(const weft_opts *) __asm__("_weft_open");
weft *weft__open_by_name(const weft_opts *opts) { return weft_open(opts); }
#else
WEFT_API extern __typeof__(weft_open) weft__open_by_name __asm__("weft_open")
    __attribute__((alias(WEFT__OPEN)));
#endif

void weft_close(weft *w)
{
    if (!is_open(w) || weft__callback_refuses(w, "close"))
        return;
    w->dev.k->wait(&w->dev);
    weft__log_close(w);
    weft__profile_end(w);
    weft__check_close(w);
    for (int i = 0; i < WEFT__ARENAS; i++)
        weft__arena_end(w, i);
    weft__release(w, inside(w)->spare);
    weft__end_owned(w);
    if (w->dev.pool)
        weft__pool_end(&w->dev, w->dev.pool);
    w->dev.k->close(&w->dev);
    inside(w)->memory.release(w, inside(w)->memory.user);
}

/* ---- steps ---- */
void weft_clear(weft *w)
{
    if (!is_open(w) || weft__callback_refuses(w, "clear") || (w->check && !weft__check_enter(w, "clear")))
        return;
    if (w->check)
        weft__check_clear(w);
    /* the previous step's headers stay readable, so stale handles are recognised */
    w->step++;
    w->random.draw += !w->random.counted;
    w->random.counted = false;
    if (!w->check)                               /* the check never reuses headers */
        weft__arena_clear(w, weft__header_arena(w));
    for (int i = WEFT__ARENA_CALLS; i < WEFT__ARENAS; i++)
        weft__arena_clear(w, i);
    inside(w)->batches = NULL;
    inside(w)->links = NULL;
    inside(w)->missing[0] = 0;
    w->running = NULL;
    weft__notify(w, WEFT__CLEARED, NULL);
    weft__check_leave(w);
}

/* Frees the memory that earlier steps needed, because later steps may be smaller. */
static void give_back(weft *w)
{
    size_t bytes;
    for (int i = 0; i < WEFT__ARENAS; i++)
        weft__arena_forget(w, i);
    weft__notify(w, WEFT__MEMORY_RELEASED, NULL);
    weft__release(w, weft__take_spare(w, &bytes));
    if (w->dev.k->synchronous && w->dev.workspace) {
        w->dev.release(w->dev.workspace, w->dev.user);
        w->dev.workspace = NULL;
        w->dev.workspace_bytes = 0;
    }
}

void weft_recover(weft *w)
{
    if (!is_open(w) || weft__callback_refuses(w, "recover"))
        return;
    if (w->status == WEFT_ENOMEM)
        give_back(w);
    weft_clear(w);
    if (w->dev.lost)
        return;                                  /* a lost device is permanent */
    w->status = WEFT_OK;
    inside(w)->message[0] = w->dev.failure[0] = 0;
    w->dev.fault = (weft__fault){ 0 };
    weft__recover_owned(w);
}

/* ---- settings ---- */
static bool set(bool *flag, bool value) { bool old = *flag; *flag = value; return old; }
bool weft_set_training(weft *w, bool training)    { return is_open(w) ? set(&w->training, training) : false; }
bool weft_set_grad_enabled(weft *w, bool enabled) { return is_open(w) ? set(&w->recording, enabled) : false; }
bool weft_is_training(const weft *w)     { return is_open(w) && w->training; }
bool weft_is_grad_enabled(const weft *w) { return is_open(w) && w->recording; }

void weft_synchronize(weft *w)
{
    if (!w || !w->dev.k)
        return;
    w->dev.k->wait(&w->dev);
    weft__check_faults(w, "synchronize");
}
