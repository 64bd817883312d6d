/* launcher.c - a process among those that mpirun, mpiexec or srun has started on this machine: they share its
 * cores and its GPUs. Only the environment is asked: MPI comes later, if at all. */
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/core.h"

static int number_in(const char *const *names, int otherwise)
{
    for (; *names; names++) {
        const char *text = secure_getenv(*names);
        char *end = NULL;
        long n = text && *text >= '0' && *text <= '9' ? strtol(text, &end, 10) : -1;
        if (n >= 0 && n < 1 << 20 && !*end)
            return (int)n;
    }
    return otherwise;
}

int weft__local_rank(void)
{
    static const char *const names[] = { "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID",
                                         NULL };
    return number_in(names, 0);
}

static int local_ranks(void)
{
    static const char *const names[] = { "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                         "SLURM_NTASKS_PER_NODE", NULL };
    int n = number_in(names, 1);
    return n < 1 ? 1 : n;
}

/* A launcher that binds its ranks gives each fewer cores than it has itself. */
static bool is_bound(const cpu_set_t *mine)
{
    cpu_set_t launcher;
    return !sched_getaffinity(getppid(), sizeof launcher, &launcher) && !CPU_EQUAL(mine, &launcher);
}

int weft__cores(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set), ranks = local_ranks();
    if (ranks > 1 && !is_bound(&set))
        n /= ranks;
    return n < 1 ? 1 : n;
}
