/* layout.c - the layouts of a ragged batch, and the gather between any two of them. One function,
 * weft__row_of, defines all layouts: it returns the row of a token. A map lists, for each row of one layout,
 * the row of the same token in another. Packing, unpacking, arranging and spreading are each one gather by
 * such a map. The first use builds the map, and the batch keeps it. */
#include <string.h>
#include "core/inside.h"

static int64_t of_placed(const weft__place *p, int64_t s, int64_t t)
{
    int64_t row = p->row[s], column = p->column[s] + t;
    return p->fold ? p->fold->order.start.host[column] + p->fold->order.rank[row] : row * p->width + column;
}

int64_t weft__row_of(const weft_batch *b, const weft__form *f, int64_t s, int64_t t)
{
    switch (f->layout) {
    case WEFT_PACKED: return b->start.host[t] + b->unsorted.host[s];
    case WEFT_CONCAT: return b->offset.host[s] + t;
    case WEFT_ROWS:   return of_placed(f->place, s, t);
    case WEFT_PADDED: return s * f->size[1] + (f->align == WEFT_ALIGN_RIGHT ? f->size[1] - b->len[s] : 0) + t;
    default:          return s;                  /* one row per sequence: the input of a spread */
    }
}

int64_t weft__layout_rows(const weft__form *f)
{
    switch (f->layout) {
    case WEFT_ROWS:   return f->place->cells;
    case WEFT_PADDED: return f->size[0] * f->size[1];
    case WEFT_PLAIN:  return f->batch ? f->batch->n : f->size[0];
    default:          return f->batch->tokens;
    }
}

static bool same_place(const weft__form *a, const weft__form *b)
{
    return a->layout == b->layout && a->place == b->place &&
           (a->layout != WEFT_PADDED || (a->align == b->align && a->size[1] == b->size[1]));
}

/* ---- usual maps ---- *
 * The context records which index arrays its batches use. On a GPU the next batch builds them with its other
 * arrays, so that one copy sends them all. Maps are recorded only between layouts that a batch alone defines,
 * WEFT_PLAIN .. WEFT_CONCAT. ROWS and PADDED also depend on a placement or a width. */
/* target number of the arrays of weft__rows_of */
enum { OF_ROWS = 4 };
static void note_usual_map(weft_batch *b, const weft__form *f, int to)
{
    if (f->layout <= WEFT_CONCAT && (to <= WEFT_CONCAT || to == OF_ROWS))
        inside(b->w)->usual_maps |= 1u << (f->layout * (OF_ROWS + 1) + to);
}

void weft__make_usual_maps(weft_batch *b)
{
    for (int from = WEFT_PLAIN; from <= WEFT_CONCAT; from++)
        for (int to = WEFT_PLAIN; to <= OF_ROWS; to++) {
            weft__form f = { .batch = b, .layout = (weft_layout)from },
                       t = { .batch = b, .layout = (weft_layout)to };
            if (!(inside(b->w)->usual_maps >> (from * (OF_ROWS + 1) + to) & 1))
                continue;
            if (to == OF_ROWS)
                weft__rows_of(b, &f);
            else
                weft__map_between(b, &f, &t);
        }
}

/* ---- maps ---- */
/* Returns whether each sequence has consecutive rows. */
static bool in_a_row(const weft__form *f)
{
    return f->layout == WEFT_CONCAT || f->layout == WEFT_PADDED ||
           (f->layout == WEFT_ROWS && !f->place->fold);
}

