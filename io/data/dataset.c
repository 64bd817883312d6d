/* dataset.c - ragged data in memory, and from text files: each line is a sequence, each byte a token. */
#include <stdlib.h>
#include <string.h>
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
