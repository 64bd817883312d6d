/* fuzz_onnx.c - fuzzes weft_import_onnx and weft_onnx_run: a damaged model is refused with a message, or
 * runs on zeros with a dynamic extent of 2. */
#include "fuzz.h"
#include "io/onnx/api_onnx.h"

#ifndef IMPORTS
#define IMPORTS weft_import_onnx
#endif

enum { VALUES = 16, MOST = 4096 };

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    return size < 2 ? size : form_mutate(data, size, most, seed);
}

static weft_tensor *zeros(weft *w, const weft_onnx_value *v)
{
    static const weft_real reals[MOST];
    static const int32_t ints[MOST];
    int64_t size[WEFT_RANK], n = 1;
    int rank = v->rank < 0 ? 2 : v->rank;
    for (int i = 0; i < rank; i++) {
        size[i] = v->rank < 0 || v->size[i] < 0 ? 2 : v->size[i];
        if (__builtin_mul_overflow(n, size[i], &n) || n > MOST)
            return NULL;
    }
    return v->type == WEFT_REAL ? weft_reals(w, reals, rank, size) : weft_ints(w, ints, rank, size);
}

/* Returns whether the model could be tried. */
static bool run(weft *w, weft_onnx *model)
{
    weft_tensor *x[VALUES], *y[VALUES];
    int64_t n, m;
    const weft_onnx_value *in = weft_onnx_inputs(model, &n), *out = weft_onnx_outputs(model, &m);
    if (n > VALUES || m > VALUES)
        return false;
    for (int64_t i = 0; i < n; i++)
        if (!(x[i] = zeros(w, &in[i])))
            return false;
    bool ran = weft_onnx_run(model, x, n, y, m);
    SAME(ran || !weft_ok(w) || *weft_error_message(w), "a run failed without a message");
    for (int64_t i = 0; ran && i < m; i++) {
        SAME(out[i].name && weft_numel(y[i]) >= 0, "output %d", (int)i);
        weft_real *values = malloc((size_t)weft_numel(y[i]) * sizeof *values + 1);
        weft_read(y[i], values, (size_t)weft_numel(y[i]) * (out[i].type == WEFT_REAL ? sizeof *values : 4));
        free(values);
    }
    return ran;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    weft *w = weft_open(&(weft_opts){ .device = WEFT_REF, .threads = 1, .seed = 1 });
    const char *path = fuzz_file(data, size);
    fuzz_times = 4;
    fuzz_watch(size);
    weft_onnx *model = IMPORTS(path, w, NULL);
    SAME(weft_ok(w), "an import has failed the context: %s", weft_error_message(w));
    if (model)
        run(w, model);
    fuzz_watched(model ? WEFT_OK : WEFT_EFORMAT);
    weft_close(w);
    return !model && size % 32 ? -1 : 0; /* most refused files are not mutated again */
}
