/* lstmvis.c - a folder as LSTMVis reads it: states.h5, train.h5, words.dict, lstm.yml.
 *
 * The form is that of its README ("Adding Your Own Data", "Config File") and docs/chapter/config_states.md,
 * and of what lstmdata/data_handler.py does with them: it opens by h5py all of `files` that end with .h5,
 * takes each line of a .dict apart at blanks into a word and an id, and looks each id of the word sequence
 * up. "transform" none shows values as they are. The README's example says `file: train` where the name under
 * `files` is meant. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "io/hdf5/hdf5.h"
#include "io/text.h"

enum { BYTES = 256, PATH = 64 };
static const char f[] = "weft_write_lstmvis", mark[] = "# written by weft_write_lstmvis\n";

/* ---- what is refused ---- */
static const char *path_of(const weft_lstmvis_states *s, char buffer[PATH + 1])
{
    if (s->path)
        return s->path;
    snprintf(buffer, PATH + 1, "%s%d", s->output ? "output" : "state", s->layer ? s->layer : 1);
    return buffer;
}

static bool path_is_good(const char *path)
{
    size_t n = strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
    return n > 0 && n <= PATH && !path[n];
}

static weft_status check_values(const weft_lstmvis_states *s, int64_t tokens, const char *path)
{
    for (int64_t i = 0; i < tokens * s->units; i++)
        if (!(fabs((double)s->values[i]) <= (double)FLT_MAX))
            return weft__file_fail(
                WEFT_ENUMERIC,
                "%s: states \"%s\": %g for token %lld, unit %lld; finite numbers of a float32 "
                "are expected",
                f, path, (double)s->values[i], (long long)(i / s->units), (long long)(i % s->units));
    return WEFT_OK;
}

static weft_status check_states(const weft_lstmvis *b, int64_t k)
{
    char one[PATH + 1], other[PATH + 1];
    const weft_lstmvis_states *s = &b->states[k];
    const char *path = path_of(s, one);
    int64_t numbers;
    if (!path_is_good(path))
        return weft__file_fail(
            WEFT_EARG, "%s: states %lld: path \"%.80s\"; 1 .. %d letters, digits, _ and - are expected", f,
            (long long)k, path, (int)PATH);
    if (s->layer < 0 || s->units < 1 || __builtin_mul_overflow(b->tokens, s->units, &numbers) ||
        (b->tokens && !s->values))
        return weft__file_fail(
            WEFT_EARG,
            "%s: states \"%s\": layer %d, %lld units%s; layers from 1 on, one unit at least, "
            "and values [tokens, units] are expected",
            f, path, s->layer, (long long)s->units, s->values ? "" : ", values is NULL");
    for (int64_t i = 0; i < k; i++)
        if (!strcmp(path, path_of(&b->states[i], other)))
            return weft__file_fail(WEFT_EARG, "%s: states %lld and %lld have the same path, \"%s\"", f,
                                   (long long)i, (long long)k, path);
    return check_values(s, b->tokens, path);
}

static weft_status check_words(const weft_lstmvis *b)
{
    int64_t words = b->word ? b->words : BYTES;
    if (b->tokens < 1 || !b->ids || b->words < 0 || words > INT32_MAX || (!b->word && b->words % BYTES) ||
        (!b->word && b->words > BYTES))
        return weft__file_fail(
            WEFT_EARG,
            "%s: %lld tokens%s, %lld words%s; one token at least, its id, and the words of all "
            "ids, or none and ids that are bytes, are expected",
            f, (long long)b->tokens, b->ids ? "" : ", ids is NULL", (long long)b->words,
            b->word ? "" : ", word is NULL");
    for (int64_t i = 0; b->word && i < words; i++)
        if (!b->word[i])
            return weft__file_fail(WEFT_EARG, "%s: word %lld is NULL", f, (long long)i);
    for (int64_t t = 0; t < b->tokens; t++)
        if (b->ids[t] < 0 || b->ids[t] >= words)
            return weft__file_fail(WEFT_EARG,
                                   "%s: id %d of token %lld; ids of words, 0 .. %lld, are expected", f,
                                   (int)b->ids[t], (long long)t, (long long)words - 1);
    return WEFT_OK;
}

