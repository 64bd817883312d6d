/* keeper.h - runs a function in a process, and ends all processes that it starts. */
#ifndef WEFT_TOOLS_PLAN_KEEPER_H
#define WEFT_TOOLS_PLAN_KEEPER_H
#include <stdbool.h>
#include <sys/types.h>

typedef struct { pid_t pid; int socket; } keeper;

/* Runs work(argument) in a process with its own session and limits and a closed stdin. Only that process
 * keeps the file descriptor `its`. seconds: limit of CPU time. Returns false and sets errno if it cannot
 * create a process. */
bool keeper_start(keeper *, void (*work)(void *argument), void *argument, int its, int seconds);
/* Waits up to `grace` seconds, then ends the process and its descendants, and waits until they ended.
 * Returns true if the process ended before that, with *status as from waitpid. */
bool keeper_end(keeper *, double grace, int *status);
#endif
