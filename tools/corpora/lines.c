/* lines.c - reads corpora with one sequence in each line:
 * cmudict: Debian's festlex-cmu, lines ("word" part-of-speech (syllables)); the bytes of the words.
 * unicode: Debian's unicode-data, the second field of each line, names of characters; bytes.
 * words: Debian's wamerican, one word in each line; characters, decoded from UTF-8.
 * dna: Debian's bowtie2-examples, reads of the lambda phage; letters: the second of every four lines of
 * FASTQ. dna-first and dna-second are pairs: read i of one belongs to read i of the other. */
#include <errno.h>
#include <string.h>
#include "io/io.h"
#include "tools/corpora/corpora.h"

/* A line of a file: bytes at .. end - 1. The byte at end is a newline or 0. number counts from 0. */
typedef struct {
    const char *at, *end;
    int64_t number;
} line;
/* Adds a line. Returns NULL, or the error as text, or "" if the error is printed. */
typedef const char *add_line(const line *, corpus_builder *);

static bool each_line(const char *path, add_line *add, corpus_builder *b)
{
    size_t n;
    SCOPED char *text = corpus_file(path, &n);
    const char *error = text ? NULL : "";
    line l = { .at = text };
    for (; !error && *l.at; l.at = l.end + (*l.end == '\n'), l.number++) {
        l.end = l.at + strcspn(l.at, "\n");
        error = add(&l, b);
    }
    if (error && *error) {
        say_error(FAILED, "corpora: %s:%lld: %s", path, (long long)l.number, error);
        errno = EIO;
    }
    return !error;
}

static const char *add_sequence(const char *text, const char *end, corpus_builder *b)
{
    for (; text < end; text++)
        corpus_token(b, (unsigned char)*text);
    return corpus_end_sequence(b) ? NULL : "";
}

static const char *add_entry(const line *l, corpus_builder *b)
{
    if (strncmp(l->at, "(\"", 2))
        return NULL;
    const char *word = l->at + 2, *end = memchr(word, '"', (size_t)(l->end - word));
    return end ? add_sequence(word, end, b) : "the word has no second \"";
}

static const char *add_name(const line *l, corpus_builder *b)
{
    const char *first = memchr(l->at, ';', (size_t)(l->end - l->at));
    if (!first)
        return "the line has no second field";
    const char *end = memchr(first + 1, ';', (size_t)(l->end - first - 1));
    return add_sequence(first + 1, end ? end : l->end, b);
}

/* Returns the character at *p and moves *p past it. An invalid byte counts as one character. */
static int32_t next_letter(const unsigned char **p)
{
    const unsigned char *c = *p;
    int n = weft__utf8_character((const char *)c);
    int32_t letter = n > 1 ? *c & (0x7F >> n) : *c;
    for (int i = 1; i < n; i++)
        letter = letter << 6 | (c[i] & 0x3F);
    *p += n > 1 ? n : 1;
    return letter;
}

static const char *add_word(const line *l, corpus_builder *b)
{
    for (const unsigned char *p = (const unsigned char *)l->at; (const char *)p < l->end;)
        corpus_token(b, next_letter(&p));
    return l->end == l->at || corpus_end_sequence(b) ? NULL : "";
}

static const char *add_read(const line *l, corpus_builder *b)
{
    if (l->number % 4 == 0 && *l->at != '@')
        return "a record does not begin with @";
    return l->number % 4 == 1 ? add_sequence(l->at, l->end, b) : NULL;
}

bool read_lines(const corpus_spec *s, corpus_builder *b)
{
    static const struct { const char *name, *path; add_line *add; } all[] = {
        { "cmudict", "/usr/share/festival/dicts/cmu/cmudict-0.4.out", add_entry },
        { "unicode", "/usr/share/unicode/UnicodeData.txt", add_name },
        { "words", "/usr/share/dict/american-english", add_word },
        { "dna", "/usr/share/doc/bowtie2/examples/reads/longreads.fq.gz", add_read },
        { "dna-first", "/usr/share/doc/bowtie2/examples/reads/reads_1.fq.gz", add_read },
        { "dna-second", "/usr/share/doc/bowtie2/examples/reads/reads_2.fq.gz", add_read },
    };
    int i = 0;
    while (strcmp(s->name, all[i].name))
        i++;
    return each_line(all[i].path, all[i].add, b);
}
