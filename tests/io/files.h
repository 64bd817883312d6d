/* files.h - the folder of a test's files, and what weft_file_message says of one of them. */
#ifndef TESTS_FILES_H
#define TESTS_FILES_H
#include <unistd.h>
#include "tests/check.h"

static char folder[64], file_name[128];

/* The path of a file in it, until the next call. */
static const char *in_folder(const char *name)
{
    if (!folder[0]) {
        snprintf(folder, sizeof folder, "%s/weft_test.XXXXXX", P_tmpdir);
        cr_assert_not_null(mkdtemp(folder));
    }
    snprintf(file_name, sizeof file_name, "%s/%s", folder, name);
    return file_name;
}

static void end_folder(void)                     /* with all that is in it */
{
    char command[100];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    cr_assert_eq(system(command), 0);
    folder[0] = 0;
}

#define MESSAGE_HAS(part) \
    cr_assert(strstr(weft_file_message(), part), "\"%s\" is not in: %s", part, weft_file_message())
#endif
