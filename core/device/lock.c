/* lock.c - the process's locks. A fork waits until the thread that holds one lets go of it, so that what a
 * lock guards is whole in the child, and the child can take it. A thread that forks while it holds one
 * itself, from a signal handler or a constructor, goes on with it on both sides. */
#include <pthread.h>
#include "core/inside.h"

static pthread_mutex_t mutex[WEFT__LOCKS] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };
static _Thread_local volatile bool mine[WEFT__LOCKS];

void weft__lock(weft__lock_of what)
{
    pthread_mutex_lock(&mutex[what]);
    mine[what] = true;
}

void weft__unlock(weft__lock_of what)
{
    mine[what] = false;
    pthread_mutex_unlock(&mutex[what]);
}

static void before_fork(void)
{
    for (int i = 0; i < WEFT__LOCKS; i++)
        if (!mine[i])
            pthread_mutex_lock(&mutex[i]);
}

/* in the parent, and in the child, which is a copy of the thread that has locked them */
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
