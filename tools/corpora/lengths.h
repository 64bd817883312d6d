/* lengths.h - lengths of sequences from a file of any kind that `weft lengths` reads. */
#ifndef WEFT_TOOLS_LENGTHS_H
#define WEFT_TOOLS_LENGTHS_H
#include "tools/corpora/corpora.h"

/* The unit of lengths. LENGTH: the numbers themselves. TOKENS: the elements of a list. OFFSETS: the
 * differences of two numbers in turn. ROWS: the rows with one text in the column. */
typedef enum {
    UNIT_ANY, UNIT_BYTES, UNIT_WORDS, UNIT_LINES, UNIT_LENGTH, UNIT_TOKENS, UNIT_OFFSETS, UNIT_ROWS
} length_unit;
/* column: of a table, key of JSON, or name of an array; NULL: the usual names. */
typedef struct { const char *column; length_unit unit; } length_opts;

/* read.c: adds the lengths of a file, plain or gzipped; path "-": standard input. Returns false after a
 * printed error. */
bool add_lengths(const char *path, const length_opts *, corpus_builder *);
/* Reads a word as a length. path, line: for the message. */
bool read_length(const char *path, long long line, const char *word, int64_t *length);
/* length_files.c: one reader for each kind. text [n] ends with a 0. */
bool add_text_lengths(const char *path, char *text, size_t n, length_unit, corpus_builder *);
bool add_json_lengths(const char *path, const char *text, size_t n, const length_opts *, corpus_builder *);
bool add_table_lengths(const char *path, const length_opts *, corpus_builder *);
bool add_array_lengths(const char *path, const length_opts *, corpus_builder *);
#endif
