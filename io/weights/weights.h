/* weights.h - the arrays of a file with weights, in one form for all formats.
 *
 * A reader recognises its format, checks the whole structure of the file and adds one weft__array for each
 * array. It copies no numbers: an array points into the file's bytes. Files are not trusted: a reader checks
 * each length against the remaining bytes before it uses it. It allocates at most twice the size of the file
 * plus 16 MiB. */
#ifndef WEFT_IO_WEIGHTS_H
#define WEFT_IO_WEIGHTS_H
#include "io/checkpoint/checkpoint.h"

/* An array of a file, in the shape and with the names of PyTorch. Element i, j, .. is at bytes +
 * (i * stride[0] + j * stride[1] + ..) * weft__number_bytes(kind.type). */
typedef struct weft__array {
    const char *name;            /* "encoder.weight_ih_l0", as in the file or as in PyTorch */
    const char *place;           /* the name in the file, "layers/lstm/cell/vars/0"; not renamed: `name` */
    weft__kind kind;             /* of type WEFT__ODD: it is listed, but has no numbers that weft reads */
    int64_t stride[WEFT_RANK];   /* in elements, 0 or more */
    const unsigned char *bytes;  /* element 0; NULL: see `set`, or all numbers are 0 */
    const char *set;             /* HDF5: the data set, whose elements are in `stride` order; or NULL */
    int64_t first;               /* HDF5: element 0 of this array in the set */
    int layer;                   /* number of its layer in the file, from 0; -1: the name is enough */
    /* Axis 0 has `gates` equal blocks, and block i of the array is block order[i] in the file. 0: one. */
    int gates;
    unsigned char order[4];
    const char *cell;            /* the cell that a recurrent layer of the module must have; or NULL */
    bool transposed;             /* for the report: the file has the axes in another order */
} weft__array;

/* Zeroed blocks of memory that end together. weft__piece_new returns NULL if memory is short. */
typedef struct weft__piece { struct weft__piece *next; uint64_t bytes[]; } weft__piece;
void *weft__piece_new(weft__piece **list, size_t bytes);
void  weft__pieces_end(weft__piece **list);

/* A line of `weft info`: "producer", "torch 2.15". */
typedef struct weft__fact { const char *key, *value; } weft__fact;

typedef struct weft__weights {
    const char *path, *format;   /* for messages; "PyTorch", "weft checkpoint": see open.c */
    unsigned char *image;        /* the bytes of the file, followed by a 0 */
    size_t size;
    struct weft__h5 *h;          /* the session while a reader or weft__array_read runs, otherwise NULL */
    unsigned char *hdf5;         /* its bytes */
    size_t hdf5_size;
    /* Returns the bytes of an HDF5 data set, to be freed; NULL after a failure. */
    unsigned char *(*read_set)(struct weft__weights *, const char *set);
    weft__array *array;          /* sorted by name once the file is open */
    weft__fact *fact;
    int64_t n, facts;            /* arrays, facts */
    weft__piece *memory;         /* of names and of what readers allocate */
    size_t used;                 /* bytes of it */
    const char *part;            /* weft_weights_opts.part, for nested checkpoints; or NULL */
    bool by_layer;               /* names come from layers without stable names: Keras, ONNX */
    bool by_kind;                /* layers of one kind are in order; the order of kinds is unknown */
    weft_status status;          /* the first failure; its message is this thread's */
} weft__weights;

