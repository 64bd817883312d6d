/* listen.h - captures the text on stderr between two points of a test. */
#ifndef WEFT_LISTEN_H
#define WEFT_LISTEN_H
#include <unistd.h>
#include "check.h"

static int before_fd;
static FILE *heard;
UNUSED static void listen_to_stderr(void)
{
    fflush(stderr);
    heard = tmpfile();
    before_fd = dup(STDERR_FILENO);
    cr_assert(heard && before_fd >= 0 && dup2(fileno(heard), STDERR_FILENO) >= 0);
}
UNUSED static const char *stop_listening(void)   /* The next call overwrites the result. */
{
    static char said[1 << 16];
    fflush(stderr);
    dup2(before_fd, STDERR_FILENO);
    close(before_fd);
    rewind(heard);
    said[fread(said, 1, sizeof said - 1, heard)] = 0;
    fclose(heard);
    return said;
}
#endif
