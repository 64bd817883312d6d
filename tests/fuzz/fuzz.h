/* fuzz.h - what the fuzz programs share: a file for the reader, the promises that every reader keeps, the
 * same reading by libhdf5's plain calls, a model.
 *
 * A program is one reader. Its input is a byte of options, which mutations leave alone, and a file. What is
 * found ends the program with a line "found: KIND: ..", KIND one of: hang (more than 1 s of the processor),
 * too large (more than 20 times the file and 64 MiB), silent change; a crash is the sanitizers' own. When it
 * ends, a program says how many files the reader has taken: none would be a net with one hole. */
#ifndef WEFT_FUZZ_H
#define WEFT_FUZZ_H
#include <hdf5.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "weft.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

/* ---- watch.c ---- */
/* The bytes as a file. */
const char *fuzz_file(const uint8_t *bytes, size_t n);
/* Around the call of the reader: what it may take is a matter of the file's size; an error has words. */
void fuzz_watch(size_t n);
void fuzz_watched(weft_status status);
/* Whose words they are: weft_file_message, unless a program says otherwise. */
extern const char *(*fuzz_message)(void);
void fuzz_found(const char *kind, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));
#define SAME(that, ...) do { if (!(that)) fuzz_found("silent change", __VA_ARGS__); } while (0)

/* ---- oracle.c: data sets by libhdf5's plain calls ---- */
typedef struct { int rank; hsize_t size[H5S_MAX_RANK]; size_t n; double *at; } plain_set;
hid_t plain_open(const uint8_t *bytes, size_t n);
/* The numbers of a set as doubles, to be freed; false if there is none. */
bool  plain_read(hid_t file, const char *path, plain_set *out);
/* Whether sets in chunks are read, too: of files that weft has read, and so looked at. */
extern bool plain_chunks;
/* Whether there is a set of these extents. */
bool  plain_has(hid_t file, const char *path, int rank, const int64_t *size);
/* Whether libhdf5 does not open what is there: for the sake of a message that no reader of ours needs. */
bool  plain_closed(hid_t file, const char *path);
/* The bytes of a text, to be freed, with a 0 behind them; NULL if there is none. */
char *plain_text(hid_t file, const char *path);
/* Silent changes, but for numbers that are not finite. */
void plain_same(const char *path, const plain_set *set, int rank, const int64_t *size,
                const weft_real *numbers);

/* ---- table.c: CSV read once more, a byte at a time ---- */
typedef struct { const char *text; size_t n; } csv_cell;
/* record [records + 1]: its first cell; the header is 0 */
typedef struct { csv_cell *cell; size_t cells; char *text; int64_t *record, records; } table;
table  table_read(const uint8_t *bytes, size_t n, char delimiter);
void   table_end(table *t);
int64_t table_column(const table *t, const char *name);            /* -1: there is none */
csv_cell table_cell(const table *t, int64_t row, int64_t column);   /* row 0 follows the header */
/* The cell as a number; NaN if it is empty. */
double table_number(const table *t, int64_t row, int64_t column);
bool   table_same(csv_cell a, csv_cell b);

/* ---- model.c: a small model with something of everything, and what is saved of it ---- */
typedef struct { weft *w; weft_module *m; weft_optim *o; weft_tensor *first; } model;
typedef struct { int32_t ints[6]; char text[32]; double score; uint8_t bytes[3]; } extras;
enum { ITEMS = 4 };
extern const extras said;
model    model_new(uint64_t seed);
void     model_items(extras *e, weft_checkpoint_item items[ITEMS]);
uint32_t model_state(const model *k);            /* of all that a checkpoint brings back */

/* ---- h5.c: what is done to HDF5 files ---- */
/* The two lowest bits of the options of a checkpoint; 3 is PLAIN, too. The next two: one of four readers. */
enum { PLAIN, RESEALED, REPAIRED, SEALS = 4, READERS = 4 };
enum { SEAL = 512 };
/* Weft's own seal before a checkpoint put right. */
void   fuzz_reseal(uint8_t *file, size_t n);
/* Writes the file, resealed if these options say so. */
const char *fuzz_sealed(uint8_t options, const uint8_t *file, size_t n);
size_t h5_mutate(uint8_t *file, size_t n, size_t most, unsigned seed, bool repair);
#endif