static weft_status check(const char *folder, const weft_lstmvis *b)
{
    if (!folder || !*folder)
        return weft__file_fail(WEFT_EARG, "%s: no folder is given", f);
    if (!b || !b->name || b->n < 1 || !b->states)
        return weft__file_fail(WEFT_EARG,
                               "%s: a bundle with a name and one set of states at least is expected", f);
    weft_status s = check_words(b);
    for (int64_t k = 0; !s && k < b->n; k++)
        s = check_states(b, k);
    return s;
}

/* ---- texts ---- */
/* What Python's split parts at, or no reader shows: control characters, and the blanks of Unicode. */
static bool is_odd(const char *s, int n)
{
    static const char *const blanks[] = { "\xC2\xA0",     "\xE1\x9A\x80", "\xE2\x80\xA8", "\xE2\x80\xA9",
                                          "\xE2\x80\xAF", "\xE2\x81\x9F", "\xE3\x80\x80", "\xE2\x90\xA3" };
    const unsigned char *u = (const unsigned char *)s;
    if (n <= 1)
        return n == 0 || u[0] < 0x20 || u[0] == 0x7f || u[0] == '\\';
    for (size_t i = 0; i < sizeof blanks / sizeof *blanks; i++)
        if (!strncmp(s, blanks[i], (size_t)n))
            return true;
    return (n == 2 && u[0] == 0xC2 && u[1] < 0xA0) ||
           (n == 3 && u[0] == 0xE2 && u[1] == 0x80 && u[2] <= 0x8A);
}

static void put_escaped(FILE *to, const char *s, int n)
{
    static const char named[] = "\\\t\n\r", name[] = "\\tnr";
    const char *at = n == 1 ? strchr(named, *s) : NULL;
    if (at && *s)
        fprintf(to, "\\%c", name[at - named]);
    else
        for (int i = 0; i < n; i++)
            fprintf(to, "\\x%02x", (unsigned char)s[i]);
}

static void put_word(FILE *to, const char *word)
{
    if (!*word)
        fputs("\\e", to);
    while (*word) {
        int n = weft__utf8_character(word), bytes = n ? n : 1;
        if (*word == ' ')
            fputs("\xE2\x90\xA3", to);
        else if (is_odd(word, n))
            put_escaped(to, word, bytes);
        else
            fwrite(word, 1, (size_t)bytes, to);
        word += bytes;
    }
}

static void put_words(FILE *to, const weft_lstmvis *b)
{
    for (int64_t i = 0; i < (b->word ? b->words : BYTES); i++) {
        if (b->word)
            put_word(to, b->word[i]);
        else if (i)
            put_word(to, (char[]){ (char)i, 0 });
        else
            fputs("\\x00", to);
        fprintf(to, " %lld\n", (long long)i);
    }
}

/* A text in YAML's double quotes, in ASCII alone, which every reader takes alike; what is no UTF-8 is
 * U+FFFD. */
static void put_quoted(FILE *to, const char *text)
{
    fputc('"', to);
    for (int n; *text; text += n ? n : 1) {
        const unsigned char *u = (const unsigned char *)text;
        n = weft__utf8_character(text);
        unsigned code = n == 0 ? 0xFFFD :
                        n == 1 ? u[0] :
                        n == 2 ? (u[0] & 31u) << 6 | (u[1] & 63u) :
                        n == 3 ? (u[0] & 15u) << 12 | (u[1] & 63u) << 6 | (u[2] & 63u) :
                                 (u[0] & 7u) << 18 | (u[1] & 63u) << 12 | (u[2] & 63u) << 6 | (u[3] & 63u);
        if (code == '"' || code == '\\')
            fprintf(to, "\\%c", (int)code);
        else
            fprintf(to,
                    code < 0x20 || code == 0x7f ? "\\x%02X" :
                    code < 0x7f                 ? "%c" :
                    code < 0x10000              ? "\\u%04X" :
                                                  "\\U%08X",
                    code);
    }
    fputc('"', to);
}