/* Fills a map to PACKED from consecutive rows. The row of step t is that of step 0, plus t. */
static void fill_steps(const weft_batch *b, const weft__form *from, int32_t *index)
{
    const int32_t *live = b->live.host, *start = b->start.host;
    for (int64_t i = 0; b->longest && i < live[0]; i++)
        index[i] = (int32_t)weft__row_of(b, from, b->sorted.host[i], 0);
    for (int64_t t = 1; t < b->longest; t++)
        for (int64_t i = 0; i < live[t]; i++)
            index[start[t] + i] = index[i] + (int32_t)t;
}
/* Fills the part of one sequence in a map from PACKED to consecutive rows. */
static void fill_sequence(const weft_batch *b, int64_t s, int32_t *index)
{
    const int32_t *start = b->start.host, column = b->unsorted.host[s];
    for (int64_t t = 0; t < b->len[s]; t++)
        index[t] = start[t] + column;
}
static void fill_index(const weft_batch *b, const weft__form *from, const weft__form *to, int32_t *index)
{
    if (to->layout == WEFT_PACKED && in_a_row(from))
        fill_steps(b, from, index);
    else if (from->layout == WEFT_PACKED && in_a_row(to))
        for (int64_t s = 0; s < b->n; s++)
            fill_sequence(b, s, index + weft__row_of(b, to, s, 0));
    else
        for (int64_t s = 0; s < b->n; s++)
            for (int64_t t = 0; t < b->len[s]; t++)
                index[weft__row_of(b, to, s, t)] = (int32_t)weft__row_of(b, from, s, t);
}
weft__ints weft__map_between(weft_batch *b, const weft__form *from, const weft__form *to)
{
    for (weft__map *m = b->maps; m; m = m->next)
        if (same_place(&m->from, from) && same_place(&m->to, to))
            return m->index;
    note_usual_map(b, from, (int)to->layout);
    int64_t rows = weft__layout_rows(to);
    weft__map *m = weft__take(b->w, WEFT__ARENA_BATCHES, sizeof *m);
    weft__ints index = weft__index(b->w, rows);
    if (!m || !index.host)
        return (weft__ints){ NULL, NULL };
    int32_t *host = weft__index_values(index);
    memset(host, -1, (size_t)rows * sizeof *host);                /* -1: padding */
    fill_index(b, from, to, host);
    weft__upload_index(b->w, &index, rows);
    *m = (weft__map){ b->maps, *from, *to, index };
    return weft__set_undoable(b->w, &b->maps, m) ? index : (weft__ints){ NULL, NULL };
}

weft__form weft__as_layout(weft__form f, weft_batch *b, weft_layout layout, int64_t total, weft_align align,
                           const weft__place *place)
{
    /* the leading axes of f that hold its rows: [n, T], or axis 0 */
    int axes = f.layout == WEFT_PADDED ? 2 : 1;
    weft__form out = { .type = f.type, .batch = b, .layout = layout, .align = align, .place = place };
    if (layout == WEFT_PADDED)
        out.size[out.rank++] = b->n, out.size[out.rank++] = total;
    else
        out.size[out.rank++] = layout == WEFT_ROWS ? place->cells : layout == WEFT_PLAIN ? b->n : b->tokens;
    for (int i = axes; i < f.rank && out.rank < WEFT_RANK; i++)
        out.size[out.rank++] = f.size[i];
    return out;
}

/* ---- sequence, position and id of each row ---- */
static struct weft__rows *rows_new(weft_batch *b, const weft__form *f, int64_t rows)
{
    weft *w = b->w;
    struct weft__rows *r = weft__take(w, WEFT__ARENA_BATCHES, sizeof *r);
    int64_t *id = weft__take(w, WEFT__ARENA_BATCHES, rows * (int64_t)sizeof *id);
    if (!r || !id)
        return NULL;
    *r = (struct weft__rows){ b->rows, *f, weft__index(w, rows), weft__index(w, rows), id };
    return r->sequence.host && r->position.host ? r : NULL;
}

static bool send_ids(weft *w, struct weft__rows *r, int64_t rows)
{
    if (w->dev.k->synchronous)
        return true;
    int64_t *device = weft__take(w, WEFT__ARENA_MAPS, rows * (int64_t)sizeof *device);
    if (device && rows)
        w->dev.k->upload(&w->dev, device, r->id, (size_t)weft__whole_lines(rows * (int64_t)sizeof *device));
    r->id = device;
    return device;
}

const struct weft__rows *weft__rows_of(weft_batch *b, const weft__form *f)
{
    for (struct weft__rows *r = b->rows; r; r = r->next)
        if (same_place(&r->f, f))
            return r;
    note_usual_map(b, f, OF_ROWS);
    int64_t rows = weft__layout_rows(f);
    struct weft__rows *r = rows_new(b, f, rows);
    if (!r)
        return NULL;
    int32_t *sequence = weft__index_values(r->sequence), *position = weft__index_values(r->position);
    for (int64_t i = 0; i < rows; i++) {
        sequence[i] = position[i] = -1;
        r->id[i] = -1;
    }
    for (int64_t s = 0; s < b->n; s++)
        for (int64_t t = 0; t < b->len[s]; t++) {
            int64_t row = weft__row_of(b, f, s, t);
            sequence[row] = (int32_t)s, position[row] = (int32_t)t + (b->before ? b->before[s] : 0),
                    r->id[row] = b->id[s];
        }
    weft__upload_index(b->w, &r->sequence, rows), weft__upload_index(b->w, &r->position, rows);
    if (!send_ids(b->w, r, rows))
        return NULL;
    return weft__set_undoable(b->w, &b->rows, r) ? r : NULL;
}

