/* onnx_run.c - runs an ONNX model on arrays of NumPy, so that scripts can compare with onnxruntime.
 *
 *     onnx_run MODEL.onnx IN OUT
 *
 * IN has the inputs in the order of the graph, as .npy arrays end to end in one file. OUT gets the outputs in
 * the order of the graph, likewise. In Python:
 *
 *     with open("in", "wb") as f:
 *         for a in inputs: np.save(f, a)         # float32, int32 or int64; C order
 *     subprocess.run([onnx_run, "model.onnx", "in", "out"], check=True)
 *     with open("out", "rb") as f:
 *         outputs = [np.load(f) for _ in range(n)]
 *
 * Reals come back as float32, integers and truth values as int32. An empty IN runs a model without inputs.
 * Status 0: written. 1: the model cannot be imported or run; stderr has the reason. 2: wrong arguments or
 * IN. */
#include <stdlib.h>
#include <string.h>
#include "weft.h"
#include "io/onnx/api_onnx.h"

enum { MOST = 64, HEADER = 10 };

static int fail(int status, const char *what, const char *reason)
{
    fprintf(stderr, "onnx_run: %s: %s\n", what, reason);
    return status;
}

/* Reads the next array. Returns NULL at the end of the file and for another form of file. */
static weft_tensor *read_array(weft *w, FILE *f)
{
    unsigned char start[HEADER];
    char header[65536], type = 0;
    int64_t shape[WEFT_RANK], n = 1;
    int rank = 0, each = 0, at = 0;
    if (fread(start, 1, HEADER, f) != HEADER || memcmp(start, "\x93NUMPY\1", 7))
        return NULL;
    size_t bytes = start[8] + 256u * start[9];
    header[bytes] = 0;
    if (fread(header, 1, bytes, f) != bytes ||
        sscanf(header, "{'descr': '<%c%d', 'fortran_order': False, 'shape': (%n", &type, &each, &at) != 2 ||
        !at)
        return NULL;
    for (char *p = header + at; *p && *p != ')' && rank < WEFT_RANK; p += strspn(p, ", "))
        n *= shape[rank++] = strtoll(p, &p, 10);
    char *raw = n >= 0 && (each == 4 || each == 8) ? calloc((size_t)n + 1, (size_t)each) : NULL;
    weft_real *reals = calloc((size_t)n + 1, sizeof *reals);
    int32_t *ints = calloc((size_t)n + 1, sizeof *ints);
    weft_tensor *x = NULL;
    if (raw && reals && ints && fread(raw, (size_t)each, (size_t)n, f) == (size_t)n) {
        for (int64_t i = 0; i < n; i++) {        /* an int64 has its low bytes first */
            memcpy(&ints[i], raw + i * each, sizeof *ints);
            reals[i] = type == 'f' ? (weft_real)((float *)(void *)raw)[i] : 0;
        }
        x = type == 'f' ? weft_reals(w, reals, rank, shape) : weft_ints(w, ints, rank, shape);
    }
    free(raw), free(reals), free(ints);
    return x;
}

static void write_array(FILE *f, const weft_tensor *x, bool real)
{
    char shape[256] = "", header[512];
    for (int i = 0; i < weft_rank(x); i++)
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%lld, ", (long long)weft_size(x, i));
    int n = snprintf(header, sizeof header, "{'descr': '<%s%d', 'fortran_order': False, 'shape': (%s), }",
                     real ? "f" : "i", real ? (int)sizeof(weft_real) : 4, shape);
    int padded = (n + HEADER + 1 + 63) / 64 * 64 - HEADER;
    size_t bytes = (size_t)weft_numel(x) * (real ? sizeof(weft_real) : 4);
    void *values = malloc(bytes + 1);
    if (!values)
        return;
    weft_read(x, values, bytes);
    fprintf(f, "%s", "\x93NUMPY\1");
    fputc(0, f);
    fputc(padded % 256, f);
    fputc(padded / 256, f);
    fprintf(f, "%s%*s\n", header, padded - n - 1, "");
    fwrite(values, 1, bytes, f);
    free(values);
}

static int run(weft *w, weft_onnx *model, FILE *in, FILE *out)
{
    weft_tensor *x[MOST + 1], *y[MOST];
    int64_t n = 0, inputs, outputs;
    const weft_onnx_value *value = weft_onnx_outputs(model, &outputs);
    weft_onnx_inputs(model, &inputs);
    if (inputs > MOST || outputs > MOST)
        return fail(2, "the model", "it has more than 64 inputs or outputs");
    while (n <= MOST && (x[n] = read_array(w, in)))
        n++;
    if (!feof(in))
        return fail(2, "IN", "it is not a row of .npy arrays of float32, int32 or int64");
    if (!weft_onnx_run(model, x, n, y, outputs))
        return fail(1, "run", weft_error_message(w));
    for (int64_t i = 0; i < outputs; i++)
        write_array(out, y[i], value[i].type == WEFT_REAL);
    return weft_ok(w) ? 0 : fail(1, "run", weft_error_message(w));
}

int main(int n, char **argument)
{
    if (n != 4)
        return fail(2, "usage", "onnx_run MODEL.onnx IN OUT");
    FILE *in = fopen(argument[2], "rb"), *out = fopen(argument[3], "wb");
    if (!in || !out)
        return fail(2, in ? argument[3] : argument[2], "it cannot be opened");
    weft *w = weft_open(NULL);
    weft_set_grad_enabled(w, false);
    weft_set_training(w, false);
    weft_onnx *model = weft_import_onnx(argument[1], w, NULL);
    int status = model ? run(w, model, in, out) : fail(1, "import", weft_file_message());
    weft_close(w);
    fclose(in);
    fclose(out);
    return status;
}
