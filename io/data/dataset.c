/* dataset.c - ragged data in memory: reads it from text files, where each line is a sequence and each byte a
 * token, and makes ragged tensors of the step from it. */
#include <stdlib.h>
#include <string.h>
#include "core/context.h"
#include "io/data/data.h"

static bool fill_offsets(weft_dataset *d)
{
    d->offset = malloc(((size_t)d->n + 1) * sizeof *d->offset);
    if (!d->offset)
        return false;
    d->offset[0] = 0;
    for (int64_t i = 0; i < d->n; i++)
        d->offset[i + 1] = d->offset[i] + d->len[i];
    return true;
}

weft_status weft__end_dataset(weft_dataset *d, weft_status status, const char *path, weft_dataset *out)
{
    if (status == WEFT_OK && !fill_offsets(d))
        status = weft__file_fail(WEFT_ENOMEM, "%s: out of memory", path);
    if (status != WEFT_OK)
        weft_dataset_free(d);
    *out = *d;
    return status;
}

void weft_dataset_free(weft_dataset *data)
{
    if (!data)
        return;
    free(data->len);
    free(data->offset);
    free(data->rows);
    free(data->ints);
    free(data->id);
    *data = (weft_dataset){ 0 };
}

/* ---- text ---- */
/* Adds a line. ended: a line end follows its bytes. Returns false if it has 2^31 tokens or more. */
static bool add_line(weft_dataset *d, int64_t *tokens, const weft_text_opts *o, const unsigned char *line,
                     const unsigned char *end, bool ended)
{
    bool keeps = o->keep_line_ends || o->one_sequence;
    int64_t before = *tokens;
    if (end > line && end[-1] == '\r' && (ended || !keeps))
        end--;
    for (; line < end; line++)
        d->ints[(*tokens)++] = *line;
    if (ended && keeps)
        d->ints[(*tokens)++] = '\n';
    int64_t n = *tokens - before + (o->one_sequence ? d->len[0] : 0);
    if (n > INT32_MAX)
        return false;
    d->len[o->one_sequence ? 0 : d->n++] = (int32_t)n;
    return true;
}

/* line: number of the last line read, from 1. */
static bool add_lines(weft_dataset *d, const weft_text_opts *o, const unsigned char *bytes, size_t size,
                      int64_t *line)
{
    int64_t tokens = 0;
    size_t lines = 1;
    for (size_t i = 0; i < size; i++)
        lines += bytes[i] == '\n';
    d->len = calloc(lines, sizeof *d->len);
    d->ints = malloc((size + 1) * sizeof *d->ints);      /* a token is a byte of the file */
    d->n = o->one_sequence;
    bool ok = d->len && d->ints;
    for (const unsigned char *end = bytes + size, *stop; ok && bytes < end;
         bytes = stop ? stop + 1 : end, ++*line) {
        stop = memchr(bytes, '\n', (size_t)(end - bytes));
        ok = add_line(d, &tokens, o, bytes, stop ? stop : end, stop != NULL);
    }
    return ok;
}

weft_status weft_read_text(const char *path, const weft_text_opts *opts, weft_dataset *out)
{
    if (!out)
        return weft__file_fail(WEFT_EARG, "weft_read_text: out is NULL; expected a dataset");
    unsigned char *text = NULL;
    size_t size;
    int64_t line = 1;
    weft_dataset d = { 0 };
    weft_status status = weft__read_file(path, NULL, &text, &size);
    if (status == WEFT_OK && !add_lines(&d, opts ? opts : &(weft_text_opts){ 0 }, text, size, &line))
        status = weft__file_fail(WEFT_ENOMEM, "%s:%lld: out of memory, or a sequence of 2^31 tokens", path,
                                 (long long)line);
    free(text);
    return weft__end_dataset(&d, status, path, out);
}

/* ---- batches ---- */
static bool is_plausible(weft *w, const weft_dataset *d, const int32_t *index, int64_t n)
{
    if (w->status)
        return false;
    if (!d || d->n < 0 || d->columns < 0 || (d->n && (!d->len || !d->offset)))
        weft__fail(w, WEFT_EARG, "dataset_batch: %s",
                   d ? "dataset has no lengths or no offsets; expected both" :
                       "dataset is NULL; expected a dataset");
    else if (n < 0 || n >= INT32_MAX || (n && !index))
        weft__fail(w, WEFT_EARG, "dataset_batch: %lld indices%s; expected 0 or more, fewer than 2^31 - 1",
                   (long long)n, index ? "" : ", index is NULL");
    return !w->status;
}

