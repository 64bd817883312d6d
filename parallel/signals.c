/* signals.c - SIGTERM, which a batch system sends before it kills, and SIGUSR1, which it can be asked to send
 * earlier: noted, and told to all ranks at the next common call. */
#include <signal.h>
#include "parallel/parallel.h"

static volatile sig_atomic_t came;

static void note(int number) { (void)number, came = 1; }

void weft__signals_watch(void)
{
    static const int numbers[] = { SIGTERM, SIGUSR1 };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction now, ours = { .sa_handler = note, .sa_flags = SA_RESTART };
        sigemptyset(&ours.sa_mask);
        if (!sigaction(numbers[i], NULL, &now) && now.sa_handler == SIG_DFL)
            sigaction(numbers[i], &ours, NULL);  /* what the program has stays */
    }
}

bool weft__signal_came(void) { return came; }
