/* api_io.h - all that reads and writes files, and what deals the data out.
 *
 * Contents: checkpoints in HDF5, weights of other programs, ragged data, batches, logs. Pictures
 * are in api_pictures.h.
 *
 * Functions on files return a weft_status and never change the context's error; weft_file_message
 * has the text of this thread's last one that failed. A thread that calls them needs a stack of 64
 * KB, what is local to the thread included. */
#ifndef WEFT_API_IO_H
#define WEFT_API_IO_H
#include "../nn/api_optim.h"
#include "../plan/api_plan.h"
#include "api_pictures.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The text of this thread's last file function that failed, "" if none has. Valid until the next
 * one. */
WEFT_API const char *weft_file_message(void);
/* Writes a file of the program's own, as the library writes its files (see checkpoints): after a
 * failure the old file is unchanged. bytes may be NULL if size is 0. */
WEFT_API weft_status weft_write_file(const char *path, const void *bytes,
                                     size_t size) WEFT_MUST_USE;

/* ---- checkpoints ---- *
 * A file holds the parameters and buffers of a module by PyTorch's names, the optimiser, the random
 * streams, and the user's items, all with checksums. The bytes depend on the state only.
 *
 * Every file that weft writes goes to a new file in the same folder, which is flushed to the disk
 * and renamed: after a failure or a kill the old file is unchanged, and of two simultaneous writers
 * one wins with a complete file. Mode, group and owner of a replaced file stay as far as that is
 * allowed, a new file follows the umask, a link is followed. The new file has no name until it is
 * complete, so a killed program leaves nothing behind. On file systems that cannot do that (NFS) a
 * kill may leave a file .weft-tmp-XXXXXXXXXXXXXXXX; delete it by hand. weft never deletes a file
 * that it did not create in the same call. */
/* epoch, best score, vocabulary ... */
typedef struct { const char *name; weft_dtype type; void *data; int64_t n; } weft_checkpoint_item;
/* A context that has failed saves nothing. o may be NULL; else it is an optimiser of m or of a part
 * of m. docs/design/checkpoints.md describes the file. Of an optimiser its rule, rate, counts and
 * vectors are saved. Betas, momentum, eps, decays, weft_optim_set_group and schedules are the
 * program's own: neither saved nor compared, and a run that is resumed with others goes on with
 * those; its rate is the file's, until weft_optim_set_lr. */
WEFT_API weft_status weft_save(const char *path, weft_module *m, weft_optim *o,
                               const weft_checkpoint_item *items, int64_t n) WEFT_MUST_USE;
/* Everything back, or nothing: on any error module, optimiser, streams and items are as they were.
 * o and items may be NULL, 0; m, too, beside items: then only they are loaded, before a model is
 * built, say. Items must be in the file with that type and at most n numbers (text:
 * n bytes with the final 0; the rest is zeroed). WEFT_ENOENT: no file; WEFT_EFORMAT: damaged, no
 * checkpoint, or of another model, cell or optimiser; WEFT_ESHAPE: of other shapes. */
WEFT_API weft_status weft_load(const char *path, weft_module *m, weft_optim *o,
                               const weft_checkpoint_item *items, int64_t n) WEFT_MUST_USE;
/* How many numbers (text: bytes with the final 0) an item has; -1 and a message if it is not
 * there. */
WEFT_API int64_t weft_checkpoint_item_size(const char *path, const char *name);
/* What a partial load found: counts, and a text that lists names, one a line: "missing
 * encoder.weight", "extra ..", "shape ..", "layer .." (of another cell; counted with the shapes);
 * "..." at its end if there was no room for all. */
typedef struct { int loaded, missing, extra, other_shape; char text[4096]; } weft_load_report;
/* Loads the parameters and buffers whose names and shapes agree and reports the others. */
WEFT_API weft_status weft_load_matching(const char *path, weft_module *m,
                                        weft_load_report *report) WEFT_MUST_USE;

/* ---- weights of other programs ---- */
/* HDF5 files: all readers take what NumPy and h5py write. Integers of 8 to 64 bits, signed or
 * not, float16, bfloat16, float32 and float64 in either byte order, and bool; plain, or in
 * chunks, with gzip and shuffle or not; libver "earliest" to "latest", a user block (MATLAB
 * -v7.3), a file that is open for SWMR. Floats are rounded to the nearest; NaN and infinities
 * stay. A finite number that a weft_real cannot hold, and an integer that does not fit (a double
 * or int32), is an error that names its place and value. */
/* Loads weights: data sets under flat dotted or nested names, as h5py writes a PyTorch state dict.
 * report may be NULL: then all must agree.
 * Errors: a weight of another type, such as a text. */
