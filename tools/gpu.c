/* gpu.c - `weft gpu`: reports how the library uses a GPU of this machine, or why it uses none. */
#include "weft_lab.h"
#include "tools/options.h"

static int run_gpu(int argc, char **argv)
{
    int64_t index = 0;
    if (argc > 1 || (argc == 1 && !parse_whole(argv[0], 0, 1023, &index)))
        return usage_error(&subcommand_gpu, "found \"%.60s\"; expected the number of one GPU",
                           argv[argc - 1]);
    weft *w = weft_open(&(weft_opts){ .device = WEFT_CUDA, .index = (int)index });
    const bool good = weft_ok(w);
    if (good)
        weft_print_device(stdout, w);
    else {
        weft *other = weft_open(&(weft_opts){ .device = WEFT_BEST });
        printf("programs with the device WEFT_BEST run on: %s\n", weft_device_name(other));
        weft_close(other);
    }
    const int status = good ? GOOD : say_error(FAILED, "gpu: %s", weft_error_message(w));
    weft_close(w);
    return finish_output("gpu", status);
}

const subcommand subcommand_gpu = {
    .name = "gpu",
    .about = "reports how the library uses a GPU of this machine, or why it uses none",
    .usage = "[NUMBER]",
    .details =
        "Reports for GPU NUMBER (0) which compiled code it runs, which kernels recurrent layers use at "
        "each size,\n"
        "and where measured choices are stored. Without a GPU it reports the reason.\n",
    .run = run_gpu
};
