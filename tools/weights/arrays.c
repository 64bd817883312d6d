/* arrays.c - runs a subcommand for files with weights; opens files, and reads the numbers of arrays. */

#include "tools/weights/arrays.h"

weights_asked asked;
const float_form float_forms[4] = { { 10, -14 }, { 7, -126 }, { 23, -126 }, { 52, -1022 } };

int run_weights(const subcommand *s, int argc, char **argv, int least, int most, int opened,
                void (*work)(char **))
{
    asked.subcommand = s->name;
    if (read_options(s, &asked, &argc, argv))
        return USAGE;
    if (argc < least || argc > most)
        return usage_error(s, "found %d operand%s; expected %s", argc, argc == 1 ? "" : "s", s->usage);
    asked.operands = argc;
    for (int i = 0; i < opened && !asked.status; i++)
        asked.file[i] = open_weights(argv[i]);
    emit(opened == EACH ? "[" : "");
    for (int i = 0; i < (opened == EACH ? argc : !asked.status); i++)
        work(argv + i);
    emit(opened == EACH ? "]" : "");
    weft__weights_close(asked.file[0]);
    weft__weights_close(asked.file[1]);
    if (asked.json && asked.comma)
        putchar('\n');
    return finish_output(s->name, GOOD) ? UNREADABLE : asked.status;
}

bool failed(int status)
{
    asked.status = status > asked.status ? status : asked.status;
    return false;
}

bool unreadable(void) { return FAIL("%s: %s", asked.subcommand, weft_file_message()); }

weft__weights *open_weights(const char *path)
{
    weft__weights *w;
    if (weft__weights_open(path, asked.rename.part, &w))
        unreadable();
    return w;
}

int64_t elements_of(const weft__kind *k)
{
    weft__kind bytes = *k;
    bytes.type = WEFT__I8;
    return (int64_t)weft__kind_bytes(&bytes);
}

weft__number type_of(const weft__array *a) { return a->kind.type & ~(unsigned)WEFT__BIG; }

const char *type_text(weft__number type)
{
    static char text[128];
    type &= ~(unsigned)WEFT__BIG;
    weft__kind_text(&(weft__kind){ .type = type }, text);
    text[strcspn(text, " ")] = 0;
    return type == WEFT__ODD ? "other" : type == WEFT__U8 ? "uint8" : text;
}

bool read_numbers(weft__weights *w, const weft__array *a, numbers *x)
{
    weft__number floats = type_of(a) == WEFT__F64 ? WEFT__F64 : WEFT__F32;
    *x = (numbers){ weft__number_is_int(a->kind.type) ? WEFT__I64 : floats, elements_of(&a->kind), NULL };
    if (!weft__number_is_any(a->kind.type))
        return true;
    x->values = get_memory(x->n, weft__number_bytes(x->type));
    return weft__array_read(w, a, x->type, x->values);
}

long double number_at(const numbers *x, int64_t i)
{
    switch (x->type) {
    case WEFT__I32: return ((const int32_t *)x->values)[i];
    case WEFT__I64: return ((const int64_t *)x->values)[i];
    case WEFT__F64: return ((const double *)x->values)[i];
    default:        return ((const float *)x->values)[i];
    }
}