WEFT_API weft_status weft_load_state_dict(const char *path, weft_module *m,
                                          weft_load_report *report) WEFT_MUST_USE;
WEFT_API weft_status weft_save_state_dict(const char *path, const weft_module *m) WEFT_MUST_USE;

/* ---- ragged data: sequences end to end in memory ---- *
 * len [n], offset [n + 1] the first row of each; rows [sum len, columns], or ints [sum len]
 * (columns is 0 then). id [n]: of a part, the numbers that the sequences have in the whole; NULL:
 * their places. After a failure all is NULL and 0; messages name the file and, where there are
 * lines, the line. Regular files only; those of /proc and /sys, whose sizes are not true, are an
 * error. */
typedef struct {
    int64_t n, columns;
    int32_t *len;
    int64_t *offset;
    weft_real *rows;
    int32_t *ints;
    int64_t *id;
    const struct weft_hdf5 *file;                /* of weft_hdf5_shape: there the numbers are */
} weft_dataset;
/* How a text is cut. keep_line_ends: the \n of a line is its last token, for a language model of
 * characters, say. one_sequence: all of it is one sequence, line ends included. */
typedef struct { bool keep_line_ends, one_sequence; } weft_text_opts;
/* Text: a sequence a line (it ends with \n or \r\n), each byte a token (ints). opts NULL: without
 * the line ends. Where they are kept both are \n, and a last line without one gets none. */
WEFT_API weft_status weft_read_text(const char *path, const weft_text_opts *opts,
                                    weft_dataset *out) WEFT_MUST_USE;
/* How CSV files are read; NULL for it means all 0. */
typedef struct {
    char delimiter;                            /* between fields: ';', '\t', '|', ..; 0 means ',' */
    bool empty_is_nan;           /* an empty field of a needed column is NaN; else it is an error */
} weft_csv_opts;
/* Reads CSV as in RFC 4180 with a header. Rows with the same text in column `id` are one
 * sequence, next to each other or not, in the order of the file; sequences come in the order in
 * which their ids first appear. weft_frame_read_csv has the same rule. The n named columns
 * become reals, rounded to the nearest. Empty lines are skipped; nan and inf are numbers. A
 * number has a decimal point, whatever the locale. Errors: an integer beyond 2^53 that a double
 * does not hold, such as a time in nanoseconds. */
WEFT_API weft_status weft_read_csv(const char *path, const char *id, const char *const *columns,
                                   int64_t n, const weft_csv_opts *opts,
                                   weft_dataset *out) WEFT_MUST_USE;
/* Reads HDF5: below `group` (NULL: the root) the data sets "lengths" [n] of integers, and "rows"
 * [N, columns] of numbers or else "tokens" [N] of integers; see "weights of other programs" for
 * types and forms. weft_write_hdf5 writes a new file with this group. */
WEFT_API weft_status weft_read_hdf5(const char *path, const char *group,
                                    weft_dataset *out) WEFT_MUST_USE;
WEFT_API weft_status weft_write_hdf5(const weft_dataset *data, const char *path,
                                     const char *group) WEFT_MUST_USE;
/* Frees the arrays of a dataset that a reader filled, and sets all to NULL and 0. A dataset that a
 * program fills with its own arrays is used like any other; the program keeps and frees those, and
 * does not call this. NULL: nothing. */
WEFT_API void weft_dataset_free(weft_dataset *data);
/* Such a file of which only what is asked for is read, as where each of many ranks needs a part. It
 * is the program's, to be closed by weft_close_hdf5 (NULL: nothing), and stays as it is until then;
 * one that is replaced by another of its name stays open. After a failure *out is NULL. */
typedef struct weft_hdf5 weft_hdf5;
WEFT_API weft_status weft_open_hdf5(const char *path, const char *group,
                                    weft_hdf5 **out) WEFT_MUST_USE;
WEFT_API void weft_close_hdf5(weft_hdf5 *file);
/* n, columns, len and offset of all of it; rows and ints are NULL: weft_dataset_batch and
 * weft_plan_tokens read from the file what they are asked for, and nothing else. A set in chunks is
 * read whole by weft_open_hdf5 and kept in memory. The file's, not to
 * be freed; of NULL all is 0. Several threads may read from one file. */
WEFT_API weft_dataset weft_hdf5_shape(const weft_hdf5 *file);
/* The sequences index[0 .. n-1], in that order, as the dataset's 0 .. n-1, of which they are the
 * ids: a batch of them has the dropout masks of a batch of the whole. One may come twice. What lies
 * side by side is read at once. An index beyond the file is an error that names it. */
