/* fuzz_text.c - weft_read_text: the lines and bytes of the file. */
#include "fuzz.h"

/* A line at a time, from its end: \n, \r\n or the file's. */
static void compare(const uint8_t *bytes, size_t n, const weft_dataset *d)
{
    int64_t line = 0, token = 0;
    for (size_t at = 0; at < n; at++, line++) {
        size_t end = at;
        while (end < n && bytes[end] != '\n')
            end++;
        size_t letters = end - at - (end > at && bytes[end - 1] == '\r');
        SAME(line < d->n && d->len[line] == (int64_t)letters && d->offset[line] == token,
             "line %lld has %zu bytes", (long long)line, letters);
        for (size_t i = 0; i < letters; i++)
            SAME(d->ints[token++] == bytes[at + i], "line %lld, byte %zu", (long long)line, i);
        at = end;
    }
    SAME(line == d->n && d->offset[d->n] == token, "%lld lines, read were %lld", (long long)line,
         (long long)d->n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file(data, size);
    weft_dataset d;
    fuzz_watch(size);
    weft_status s = weft_read_text(path, &d);
    fuzz_watched(s);
    SAME(!s, "a text was refused: %s", weft_file_message());
    compare(data, size, &d);
    weft_dataset_free(&d);
    return 0;
}
