/* convert.c - `weft convert`: writes the arrays of a file of any format as safetensors or HDF5, on request
 * with other names and another type of floats. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "tools/weights/arrays.h"

static const option options[] = {
    IS_TEXT("--map", "FILE", offsetof(weights_asked, rename.map),
            "a file with new names: lines \"OLD NEW\", or \"OLD* NEW*\""),
    IS_TEXT("--prefix", "P", offsetof(weights_asked, rename.strip_prefix),
            "remove this prefix from names, as \"module.\""),
    IS_TEXT("--add-prefix", "P", offsetof(weights_asked, rename.add_prefix), "add this prefix to names"),
    IS_TEXT("--dtype", "T", offsetof(weights_asked, dtype),
            "type of all floats: f32, f16, bf16 or f64 (as in IN);\nrounds to the nearest, ties to even"),
    IS_FLAG("--dry-run", offsetof(weights_asked, dry), "print old and new names, and write nothing"),
    OPTION_PART, OPTION_JSON, { 0 }
};

/* ---- types ---- */
/* Reads --dtype; ODD: each float keeps its type. */
static bool read_dtype(weft__number *type)
{
    static const char *const names[] = { "f16", "bf16", "f32", "f64" };
    *type = WEFT__ODD;
    for (int i = 0; asked.dtype && i < 4; i++)
        *type = strcmp(asked.dtype, names[i]) ? *type : (weft__number)i;
    return !asked.dtype || *type != WEFT__ODD;
}

/* Returns the type in which an array is written. Integers in big-endian order become I32 or I64. */
static weft__number output_type(const weft__array *a, weft__number floats)
{
    weft__number type = type_of(a);
    if (weft__number_is_float(type))
        return floats == WEFT__ODD ? type : floats;
    return type == a->kind.type                              ? type :
           type == WEFT__I32 || weft__number_bytes(type) < 4 ? WEFT__I32 :
                                                               WEFT__I64;
}

/* Rounds to F16 or BF16, to the nearest, ties to even. A finite number may become infinite. */
static uint16_t narrow(double x, weft__number type)
{
    form f = form_of(type);
    int exponent;
    unsigned infinity = 0x8000 - (1u << f.fraction),
             bits = infinity | (isnan(x) ? 1u << (f.fraction - 1) : 0);
    if (isfinite(x)) {
        frexp(x, &exponent);
        exponent = x == 0 || exponent - 1 < f.least ? f.least : exponent - 1;
        double rounded =
            nearbyint(ldexp(fabs(x), f.fraction - exponent)) + ldexp(exponent - f.least, f.fraction);
        bits = rounded < infinity ? (unsigned)rounded : infinity;
    }
    return (uint16_t)(bits | (signbit(x) ? 0x8000 : 0));
}

/* ---- arrays ---- */
static bool read_output(weft__weights *w, const weft__array *a, weft__number floats, weft__output *out)
{
    char text[32];
    weft__number to = output_type(a, floats);
    bool half = (to == WEFT__F16 || to == WEFT__BF16) && to != a->kind.type;
    weft__number as = half ? WEFT__F64 : to;
    int64_t n = elements_of(&a->kind);
    if (!weft__number_is_any(a->kind.type))
        return say_failure("convert: %s: %s has a type that weft does not read", w->path, a->name);
    void *values = get_memory(n, weft__number_bytes(as));
    *out = (weft__output){ a->name, a->kind, values };
    out->kind.type = to;
    if (!weft__array_read(w, a, as, values))
        return say_unreadable() == SAME;
    for (int64_t i = 0; i < n && half; i++) {
        double x = ((double *)values)[i];
        uint16_t bits = narrow(x, to);
        if (isfinite(x) && (bits & 0x7FFF) == 0x8000 - (1 << form_of(to).fraction))
            return say_failure(
                "convert: %s: number %lld of %s is %.9g, which %s does not hold; choose another "
                "--dtype",
                w->path, (long long)i, a->name, x, type_text(to, text));
        memcpy((char *)values + 2 * i, &bits, sizeof bits);
    }
    return true;
}

static bool write_arrays(weft__weights *w, const char *path, weft__number floats)
{
    weft__output *list = get_memory(w->n, sizeof *list);
    bool good = true;
    for (int64_t i = 0; i < w->n && good; i++)
        good = read_output(w, &w->array[i], floats, &list[i]);
    if (good && weft__weights_save(path, list, w->n))
        good = say_unreadable() == SAME;
    for (int64_t i = 0; i < w->n; i++)
        free((void *)(uintptr_t)list[i].values);
    free(list);
    return good;
}

static void put_names(const weft__weights *w, weft__number floats)
{
    char type[32];
    emit_begin(NULL, '[');
    for (int64_t i = 0; i < w->n; i++) {
        const weft__array *a = &w->array[i];
        emit_begin(NULL, '{');
        emit_text("from", "%s -> ", a->place ? a->place : a->name);
        emit_text("name", "%s ", a->name);
        emit_text("dtype", "%s ", type_text(output_type(a, floats), type));
        emit_shape("shape", "%s", &a->kind);
        emit_end("\n");
    }
    emit_end("");
}

static int convert(int argc, char **argv)
{
    weft__number floats;
    if (argc == 1 && !asked.dry)
        return usage_error(&subcommand_convert, "found no file OUT; expected .safetensors or .h5");
    if (!read_dtype(&floats))
        return usage_error(&subcommand_convert, "--dtype: found \"%.20s\"; expected f32, f16, bf16 or f64",
                           asked.dtype);
    weft__weights *w = open_weights(argv[0]);
    bool good = w && (weft__weights_rename(w, &asked.rename) || say_unreadable() == SAME);
    if (good && asked.dry)
        put_names(w, floats);
    else if (good)
        good = write_arrays(w, argv[1], floats);
    weft__weights_close(w);
    return good ? SAME : UNREADABLE;
}

WEIGHTS(convert, 1, 2, "writes weights of any format as safetensors or HDF5", "IN OUT [OPTION ..]",
    "Writes the arrays of IN to OUT: safetensors if it ends in .safetensors, HDF5 if it ends in .h5. An\n"
    "existing file is replaced only after everything was converted. Names that --map changes are complete;\n"
    "--prefix and --add-prefix apply to the others.\n");
