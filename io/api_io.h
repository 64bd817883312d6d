/* api_io.h - files: checkpoints, weights of other programs, data sets.
 *
 * Contents: messages, checkpoints, weights of other programs, ragged data, batches. Loaders are in
 * plan/run/api_loader.h, journals and parts of HDF5 files in api_records.h.
 *
 * Functions on files return a weft_status: WEFT_OK (0) or the kind of the failure, whose text is in
 * weft_file_message. They never change the context's error. WEFT_EARG: a path, a module or a result
 * (`out`) is NULL. WEFT_ENOENT: the file to read does not exist. WEFT_EIO: the system cannot read
 * or write the file. WEFT_EFORMAT: the file is damaged or of another kind. WEFT_ENOMEM: out of
 * memory. A function that writes replaces an existing file, and does not make folders. A thread
 * that calls them needs a stack of 64 KB, its thread-local data included. */
#ifndef WEFT_API_IO_H
#define WEFT_API_IO_H
#include "../nn/api_optim.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- messages ---- */
/* Returns the text of the last file function that failed in this thread; "" if none has. weft owns
 * the text, valid until the next failure; a success does not clear it. Like the message of an
 * exception. */
WEFT_API const char *weft_file_message(void);

/* ---- checkpoints ---- *
 * A file holds the parameters and buffers of a module by PyTorch's names, the optimiser, the random
 * streams and items of the program. It has checksums. The bytes depend on the state only. A path
 * that ends in .safetensors gives a safetensors file, any other path HDF5; files are read by their
 * content. A library without HDF5 (make IO=none) writes safetensors, and refuses .h5 and .hdf5.
 *
 * Every file except a journal is written atomically: weft writes a new file in the same folder,
 * flushes it to the disk and renames it. After a failure or a kill the old file is unchanged. If
 * two programs write one path together, one wins with a complete file. A replaced file keeps mode,
 * group and owner as far as the system allows. A new file follows the umask; a link is followed. A
 * new file has no name until it is complete, so a killed program leaves no file. On file systems
 * without this (NFS), a kill may leave a file .weft-tmp-XXXXXXXXXXXXXXXX; delete it by hand. weft
 * never deletes a file that it did not create in the same call. */
/* An item of the program, such as the epoch, the best score, the vocabulary: n numbers of `type` at
 * data. The program owns name and data: weft_save reads data, weft_load writes it. For WEFT_TEXT
 * and WEFT_BYTES n counts bytes. name: 1 .. 255 bytes without '/', unique in a call. */
typedef struct { const char *name; weft_dtype type; void *data; int64_t n; } weft_checkpoint_item;
/* Saves a checkpoint of m with n items of the program (items NULL if n is 0). o: NULL, or an
 * optimiser of m or of a part of m; the file holds its rule, rate, counts and vectors. A text is
 * saved up to its first 0. Waits for the device. The file does not hold betas, momentum, eps,
 * decays, weft_optim_set_group and schedules. docs/design/checkpoints.md describes it.
 * In a failed context it does nothing and returns weft_error_code. Errors: an item without name,
 * type or data; a text without a 0 in its n bytes; in safetensors, a name that is not UTF-8 or has
 * control characters. Like torch.save. */
WEFT_API weft_status weft_save(const char *path, weft_module *m, weft_optim *o,
                               const weft_checkpoint_item *items, int64_t n) WEFT_MUST_USE;
/* Loads a checkpoint into m, o, the random streams of m's context and n items, all of it or
 * nothing: after an error these are unchanged. o NULL: ignores an optimiser in the file. m and o
 * NULL: loads only the items, for example before the program builds the model. Streams that the
 * program has not made yet are made; those that the file lacks start anew. The rate is the file's
 * until weft_optim_set_lr. Each item must be in the file with its type and at most n numbers; a
 * text counts its final 0. weft_load zeroes the rest of the item's data.
 * In a failed context it does nothing and returns weft_error_code. Errors: WEFT_EARG: o of another
 * module. WEFT_EFORMAT: a file that is damaged, not a checkpoint, without the optimiser or an item,
 * or of another model, cell or optimiser; an item of another type. WEFT_ESHAPE: other shapes, an
 * item above n numbers, a module saved with another weft_real. weft_save_weights and
 * weft_load_weights convert. Like torch.load. */
WEFT_API weft_status weft_load(const char *path, weft_module *m, weft_optim *o,
                               const weft_checkpoint_item *items, int64_t n) WEFT_MUST_USE;
/* The result of a partial load: counts of parameters and buffers, and the names of those that were
 * not loaded. */
