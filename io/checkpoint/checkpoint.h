/* checkpoint.h - shared by the files of io/checkpoint: files with a seal, stored parameters, values that wait
 * until all is read. */
#ifndef WEFT_IO_CHECKPOINT_H
#define WEFT_IO_CHECKPOINT_H
#include "io/numbers.h"

#define WEFT__VERSION "1"                        /* version of the contents */
enum { WEFT__NAMED = 320, WEFT__NOTES = 512 };

/* ---- file.c: a checkpoint that is written or read, in HDF5 or safetensors ---- */
/* It has arrays by path, "parameters/encoder.weight", with texts by key. Texts of "/" are those of the file.
 * Its seal is a checksum of all its bytes. After the first failure, which is kept, functions do nothing. */
typedef struct weft__sealed weft__sealed;
typedef bool weft__visit_name(const char *name, bool is_group, void *user);       /* false: stop */
typedef void weft__visit_text(const char *key, const char *text, void *user);
typedef struct weft__sealed_format {
    weft__head *check_head;
    bool (*is_whole)(const weft__image *);       /* whether the seal fits the bytes; the head is checked */
    /* begin: a new file; optimiser: it will have one. open: reads an image, which must stay valid until
     * `end`. NULL: memory is short, with a message. */
    weft__sealed *(*begin)(const char *path, bool optimiser);
    weft__sealed *(*open)(const char *path, const weft__image *);
    /* save and end free the checkpoint, and return its first failure. */
    weft_status (*save)(weft__sealed *);
    weft_status (*end)(weft__sealed *);
    weft_status (*status)(const weft__sealed *);         /* the first failure of the format itself */
    void (*write)(weft__sealed *, const char *path, const weft__kind *, const void *values);
    void (*describe)(weft__sealed *, const char *path, const char *key, const char *text);
    bool (*find)(weft__sealed *, const char *path, weft__kind *);
    void (*read)(weft__sealed *, const char *path, const weft__kind *, void *values);
    void (*each_text)(weft__sealed *, const char *path, weft__visit_text *, void *user);  /* by key */
    void (*each)(weft__sealed *, const char *group, weft__visit_name *, void *user);
} weft__sealed_format;
struct weft__sealed {
    const weft__sealed_format *format;
    const char *path;                            /* for messages; stays valid */
    weft_status status;
    unsigned char *own;                          /* bytes that weft__sealed_end frees; or NULL */
};
extern const weft__sealed_format weft__sealed_hdf5, weft__sealed_safetensors;

/* Begins a new file: safetensors if the path ends so, otherwise HDF5, in a library that has it. Stores no
 * file and returns the status after a failure. */
