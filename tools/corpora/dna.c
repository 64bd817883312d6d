/* dna.c - reads of the lambda phage from Debian's bowtie2-examples: the second of each four lines of
 * FASTQ; letters. dna: long ones; dna-first and dna-second: pairs, the i-th of one belongs to that of the
 * other. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tools/corpora/corpora.h"

static bool add_read(char **at, const char *path, long long line, corpus_builder *b)
{
    if (**at != '@') {
        say_error(FAILED, "corpora: %s:%lld: a record begins with \"%.1s\", not with @", path, line, *at);
        return errno = EIO, false;
    }
    for (int i = 0; i < 4 && **at; i++) {
        bool good = true;
        for (; **at && **at != '\n' && good; ++*at)
            good = i != 1 || corpus_token(b, (unsigned char)**at);
        if (!good)
            return false;
        *at += **at == '\n';
    }
    return corpus_end_sequence(b);
}

bool read_dna(const corpus_spec *s, corpus_builder *b)
{
    char path[128];
    const char *name = !strcmp(s->name, "dna")      ? "longreads" :
                       strcmp(s->name, "dna-first") ? "reads_2" :
                                                      "reads_1";
    snprintf(path, sizeof path, "/usr/share/doc/bowtie2/examples/reads/%s.fq.gz", name);
    size_t n;
    char *text = corpus_file(path, &n), *at = text;
    bool good = text != NULL;
    for (long long line = 1; good && *at; line += 4)
        good = add_read(&at, path, line, b);
    free(text);
    return good;
}
