/* bench.h - inputs of exported models, and records of inputs and outputs, for export.c. A record is a line
 * with in, out or ragged, name, type, rank and extents, and the numbers. */
#ifndef TESTS_BENCH_H
#define TESTS_BENCH_H
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "weft_forecast.h"
#include "weft_onnx.h"
#include "weft_op.h"

enum { BATCHES = 4, ROWS = 8, MOST = 8, INPUTS = 24 };
static const struct {
    int64_t n;
    int32_t len[2][ROWS];
} batches[BATCHES] = {
    { 5, { { 3, 1, 0, 5, 2 }, { 2, 4, 1, 3, 6 } } },
    { 3, { { 4, 0, 2 }, { 1, 3, 2 } } },
    { 1, { { 3 }, { 2 } } },
    { 7, { { 1, 6, 2, 0, 3, 7, 2 }, { 2, 1, 4, 5, 0, 1, 8 } } },
};
static const int64_t longest[BATCHES] = { 5, 4, 3, 7 };

typedef struct bench {
    weft *w;
    weft_module *m;
    FILE *file;
    int batch, variant;
    uint64_t seed;
    void *layer[12]; /* made with the first batch */
    weft_onnx_input input[INPUTS];
    weft_tensor *output[INPUTS];
    const char *name[INPUTS];
    int inputs, outputs;
    bool unlisted, recorded[2];
} bench;
#define LAYER(i, make) (b->layer[i] ? b->layer[i] : (b->layer[i] = (make)))
#define OPTS(type, ...) (&(type){ __VA_ARGS__ })

static weft_lengths lengths_of(const bench *b, int k)
{
    return (weft_lengths){ .n = batches[b->batch].n, .len = batches[b->batch].len[k] };
}
static weft_real draw(bench *b)
{
    b->seed = b->seed * 6364136223846793005u + 1442695040888963407u;
    return (weft_real)((float)(b->seed >> 40) / (1 << 23) - 1);
}
/* numbers: reals if the type is f, ints if it is i. Reals are stored as floats. */
static void record(bench *b, const char *kind, const char *name, char type, int rank, const int64_t *size,
                   const void *numbers)
{
    int64_t n = 1;
    fprintf(b->file, "%s %s %c %d", kind, name, type, rank);
    for (int i = 0; i < rank; i++, n *= size[i - 1])
        fprintf(b->file, " %lld", (long long)size[i]);
    fputc('\n', b->file);
    for (int64_t i = 0; i < n; i++) {
        const float value = type == 'f' ? (float)((const weft_real *)numbers)[i] : 0;
        fwrite(type == 'f' ? (const void *)&value : (const int32_t *)numbers + i, 4, 1, b->file);
    }
}
static void lengths_record(bench *b, int k)
{
    if (!b->recorded[k])
        record(b, "in", k ? "lengths2" : "lengths", 'i', 1, &batches[b->batch].n, batches[b->batch].len[k]);
    b->recorded[k] = true;
}

/* Writes the rows of a batch as [time, batch, width]; padding is NaN, or 0 for ints. */
static void padded_record(bench *b, const char *kind, const char *name, char type, const weft_lengths *l,
                          int64_t width, const void *rows)
{
    const size_t one = type == 'f' ? sizeof(weft_real) : sizeof(int32_t), row = (size_t)width * one;
    int64_t T = 0;
    for (int64_t s = 0; s < l->n; s++)
        T = l->len[s] > T ? l->len[s] : T;
    T += b->batch == 2 && !strcmp(kind, "in") ? 2 : 0; /* more padding than needed */
    const int64_t size[] = { T, l->n, width };
    char *all = calloc((size_t)(T * l->n * width + 1), one);
    for (int64_t i = 0; type == 'f' && i < T * l->n * width; i++)
        ((weft_real *)(void *)all)[i] = NAN;
    const char *next = rows;
    for (int64_t s = 0; s < l->n; s++)
        for (int32_t t = 0; t < l->len[s]; t++, next += row)
            memcpy(all + (size_t)(t * l->n + s) * row, next, row);
    record(b, kind, name, type, type == 'i' && width == 1 ? 2 : 3, size, all);
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
    weft_real rows[ROWS * MOST * 16];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        rows[i] = draw(b);
    padded_record(b, "in", name, 'f', &l, width, rows);
    lengths_record(b, k);
    return listed(b, name, weft_ragged(b->w, rows, width, &l), 0);
}
static weft_tensor *ids(bench *b, const char *name, int k, int below)
{
    const weft_lengths l = lengths_of(b, k);
    int32_t rows[ROWS * MOST];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        rows[i] = (int32_t)((draw(b) + 1) / 2 * (weft_real)below);
    padded_record(b, "in", name, 'i', &l, 1, rows);
    lengths_record(b, k);
    return listed(b, name, weft_ragged_ints(b->w, rows, &l), 0);
}
/* A plain input; an extent of 0 is the number of sequences. */
static weft_tensor *plain(bench *b, const char *name, int rank, const int64_t *shape)
{
    int64_t size[WEFT_RANK], n = 1, axis = -1;
    weft_real rows[4096];
    for (int i = 0; i < rank; i++) {
        size[i] = shape[i] ? shape[i] : batches[b->batch].n;
        n *= size[i], axis = shape[i] ? axis : i;
    }
    for (int64_t i = 0; i < n; i++)
        rows[i] = draw(b);
    record(b, "in", name, 'f', rank, size, rows);
    return listed(b, name, weft_reals(b->w, rows, rank, size), (int)axis);
}
static void out(bench *b, const char *name, weft_tensor *y)
{
    const size_t n = (size_t)weft_numel(y);
    const char type = weft_dtype_of(y) == WEFT_I32 ? 'i' : 'f';
    void *rows = calloc(n + 1, sizeof(weft_real));
    int64_t width = 1, size[WEFT_RANK];
    for (int i = 0; i < weft_rank(y); i++)
        size[i] = weft_size(y, i), width *= i ? size[i] : 1;
    weft_read_sequences(y, rows, n * (type == 'f' ? sizeof(weft_real) : sizeof(int32_t)));
    if (weft_layout_of(y) != WEFT_PLAIN) {
        const weft_lengths l = weft_lengths_of(y);
        padded_record(b, "ragged", name, type, &l, width, rows);
    } else
        record(b, "out", name, type, weft_rank(y), size, rows);
    free(rows);
    b->name[b->outputs] = name, b->output[b->outputs++] = y;
}
#endif