/* ---- placements of the layout ROWS ---- */
static bool placement_fits(weft_batch *b, const weft_placement *p)
{
    bool sane = p && p->rows >= 0 && p->width >= 0 && (b->n == 0 || (p->row && p->column)) &&
                p->rows < INT32_MAX / (p->width ? p->width : 1);
    for (int64_t s = 0; sane && s < b->n && !b->w->status; s++)
        if (p->row[s] < 0 || p->row[s] >= p->rows || p->column[s] < 0 ||
            p->column[s] + (int64_t)b->len[s] > p->width)
            weft__fail(
                b->w, WEFT_EARG,
                "to_rows: placement: sequence %lld of length %d at row %d, column %d; expected within %lld "
                "rows of %lld cells",
                (long long)s, b->len[s], p->row[s], p->column[s], (long long)p->rows, (long long)p->width);
    if (!sane)
        weft__fail(b->w, WEFT_EARG,
                   "to_rows: placement: %s, %lld rows of %lld cells; expected row and column for each of "
                   "%lld sequences, and fewer than 2^31 - 1 cells",
                   !p                 ? "NULL" :
                   b->n && !p->row    ? "row is NULL" :
                   b->n && !p->column ? "column is NULL" :
                                        "invalid size",
                   (long long)(p ? p->rows : 0), (long long)(p ? p->width : 0), (long long)b->n);
    return !b->w->status;
}

static bool cells_are_disjoint(weft_batch *b, const weft_placement *p)
{
    weft *w = b->w;
    int64_t cells = p->rows * p->width;
    int32_t *owner = weft__take(w, WEFT__ARENA_BATCHES, cells * (int64_t)sizeof *owner);
    if (!owner)
        return false;
    memset(owner, -1, (size_t)cells * sizeof *owner);
    for (int64_t s = 0; s < b->n && !w->status; s++)
        for (int64_t t = 0, cell = p->row[s] * p->width + p->column[s]; t < b->len[s]; t++, cell++) {
            if (owner[cell] >= 0)
                weft__fail(w, WEFT_EARG,
                           "to_rows: placement: sequences %d and %lld in row %d, column %lld; expected one "
                           "sequence per cell",
                           owner[cell], (long long)s, p->row[s], (long long)p->column[s] + (long long)t);
            owner[cell] = (int32_t)s;
        }
    return !w->status;
}

static bool is_placed(const weft__place *have, const weft_batch *b, const weft_placement *p)
{
    size_t bytes = (size_t)b->n * sizeof *p->row;
    return have->rows == p->rows && have->width == p->width &&
           (!bytes || (!memcmp(have->row, p->row, bytes) && !memcmp(have->column, p->column, bytes)));
}

const weft__place *weft__placement(weft_batch *b, const weft_placement *p)
{
    if (!placement_fits(b, p))
        return NULL;
    for (weft__place *have = b->places; have; have = have->next)
        if (is_placed(have, b, p))
            return have;
    if (!cells_are_disjoint(b, p))
        return NULL;
    weft *w = b->w;
    weft__place *place = weft__take(w, WEFT__ARENA_BATCHES, sizeof *place);
    int32_t *row = weft__take(w, WEFT__ARENA_BATCHES, 2 * b->n * (int64_t)sizeof *row);
    if (!place || !row)
        return NULL;
    for (int64_t s = 0; s < b->n; s++)
        row[s] = p->row[s], row[b->n + s] = p->column[s];
    *place = (weft__place){ .next = b->places,
                            .rows = p->rows,
                            .width = p->width,
                            .row = row,
                            .column = row + b->n,
                            .cells = p->rows * p->width };
    return weft__set_undoable(w, &b->places, place) ? place : NULL;
}
