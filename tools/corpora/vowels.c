/* vowels.c - Japanese Vowels (Kudo et al. 1999): 12 cepstra a step; 270 sequences for training, then
 * 370 for testing. No Debian package has it; the files are looked for in ${XDG_CACHE_HOME:-$HOME/.cache}. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tools/corpora/corpora.h"

enum { CEPSTRA = 12, MOST_STEPS = 256 };

/* One utterance: CEPSTRA series of numbers with commas, each ended by a colon, then the speaker. */
static bool add_utterance(char *at, const char *path, long long line, corpus_builder *b)
{
    static weft_real x[MOST_STEPS][CEPSTRA];
    int steps = 0;
    bool good = true;
    for (int c = 0; c < CEPSTRA && good; c++) {
        int t = 0;
        for (char *end; good; at = end + 1, t++) {
            double value = strtod(at, &end);
            good = end > at && t < MOST_STEPS && (*end == ',' || *end == ':');
            if (good)
                x[t][c] = (weft_real)value;
            if (!good || *end == ':') {
                at = end + 1, t++;
                break;
            }
        }
        good = good && (!c || t == steps);
        steps = t;
    }
    if (!good) {
        say_error(FAILED, "corpora: %s:%lld: 12 series of one length, with colons behind, are expected", path,
                  line);
        return errno = EIO, false;
    }
    for (int t = 0; t < steps && good; t++)
        good = corpus_row(b, x[t], CEPSTRA);
    return good && corpus_end_sequence(b);
}

static bool read_part(const char *folder, const char *part, corpus_builder *b)
{
    char path[1024];
    snprintf(path, sizeof path, "%.900s/weft/JapaneseVowels_%s.ts", folder, part);
    size_t n;
    char *text = corpus_file(path, &n), *at = text;
    bool good = text != NULL, data = false;
    for (long long line = 1; good && at && *at; line++) {
        char *next = strchr(at, '\n');
        if (data && *at != '\n' && *at != '\r')
            good = add_utterance(at, path, line, b);
        data = data || !strncmp(at, "@data", 5);
        at = next ? next + 1 : NULL;
    }
    free(text);
    return good;
}

bool read_vowels(const corpus_spec *s, corpus_builder *b)
{
    (void)s;
    char folder[1024];
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (!(cache && *cache) && !home)
        return errno = ENOENT, false;
    snprintf(folder, sizeof folder, "%s%s", cache && *cache ? cache : home, cache && *cache ? "" : "/.cache");
    return read_part(folder, "TRAIN", b) && read_part(folder, "TEST", b);
}
