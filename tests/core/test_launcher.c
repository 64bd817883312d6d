/* test_launcher.c - tests how many cores a rank uses when it or its launcher is bound to some.
 * tests/scripts/test_parallel.sh tests that the launcher is found through scripts. */
#include "../check.h"
#include "core/inside.h"

static weft__cpu_set cpus(int from, int end)
{
    weft__cpu_set set;
    memset(&set, 0, sizeof set);
    for (int i = from; i < end; i++)
        set.bits[i / 64] |= (uint64_t)1 << i % 64;
    return set;
}

static int share(weft__cpu_set mine, weft__cpu_set launcher, int ranks)
{
    return weft__share_of_cores(&mine, &launcher, ranks);
}

Test(launcher, gives_each_rank_its_share_of_the_cores)
{
    weft__cpu_set all = cpus(0, 64);
    cr_assert_eq(share(all, all, 4), 16, "not bound");
    cr_assert_eq(share(cpus(8, 9), all, 4), 1, "to a core");
    cr_assert_eq(share(cpus(0, 32), all, 2), 32, "to a node of two");
    cr_assert_eq(share(cpus(0, 32), all, 4), 16, "two ranks to a node of two");
    cr_assert_eq(share(cpus(4, 8), all, 4), 4, "to four of them, others idle");
    cr_assert_eq(share(cpus(4, 8), cpus(0, 1), 4), 4, "the launcher itself is bound elsewhere");
    cr_assert_eq(share(cpus(0, 2), cpus(0, 2), 8), 1, "more ranks than cores");
}

Test(launcher, reads_the_variables_of_launchers)
{
    static const struct { const char *rank[2], *size[2]; bool alone; } launchers[] = {
        { { "OMPI_COMM_WORLD_LOCAL_RANK", "1" }, { "OMPI_COMM_WORLD_LOCAL_SIZE", "2" }, false },
        { { "MPI_LOCALRANKID", "1" }, { "MPI_LOCALNRANKS", "2" }, false },
        { { "SLURM_LOCALID", "0" }, { "SLURM_STEP_TASKS_PER_NODE", "2(x3),1" }, false },
        { { "OMPI_COMM_WORLD_LOCAL_RANK", "0" }, { "OMPI_COMM_WORLD_LOCAL_SIZE", "1" }, true }
    };
    weft__cpu_set mine;
    cr_assert(weft__affinity(0, &mine));
    int all = weft__share_of_cores(&mine, &mine, 1), half = all > 1 ? all / 2 : 1;
    cr_assert_eq(weft__cores(), all);
    cr_assert_eq(weft__cpus(), all);
    cr_assert_eq(weft__local_rank(), 0);
    cr_assert_eq(weft__launched_rank(), 0);
    for (int i = 0; i < COUNT(launchers); i++) {
        setenv(launchers[i].rank[0], launchers[i].rank[1], 1);
        setenv(launchers[i].size[0], launchers[i].size[1], 1);
        cr_assert_eq(weft__cores(), launchers[i].alone ? all : half, "launcher %d", i);
        unsetenv(launchers[i].rank[0]);
        unsetenv(launchers[i].size[0]);
    }
    setenv("SLURM_PROCID", "7", 1), setenv("SLURM_LOCALID", "3", 1);
    cr_assert(weft__launched_rank() == 7 && weft__local_rank() == 3);
    setenv("OMPI_COMM_WORLD_RANK", "5", 1), setenv("OMPI_COMM_WORLD_LOCAL_RANK", "2", 1);
    cr_assert(weft__launched_rank() == 5 && weft__local_rank() == 2, "the inner launcher");
}
