/* slow_pack_peer.c - two pipes and a child; see slow_pack_peer.h. */
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "slow_pack_peer.h"

extern char **environ;

/* in, out: pipes to and from it; 0: no such program */
static pid_t start(char *const arguments[], const int in[2], const int out[2])
{
    posix_spawn_file_actions_t files;
    pid_t pid = 0;
    if (posix_spawn_file_actions_init(&files))
        return 0;
    bool good = !posix_spawn_file_actions_adddup2(&files, in[0], 0) &&
                !posix_spawn_file_actions_adddup2(&files, out[1], 1) &&
                !posix_spawn_file_actions_addclose(&files, in[1]) &&
                !posix_spawn_file_actions_addclose(&files, out[0]);
    good = good && !posix_spawnp(&pid, arguments[0], &files, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&files);
    return good ? pid : 0;
}

peer peer_start(const char *script, int threads, const char *device)
{
    char  number[16], line[200];
    char *python = getenv("WEFT_PYTHON");
    snprintf(number, sizeof number, "%d", threads);
    char *arguments[] = { python && *python ? python : "python3",
                          (char *)(uintptr_t)script,
                          "--threads",
                          number,
                          "--device",
                          (char *)(uintptr_t)device,
                          NULL };
    int   in[2], out[2];
    peer  p = { 0 };
    if (access(script, R_OK) || pipe(in))
        return p;
    if (pipe(out)) {
        close(in[0]), close(in[1]);
        return p;
    }
    signal(SIGPIPE, SIG_IGN);                    /* if it dies that is told by what is read */
    p.pid = start(arguments, in, out);
    close(in[0]), close(out[1]);
    p.to = fdopen(in[1], "w"), p.from = fdopen(out[0], "r");
    if (!p.pid || !p.to || !p.from || !fgets(line, sizeof line, p.from) ||
        sscanf(line, "{\"who\": \"%99[^\"]", p.who) != 1)
        peer_end(&p);
    return p;
}

run peer_run(peer *p, char setup, int64_t batch, int64_t T, bool packed, bool train)
{
    run  r = { NAN, NAN, NAN };
    char line[400] = "";
    if (!p->to)
        return r;
    fprintf(p->to, "%c %lld %lld %s %s\n", setup, (long long)batch, (long long)T,
            packed ? "packed" : "padded", train ? "train" : "forward");
    if (fflush(p->to) || !fgets(line, sizeof line, p->from)) {
        fprintf(stderr, "slow_pack: %s does not answer any more\n", p->who);
        peer_end(p);
    } else if (sscanf(line, "{\"ms\": %lf, \"loss\": %lf, \"norm\": %lf}", &r.ms, &r.loss, &r.norm) != 3) {
        fprintf(stderr, "slow_pack: %s: %s", p->who, line);
        r.ms = NAN;
    }
    return r;
}

void peer_end(peer *p)
{
    if (p->to)
        fclose(p->to);                           /* it ends when there is nothing more to read */
    if (p->from)
        fclose(p->from);
    if (p->pid)
        waitpid(p->pid, NULL, 0);
    *p = (peer){ 0 };
}
