/* gpu.c - the subcommand `weft gpu`: what the library would do with a GPU of this machine, or why it does
 * nothing with one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "weft.h"
#include "tools/tools.h"

static bool number_of(const char *word, int *index)
{
    char *end;
    errno = 0;
    const long n = strtol(word, &end, 10);
    *index = (int)n;
    return !errno && end != word && !*end && n >= 0 && n < 1024;
}

static int run_gpu(int argc, char **argv)
{
    int index = 0;
    if (argc > 1 || (argc == 1 && !number_of(argv[0], &index)))
        return say_error(USAGE, "gpu: \"%.60s\"; the number of a GPU is expected", argv[argc - 1]);
    weft *w = weft_open(&(weft_opts){ .device = WEFT_CUDA, .index = index });
    const bool good = weft_ok(w);
    if (good)
        weft_print_device(stdout, w);
    else {
        weft *other = weft_open(&(weft_opts){ .device = WEFT_BEST });
        printf("programs that ask for the best device run on: %s\n", weft_device_name(other));
        weft_close(other);
    }
    const int status = fflush(stdout) ? say_error(FAILED, "standard output: %s", strerror(errno)) :
                       good           ? GOOD :
                                        say_error(FAILED, "gpu: %s", weft_error_message(w));
    weft_close(w);
    return status;
}

const subcommand subcommand_gpu = {
    "gpu", "[NUMBER]",
    "says which code a GPU has found, which ways recurrent layers go on it by their size, and where what\n"
    "      was found out is kept; or why there is none",
    run_gpu
};
