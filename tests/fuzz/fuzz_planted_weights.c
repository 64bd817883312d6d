/* fuzz_planted_weights.c - a planted bug: the reader returns a matrix with fewer than 4 rows after its last
 * element. Such a file needs a changed shape inside a correct archive or message. fuzz_weights.c must find
 * it. */
#include "fuzz.h"
#include "io/weights/weights.h"

static weft_status open_behind(const char *path, const char *part, weft__weights **out)
{
    weft_status s = weft__weights_open(path, part, out);
    for (int64_t i = 0; !s && i < (*out)->n; i++) {
        weft__array *a = &(*out)->array[i];
        if (a->kind.rank == 2 && a->kind.size[0] && a->kind.size[0] < 4 && a->bytes)
            a->bytes = (*out)->image + (*out)->size;
    }
    return s;
}

#define OPENS open_behind
#include "fuzz_weights.c"
