/* ragged.h - ragged batches: lengths, layouts, index arrays. */
#ifndef WEFT_CORE_RAGGED_H
#define WEFT_CORE_RAGGED_H
#include "core/tensor.h"

/* Sequences sorted by length, longest first, ties by position. */
typedef struct weft__order {
    weft__ints live;                             /* [longest] live[t]: number of sequences longer than t */
    weft__ints start;                            /* [longest + 1] start[t]: sum of live before t */
    int32_t *rank;                               /* [n] sorted position of each sequence */
} weft__order;
/* A placement turned for a recurrence: each of its rows is a column, longest first. See by_time.c. */
typedef struct weft__fold {
    int64_t columns;                             /* number of columns that are not empty */
    int64_t steps;
    weft__order order;
    weft__ints reset[2];                         /* as in weft__recurrence: forward, backward */
} weft__fold;
typedef struct weft__place {
    struct weft__place *next;
    int64_t rows;
    int64_t width;
    int32_t *row;
    int32_t *column;
    int64_t cells;                              /* rows of a tensor: rows * width, or the cells of the fold */
    const struct weft__place *by_time;           /* folded form of this placement; NULL until it is needed */
    const weft__fold *fold;                    /* NULL: cells are stored row by row; otherwise step by step */
} weft__place;
typedef struct weft__map {
    struct weft__map *next;
    weft__form from;
    weft__form to;
    weft__ints index;
} weft__map;
/* Which tokens the rows of a result read: column k of row t of a sequence reads its token t / repeat * every
 * + from + k * dilation. whole: only rows whose columns all exist; otherwise a row for each t whose token t /
 * repeat * every exists. last: columns after the last token read that token. memcmp compares the numbers. */
typedef struct weft__reads { int64_t width, dilation, from, every, repeat, whole, last; } weft__reads;
typedef struct weft__token_windows {
    struct weft__token_windows *next;
    weft__reads reads;
    weft_batch *to;                              /* batch of the result */
    weft__ints index;                            /* [rows, width] row of CONCAT that is read; -1: none */
    weft__ints readers;                          /* [tokens, width] row that reads the token as column k */
} weft__token_windows;
struct weft__rows {                              /* Sequence, position and id of each row of a layout. */
    struct weft__rows *next;
    weft__form f;
    weft__ints sequence;
    weft__ints position;
    int64_t *id;
};

/* A ragged batch of n sequences. Within a step, equal lengths and ids give the same batch. */
struct weft_batch {
    weft *w;
    uint64_t hash;
    weft_batch *child[4]; /* tree of the step's batches, by two bits of the hash per level */
    int64_t n;
    int64_t tokens;
    int64_t longest;
    bool own_ids;           /* the program supplied ids; otherwise ids are 0 .. n-1, or those of the shard */
    bool ids_unknown;   /* the program supplied no ids, and the shard has a different number of sequences */
    int32_t *len;                                /* [n] in the program's order, on the host */
    int64_t *id;                                 /* [n] */
    int32_t *before;                    /* [n] number of earlier tokens of the same sequence; NULL: all 0 */
    weft__ints offset;                           /* [n + 1] CONCAT: first row of each sequence */
    weft__ints sorted;                           /* [n] PACKED: sequences, longest first */
    weft__ints unsorted;                         /* [n] inverse of sorted */
    weft__ints live;                             /* [longest] PACKED: rows of each step */
    weft__ints start;                            /* [longest + 1] PACKED: first row of each step */
    weft__map *maps;                             /* gathers between two layouts, each built on first use */
    struct weft__rows *rows;
    weft__place *places;
    weft__token_windows *windows;
    void *slot;                                  /* owned by a level above; zeroed */
};

/* ---- batch.c ---- */
/* Returns the batch, or NULL, and fails the context, if the lengths are invalid. */
weft_batch *weft__batch(weft *, const weft_lengths *, const char *function);
void        weft__difference(const weft_batch *, const weft_batch *, char *text, size_t);
/* Fills an order with a stable counting sort by length. next: scratch [longest + 1]. */
void        weft__rank(int64_t n, const int32_t *len, int64_t longest, weft__order *, int32_t *next);
/* ---- index.c: allocates an index array; the caller fills the host copy, then uploads it ---- */
weft__ints  weft__index(weft *, int64_t n);
static inline int32_t *weft__index_values(weft__ints index) { return (int32_t *)(uintptr_t)index.host; }
void        weft__upload_index(weft *, weft__ints *, int64_t n);
/* ---- layout.c ---- */
/* Returns the gather from one layout to another: for each row of `to` its row in `from`, or -1. */
weft__ints  weft__map_between(weft_batch *, const weft__form *from, const weft__form *to);
/* Returns the form with its rows in another layout of the batch. total: row length of PADDED. */
weft__form  weft__as_layout(weft__form, weft_batch *, weft_layout, int64_t total, weft_align,
                            const weft__place *);
/* Returns sequence, position and id of each row, or NULL on failure. */
const struct weft__rows *weft__rows_of(weft_batch *, const weft__form *);
const weft__place *weft__placement(weft_batch *, const weft_placement *);
/* Builds the index arrays that earlier batches of the context needed. */
void        weft__make_usual_maps(weft_batch *);
int64_t     weft__row_of(const weft_batch *, const weft__form *, int64_t sequence, int64_t position);
int64_t     weft__layout_rows(const weft__form *);        /* number of rows of the batch in this layout */
/* ---- windows.c ---- */
/* Returns the batch and the index arrays of these reads, built on first use. readers: also builds .readers,
 * for which repeat must be 1. On error fails the context, names the function and returns NULL. */
const weft__token_windows *weft__token_windows_of(weft_batch *, const weft__reads *, bool readers,
                                                  const char *function);
/* ---- by_time.c ---- */
/* Returns the folded form of a placement. Without memory it fails the context and returns NULL. */
const weft__place *weft__by_time(weft_batch *, const weft__place *);
#endif
