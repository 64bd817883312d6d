/* corpora.c - `weft corpora`: which there are, how long their sequences are; the lengths of one. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "tools/corpora/corpora.h"

static int ascending(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static void print_moments(const char *name, weft_dataset *d, const char *about)
{
    double n = (double)d->n, sum = 0, squares = 0;
    for (int64_t i = 0; i < d->n; i++)
        sum += d->len[i];
    double mean = d->n ? sum / n : 0;
    for (int64_t i = 0; i < d->n; i++)
        squares += (d->len[i] - mean) * (d->len[i] - mean);
    qsort(d->len, (size_t)d->n, sizeof *d->len, ascending);
    printf("%-12s %9lld %10.0f %8.1f %8.1f %6d %6d  %s\n", name, (long long)d->n, sum, mean,
           d->n ? sqrt(squares / n) : 0, d->n ? (int)d->len[(int64_t)(.99 * n)] : 0,
           d->n ? (int)d->len[d->n - 1] : 0, about);
}

static bool list_installed(const corpus *c)
{
    corpus_spec s = { .name = c->name };
    corpus_builder b = { 0 };
    errno = 0;
    bool good = c->read(&s, &b), missing = !good && errno == ENOENT;
    if (good)
        print_moments(c->name, &b.data, c->about);
    else if (missing)
        printf("%-12s is not installed: %s%s\n", c->name, c->package ? "apt-get install " : "",
               c->package ? c->package : c->fetch);
    corpus_free(&b.data);
    return good || missing;
}

static int list_all(void)
{
    bool good = true;
    printf("%-12s %9s %10s %8s %8s %6s %6s\n", "corpus", "n", "tokens", "mean", "sd", "p99", "max");
    for (int i = 0; i < corpora_count; i++)
        good = (all_corpora[i].numbers || list_installed(all_corpora + i)) && good;
    printf("\nof n=3000 lengths, seed=1, unless it is said: NAME:NUMBERS[,n=..][,seed=..]\n");
    for (int i = 0; i < corpora_count; i++)
        if (all_corpora[i].numbers) {
            const corpus *c = all_corpora + i;
            char form[64];
            snprintf(form, sizeof form, "%s%s%s", c->name, *c->numbers ? ":" : "", c->numbers);
            printf("%-24s %s\n", form, c->about);
        }
    return good ? GOOD : FAILED;
}

static int list_names(void)
{
    for (int i = 0; i < corpora_count; i++)
        printf("%s%s\n", all_corpora[i].name, all_corpora[i].numbers && *all_corpora[i].numbers ? ":" : "");
    return GOOD;
}

static int print_lengths(const char *text)
{
    int64_t n;
    int32_t *len = corpus_lengths(text, &n);
    for (int64_t i = 0; len && i < n; i++)
        printf("%d\n", (int)len[i]);
    free(len);
    return len ? GOOD : FAILED;
}

static int run_corpora(int argc, char **argv)
{
    int status;
    if (argc > 1 || (argc == 1 && argv[0][0] == '-' && strcmp(argv[0], "--names")))
        return say_error(USAGE, "corpora: %.60s is not understood; usage: weft corpora %s",
                         argv[argc > 1 ? 1 : 0], subcommand_corpora.usage);
    if (!argc)
        status = list_all();
    else
        status = strcmp(argv[0], "--names") ? print_lengths(argv[0]) : list_names();
    if (fflush(stdout) || ferror(stdout))
        return say_error(FAILED, "corpora: stdout cannot be written");
    return status;
}

const subcommand subcommand_corpora = {
    "corpora", "[--names|NAME]",
    "lists corpora: how many sequences and tokens they have, mean, deviation, 99th percentile and\n"
    "      longest; of one, NAME[:NUMBER..][,n=..][,seed=..] or file:PATH, prints the lengths",
    run_corpora
};
