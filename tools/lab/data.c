/* data.c - the data of `weft lab`: a corpus without duplicates. Every twentieth sequence is held out for
 * testing, and each sequence gets an end token. */
#include <stdlib.h>
#include <string.h>
#include "tools/corpora/corpora.h"
#include "tools/lab/run.h"

enum { EVERY = 20, DRAWN_CLASSES = 64, MOST_CLASSES = 65536 };

static const weft_dataset *of_sort; /* global, because qsort passes no argument */

static int compare(const weft_dataset *d, int64_t i, int64_t j)
{
    if (d->len[i] != d->len[j])
        return d->len[i] < d->len[j] ? -1 : 1;
    return memcmp(d->ints + d->offset[i], d->ints + d->offset[j], (size_t)d->len[i] * sizeof *d->ints);
}

static int by_content(const void *a, const void *b)
{
    int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    int order = compare(of_sort, i, j);
    return order ? order : (i > j) - (i < j);
}

/* Fills unique [n] with the first sequence of each content, in order, and returns their number. */
static int64_t find_unique(const weft_dataset *d, int64_t *unique)
{
    int64_t n = 0, *sorted SCOPED = get_memory(d->n, sizeof *sorted);
    SCOPED bool *first = get_memory(d->n, sizeof *first);
    for (int64_t i = 0; i < d->n; i++)
        sorted[i] = i;
    of_sort = d;
    qsort(sorted, (size_t)d->n, sizeof *sorted, by_content);
    for (int64_t k = 0; k < d->n; k++)
        first[sorted[k]] = !k || compare(d, sorted[k], sorted[k - 1]);
    for (int64_t i = 0; i < d->n; i++)
        if (first[i] && d->len[i])
            unique[n++] = i;
    return n;
}

static bool copy_sequence(const weft_dataset *from, int64_t i, int32_t end, corpus_builder *to)
{
    for (int64_t t = from->offset[i]; t < from->offset[i + 1]; t++)
        corpus_token(to, from->ints[t]);
    corpus_token(to, end);
    return corpus_end_sequence(to);
}

/* Draws tokens for a corpus that has lengths only. A model can learn only their frequencies. */
static void draw_tokens(weft_dataset *d)
{
    int64_t n = d->n ? d->offset[d->n] : 0;
    weft_stream *s = weft_stream_new(1, "lab.tokens");
    d->ints = get_memory(n, sizeof *d->ints);
    for (int64_t i = 0; i < n; i++) {
        int64_t a = (int64_t)weft_stream_below(s, DRAWN_CLASSES),
                b = (int64_t)weft_stream_below(s, DRAWN_CLASSES);
        d->ints[i] = (int32_t)(a < b ? a : b);
    }
    weft_stream_free(s);
}

/* Picks `limit` of the unique sequences at equal distances, because parts of a corpus may differ. */
static bool split(lab_run *r, const weft_dataset *all, const int64_t *unique, int64_t n)
{
    int64_t limit = r->asked.limit && r->asked.limit < n ? r->asked.limit : n;
    int64_t few = limit < 240 ? limit : 240;
    int32_t end = (int32_t)r->classes++;
    corpus_builder train = { 0 }, held = { 0 }, some = { 0 };
    bool ok = true;
    r->few_of = get_memory(few, sizeof *r->few_of);
    for (int64_t k = 0; k < limit && ok; k++) {
        int64_t i = unique[k * n / limit];
        ok = copy_sequence(all, i, end, k % EVERY ? &train : &held);
        if (ok && k % EVERY && k * few / limit != (k + 1) * few / limit) {
            r->few_of[some.data.n] = train.data.n - 1;
            ok = copy_sequence(all, i, end, &some);
        }
    }
    r->train = train.data;
    r->held = held.data;
    r->few = some.data;
    return ok;
}

static bool count_classes(lab_run *r, const weft_dataset *all)
{
    for (int64_t t = 0; t < all->offset[all->n]; t++)
        r->classes = all->ints[t] >= r->classes ? all->ints[t] + 1 : r->classes;
    return r->classes < MOST_CLASSES ||
           say_failure("lab: the corpus: found token %lld; expected less than %d", (long long)r->classes - 1,
                       MOST_CLASSES - 1);
}

bool lab_read(lab_run *r)
{
    weft_dataset all;
    if (!read_corpus(r->asked.corpus, &all))
        return false;
    sha256 s = SHA256_START;
    sha256_add(&s, all.len, all.n);
    sha256_add(&s, all.ints, all.ints && all.n ? all.offset[all.n] : 0);
    sha256_end(&s, r->corpus);
    if (!all.ints)
        draw_tokens(&all);
    bool ok = count_classes(r, &all);
    int64_t *unique SCOPED = get_memory(all.n, sizeof *unique), n = ok ? find_unique(&all, unique) : 0;
    if (ok && n < 2)
        ok = say_failure("lab: %s: found %lld different sequences that are not empty; expected 2 or more",
                         r->asked.corpus, (long long)n);
    ok = ok && split(r, &all, unique, n);
    corpus_free(&all);
    return ok;
}

void lab_free_data(lab_run *r)
{
    corpus_free(&r->train), corpus_free(&r->held), corpus_free(&r->few);
    free(r->few_of);
}
