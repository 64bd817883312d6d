/* info.c - `weft info`: describes files with weights: format, size, counts by type, facts of the reader. It
 * reads no numbers. */
#include <stdlib.h>
#include <string.h>
#include "tools/weights/arrays.h"

static const option options[] = { OPTION_PART, OPTION_JSON, { 0 } };

/* Puts the sums over the arrays of a type; ODD + 1: of all types. */
static void put_sums(const weft__weights *w, weft__number type)
{
    char name[32];
    int64_t arrays = 0, count = 0, bytes = 0;
    for (int64_t i = 0; i < w->n; i++)
        if (type > WEFT__ODD || type_of(&w->array[i]) == type) {
            arrays++;
            count += elements_of(&w->array[i].kind);
            bytes += (int64_t)weft__kind_bytes(&w->array[i].kind);
        }
    if (!arrays && type <= WEFT__ODD)
        return;
    const char *key = type > WEFT__ODD ? "all" : type_text(type, name);
    if (!asked.json)
        printf("  %-16s ", key);
    emit_begin(key, '{');
    emit_whole("arrays", "%lld arrays, ", arrays);
    emit_whole("numbers", "%lld numbers, ", count);
    emit_whole("bytes", "%lld bytes", bytes);
    emit_end('}', "\n");
}

static void describe(const weft__weights *w)
{
    emit_begin(NULL, '{');
    emit_text("file", "%s\n", w->path);
    emit_text("format", "  format           %s\n", w->format);
    emit_whole("bytes", "  bytes            %lld\n", (int64_t)w->size);
    emit_begin("arrays", '{');
    for (int type = WEFT__ODD + 1; type >= 0; type--)
        put_sums(w, (weft__number)type);
    emit_end('}', "");
    emit_begin("facts", '[');
    for (int64_t i = 0; i < w->facts; i++) {
        emit_begin(NULL, '{');
        emit_text("key", "  %-16s", w->fact[i].key);
        emit_text("value", " %s", w->fact[i].value);
        emit_end('}', "\n");
    }
    emit_end(']', "");
    emit_end('}', "");
}

static int info(int argc, char **argv)
{
    int status = SAME;
    emit_begin(NULL, '[');
    for (int i = 0; i < argc; i++) {
        weft__weights *w = open_weights(argv[i]);
        if (w)
            describe(w);
        else
            status = UNREADABLE;
        weft__weights_close(w);
    }
    emit_end(']', "");
    return status;
}

static int run_info(int argc, char **argv) { return run_weights(&subcommand_info, argc, argv, 1, FILES, info); }

const subcommand subcommand_info = {
    .name = "info",
    .about = "describes files with weights",
    .usage = "FILE .. [--json]",
    .details = "Prints format, size, numbers by type, and what else the file says: its producer; for a checkpoint\n"
               "the optimiser, its rate, the items, the random streams. The checksum of a checkpoint is verified.\n",
    .options = options,
    .run = run_info
};
