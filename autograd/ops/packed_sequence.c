/* packed_sequence.c - PyTorch's interface to ragged tensors: PackedSequence with its fields, and functions
 * that pack, pad and unpack lists of sequences. All of them use the batch of a ragged tensor. */
#include <string.h>
#include "autograd/op.h"

static bool is_ragged(weft_tensor *x, const char *function)
{
    bool ragged = x && !weft__handle_error(x->w, x) && x->f.batch;
    if (!ragged)
        weft__failed(x, WEFT_EARG, function, "expected a ragged tensor");
    return ragged;
}

weft_packed_sequence weft_packed_sequence_of(weft_tensor *x)
{
    if (!is_ragged(x, "packed_sequence_of"))
        return (weft_packed_sequence){ .data = weft__inert_of(x) };
    const weft_batch *b = x->f.batch;
    return (weft_packed_sequence){ .data = weft_plain(weft_to_layout(x, WEFT_PACKED)),
                                   .batch_sizes = b->live.host,
                                   .sorted_indices = b->sorted.host,
                                   .unsorted_indices = b->unsorted.host,
                                   .ids = b->own_ids ? b->id : NULL,
                                   .offsets = b->before,
                                   .steps = b->longest,
                                   .sequences = b->n };
}

/* ---- from a packed sequence to a ragged tensor ---- */
/* Returns the rule that the sizes of a packed sequence break, and sets *position; NULL if none. */
static const char *wrong_sizes(const weft_packed_sequence *p, int64_t *position)
{
    if (p->steps < 0 || p->sequences < 0 || (p->steps && !p->batch_sizes))
        return "batch_sizes [steps] and counts of 0 or more";
    int64_t rows = 0, before = p->sequences;
    for (*position = 0; *position < p->steps; ++*position) {
        int32_t size = p->batch_sizes[*position];
        if (size < 1 || size > before)
            return "batch_sizes of 1 or more that never grow, at most the number of sequences";
        before = size;
        rows += size;
    }
    return rows == p->data->f.size[0] ? NULL : "one row of data for each unit of batch_sizes";
}

/* Fills sorted [sequences] with sorted_indices, or without them with the inverse of unsorted_indices, or
 * without both with 0, 1, .. Fills place [sequences] with the inverse. Returns the same as wrong_sizes. */
static const char *wrong_order(const weft_packed_sequence *p, int32_t *sorted, int32_t *place, int64_t *pos)
{
    const int32_t *forward = p->sorted_indices, *back = p->unsorted_indices;
    for (int64_t i = 0; i < p->sequences; i++)
        sorted[i] = place[i] = -1;
    for (*pos = 0; *pos < p->sequences; ++*pos) {
        int32_t i = (int32_t)*pos, rank = forward || !back ? i : back[i], s = forward ? forward[i] : i;
        if (rank < 0 || rank >= p->sequences || s < 0 || s >= p->sequences || sorted[rank] >= 0 ||
            place[s] >= 0)
            return "indices that contain each sequence once";
        if (forward && back && back[s] != i)
            return "unsorted_indices that are the inverse of sorted_indices";
        sorted[rank] = s;
        place[s] = rank;
    }
    return NULL;
}

/* Returns a ragged tensor of batch b with these rows, which have that layout. */
static weft_tensor *rows_of_batch(weft_tensor *rows, weft_batch *b, weft_layout layout)
{
    if (!b || weft__handle_error(rows->w, rows))
        return &rows->w->nil;
    weft__form f = rows->f;
    f.batch = b;
    f.layout = layout;
    return weft__view(rows, &f);
}

/* Returns plain rows in the user's order, for sequences of equal length that are stored in another order. A
 * batch in the stored order, with lengths `falling`, is placed in the user's order by row and column. */
static weft_tensor *reordered(const weft_packed_sequence *p, const int32_t *sorted, const weft_lengths *l,
                              int32_t *falling, int32_t *column, int32_t *row)
{
    int32_t *offset = row, end = 0; /* row is filled after the last use of offset */
    for (int64_t s = 0; s < l->n; s++) {
        offset[s] = end;
        end += l->len[s];
    }
    for (int64_t k = 0; k < l->n; k++) {
        falling[k] = l->len[sorted[k]];
        column[k] = offset[sorted[k]];
    }
    memset(row, 0, (size_t)l->n * sizeof *row);
    weft_batch *stored = weft__batch(p->data->w, &(weft_lengths){ .n = l->n, .len = falling }, "ragged_of");
    weft_tensor *x = rows_of_batch(p->data, stored, WEFT_PACKED);
    return weft_plain(weft_to_rows(x, &(weft_placement){ 1, end, row, column }));
}

