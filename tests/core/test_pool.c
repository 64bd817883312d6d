/* test_pool.c - tests the thread pool: it runs every task once, runs serially inside a task, works after
 * fork, starts threads on first use and ends them all. tsan_main.c runs this file under ThreadSanitizer. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/cpu/cpu.h"
#include "kernel_run.h"

enum { MOST = 5000 };
typedef struct counts {
    atomic_int done[MOST];
    atomic_int worker_seen[16];
    weft__device *d;
    int64_t inner;
    weft__barrier meeting;
} counts;

static int threads_now(void) { return files_in("/proc/self/task"); }
static void count(void *argument, int64_t i)
{
    counts *c = argument;
    atomic_fetch_add(&c->done[i], 1);
    atomic_store(&c->worker_seen[weft__worker()], 1);
}
static void all_once(counts *c, int64_t tasks, int times)
{
    for (int64_t i = 0; i < MOST; i++)
        cr_assert(atomic_exchange(&c->done[i], 0) == (i < tasks ? times : 0), "task %lld of %lld",
                  (long long)i, (long long)tasks);
}

Test(pool, runs_every_task_once)
{
    for (int threads = 1; threads <= 5; threads++) {
        run *t = run_on(&weft__ref, threads);
        counts *c = room(t, 1, sizeof *c);
        cr_assert(weft__pool_threads(t->d.pool) == threads);
        for (int i = 0; i < rounds(300, 20000); i++) {
            int64_t tasks = size(i % 10 ? 20 : MOST);
            weft__parallel(&t->d, tasks, count, c);
            if (i % 16 == 0)
                usleep(300);                     /* let threads sleep sometimes */
            all_once(c, tasks, 1);
        }
        for (int i = threads; i < 16; i++)
            cr_assert(!c->worker_seen[i]);
        run_end(t);
    }
}
Test(pool, starts_threads_on_first_use_and_ends_them)
{
    run *t = run_on(&weft__ref, 3);
    counts *c = room(t, 1, sizeof *c);
    int before = threads_now();
    weft__parallel(&t->d, 1, count, c);
    weft__parallel(&t->d, 0, count, c);
    cr_assert(threads_now() == before);
    weft__parallel(&t->d, 2, count, c);
    cr_assert(threads_now() == before + 2);
    run_end(t);
    cr_assert(threads_now() == before);
    t = run_on(&weft__ref, 1);
    c = room(t, 1, sizeof *c);
    weft__parallel(&t->d, 1000, count, c);
    cr_assert(threads_now() == before, "one thread is the caller");
    run_end(t);
}

static void nested(void *argument, int64_t i)
{
    counts *c = argument;
    (void)i;
    cr_assert(weft__concurrent_tasks(c->d) == 1);
    weft__parallel(c->d, c->inner, count, c);
}
Test(pool, runs_serially_inside_a_task)
{
    run *t = run_on(&weft__ref, 3);
    counts *c = room(t, 1, sizeof *c);
    c->d = &t->d, c->inner = 40;
    for (int i = 0; i < 50; i++) {
        weft__parallel(&t->d, 30, nested, c);
        all_once(c, 40, 30);
    }
    run_end(t);
}

/* Each task adds 1 to its own number. After the barrier it must see the same number in all others. */
static void in_step(void *argument, int64_t i)
{
    counts *c = argument;
    for (int round = 1; round <= 100; round++) {
        atomic_store_explicit(&c->done[i], round, memory_order_relaxed);
        weft__barrier_wait(&c->meeting, (int)c->inner);
        for (int64_t j = 0; j < c->inner; j++)
            if (atomic_load_explicit(&c->done[j], memory_order_relaxed) != round)
                atomic_fetch_add(&c->worker_seen[15], 1);
        weft__barrier_wait(&c->meeting, (int)c->inner);
    }
}
Test(pool, concurrent_tasks_can_wait_for_each_other)
{
    for (int threads = 1; threads <= 4; threads++) {
        run *t = run_on(&weft__ref, threads);
        counts *c = room(t, 1, sizeof *c);
        cr_assert(weft__concurrent_tasks(&t->d) == threads);
        for (c->inner = 1; c->inner <= threads; c->inner++)
            for (int i = 0; i < 3; i++) {
                weft__parallel(&t->d, c->inner, in_step, c);
                cr_assert(atomic_load(&c->worker_seen[15]) == 0);
            }
        run_end(t);
    }
}

Test(pool, runs_without_threads_in_a_forked_child)
{
    run *t = run_on(&weft__ref, 3);
    counts *c = room(t, 1, sizeof *c);
    /* All threads have started: a sanitizer's malloc, used at a start, does not survive a fork. */
    c->inner = weft__concurrent_tasks(&t->d);
    weft__parallel(&t->d, c->inner, in_step, c);
    memset(c, 0, sizeof *c);
    for (int i = 0; i < 5; i++) {
        pid_t child = fork();
        if (!child) {
            weft__parallel(&t->d, 100, count, c);
            all_once(c, 100, 1);
            cr_assert(weft__concurrent_tasks(&t->d) == 1);
            weft__pool_end(&t->d, t->d.pool);
            _exit(threads_now() == 1 ? 7 : 8);
        }
        int status = 0;
        cr_assert(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
        weft__parallel(&t->d, 100, count, c);    /* the parent's threads still work */
        all_once(c, 100, 1);
    }
    run_end(t);
}

static void *user(void *argument)
{
    run *t = run_on(&weft__ref, 3);
    counts *c = room(t, 1, sizeof *c);
    (void)argument;
    for (int i = 0; i < 300; i++) {
        weft__parallel(&t->d, 1 + i % 70, count, c);
        all_once(c, 1 + i % 70, 1);
    }
    run_end(t);
    return NULL;
}
Test(pool, pools_are_independent)
{
    pthread_t threads[3];
    for (int i = 0; i < COUNT(threads); i++)
        cr_assert(!pthread_create(&threads[i], NULL, user, NULL));
    for (int i = 0; i < COUNT(threads); i++)
        pthread_join(threads[i], NULL);
}
