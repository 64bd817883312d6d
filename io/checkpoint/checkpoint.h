/* checkpoint.h - what the parts of checkpoints share: sealed files, what of a module is stored, numbers
 * held back until all are good. */
#ifndef WEFT_IO_CHECKPOINT_H
#define WEFT_IO_CHECKPOINT_H
#include "io/hdf5/hdf5.h"

enum { WEFT__SEAL = 512, WEFT__NAMED = 320, WEFT__NOTES = 512 };
#define WEFT__MAGIC "weft checkpoint "

/* ---- file.c: an HDF5 file behind a seal, see docs/design/checkpoints.md ---- */
weft__h5   *weft__sealed_new(const char *path);
/* Ends h. Returns the status of all that was done to it, or of writing the file. */
weft_status weft__sealed_write(weft__h5 *h, const char *path);
/* Begins to read. image: the file as weft__read_checkpoint gives it, which must stay valid; NULL: reads the
 * file. */
weft_status weft__sealed_open(const char *path, const weft__image *image, weft__h5 **h);

/* ---- load.c ---- */
/* Values that were read and wait until everything was. */
typedef struct weft__held {
    struct weft__held *next;
    void *to;
    size_t bytes;
    bool device;
    uint64_t values[];
} weft__held;
typedef struct weft__stage { weft__h5 *h; weft__held *first, *last; } weft__stage;
/* Room for `bytes` bytes that go to `to`, zeroed; NULL, and the session has failed, if there is none. */
void *weft__hold(weft__stage *s, void *to, size_t bytes, bool device);
/* The data set, of this kind, for `to`. */
void weft__hold_set(weft__stage *s, const char *path, const weft__kind *kind, weft__number as, void *to,
                    bool device);
/* Ends the session, and copies all that is held to its destination, or after a failure to nowhere. m may be
 * NULL if nothing is on a device. */
weft_status weft__stage_end(weft__stage *s, const weft_module *m);

/* ---- paths.c ---- */
/* One parameter of the table, and what has been read for it. */
typedef struct weft__known {
    const weft__parameter *p;
    const weft__held *held;
    bool found;                                  /* the file has it under one of its names */
} weft__known;
typedef struct weft__paths { weft__known *entry; size_t n; } weft__paths;
/* A table of all parameters and buffers of m's root. Returns false if there is no memory; the session has
 * failed then. To be ended by weft__paths_end. */
bool weft__paths_make(weft__paths *table, const weft_module *m, weft__h5 *h);
void weft__paths_end(weft__paths *table);
weft__known         *weft__paths_of(const weft__paths *table, const weft__parameter *p);
/* Returns the one called "encoder.weight" below m, NULL if there is none. */
const weft__parameter *weft__paths_find(const weft__paths *table, const weft_module *m, const char *name);

/* ---- checkpoint.c ---- */
/* Whether a file of m has p under this name. */
bool weft__is_stored(const weft_module *m, const weft__parameter *p);
/* The parameters and buffers that a file of m has: those below m and, by their names here, those elsewhere
 * that are tied to a name below m. The one after p (NULL: the first); NULL: no more. Its numbers are those of
 * weft__numbers_of. */
const weft__parameter *weft__stored_after(const weft_module *m, const weft__parameter *p);
const weft__parameter *weft__numbers_of(const weft__parameter *p);
weft__kind  weft__kind_of(const weft_tensor *x);
const char *weft__path_in(const weft_module *m, const weft__parameter *p);       /* "encoder.weight" */
/* "parameters/encoder.weight", or in buffers/. */
const char *weft__set_of(const weft_module *m, const weft__parameter *p, char path[WEFT__NAMED]);
/* "cell lstm, gates i f g o": what the module says of its numbers, "" if nothing. */
const char *weft__notes_of(const weft__parameter *p, char text[WEFT__NOTES]);
/* The names of the parameters, one a line, in the order of the optimiser's vectors; to be freed, NULL if
 * there is no memory. */
char       *weft__order_of(const weft_module *m);
/* Downloads the numbers into the file; a failure of the device is the session's. */
void        weft__store(weft__h5 *h, const char *path, const weft_tensor *x);
/* Whether m can be saved and loaded; if not, the message says why. */
weft_status weft__usable(const weft_module *m, const char *function, const char *path);
/* The same, and whether o (or NULL) is an optimiser of m or of a part of it: equal names and sizes do not
 * make another's numbers its own. */
weft_status weft__usable_with(const weft_module *m, const weft_optim *o, const char *function,
                              const char *path);

/* ---- items.c ---- */
weft_status weft__items_good(const char *function, const weft_checkpoint_item *items, int64_t n);
void        weft__items_store(weft__h5 *h, const weft_checkpoint_item *items, int64_t n);
void        weft__items_hold(weft__stage *s, const weft_checkpoint_item *items, int64_t n);

typedef enum { WEFT__LOADED, WEFT__MISSING, WEFT__EXTRA, WEFT__OTHER_SHAPE, WEFT__OTHER_LAYER } weft__finding;
/* Counts it and adds its line; a NULL report: the session fails with that text. */
void weft__found(weft__h5 *h, weft_load_report *r, weft__finding what, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
#endif
