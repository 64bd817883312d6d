/* words.c - the words of Debian's wamerican, one a line; letters, not bytes: the text is UTF-8. */
#include <stdlib.h>
#include <string.h>
#include "tools/corpora/corpora.h"

/* The character at *at, which moves on; a byte that begins none stands for itself. */
static int32_t next_letter(const unsigned char **at)
{
    const unsigned char *c = *at;
    int more = *c >= 0xF0 ? 3 : *c >= 0xE0 ? 2 : *c >= 0xC0 ? 1 : 0;
    int32_t letter = more ? *c & (0x3F >> more) : *c;
    for (int i = 1; i <= more; i++) {
        if ((c[i] & 0xC0) != 0x80)
            return (*at)++, *c;
        letter = letter << 6 | (c[i] & 0x3F);
    }
    *at += 1 + more;
    return letter;
}

bool read_words(const corpus_spec *s, corpus_builder *b)
{
    (void)s;
    size_t n;
    char *text = corpus_file("/usr/share/dict/american-english", &n);
    bool good = text != NULL;
    for (const unsigned char *at = (unsigned char *)text; good && *at; at++) {
        const unsigned char *start = at;
        while (good && *at && *at != '\n')
            good = corpus_token(b, next_letter(&at));
        if (good && at > start)
            good = corpus_end_sequence(b);
        if (!*at)
            break;
    }
    free(text);
    return good;
}
