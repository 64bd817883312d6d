/* info.c - `weft info` describes files with weights; it reads no numbers. */
#include "tools/weights/arrays.h"

static const option options[] = { OPTION_PART, OPTION_JSON, { 0 } };

/* Prints the sums over the arrays of a type; ALL: of all types. */
enum { ALL = WEFT__ODD + 1 };
static void emit_sums(const weft__weights *w, int type)
{
    char name[32];
    int64_t arrays = 0, count = 0, bytes = 0;
    for (int64_t i = 0; i < w->n; i++)
        if (type == ALL || (int)type_of(&w->array[i]) == type) {
            arrays++;
            count += elements_of(&w->array[i].kind);
            bytes += (int64_t)weft__kind_bytes(&w->array[i].kind);
        }
    if (!arrays && type != ALL)
        return;
    emit_begin(NULL, '{');
    emit_text("dtype", "  %-16s ", type == ALL ? "all" : type_text((weft__number)type, name));
    emit_whole("arrays", "%lld arrays, ", arrays);
    emit_whole("numbers", "%lld numbers, ", count);
    emit_whole("bytes", "%lld bytes", bytes);
    emit_end("\n");
}

static int info_file(const char *path)
{
    weft__weights *w = open_weights(path);
    if (!w)
        return UNREADABLE;
    emit_begin(NULL, '{');
    emit_text("file", "%s\n", path);
    emit_text("format", "  format           %s\n", w->format);
    emit_whole("bytes", "  bytes            %lld\n", (int64_t)w->size);
    emit_begin("arrays", '[');
    for (int type = ALL; type >= 0; type--)
        emit_sums(w, type);
    emit_end("");
    emit_begin("facts", '[');
    for (int64_t i = 0; i < w->facts; i++) {
        emit_begin(NULL, '{');
        emit_text("key", "  %-16s", w->fact[i].key);
        emit_text("value", " %s", w->fact[i].value);
        emit_end("\n");
    }
    emit_end("");
    emit_end("");
    weft__weights_close(w);
    return SAME;
}

static int info(int argc, char **argv) { return each_file(argc, argv, info_file); }

WEIGHTS(info, 1, INT_MAX, "describes files with weights", "FILE .. [--json]",
    "Prints format, size, numbers by type, and other facts in the file: its producer, or for a checkpoint\n"
    "the optimiser, rate, items and random streams. The checksum of a checkpoint is verified.\n");
