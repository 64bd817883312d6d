/* g2p_pictures.c - the curve of a training, an alignment, a batch; see g2p_pictures.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/program.h"
#include "g2p_pictures.h"

enum { WORD = 64, WORDS = 16 };                  /* letters of a word, words of a batch that are drawn */

weft_status draw_history(const char *path, const history *h)
{
    double *x = memory((size_t)(h->points + 3 * h->epochs), sizeof *x);
    double *end = x + h->points, *per = end + h->epochs, *wer = per + h->epochs;
    for (int64_t i = 0; i < h->points; i++)
        x[i] = (double)((i + 1) * h->every);
    for (int64_t i = 0; i < h->epochs; i++) {
        end[i] = (double)((i + 1) * h->updates);
        per[i] = h->judged[2 * i];
        wer[i] = h->judged[2 * i + 1];
    }
    const weft_curve curves[] = {
        { "training loss", h->points, x, h->losses, false, NULL },
        { "words wrong (dev)", h->epochs, end, wer, true, NULL },
        { "phones wrong (dev)", h->epochs, end, per, true, NULL },
    };
    const weft_chart chart = { NULL, "updates", "loss", "errors, %", 0, 0, curves, 3 };
    weft_status status = weft_plot_lines(path, "Learning to pronounce English", &chart, 1, 0);
    free(x);
    return status;
}

/* Words as single letters: strings of one byte each. */
static int cut(const char *word, char letters[][2], const char **labels)
{
    int n = 0;
    for (; word[n] && n < WORD; n++) {
        letters[n][0] = word[n];
        letters[n][1] = 0;
        labels[n] = letters[n];
    }
    return n;
}

/* The attention's weights [phones + 1, letters] of a word, given what it sounds like; to be freed. */
static double *look(const model *m, const int32_t *letters, int32_t length, const weft_decoded *said)
{
    int32_t before[LIMIT + 1] = { MARK }, phones = said->len[0] + 1;
    memcpy(before + 1, said->tokens, (size_t)said->len[0] * sizeof *before);
    weft_lengths read = { .n = 1, .len = &length }, write = { .n = 1, .len = &phones };
    weft_tensor *map;
    encoded e = encode(m, letters, &read);
    logits(m, &e, before, &write, &map);
    size_t n = (size_t)phones * (size_t)length;
    weft_real *values = memory(n, sizeof *values);
    double *weights = memory(n, sizeof *weights);
    weft_read(weft_to_layout(map, WEFT_CONCAT), values, n * sizeof *values);
    if (!weft_ok(weft_context_of(map)))
        quit(1, "%s", weft_error_message(m->w));
    for (size_t i = 0; i < n; i++)
        weights[i] = (double)values[i];
    free(values);
    return weights;
}

weft_status draw_attention(const char *path, const model *m, const phone_set *phones, const char *word)
{
    int32_t length, letters[WORD];
    char name[WORD][2], title[WORD + 60];
    const char *rows[LIMIT + 1], *columns[WORD];
    cut(word, name, columns);
    spell(letters, word, &length);
    weft_decoded said = pronounce(m, letters, &(weft_lengths){ .n = 1, .len = &length }, LIMIT, 1);
    double *weights = NULL;
    WEFT_NO_GRAD(m->w) WEFT_EVAL(m->w)
        weights = look(m, letters, length, &said);
    for (int i = 0; i <= said.len[0]; i++)
        rows[i] = i < said.len[0] ? phones->name[said.tokens[i]] : "end";
    snprintf(title, sizeof title, "%s: the letters that each phone looks at", word);
    weft_status status =
        weft_plot_heatmap(path, title, said.len[0] + 1, length, weights, rows, columns, NULL);
    weft_decoded_free(&said);
    weft_clear(m->w);
    free(weights);
    return status;
}

weft_status draw_words(const char *path, const char *const *words, int n)
{
    char name[WORDS * WORD][2];
    const char *labels[WORDS * WORD];
    int32_t length[WORDS];
    int tokens = 0;
    for (int i = 0; i < n && i < WORDS; i++) {
        length[i] = cut(words[i], name + tokens, labels + tokens);
        tokens += length[i];
    }
    weft_lengths lengths = { .n = n < WORDS ? n : WORDS, .len = length };
    return weft_plot_batch(path, "One batch of words in three layouts", &lengths, labels, NULL, NULL,
                           NULL);
}
