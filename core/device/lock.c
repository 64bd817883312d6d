/* lock.c - locks of the process that are safe across fork. A fork waits until other threads have released the
 * locks, so the guarded data is consistent in the child, which can take them. A thread that forks while it
 * holds a lock (from a signal handler or constructor) keeps it in both processes. */
#include "core/inside.h"

static pthread_mutex_t mutex[WEFT__LOCKS] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };
static _Thread_local volatile bool mine[WEFT__LOCKS];

void weft__lock(weft__lock_of lock)
{
    pthread_mutex_lock(&mutex[lock]);
    mine[lock] = true;
}

void weft__unlock(weft__lock_of lock)
{
    mine[lock] = false;
    pthread_mutex_unlock(&mutex[lock]);
}

static void before_fork(void)
{
    for (int i = 0; i < WEFT__LOCKS; i++)
        if (!mine[i])
            pthread_mutex_lock(&mutex[i]);
}

/* runs in the parent and in the child, which is a copy of the locking thread */
static void after_fork(void)
{
    for (int i = 0; i < WEFT__LOCKS; i++)
        if (!mine[i])
            pthread_mutex_unlock(&mutex[i]);
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork, after_fork);
}
