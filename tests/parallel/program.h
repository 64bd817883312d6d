/* program.h - command-line words and files, for the training programs of these tests. */
#ifndef WEFT_TEST_PROGRAM_H
#define WEFT_TEST_PROGRAM_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "weft.h"

static int words;
static char **word;

static const char *said(const char *name)        /* "": without a value, NULL: absent */
{
    size_t n = strlen(name);
    for (int i = 0; i < words; i++)
        if (!strncmp(word[i], name, n) && (word[i][n] == '=' || !word[i][n]))
            return word[i] + n + (word[i][n] == '=');
    return NULL;
}

static int number(const char *name, int otherwise) { return said(name) ? atoi(said(name)) : otherwise; }

static bool fine(int rank, weft_status status)
{
    if (status != WEFT_OK)
        fprintf(stderr, "rank %d: %s\n", rank, weft_file_message());
    return status == WEFT_OK;
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
