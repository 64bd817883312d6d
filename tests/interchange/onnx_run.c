/* onnx_run.c - runs an ONNX model on arrays of NumPy, so that scripts can compare with onnxruntime.
 *
 *     onnx_run MODEL.onnx IN OUT [TIMES]
 *
 * IN has the inputs in the order of the graph, as .npy arrays end to end in one file. OUT gets the outputs in
 * the order of the graph, likewise. In Python:
 *
 *     with open("in", "wb") as f:
 *         for a in inputs: np.save(f, a)         # float32, float64, int32, int64 or bool; C order
 *     subprocess.run([onnx_run, "model.onnx", "in", "out"], check=True)
 *     with open("out", "rb") as f:
 *         outputs = [np.load(f) for _ in range(n)]
 *
 * Reals come back as float32, integers and truth values as int32. An empty IN runs a model without inputs.
 * Status 0: written. 1: the model cannot be imported or run; stderr has the reason. 2: wrong arguments or IN.
 * TIMES, 1 if missing: runs the model that often, to measure its time. */
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

/* Reads the shape "(2, 3)" of a header. Returns the rank, or -1. */
static int shape_of(const char *header, int64_t *shape)
{
    const char *p = strstr(header, "'shape': (");
    int rank = 0;
    for (p = p ? p + 10 : NULL; p && *p && *p != ')' && rank < WEFT_RANK; rank++) {
        char *end;
        shape[rank] = strtoll(p, &end, 10);
        if (end == p)
            return -1;
        for (p = end; *p == ',' || *p == ' ';)
            p++;
    }
    return p && *p == ')' ? rank : -1;
}

/* Returns a tensor of n numbers of a NumPy type; NULL if weft does not read the type. */
static weft_tensor *tensor_of(weft *w, const char *type, const void *raw, int64_t n, int rank,
                              const int64_t *shape)
{
    bool f4 = !strcmp(type, "<f4"), f8 = !strcmp(type, "<f8"), i4 = !strcmp(type, "<i4"), i8 = !strcmp(type, "<i8");
    if (!f4 && !f8 && !i4 && !i8 && strcmp(type, "|b1"))
        return NULL;
    weft_real *reals = calloc((size_t)n + 1, sizeof *reals);
    int32_t *ints = calloc((size_t)n + 1, sizeof *ints);
    for (int64_t i = 0; reals && ints && i < n; i++) {
        reals[i] = (weft_real)(f4 ? ((const float *)raw)[i] : f8 ? ((const double *)raw)[i] : 0);
        ints[i] = (int32_t)(i4 ? ((const int32_t *)raw)[i] : i8 ? ((const int64_t *)raw)[i] :
                                                         f4 || f8 ? 0 : ((const char *)raw)[i]);
    }
    weft_tensor *x = !reals || !ints ? NULL : f4 || f8 ? weft_reals(w, reals, rank, shape) :
                                                         weft_ints(w, ints, rank, shape);
    free(reals);
    free(ints);
    return x;
}

/* Reads the next array. Returns NULL at the end of the file and for another form of file. */
static weft_tensor *read_array(weft *w, FILE *f)
{
    unsigned char start[HEADER];
    char header[65536], type[8] = "";
    int64_t shape[WEFT_RANK], n = 1;
    if (fread(start, 1, HEADER, f) != HEADER || memcmp(start, "\x93NUMPY\1", 7))
        return NULL;
    size_t bytes = start[8] + 256u * start[9];
    if (fread(header, 1, bytes, f) != bytes || (header[bytes] = 0, strstr(header, "'fortran_order': True")))
        return NULL;
    const char *descr = strstr(header, "'descr': '");
    int rank = shape_of(header, shape);
    if (!descr || sscanf(descr + 10, "%7[^']", type) != 1 || rank < 0)
        return NULL;
    for (int i = 0; i < rank; i++)
        n *= shape[i];
    size_t each = (size_t)(type[2] - '0');
    void *raw = n >= 0 && each <= 8 ? calloc((size_t)n + 1, each) : NULL;
    bool whole = raw && fread(raw, each, (size_t)n, f) == (size_t)n;
    weft_tensor *x = whole ? tensor_of(w, type, raw, n, rank, shape) : NULL;
    free(raw);
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
        return fail(2, "IN", "it is not a row of .npy arrays of float32, float64, int32, int64 or bool");
    if (!weft_onnx_run(model, x, n, y, outputs))
        return fail(1, "run", weft_error_message(w));
    for (int64_t i = 0; out && i < outputs; i++)
        write_array(out, y[i], value[i].type == WEFT_REAL);
    return weft_ok(w) ? 0 : fail(1, "run", weft_error_message(w));
}

int main(int n, char **argument)
{
    if (n < 4 || n > 5)
        return fail(2, "usage", "onnx_run MODEL.onnx IN OUT [TIMES]");
    FILE *in = fopen(argument[2], "rb"), *out = fopen(argument[3], "wb");
    if (!in || !out)
        return fail(2, in ? argument[3] : argument[2], "it cannot be opened");
    weft *w = weft_open(NULL);
    weft_set_grad_enabled(w, false);
    weft_set_training(w, false);
    weft_onnx *model = weft_import_onnx(argument[1], w, NULL);
    int status = model ? 0 : fail(1, "import", weft_file_message());
    for (int i = n == 5 ? atoi(argument[4]) : 1; i > 0 && !status; i--) {
        rewind(in);
        status = run(w, model, in, i == 1 ? out : NULL);
        weft_clear(w);
    }
    weft_close(w);
    fclose(in);
    fclose(out);
    return status;
}
