/* corpora.h - corpora by name: what packages have installed, what formulas draw, a file of lengths. */
#ifndef WEFT_TOOLS_CORPORA_H
#define WEFT_TOOLS_CORPORA_H
#include "tools/tools.h"
#include "weft.h"

/* NAME[:NUMBER..][,n=..][,seed=..]; rest: what stands behind the first colon. */
enum { MOST_NUMBERS = 4 };
typedef struct {
    const char *name, *rest;
    int numbers;
    double number[MOST_NUMBERS];
    int64_t n;
    uint64_t seed;
} corpus_spec;

/* A corpus that is being read: sequences end to end, as in a weft_dataset. */
typedef struct { weft_dataset data; int64_t tokens, sequences_room, tokens_room; } corpus_builder;

/* package: the packages that apt-get installs it from, NULL: none are needed. numbers: their names between
 * colons; NULL: it has none, and is not drawn. */
typedef struct {
    const char *name, *numbers, *package, *about;
    bool (*read)(const corpus_spec *, corpus_builder *);
} corpus;
extern const corpus all_corpora[];
extern const int corpora_count;

/* read.c: the corpus that a text names. Freed by corpus_free. False: the error was said. ints and rows
 * of the result are NULL where it has lengths alone. */
bool read_corpus(const char *text, weft_dataset *out);
void corpus_free(weft_dataset *);
/* Its lengths alone, to be freed; NULL after an error, which was said. */
int32_t *corpus_lengths(const char *text, int64_t *n);
/* The lengths in a file, integers between white space; path "-": stdin. As corpus_lengths. */
int32_t *read_lengths(const char *path, int64_t *n);
/* The record of a name; NULL, and the error was said. */
const corpus *corpus_named(const char *name, size_t length);

/* build.c; false: the error was said. A sequence has tokens or a length. */
void corpus_token(corpus_builder *, int32_t token);
void corpus_row(corpus_builder *, const weft_real *row, int64_t columns);
bool corpus_end_sequence(corpus_builder *);
bool corpus_length(corpus_builder *, double length);
/* Says "NAME: what"; false. */
bool corpus_refuse(const corpus_spec *, const char *what);
bool corpus_is_length(double);
/* A file, also one by gzip, with a 0 behind its end; to be freed. NULL: it is not there, errno is ENOENT and
 * nothing was said; or it cannot be read, which was said. */
char *corpus_file(const char *path, size_t *n);

/* The other files, a reader each. False, with errno ENOENT and nothing said: it is not installed. */
bool read_cmudict(const corpus_spec *, corpus_builder *);
bool read_fortunes(const corpus_spec *, corpus_builder *);
bool read_words(const corpus_spec *, corpus_builder *);
bool read_unicode(const corpus_spec *, corpus_builder *);
bool read_dna(const corpus_spec *, corpus_builder *);
bool read_length_file(const corpus_spec *, corpus_builder *);
bool draw_uniform(const corpus_spec *, corpus_builder *);
bool draw_geometric(const corpus_spec *, corpus_builder *);
bool draw_lognormal(const corpus_spec *, corpus_builder *);
bool draw_twopoint(const corpus_spec *, corpus_builder *);
bool make_equal(const corpus_spec *, corpus_builder *);
bool make_half(const corpus_spec *, corpus_builder *);
bool make_giant(const corpus_spec *, corpus_builder *);
bool make_above(const corpus_spec *, corpus_builder *);
bool make_sorted(const corpus_spec *, corpus_builder *);
bool make_ff_worst(const corpus_spec *, corpus_builder *);
bool make_ffd_worst(const corpus_spec *, corpus_builder *);
#endif
