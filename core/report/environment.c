/* environment.c - warns on stderr of each environment variable WEFT_.. that the library does not know: a
 * misspelt variable would have no effect. */
#include <string.h>
#include "core/report/log.h"
#include "core/nearest.h"

enum { NAME = 64, WARNED = 16, PREFIX = 5 };

/* variables of docs/conventions.md, without the prefix */
static const char *const known[] = { "DEVICE", "THREADS", "ISA", "GEMM", "LOG", "CHECK", "BACKEND_PATH",
                                     "PARALLEL", "PARALLEL_TIMEOUT", "PARALLEL_OVERLAP", "NCCL", "SYNC",
                                     "RECUR", "CACHE", NULL };
/* variables of this tree's tests and tools, which run programs of the library; EMU_ and PAIRS are prefixes */
static const char *const of_tests[] = { "TESTS",     "TABLES",  "PYTHON",  "GOLDEN",      "UPDATE_GOLDEN",
                                        "SMALL",     "SOAK",    "LIMIT",   "LANES",       "REQUIRE",
                                        "AGAIN",     "MANAGED", "FUZZ",    "KILLS",       "SLOW_OF",
                                        "SLOW_RATE", "PC",      "NO_TIDY", "DEPS_LOCKED", "REF",
                                        NULL };

static const char *known_name(int i, const void *unused)
{
    (void)unused;
    return known[i];
}

static bool is_in(const char *const *names, const char *name)
{
    while (*names && strcmp(*names, name))
        names++;
    return *names;
}

static bool is_known(const char *name)
{
    return is_in(known, name) || is_in(of_tests, name) || !strncmp(name, "EMU_", 4) ||
           !strncmp(name, "PAIRS", 5);
}

/* Returns whether this process has not warned of it yet. */
static bool is_new(const char *name)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static char warned[WARNED][NAME];
    static int n;
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < n && strcmp(warned[i], name))
        i++;
    bool fresh = i == n && n < WARNED;
    if (fresh)
        memcpy(warned[n++], name, strlen(name) + 1);
    pthread_mutex_unlock(&lock);
    return fresh;
}

void weft__check_environment(void)
{
    char **variable = weft__environment();
    if (!variable || weft__log_is_off() || weft__launched_rank())
        return;
    for (; *variable; variable++) {
        char name[NAME];
        size_t n = strcspn(*variable, "=");
        if (strncmp(*variable, "WEFT_", PREFIX) || n - PREFIX >= sizeof name)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)(n - PREFIX), *variable + PREFIX);
        if (is_known(name) || !is_new(name))
            continue;
        const char *near = weft__nearest(name, known_name, NULL);
        weft__warn("unknown variable WEFT_%s%s%s%s (docs/conventions.md lists all; WEFT_LOG=0 silences this)",
                   name, near ? "; WEFT_" : "", near ? near : "", near ? " is near" : "");
    }
}
