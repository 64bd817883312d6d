/* list.c - `weft list` lists the arrays of a file with weights, sorted by name. */
#include <stdlib.h>
#include <string.h>
#include "tools/weights/arrays.h"

static const option options[] = { IS_FLAG("-s", offsetof(weights_asked, statistics),
                                          "also print minimum, maximum, mean and norm of the finite\n"
                                          "numbers, and the counts of NaN and infinities"),
                                  IS_FLAG("--names", offsetof(weights_asked, names), "print only the names"),
                                  OPTION_PART,
                                  OPTION_JSON,
                                  { 0 } };

static void emit_moments(const numbers *x)
{
    moments m = moments_of(x);
    emit_real("min", "  min %-12.6g", m.least);
    emit_real("max", " max %-12.6g", m.most);
    emit_real("mean", " mean %-12.6g", m.mean);
    emit_real("norm", " norm %-12.6g", m.norm);
    emit_whole("nan", " nan %lld", m.nans);
    emit_whole("inf", " inf %lld", m.infinities);
}

/* format: of the name, with the width of its column. */
static bool emit_array(weft__weights *w, const weft__array *a, const char *format)
{
    char type[32];
    numbers x = { 0 };
    bool good = !asked.statistics || read_numbers(w, a, &x);
    emit_begin(NULL, '{');
    emit_text("name", format, a->name);
    emit_text("dtype", "%-8s ", type_text(type_of(a), type));
    emit_shape("shape", "%-14s ", &a->kind);
    emit_whole("bytes", "%10lld", (int64_t)weft__kind_bytes(&a->kind));
    if (good && x.values)
        emit_moments(&x);
    emit_end("\n");
    free(x.values);
    return good;
}

static int list(int argc, char **argv)
{
    weft__weights *w = open_weights(argv[argc - 1]);
    char format[32];
    int width = 0;
    bool good = w;
    for (int64_t i = 0; w && i < w->n; i++)
        width = (int)strlen(w->array[i].name) > width ? (int)strlen(w->array[i].name) : width;
    snprintf(format, sizeof format, "%%-%ds  ", width < 60 ? width : 60);
    emit_begin(NULL, '[');
    for (int64_t i = 0; good && i < w->n; i++)
        if (asked.names)
            emit_text(NULL, "%s\n", w->array[i].name);
        else
            good = emit_array(w, &w->array[i], format) || say_unreadable() == SAME;
    emit_end("");
    weft__weights_close(w);
    return good ? SAME : UNREADABLE;
}

WEIGHTS(list, 1, 1, "lists the arrays of a file with weights", "FILE [-s] [--names] [--json]",
    "Prints name, type, shape and bytes of each array, sorted by name. FILE is a checkpoint of weft, HDF5,\n"
    "safetensors, PyTorch (.pt), NumPy (.npz), Keras or ONNX; its content decides. The same weights list\n"
    "the same in every format.\n");
