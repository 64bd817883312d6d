/* foreign.c - runs a planner from a shared object in a separate process, and checks the plan that it returns
 * through a pipe.
 *
 * A planner that crashes, loops or returns garbage is an error with a message. This protects against
 * mistakes, not against attacks: the code has the user's rights. */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tools/plan/keeper.h"
#include "tools/plan/plan.h"

enum { MAGIC = 0x77656674 };
/* The first bytes in the pipe. Batches and segments follow; the plan's pointers are the child's. */
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
static bool write_all(int to, const void *from, size_t n)
{
    for (const char *next = from; n;) {
        ssize_t k = write(to, next, n);
        if (k < 0 && errno != EINTR)
            return false;
        next += k > 0 ? k : 0;
        n -= k > 0 ? (size_t)k : 0;
    }
    return true;
}

static weft_status make_there(const char *path, const char *name, const char *options, const int32_t *len,
                              int64_t n, head *h)
{
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL), *memory;
    const weft_planner *planner = object ? dlsym(object, name) : NULL;
    weft_plan_opts o;
    if (!planner)
        return weft_plan_refuse(WEFT_ENOENT, "%s", dlerror());
    weft_status s = weft_plan_parse_options(planner, options, &o, &memory);
    h->promises = planner->promises;
    h->capacity = o.capacity;
    return s == WEFT_OK ? weft_plan_make(planner, len, n, &o, &h->plan) : s;
}

typedef struct {
    int from, to;                                /* ends of the pipe; from is the command's */
    char **part;                                 /* path, name, options */
    const int32_t *len;
    int64_t n;
} job;

/* Does not return. Output of the planner goes to stderr. */
static void be_child(void *argument)
{
    const job *j = argument;
    int to = j->to;
    head h = { .magic = MAGIC };
    const weft_plan *p = &h.plan;
    close(j->from);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    h.status = (int32_t)make_there(j->part[0], j->part[1], j->part[2], j->len, j->n, &h);
    snprintf(h.message, sizeof h.message, "%s", weft_plan_message());
    fflush(NULL);                                /* the parent ends this process when it has the plan */
    bool ok = write_all(to, &h, sizeof h) && write_all(to, p->batch, (size_t)p->batches * sizeof *p->batch) &&
              write_all(to, p->segment, (size_t)p->segments * sizeof *p->segment);
    _exit(ok ? GOOD : FAILED);
}

/* ---- in the parent ---- */
typedef enum { WHOLE, CUT, LATE, NO_MEMORY } came;

/* Reads n bytes, until the time limit. */
static came read_all(int from, void *to, size_t n, double deadline)
{
    for (char *next = to; n;) {
        double remaining = deadline - seconds_now();
        struct pollfd poll_fd = { .fd = from, .events = POLLIN };
        int ready = remaining > 0 ? poll(&poll_fd, 1, (int)(remaining * 1000) + 1) : 0;
        if (!ready)
            return LATE;
        ssize_t k = ready < 0 ? -1 : read(from, next, n);
        if (!k || (k < 0 && errno != EINTR))
            return CUT;
        next += k > 0 ? k : 0;
        n -= k > 0 ? (size_t)k : 0;
    }
    return WHOLE;
}

/* A segment has a token or belongs to an empty sequence. A batch has a segment or a row. A bool is 0 or 1. */
static bool is_sane(const head *h, int64_t tokens, int64_t n)
{
    unsigned char in_rows;
    memcpy(&in_rows, &h->plan.in_rows, sizeof in_rows);
    return h->magic == MAGIC && in_rows <= 1 && h->plan.segments >= 0 && h->plan.segments <= tokens + n &&
           h->plan.batches >= 0 && h->plan.batches <= tokens + n + 1;
}

static came read_plan(int from, head *h, int64_t tokens, int64_t n, double deadline, weft_plan *p)
{
    came c = read_all(from, h, sizeof *h, deadline);
    if (c == WHOLE && !is_sane(h, tokens, n)) {
        h->magic = 0;
        return c; /* not a plan */
    }
    if (c != WHOLE || h->status != WEFT_OK)
        return c;
    *p = h->plan;
    p->shard = 0; /* this and the room are of the library */
    memset(p->room, 0, sizeof p->room);
    p->batch = malloc((size_t)(p->batches + 1) * sizeof *p->batch);
    p->segment = malloc((size_t)(p->segments + 1) * sizeof *p->segment);
    if (!p->batch || !p->segment)
        return NO_MEMORY;
    c = read_all(from, p->batch, (size_t)p->batches * sizeof *p->batch, deadline);
    return c == WHOLE ? read_all(from, p->segment, (size_t)p->segments * sizeof *p->segment, deadline) : c;
}

