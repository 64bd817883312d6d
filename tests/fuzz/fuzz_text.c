/* fuzz_text.c - fuzzes weft_read_text: lines and bytes equal those of the file, with and without line ends,
 * line by line and as one sequence. */
#include "fuzz.h"

/* Splits at \n, \r\n and the end of the file. */
static void compare(const uint8_t *bytes, size_t n, const weft_text_opts *o, const weft_dataset *d)
{
    bool one = o->one_sequence, keeps = one || o->keep_line_ends;
    int64_t line = 0, token = 0;
    for (size_t at = 0; at < n; at++, line++) {
        size_t end = at;
        while (end < n && bytes[end] != '\n')
            end++;
        bool cut = end > at && bytes[end - 1] == '\r' && (end < n || !keeps);
        size_t letters = end - at - cut, all = letters + (keeps && end < n);
        SAME(one || (line < d->n && d->len[line] == (int64_t)all && d->offset[line] == token),
             "line %lld has %zu tokens", (long long)line, all);
        SAME(token + (int64_t)all <= d->offset[d->n], "line %lld is not all there", (long long)line);
        for (size_t i = 0; i < letters; i++)
            SAME(d->ints[token++] == bytes[at + i], "line %lld, byte %zu", (long long)line, i);
        SAME(all == letters || d->ints[token++] == '\n', "line %lld has no end", (long long)line);
        at = end;
    }
    SAME((one ? 1 : line) == d->n && d->offset[d->n] == token, "%lld lines, read were %lld", (long long)line,
         (long long)d->n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file(data, size);
    for (int k = 0; k < 4; k++) {
        weft_text_opts o = { .keep_line_ends = k & 1, .one_sequence = k & 2 };
        weft_dataset d;
        fuzz_watch(size);
        weft_status s = weft_read_text(path, k ? &o : NULL, &d);
        fuzz_watched(s);
        SAME(!s, "a text was refused: %s", weft_file_message());
        compare(data, size, &o, &d);
        weft_dataset_free(&d);
    }
    return 0;
}