/* ---- open.c ---- */
/* Opens a file of any format and lists its arrays. After a failure *out is NULL. */
weft_status weft__weights_open(const char *path, const char *part, weft__weights **out);
void        weft__weights_close(weft__weights *);
/* For readers. These keep the first failure. fail: the message is "PATH: FORMAT: text". */
void  weft__weights_fail(weft__weights *, weft_status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Returns zeroed memory that lives as long as the weights; NULL, and a failure, if memory is short or if the
 * readers have asked for more than twice the file's size plus 16 MiB. */
void *weft__weights_memory(weft__weights *, size_t bytes);
/* Returns a list of this memory with room for element n, as weft__grown. NULL: a failure. */
void *weft__weights_grown(weft__weights *, void *list, int64_t n, size_t bytes);
/* Copies n bytes as a text. A text with a 0 inside, or that is not UTF-8, is a failure: returns NULL. */
const char *weft__weights_text(weft__weights *, const void *bytes, size_t n);
/* Returns a formatted text that lives as long as the weights; "" after a failure. */
const char *weft__weights_print(weft__weights *, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Adds an array, which is copied, and returns its place; NULL after a failure. Strides of a contiguous array:
 * set_strides. Two arrays with one name are a failure when the file is open. */
weft__array *weft__weights_add(weft__weights *, const weft__array *);
void  weft__set_strides(weft__array *);
void  weft__weights_fact(weft__weights *, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- names.c ---- */
/* Compares two records that begin with a text, for qsort and bsearch. */
int weft__by_text(const void *, const void *);
/* Sorts the arrays by name. Two with one name are a failure. */
void weft__weights_sort(weft__weights *);
/* Returns the array of this name; NULL: none. */
weft__array *weft__weights_find(const weft__weights *, const char *name);
/* Changes names by a map file and prefixes (o NULL: none), and sorts. Returns false after a failure. */
bool weft__weights_rename(weft__weights *, const weft_weights_opts *o);

/* ---- layers.c ---- */
/* Gives the arrays of a file without stable names the names of m, by the order of layers. Layers with names
 * of m stay. Both directions, and each layer of a weft_rnn, are one layer here. Also checks the cells. Call
 * it after weft__weights_rename, and sort. Returns false after a failure. */
bool weft__match_layers(weft__weights *, const weft_module *m);

/* ---- save.c ---- */
/* An array to be written; values in machine order. */
typedef struct weft__output { const char *name; weft__kind kind; const void *values; } weft__output;
/* Writes n arrays as safetensors (PATH.safetensors) or HDF5 (PATH.h5, PATH.hdf5), atomically. The bytes
 * depend on names, types, shapes and values only, not on the order of the list, which is sorted. */
weft_status weft__weights_save(const char *path, weft__output *list, int64_t n);
weft_status weft__save_hdf5(const char *path, weft__output *list, int64_t n);    /* hdf5.c */
/* safetensors.c: metadata: the members of a checkpoint's "__metadata__" in JSON, with eight zeros first,
 * which become its checksum; NULL: weights as PyTorch writes them. */
weft_status weft__save_safetensors(const char *path, weft__output *list, int64_t n, const char *metadata);

/* ---- hdf5.c ---- */
/* Begins a session on an HDF5 file in memory. Returns false after a failure; call end in any case. */
bool weft__hdf5_begin(weft__weights *, unsigned char *bytes, size_t size);
/* Ends the session. place: an array whose set is contiguous then points into the file. */
void weft__hdf5_end(weft__weights *, bool place);

/* ---- checkpoint.c ---- */
/* Checks the seal of a checkpoint, and adds facts for `weft info`: version, optimiser, random streams, the
 * program's items. */
void weft__checkpoint_facts(weft__weights *);

/* ---- array.c ---- */
/* Returns whether every element of the array is inside [begin, begin + size). Call it for each array with
 * bytes. Overflow is not inside. */
bool weft__array_is_inside(const weft__array *, const unsigned char *begin, size_t size);
/* Reads an array as F32, F64, I32 or I64, with strides and gates applied. values: the array's elements in
 * row-major order. Errors as weft__h5_read; the weights then fail. Returns whether it was read. */
bool weft__array_read(weft__weights *, const weft__array *, weft__number as, void *values);

/* ---- numpy.c: the .npy format ---- */
/* Reads the header of a .npy file in memory: sets kind, stride and bytes of *a. Returns NULL, or the reason
 * if it is not an array that weft reads: "has Python objects ..". */
const char *weft__npy_read(const unsigned char *bytes, size_t size, weft__array *a);
/* Writes the header of a .npy file with numbers of this kind: float32, float64, int32 or int64. Row-major
 * numbers follow it. Returns its length; 0 for other types. */
enum { WEFT__NPY_HEADER = 256 };
size_t weft__npy_header(const weft__kind *kind, char header[WEFT__NPY_HEADER]);

/* ---- one reader for each format: the image is in memory; each returns with arrays or with a failure ---- */
void weft__read_checkpoint_weights(weft__weights *);     /* checkpoint.c: in safetensors */
void weft__read_safetensors(weft__weights *);    /* safetensors.c */
void weft__read_torch(weft__weights *);          /* torch.c: zip with data.pkl */
void weft__read_npz(weft__weights *);            /* numpy.c */
void weft__read_npy(weft__weights *);            /* numpy.c: a lone array, as "array" */
void weft__read_hdf5_weights(weft__weights *);   /* hdf5.c: state dicts, checkpoints; calls read_keras */
void weft__read_keras(weft__weights *);          /* keras.c: the session is open, and stays open */
void weft__read_keras_zip(weft__weights *);      /* keras.c: .keras, a zip with model.weights.h5 */
void weft__read_onnx_weights(weft__weights *);   /* onnx.c: initialisers, recurrent ones as layers */

/* ---- zip.c: members of a zip archive in memory ---- */
typedef struct weft__member { const char *name; const unsigned char *bytes; size_t size; } weft__member;
typedef struct weft__zip { weft__member *member; int64_t n; } weft__zip;
/* Lists the members of the image by its central directory, zip64 included. Stored members point into the
 * image; deflated ones are unpacked by zlib, at most twice the size of the file in all. Checks local headers,
 * overlap, CRC-32, names and counts. Returns false after a failure. */
bool weft__zip_list(weft__weights *, weft__zip *);
const weft__member *weft__zip_find(const weft__zip *, const char *name);         /* NULL: none */
#endif
