/* unicode.c - names of characters, the second field of a line of Debian's unicode-data; bytes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tools/corpora/corpora.h"

#define NAMES "/usr/share/unicode/UnicodeData.txt"

bool read_unicode(const corpus_spec *s, corpus_builder *b)
{
    (void)s;
    size_t n;
    char *text = corpus_file(NAMES, &n);
    bool good = text != NULL;
    long long line = 1;
    for (char *at = text; good && at && *at; line++) {
        at += strcspn(at, ";\n");
        if (*at != ';') {
            say_error(FAILED, "corpora: " NAMES ":%lld: the line has no second field", line);
            good = false, errno = EIO;
        }
        for (at += good; good && *at && *at != ';' && *at != '\n'; at++)
            good = corpus_token(b, (unsigned char)*at);
        good = good && corpus_end_sequence(b);
        at = strchr(at, '\n');
        at = at ? at + 1 : NULL;
    }
    free(text);
    return good;
}
