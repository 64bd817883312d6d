/* threads.c - a pool of threads that executes numbered tasks.
 *
 * One word holds the state of a job: the number of workers inside, whether it is open, and its number. A
 * worker enters an open job by adding 1 to the word. The caller executes tasks itself, closes the job, and
 * waits for workers inside, but never for one that was asleep. Function, argument, tasks and rounding change
 * only while the job is closed and empty.
 *
 * After fork the child has the pool's memory without its threads. A pool records the process that started the
 * threads, and works serially in any other. Calls within a task are also serial. */
#include <stdatomic.h>
#include <string.h>
#include "core/cpu/cpu.h"
#include "core/cpu/rounding.h"

enum { PATIENCE = 2000 };                        /* polls before a worker sleeps: tens of microseconds */
#define OPEN   ((uint64_t)1 << 32)
#define NUMBER ((uint64_t)1 << 33)
#define INSIDE (OPEN - 1)

struct seat { struct weft__pool *pool; pthread_t thread; int number; };
struct weft__pool {
    int threads, started;                        /* requested, with the caller; workers that run */
    int process;                                 /* process that started the workers; 0: none yet */
    weft__task *fn; void *argument; int64_t tasks;
    uint64_t rounding;                           /* rounding mode of the caller */
    atomic_int_fast64_t next;
    atomic_uint_fast64_t state;
    atomic_int sleepers; atomic_bool quit;
    pthread_mutex_t lock; pthread_cond_t wake, done;
    struct seat seats[];
};

static _Thread_local int my_number;
static _Thread_local bool busy;                  /* in a task: nested calls are serial */

int weft__worker(void) { return my_number; }

static void pause_a_bit(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static void do_tasks(struct weft__pool *p)
{
    busy = true;
    for (int64_t i; (i = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed)) < p->tasks;)
        p->fn(p->argument, i);
    busy = false;
}

/* ---- a worker ---- */
/* Returns whether a job other than `seen` is open, or the pool ends. */
static bool fresh(struct weft__pool *p, uint64_t seen)
{
    uint64_t s = atomic_load(&p->state);
    return atomic_load(&p->quit) || ((s & OPEN) && s / NUMBER != seen);
}

static void await(struct weft__pool *p, uint64_t seen)
{
    for (int i = 0; i < PATIENCE; i++, pause_a_bit())
        if (fresh(p, seen))
            return;
    pthread_mutex_lock(&p->lock);
    /* Increment before the last check, because the caller reads sleepers after it opens a job. */
    atomic_fetch_add(&p->sleepers, 1);
    while (!fresh(p, seen))
        pthread_cond_wait(&p->wake, &p->lock);
    atomic_fetch_sub(&p->sleepers, 1);
    pthread_mutex_unlock(&p->lock);
}

static bool enter_pool(struct weft__pool *p, uint64_t *seen)
{
    uint64_t s = atomic_load(&p->state);
    while (s & OPEN)
        if (atomic_compare_exchange_weak(&p->state, &s, s + 1)) {
            *seen = s / NUMBER;
            return true;
        }
    return false;
}

static void leave_pool(struct weft__pool *p)
{
    uint64_t s = atomic_fetch_sub(&p->state, 1) - 1;
    if (s & (OPEN | INSIDE))
        return;
    /* The last worker to leave a closed job wakes the caller, which may be asleep. */
    pthread_mutex_lock(&p->lock);
    pthread_cond_signal(&p->done);
    pthread_mutex_unlock(&p->lock);
}

static void *work(void *argument)
{
    struct seat *me = argument;
    struct weft__pool *p = me->pool;
    uint64_t seen = 0;
    for (my_number = me->number; await(p, seen), !atomic_load(&p->quit);)
        if (enter_pool(p, &seen)) {
            weft__round_as(p->rounding);
            do_tasks(p);
            leave_pool(p);
        }
    return NULL;
}

static void start(struct weft__pool *p)          /* fewer if the system refuses */
{
    p->process = weft__process();
    for (; p->started < p->threads - 1; p->started++) {
        struct seat *s = &p->seats[p->started];
        *s = (struct seat){ .pool = p, .number = p->started + 1 };
        if (!weft__start_thread(&s->thread, work, s))
            break;
    }
}

