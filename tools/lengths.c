/* lengths.c - `weft lengths`: prints the lengths of sequences in files of many kinds. */
#include <string.h>
#include "tools/corpora/corpora.h"
#include "tools/options.h"

static bool choose_unit(void *to, const char *value)
{
    static const char *const names[] = {
        "", "bytes", "words", "lines", "length", "tokens", "offsets", "rows"
    };
    length_opts *how = to;
    for (int i = UNIT_BYTES; i <= UNIT_ROWS; i++)
        if (!strcmp(value, names[i]))
            return how->unit = (length_unit)i, true;
    return usage_failure(&subcommand_lengths,
                         "--unit: found \"%.40s\"; expected bytes, words, lines, length, "
                         "tokens, offsets or rows",
                         value);
}

static const option options[] = { IS_TEXT("--column", "NAME", offsetof(length_opts, column),
                                          "column of a table, key of JSON, or array"),
                                  IS_OWN("--unit", "UNIT", choose_unit,
                                         "count bytes, words or lines of a text; tokens of a list; rows\n"
                                         "of a table with the same text in the column; take numbers as\n"
                                         "length, or as offsets: the lengths are their differences"),
                                  { 0 } };

static int run_lengths(int argc, char **argv)
{
    length_opts how = { 0 };
    corpus_builder b = { 0 };
    bool ok = true;
    if (read_options(&subcommand_lengths, &how, &argc, argv))
        return USAGE;
    if (!argc)
        return usage_error(&subcommand_lengths, "found no file; expected one or more, - for stdin");
    for (int i = 0; i < argc && ok; i++) {
        int64_t before = b.data.n;
        ok = add_lengths(argv[i], &how, &b);
        if (ok && b.data.n == before)
            ok = say_failure("lengths: %s: found no sequence; expected one or more", argv[i]);
    }
    for (int64_t i = 0; ok && i < b.data.n; i++)
        printf("%d\n", (int)b.data.len[i]);
    corpus_free(&b.data);
    return finish_output("lengths", ok ? GOOD : FAILED);
}

const subcommand subcommand_lengths = {
    .name = "lengths",
    .about = "prints the lengths of sequences in texts, tables, JSON and arrays",
    .usage = "[OPTION].. FILE..",
    .details =
        "Prints one length a line, for weft plan. The content or the ending decides the kind of a "
        "file; a file may be gzipped.\n\n"
        "  numbers      whole numbers between white space\n"
        "  text         with --unit: bytes or words of each line, or lines of each paragraph\n"
        "  .csv, .tsv   a column of lengths (length), with --unit bytes or words of texts, with "
        "--unit rows of ids\n"
        "  JSON, JSON lines   objects with length, num_tokens, input_ids or ids\n"
        "  .npy, .npz, safetensors, HDF5   an array lengths, num_tokens, offsets or cu_seqlens, or the "
        "only one\n",
    .options = options,
    .run = run_lengths
};
