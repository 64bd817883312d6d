/* convert.c - `weft convert`: writes the arrays of a file of any format as safetensors or HDF5, on request
 * with other names and another type of floats. */
#include <math.h>
#include "tools/weights/arrays.h"

static weft__number floats = WEFT__ODD; /* --dtype; ODD: each float keeps its type */

/* Returns the type of a written array. Integers in big-endian order become I32 or I64. */
static weft__number output_type(const weft__array *a)
{
    weft__number type = type_of(a);
    if (weft__number_is_float(type))
        return floats == WEFT__ODD ? type : floats;
    if (type == a->kind.type)
        return type;
    return type == WEFT__I32 || weft__number_bytes(type) < 4 ? WEFT__I32 : WEFT__I64;
}

/* Rounds to F16 or BF16, to the nearest, ties to even. A finite number may become infinite. */
static uint16_t narrow(double x, float_form f)
{
    unsigned sign = signbit(x) ? 0x8000 : 0, infinity = 0x8000 - (1u << f.fraction);
    if (!isfinite(x))
        return (uint16_t)(sign | infinity | (isnan(x) ? 1u << (f.fraction - 1) : 0));
    int exponent = (int)fmax(f.least, logb(x));
    double bits = nearbyint(ldexp(fabs(x), f.fraction - exponent)) + ldexp(exponent - f.least, f.fraction);
    return (uint16_t)(sign | (bits < infinity ? (unsigned)bits : infinity));
}

static bool read_output(weft__weights *w, const weft__array *a, weft__output *out)
{
    weft__number to = output_type(a);
    bool half = (to == WEFT__F16 || to == WEFT__BF16) && to != a->kind.type;
    weft__number as = half ? WEFT__F64 : to;
    int64_t n = elements_of(&a->kind);
    if (!weft__number_is_any(to))
        return FAIL("convert: %s: %s has a type that weft does not read", w->path, a->name);
    void *values = get_memory(n, weft__number_bytes(as));
    *out = (weft__output){ a->name, a->kind, values };
    out->kind.type = to;
    if (!weft__array_read(w, a, as, values))
        return unreadable();
    for (int64_t i = 0; i < n && half; i++) {
        double x = ((double *)values)[i];
        uint16_t bits = narrow(x, float_forms[to]);
        if (isfinite(x) && (bits & 0x7FFF) == 0x8000 - (1 << float_forms[to].fraction))
            return FAIL("convert: %s: number %lld of %s is %.9g, which %s does not hold; choose another "
                        "--dtype", w->path, (long long)i, a->name, x, type_text(to));
        memcpy((char *)values + 2 * i, &bits, sizeof bits);
    }
    return true;
}

static void write_arrays(weft__weights *w, const char *path)
{
    weft__output *list = get_memory(w->n, sizeof *list);
    for (int64_t i = 0; i < w->n && !asked.status; i++)
        read_output(w, &w->array[i], &list[i]);
    if (!asked.status && weft__weights_save(path, list, w->n))
        unreadable();
    for (int64_t i = 0; i < w->n; i++)
        free((void *)(uintptr_t)list[i].values);
    free(list);
}

static void put_names(const weft__weights *w)
{
    emit("[");
    for (int64_t i = 0; i < w->n; i++) {
        const weft__array *a = &w->array[i];
        emit("{<from>%s -> <name>%s <dtype>%s <shape>%k\n}", a->place, a->name,
             type_text(output_type(a)), &a->kind);
    }
    emit("]");
}

static void convert(char **paths)
{
    static const char *const types[] = { "f16", "bf16", "f32", "f64" };
    for (int i = 0; asked.dtype && i < 4; i++)
        floats = strcmp(asked.dtype, types[i]) ? floats : (weft__number)i;
    if (asked.operands == 1 && !asked.dry)
        failed(usage_error(&subcommand_convert, "found no file OUT; expected .safetensors or .h5"));
    else if (asked.dtype && floats == WEFT__ODD)
        failed(usage_error(&subcommand_convert, "--dtype: found \"%.20s\"; expected f32, f16, bf16 or f64",
                           asked.dtype));
    else if (!weft__weights_rename(asked.file[0], &asked.rename))
        unreadable();
    else if (asked.dry)
        put_names(asked.file[0]);
    else
        write_arrays(asked.file[0], paths[1]);
}

WEIGHTS(convert, 1, 2, 1, "writes weights of any format as safetensors or HDF5", "IN OUT [OPTION ..]",
    "Writes the arrays of IN to OUT: safetensors if it ends in .safetensors, HDF5 if it ends in .h5. An\n"
    "existing file is replaced only after everything was converted. Names that --map changes are complete;\n"
    "--prefix and --add-prefix apply to the others.\n",
    IS_TEXT("--map", "FILE", FIELD(rename.map), "a file with new names: lines \"OLD NEW\", or \"OLD* NEW*\""),
    IS_TEXT("--prefix", "P", FIELD(rename.strip_prefix), "remove this prefix from names, as \"module.\""),
    IS_TEXT("--add-prefix", "P", FIELD(rename.add_prefix), "add this prefix to names"),
    IS_TEXT("--dtype", "T", FIELD(dtype),
            "type of all floats: f32, f16, bf16 or f64 (as in IN);\nrounds to the nearest, ties to even"),
    IS_FLAG("--dry-run", FIELD(dry), "print old and new names, and write nothing"), OPTION_PART,
    OPTION_JSON);
