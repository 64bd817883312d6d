/* weft.c - the command `weft`: subcommands, one file each. */
#include <stdarg.h>
#include <string.h>
#include "weft.h"
#include "tools/tools.h"

static const subcommand *const all[] = { &subcommand_plan, &subcommand_corpora, &subcommand_lab,
                                         &subcommand_gpu };

int say_error(int status, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fputs("weft: ", stderr);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    va_end(list);
    return status;
}

static void describe(FILE *to, const subcommand *s)
{
    fprintf(to, "  weft %s %s\n      %s\n", s->name, s->usage, s->about);
}

static int usage(FILE *to)
{
    fprintf(to, "usage: weft SUBCOMMAND ..\n\n");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        describe(to, all[i]);
    fprintf(to, "\nweft --version: %s\n", weft_version());
    return to == stdout ? GOOD : USAGE;
}

static bool asks_for_help(const char *word) { return !strcmp(word, "--help") || !strcmp(word, "-h"); }

/* Help wherever it is asked for, also behind other arguments. */
static int run(const subcommand *s, int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (asks_for_help(argv[i]))
            return describe(stdout, s), GOOD;
    return s->run(argc, argv);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return usage(stderr);
    if (asks_for_help(argv[1]))
        return usage(stdout);
    if (!strcmp(argv[1], "--version"))
        return printf("%s\n", weft_version()) < 0 ? FAILED : GOOD;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(argv[1], all[i]->name))
            return run(all[i], argc - 2, argv + 2);
    return say_error(USAGE, "there is no subcommand \"%.60s\"; weft --help lists them", argv[1]);
}
