/* arrays.h - shared by the subcommands for files with weights: options, files, numbers of arrays, output. */
#ifndef WEFT_TOOLS_ARRAYS_H
#define WEFT_TOOLS_ARRAYS_H
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "io/weights/weights.h"
#include "tools/options.h"

/* Exit statuses, as of cmp and diff. */
enum { SAME = 0, DIFFERENT = 1, UNREADABLE = 2 };

/* The options of this run; the name of the subcommand, number of operands, files, exit status so far. */
typedef struct {
    bool json, statistics, names, dry;
    double tolerance;
    const char *npy, *dtype, *subcommand;
    weft_weights_opts rename;
    weft__weights *file[2];
    int operands, status;
    bool comma; /* JSON: a value precedes, in these brackets */
} weights_asked;
extern weights_asked asked;
#define FIELD(name) offsetof(weights_asked, name)
#define OPTION_JSON IS_FLAG("--json", FIELD(json), "print JSON")
#define OPTION_PART IS_TEXT("--part", "P", FIELD(rename.part), "part of a nested file of PyTorch: model")

/* Defines the record of a subcommand with least .. most operands and these options. The function NAME gets
 * operands; the first `opened` are open files. EACH: the function is called for each operand. */
enum { EACH = -1 };
#define WEIGHTS(NAME, least, most, opened, text, operands, paragraphs, ...)          \
    static int run_##NAME(int n, char **words)                                       \
    {                                                                                \
        return run_weights(&subcommand_##NAME, n, words, least, most, opened, NAME); \
    }                                                                                \
    static const option NAME##_options[] = { __VA_ARGS__, { 0 } };                   \
    const subcommand subcommand_##NAME = { #NAME, text, operands, paragraphs, NAME##_options, run_##NAME }

/* ---- arrays.c ---- */
/* Reads options, checks the number of operands, opens files, runs `work`, flushes stdout. */
int run_weights(const subcommand *, int argc, char **argv, int least, int most, int opened,
                void (*work)(char **));
/* Raises the status and is false. FAIL also prints an error, unreadable the last failure of a file. */
bool failed(int status);
#define FAIL(...) failed(say_error(UNREADABLE, __VA_ARGS__))
bool unreadable(void);
/* Opens a file with weights. Returns NULL after a printed error. */
weft__weights *open_weights(const char *path);
/* The numbers of an array in row-major order: floats as F32 or F64, integers as I32 or I64. */
typedef struct { weft__number type; int64_t n; void *values; } numbers;
/* Reads an array; values are to be freed, and NULL for the type `other`. Returns false after a failure. */
bool read_numbers(weft__weights *, const weft__array *, numbers *);
long double number_at(const numbers *, int64_t i); /* holds each int64_t */
int64_t elements_of(const weft__kind *);
weft__number type_of(const weft__array *); /* without byte order */
const char *type_text(weft__number);       /* valid until the next call */
/* F16 .. F64: bits of the fraction, and the exponent of the least normal number. */
typedef struct { int fraction, least; } float_form;
extern const float_form float_forms[4];

/* ---- output.c ---- */
/* Prints JSON, or else text. { } [ ] in a form are brackets of JSON, <key> is the key of the next value;
 * all else is text. Conversions as of printf, of a text %s, an int64_t %d, a double %g, the type %t or the
 * shape %k of a weft__kind. (s) is the s of a plural: none if the last %d was 1. Control characters of values
 * are escaped. JSON has null for NaN and infinities. */
void emit(const char *form, ...);
/* Prints an array as weft_print does, or writes it to the file npy if that is not NULL. */
void emit_numbers(const char *name, const numbers *, const weft__kind *, const char *npy);
#endif