/* How the planner's process ended. by_itself: it was not stopped, and status is waitpid's. */
typedef struct { came came; bool by_itself; int status; } ending;

static void say_ending(const char *text, const ending *e, int seconds)
{
    if (e->came == LATE)
        say_error(FAILED, "plan: %s: no plan within %d s; stopped the planner", text, seconds);
    else if (e->came == NO_MEMORY)
        say_error(FAILED, "plan: %s: out of memory for its plan", text);
    else if (!e->by_itself)
        say_error(FAILED, "plan: %s: the planner closed its pipe without a plan and kept running; stopped it",
                  text);
    else if (WIFSIGNALED(e->status))
        say_error(FAILED, "plan: %s: the planner died of signal %d, %s", text, WTERMSIG(e->status),
                  strsignal(WTERMSIG(e->status)));
    else
        say_error(FAILED, "plan: %s: the planner ended without a plan", text);
}

/* Returns whether the plan is valid. If not, the error is printed. */
static bool judge(const char *text, const head *h, const planned *t, const int32_t *len, int64_t n)
{
    if (h->magic != MAGIC)
        return say_failure("plan: %s: the planner's output in its pipe is not a plan", text);
    if (h->status != WEFT_OK && !*h->message)
        return say_failure("plan: %s: the planner returned status %d (%s) without a message", text,
                           (int)h->status, weft_status_name((weft_status)h->status));
    if (h->status != WEFT_OK)
        return say_failure("plan: %s: %.*s", text, (int)sizeof h->message - 1, h->message);
    if (h->capacity < 0 || h->capacity > INT32_MAX)
        return say_failure("plan: %s: the planner returned capacity %lld; expected 0 .. %d", text,
                           (long long)h->capacity, INT32_MAX);
    return weft_plan_check(&t->plan, len, n, h->promises & ~(unsigned)WEFT_PLAN_IN_ORDER) == WEFT_OK ||
           say_failure("plan: %s: %s", text, weft_plan_message());
}

static bool start(keeper *k, job *j, int seconds)
{
    int ends[2];
    fflush(NULL);
    if (pipe(ends))
        return false;
    j->from = ends[0];
    j->to = ends[1];
    bool ok = keeper_start(k, be_child, j, j->to, seconds);
    close(j->to);
    if (!ok)
        close(j->from);
    return ok;
}

static bool run_child(const char *text, char *part[3], planned *t, const int32_t *len, int64_t n)
{
    job j = { .part = part, .len = len, .n = n };
    keeper k;
    if (!start(&k, &j, t->seconds))
        return say_failure("plan: %s: cannot create a process: %s", text, strerror(errno));
    head h = { 0 };
    int64_t tokens = 0;
    for (int64_t i = 0; i < n; i++)
        tokens += len[i];
    double deadline = seconds_now() + t->seconds;
    ending e = { .came = read_plan(j.from, &h, tokens, n, deadline, &t->plan) };
    close(j.from);
    /* the pipe closes a moment before the process can be waited for */
    e.by_itself = keeper_end(&k, e.came == CUT ? 1 : 0, &e.status);
    if (e.came != WHOLE)
        return say_ending(text, &e, t->seconds), false;
    t->planner = (weft_planner){ .name = text, .promises = h.promises };
    t->opts.capacity = h.capacity;
    h.message[sizeof h.message - 1] = 0;
    return judge(text, &h, t, len, n);
}

bool plan_foreign(planned *t, const int32_t *len, int64_t n)
{
    char *copy SCOPED = strdup(t->text), *part[3] = { copy, NULL, NULL };
    for (int i = 1; i < 3 && part[i - 1]; i++)
        if ((part[i] = strchr(part[i - 1], ':')))
            *part[i]++ = 0;
    if (!copy || !part[1] || !*part[1])
        return say_failure("plan: %s: expected PATH/x.so:NAME[:OPTIONS]", t->text);
    return run_child(t->text, part, t, len, n);
}