typedef struct {
    int loaded;        /* in both, copied to the module */
    int missing;       /* in the module, not in the file */
    int extra;         /* in the file, not in the module */
    int other_shape;   /* in both, with unequal shapes, or of layers with unequal cells */
    int converted; /* weft_load_weights: of those loaded, with another type, transposed, or with
                        * gates in another order */
    /* One line for each that was not loaded: "missing NAME" or "extra NAME"; "shape NAME is .." or
     * "layer NAME is ..", both counted as other_shape. NAME is the path in the file: for a
     * checkpoint "parameters/encoder.weight" or "buffers/..". weft_load_weights adds "padding NAME
     * row 0 is not 0; .." for an embedding's padding row, and then for each that was loaded "loaded
     * NAME" or "converted NAME (from PATH IN FILE): float16, transposed, gates reordered". Ends
     * with "..." if some did not fit. */
    char text[4096];
} weft_load_report;
/* Loads from a checkpoint the parameters and buffers whose names and shapes agree, and writes the
 * others to *report. Optimiser, streams and items stay unchanged. report may be NULL. Returns
 * WEFT_OK also if nothing agrees: check report->loaded. Errors: as weft_load, but WEFT_EFORMAT for
 * another weft_real; the module is then unchanged. Like load_state_dict(strict=False). */
WEFT_API weft_status weft_load_matching(const char *path, weft_module *m,
                                        weft_load_report *report) WEFT_MUST_USE;

/* ---- weights of other programs ---- */
/* All readers of HDF5 files take what NumPy and h5py write: integers of 8 to 64 bits, signed or
 * not, float16, bfloat16, float32 and float64 in either byte order, and bool; contiguous or in
 * chunks, with or without gzip and shuffle; libver "earliest" to "latest"; a user block (MATLAB
 * -v7.3); a file that is open for SWMR. Floats are rounded to the nearest number; NaN and
 * infinities stay. Errors, with place and value: a finite number that does not fit a weft_real; an
 * integer that does not fit a double or an int32. */
/* Options of weft_load_weights; all 0: names of the file are names of the module. A name of the map
 * file is final: prefixes do not change it. */
typedef struct {
    const char *strip_prefix; /* removed from names that begin with it: "model.", "module." */
    const char *add_prefix; /* put before each name, after strip_prefix */
    /* Path of a text with lines "NAME-IN-FILE NAME-IN-MODULE", for names that differ. A star at the
     * end of both names means the rest: "rnn.* encoder.*". # begins a comment. */
    const char *map;
    /* Part of a nested PyTorch checkpoint, "state_dict" or "a.b". NULL: the whole, or the only part
     * of the usual names (state_dict, model_state_dict, model, module, weights, params). */
    const char *part;
} weft_weights_opts;
/* Loads parameters and buffers of m from a file of another program. weft finds the format by the
 * file's content, not its name: safetensors; PyTorch .pt and .pth, without running their code; HDF5
 * with a state dict; NumPy .npz; Keras .weights.h5, .keras, .h5; initialisers of ONNX.
 *
 * Names are paths below m without m's name: "encoder.weight", in HDF5 also "weight" in a group
 * "encoder". Kernels of Keras and recurrent weights of ONNX are transposed and their gates
 * reordered; if their names are not m's, layers are taken in their order. opts NULL: all 0.
 *
 * report NULL: all must agree, otherwise WEFT_EFORMAT for a name that is missing or extra,
 * WEFT_ESHAPE for a shape. With a report it loads what agrees, overwrites *report, and returns
 * WEFT_OK. After an error the module is unchanged. In a failed context it does nothing and returns
 * weft_error_code. WEFT_EFORMAT: no format of these, not numbers, a number that does not fit, a
 * checkpoint of weft_save. Like load_state_dict(torch.load(path)). */
WEFT_API weft_status weft_load_weights(const char *path, weft_module *m,
                                       const weft_weights_opts *opts,
                                       weft_load_report *report) WEFT_MUST_USE;
/* Writes parameters and buffers to a new file for other programs. path ends in .safetensors, as
 * safetensors.torch.save_file writes it, or in .h5 or .hdf5, as h5py writes a PyTorch state dict.
 * Names are paths below m without m's name, "encoder.weight"; a tied weight is written under each
 * name. Numbers have the type weft_real. The same weights give the same bytes. Waits for the
 * device. In a failed context it does nothing and returns weft_error_code. Errors: WEFT_EARG: a
 * path with another ending. Like save_file(model.state_dict(), path). */
WEFT_API weft_status weft_save_weights(const char *path, const weft_module *m) WEFT_MUST_USE;

/* ---- ragged data: sequences end to end in memory ---- *
 * A reader fills *out, whatever it held before, and the program frees it by weft_dataset_free.
 * After a failure all fields are NULL and 0. Messages name the file and, where it has lines, the
 * line. Regular files only; files of /proc and /sys, whose sizes are wrong, are an error. */
