/* run.c - `weft run`: runs an ONNX model on arrays of .npy files, and prints or writes its outputs. */
#include "tools/weights/arrays.h"
#include "weft_onnx.h"

enum { MOST = 64 };
typedef struct { const char *word[MOST]; int n; } list;
static list inputs, outputs; /* of the options */

static bool add_word(list *l, const char *word)
{
    if (l->n == MOST)
        return usage_failure(&subcommand_run, "found more than %d arrays", MOST);
    l->word[l->n++] = word;
    return true;
}

static bool add_input(void *unused, const char *word) { return (void)unused, add_word(&inputs, word); }
static bool add_output(void *unused, const char *word) { return (void)unused, add_word(&outputs, word); }

/* Sets path[k] to the file of value k: first to those of NAME=PATH, then to those without names. */
static bool assign(list *l, const weft_onnx_value *value, int64_t n, const char *path[MOST])
{
    for (int64_t k = 0; k < 2 * n; k++) {
        const char *name = value[k % n].name;
        size_t length = strlen(name);
        for (int i = 0; i < l->n && !path[k % n]; i++) {
            const char *word = l->word[i];
            bool named = word && !strncmp(word, name, length) && word[length] == '=';
            if (word && (k < n ? named : !strchr(word, '='))) {
                path[k % n] = named ? word + length + 1 : word;
                l->word[i] = NULL;
            }
        }
    }
    for (int i = 0; i < l->n; i++)
        if (l->word[i])
            return FAIL("run: %s: the model has %lld of these arrays, each once", l->word[i], (long long)n);
    return true;
}

static bool is_missing(const weft_onnx_value *v)
{
    char axes[400] = "", size[24];
    for (int i = 0; i < v->rank; i++) {
        size_t n = strlen(axes);
        snprintf(size, sizeof size, v->size[i] < 0 ? "?" : "%lld", (long long)v->size[i]);
        snprintf(axes + n, sizeof axes - n, "%s%.40s", i ? ", " : "", v->axis[i] ? v->axis[i] : size);
    }
    return FAIL("run: input %.100s %s [%s] is missing; expected --input", v->name,
                v->type == WEFT_I32 ? "int32" : "float32", v->rank < 0 ? ".." : axes);
}

/* Sets *x to the tensor of a file with one array. */
static bool read_input(weft *w, const char *path, const weft_onnx_value *v, weft_tensor **x)
{
    bool ints = v->type == WEFT_I32;
    weft__weights *file = path ? open_weights(path) : NULL;
    if (!path)
        return is_missing(v);
    if (!file)
        return false;
    const weft__array *a = &file->array[0];
    SCOPED void *values = get_memory(file->n == 1 ? elements_of(&a->kind) : 0, sizeof(double));
    if (file->n != 1)
        FAIL("run: %s has %lld arrays; expected one", path, (long long)file->n);
    else if (!weft__array_read(file, a, ints ? WEFT__I32 : weft__number_of(WEFT_REAL), values))
        unreadable();
    else
        *x = ints ? weft_ints(w, values, a->kind.rank, a->kind.size) :
                    weft_reals(w, values, a->kind.rank, a->kind.size);
    weft__weights_close(file);
    return !asked.status;
}

static void emit_output(weft *w, const weft_tensor *y, const weft_onnx_value *v, const char *path)
{
    weft__kind k = { weft__number_of(v->type), weft_rank(y), { 0 } };
    numbers x = { k.type, weft_numel(y), get_memory(weft_numel(y), weft__number_bytes(k.type)) };
    for (int i = 0; i < k.rank; i++)
        k.size[i] = weft_size(y, i);
    weft_read(y, x.values, weft__kind_bytes(&k));
    if (!asked.json && !path)
        emit("%s ", v->name);
    if (weft_ok(w))
        emit_numbers(v->name, &x, &k, path);
    free(x.values);
}

/* Errors of w are for its caller. */
static bool run_model(weft *w, weft_onnx *model)
{
    int64_t n, m;
    const weft_onnx_value *in = weft_onnx_inputs(model, &n), *out = weft_onnx_outputs(model, &m);
    const char *from[MOST] = { 0 }, *to[MOST] = { 0 };
    weft_tensor *x[MOST], *y[MOST];
    if (n > MOST || m > MOST)
        return FAIL("run: more than %d inputs or outputs", MOST);
    if (!assign(&inputs, in, n, from) || !assign(&outputs, out, m, to))
        return false;
    for (int64_t i = 0; i < n; i++)
        if (!read_input(w, from[i], &in[i], &x[i]))
            return false;
    WEFT_NO_GRAD(w)
        weft_onnx_run(model, x, n, y, m);
    emit("[");
    for (int64_t i = 0; i < m && weft_ok(w); i++)
        if (to[i] || !outputs.n)
            emit_output(w, y[i], &out[i], to[i]);
    emit("]");
    return weft_ok(w) || FAIL("run: %s", weft_error_message(w));
}

static void run(char **path)
{
    weft *w = weft_open(&(weft_opts){ .device = WEFT_BEST });
    weft_onnx *model = weft_import_onnx(path[0], w, NULL);
    model ? run_model(w, model) : unreadable();
    weft_close(w);
}

WEIGHTS(run, 1, 1, 0, "runs an ONNX model", "MODEL.onnx --input [NAME=]X.npy .. [--output [NAME=]Y.npy ..]",
    "Runs the model on arrays of NumPy, and prints its outputs as weft show does. Inputs without a name are\n"
    "in the order of the model; a missing one is listed with its type and shape.\n",
    IS_OWN("--input", "[NAME=]X.npy", add_input, "an input; without NAME the next of the model"),
    IS_OWN("--output", "[NAME=]Y.npy", add_output, "write an output instead of printing all outputs"),
    OPTION_JSON);