static weft_tensor *from_rows(const weft_packed_sequence *p, const int32_t *sorted)
{
    weft *w = p->data->w;
    int64_t n = p->sequences, bytes = n * (int64_t)sizeof(int32_t);
    int32_t *len = weft__take(w, WEFT__ARENA_CALLS, 4 * bytes);
    if (!len)
        return &w->nil;
    memset(len, 0, (size_t)bytes);
    for (int64_t t = 0; t < p->steps; t++)
        for (int32_t k = 0; k < p->batch_sizes[t]; k++)
            len[sorted[k]]++;
    weft_lengths l = { .n = n, .len = len, .id = p->ids, .offset = p->offsets };
    weft_batch *b = weft__batch(w, &l, "ragged_of");
    if (!b)
        return &w->nil;
    if (!p->steps || !memcmp(b->sorted.host, sorted, (size_t)bytes))
        return rows_of_batch(p->data, b, WEFT_PACKED);
    weft_tensor *rows = reordered(p, sorted, &l, len + n, len + 2 * n, len + 3 * n);
    return weft_to_layout(rows_of_batch(rows, b, WEFT_CONCAT), WEFT_PACKED);
}

weft_tensor *weft_ragged_of(const weft_packed_sequence *p)
{
    weft_tensor *x = p ? p->data : NULL;
    if (!x || weft__handle_error(x->w, x) || x->f.batch || x->f.rank < 1)
        return weft__failed(x, WEFT_EARG, "ragged_of", "expected plain data [rows, ..]");
    weft *w = x->w;
    w->running = "ragged_of";
    int64_t pos = 0;
    int32_t *sorted = NULL;
    const char *error = wrong_sizes(p, &pos);
    if (!error && (sorted = weft__take(w, WEFT__ARENA_CALLS, 2 * p->sequences * (int64_t)sizeof *sorted)))
        error = wrong_order(p, sorted, sorted + p->sequences, &pos);
    if (error)
        weft__fail(
            w, WEFT_EARG, "ragged_of: position %lld, with %lld steps, %lld sequences, %lld rows; expected %s",
            (long long)pos, (long long)p->steps, (long long)p->sequences, (long long)x->f.size[0], error);
    return w->status ? &w->nil : from_rows(p, sorted);
}

/* ---- lists of sequences ---- */
/* Concatenates the sequences to a ragged tensor in the layout CONCAT. */
static weft_tensor *listed(weft_tensor *const *x, int64_t n, const char *function)
{
    weft *w = weft__context(x, !x || n < 0 || n > INT32_MAX ? 0 : (int)n);
    int32_t *len = n < 1 || !x ? NULL : weft__take(w, WEFT__ARENA_CALLS, n * (int64_t)sizeof *len);
    if (n < 1 || !x)
        weft__fail(w, WEFT_EARG, "%s: %lld sequences; expected a list of one or more", function,
                   (long long)n);
    for (int64_t s = 0; len && s < n && !w->status; s++) {
        const char *error = weft__handle_error(w, x[s]);
        if (error || x[s]->f.batch || x[s]->f.rank < 1 || x[s]->f.rank != x[0]->f.rank)
            weft__fail(w, WEFT_ESHAPE, "%s: sequence %lld %s%s; expected plain [T, ..] of one rank", function,
                       (long long)s, error ? error : "is ", error ? "" : WEFT__TEXT(&x[s]->f));
        else
            len[s] = (int32_t)x[s]->f.size[0];
    }
    weft_tensor *rows = w->status || !len ? &w->nil : weft_concat(x, (int)n, 0);
    weft_batch *b = w->status ? NULL : weft__batch(w, &(weft_lengths){ .n = n, .len = len }, function);
    return rows_of_batch(rows, b, WEFT_CONCAT);
}

weft_tensor *weft_pack_sequence(weft_tensor *const *sequences, int64_t n)
{
    weft_tensor *x = listed(sequences, n, "pack_sequence");
    return x->f.batch ? weft_to_layout(x, WEFT_PACKED) : x;
}

weft_tensor *weft_pad_sequence(weft_tensor *const *sequences, int64_t n, double fill, weft_align align)
{
    weft_tensor *x = listed(sequences, n, "pad_sequence");
    return x->f.batch ? weft_pad_packed_sequence(x, 0, fill, align) : x;
}

void weft_unpack_sequence(weft_tensor *x, weft_tensor **sequences)
{
    if (!is_ragged(x, "unpack_sequence"))
        return;
    if (!sequences) {
        weft__fail(x->w, WEFT_EARG, "unpack_sequence: sequences is NULL");
        return;
    }
    const weft_batch *b = x->f.batch;
    weft_tensor *rows = weft_plain(weft_to_layout(x, WEFT_CONCAT));
    for (int64_t s = 0; s < b->n; s++)
        sequences[s] = weft_slice(rows, 0, b->offset.host[s], b->offset.host[s + 1]);
}
