/* checkpoint.h - shared by the files of io/checkpoint: sealed files, stored parameters, values that wait
 * until all is read. */
#ifndef WEFT_IO_CHECKPOINT_H
#define WEFT_IO_CHECKPOINT_H
#include "io/hdf5/hdf5.h"

enum { WEFT__SEAL = 512, WEFT__NAMED = 320, WEFT__NOTES = 512 };
#define WEFT__MAGIC "weft checkpoint "

/* ---- file.c: an HDF5 file with a seal at its front, see docs/design/checkpoints.md ---- */
weft__h5   *weft__sealed_new(const char *path);
/* Ends h. Returns the first failure of h, or the status of writing the file. */
weft_status weft__sealed_write(weft__h5 *h, const char *path);
/* Begins to read. image: the bytes of weft__read_checkpoint, which must stay valid; NULL: reads the file. */
weft_status weft__sealed_open(const char *path, const weft__image *image, weft__h5 **h);
/* Checks the seal of a checkpoint in memory. */
weft_status weft__check_seal(const char *path, const weft__image *image);

/* ---- load.c ---- */
/* Values that wait until the whole file has been read. */
typedef struct weft__held {
    struct weft__held *next;
    void *target;
    size_t bytes;
    bool device;
    uint64_t values[];
} weft__held;
/* h: the session that is read, whose failures count; NULL: the values come from elsewhere. path: for
 * messages, without a session. */
typedef struct weft__stage {
    weft__h5 *h;
    const char *path;
    weft_status status;
    weft__held *first, *last;
} weft__stage;
weft_status weft__stage_status(const weft__stage *s);
void weft__stage_fail(weft__stage *s, weft_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Returns `bytes` zeroed bytes, to be copied to `to` at the end. If memory is short returns NULL, and the
 * stage fails. */
void *weft__hold(weft__stage *s, void *to, size_t bytes, bool device);
/* Reads a data set of this kind, to be copied to `to` at the end. */
void weft__hold_set(weft__stage *s, const char *path, const weft__kind *kind, weft__number as, void *to,
                    bool device);
/* Ends the session. Copies the waiting values to their destinations, or discards them after a failure. m may
 * be NULL if no value is on a device. */
weft_status weft__stage_end(weft__stage *s, const weft_module *m);

/* ---- paths.c ---- */
/* One parameter of the table, and the numbers that were read for it. */
typedef struct weft__known {
    const weft__parameter *p;
    const weft__held *held;
    bool found;                                  /* the file has it under one of its names */
} weft__known;
typedef struct weft__paths { weft__known *entry; size_t n; } weft__paths;
/* Makes a table of all parameters and buffers of m's root; weft__paths_end frees it. If memory is short
 * returns false, and the stage fails. */
bool weft__paths_make(weft__paths *table, const weft_module *m, weft__stage *s);
void weft__paths_end(weft__paths *table);
weft__known         *weft__paths_of(const weft__paths *table, const weft__parameter *p);
/* Returns the parameter with this name below m, "encoder.weight"; NULL: none. */
const weft__parameter *weft__paths_find(const weft__paths *table, const weft_module *m, const char *name);

/* ---- checkpoint.c ---- */
/* Returns whether a file of m has p under this name. */
bool weft__is_stored(const weft_module *m, const weft__parameter *p);
/* Returns the stored parameter or buffer after p (NULL: the first); NULL after the last. A file of m has
 * those below m, and those elsewhere that are tied to a name below m, by that name. weft__numbers_of returns
 * the parameter that has the values. */
const weft__parameter *weft__next_stored(const weft_module *m, const weft__parameter *p);
const weft__parameter *weft__numbers_of(const weft__parameter *p);
weft__kind  weft__kind_of(const weft_tensor *x);
const char *weft__path_in(const weft_module *m, const weft__parameter *p);       /* "encoder.weight" */
/* Writes the path "parameters/encoder.weight", or one below buffers/, and returns it. */
const char *weft__set_of(const weft_module *m, const weft__parameter *p, char path[WEFT__NAMED]);
/* Writes the notes of the module, "cell lstm, gates i f g o", and returns them; "" without notes. */
const char *weft__notes_of(const weft__parameter *p, char text[WEFT__NOTES]);
/* Returns the names of the parameters, one a line, in the order of the optimiser's vectors. To be freed;
 * NULL: memory is short. */
char       *weft__order_of(const weft_module *m);
/* Downloads the values into the file. If the device fails, the session fails. */
void        weft__store(weft__h5 *h, const char *path, const weft_tensor *x);
/* Checks that m can be saved and loaded; otherwise the message gives the reason. */
weft_status weft__check_storable(const weft_module *m, const char *function, const char *path);
/* Also checks that o, if not NULL, is an optimiser of m or a part of m. Equal names and sizes are not
 * enough. */
weft_status weft__check_storable_with(const weft_module *m, const weft_optim *o, const char *function,
                                      const char *path);

/* ---- items.c ---- */
weft_status weft__items_good(const char *function, const weft_checkpoint_item *items, int64_t n);
void        weft__items_store(weft__h5 *h, const weft_checkpoint_item *items, int64_t n);
void        weft__items_hold(weft__stage *s, const weft_checkpoint_item *items, int64_t n);

typedef enum { WEFT__LOADED, WEFT__MISSING, WEFT__EXTRA, WEFT__OTHER_SHAPE, WEFT__OTHER_LAYER } weft__finding;
/* Counts a finding and adds its line to the report. Without a report the stage fails with that text. */
void weft__report_finding(weft__stage *s, weft_load_report *r, weft__finding finding, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Adds the line "WORD text", or "..." once there is no more room. */
void weft__report_line(weft_load_report *r, const char *word, const char *text);
#endif
