/* g2p_judge.c - how good a model is; see g2p_judge.h. */
#include <stdlib.h>
#include "common/program.h"
#include "g2p_judge.h"

enum { CHUNK = 256 };                            /* words at a time */

/* The words `pick`, which are places in `words`. */
static void judge_some(const model *m, const dictionary *d, const int64_t *words, const int32_t *pick,
                       int64_t n, int64_t beam, score *s)
{
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
        for (int64_t i = 0; i < now; i++)
            score_word(s, d, words[pick[from + i]], said.tokens + i * said.limit, said.len[i]);
        weft_decoded_free(&said);
        weft_clear(m->w);
    }
    free(letters);
}

score judge(const model *m, const dictionary *d, const int64_t *words, int64_t n, int64_t beam)
{
    weft_ema_swap(m->average);
    WEFT_NO_GRAD(m->w) WEFT_EVAL(m->w) {
        weft_parallel_begin(m->ranks, NULL, n);
        for (weft_part shard; weft_parallel_next(m->ranks, &shard);) {
            score s = { 0 };
            judge_some(m, d, words, shard.index, shard.n, beam, &s);
            double counts[] = { (double)s.words, (double)s.wrong, (double)s.distance, (double)s.length };
            weft_parallel_add_values(m->ranks, counts, 4);
        }
    }
    weft_ema_swap(m->average);
    check_context(m->w, "judging");
    const double *sum = weft_parallel_values(m->ranks);
    return (score){ (int64_t)sum[0], (int64_t)sum[1], (int64_t)sum[2], (int64_t)sum[3] };
}
