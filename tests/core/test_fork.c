/* test_fork.c - forks a process while its other threads save and load. The child must be able to save and
 * load. */
#include <pthread.h>
#include <stdatomic.h>
#include "tests/io/checkpoint.h"

static char ours[160], childs[160];
static atomic_bool enough;

static void *goes_on_saving(void *k_)
{
    const model *k = k_;
    while (!enough)
        if (weft_save(ours, k->m, k->o, NULL, 0) || weft_load(ours, k->m, k->o, NULL, 0))
            return NULL;
    return k_;
}

static int child_s_own(void)                     /* hangs if the fork copied a held lock */
{
    alarm(20);
    model k = model_new(2);
    return weft_save(childs, k.m, k.o, NULL, 0) || weft_load(childs, k.m, k.o, NULL, 0) ? 1 : 0;
}

Test(fork, child_saves_while_the_parent_saves)
{
#if CHECK_SANITIZED
    puts("skipped: a fork while others save: the sanitizer's own allocator does not outlive one");
    return;
#endif
    model k = model_new(1);
    pthread_t t;
    void *good;
    snprintf(ours, sizeof ours, "%s", in_folder("ours"));
    snprintf(childs, sizeof childs, "%s", in_folder("childs"));
    pthread_create(&t, NULL, goes_on_saving, &k);
    for (int i = 0; i < rounds(30, 300); i++) {
        usleep((useconds_t)dice(2000));
        pid_t child = fork();
        if (!child)
            _exit(child_s_own());
        cr_assert_eq(ended(child), 0, "child %d", i);
    }
    enough = true;
    pthread_join(t, &good);
    cr_assert_not_null(good);
    CLEAN(k.w);
    end_folder();
}

FILE_TEST(fork, child_saves_after_a_fork_inside_a_save)      /* A signal handler may do this. */
{
    snprintf(childs, sizeof childs, "%s", in_folder("childs"));
    alarm(30);
    for (int i = 0; i < WEFT__LOCKS; i++) {
        weft__lock((weft__lock_of)i);
        pid_t child = fork();
        weft__unlock((weft__lock_of)i);          /* in parent and child */
        if (!child)
            _exit(child_s_own());
        cr_assert_eq(ended(child), 0);
    }
    cr_assert_eq(child_s_own(), 0);
    alarm(0);
}
