/* fuzz_planted.c - a planted bug: the reader loses the text of lines that begin with "WEF". The second reader
 * of fuzz_text.c must find it. */
#include "fuzz.h"

static weft_status read_lossy(const char *path, const weft_text_opts *opts, weft_dataset *out)
{
    weft_status s = weft_read_text(path, opts, out);
    for (int64_t i = 0; !s && i < out->n; i++) {
        int32_t *line = out->len[i] > 2 ? out->ints + out->offset[i] : NULL;
        if (line && line[0] == 'W' && line[1] == 'E' && line[2] == 'F')
            line[2] = 0;
    }
    return s;
}

#define weft_read_text read_lossy
#include "fuzz_text.c"
