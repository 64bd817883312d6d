/* one_step.c - a program that opens a context, makes a model, trains one step and ends, to measure the cost
 * of starting. bench/growth.py measures it from exec to exit. With an argument it prints its peak of resident
 * memory in kB, which includes the peak of the process that started it. */
#include <stdio.h>
#include "weft.h"

enum { SEQUENCES = 64, LONGEST = 20, TOKENS = 10 };

static void print_peak(void)
{
    char line[256];
    long kilobytes = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status) && sscanf(line, "VmHWM: %ld", &kilobytes) != 1)
        ;
    printf("%ld\n", kilobytes);
    if (status)
        fclose(status);
}

int main(int argc, char **argv)
{
    (void)argv;
    weft *w = weft_open(NULL);
    weft_module *m = weft_module_new(w, "net");
    weft_embedding *table =
        weft_embedding_new(m, "table", &(weft_embedding_opts){ .rows = TOKENS, .columns = 16 });
    weft_rnn *lstm = weft_lstm_new(m, "lstm", &(weft_rnn_opts){ .input = 16, .hidden = 32 });
    weft_linear *head = weft_linear_new(m, "head", &(weft_linear_opts){ .in = 32, .out = TOKENS });
    weft_optim *adam = weft_adamw_new(m, &(weft_adam_opts){ .lr = 1e-3 });
    int32_t len[SEQUENCES], id[SEQUENCES * LONGEST], n = 0;
    for (int s = 0; s < SEQUENCES; s++) {
        len[s] = 1 + s % LONGEST;
        for (int t = 0; t < len[s]; t++)
            id[n++] = (s * 7 + t) % TOKENS;
    }
    weft_tensor *x = weft_ragged_ints(w, id, &(weft_lengths){ .n = SEQUENCES, .len = len });
    weft_tensor *y = weft_rnn_run(lstm, weft_embedding_run(table, x), WEFT_ZERO_STATE).y;
    weft_backward(weft_mean_loss(weft_cross_entropy(weft_linear_run(head, y), x, NULL)));
    weft_optim_step(adam);
    bool ok = weft_ok(w);
    weft_close(w);
    if (argc > 1)
        print_peak();
    return !ok;
}
