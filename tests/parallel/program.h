/* program.h - command-line words and files, for the training programs of these tests. */
#ifndef WEFT_TEST_PROGRAM_H
#define WEFT_TEST_PROGRAM_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "weft.h"

static int words;
static char **word;

static const char *argument(const char *name)        /* "": without a value, NULL: absent */
{
    size_t n = strlen(name);
    for (int i = 0; i < words; i++)
        if (!strncmp(word[i], name, n) && (word[i][n] == '=' || !word[i][n]))
            return word[i] + n + (word[i][n] == '=');
    return NULL;
}

static int number(const char *name, int otherwise)
{
    return argument(name) ? atoi(argument(name)) : otherwise;
}

static bool fine(int rank, weft_status status)
{
    if (status != WEFT_OK)
        fprintf(stderr, "rank %d: %s\n", rank, weft_file_message());
    return status == WEFT_OK;
}

/* Reads the words after two numbers. */
static bool arguments(int argc, char **argv)
{
    if (argc < 3)
        fprintf(stderr, "usage: %s SHARDS UPDATES [WORD ..]\n", argv[0]);
    words = argc - 3, word = argv + 3;
    return argc >= 3;
}

/* Returns whether this update is followed by a save, by the argument "every". */
static bool saves_now(const weft *w, const weft_optim *o)
{
    return weft_ok(w) && argument("every") && weft_optim_steps(o) % number("every", 1) == 0;
}

/* Prints how the program ends. Returns the exit status. */
static int ended(int rank, weft *w, bool good)
{
    if (!weft_ok(w))
        fprintf(stderr, "rank %d: %s\n", rank, weft_error_message(w));
    weft_close(w);
    return good ? 0 : 1;
}
#endif
