/* keeper.h - a function in a process of its own, below a keeper that ends what that process has started. */
#ifndef WEFT_TOOLS_PLAN_KEEPER_H
#define WEFT_TOOLS_PLAN_KEEPER_H
#include <stdbool.h>
#include <sys/types.h>

typedef struct { pid_t pid; int control, report; } keeper;

/* Runs work(argument) in a process, in a session and under limits of its own, its input closed; only that
 * process keeps the file descriptor `its`. seconds: how long it may run, for the limit of processor time.
 * Returns false, and errno says why, if no process can be made. */
bool keeper_start(keeper *, void (*work)(void *argument), void *argument, int its, int seconds);
/* Ends the process and all processes that it has started, and waits until they are gone. First gives it
 * `grace` seconds to end by itself. Returns true if it has done so, with *status as waitpid has it. */
bool keeper_end(keeper *, double grace, int *status);
#endif
