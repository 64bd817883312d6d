/* foreign.c - planners of shared objects. Each runs in a process of its own, so that a planner which crashes,
 * loops or returns garbage is an error with a message. Its code has the rights of the user, so this does not
 * protect against harm. The child leaves its plan in a file in memory, and the command checks it again. */
#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tools/plan/plan.h"

enum { MAGIC = 0x77656674 };
/* The begin of the file; batches and segments follow. Of the plan only the counts have a meaning. */
typedef struct {
    uint32_t magic;
    int32_t status;
    uint32_t promises;
    int64_t capacity;
    weft_plan plan;
    char message[512];
} head;

bool is_foreign(const char *text)
{
    const char *colon = strchr(text, ':');
    return memchr(text, '/', colon ? (size_t)(colon - text) : strlen(text)) != NULL;
}

/* ---- in the child ---- */
/* What the child needs: path, name and options of the planner, and the lengths. */
typedef struct {
    char **part;
    const int32_t *len;
    int64_t n;
} job;

static weft_status make_there(const job *j, head *h)
{
    void *object = dlopen(j->part[0], RTLD_NOW | RTLD_LOCAL), *memory;
    const weft_planner *planner = object ? dlsym(object, j->part[1]) : NULL;
    weft_plan_opts o;
    if (!planner)
        return weft_plan_refuse(WEFT_ENOENT, "%s", dlerror());
    weft_status s = weft_plan_parse_options(planner, j->part[2], &o, &memory);
    h->promises = planner->promises;
    h->capacity = o.capacity;
    return s == WEFT_OK ? weft_plan_make(planner, j->len, j->n, &o, &h->plan) : s;
}

/* Leads a group of its own, which ends with the command. Its input is empty, its output goes to stderr. */
static void detach(pid_t parent)
{
    int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(FAILED);
}

static void write_array(const void *at, size_t bytes, int64_t n, FILE *to)
{
    if (n > 0)
        fwrite(at, bytes, (size_t)n, to);
}

/* Writes the plan to the file. Does not return. */
static void be_child(const job *j, FILE *to)
{
    head h = { .magic = MAGIC };
    h.status = (int32_t)make_there(j, &h);
    snprintf(h.message, sizeof h.message, "%s", weft_plan_message());
    fwrite(&h, sizeof h, 1, to);
    write_array(h.plan.batch, sizeof *h.plan.batch, h.plan.batches, to);
    write_array(h.plan.segment, sizeof *h.plan.segment, h.plan.segments, to);
    _exit(fflush(NULL) ? FAILED : GOOD);
}

/* ---- in the parent ---- */
/* A segment has a token, or is an empty sequence's; a batch has a segment, or a row. */
static bool is_sane(const head *h, int64_t tokens, int64_t n)
{
    const weft_plan *p = &h->plan;
    return h->magic == MAGIC && p->segments >= 0 && p->segments <= tokens + n && p->batches >= 0 &&
           p->batches <= tokens + n + 1;
}

/* Reads the plan of n sequences. False: the file ends before the plan does. */
static bool read_plan(FILE *from, head *h, const int32_t *len, int64_t n, weft_plan *p)
{
    rewind(from);
    if (fread(h, sizeof *h, 1, from) != 1)
        return false;
    *p = (weft_plan){
        .sequences = n, .empty = h->plan.empty, .dropped = h->plan.dropped, .in_rows = h->plan.in_rows
    };
    for (int64_t i = 0; i < n; i++) {
        p->tokens += len[i];
        p->not_empty += len[i] > 0;
    }
    if (!is_sane(h, p->tokens, n))
        h->magic = 0;
    if (!h->magic || h->status != WEFT_OK)
        return true;
    p->batches = h->plan.batches;
    p->segments = h->plan.segments;
    p->batch = get_memory(p->batches, sizeof *p->batch);
    p->segment = get_memory(p->segments, sizeof *p->segment);
    return fread(p->batch, sizeof *p->batch, (size_t)p->batches, from) == (size_t)p->batches &&
           fread(p->segment, sizeof *p->segment, (size_t)p->segments, from) == (size_t)p->segments;
}

