/* cmudict.c - the words of Debian's festlex-cmu, ("word" part-of-speech (syllables)) a line; bytes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tools/corpora/corpora.h"

#define DICTIONARY "/usr/share/festival/dicts/cmu/cmudict-0.4.out"

bool read_cmudict(const corpus_spec *s, corpus_builder *b)
{
    (void)s;
    size_t n;
    char *text = corpus_file(DICTIONARY, &n);
    bool good = text != NULL;
    long long line = 1;
    for (char *at = text; good && at && *at; line++) {
        if (at[0] == '(' && at[1] == '"') {
            for (at += 2; good && *at && *at != '"' && *at != '\n'; at++)
                good = corpus_token(b, (unsigned char)*at);
            if (good && *at != '"') {
                say_error(FAILED, "corpora: " DICTIONARY ":%lld: the word has no second \"", line);
                good = false, errno = EIO;
            }
            good = good && corpus_end_sequence(b);
        }
        at = strchr(at, '\n');
        at = at ? at + 1 : NULL;
    }
    free(text);
    return good;
}
