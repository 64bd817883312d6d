/* arrays.c - runs a subcommand for files with weights; opens files, and reads the numbers of arrays. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "tools/weights/arrays.h"

weights_asked asked;
static const char *name; /* of the subcommand */

int run_weights(const subcommand *s, int argc, char **argv, int least, int most, int (*work)(int, char **))
{
    name = s->name;
    if (read_options(s, &asked, &argc, argv))
        return USAGE;
    if (argc < least || argc > most)
        return usage_error(s, "found %d operands; expected %s", argc, s->usage);
    int status = work(argc, argv);
    return finish_output(s->name, GOOD) ? UNREADABLE : status;
}

int each_file(int n, char **paths, int (*work)(const char *))
{
    int worst = SAME;
    emit_begin(NULL, '[');
    for (int i = 0; i < n; i++) {
        int status = work(paths[i]);
        worst = status > worst ? status : worst;
    }
    emit_end("");
    return worst;
}

int say_unreadable(void) { return say_error(UNREADABLE, "%s: %s", name, weft_file_message()); }

weft__weights *open_weights(const char *path)
{
    weft__weights *w;
    if (weft__weights_open(path, asked.rename.part, &w))
        say_unreadable();
    return w;
}

int64_t elements_of(const weft__kind *k)
{
    weft__kind bytes = *k;
    bytes.type = WEFT__I8;
    return (int64_t)weft__kind_bytes(&bytes);
}

weft__number type_of(const weft__array *a) { return a->kind.type & ~(unsigned)WEFT__BIG; }

form form_of(weft__number type)
{
    static const form forms[] = { { 10, -14 }, { 7, -126 }, { 23, -126 }, { 52, -1022 } }; /* F16 .. F64 */
    return forms[type];
}

const char *type_text(weft__number type, char text[32])
{
    char kind[128];
    weft__kind_text(&(weft__kind){ .type = type }, kind);
    if (type == WEFT__ODD || type == WEFT__U8)
        return type == WEFT__ODD ? "other" : "uint8";
    snprintf(text, 32, "%.*s", (int)strcspn(kind, " "), kind);
    return text;
}

const char *shape_text(const weft__kind *k, char text[160])
{
    int used = snprintf(text, 160, "[");
    for (int i = 0; i < k->rank; i++)
        used += snprintf(text + used, 160 - (size_t)used, "%s%lld", i ? ", " : "", (long long)k->size[i]);
    snprintf(text + used, 160 - (size_t)used, "]");
    return text;
}

bool read_numbers(weft__weights *w, const weft__array *a, numbers *x)
{
    *x = (numbers){ WEFT__F32, elements_of(&a->kind), NULL };
    if (!weft__number_is_any(a->kind.type))
        return true;
    if (!weft__number_is_float(a->kind.type) || type_of(a) == WEFT__F64)
        x->type = type_of(a) == WEFT__F64 ? WEFT__F64 : WEFT__I64;
    x->values = get_memory(x->n, weft__number_bytes(x->type));
    return weft__array_read(w, a, x->type, x->values);
}

double number_at(const numbers *x, int64_t i)
{
    if (x->type == WEFT__I64)
        return (double)((const int64_t *)x->values)[i];
    return x->type == WEFT__F64 ? ((const double *)x->values)[i] : (double)((const float *)x->values)[i];
}

moments moments_of(const numbers *x)
{
    moments m = { .least = (double)NAN, .most = (double)NAN };
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < x->n; i++) {
        double v = number_at(x, i);
        m.nans += isnan(v);
        m.infinities += isinf(v) != 0;
        if (!isfinite(v))
            continue;
        m.least = fmin(m.least, v);
        m.most = fmax(m.most, v);
        sum += v;
        squares += v * v;
    }
    int64_t finite = x->n - m.nans - m.infinities;
    m.mean = finite ? sum / (double)finite : (double)NAN;
    m.norm = finite ? sqrt(squares) : (double)NAN;
    return m;
}
