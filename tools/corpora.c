/* corpora.c - `weft corpora`: lists the corpora with their lengths, or prints the lengths of one. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include "tools/corpora/corpora.h"
#include "tools/options.h"

static void print_moments(const char *name, weft_dataset *d, const char *about)
{
    double n = (double)d->n, sum = 0, squares = 0;
    for (int64_t i = 0; i < d->n; i++)
        sum += d->len[i];
    double mean = d->n ? sum / n : 0;
    for (int64_t i = 0; i < d->n; i++)
        squares += (d->len[i] - mean) * (d->len[i] - mean);
    qsort(d->len, (size_t)d->n, sizeof *d->len, by_length);
    printf("%-12s %9lld %10.0f %8.1f %8.1f %6d %6d  %s\n", name, (long long)d->n, sum, mean,
           d->n ? sqrt(squares / n) : 0, d->n ? (int)d->len[(int64_t)(.99 * n)] : 0,
           d->n ? (int)d->len[d->n - 1] : 0, about);
}

/* Prints the row of an installed corpus. A missing one only adds to *missing. */
static bool list_installed(const corpus *c, int *missing)
{
    corpus_spec s = { .name = c->name };
    corpus_builder b = { 0 };
    errno = 0;
    bool ok = c->read(&s, &b), absent = !ok && errno == ENOENT;
    if (ok)
        print_moments(c->name, &b.data, c->about);
    *missing |= absent << (int)(c - all_corpora);
    corpus_free(&b.data);
    return ok || absent;
}

static void list_missing(int missing)
{
    putchar('\n');
    for (int i = 0; i < corpora_count; i++) {
        const corpus *c = all_corpora + i;
        if (missing >> i & 1)
            printf("%-12s is not installed: apt-get install %s\n", c->name, c->package);
    }
}

static int list_all(void)
{
    bool ok = true;
    int missing = 0;
    printf("%-12s %9s %10s %8s %8s %6s %6s  %s\n", "corpus", "n", "tokens", "mean", "sd", "p99", "max",
           "about");
    for (int i = 0; i < corpora_count; i++)
        ok = (all_corpora[i].numbers || list_installed(all_corpora + i, &missing)) && ok;
    if (missing)
        list_missing(missing);
    printf("\nformulas: NAME:NUMBERS[,n=..][,seed=..] (n=3000, seed=1)\n");
    for (int i = 0; i < corpora_count; i++)
        if (all_corpora[i].numbers) {
            const corpus *c = all_corpora + i;
            char form[64];
            snprintf(form, sizeof form, "%s%s%s", c->name, *c->numbers ? ":" : "", c->numbers);
            printf("%-24s %s\n", form, c->about);
        }
    return ok ? GOOD : FAILED;
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
    SCOPED int32_t *len = corpus_lengths(text, &n);
    for (int64_t i = 0; len && i < n; i++)
        printf("%d\n", (int)len[i]);
    return len ? GOOD : FAILED;
}

static const option options[] = { IS_FLAG("--names", 0, "print only the names"), { 0 } };

static int run_corpora(int argc, char **argv)
{
    bool names = false;
    if (read_options(&subcommand_corpora, &names, &argc, argv))
        return USAGE;
    if (argc + names > 1)
        return usage_error(&subcommand_corpora, "found \"%.60s\"; expected at most one name", argv[argc - 1]);
    return finish_output("corpora", names ? list_names() : argc ? print_lengths(argv[0]) : list_all());
}

const subcommand subcommand_corpora = { .name = "corpora",
                                        .about = "lists corpora, or prints the lengths of one",
                                        .usage = "[--names|NAME]",
                                        .details = "Without NAME lists the corpora: number of sequences (n) "
                                                   "and tokens; mean, standard deviation (sd), 99th\n"
                                                   "percentile and maximum of the lengths. With NAME prints "
                                                   "the lengths, one a line. NAME is a name of the\n"
                                                   "list, NAME[:NUMBER..][,n=..][,seed=..], or file:PATH.\n",
                                        .options = options,
                                        .run = run_corpora };
