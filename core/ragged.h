/* ragged.h - ragged batches: lengths, layouts, index arrays. */
#ifndef WEFT_CORE_RAGGED_H
#define WEFT_CORE_RAGGED_H
#include "core/tensor.h"

/* Lengths sorted, the longest first, ties in their order. live [longest], start [longest + 1]: how many are
 * longer than t, and the sum of these over the t before. rank [n]: the place of each. */
typedef struct weft__order {
    weft__ints live;
    weft__ints start;
    int32_t *rank;
} weft__order;
/* Rows of a placement as columns of a recurrence, longest first (fold.c). */
typedef struct weft__fold {
    int64_t columns;                             /* columns that are not empty */
    int64_t steps;
    weft__order order;
    weft__ints reset[2];                         /* as in weft__recurrence; forwards, backwards */
} weft__fold;
typedef struct weft__place {
    struct weft__place *next;
    int64_t rows;
    int64_t width;
    int32_t *row;
    int32_t *column;
    int64_t cells;                               /* rows of a tensor: rows * width, or those of the fold */
    const struct weft__place *by_time;           /* the same placement, folded; NULL: not asked for yet */
    const weft__fold *fold;                      /* NULL: cells lie row by row; else step by step */
} weft__place;
typedef struct weft__map {
    struct weft__map *next;
    weft__form from;
    weft__form to;
    weft__ints index;
} weft__map;
struct weft__rows {                              /* of a layout: what each row is */
    struct weft__rows *next;
    weft__form f;
    weft__ints sequence;
    weft__ints position;
    int64_t *id;
};

/* n sequences. Within a step equal lengths and ids are one batch. */
struct weft_batch {
    weft *w;
    uint64_t hash;
    weft_batch *child[4]; /* the step's batches: a tree, two bits of the hash a level */
    int64_t n;
    int64_t tokens;
    int64_t longest;
    bool own_ids;                                /* ids were given; else 0 .. n-1, or a shard's */
    bool nobody;                                 /* none were, and those of the shard at work do not fit */
    int32_t *len;                                /* [n] as the user gave them, on the host */
    int64_t *id;                                 /* [n] */
    int32_t *before;                             /* [n]; NULL: no sequence has tokens before it */
    weft__ints offset;                           /* [n + 1] concat: first row of each sequence */
    weft__ints sorted;                           /* [n] packed: longest first */
    weft__ints unsorted;                         /* [n] and back */
    weft__ints live;                             /* [longest] packed: rows of each step */
    weft__ints start;                            /* [longest + 1] its first row */
    weft__map *maps;                             /* every gather between two layouts asked for so far */
    struct weft__rows *rows;
    weft__place *places;
    void *slot;                                  /* a floor above keeps it here; zeroed */
};

/* ---- batch.c ---- */
/* Returns NULL, and the context fails, if the lengths are wrong. */
weft_batch *weft__batch(weft *, const weft_lengths *, const char *function);
void        weft__difference(const weft_batch *, const weft_batch *, char *text, size_t);
/* A stable counting sort. next: [longest + 1] of scratch. */
void        weft__rank(int64_t n, const int32_t *len, int64_t longest, weft__order *, int32_t *next);
/* ---- index.c: the host's part is to be filled, then sent to the device ---- */
weft__ints  weft__index(weft *, int64_t n);
static inline int32_t *weft__filled(weft__ints index) { return (int32_t *)(uintptr_t)index.host; }
void        weft__sent(weft *, weft__ints *, int64_t n);
/* ---- layout.c ---- */
weft__ints  weft__map_between(weft_batch *, const weft__form *from, const weft__form *to);
weft__form  weft__laid(weft__form, weft_batch *, weft_layout, int64_t total, weft_align, const weft__place *);
/* Sequence, position and id of each row; NULL on failure. */
const struct weft__rows *weft__rows_of(weft_batch *, const weft__form *);
const weft__place *weft__placed(weft_batch *, const weft_placement *);
/* Makes the index arrays that earlier batches were asked for. */
void        weft__make_usual_maps(weft_batch *);
int64_t     weft__row_of(const weft_batch *, const weft__form *, int64_t sequence, int64_t position);
int64_t     weft__layout_rows(const weft__form *);        /* all rows that the batch's layout takes */
/* ---- fold.c ---- */
/* Returns NULL, and the context fails, without memory. */
const weft__place *weft__by_time(weft_batch *, const weft__place *);
#endif
