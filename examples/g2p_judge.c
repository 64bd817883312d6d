/* g2p_judge.c - how good a model is; see g2p_judge.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/program.h"
#include "g2p_judge.h"

enum { CHUNK = 256 };                            /* words at a time */

/* The words of a shard, which are places in `words`; what is said of them is put. */
static score judge_some(const model *m, const dictionary *d, const int64_t *words, const weft_part *shard,
                        int64_t beam)
{
    const int32_t *pick = shard->index;
    int64_t n = shard->n;
    score s = { 0 };
    int32_t length[CHUNK], longest = 0;
    for (int64_t i = 0; i < n; i++)
        longest = d->letters[words[pick[i]]] > longest ? d->letters[words[pick[i]]] : longest;
    int32_t *letters = memory(CHUNK * (size_t)longest, sizeof *letters);
    for (int64_t from = 0; from < n; from += CHUNK) {
        int64_t now = n - from < CHUNK ? n - from : CHUNK;
        int32_t *to = letters;
        for (int64_t i = 0; i < now; i++)
            to = spell(to, d->word[words[pick[from + i]]], &length[i]);
        weft_decoded said = pronounce(m, letters, &(weft_lengths){ .n = now, .len = length }, LIMIT, beam);
        for (int64_t i = 0; i < now; i++) {
            const int32_t *phones = said.tokens + i * said.limit;
            score_word(&s, d, words[pick[from + i]], phones, said.len[i]);
            weft_parallel_put(m->ranks, from + i, phones, said.len[i] * (int64_t)sizeof *phones);
        }
        weft_decoded_free(&said);
        weft_clear(m->w);
    }
    free(letters);
    return s;
}

/* What all ranks have said, in the order of the words. */
static void write_said(const model *m, const dictionary *d, const int64_t *words, const char *path)
{
    int64_t n;
    const weft_parallel_result *said = weft_parallel_gathered(m->ranks, &n);
    FILE *file = fopen(path, "w");
    for (int64_t i = 0; file && i < n; i++)
        fprintf(file, "%s\t%s\n", d->word[words[i]],
                spoken(&d->phones, said[i].bytes, said[i].n / (int64_t)sizeof(int32_t)));
    bool fine = file && !ferror(file);
    if (!file || fclose(file) || !fine)
        quit(1, "%s: %s", path, strerror(errno));
}

score judge(const model *m, const dictionary *d, const int64_t *words, int64_t n, int64_t beam,
            const char *said)
{
    weft_ema_swap(m->average);
    WEFT_NO_GRAD(m->w) WEFT_EVAL(m->w) {
        weft_parallel_begin(m->ranks, NULL, n);
        for (weft_part shard; weft_parallel_next(m->ranks, &shard);) {
            score s = judge_some(m, d, words, &shard, beam);
            double counts[] = { (double)s.words, (double)s.wrong, (double)s.distance, (double)s.length };
            weft_parallel_add_values(m->ranks, counts, 4);
        }
    }
    weft_ema_swap(m->average);
    check_context(m->w, "judging");
    if (said && weft_parallel_place_of(m->ranks).rank == 0)
        write_said(m, d, words, said);
    const double *sum = weft_parallel_values(m->ranks);
    return (score){ (int64_t)sum[0], (int64_t)sum[1], (int64_t)sum[2], (int64_t)sum[3] };
}
