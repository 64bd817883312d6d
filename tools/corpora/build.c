/* build.c - a corpus that grows by tokens, rows or lengths; and files, also those by gzip. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "tools/corpora/corpora.h"

static bool grow(void **array, int64_t room, size_t size)
{
    void *more = realloc(*array, (size_t)room * size);
    if (!more)
        return say_failure("corpora: no memory for %lld tokens or lengths", (long long)room);
    *array = more;
    return true;
}

static bool room_for_tokens(corpus_builder *b, int64_t columns)
{
    if (b->tokens < b->tokens_room)
        return true;
    int64_t room = 2 * b->tokens_room + 4096;
    bool good = columns ? grow((void **)&b->data.rows, room * columns, sizeof *b->data.rows) :
                          grow((void **)&b->data.ints, room, sizeof *b->data.ints);
    b->tokens_room = good ? room : b->tokens_room;
    return good;
}

bool corpus_token(corpus_builder *b, int32_t token)
{
    if (!room_for_tokens(b, 0))
        return false;
    b->data.ints[b->tokens++] = token;
    return true;
}

bool corpus_row(corpus_builder *b, const weft_real *row, int64_t columns)
{
    b->data.columns = columns;
    if (!room_for_tokens(b, columns))
        return false;
    memcpy(b->data.rows + b->tokens++ * columns, row, (size_t)columns * sizeof *row);
    return true;
}

static bool add_sequence(corpus_builder *b, int64_t length)
{
    if (b->data.n + 1 >= b->sequences_room) {
        int64_t room = 2 * b->sequences_room + 1024;
        if (!grow((void **)&b->data.len, room, sizeof *b->data.len) ||
            !grow((void **)&b->data.offset, room, sizeof *b->data.offset))
            return false;
        b->sequences_room = room;
    }
    int64_t i = b->data.n++, first = i ? b->data.offset[i] : 0;
    b->data.len[i] = (int32_t)length, b->data.offset[i] = first, b->data.offset[i + 1] = first + length;
    return true;
}

bool corpus_end_sequence(corpus_builder *b)
{
    int64_t first = b->data.n ? b->data.offset[b->data.n] : 0;
    if (b->tokens - first > INT32_MAX)
        return say_failure("corpora: sequence %lld has %lld tokens, more than %d", (long long)b->data.n,
                           (long long)(b->tokens - first), INT32_MAX);
    return add_sequence(b, b->tokens - first);
}

bool corpus_length(corpus_builder *b, double length)
{
    if (!(length >= 0 && length <= INT32_MAX))
        return say_failure("corpora: sequence %lld has length %g; 0 .. %d is expected", (long long)b->data.n,
                           length, INT32_MAX);
    return add_sequence(b, (int64_t)length);
}

bool corpus_refuse(const corpus_spec *s, const char *what)
{
    say_error(FAILED, "corpora: %s: %s", s->name, what);
    return errno = EINVAL, false;
}

bool corpus_is_length(double x) { return x >= 0 && x < INT32_MAX && x == floor(x); }

static char *refuse_file(const char *path, const char *why, char *text)
{
    say_error(FAILED, "corpora: %s: %s", path, why);
    free(text);
    errno = EIO;
    return NULL;
}

char *corpus_file(const char *path, size_t *n)
{
    errno = 0;
    gzFile file = gzopen(path, "rb");
    if (!file)
        return errno == ENOENT || errno == ENOTDIR ? (errno = ENOENT, NULL) :
                                                     refuse_file(path, strerror(errno), NULL);
    char *text = NULL;
    int got = 1;
    size_t used = 0, room = 0;
    while (got > 0) {
        if (used + 1 >= room && !grow((void **)&text, (int64_t)(room = 2 * room + 65536), 1))
            break;
        size_t want = room - used - 1;
        got = gzread(file, text + used, want > 1 << 24 ? 1 << 24 : (unsigned)want);
        used += got > 0 ? (size_t)got : 0;
    }
    int status = gzclose(file);
    if (got || status != Z_OK)
        return refuse_file(path, got > 0 ? "no memory" : "cannot be read, or is damaged", text);
    text[used] = 0;
    *n = used;
    return text;
}
