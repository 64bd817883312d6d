/* read.c - the table of corpora, and the reader of a corpus by its text. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/nearest.h"
#include "tools/corpora/corpora.h"

const corpus all_corpora[] = {
    { "cmudict", NULL, "festlex-cmu", "letters of English words", read_cmudict },
    { "fortunes", NULL, "fortunes fortunes-min", "bytes of short texts; a heavy tail", read_fortunes },
    { "words", NULL, "wamerican", "letters of American English words", read_words },
    { "unicode", NULL, "unicode-data", "bytes of characters' names", read_unicode },
    { "dna", NULL, "bowtie2-examples", "long reads of the lambda phage", read_dna },
    { "dna-first", NULL, "bowtie2-examples", "paired reads of the phage, first of each pair", read_dna },
    { "dna-second", NULL, "bowtie2-examples", "paired reads of the phage, second of each pair", read_dna },
    { "uniform", "LEAST:MOST", NULL, "every length with equal probability", draw_uniform },
    { "geometric", "P", NULL, "ends with probability P at each token", draw_geometric },
    { "lognormal", "MU:SIGMA", NULL, "exp of a normal number, at least 1", draw_lognormal },
    { "twopoint", "SHORT:LONG", NULL, "SHORT or LONG", draw_twopoint },
    { "equal", "LENGTH", NULL, "all lengths equal", make_equal },
    { "half", "CAPACITY", NULL, "CAPACITY div 2 + 1: no two share a row", make_half },
    { "giant", "SHORT:LONG", NULL, "short ones, with one long one in the middle", make_giant },
    { "above", "CAPACITY", NULL, "one in the middle exceeds CAPACITY", make_above },
    { "sorted", "LEAST:MOST", NULL, "evenly spaced, ascending", make_sorted },
    { "ff-worst", "", NULL, "first fit makes 17 rows of 101 where 10 do, n = 37", make_ff_worst },
    { "ffd-worst", "CAPACITY", NULL, "first fit decreasing makes 11 rows where 9 do", make_ffd_worst },
    { "file", "PATH", NULL, "a file of lengths; - is stdin", read_length_file },
};
const int corpora_count = sizeof all_corpora / sizeof *all_corpora;

static const char *name_at(int i, const void *context)
{
    (void)context;
    return i < corpora_count ? all_corpora[i].name : NULL;
}

const corpus *corpus_named(const char *name, size_t length)
{
    char word[40];
    snprintf(word, sizeof word, "%.*s", length < sizeof word ? (int)length : (int)sizeof word - 1, name);
    for (const corpus *c = all_corpora; c < all_corpora + corpora_count; c++)
        if (!strcmp(word, c->name))
            return c;
    const char *near = weft__nearest(word, name_at, NULL);
    say_error(FAILED, "corpora: unknown corpus \"%s\"; %s%s%s; weft corpora lists all", word,
              near ? "\"" : "expected cmudict, fortunes, words, ..", near ? near : "",
              near ? "\" is near" : "");
    return NULL;
}

static bool refuse(const corpus *c, const char *text, const char *found)
{
    say_error(FAILED, "corpora: \"%.60s\": found %s; expected %s%s%s%s", text, found, c->name,
              c->numbers && *c->numbers ? ":" : "", c->numbers ? c->numbers : "",
              c->numbers ? "[,n=..][,seed=..]" : "");
    return false;
}

static int numbers_of(const corpus *c)
{
    int n = c->numbers && *c->numbers ? 1 : 0;
    for (const char *p = c->numbers; n && *p; p++)
        n += *p == ':';
    return n;
}

static bool parse_key(const corpus *c, const char *text, const char **p, corpus_spec *s)
{
    bool is_n = !strncmp(*p, "n=", 2), is_seed = !strncmp(*p, "seed=", 5);
    const char *value = *p + (is_n ? 2 : 5);
    if (!is_n && !is_seed)
        return refuse(c, text, "another key than n and seed");
    char *end;
    errno = 0;
    unsigned long long number = strtoull(value, &end, 10);
    if (*value < '0' || *value > '9' || errno || (*end && *end != ',') || (is_n && number > 1u << 30))
        return refuse(c, text, is_n ? "an n outside 0 .. 2^30" : "a seed outside 0 .. 2^64 - 1");
    *(is_n ? (uint64_t *)&s->n : &s->seed) = number;
    *p = end;
    return true;
}

static bool parse(const corpus *c, const char *text, corpus_spec *s)
{
    const char *p = text + strlen(c->name);
    *s = (corpus_spec){
        .name = c->name, .rest = p + (*p == ':'), .n = !strcmp(c->name, "ff-worst") ? 37 : 3000, .seed = 1
    };
    if (c->read == read_length_file)
        return *s->rest || refuse(c, text, "no path");
    for (; *p == ':' && c->numbers; s->numbers++) {
        char *end;
        if (s->numbers == numbers_of(c))
            return refuse(c, text, "a number too many");
        s->number[s->numbers] = strtod(p + 1, &end);
        if (end == p + 1 || (*end && *end != ':' && *end != ','))
            return refuse(c, text, "a word instead of a number");
        p = end;
    }
    if (s->numbers < numbers_of(c))
        return refuse(c, text, "too few numbers");
    while (*p == ',' && c->numbers) {
        p++;
        if (!parse_key(c, text, &p, s))
            return false;
    }
    return !*p || refuse(c, text, "extra text at the end");
}

/* ---- a file of lengths: integers between white space ---- */
static bool add_length(const char *path, long long line, const char *word, corpus_builder *b)
{
    char *end;
    errno = 0;
    long long value = strtoll(word, &end, 10);
    if (errno || *end || value < 0 || value > INT32_MAX)
        return say_failure("%s:%lld: \"%.40s\" is not a length; expected a whole number in 0 .. %d", path,
                           line, word, INT32_MAX);
    return corpus_length(b, (double)value);
}

