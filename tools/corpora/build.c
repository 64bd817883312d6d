/* build.c - builds a corpus from tokens, rows or lengths, and reads plain or gzipped files. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include "tools/corpora/corpora.h"

static void make_room_for_token(corpus_builder *b, int64_t columns)
{
    weft_dataset *d = &b->data;
    if (b->tokens < b->tokens_room)
        return;
    b->tokens_room = 2 * b->tokens_room + 4096;
    if (columns)
        d->rows = get_more(d->rows, b->tokens_room * columns, sizeof *d->rows);
    else
        d->ints = get_more(d->ints, b->tokens_room, sizeof *d->ints);
}

void corpus_token(corpus_builder *b, int32_t token)
{
    make_room_for_token(b, 0);
    b->data.ints[b->tokens++] = token;
}

void corpus_row(corpus_builder *b, const weft_real *row, int64_t columns)
{
    b->data.columns = columns;
    make_room_for_token(b, columns);
    memcpy(b->data.rows + b->tokens++ * columns, row, (size_t)columns * sizeof *row);
}

static void add_sequence(corpus_builder *b, int64_t length)
{
    weft_dataset *d = &b->data;
    if (d->n + 1 >= b->sequences_room) {
        b->sequences_room = 2 * b->sequences_room + 1024;
        d->len = get_more(d->len, b->sequences_room, sizeof *d->len);
        d->offset = get_more(d->offset, b->sequences_room, sizeof *d->offset);
    }
    int64_t i = d->n++, first = i ? d->offset[i] : 0;
    d->len[i] = (int32_t)length;
    d->offset[i] = first;
    d->offset[i + 1] = first + length;
}

bool corpus_end_sequence(corpus_builder *b)
{
    int64_t first = b->data.n ? b->data.offset[b->data.n] : 0;
    if (b->tokens - first > INT32_MAX)
        return say_failure("corpora: sequence %lld: found %lld tokens; expected at most %d",
                           (long long)b->data.n, (long long)(b->tokens - first), INT32_MAX);
    add_sequence(b, b->tokens - first);
    return true;
}

bool corpus_length(corpus_builder *b, double length)
{
    if (!(length >= 0 && length <= INT32_MAX))
        return say_failure("corpora: sequence %lld: found length %g; expected 0 .. %d", (long long)b->data.n,
                           length, INT32_MAX);
    add_sequence(b, (int64_t)length);
    return true;
}

bool corpus_refuse(const corpus_spec *s, const char *reason)
{
    say_error(FAILED, "corpora: %s: %s", s->name, reason);
    errno = EINVAL;
    return false;
}

bool corpus_is_length(double x) { return x >= 0 && x < INT32_MAX && x == floor(x); }

static char *refuse_file(const char *path, const char *reason, char *text)
{
    say_error(FAILED, "corpora: %s: %s", path, reason);
    free(text);
    errno = EIO;
    return NULL;
}

char *corpus_file(const char *path, size_t *n)
{
    errno = 0;
    gzFile file = strcmp(path, "-") ? gzopen(path, "rb") : gzdopen(dup(STDIN_FILENO), "rb");
    if (!file)
        return errno == ENOENT || errno == ENOTDIR ? (errno = ENOENT, NULL) :
                                                     refuse_file(path, strerror(errno), NULL);
    char *text = NULL;
    int received = 1;
    size_t used = 0, room = 0;
    while (received > 0) {
        if (used + 1 >= room)
            text = get_more(text, (int64_t)(room = 2 * room + 65536), 1);
        size_t size = room - used - 1;
        received = gzread(file, text + used, size > 1 << 24 ? 1 << 24 : (unsigned)size);
        used += received > 0 ? (size_t)received : 0;
    }
    int status = gzclose(file);
    if (received || status != Z_OK)
        return refuse_file(path, "cannot read it, or it is damaged", text);
    text[used] = 0;
    *n = used;
    return text;
}
