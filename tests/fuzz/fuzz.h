/* fuzz.h - common code of the fuzz programs: input files, checks of every reader, independent readers of
 * HDF5 and CSV, a model.
 *
 * A program tests one reader. Its input is a byte of options, which mutations do not change, and a file. An
 * error ends the program with a line "found: KIND: ..". KIND is hang (more than 1 s of processor time), too
 * large (memory above 20 times the file, or fuzz_times, plus 64 MiB), trouble (a leak of handles, or a fault
 * of the program), or silent change. Sanitizers report crashes. At its end a program prints how many files
 * the reader accepted, because without accepted files it would test little. */
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
/* Writes the bytes to a file and returns its path. */
const char *fuzz_file(const uint8_t *bytes, size_t n);
/* Call these before and after the reader. They check its time and memory, and that an error has a message. */
void fuzz_watch(size_t n);
void fuzz_watched(weft_status status);
/* Returns the message; weft_file_message by default. */
extern const char *(*fuzz_message)(void);
extern int fuzz_times;                           /* limit of the memory in sizes of the file; default 20 */
void fuzz_found(const char *kind, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));
#define SAME(that, ...) do { if (!(that)) fuzz_found("silent change", __VA_ARGS__); } while (0)

/* ---- oracle.c: reads data sets through plain calls of libhdf5 ---- */
typedef struct { int rank; hsize_t size[H5S_MAX_RANK]; size_t n; double *at; } plain_set;
hid_t plain_open(const uint8_t *bytes, size_t n);
/* Reads the numbers of a set as doubles; the caller frees them. Returns false without a set. */
bool  plain_read(hid_t file, const char *path, plain_set *out);
/* Also reads sets in chunks. Only for files that weft has read and so checked. */
extern bool plain_chunks;
/* Checks for a set of these extents. */
bool  plain_has(hid_t file, const char *path, int rank, const int64_t *size);
/* Checks whether an object exists that libhdf5 cannot open, because of a header message that weft ignores. */
bool  plain_closed(hid_t file, const char *path);
/* Returns a text with a final 0, which the caller frees, or NULL. */
char *plain_text(hid_t file, const char *path);
/* Reports silent changes of finite numbers. */
void plain_same(const char *path, const plain_set *set, int rank, const int64_t *size,
                const weft_real *numbers);

/* ---- table.c: reads CSV byte by byte ---- */
typedef struct { const char *text; size_t n; } csv_cell;
/* record [records + 1]: index of its first cell; the header is record 0 */
typedef struct { csv_cell *cell; size_t cells; char *text; int64_t *record, records; } table;
table  table_read(const uint8_t *bytes, size_t n, char delimiter);
void   table_end(table *t);
int64_t table_column(const table *t, const char *name);            /* -1: missing */
csv_cell table_cell(const table *t, int64_t row, int64_t column);   /* row 0: after the header */
/* Returns the cell as a number, NaN if empty. */
double table_number(const table *t, int64_t row, int64_t column);
bool   table_same(csv_cell a, csv_cell b);

/* ---- model.c: a small model with every kind of saved state ---- */
typedef struct { weft *w; weft_module *m; weft_optim *o; weft_tensor *first; } model;
typedef struct { int32_t ints[6]; char text[32]; double score; uint8_t bytes[3]; } extras;
enum { ITEMS = 4 };
extern const extras said;
model    model_new(uint64_t seed);
void     model_items(extras *e, weft_checkpoint_item items[ITEMS]);
uint32_t model_state(const model *k);            /* checksum of the restored state */

/* ---- dice.c: random numbers of mutations ---- */
void     dice_seed(unsigned seed);
uint64_t dice(uint64_t below);                   /* 0 .. below - 1 */
uint64_t odd_number(uint64_t now);               /* near a number, or one at which readers fail */

/* ---- h5.c: mutations of HDF5 files ---- */
/* Options of a checkpoint: bits 0 and 1 are the seal, where 3 also means PLAIN; bits 2 and 3 the reader. */
enum { PLAIN, RESEALED, REPAIRED, SEALS = 4, READERS = 4 };
enum { SEAL = 512 };
/* Corrects weft's seal at the start of a checkpoint. */
void   fuzz_reseal(uint8_t *file, size_t n);
/* Writes the file, resealed if the options request it. */
const char *fuzz_sealed(uint8_t options, const uint8_t *file, size_t n);
size_t h5_mutate(uint8_t *file, size_t n, size_t most, unsigned seed, bool repair);

/* ---- forms.c: mutations of files with weights, of all formats ---- */
size_t form_mutate(uint8_t *file, size_t n, size_t most, unsigned seed);
/* The mutator of a program whose input is an HDF5 file. */
#define MUTATES_HDF5                                                                             \
    size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)       \
    {                                                                                            \
        return size < 2 ? size : 1 + h5_mutate(data + 1, size - 1, most - 1, seed, seed % 4 != 0); \
    }
#endif
