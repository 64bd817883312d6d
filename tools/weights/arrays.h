/* arrays.h - shared by the subcommands for files with weights: options, files, numbers of arrays, output. */
#ifndef WEFT_TOOLS_ARRAYS_H
#define WEFT_TOOLS_ARRAYS_H
#include <limits.h>
#include "io/weights/weights.h"
#include "tools/options.h"

/* Exit statuses, as of cmp and diff. */
enum { SAME = 0, DIFFERENT = 1, UNREADABLE = 2 };

/* The options of this run. */
typedef struct {
    bool json, statistics, names, dry;
    double tolerance;
    const char *npy, *dtype;
    weft_weights_opts rename;
} weights_asked;
extern weights_asked asked;
#define OPTION_JSON IS_FLAG("--json", offsetof(weights_asked, json), "print JSON")
#define OPTION_PART \
    IS_TEXT("--part", "P", offsetof(weights_asked, rename.part), "part of a nested file of PyTorch: model")

/* Defines the record of a subcommand with least .. most operands, which a function of its name works on. */
#define WEIGHTS(NAME, least, most, text, operands, paragraphs)               \
    static int run_##NAME(int n, char **words)                               \
    {                                                                        \
        return run_weights(&subcommand_##NAME, n, words, least, most, NAME); \
    }                                                                        \
    const subcommand subcommand_##NAME = { #NAME, text, operands, paragraphs, options, run_##NAME }

/* ---- arrays.c ---- */
/* Reads the options, checks the number of operands, runs `work` on them, and flushes stdout. */
int run_weights(const subcommand *, int argc, char **argv, int least, int most, int (*work)(int, char **));
/* Runs `work` on each file, within a list of JSON. Returns the largest status. */
int each_file(int n, char **paths, int (*work)(const char *path));
/* Prints the message of the last failure and returns UNREADABLE. */
int say_unreadable(void);
/* Opens a file with weights. Returns NULL after a printed error. */
weft__weights *open_weights(const char *path);
/* The numbers of an array in row-major order: floats as F32 or F64, integers as I64. */
typedef struct { weft__number type; int64_t n; void *values; } numbers;
/* Reads an array; values are to be freed. They stay NULL if its type is `other`. Returns false after a
 * failure. */
bool read_numbers(weft__weights *, const weft__array *, numbers *);
double number_at(const numbers *, int64_t i);
int64_t elements_of(const weft__kind *);
/* Counts of an array, and moments of its finite numbers, NaN without any. */
typedef struct { int64_t nans, infinities; double least, most, mean, norm; } moments;
moments moments_of(const numbers *);
weft__number type_of(const weft__array *); /* without byte order */
/* Bits of the fraction of a float, and the exponent of its least normal number. */
typedef struct { int fraction, least; } form;
form form_of(weft__number);
const char *type_text(weft__number, char text[32]);
const char *shape_text(const weft__kind *, char text[160]); /* "[3, 4]" */

/* ---- output.c: one call prints a value as JSON, or as text by its format ---- */
/* key NULL: an element of a list. format NULL: no text. Control characters of texts are escaped. */
void emit_begin(const char *key, char bracket);
void emit_end(const char *text);
void emit_text(const char *key, const char *format, const char *value);
void emit_whole(const char *key, const char *format, int64_t);
/* JSON has null for NaN and infinities. */
void emit_real(const char *key, const char *format, double);
/* Prints the extents of a shape, or a position, as "[3, 4]". */
void emit_shape(const char *key, const char *format, const weft__kind *);
/* Prints an array as weft_print does, or writes it to the file npy if that is not NULL. Returns a status. */
int emit_numbers(const char *name, const numbers *, const weft__kind *, const char *npy);
#endif
