/* data.c - ragged data in memory: growth, whole files, and text, where each line is a sequence and each
 * byte a token. */
#include <stdlib.h>
#include <string.h>
#include "io/data/data.h"

/* ---- growing ---- */
static bool grow_array(void **array, int64_t *room, int64_t needed, size_t element)
{
    if (needed <= *room)
        return true;
    int64_t more = *room < 512 ? 1024 : *room * 2;
    void *bigger = (uint64_t)more > SIZE_MAX / 2 / element ? NULL : realloc(*array, (size_t)more * element);
    if (!bigger)
        return false;
    *array = bigger;
    *room = more;
    return true;
}

bool weft__grow_row(weft__growing *g, bool ints)
{
    weft_dataset *d = &g->data;
    void *array = ints ? (void *)d->ints : (void *)d->rows;
    bool grown = grow_array(&array, &g->row_room, g->rows + 1,
                            ints ? sizeof *d->ints : sizeof *d->rows * (size_t)d->columns);
    if (ints)
        d->ints = array;
    else
        d->rows = array;
    g->rows += grown;
    return grown;
}

bool weft__grow_sequence(weft__growing *g)
{
    weft_dataset *d = &g->data;
    void *array = d->len;
    bool grown =
        g->rows - g->first <= INT32_MAX && grow_array(&array, &g->len_room, d->n + 1, sizeof *d->len);
    d->len = array;
    if (grown)
        d->len[d->n++] = (int32_t)(g->rows - g->first);
    g->first = g->rows;
    return grown;
}

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

weft_status weft__grown(weft__growing *g, weft_status status, const char *path, weft_dataset *out)
{
    if (status == WEFT_OK && !fill_offsets(&g->data))
        status = weft__file_fail(WEFT_ENOMEM, "%s: out of memory", path);
    if (status != WEFT_OK)
        weft_dataset_free(&g->data);
    *out = g->data;
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

/* ---- whole files ---- */
static weft_status read_any_text(const char *path, const unsigned char *bytes, size_t head, size_t size)
{
    (void)path, (void)bytes, (void)head, (void)size;
    return WEFT_OK;
}

weft_status weft__slurp(const char *path, char **text, size_t *size)
{
    unsigned char *bytes = NULL;
    *text = NULL;
    *size = 0;
    weft_status status = weft__read_file(path, read_any_text, &bytes, size);
    if (status != WEFT_OK)
        return status;
    char *longer = realloc(bytes, *size + 1);
    if (!longer) {
        free(bytes);
        return weft__file_fail(WEFT_ENOMEM, "%s: out of memory", path);
    }
    longer[*size] = 0;
    *text = longer;
    return WEFT_OK;
}

/* ---- text ---- */
static bool add_token(weft__growing *g, unsigned char token)
{
    bool grown = weft__grow_row(g, true);
    if (grown)
        g->data.ints[g->rows - 1] = token;
    return grown;
}

/* ended: by \n, which is not among the bytes. */
static bool add_line(weft__growing *g, const weft_text_opts *o, const unsigned char *line,
                     const unsigned char *end, bool ended)
{
    bool keeps = o->keep_line_ends || o->one_sequence;
    if (end > line && end[-1] == '\r' && (ended || !keeps))
        end--;
    for (; line < end; line++)
        if (!add_token(g, *line))
            return false;
    if (ended && keeps && !add_token(g, '\n'))
        return false;
    return o->one_sequence || weft__grow_sequence(g);
}

static bool add_lines(weft__growing *g, const weft_text_opts *o, const unsigned char *at, size_t size,
                      int64_t *line)
{
    for (const unsigned char *end = at + size, *stop; at < end; at = stop ? stop + 1 : end, ++*line) {
        stop = memchr(at, '\n', (size_t)(end - at));
        if (!add_line(g, o, at, stop ? stop : end, stop != NULL))
            return false;
    }
    return !o->one_sequence || weft__grow_sequence(g);
}

weft_status weft_read_text(const char *path, const weft_text_opts *opts, weft_dataset *out)
{
    if (!out)
        return weft__file_fail(WEFT_EARG, "weft_read_text: no dataset given");
    char *text;
    size_t size;
    int64_t line = 1;
    weft__growing g = { 0 };
    weft_status status = weft__slurp(path, &text, &size);
    if (status == WEFT_OK &&
        !add_lines(&g, opts ? opts : &(weft_text_opts){ 0 }, (unsigned char *)text, size, &line))
        status = weft__file_fail(WEFT_ENOMEM, "%s:%lld: out of memory, or a sequence of 2^31 tokens", path,
                                 (long long)line);
    free(text);
    return weft__grown(&g, status, path, out);
}