/* ---- the caller ---- */
static void call_workers(struct weft__pool *p, int64_t needed)
{
    int asleep = atomic_load(&p->sleepers);
    if (!asleep)
        return;
    pthread_mutex_lock(&p->lock);
    if (needed >= asleep)
        pthread_cond_broadcast(&p->wake);
    for (; needed < asleep && needed > 0; needed--)
        pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->lock);
}

static void close_job(struct weft__pool *p)         /* lets no more workers in, waits for those inside */
{
    atomic_fetch_and(&p->state, ~OPEN);
    for (int i = 0; i < PATIENCE; i++, pause_a_bit())
        if (!(atomic_load(&p->state) & INSIDE))
            return;
    pthread_mutex_lock(&p->lock);
    while (atomic_load(&p->state) & INSIDE)
        pthread_cond_wait(&p->done, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

static bool is_serial(struct weft__pool *p, int64_t tasks)
{
    if (!p || p->threads < 2 || tasks < 2 || busy)
        return true;
    if (!p->process)
        start(p);
    return !p->started || p->process != weft__process();
}

/* Tasks wait for each other, so each worker runs at most one. The caller closes the job only after its own
 * task, so every task finds a worker. */
int weft__concurrent_tasks(weft__device *d) { return is_serial(d->pool, 2) ? 1 : d->pool->started + 1; }

void weft__barrier_wait(weft__barrier *m, int participants)
{
    int round = atomic_load(&m->round);
    if (atomic_fetch_add(&m->here, 1) == participants - 1) {
        atomic_store(&m->here, 0);
        atomic_store(&m->round, round + 1);
        return;
    }
    for (int i = 0; atomic_load(&m->round) == round; i++)
        if (i < PATIENCE)
            pause_a_bit();
        else
            weft__yield();
}

void weft__parallel(weft__device *d, int64_t tasks, weft__task *fn, void *argument)
{
    struct weft__pool *p = d->pool;
    if (is_serial(p, tasks)) {
        for (int64_t i = 0; i < tasks; i++)
            fn(argument, i);
        return;
    }
    p->fn = fn;
    p->argument = argument;
    p->tasks = tasks;
    p->rounding = weft__rounding();
    atomic_store(&p->next, 0);
    atomic_store(&p->state, (atomic_load(&p->state) / NUMBER + 1) * NUMBER + OPEN);
    call_workers(p, tasks - 1);
    do_tasks(p);
    close_job(p);
}

/* ---- creation and end ---- */
static size_t bytes_for(int threads)
{
    return sizeof(struct weft__pool) + (size_t)(threads - 1) * sizeof(struct seat);
}

struct weft__pool *weft__pool_new(weft__device *d, int threads)
{
    threads = threads < 1 ? 1 : threads;
    struct weft__pool *p = d->allocate(bytes_for(threads), d->user);
    if (!p)
        return NULL;
    memset(p, 0, sizeof *p);
    p->threads = threads;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    pthread_cond_init(&p->done, NULL);
    return p;
}

void weft__pool_end(weft__device *d, struct weft__pool *p)
{
    if (!p)
        return;
    /* in a child of fork the locks may be held for ever */
    if (!p->process || p->process == weft__process()) {
        pthread_mutex_lock(&p->lock);
        atomic_store(&p->quit, true);
        pthread_cond_broadcast(&p->wake);
        pthread_mutex_unlock(&p->lock);
        for (int i = 0; i < p->started; i++)
            pthread_join(p->seats[i].thread, NULL);
        pthread_cond_destroy(&p->done);
        pthread_cond_destroy(&p->wake);
        pthread_mutex_destroy(&p->lock);
    }
    d->release(p, d->user);
}

int weft__pool_threads(const struct weft__pool *p) { return p ? p->threads : 1; }
size_t weft__pool_bytes(const struct weft__pool *p) { return p ? bytes_for(p->threads) : 0; }
