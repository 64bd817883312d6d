/* ranks.c - starts a program as ranks of tests/parallel/pairs.c: ranks N PLUGIN PROGRAM ARGUMENT .. It prints
 * how each rank ended, such as "rank 2: killed by 9", and returns 0 if all succeeded. It kills ranks that
 * still run some time after another has ended. */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 64, PATIENCE = 8 };

static int sockets[MOST][MOST];
static pid_t child[MOST];

static void start(int rank, int ranks, const char *plugin, char **program)
{
    char text[16 * MOST];
    int at = snprintf(text, sizeof text, "%d %d", rank, ranks);
    for (int q = 0; q < ranks; q++)
        at += snprintf(text + at, sizeof text - (size_t)at, " %d", sockets[rank][q]);
    child[rank] = fork();
    if (child[rank])
        return;
    for (int a = 0; a < ranks; a++)
        for (int b = 0; b < ranks; b++)
            if (a != rank && a != b)
                close(sockets[a][b]);
    setenv("WEFT_PAIRS", text, 1);
    setenv("WEFT_PARALLEL", plugin, 1);
    execvp(program[0], program);
    perror(program[0]);
    _exit(127);
}

static int print_end(int rank, int status)
{
    if (WIFSIGNALED(status))
        fprintf(stderr, "rank %d: killed by %d\n", rank, WTERMSIG(status));
    else if (WEXITSTATUS(status))
        fprintf(stderr, "rank %d: status %d\n", rank, WEXITSTATUS(status));
    return status ? 1 : 0;
}

int main(int argc, char **argv)
{
    int ranks = argc > 3 ? atoi(argv[1]) : 0, left = ranks, bad = 0, waited = 0, stopped = 0;
    if (ranks < 1 || ranks > MOST)
        return fputs("ranks N PLUGIN PROGRAM ARGUMENT ..\n", stderr), 2;
    for (int a = 0; a < ranks; a++)
        for (int b = a + 1, pair[2]; b < ranks; b++) {
            if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
                return perror("socketpair"), 2;
            sockets[a][b] = pair[0], sockets[b][a] = pair[1];
        }
    for (int q = 0; q < ranks; q++)
        start(q, ranks, argv[2], argv + 3);
    for (int a = 0; a < ranks; a++)
        for (int b = 0; b < ranks; b++)
            if (a != b)
                close(sockets[a][b]);
    while (left) {
        int status;
        pid_t ended = waitpid(-1, &status, left < ranks ? WNOHANG | WUNTRACED : WUNTRACED);
        if (ended > 0 && WIFSTOPPED(status)) {
            stopped++;
            continue;
        }
        for (int q = 0; ended > 0 && q < ranks; q++)
            if (child[q] == ended)
                child[q] = 0, left--, bad |= print_end(q, status);
        if (ended)
            continue;
        nanosleep(&(struct timespec){ 0, 20000000 }, NULL);
        bool enough = ++waited > PATIENCE * 50 || stopped == left;         /* ends ranks that hang */
        for (int q = 0; enough && q < ranks; q++)
            if (child[q])
                kill(child[q], SIGKILL);
    }
    return bad;
}
