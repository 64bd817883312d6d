/* read.c - the table of corpora, and the reader of a corpus by its text. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/nearest.h"
#include "io/io.h"
#include "tools/corpora/corpora.h"
#include "tools/options.h"

const corpus all_corpora[] = {
    { "cmudict", NULL, "festlex-cmu", "letters of English words", read_lines },
    { "fortunes", NULL, "fortunes fortunes-min", "bytes of short texts; a heavy tail", read_fortunes },
    { "words", NULL, "wamerican", "letters of American English words", read_lines },
    { "unicode", NULL, "unicode-data", "bytes of characters' names", read_lines },
    { "dna", NULL, "bowtie2-examples", "long reads of the lambda phage", read_lines },
    { "dna-first", NULL, "bowtie2-examples", "paired reads of the phage, first of each pair", read_lines },
    { "dna-second", NULL, "bowtie2-examples", "paired reads of the phage, second of each pair", read_lines },
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

static const corpus *corpus_named(const char *name, size_t length)
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
    return say_failure("corpora: \"%.60s\": found %s; expected %s%s%s%s", text, found, c->name,
                       c->numbers && *c->numbers ? ":" : "", c->numbers ? c->numbers : "",
                       c->numbers ? "[,n=..][,seed=..]" : "");
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

/* ---- a file of lengths ---- */
bool read_length(const char *path, long long line, const char *word, int64_t *length)
{
    return parse_whole(word, 0, INT32_MAX, length) ||
           say_failure("%s:%lld: \"%.40s\" is not a length, 0 .. %d; for text: weft lengths --unit", path,
                       line, word, INT32_MAX);
}

/* Adds whole numbers between white space. */
static bool add_words(const char *path, const char *text, size_t n, corpus_builder *b)
{
    long long line = 1;
    bool ok = true;
    for (const char *c = text, *end; ok && c < text + n; c = end) {
        int64_t length = 0;
        for (end = c; *end >= '0' && *end <= '9' && end - c < 9; end++)
            length = 10 * length + (*end - '0');
        if (end > c && (end == text + n || isspace((unsigned char)*end))) {
            ok = corpus_length(b, (double)length);
        } else if (isspace((unsigned char)*c)) {
            line += *c == '\n';
            end = c + 1;
        } else {
            char word[48];
            while (end < text + n && !isspace((unsigned char)*end))
                end++;
            snprintf(word, sizeof word, "%.*s", (int)(end - c < 47 ? end - c : 47), c);
            if (strlen(word) < (size_t)(end - c)) /* a 0 inside, or a long word */
                memcpy(word + strlen(word) - (strlen(word) > 40), "?", 2);
            ok = read_length(path, line, word, &length) && corpus_length(b, (double)length);
        }
    }
    return ok;
}

static bool has_arrays(const char *path)
{
    unsigned char head[WEFT__HEAD + 1] = { 0 };
    FILE *file = fopen(path, "rb");
    size_t n = file ? fread(head, 1, WEFT__HEAD, file) : 0;
    if (file)
        fclose(file);
    return n && weft__weights_format(head, n);
}

bool add_lengths(const char *path, const length_opts *how, corpus_builder *b)
{
    bool is_text = !how->column && how->unit >= UNIT_BYTES && how->unit <= UNIT_LINES, ok;
    bool standard = !strcmp(path, "-");
    size_t n;
    if (!standard && (weft__ends_in(path, ".csv") || weft__ends_in(path, ".tsv")))
        return add_table_lengths(path, how, b);
    if (!standard && !is_text && has_arrays(path))
        return add_array_lengths(path, how, b);
    SCOPED char *text = corpus_file(path, &n);
    path = standard ? "stdin" : path;
    if (!text)
        return errno == ENOENT ? say_failure("%s: %s", path, strerror(ENOENT)) : false;
    const char *first = text + strspn(text, " \t\r\n");
    if (is_text)
        ok = add_text_lengths(path, text, n, how->unit, b);
    else if (*first == '{' || *first == '[')
        ok = add_json_lengths(path, text, n, how, b);
    else if (how->column || how->unit > UNIT_LENGTH)
        ok = say_failure("%s: found no table, JSON or array; expected one for --column or --unit", path);
    else
        ok = add_words(path, text, n, b);
    return ok;
}

bool read_length_file(const corpus_spec *s, corpus_builder *b)
{
    bool ok = add_lengths(s->rest, &(length_opts){ 0 }, b);
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
