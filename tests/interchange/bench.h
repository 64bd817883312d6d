/* bench.h - inputs of exported models, and records of inputs and outputs, for export.c. A record is a line
 * with in/out, name, type, rank and extents, and the numbers. */
#ifndef TESTS_BENCH_H
#define TESTS_BENCH_H
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "weft_forecast.h"
#include "weft_onnx.h"
#include "weft_op.h"

enum { BATCHES = 3, ROWS = 8, MOST = 8, INPUTS = 24 };
static const struct {
    int64_t n;
    int32_t len[2][ROWS];
} batches[BATCHES] = {
    { 5, { { 3, 1, 0, 5, 2 }, { 2, 4, 1, 3, 6 } } },
    { 3, { { 4, 0, 2 }, { 1, 3, 2 } } },
    { 7, { { 1, 6, 2, 0, 3, 7, 2 }, { 2, 1, 4, 5, 0, 1, 8 } } },
};

typedef struct bench {
    weft *w;
    weft_module *m;
    const char *dir;
    int batch;
    FILE *file;
    uint64_t seed;
    void *layer[12]; /* made with the first batch */
    weft_onnx_input input[INPUTS];
    int inputs;
    bool unlisted;
    weft_tensor *output[INPUTS];
    const char *name[INPUTS];
    int outputs;
} bench;
#define LAYER(i, make) (b->layer[i] ? b->layer[i] : (b->layer[i] = (make)))
#define OPTS(type, ...) (&(type){ __VA_ARGS__ })

static weft_lengths lengths_of(const bench *b, int k)
{
    return (weft_lengths){ .n = batches[b->batch].n, .len = batches[b->batch].len[k] };
}
static float draw(bench *b)
{
    b->seed = b->seed * 6364136223846793005u + 1442695040888963407u;
    return (float)(b->seed >> 40) / (1 << 23) - 1;
}
static void record(bench *b, const char *kind, const char *name, char type, int rank, const int64_t *size,
                   const void *numbers, size_t bytes)
{
    fprintf(b->file, "%s %s %c %d", kind, name, type, rank);
    for (int i = 0; i < rank; i++)
        fprintf(b->file, " %lld", (long long)size[i]);
    fputc('\n', b->file);
    fwrite(numbers, 1, bytes, b->file);
}
static void lengths_record(bench *b, const char *name, int k)
{
    int32_t len[ROWS];
    memcpy(len, batches[b->batch].len[k], sizeof len);
    record(b, "in", name, 'i', 1, &batches[b->batch].n, len, (size_t)batches[b->batch].n * sizeof *len);
}

/* Writes the rows of a batch as [time, batch, width]. */
static void padded_record(bench *b, const char *kind, const char *name, char type, const weft_lengths *l,
                          int64_t width, const void *rows, float pad)
{
    int64_t T = 0, row = 0;
    for (int64_t s = 0; s < l->n; s++)
        T = l->len[s] > T ? l->len[s] : T;
    const int64_t size[] = { T, l->n, width };
    uint32_t *all = malloc((size_t)(T * l->n * width + 1) * 4), fill = 0;
    if (type == 'f')
        memcpy(&fill, &pad, 4);
    for (int64_t i = 0; i < T * l->n * width; i++)
        all[i] = fill;
    for (int64_t s = 0; s < l->n; s++)
        for (int32_t t = 0; t < l->len[s]; t++, row++)
            memcpy(all + (t * l->n + s) * width, (const uint32_t *)rows + row * width, (size_t)width * 4);
    record(b, kind, name, type, type == 'i' && width == 1 ? 2 : 3, size, all, (size_t)(T * l->n * width) * 4);
    free(all);
}
static weft_tensor *listed(bench *b, const char *name, weft_tensor *x, int axis)
{
    b->input[b->inputs++] = (weft_onnx_input){ x, name, axis };
    return x;
}

static weft_tensor *ragged(bench *b, const char *name, int k, int64_t width)
{
    const weft_lengths l = lengths_of(b, k);
    float rows[ROWS * MOST * 16];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        rows[i] = draw(b);
    padded_record(b, "in", name, 'f', &l, width, rows, NAN);
    return listed(b, name, weft_ragged(b->w, rows, width, &l), 0);
}
static weft_tensor *ids(bench *b, const char *name, int k, int below)
{
    const weft_lengths l = lengths_of(b, k);
    int32_t rows[ROWS * MOST];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        rows[i] = (int32_t)((draw(b) + 1) / 2 * (float)below);
    padded_record(b, "in", name, 'i', &l, 1, rows, 0);
    return listed(b, name, weft_ragged_ints(b->w, rows, &l), 0);
}
/* A plain input; an extent of 0 is the number of sequences. */
static weft_tensor *plain(bench *b, const char *name, int rank, const int64_t *shape)
{
    int64_t size[WEFT_RANK], n = 1, axis = -1;
    float rows[4096];
    for (int i = 0; i < rank; i++) {
        size[i] = shape[i] ? shape[i] : batches[b->batch].n;
        n *= size[i], axis = shape[i] ? axis : i;
    }
    for (int64_t i = 0; i < n; i++)
        rows[i] = draw(b);
    record(b, "in", name, 'f', rank, size, rows, (size_t)n * 4);
    return listed(b, name, weft_reals(b->w, rows, rank, size), (int)axis);
}
static void out(bench *b, const char *name, weft_tensor *y)
{
    const size_t n = (size_t)weft_numel(y);
    void *rows = calloc(n + 1, 4);
    const char type = weft_dtype_of(y) == WEFT_I32 ? 'i' : 'f';
    int64_t width = 1, size[WEFT_RANK];
    for (int i = 0; i < weft_rank(y); i++)
        size[i] = weft_size(y, i), width *= i ? size[i] : 1;
    weft_read_sequences(y, rows, n * 4);
    if (weft_layout_of(y) != WEFT_PLAIN) {
        const weft_lengths l = weft_lengths_of(y);
        padded_record(b, "out", name, type, &l, width, rows, NAN);
    } else
        record(b, "out", name, type, weft_rank(y), size, rows, n * 4);
    free(rows);
    b->name[b->outputs] = name, b->output[b->outputs++] = y;
}
#endif