weft_status weft__sealed_new(const char *path, bool optimiser, weft__sealed **);
/* Writes the file to its path. Frees the checkpoint, and returns its first failure. */
weft_status weft__sealed_save(weft__sealed *);
/* Begins to read. image: the bytes of weft__read_checkpoint, which must stay valid; NULL: reads the file. */
weft_status weft__sealed_open(const char *path, const weft__image *image, weft__sealed **);
/* Begins to read an image whose seal was checked, of any version. NULL: memory is short, with a message. */
weft__sealed *weft__sealed_look(const char *path, const weft__image *image);
weft_status weft__sealed_end(weft__sealed *);
void weft__sealed_fail(weft__sealed *, weft_status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Writes an array, or a text (WEFT__CHARS, which counts its final 0). */
void weft__sealed_write(weft__sealed *, const char *path, const weft__kind *, const void *values);
void weft__sealed_describe(weft__sealed *, const char *path, const char *key, const char *text);
/* Finds the kind of an array. Returns false if it does not exist, which is not an error. */
bool weft__sealed_find(weft__sealed *, const char *path, weft__kind *);
/* Reads an array of this kind. */
void weft__sealed_read(weft__sealed *, const char *path, const weft__kind *, void *values);
/* Reads a text. Returns false if it does not exist; then *text is "". */
bool weft__sealed_text(weft__sealed *, const char *path, const char *key, char *text, size_t size);
/* Lists the texts of an array by key: "bias two, cell lstm"; "" without texts. */
void weft__sealed_notes(weft__sealed *, const char *path, char *text, size_t size);
/* Visits the arrays of a group by name. */
void weft__sealed_each(weft__sealed *, const char *group, weft__visit_name *, void *user);
/* Checks the seal of a checkpoint in memory. */
weft_status weft__check_seal(const char *path, const weft__image *image);

/* ---- hdf5.c, safetensors.c: the formats ---- */
enum { WEFT__SEAL = 512 };                       /* bytes before the HDF5 */
#define WEFT__MAGIC "weft checkpoint "
/* Ends h, which has WEFT__SEAL free bytes at its front, and writes it with a seal. */
struct weft__h5;
weft_status weft__seal_hdf5(struct weft__h5 *h, const char *path);
/* Returns whether these are the first bytes of a checkpoint in safetensors. */
bool weft__is_sealed_safetensors(const unsigned char *bytes, size_t n);

/* ---- load.c ---- */
/* Values that wait until the whole file has been read. */
typedef struct weft__held {
    struct weft__held *next;
    void *target;
    size_t bytes;
    bool device;
    uint64_t values[];
} weft__held;
/* file: the checkpoint that is read, whose failures count; NULL: the values come from elsewhere. path: for
 * messages, without a checkpoint. */
typedef struct weft__stage {
    weft__sealed *file;
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
/* Ends the checkpoint. Copies the waiting values to their destinations, or discards them after a failure. m
 * may be NULL if no value is on a device. */
weft_status weft__stage_end(weft__stage *s, const weft_module *m);

/* ---- checkpoint.c ---- */
/* Returns whether a file of m has p under this name. */
bool weft__is_stored(const weft_module *m, const weft__parameter *p);
/* Returns the stored parameter or buffer after p (NULL: the first); NULL after the last. A file of m has
 * those below m, and those elsewhere that are tied to a name below m, by that name. weft__numbers_of returns
 * the parameter that has the values. */
const weft__parameter *weft__next_stored(const weft_module *m, const weft__parameter *p);
const weft__parameter *weft__numbers_of(const weft__parameter *p);
weft__kind  weft__kind_of(const weft_tensor *x);
/* Writes the path "parameters/encoder.weight", or one below buffers/, and returns it. */
const char *weft__set_of(const weft_module *m, const weft__parameter *p, char path[WEFT__NAMED]);
/* Returns the names of the parameters, one a line, in the order of the optimiser's vectors. To be freed;
 * NULL: memory is short. */
char       *weft__order_of(const weft_module *m);
/* Copies values of the device to *host, to be freed in any case. Messages begin with file and name. */
weft_status weft__download(const char *file, const char *name, weft *w, const weft__kind *,
                           const void *device, void **host);
/* Checks that m can be saved and loaded; otherwise the message gives the reason. */
weft_status weft__check_storable(const weft_module *m, const char *function, const char *path);
/* Also checks that o, if not NULL, is an optimiser of m or a part of m. Equal names and sizes are not
 * enough. */
weft_status weft__check_storable_with(const weft_module *m, const weft_optim *o, const char *function,
                                      const char *path);

/* ---- items.c ---- */
weft_status weft__items_good(const char *function, const weft_checkpoint_item *items, int64_t n);
void        weft__items_store(weft__sealed *f, const weft_checkpoint_item *items, int64_t n);
void        weft__items_hold(weft__stage *s, const weft_checkpoint_item *items, int64_t n);

typedef enum { WEFT__LOADED, WEFT__MISSING, WEFT__EXTRA, WEFT__OTHER_SHAPE, WEFT__OTHER_LAYER } weft__finding;
/* Counts a finding and adds its line to the report. Without a report the stage fails with that text. For a
 * missing or extra array the text is its name, and the failure says the rest. */
void weft__report_finding(weft__stage *s, weft_load_report *r, weft__finding finding, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Adds the line "WORD text", or "..." once there is no more room. */
void weft__report_line(weft_load_report *r, const char *word, const char *text);
#endif
