/* corpora.h - corpora by name: installed packages, formulas, a file of lengths.
 *
 * Unless a comment differs, a function that fails prints the error and returns false or NULL. */
#ifndef WEFT_TOOLS_CORPORA_H
#define WEFT_TOOLS_CORPORA_H
#include "tools/tools.h"
#include "weft.h"

/* NAME[:NUMBER..][,n=..][,seed=..]. rest: the text after the first colon. */
enum { MOST_NUMBERS = 4 };
typedef struct {
    const char *name, *rest;
    int numbers;
    double number[MOST_NUMBERS];
    int64_t n;
    uint64_t seed;
} corpus_spec;

/* A corpus under construction: sequences end to end, as in a weft_dataset. */
typedef struct { weft_dataset data; int64_t tokens, sequences_room, tokens_room; } corpus_builder;

typedef bool corpus_reader(const corpus_spec *, corpus_builder *);
/* package: the Debian packages with its files; NULL: none needed. numbers: names of the formula's
 * parameters, between colons; NULL: not a formula. */
typedef struct {
    const char *name, *numbers, *package, *about;
    corpus_reader *read;
} corpus;
extern const corpus all_corpora[];
extern const int corpora_count;

/* ---- read.c ---- */
/* Reads the corpus that a text names. A corpus of lengths has ints and rows NULL. Freed by corpus_free. */
bool read_corpus(const char *text, weft_dataset *out);
void corpus_free(weft_dataset *);
/* Returns the lengths of a corpus; the caller frees them. */
int32_t *corpus_lengths(const char *text, int64_t *n);
/* Reads lengths from a file, integers between white space; path "-" is stdin. The caller frees them. */
int32_t *read_lengths(const char *path, int64_t *n);

/* ---- build.c: add to a sequence, by tokens, rows or a length, and end it ---- */
void corpus_token(corpus_builder *, int32_t token);
void corpus_row(corpus_builder *, const weft_real *row, int64_t columns);
bool corpus_end_sequence(corpus_builder *);
bool corpus_length(corpus_builder *, double length);
/* Prints the error "NAME: reason" and returns false. */
bool corpus_refuse(const corpus_spec *, const char *reason);
bool corpus_is_length(double);
/* Reads a plain or gzipped file, "-" is stdin, and ends it with a 0; the caller frees it. Returns NULL with
 * errno ENOENT, and prints nothing, if the file does not exist. */
char *corpus_file(const char *path, size_t *n);

/* ---- lengths of sequences from a file of any kind that `weft lengths` reads ---- */
/* The unit of lengths. LENGTH: the numbers themselves. TOKENS: the elements of a list. OFFSETS: the
 * differences of two numbers in turn. ROWS: the rows with one text in the column. */
typedef enum {
    UNIT_ANY, UNIT_BYTES, UNIT_WORDS, UNIT_LINES, UNIT_LENGTH, UNIT_TOKENS, UNIT_OFFSETS, UNIT_ROWS
} length_unit;
/* column: of a table, key of JSON, or name of an array; NULL: the usual names. */
typedef struct { const char *column; length_unit unit; } length_opts;

/* read.c: adds the lengths of a file, plain or gzipped; path "-": standard input. */
bool add_lengths(const char *path, const length_opts *, corpus_builder *);
/* Reads a word as a length. path, line: for the message. */
bool read_length(const char *path, long long line, const char *word, int64_t *length);
/* length_files.c: one reader for each kind. text [n] ends with a 0. */
bool add_text_lengths(const char *path, char *text, size_t n, length_unit, corpus_builder *);
bool add_json_lengths(const char *path, const char *text, size_t n, const length_opts *, corpus_builder *);
bool add_table_lengths(const char *path, const length_opts *, corpus_builder *);
bool add_array_lengths(const char *path, const length_opts *, corpus_builder *);

/* ---- one reader for each corpus; false with errno ENOENT, and no message, if it is not installed ---- */
corpus_reader read_lines, read_fortunes, read_length_file, draw_uniform, draw_geometric, draw_lognormal,
    draw_twopoint, make_equal, make_half, make_giant, make_above, make_sorted, make_ff_worst, make_ffd_worst;
#endif
