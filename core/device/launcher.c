/* launcher.c - detects whether mpirun, mpiexec or srun has started this process as one of several ranks,
 * which share the machine's cores and GPUs. Reads only the environment, because MPI is initialised later, if
 * at all. */
#include <stdlib.h>
#include <string.h>
#include "core/inside.h"

/* ---- variables of the launcher ---- */
/* Returns the number in a variable, or -1. Slurm lists nodes as in "4(x2),3"; the first number counts. */
static int number_of(const char *variable)
{
    const char *text = weft__variable(variable);
    char *end = NULL;
    long n = text && *text >= '0' && *text <= '9' ? strtol(text, &end, 10) : -1;
    return n >= 0 && n < 1 << 20 && (!*end || *end == '(' || *end == ',') ? (int)n : -1;
}

static const char *first_of(const char *const *names)              /* the first that has a number, or NULL */
{
    while (*names && number_of(*names) < 0)
        names++;
    return *names;
}

static const char *local_rank_name(void)
{
    static const char *const names[] = { "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID",
                                         NULL };
    return first_of(names);
}

int weft__local_rank(void) { return local_rank_name() ? number_of(local_rank_name()) : 0; }

bool weft__is_launched(void) { return local_rank_name(); }

int weft__launched_rank(void)
{
    static const char *const names[] = { "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID",
                                         NULL };
    return first_of(names) ? number_of(first_of(names)) : 0;
}

static int local_ranks(void)
{
    static const char *const names[] = { "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                         "SLURM_STEP_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE", NULL };
    int n = first_of(names) ? number_of(first_of(names)) : 1;
    return n < 1 ? 1 : n;
}

/* ---- the launcher's process ---- */
static bool had_variable(int pid, const char *name)  /* at its start */
{
    char path[64], *text = NULL;
    size_t room = 0, n = strlen(name);
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/environ", pid);
    FILE *file = fopen(path, "re");
    while (file && !found && getdelim(&text, &room, 0, file) > 0)
        found = !strncmp(text, name, n) && text[n] == '=';
    free(text);
    if (file)
        fclose(file);
    return found;
}

static int parent_of(int pid)                /* 0: none or unknown */
{
    char path[64], line[256];
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file) && sscanf(line, "PPid: %d", &parent) != 1)
        continue;
    if (file)
        fclose(file);
    return parent;
}

int weft__launcher(void)
{
    enum { FAR = 64 };
    const char *name = local_rank_name();
    int pid = weft__parent_process();
    for (int i = 0; name && i < FAR && pid > 1 && had_variable(pid, name); i++)
        pid = parent_of(pid);
    return pid;
}

/* ---- share of the cores ---- */
static int count_of(const weft__cpu_set *set)
{
    int n = 0;
    for (size_t i = 0; i < sizeof set->bits / sizeof *set->bits; i++)
        n += __builtin_popcountll(set->bits[i]);
    return n;
}

static bool is_within(const weft__cpu_set *a, const weft__cpu_set *b)
{
    uint64_t outside = 0;
    for (size_t i = 0; i < sizeof a->bits / sizeof *a->bits; i++)
        outside |= a->bits[i] & ~b->bits[i];
    return !outside;
}

int weft__share_of_cores(const weft__cpu_set *own, const weft__cpu_set *launcher, int ranks)
{
    int count = count_of(own), share = is_within(own, launcher) ? count_of(launcher) / ranks : count;
    share = share < count ? share : count;
    return share < 1 ? 1 : share;
}

/* srun without binding: the parent of all tasks may use the whole machine, so its cores are not the share. */
static bool srun_binds_none(void)
{
    const char *type = weft__variable("SLURM_CPU_BIND_TYPE");
    return !strcmp(local_rank_name(), "SLURM_LOCALID") && (!type || !*type || !strncmp(type, "none", 4));
}

int weft__cores(void)
{
    weft__cpu_set own, launcher;
    if (!weft__affinity(0, &own))
        return 1;
    if (!local_rank_name() || local_ranks() == 1)
        return count_of(&own);
    if (srun_binds_none() || !weft__affinity(weft__launcher(), &launcher))
        launcher = own;
    return weft__share_of_cores(&own, &launcher, local_ranks());
}

int weft__cpus(void)
{
    weft__cpu_set set;
    return weft__affinity(0, &set) ? count_of(&set) : 1;
}