/* Returns whether sequence index[i] exists, and its offsets agree with its length. */
static bool is_there(weft *w, const weft_dataset *d, const int32_t *index, int64_t i)
{
    int64_t s = index[i];
    if (s < 0 || s >= d->n)
        weft__fail(w, WEFT_EARG, "dataset_batch: index %lld is %lld; expected 0 .. %lld",
                   (long long)i, (long long)s, (long long)d->n - 1);
    else if (d->len[s] < 0 || d->offset[s] < 0 || d->offset[s + 1] - d->offset[s] != d->len[s])
        weft__fail(w, WEFT_EARG, "dataset_batch: sequence %lld has length %d, but offsets %lld and %lld",
                   (long long)s, (int)d->len[s], (long long)d->offset[s], (long long)d->offset[s + 1]);
    else if (d->len[s] && !d->file && !(d->columns ? (const void *)d->rows : (const void *)d->ints))
        weft__fail(w, WEFT_EARG, "dataset_batch: %s is NULL, columns is %lld", d->columns ? "rows" : "ints",
                   (long long)d->columns);
    return !w->status;
}

/* Fills lengths and ids of the batch. Returns its tokens; -1 on failure. */
static int64_t measure(weft *w, const weft_dataset *d, const int32_t *index, int64_t n, int32_t *len,
                       int64_t *id)
{
    int64_t tokens = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!is_there(w, d, index, i))
            return -1;
        len[i] = d->len[index[i]];
        id[i] = d->id ? d->id[index[i]] : index[i];
        tokens += len[i];
    }
    return tokens;
}

static int64_t row_bytes(const weft_dataset *d)
{
    return d->columns ? d->columns * (int64_t)sizeof *d->rows : (int64_t)sizeof *d->ints;
}

weft_status weft__dataset_rows(const weft_dataset *d, int64_t from, int64_t n, void *to)
{
#ifndef WEFT_IO_NONE
    if (d->file)
        return weft__hdf5_rows(d->file, from, n, to);
#endif
    const char *rows = d->columns ? (const char *)d->rows : (const char *)d->ints;
    if (n)
        memcpy(to, rows + from * row_bytes(d), (size_t)(n * row_bytes(d)));
    return WEFT_OK;
}

weft_status weft__gather(const weft_dataset *d, const int32_t *index, int64_t n, void *to)
{
    char *out = to;
    weft_status s = WEFT_OK;
    for (int64_t i = 0, rows; i < n && !s; out += rows * row_bytes(d)) {
        int64_t from = d->offset[index[i]];
        for (rows = 0; i < n && d->offset[index[i]] == from + rows; i++)
            rows += d->len[index[i]];
        s = weft__dataset_rows(d, from, rows, out);
    }
    return s;
}

weft_tensor *weft_dataset_batch(weft *w, const weft_dataset *data, const int32_t *index, int64_t n)
{
    w = w ? w : weft__no_context();
    w->running = "dataset_batch";
    if (!is_plausible(w, data, index, n))
        return &w->nil;
    int32_t *len = weft__take(w, WEFT__ARENA_CALLS, (n + 1) * (int64_t)sizeof *len);
    int64_t *id = weft__take(w, WEFT__ARENA_CALLS, (n + 1) * (int64_t)sizeof *id);
    int64_t tokens = w->status ? -1 : measure(w, data, index, n, len, id), bytes;
    int64_t row = data->columns ? (int64_t)sizeof *data->rows : (int64_t)sizeof *data->ints;
    if (tokens < 0 || __builtin_mul_overflow(tokens, data->columns ? data->columns : 1, &bytes) ||
        __builtin_mul_overflow(bytes, row, &bytes) || bytes > INT64_MAX / 4) {
        weft__fail(w, WEFT_ENOMEM, "dataset_batch: %lld rows of %lld columns", (long long)tokens,
                   (long long)data->columns);
        return &w->nil;
    }
    void *rows = weft__take(w, WEFT__ARENA_CALLS, bytes + 1);
    if (!rows)
        return &w->nil;
    weft_status read = weft__gather(data, index, n, rows);
    if (read)
        weft__fail(w, read, "dataset_batch: %s", weft_file_message());
    const weft_lengths lengths = { .n = n, .len = len, .id = id };
    return data->columns ? weft_ragged(w, rows, data->columns, &lengths) :
                           weft_ragged_ints(w, rows, &lengths);
}
