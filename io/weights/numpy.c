/* numpy.c - lists the arrays of NumPy files, .npz and .npy. The header of an array is a text with a Python
 * dictionary, which is read by a parser of exactly this form. */
#include <string.h>
#include "io/weights/weights.h"

/* ---- the text of a header ---- */
typedef struct { const char *next, *end; } text;

static bool skip(text *t, const char *expected)  /* blanks, then this text */
{
    size_t n = strlen(expected);
    while (t->next < t->end && *t->next == ' ')
        t->next++;
    bool found = n <= (size_t)(t->end - t->next) && !memcmp(t->next, expected, n);
    t->next += found ? n : 0;
    return found;
}

static bool read_size(text *t, int64_t *n)
{
    skip(t, "");
    const char *start = t->next;
    *n = 0;
    for (; t->next < t->end && *t->next >= '0' && *t->next <= '9'; t->next++)
        if (__builtin_mul_overflow(*n, 10, n) || __builtin_add_overflow(*n, *t->next - '0', n))
            return false;
    return t->next > start;
}

static bool read_shape(text *t, weft__kind *k)   /* (), (3,), (3, 4) */
{
    bool comma = skip(t, "(");
    for (k->rank = 0; !skip(t, ")"); k->rank++) {
        if (!comma || k->rank == WEFT_RANK || !read_size(t, &k->size[k->rank]))
            return false;
        comma = skip(t, ",");
    }
    return k->rank != 1 || comma;
}

/* Reads '<f4'. Any other type, such as '<c8' or '<U5', is ODD. Objects are '|O'. */
static bool read_type(text *t, weft__number *type, bool *objects)
{
    static const struct { const char *name; weft__number type; } types[] = {
        { "f2", WEFT__F16 }, { "f4", WEFT__F32 }, { "f8", WEFT__F64 }, { "b1", WEFT__U8 },
        { "i1", WEFT__I8 }, { "i2", WEFT__I16 }, { "i4", WEFT__I32 }, { "i8", WEFT__I64 },
        { "u1", WEFT__U8 }, { "u2", WEFT__U16 }, { "u4", WEFT__U32 }, { "u8", WEFT__U64 },
    };
    const char *start = skip(t, "'") ? t->next : NULL;
    const char *quote = start ? memchr(start, '\'', (size_t)(t->end - start)) : NULL;
    if (!quote || quote == start)
        return false;
    t->next = quote + 1;
    *type = WEFT__ODD;
    *objects = memchr(start, 'O', (size_t)(quote - start));
    for (size_t i = 0; i < sizeof types / sizeof *types && quote - start == 3; i++)
        if (strchr("<>|", *start) && !memcmp(start + 1, types[i].name, 2))
            *type = types[i].type | (*start == '>' && start[2] != '1' ? WEFT__BIG : 0);
    return true;
}

static const char *read_header(text t, weft__kind *k, bool *fortran)
{
    static const char *const keys[] = { "'descr'", "'fortran_order'", "'shape'" };
    unsigned seen = 0;
    bool good = skip(&t, "{"), objects = false;
    while (good && !skip(&t, "}")) {
        unsigned i = 0;
        while (i < 3 && !skip(&t, keys[i]))
            i++;
        good = i < 3 && !(seen >> i & 1) && skip(&t, ":");
        if (good && i == 1)
            *fortran = skip(&t, "True");
        good = good && (i == 0 ? read_type(&t, &k->type, &objects) :
                        i == 1 ? *fortran || skip(&t, "False") : read_shape(&t, k)) &&
               (skip(&t, ",") || (t.next < t.end && *t.next == '}'));
        seen |= 1u << i;
    }
    skip(&t, "\n");
    if (objects)
        return "has Python objects, which need allow_pickle; save numbers: array.astype(float)";
    return good && seen == 7 && t.next == t.end ? NULL : "has a wrong header; expected {'descr': '<f4', "
           "'fortran_order': False, 'shape': (2, 3), } for numbers with at most 6 axes";
}

const char *weft__npy_read(const unsigned char *bytes, size_t size, weft__array *a)
{
    bool fortran = false;
    size_t start = size > 6 && bytes[6] == 1 ? 10 : 12;
    int64_t step = 1;
    if (size < start || memcmp(bytes, "\x93NUMPY", 6) || bytes[6] < 1 || bytes[6] > 3)
        return "is not a .npy array of version 1 to 3";
    size_t n = (size_t)weft__little(bytes + 8, start - 8);
    if (n > size - start)
        return "is incomplete: its header ends outside the file";
    text header = { (const char *)bytes + start, (const char *)bytes + start + n };
    const char *reason = read_header(header, &a->kind, &fortran);
    if (reason || a->kind.type == WEFT__ODD)
        return reason;
    a->bytes = bytes + start + n;
    if (weft__kind_bytes(&a->kind) != size - start - n)
        return "has more or fewer bytes than its shape; the file is damaged";
    weft__set_strides(a);
    for (int i = 0; i < a->kind.rank && fortran; step *= a->kind.size[i++])
        a->stride[i] = step;
    return NULL;
}

size_t weft__npy_header(const weft__kind *kind, char header[WEFT__NPY_HEADER])
{
    enum { ALL = WEFT__NPY_HEADER };
    weft__number t = kind->type;
    const char *type = t == WEFT__F32 ? "<f4" : t == WEFT__F64 ? "<f8" : t == WEFT__I32 ? "<i4" :
                       t == WEFT__I64 ? "<i8" : NULL;
    if (!type)
        return 0;
    size_t n = 10;
    n += (size_t)snprintf(header + n, ALL - n, "{'descr': '%s', 'fortran_order': False, 'shape': (", type);
    for (int i = 0; i < kind->rank; i++)
        n += (size_t)snprintf(header + n, ALL - n, "%s%lld", i ? ", " : "", (long long)kind->size[i]);
    n += (size_t)snprintf(header + n, ALL - n, kind->rank == 1 ? ",), }" : "), }");
    size_t all = (n + 64) / 64 * 64;
    memset(header + n, ' ', all - n);
    header[all - 1] = '\n';
    memcpy(header, "\x93NUMPY\1\0", 8);
    header[8] = (char)(all - 10);                /* below 256 */
    header[9] = 0;
    return all;
}

/* ---- files ---- */
static void add(weft__weights *w, const char *name, size_t n, const unsigned char *bytes, size_t size)
{
    weft__array a = { .name = weft__weights_text(w, name, n), .layer = -1 };
    const char *reason = a.name ? weft__npy_read(bytes, size, &a) : NULL;
    if (reason)
        weft__weights_fail(w, WEFT_EFORMAT, "%.200s %s", a.name, reason);
    else if (a.name)
        weft__weights_add(w, &a);
}

void weft__read_npy(weft__weights *w) { add(w, "array", 5, w->image, w->size); }

void weft__read_npz(weft__weights *w)
{
    weft__zip zip;
    weft__zip_list(w, &zip);
    for (int64_t i = 0; !w->status && i < zip.n; i++) {
        size_t n = strlen(zip.member[i].name);
        bool named = n > 4 && !strcmp(zip.member[i].name + n - 4, ".npy");
        add(w, zip.member[i].name, named ? n - 4 : n, zip.member[i].bytes, zip.member[i].size);
    }
}
