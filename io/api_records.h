/* api_records.h - records of an experiment: journals, files of the program, parts of HDF5 files.
 *
 * Contents: journals, files of the program, HDF5. */
#ifndef WEFT_API_RECORDS_H
#define WEFT_API_RECORDS_H
#include "api_io.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- journals: JSON, one object a line ---- */
typedef struct weft_journal weft_journal;        /* an open journal */
/* Opens a journal and makes the file if it does not exist. append true: writes after the lines that
 * the file has. append false: empties an existing file immediately; unlike other files of weft a
 * journal is not atomic. The program closes *out by weft_journal_close. After a failure *out is
 * NULL; functions ignore a NULL journal.
 * Errors: WEFT_EIO: the file cannot be opened. Like torch.utils.tensorboard.SummaryWriter. */
WEFT_API weft_status weft_journal_open(const char *path, bool append,
                                       weft_journal **out) WEFT_MUST_USE;
/* Adds the member "name": value to the JSON object of the open line, and begins a line if none is
 * open. Copies name and value. Numbers have the fewest digits that give the same double; NaN and
 * infinities become null. In texts, bytes that are not UTF-8 become U+FFFD; NULL is "". A name that
 * occurs twice is written twice. A member with the name NULL is left out, with a message in
 * weft_file_message. Without memory the line is lost, as weft_journal_line_end says. Like
 * SummaryWriter.add_scalar and SummaryWriter.add_text. */
WEFT_API void weft_journal_number(weft_journal *journal, const char *name, double value);
WEFT_API void weft_journal_text(weft_journal *journal, const char *name, const char *value);
/* Ends the line and writes it by one system call; a line without members is not written. It does
 * not wait for the disk. A line that cannot be written is lost, with a message in
 * weft_file_message. A program cannot test for a loss: that text may be an older message. */
WEFT_API void weft_journal_line_end(weft_journal *journal);
/* Closes and frees the journal. A line that has not ended is not written. NULL is allowed. */
WEFT_API void weft_journal_close(weft_journal *journal);

/* ---- files of the program ---- */
/* Writes size bytes to a file atomically. An existing file is replaced, but stays unchanged after a
 * failure or a kill. bytes may be NULL if size is 0. */
WEFT_API weft_status weft_write_file(const char *path, const void *bytes,
                                     size_t size) WEFT_MUST_USE;
/* Returns the size of an item in a checkpoint, so that a program can allocate its data before
 * weft_load: the count of its numbers or bytes; a text counts its final 0. Returns -1, with a
 * message in weft_file_message, if the file cannot be read or does not have the item. */
WEFT_API int64_t weft_checkpoint_item_size(const char *path, const char *name);

#ifndef WEFT_IO_NONE
/* ---- HDF5 ---- */
/* Writes a new file that weft_read_hdf5 reads, with the data sets "lengths" and "rows" or "tokens"
 * in `group` (NULL: the root). Replaces an existing file as a whole, with its other groups. Reads
 * n, columns, len and rows or ints, not offset and id. Errors, WEFT_EARG: data NULL; a length below
 * 0; rows and ints both NULL with a length above 0, as in a dataset of weft_hdf5_shape. */
WEFT_API weft_status weft_write_hdf5(const weft_dataset *data, const char *path,
                                     const char *group) WEFT_MUST_USE;
/* An open HDF5 file with one dataset. A program reads parts of it, such as one for each rank. */
typedef struct weft_hdf5 weft_hdf5;
/* Opens the dataset in `group` (NULL: the root) of an HDF5 file that weft_read_hdf5 could read.
 * Reads the lengths into memory. Contiguous rows or tokens stay in the file; those that HDF5 stores
 * in chunks are read into memory as a whole. weft_hdf5_shape gives the dataset. The program closes
 * *out by weft_close_hdf5, after its last use of the dataset. The file stays open also if another
 * replaces it under its name. After a failure *out is NULL. Errors: as weft_read_hdf5. Like
 * h5py.File. */
WEFT_API weft_status weft_open_hdf5(const char *path, const char *group,
                                    weft_hdf5 **out) WEFT_MUST_USE;
/* Closes the file and frees its arrays, also those of weft_hdf5_shape. NULL is allowed. */
WEFT_API void weft_close_hdf5(weft_hdf5 *file);
/* Returns a dataset with n, columns, len and offset of the whole file; rows and ints are NULL.
 * weft_dataset_batch and weft_plan_tokens take it, and read rows from the file on demand. The file
 * owns the arrays until weft_close_hdf5: do not call weft_dataset_free. Zeros for NULL. Several
 * threads may read from one file. */
WEFT_API weft_dataset weft_hdf5_shape(const weft_hdf5 *file);
/* Reads the sequences index[0 .. n - 1], in that order, into memory as a dataset. Its ids are these
 * indices, so batches have the dropout masks of the whole file. An index may occur twice. Adjacent
 * sequences are read in one call. The program frees *out by weft_dataset_free; after a failure *out
 * is zeroed. Errors, WEFT_EARG: an index that the file does not have. Like h5py.Dataset[i:j]. */
WEFT_API weft_status weft_read_hdf5_part(const weft_hdf5 *file, const int32_t *index, int64_t n,
                                         weft_dataset *out) WEFT_MUST_USE;
#endif

#ifdef __cplusplus
}
#endif
#endif