WEFT_API weft_status weft_read_hdf5_part(const weft_hdf5 *file, const int32_t *index, int64_t n,
                                         weft_dataset *out) WEFT_MUST_USE;

/* ---- batches ---- *
 * A planner that is run epoch after epoch, with a position that is saved. weft_loader_new runs
 * `pool` (or `order`): it shuffles an epoch, sorts pools of `pool` batches by length (0 means 50;
 * 1: batches of any lengths), cuts them into batches by count or by tokens, shuffles the batches.
 * keep_order: none of that but the cutting. */
/* at most so many sequences, real tokens, no pads counted (one sequence at least); 0: any */
typedef struct { int64_t count, tokens; int pool; bool keep_order; } weft_loader_opts;
typedef struct weft_loader weft_loader;
/* Over n sequences of these lengths (copied); the stream "loader.<name>" of the context shuffles,
 * so no two share a name, of at most 30 bytes. Owned by the context; if it cannot be made the
 * context fails and it is an inert one, without a batch. */
WEFT_API weft_loader *weft_loader_new(weft *w, const char *name, int64_t n, const int32_t *len,
                                      const weft_loader_opts *opts);
/* The next batch: indices of sequences, *size of them, valid until the next call; NULL at the
 * end of an epoch (the next call begins another). */
WEFT_API const int32_t *weft_loader_next(weft_loader *l, int64_t *size);
/* The same of any planner, whose record must live as long (lists of opts are copied): each epoch is
 * a plan of these lengths and options, drawn from the stream. The first is made at once, and what
 * the planner refuses fails the context. */
WEFT_API weft_loader *weft_plan_loader_new(weft *w, const char *name, int64_t n, const int32_t *len,
                                           const weft_planner *planner,
                                           const weft_plan_opts *opts);
/* The next batch by its number in the epoch's plan, which is the loader's and stays until the next
 * epoch begins; -1 at the end of an epoch, and after an error, of which *plan is NULL. For planners
 * that cut sequences, for which weft_loader_next is an error. */
WEFT_API int64_t weft_loader_next_batch(weft_loader *l, const weft_plan **plan);
/* Batches of the epoch that began last; before the first one, or after weft_loader_set_state has
 * gone between two, of the next one, which is the same whether it was asked for or not. Epochs
 * begun so far. */
WEFT_API int64_t weft_loader_batches(weft_loader *l);
WEFT_API int64_t weft_loader_epoch(const weft_loader *l);
/* All of its position, to be saved as an item of four WEFT_I64 and given back after loading to a
 * loader of the same sequences and options; a position of others, or a damaged one, is an error of
 * the context and changes nothing else. */
typedef struct { int64_t at[4]; } weft_loader_state;
WEFT_API weft_loader_state weft_loader_get_state(const weft_loader *l);
WEFT_API void weft_loader_set_state(weft_loader *l, weft_loader_state state);
/* The sequences index[0 .. n-1] of a dataset (what weft_loader_next gives) as a ragged tensor of
 * the step [N, columns], or of ints [N] where columns is 0; copied at once. The ids of the batch
 * are the dataset's, by default the indices, so that dropout masks follow a sequence; an index that
 * comes twice is two sequences with one id. Several datasets of the same sequences, asked with the
 * same indices, give one batch. An index that the dataset does not have is an error of the context
 * that names it. */
WEFT_API weft_tensor *weft_dataset_batch(weft *w, const weft_dataset *data, const int32_t *index,
                                         int64_t n);

/* ---- logs ---- */
/* JSON lines. The first member begins a line, weft_journal_line_end writes it by one system call; a
 * line without a member is none. */
typedef struct weft_journal weft_journal;
/* A file of such lines, append: below what is there; the program's, to be closed by
 * weft_journal_close. After a failure *out is NULL, and a NULL journal swallows everything. */
WEFT_API weft_status weft_journal_open(const char *path, bool append,
                                       weft_journal **out) WEFT_MUST_USE;
/* A member of the line. NaN and infinities become null, what is no UTF-8 U+FFFD; one with the name
 * NULL is left out, with a message. */
WEFT_API void weft_journal_number(weft_journal *journal, const char *name, double value);
WEFT_API void weft_journal_text(weft_journal *journal, const char *name, const char *value);
WEFT_API void weft_journal_line_end(weft_journal *journal);
/* Ends the journal; a line that has not ended is not written. */
WEFT_API void weft_journal_close(weft_journal *journal);

#ifdef __cplusplus
}
#endif
#endif
