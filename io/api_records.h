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
typedef struct weft_journal weft_journal;
/* Opens a journal. append: after the lines that the file has. The program closes it by
 * weft_journal_close. After a failure *out is NULL; functions ignore a NULL journal. Like
 * torch.utils.tensorboard.SummaryWriter. */
WEFT_API weft_status weft_journal_open(const char *path, bool append,
                                       weft_journal **out) WEFT_MUST_USE;
/* Adds a member to the line; the first member begins the line. NaN and infinities become null,
 * bytes that are not UTF-8 become U+FFFD. A member with the name NULL is left out with a message.
 * Like SummaryWriter.add_scalar and SummaryWriter.add_text. */
WEFT_API void weft_journal_number(weft_journal *journal, const char *name, double value);
WEFT_API void weft_journal_text(weft_journal *journal, const char *name, const char *value);
/* Writes the line by one system call. Empty lines are not written. */
WEFT_API void weft_journal_line_end(weft_journal *journal);
/* Closes the journal. A line that has not ended is not written. NULL is allowed. */
WEFT_API void weft_journal_close(weft_journal *journal);

/* ---- files of the program ---- */
/* Writes a file as the library writes its own (see checkpoints in api_io.h): after a failure the
 * old file is unchanged. bytes may be NULL if size is 0. */
WEFT_API weft_status weft_write_file(const char *path, const void *bytes,
                                     size_t size) WEFT_MUST_USE;
/* Returns how many numbers an item has (text: bytes with the final 0); -1 and a message if it is
 * not in the file. */
WEFT_API int64_t weft_checkpoint_item_size(const char *path, const char *name);

/* ---- HDF5 ---- */
/* Writes a new file that weft_read_hdf5 reads: "lengths" and "rows" or "tokens" in `group`. */
WEFT_API weft_status weft_write_hdf5(const weft_dataset *data, const char *path,
                                     const char *group) WEFT_MUST_USE;
/* A data set in a file. A program reads parts of it, for example one part for each rank. */
typedef struct weft_hdf5 weft_hdf5;
/* Opens a data set of weft_read_hdf5 without loading it; a set in chunks is loaded whole. The
 * program closes it by weft_close_hdf5. The file stays open also if another replaces it under its
 * name. After a failure *out is NULL. Like h5py.File. */
WEFT_API weft_status weft_open_hdf5(const char *path, const char *group,
                                    weft_hdf5 **out) WEFT_MUST_USE;
/* Closes the file. NULL is allowed. */
WEFT_API void weft_close_hdf5(weft_hdf5 *file);
/* Returns n, columns, len and offset of the whole set; rows and ints are NULL. weft_dataset_batch
 * and weft_plan_tokens read rows from the file on demand. The file owns the arrays. Zeros for NULL.
 * Several threads may read from one file. */
WEFT_API weft_dataset weft_hdf5_shape(const weft_hdf5 *file);
/* Reads the sequences index[0 .. n - 1], in that order, as a dataset whose ids are these indices,
 * so that batches have the dropout masks of the whole set. One may occur twice. Adjacent sequences
 * are read in one call. Errors: an index that the file does not have. Like h5py.Dataset[i:j]. */
WEFT_API weft_status weft_read_hdf5_part(const weft_hdf5 *file, const int32_t *index, int64_t n,
                                         weft_dataset *out) WEFT_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