static void put_config(FILE *to, const weft_lstmvis *b)
{
    char path[PATH + 1];
    fprintf(to, "%sname: ", mark);
    put_quoted(to, b->name);
    fputs("\ndescription: ", to);
    put_quoted(to, b->description ? b->description : b->name);
    fputs("\n\nfiles:\n  states: states.h5\n  word_ids: train.h5\n  words: words.dict\n\n"
          "word_sequence:\n  file: word_ids\n  path: word_ids\n  dict_file: words\n\n"
          "states:\n  file: states\n  types: [\n",
          to);
    for (int64_t k = 0; k < b->n; k++) {
        const weft_lstmvis_states *s = &b->states[k];
        fprintf(to, "    {type: %s, layer: %d, path: \"%s\"%s}%s\n", s->output ? "output" : "state",
                s->layer ? s->layer : 1, path_of(s, path), s->output ? ", transform: none" : "",
                k + 1 < b->n ? "," : "");
    }
    fputs("  ]\n", to);
}

/* ---- files ---- */
typedef void put_fn(FILE *to, const weft_lstmvis *b);

static weft_status write_text(const char *path, put_fn *put, const weft_lstmvis *b)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    locale_t before = weft__plain_locale();
    if (to)
        put(to, b);
    weft__plain_locale_end(before);
    bool good = to && !ferror(to);
    if (to && fclose(to))
        good = false;
    weft_status s = good ? weft__write_file(path, &(weft__span){ text, size }, 1) :
                           weft__file_fail(WEFT_ENOMEM, "%s: out of memory", path);
    free(text);
    return s;
}

static void put_states(weft__h5 *h, const char *path, const weft_lstmvis_states *s, int64_t tokens)
{
    size_t n = (size_t)(tokens * s->units);
    float *numbers = calloc(n, sizeof *numbers);
    if (!numbers)
        weft__h5_fail(h, WEFT_ENOMEM, "no memory for the %zu numbers of \"%s\"", n, path);
    for (size_t i = 0; numbers && i < n; i++)
        numbers[i] = (float)s->values[i];
    if (numbers)
        weft__h5_write(h, path, &(weft__kind){ WEFT__F32, 2, { tokens, s->units } }, numbers);
    free(numbers);
}

static weft_status write_hdf5(const char *path, const weft_lstmvis *b, bool states)
{
    char name[PATH + 1];
    weft__h5 *h = weft__h5_new(path, 0, false);
    if (!h)
        return WEFT_ENOMEM;
    for (int64_t k = 0; states && k < b->n; k++)
        put_states(h, path_of(&b->states[k], name), &b->states[k], b->tokens);
    if (!states)
        weft__h5_write(h, "word_ids", &(weft__kind){ WEFT__I32, 1, { b->tokens } }, b->ids);
    unsigned char *image = NULL;
    size_t size = 0;
    weft_status s = weft__h5_finish(h, &image, &size);
    if (!s)
        s = weft__write_file(path, &(weft__span){ image, size }, 1);
    free(image);
    return s;
}

static weft_status write_one(const char *path, int which, const void *user)
{
    const weft_lstmvis *b = user;
    return which < 2 ? write_hdf5(path, b, which == 0) :
                       write_text(path, which == 2 ? put_words : put_config, b);
}

weft_status weft_write_lstmvis(const char *folder, const weft_lstmvis *bundle)
{
    static const char *const files[] = { "states.h5", "train.h5", "words.dict", "lstm.yml" };
    weft_status s = check(folder, bundle);
    return s ? s : weft__write_folder(folder, files, sizeof files / sizeof *files, mark, write_one, bundle);
}