/* True if there is a plan that holds; else the error was said. */
static bool judge(const char *text, const head *h, const planned *t, const int32_t *len, int64_t n)
{
    if (h->magic != MAGIC)
        say_error(FAILED, "plan: %s: the planner wrote to the file of its plan", text);
    else if (h->status != WEFT_OK && !*h->message)
        say_error(FAILED, "plan: %s: the planner returned status %d (%s) without a message", text,
                  (int)h->status, weft_status_name((weft_status)h->status));
    else if (h->status != WEFT_OK)
        say_error(FAILED, "plan: %s: %.*s", text, (int)sizeof h->message - 1, h->message);
    else if (h->capacity < 0 || h->capacity > INT32_MAX)
        say_error(FAILED, "plan: %s: the planner returned a capacity of %lld; 0 .. %d is expected", text,
                  (long long)h->capacity, INT32_MAX);
    else if (weft_plan_check(&t->plan, len, n, h->promises & ~(unsigned)WEFT_PLAN_IN_ORDER) != WEFT_OK)
        say_error(FAILED, "plan: %s: %s", text, weft_plan_message());
    else
        return true;
    return false;
}

static bool has_ended(pid_t child) /* it stays a zombie, so its group keeps its number */
{
    siginfo_t is = { 0 };
    return !waitid(P_PID, (id_t)child, &is, WEXITED | WNOHANG | WNOWAIT) && is.si_pid == child;
}

static bool is_child(const char *process)
{
    char path[300], text[600] = "";
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%s/stat", process);
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = 0;
    if (f)
        fclose(f);
    const char *after = strrchr(text, ')'); /* a name may have brackets */
    return after && sscanf(after + 1, " %*c %d", &parent) == 1 && parent == (int)getpid();
}

/* Ends the processes that the planner has left behind: orphans become children of the command. */
static void end_orphans(void)
{
    for (bool found = true; found; nanosleep(&(struct timespec){ 0, 1000000 }, NULL)) {
        DIR *all = opendir("/proc");
        found = false;
        for (struct dirent *e; all && (e = readdir(all));)
            if (isdigit((unsigned char)*e->d_name) && is_child(e->d_name))
                found |= !kill((pid_t)strtol(e->d_name, NULL, 10), SIGKILL);
        if (all)
            closedir(all);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
    }
}

/* Waits for the child, and stops it and its group after so many seconds. Returns whether it ended before. */
static bool await(pid_t child, double seconds, int *status)
{
    double until = seconds_now() + seconds;
    bool ended;
    while (!(ended = has_ended(child)) && seconds_now() < until)
        nanosleep(&(struct timespec){ 0, 200000 }, NULL);
    kill(-child, SIGKILL);
    kill(child, SIGKILL);
    while (waitpid(child, status, 0) < 0 && errno == EINTR)
        ;
    end_orphans();
    return ended;
}

/* Runs the child. Returns false, and says why, if it has left no plan. */
static bool run_child(const char *text, const job *j, int seconds, FILE *file, head *h, weft_plan *p)
{
    int status;
    fflush(NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t parent = getpid(), child = file ? fork() : -1;
    if (child < 0)
        return say_failure("plan: %s: no process can be made: %s", text, strerror(errno));
    if (!child) {
        detach(parent);
        be_child(j, file);
    }
    if (!await(child, seconds, &status))
        return say_failure("plan: %s: no plan within %d s; the planner was stopped", text, seconds);
    if (WIFSIGNALED(status))
        return say_failure("plan: %s: the planner died of signal %d, %s", text, WTERMSIG(status),
                           strsignal(WTERMSIG(status)));
    return read_plan(file, h, j->len, j->n, p) ||
           say_failure("plan: %s: the planner ended without a plan", text);
}

bool plan_foreign(planned *t, const int32_t *len, int64_t n)
{
    char *copy = strdup(t->text), *part[3] = { copy, NULL, NULL };
    head h = { 0 };
    for (int i = 1; i < 3 && part[i - 1]; i++)
        if ((part[i] = strchr(part[i - 1], ':')))
            *part[i]++ = 0;
    bool good = copy && part[1] && *part[1];
    if (!good)
        say_error(FAILED, "plan: %s: PATH/x.so:NAME[:options] is expected", t->text);
    int memory = good ? memfd_create("plan", 0) : -1;
    FILE *file = memory < 0 ? NULL : fdopen(memory, "w+");
    good = good && run_child(t->text, &(job){ part, len, n }, t->seconds, file, &h, &t->plan);
    if (file)
        fclose(file);
    free(copy);
    t->own = (weft_planner){ .name = t->text, .promises = h.promises };
    t->planner = &t->own;
    t->opts.capacity = h.capacity;
    h.message[sizeof h.message - 1] = 0;
    return good && judge(t->text, &h, t, len, n);
}