/* Sequences of rows of reals (columns above 0: rows) or of ints (columns 0: ints). */
typedef struct {
    int64_t n;            /* number of sequences */
    int64_t columns;      /* reals for each token (a row); 0: one int for each token */
    int32_t *len;         /* [n] tokens of each sequence */
    int64_t *offset;      /* [n + 1] first row of each, then the sum of len; required if n > 0 */
    weft_real *rows;      /* [sum of len, columns], NULL if columns is 0 */
    int32_t *ints;        /* [sum of len], NULL if columns is not 0 */
    int64_t *id;          /* [n] ids for dropout masks; NULL: 0 .. n - 1 */
    const struct weft_hdf5 *file; /* weft_hdf5_shape: rows are read from it; otherwise NULL */
} weft_dataset;
typedef struct {
    bool keep_line_ends;   /* the \n of a line is its last token, for a model of characters */
    bool one_sequence;     /* the whole text is one sequence; line ends are kept in any case */
} weft_text_opts;
/* Reads a text file: one sequence for each line, one token (an int, 0 .. 255) for each byte. A line
 * ends with \n or \r\n. opts NULL: all false, tokens without line ends. A kept line end is always
 * one token \n, also for \r\n; a last line without one gets none. An empty line is a sequence of
 * length 0. An empty file has none, or one of length 0 with .one_sequence. Like
 * open(path).readlines(). */
WEFT_API weft_status weft_read_text(const char *path, const weft_text_opts *opts,
                                    weft_dataset *out) WEFT_MUST_USE;
typedef struct {
    char delimiter;        /* ';', '\t', '|', ..; 0 means ',' */
    bool empty_is_nan;     /* an empty field of one of `columns` is NaN, not an error */
} weft_csv_opts;
/* Reads the n named columns, 1 or more, of a CSV file (RFC 4180, with a header) as reals, rounded
 * to the nearest number: rows [N, n] in the order of `columns`. id names a column that identifies
 * sequences: rows with the same text there, adjacent or not, are one sequence, in the order of the
 * file. Sequences are in the order of their first rows; the texts are not kept. A file of one
 * sequence needs such a column with the same text in all rows. opts NULL: all 0. Empty lines are
 * skipped; nan and inf are numbers. The decimal point is a point in every locale. Errors: id NULL;
 * a column that the header lacks or names twice; a field that is not a number, is too large, or is
 * empty without .empty_is_nan; a line with another number of fields; an integer beyond 2^53 that a
 * double does not hold, such as a time in nanoseconds. Like pandas.read_csv. */
WEFT_API weft_status weft_read_csv(const char *path, const char *id, const char *const *columns,
                                   int64_t n, const weft_csv_opts *opts,
                                   weft_dataset *out) WEFT_MUST_USE;
#ifndef WEFT_IO_NONE
/* Reads a dataset from the HDF5 data sets "lengths" and "rows" or "tokens" in `group`; NULL: the
 * root. "lengths" [n] has integers. "rows" [N, columns] of any numbers, 1 column or more, gives
 * reals. "tokens" [N] of integers gives ints, and is not read if "rows" exists. "Weights of other
 * programs" above has the types. Errors, WEFT_EFORMAT: a data set is missing or has another rank; N
 * is not the sum of the lengths; a length below 0. Like h5py.Dataset[:]. */
WEFT_API weft_status weft_read_hdf5(const char *path, const char *group,
                                    weft_dataset *out) WEFT_MUST_USE;
#endif
/* Frees the arrays of a dataset that a reader filled, and zeroes the dataset. NULL or a zeroed
 * dataset is allowed. Batches stay valid, they are copies. A program that fills a dataset with its
 * own arrays frees those itself and does not call this. */
WEFT_API void weft_dataset_free(weft_dataset *data);

/* ---- batches ---- */
/* Returns the sequences index[0 .. n - 1] of a dataset, in that order, as a ragged tensor of the
 * step in the layout CONCAT: reals [N, columns], or ints [N] if columns is 0. It is a copy. Its ids
 * are the dataset's, by default the indices: dropout masks follow a sequence. An index that occurs
 * twice is two sequences with one id. Operators take tensors of two datasets together, such as
 * inputs and targets, if the lengths and ids of their sequences agree. n may be 0, with index NULL.
 * Errors, of the context, with an inert tensor: data NULL; an index that the dataset does not have;
 * lengths and offsets that do not agree; a file of weft_hdf5_shape that cannot be read. Like
 * collate_fn. */
WEFT_API weft_tensor *weft_dataset_batch(weft *w, const weft_dataset *data, const int32_t *index,
                                         int64_t n);

#ifdef __cplusplus
}
#endif
#endif
