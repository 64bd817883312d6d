/* box.c - starts a program with fewer rights: box KIND [ARGUMENT..].
 *   has                                  prints what this system does not prevent
 *   alone COMMAND..                      runs COMMAND without network, and without other processes in sight
 *   files READ.. -- WRITE.. -- COMMAND.. lets COMMAND read and write only below these files and folders */
#define _GNU_SOURCE
#include "common/answer.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static bool put(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    bool done = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);
    close(file);
    return done;
}

/* Makes namespaces for processes, network, mounts and messages. A user without privileges also
 * needs one for users; the user's number stays the same. Returns whether it succeeds. */
static bool leave_the_others(void)
{
    char user[64], group[64];
    bool root = geteuid() == 0;
    snprintf(user, sizeof user, "%d %d 1", (int)geteuid(), (int)geteuid());
    snprintf(group, sizeof group, "%d %d 1", (int)getegid(), (int)getegid());
    return fence_wanted("namespaces") &&
           unshare((root ? 0 : CLONE_NEWUSER) | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWNS |
                    CLONE_NEWIPC) == 0 &&
           (root || (put("/proc/self/setgroups", "deny") && put("/proc/self/uid_map", user) &&
                     put("/proc/self/gid_map", group)));
}

/* Shows only the new namespace's processes. The first process of a namespace must remain: when it ends,
 * the kernel ends all others. */
static bool see_only_own(void)
{
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0;
}

static int status_of(pid_t wanted)
{
    int status = 0;
    for (pid_t ended = 0; ended != wanted;)
        if ((ended = wait(&status)) < 0 && errno != EINTR)
            return 126;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Runs argv in new namespaces, or only tries if argv is NULL. Returns the status; -1: that is not
 * possible here. */
static int alone(char **argv)
{
    enum { NOT_HERE = 125 };
    pid_t own = fork(), first = -1;
    if (own > 0) {
        signal(SIGINT, SIG_IGN);
        int status = status_of(own);
        return status == NOT_HERE ? -1 : status;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (own < 0 || !leave_the_others() || (first = fork()) < 0)
        _exit(NOT_HERE);
    if (first > 0)
        _exit(status_of(first));
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!see_only_own())
        _exit(NOT_HERE);
    pid_t command = argv ? fork() : 0;
    if (command != 0)
        _exit(status_of(command));
    if (argv)
        execvp(argv[0], argv);
    _exit(argv ? 127 : 0);
}

static void print_missing(void)
{
    int version = fence_landlock();
    bool namespaces = alone(NULL) == 0;
    if (!fence_exists())
        puts("an answer can start processes and open files (no seccomp)");
    if (!version)
        puts("a loading answer can read all files that you can read, and so can the compiler, whose list of "
             "files is checked afterwards (no Landlock)");
    if (!namespaces)
        puts("the compiler sees other processes and the network "
             "(no namespaces for users without privileges)");
}

/* Ends the list at the next "--" and returns the argument after it. */
static char **end_of(char **list)
{
    while (*list && strcmp(*list, "--"))
        list++;
    if (!*list)
        exit(2);
    *list = NULL;
    return list + 1;
}

int main(int argc, char **argv)
{
    char **command = argv + 2;
    if (argc == 2 && !strcmp(argv[1], "has"))
        return print_missing(), 0;
    if (argc > 2 && !strcmp(argv[1], "alone")) {
        int status = alone(command);
        if (status >= 0)
            return status;
    } else if (argc > 4 && !strcmp(argv[1], "files")) {
        char **reads = command, **writes = end_of(reads);
        command = end_of(writes);
        fence_files((const char *const *)reads, (const char *const *)writes);
    } else
        return 2;
    execvp(command[0], command);
    perror(command[0]);
    return 127;
}
