/* transport.c - opens the transport of this process.
 *
 * A process initialises MPI once, and only if a launcher has started ranks. For a single process MPI would
 * only add threads and network interfaces. */
#include <stdlib.h>
#include <string.h>
#include "parallel/parallel.h"

static const weft__transport *opened;
static weft__world joined = { 0, 1, 0, 1 };
static bool tried;
static char fault[512], version[128];

const char *weft__transport_version(void) { return version; }

/* ---- the environment of the launcher ---- */
static long number_in(const char *variable)      /* -1: not a number */
{
    const char *text = weft__variable(variable);
    char *end = NULL;
    long n = text && *text ? strtol(text, &end, 10) : -1;
    return end && !*end ? n : -1;
}

/* Returns the transport of the launcher that started this process, "none" without a launcher; NULL, with a
 * reason, if it is unknown. */
static const char *launcher_transport(char *reason, size_t size)
{
    if (number_in("OMPI_COMM_WORLD_SIZE") > 0)
        return number_in("OMPI_COMM_WORLD_SIZE") > 1 ? "openmpi" : "none";
    if (weft__variable("PMIX_RANK"))
        return "openmpi";
    if (number_in("PMI_SIZE") > 0)
        return number_in("PMI_SIZE") > 1 ? "mpich" : "none";
    long tasks = number_in("SLURM_STEP_NUM_TASKS");
    if (tasks <= 1)
        return "none";
    snprintf(reason, size,
             "srun has started %ld tasks without --mpi; expected --mpi=pmix or --mpi=pmi2; otherwise each "
             "task trains alone, and all write the same file; WEFT_PARALLEL=none allows this",
             tasks);
    return NULL;
}

/* ---- opening ---- */
static void *library_of(const char *name, char *reason, size_t size)
{
    char file[64];
    if (*name == '/') {
        char text[300];
        void *library = weft__open_library(name, text, sizeof text);
        if (!library)
            snprintf(reason, size, "WEFT_PARALLEL: %s", text);
        return library;
    }
    if (strcmp(name, "openmpi") && strcmp(name, "mpich")) {
        snprintf(reason, size,
                 "WEFT_PARALLEL=%.60s; expected openmpi, mpich, none or the absolute path of a plug-in",
                 name);
        return NULL;
    }
    snprintf(file, sizeof file, "libweft_%s.so", name);
    return weft__open_plugin(file, NULL, reason, size);
}

static const weft__transport *check_transport(void *library, const char *name, char *reason, size_t size)
{
    const weft__transport *(*hello)(void) = NULL;
    bool found = weft__find_function(library, "weft_transport_open_v1", &hello);
    const weft__transport *t = found ? hello() : NULL;
    if (!t)
        snprintf(reason, size, "the plug-in of %.200s has no weft_transport_open_v1", name);
    else if (t->abi != WEFT__TRANSPORT_ABI)
        snprintf(reason, size,
                 "the plug-in of %.200s has interface version %d; expected %d; use the one built "
                 "with this library",
                 name, t->abi, WEFT__TRANSPORT_ABI);
    else
        return t;
    return NULL;
}

static void open_transport(void)
{
    const char *setting = weft__variable("WEFT_PARALLEL");
    const char *name = setting && *setting ? setting : launcher_transport(fault, sizeof fault);
    if (!name || !strcmp(name, "none"))
        return;
    void *library = library_of(name, fault, sizeof fault);
    const weft__transport *t = library ? check_transport(library, name, fault, sizeof fault) : NULL;
    bool open = t && t->open(&joined, version, sizeof version, fault, sizeof fault);
    version[sizeof version - 1] = fault[sizeof fault - 1] = 0;
    opened = open ? t : NULL;
    if (open)
        *fault = 0;
    else if (!*fault)
        snprintf(fault, sizeof fault, "the transport %.200s cannot be opened", name);
}

bool weft__transport_of(const weft__transport **out, weft__world *world, char *reason, size_t size)
{
    weft__lock(WEFT__LOADING);
    if (!tried)
        open_transport();
    tried = true;
    *out = opened;
    *world = joined;
    snprintf(reason, size, "%s", fault);
    weft__unlock(WEFT__LOADING);
    return !*fault;
}
