/* keeper.c - runs a function in a process and ends all processes which that process has started.
 *
 * The command starts a keeper, and the keeper starts the worker. The keeper is a subreaper: orphaned
 * processes, daemons included, become its children, so it finds all of them. It runs until the worker ends,
 * or until the command ends its side of their socket; the system does so when the command is killed. If the
 * keeper is killed, the system kills the worker. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#ifdef __linux__
#include <sys/prctl.h>
#else                                            /* daemons of the worker are not found */
#define prctl(option, value) ((void)0)
#endif
#include <time.h>
#include <unistd.h>
#include "tools/plan/keeper.h"

enum { PROCESSES = 256, ATTEMPTS = 5000 };       /* ATTEMPTS: milliseconds before the keeper stops trying */

typedef struct { int32_t by_itself, status; } report;

/* ---- the worker ---- */
static void limit(int resource, rlim_t max)
{
    struct rlimit old;
    if (getrlimit(resource, &old) || old.rlim_cur <= max)
        return;
    old.rlim_cur = max;
    old.rlim_max = old.rlim_max < max ? old.rlim_max : max;
    setrlimit(resource, &old);
}

static long tasks_of_machine(void)               /* upper limit for any user */
{
    long tasks = 0;
    FILE *f = fopen("/proc/loadavg", "r");
    if (f && fscanf(f, "%*s %*s %*s %*d/%ld", &tasks) != 1)
        tasks = 0;
    if (f)
        fclose(f);
    return tasks;
}

/* The limits end a loop or a fork bomb even if the keeper is gone. Memory is limited to the machine's. */
static void set_limits(int seconds)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN), tasks = tasks_of_machine();
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_CPU, ((rlim_t)seconds + 1) * (rlim_t)(cores > 0 ? cores : 1));
    if (tasks > 0)
        limit(RLIMIT_NPROC, (rlim_t)tasks + PROCESSES);
#ifndef __SANITIZE_ADDRESS__                     /* it reserves more addresses than there is memory */
    limit(RLIMIT_AS, (rlim_t)sysconf(_SC_PHYS_PAGES) * (rlim_t)sysconf(_SC_PAGESIZE));
#endif
}

static void be_worker(pid_t parent, const sigset_t *mask, int seconds)
{
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0) {
        dup2(nothing, STDIN_FILENO);
        close(nothing);
    }
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_FAILURE);
    setsid();
    set_limits(seconds);
}

/* ---- the keeper ---- */
static void ignore_signal(int signal) { (void)signal; }

static pid_t parent_of(const char *process)      /* 0: the process has ended */
{
    char path[300], text[600] = "";
    snprintf(path, sizeof path, "/proc/%s/stat", process);
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = 0;
    if (f)
        fclose(f);
    const char *after = strrchr(text, ')');      /* a name may have brackets */
    int parent = 0;
    return after && sscanf(after + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

static void kill_children(void)
{
    DIR *all = opendir("/proc");
    pid_t me = getpid();
    for (struct dirent *e; all && (e = readdir(all));)
        if (isdigit((unsigned char)*e->d_name) && parent_of(e->d_name) == me)
            kill((pid_t)strtol(e->d_name, NULL, 10), SIGKILL);
    if (all)
        closedir(all);
}

/* Repeats until no child is left, because children of an ended child become the keeper's. */
static void end_all(pid_t worker, int *status)
{
    bool alive = true;                           /* until then no other group can have this number */
    for (int i = 0; i < ATTEMPTS; i++) {
        if (alive) {
            kill(-worker, SIGKILL);
            kill(worker, SIGKILL);
        }
        kill_children();
        int exit_status;
        pid_t ended;
        while ((ended = waitpid(-1, &exit_status, WNOHANG)) > 0)
            if (ended == worker) {
                *status = exit_status;
                alive = false;
            }
        if (ended < 0 && errno == ECHILD)
            return;
        nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
    }
}

static bool has_ended(pid_t worker)              /* leaves it a zombie, so its number stays reserved */
{
    siginfo_t info = { 0 };
    return !waitid(P_PID, (id_t)worker, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid == worker;
}

static void be_keeper(int command, pid_t worker, const sigset_t *mask)
{
    report result = { 0 };
    while (!(result.by_itself = has_ended(worker))) {
        struct pollfd poll_fd = { .fd = command, .events = POLLIN };
        if (ppoll(&poll_fd, 1, NULL, mask) > 0)
            break;
    }
    end_all(worker, &result.status);
    ssize_t written = write(command, &result, sizeof result);
    _exit(written == (ssize_t)sizeof result ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* ends: of the socket, the command's and the keeper's. Returns only in the worker. */
static void fork_worker(const int ends[2], int its, int seconds)
{
    sigset_t mask, child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    close(ends[0]);
    setsid();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigaction(SIGCHLD, &(struct sigaction){ .sa_handler = ignore_signal }, NULL);
    sigprocmask(SIG_BLOCK, &child, &mask);
    pid_t me = getpid(), worker = fork();
    if (worker) {
        close(its);
        if (worker < 0)
            _exit(EXIT_FAILURE);                 /* without a report */
        be_keeper(ends[1], worker, &mask);
    }
    close(ends[1]);
    be_worker(me, &mask, seconds);
}

/* ---- the command ---- */
bool keeper_start(keeper *k, void (*work)(void *), void *argument, int its, int seconds)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return false;
    k->pid = fork();
    if (!k->pid) {
        fork_worker(ends, its, seconds);
        work(argument);
        _exit(EXIT_SUCCESS);
    }
    close(ends[1]);
    k->socket = ends[0];
    if (k->pid < 0)
        close(k->socket);
    return k->pid > 0;
}

static bool reported(const keeper *k, double seconds)
{
    struct pollfd poll_fd = { .fd = k->socket, .events = POLLIN };
    int ready;
    do
        ready = poll(&poll_fd, 1, (int)(seconds * 1000) + 1);
    while (ready < 0 && errno == EINTR);
    return ready > 0;
}

bool keeper_end(keeper *k, double grace, int *status)
{
    report result = { 0 };
    bool ended = grace > 0 && reported(k, grace);
    shutdown(k->socket, SHUT_WR);
    ended = ended || reported(k, 2 * ATTEMPTS / 1000.);
    if (!ended || read(k->socket, &result, sizeof result) != (ssize_t)sizeof result)
        result = (report){ 0 };
    kill(k->pid, SIGKILL);                       /* no effect if it has reported */
    while (waitpid(k->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    close(k->socket);
    *status = result.status;
    return result.by_itself;
}