bool read_length_file(const corpus_spec *s, corpus_builder *b)
{
    static const char space[] = " \t\n\v\f\r";
    bool standard = !strcmp(s->rest, "-"), ok = true;
    const char *path = standard ? "stdin" : s->rest;
    char *text = NULL, *rest;
    size_t room = 0;
    FILE *file = standard ? stdin : fopen(path, "r");
    if (!file)
        ok = say_failure("%s: %s", path, strerror(errno));
    for (long long line = 1; ok && getline(&text, &room, file) >= 0; line++)
        for (char *word = strtok_r(text, space, &rest); word && ok; word = strtok_r(NULL, space, &rest))
            ok = add_length(path, line, word, b);
    if (ok && ferror(file))
        ok = say_failure("%s: cannot read it: %s", path, strerror(errno));
    if (file && !standard)
        fclose(file);
    free(text);
    errno = EIO; /* the caller takes ENOENT for a corpus that is missing */
    return ok;
}

void corpus_free(weft_dataset *d)
{
    free(d->len);
    free(d->offset);
    free(d->rows);
    free(d->ints);
    *d = (weft_dataset){ 0 };
}

/* An empty corpus also has arrays. */
static void make_arrays(weft_dataset *d)
{
    d->len = d->len ? d->len : get_memory(0, sizeof *d->len);
    d->offset = d->offset ? d->offset : get_memory(0, sizeof *d->offset);
}

bool read_corpus(const char *text, weft_dataset *out)
{
    *out = (weft_dataset){ 0 };
    const corpus *c = corpus_named(text, strcspn(text, ":,"));
    corpus_spec s;
    corpus_builder b = { 0 };
    if (!c || !parse(c, text, &s))
        return false;
    errno = 0;
    if (!c->read(&s, &b)) {
        if (errno == ENOENT)
            say_error(FAILED, "corpora: %s is not installed: apt-get install %s", c->name, c->package);
        return corpus_free(&b.data), false;
    }
    make_arrays(&b.data);
    *out = b.data;
    return true;
}

/* Takes the lengths of a dataset and frees the rest. NULL if !good. */
static int32_t *lengths_of(weft_dataset *d, bool ok, int64_t *n)
{
    int32_t *len = ok ? d->len : NULL;
    *n = ok ? d->n : 0;
    d->len = ok ? NULL : d->len;
    corpus_free(d);
    return len;
}

int32_t *corpus_lengths(const char *text, int64_t *n)
{
    weft_dataset d;
    bool ok = read_corpus(text, &d);
    return lengths_of(&d, ok, n);
}

int32_t *read_lengths(const char *path, int64_t *n)
{
    corpus_builder b = { 0 };
    bool ok = read_length_file(&(corpus_spec){ .rest = path }, &b);
    make_arrays(&b.data);
    return lengths_of(&b.data, ok, n);
}
