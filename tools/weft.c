/* weft.c - the command `weft`: finds the subcommand and prints help. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "weft.h"
#include "core/nearest.h"
#include "tools/options.h"

static const subcommand *const all[] = { &subcommand_plan,  &subcommand_corpora, &subcommand_lab,
                                         &subcommand_gpu,   &subcommand_info,    &subcommand_list,
                                         &subcommand_show,  &subcommand_diff,    &subcommand_convert,
                                         &subcommand_check, &subcommand_env,     &subcommand_run,
                                         &subcommand_lengths };
enum { SUBCOMMANDS = sizeof all / sizeof *all };

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

static void *require_memory(void *memory, int64_t n, size_t bytes)
{
    if (!memory)
        exit(say_error(FAILED, "out of memory for %lld elements of %zu bytes", (long long)n, bytes));
    return memory;
}

void *get_memory(int64_t n, size_t bytes) { return require_memory(calloc((size_t)n + 1, bytes), n, bytes); }

void *get_more(void *old, int64_t n, size_t bytes)
{
    bool fits = n >= 0 && (uint64_t)n < SIZE_MAX / bytes;
    return require_memory(fits ? realloc(old, ((size_t)n + 1) * bytes) : NULL, n, bytes);
}

void free_memory(void *pointer)
{
    void *memory;
    memcpy(&memory, pointer, sizeof memory);
    free(memory);
}

int finish_output(const char *name, int status)
{
    if (!fflush(stdout) && !ferror(stdout))
        return status;
    return say_error(FAILED, "%s: cannot write stdout: %s", name, strerror(errno));
}

/* ---- help ---- */
static int help_all(FILE *to)
{
    fprintf(to, "usage: weft SUBCOMMAND ..\n\n");
    for (int i = 0; i < SUBCOMMANDS; i++)
        fprintf(to, "  weft %-8s %s\n", all[i]->name, all[i]->about);
    fprintf(to, "\nweft SUBCOMMAND --help lists the options; weft --version prints %s\n", weft_version());
    return to == stdout ? finish_output("help", GOOD) : USAGE;
}

static int help_one(const subcommand *s)
{
    printf("usage:\n  weft %s %s\n\n%s", s->name, s->usage, s->details);
    if (s->options) {
        printf("\nOptions, anywhere on the line, with defaults in parentheses:\n");
        print_options(s, stdout);
    }
    return finish_output("help", GOOD);
}

static const subcommand *find(const char *name)
{
    for (int i = 0; i < SUBCOMMANDS; i++)
        if (!strcmp(name, all[i]->name))
            return all[i];
    return NULL;
}

static const char *word_at(int i, const void *context)
{
    (void)context;
    return i < SUBCOMMANDS ? all[i]->name : i == SUBCOMMANDS ? "help" : NULL;
}

static int no_such_subcommand(const char *word)
{
    const char *near = weft__nearest(word, word_at, NULL);
    return say_error(USAGE, "unknown subcommand \"%.60s\"%s%s%s; see weft --help", word, near ? "; \"" : "",
                     near ? near : "", near ? "\" is near" : "");
}

static int help(int argc, char **argv)
{
    if (!argc)
        return help_all(stdout);
    const subcommand *s = find(argv[0]);
    if (argc > 1)
        return say_error(USAGE, "help: found \"%.60s\"; expected at most one subcommand; see weft --help",
                         argv[1]);
    return s ? help_one(s) : no_such_subcommand(argv[0]);
}

static bool asks_for_help(const char *word) { return !strcmp(word, "--help") || !strcmp(word, "-h"); }

int main(int argc, char **argv)
{
    if (argc < 2)
        return help_all(stderr);
    if (asks_for_help(argv[1]) || !strcmp(argv[1], "help"))
        return help(argc - 2, argv + 2);
    const subcommand *s = find(argv[1]);
    for (int i = 2; s && i < argc && strcmp(argv[i], "--"); i++) /* --help may be anywhere */
        if (asks_for_help(argv[i]))
            return help_one(s);
    if (s)
        return s->run(argc - 2, argv + 2);
    if (strcmp(argv[1], "--version"))
        return no_such_subcommand(argv[1]);
    if (argc > 2)
        return say_error(USAGE, "--version: found \"%.60s\"; expected no argument; see weft --help", argv[2]);
    printf("%s\n", weft_version());
    return finish_output("version", GOOD);
}
