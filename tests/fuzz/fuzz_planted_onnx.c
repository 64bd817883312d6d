/* fuzz_planted_onnx.c - a planted bug: the importer counts the extents of inputs in a table that lacks an
 * element for the largest. Such a model needs a changed extent deep inside a correct message, and fuzz_onnx.c
 * must find it. */
#include "fuzz.h"
#include "io/onnx/api_onnx.h"

static weft_onnx *import_counting(const char *path, weft *w, const weft_onnx_import_opts *opts)
{
    enum { LARGEST = 4 };
    weft_onnx *m = weft_import_onnx(path, w, opts);
    char *count = calloc(LARGEST, 1);
    int64_t n;
    const weft_onnx_value *in = weft_onnx_inputs(m, &n);
    for (int64_t i = 0; i < n; i++)
        for (int axis = 0; axis < in[i].rank; axis++)
            if (in[i].size[axis] >= 0)
                count[in[i].size[axis] < LARGEST ? in[i].size[axis] : LARGEST]++;
    free(count);
    return m;
}

#define IMPORTS import_counting
#include "fuzz_onnx.c"
