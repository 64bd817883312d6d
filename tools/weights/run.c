/* run.c - `weft run`: runs an ONNX model on arrays of .npy files, and prints or writes its outputs. */
#include <stdlib.h>
#include <string.h>
#include "tools/weights/arrays.h"
#include "weft_onnx.h"

enum { MOST = 64 };
typedef struct { const char *word[MOST]; int n; } list;
static list inputs, outputs;                     /* of the options */

static bool add_word(list *l, const char *word)
{
    if (l->n == MOST)
        return usage_error(&subcommand_run, "found more than %d arrays", MOST) == GOOD;
    l->word[l->n++] = word;
    return true;
}

static bool add_input(void *unused, const char *word) { return (void)unused, add_word(&inputs, word); }
static bool add_output(void *unused, const char *word) { return (void)unused, add_word(&outputs, word); }

static const option options[] = {
    IS_OWN("--input", "[NAME=]X.npy", add_input, "an input; without NAME the next of the model"),
    IS_OWN("--output", "[NAME=]Y.npy", add_output, "write an output instead of printing all outputs"),
    OPTION_JSON, { 0 }
};

/* Returns the number of the value that NAME=PATH names; n: none. */
static int64_t named_by(const char *word, const weft_onnx_value *value, int64_t n)
{
    const char *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : 0;
    int64_t k = equals ? 0 : n;
    while (k < n && (strlen(value[k].name) != length || memcmp(word, value[k].name, length)))
        k++;
    return k;
}

/* Sets path[i] to the file of value i, first for files with names. Returns false after a printed error. */
static bool assign(const list *l, const weft_onnx_value *value, int64_t n, const char *path[MOST])
{
    for (int i = 0; i < 2 * l->n; i++) {
        const char *word = l->word[i % l->n];
        int64_t k = named_by(word, value, n);
        if ((k < n) != (i < l->n))
            continue;
        if (k < n)
            word = strchr(word, '=') + 1;
        else
            for (k = 0; k < n && path[k]; k++)
                ;
        if (k == n || path[k])
            return say_failure("run: %s: the model has %lld of these arrays, each once", word, (long long)n);
        path[k] = word;
    }
    return true;
}

/* Describes a value, "tokens int32 [batch, 5]". */
static const char *value_text(const weft_onnx_value *v, char text[512])
{
    int n = snprintf(text, 512, "%.100s %s [", v->name, v->type == WEFT_I32 ? "int32" : "float32");
    for (int i = 0; i < v->rank; i++)
        if (v->size[i] < 0)
            n += snprintf(text + n, 512 - (size_t)n, "%s%.40s", i ? ", " : "", v->axis[i] ? v->axis[i] : "?");
        else
            n += snprintf(text + n, 512 - (size_t)n, "%s%lld", i ? ", " : "", (long long)v->size[i]);
    snprintf(text + n, 512 - (size_t)n, v->rank < 0 ? "..]" : "]");
    return text;
}

/* Returns the tensor of a file with one array. Returns NULL after a printed error. */
static weft_tensor *read_input(weft *w, const char *path, const weft_onnx_value *v)
{
    char text[512];
    weft_tensor *x = NULL;
    if (!path)
        return say_error(UNREADABLE, "run: input %s is missing; expected --input", value_text(v, text)), NULL;
    weft__weights *file = open_weights(path);
    const weft__array *a = file && file->n == 1 ? &file->array[0] : NULL;
    void *values = a ? get_memory(elements_of(&a->kind), sizeof(double)) : NULL;
    bool ints = v->type == WEFT_I32;
    if (file && !a)
        say_error(UNREADABLE, "run: %s has %lld arrays; expected one", path, (long long)file->n);
    else if (a && !weft__array_read(file, a, ints ? WEFT__I32 : weft__number_of(WEFT_REAL), values))
        say_unreadable();
    else if (a)
        x = ints ? weft_ints(w, values, a->kind.rank, a->kind.size) :
                   weft_reals(w, values, a->kind.rank, a->kind.size);
    free(values);
    weft__weights_close(file);
    return x;
}

static int emit_output(weft *w, const weft_tensor *y, const weft_onnx_value *v, const char *path)
{
    weft__kind k = { weft__number_of(v->type), weft_rank(y), { 0 } };
    numbers x = { v->type == WEFT_I32 ? WEFT__I64 : k.type, weft_numel(y), NULL };
    for (int i = 0; i < k.rank; i++)
        k.size[i] = weft_size(y, i);
    x.values = get_memory(x.n, sizeof(double));
    weft_read(y, x.values, weft__kind_bytes(&k));
    for (int64_t i = x.n; v->type == WEFT_I32 && i-- > 0;)
        ((int64_t *)x.values)[i] = ((int32_t *)x.values)[i];
    int status = !weft_ok(w) ? say_error(UNREADABLE, "run: %s", weft_error_message(w)) : SAME;
    if (!status && !asked.json && !path)
        emit_text(NULL, "%s ", v->name);
    status = status ? status : emit_numbers(v->name, &x, &k, path);
    free(x.values);
    return status;
}

static int run_model(weft *w, weft_onnx *model)
{
    int64_t n = 0, m = 0;
    const weft_onnx_value *in = weft_onnx_inputs(model, &n), *out = weft_onnx_outputs(model, &m);
    const char *from[MOST] = { 0 }, *to[MOST] = { 0 };
    weft_tensor *x[MOST], *y[MOST];
    if (n > MOST || m > MOST)
        return say_error(UNREADABLE, "run: more than %d inputs or outputs", MOST);
    if (!assign(&inputs, in, n, from) || !assign(&outputs, out, m, to))
        return UNREADABLE;
    for (int64_t i = 0; i < n; i++)
        if (!(x[i] = read_input(w, from[i], &in[i])))
            return UNREADABLE;
    int status = SAME;
    WEFT_NO_GRAD(w)
        weft_onnx_run(model, x, n, y, m);
    if (!weft_ok(w))
        return say_error(UNREADABLE, "run: %s", weft_error_message(w));
    emit_begin(NULL, '[');
    for (int64_t i = 0; i < m && !status; i++)
        if (to[i] || !outputs.n)
            status = emit_output(w, y[i], &out[i], to[i]);
    emit_end("");
    return status;
}

static int run(int argc, char **argv)
{
    weft *w = weft_open(&(weft_opts){ .device = WEFT_BEST });
    weft_onnx *model = weft_import_onnx(argv[argc - 1], w, NULL);
    int status = model ? run_model(w, model) : say_unreadable();
    weft_close(w);
    return status;
}

WEIGHTS(run, 1, 1, "runs an ONNX model", "MODEL.onnx --input [NAME=]X.npy .. [--output [NAME=]Y.npy ..]",
    "Runs the model on arrays of NumPy, and prints its outputs as weft show does. Inputs without a name are\n"
    "in the order of the model; a missing one is listed with its type and shape.\n");
