/* tagger.c - learns the stress of English words with a bidirectional LSTM, and compares a conditional random
 * field (CRF) with an independent softmax for each phone.
 *
 *     tagger --data DICT [OPTION]..
 *
 * Input: the phones of a pronunciation, without stress. Output: a tag for each phone. Words are divided as in
 * g2p.c: every 10th is a test word, every 20th a dev word. All pronunciations of a word are in one part.
 *
 * Plain tags: a vowel's tag is its stress (0, 1, 2), and all consonants have the same tag. A CRF compares
 * neighbours, so after a consonant it does not know the last stress. Memory tags: each tag also has the
 * stress of the last vowel, and whether a vowel had stress 1 so far. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "weft_lab.h"
#include "weft_sequence.h"
#include "common/dictionary.h"
#include "common/options.h"

const char program[] = "tagger";

typedef struct {
    struct { int64_t hidden, embed, layers, epochs, batch, words; double lr, dropout; } set;
    int64_t seeds, threads;
    const char *data, *write;
    bool test;
} options;
static const option all_options[] = {
    SETTING("hidden", WHOLE, hidden, 64, 1, 4096, "units of a layer, in each direction"),
    SETTING("embed", WHOLE, embed, 32, 1, 4096, "width of the vectors of phones"),
    SETTING("layers", WHOLE, layers, 2, 1, 8, "layers of the LSTM"),
    SETTING("epochs", WHOLE, epochs, 8, 1, 1e6, "passes over the training words"),
    SETTING("batch", WHOLE, batch, 64, 1, 65536, "pronunciations of an update"),
    SETTING("words", WHOLE, words, 0, 0, 1e9, "number of words to take from the dictionary, about; 0: all"),
    SETTING("lr", REAL, lr, 5e-3, 0, 10, "learning rate; falls to 0 on a cosine"),
    SETTING("dropout", REAL, dropout, 0.1, 0, 0.95, "probability of dropout"),
    OTHER("seeds", WHOLE, seeds, 1, 1, 100, "trainings of each tagger"),
    OTHER("threads", WHOLE, threads, 0, 0, 1024, "threads; 0: all cores"),
    OTHER("data", TEXT, data, 0, 0, 0, "dictionary"),
    OTHER("write", TEXT, write, 0, 0, 0, "file for all words, phones and marks; then the program ends"),
    OTHER("test", FLAG, test, 0, 0, 1, "also judge the test words"),
};
static const option_table table = { "usage: tagger --data DICT [OPTION]..\n", all_options,
                                    sizeof all_options / sizeof *all_options, 8 };

/* ---- pronunciations ---- */
typedef struct {
    const entry **entry;                         /* [n] */
    int32_t *len;                                /* [n] phones of each */
    int64_t n;
    int32_t longest;
} said;

static said said_of(const dictionary *d, part p)
{
    int64_t words, *word = words_of(d, p, &words);
    said s = { memory((size_t)d->entries, sizeof *s.entry), memory((size_t)d->entries, sizeof *s.len), 0, 1 };
    for (int64_t i = 0; i < words; i++)
        for (int64_t k = d->first[word[i]]; k < d->first[word[i] + 1]; k++) {
            s.len[s.n] = d->entry[k].n;
            s.longest = d->entry[k].n > s.longest ? d->entry[k].n : s.longest;
            s.entry[s.n++] = &d->entry[k];
        }
    free(word);
    return s;
}

/* A mark is 0 for a consonant, 1 + stress for a vowel; see dictionary.h. */
enum { MARKS = 4, PLAIN = MARKS, MEMORY = 12 };  /* PLAIN, MEMORY: number of tags */
static int32_t mark_of(int32_t tag, int32_t tags)
{
    return tags == PLAIN ? tag : tag < MEMORY / 2 ? 0 : 1 + (tag - MEMORY / 2) / 2;
}
static void tag(const entry *e, int32_t tags, int32_t *to)
{
    for (int32_t t = 0, last = 0, seen = 0; t < e->n; t++) {
        last = e->mark[t] ? e->mark[t] - 1 : last;
        seen = seen || last == 1;
        to[t] = tags == PLAIN ? e->mark[t] : (e->mark[t] ? MEMORY / 2 : 0) + 2 * last + seen;
    }
}

static void write_words(const dictionary *d, const char *path)
{
    static const char *const name[] = { "train", "dev", "test" };
    FILE *out = fopen(path, "w");
    for (part p = TRAIN; out && p <= TEST; p++) {
        said s = said_of(d, p);
        for (int64_t i = 0; i < s.n; i++) {
            fprintf(out, "%s %s", name[p], s.entry[i]->word);
            for (int32_t t = 0; t < s.len[i]; t++)
                fprintf(out, " %s:%d", d->phones.name[s.entry[i]->phones[t]], (int)s.entry[i]->mark[t]);
            fputc('\n', out);
        }
        free(s.entry);
        free(s.len);
    }
    end_file(out, path);
}

/* ---- the network ---- */
typedef struct {
    const char *name;
    int32_t tags;
    bool crf;
} kind;
static const kind kinds[] = {
    { "softmax, plain tags", PLAIN, false },
    { "CRF, plain tags", PLAIN, true },
    { "CRF, memory tags", MEMORY, true },
};
typedef struct {
    weft *w;
    weft_module *all;
    weft_embedding *embed;
    weft_dropout_layer *drop;
    weft_rnn *lstm;
    weft_linear *out;
    weft_crf *crf;                               /* NULL: softmax */
    int32_t tags, *len, *phones, *tag;           /* the others: memory of a batch */
} net;

enum { CHUNK = 256 };                            /* pronunciations to judge at a time */

static net net_new(weft *w, const kind *k, int64_t phones, int32_t longest, const options *o)
{
    const size_t n = (size_t)(o->set.batch > CHUNK ? o->set.batch : CHUNK), tokens = n * (size_t)longest;
    net m = { .w = w, .all = weft_module_new(w, "tagger"), .tags = k->tags };
    m.len = memory(n, sizeof *m.len);
    m.phones = memory(tokens, sizeof *m.phones);
    m.tag = memory(tokens, sizeof *m.tag);
    weft_rnn_opts lstm = { .input = o->set.embed, .hidden = o->set.hidden, .layers = (int)o->set.layers };
    weft_embedding_opts table_of_phones = { .rows = phones, .columns = o->set.embed };
    lstm.bidirectional = true;
    lstm.dropout = o->set.dropout;
    m.embed = weft_embedding_new(m.all, "phones", &table_of_phones);
    m.lstm = weft_lstm_new(m.all, "lstm", &lstm);
    m.drop = weft_dropout_new(m.all, "drop", &(weft_dropout_opts){ .p = o->set.dropout });
    m.out = weft_linear_new(m.all, "out", &(weft_linear_opts){ .in = 2 * o->set.hidden, .out = k->tags });
    m.crf = k->crf ? weft_crf_new(m.all, "crf", &(weft_crf_opts){ .tags = k->tags }) : NULL;
    return m;
}

/* The phones and the true tags of the pronunciations index[0 .. n - 1]. */
typedef struct {
    weft_tensor *phones, *tags;
} batch;
static batch batch_of(const net *m, const said *s, const int32_t *index, int64_t n)
{
    int64_t at = 0;
    for (int64_t i = 0; i < n; at += m->len[i++]) {
        const entry *e = s->entry[index[i]];
        m->len[i] = e->n;
        memcpy(m->phones + at, e->phones, (size_t)e->n * sizeof *m->phones);
        tag(e, m->tags, m->tag + at);
    }
    const weft_lengths lengths = { .n = n, .len = m->len };
    return (batch){ weft_ragged_ints(m->w, m->phones, &lengths), weft_ragged_ints(m->w, m->tag, &lengths) };
}

/* Returns scores [N, tags]: the logits of the softmax, the emissions of the CRF. */
static weft_tensor *scores(const net *m, weft_tensor *phones)
{
    weft_tensor *x = weft_dropout_run(m->drop, weft_embedding_run(m->embed, phones));
    weft_tensor *y = weft_rnn_run(m->lstm, x, WEFT_ZERO_STATE).y;
    return weft_linear_run(m->out, weft_dropout_run(m->drop, y));
}

static void train(const net *m, const said *s, const options *o)
{
    const weft_loader_opts batches = { .count = o->set.batch, .pool = 50 };
    weft_loader *loader = weft_loader_new(m->w, "train", s->n, s->len, &batches);
    weft_optim *adam = weft_adamw_new(m->all, NULL);
    int64_t n, step = 0, updates = (s->n + o->set.batch - 1) / o->set.batch * o->set.epochs;
    while (step < updates && weft_ok(m->w)) {
        const int32_t *index = weft_loader_next(loader, &n);
        if (!index)
            continue;
        const batch b = batch_of(m, s, index, n);
        weft_tensor *y = scores(m, b.phones);
        weft_backward(weft_mean_loss(m->crf ? weft_crf_loss(m->crf, y, b.tags) :
                                              weft_cross_entropy(y, b.tags, NULL)));
        weft_clip_grad_norm(m->all, 1, 0);
        weft_optim_set_lr(adam, weft_cosine_schedule(step++, updates, o->set.lr, updates / 20, 0));
        weft_optim_step(adam);
        weft_clear(m->w);
    }
}

/* ---- the table ---- */
/* Adds the share of right marks of vowels, and of pronunciations with right marks only, in percent, to
 * sum[0], sum[1]. */
static void judge(const net *m, const said *s, double *sum)
{
    int64_t vowels = 0, right = 0, whole = 0;
    for (int64_t from = 0; from < s->n && weft_ok(m->w); from += CHUNK) {
        int32_t index[CHUNK], n = (int32_t)(s->n - from < CHUNK ? s->n - from : CHUNK), *found, *at;
        for (int32_t i = 0; i < n; i++)
            index[i] = (int32_t)from + i;
        WEFT_NO_GRAD(m->w) WEFT_EVAL(m->w) {
            weft_tensor *y = scores(m, batch_of(m, s, index, n).phones);
            y = m->crf ? weft_crf_best(m->crf, y) : weft_argmax(y, 1);
            at = found = memory((size_t)weft_numel(y), sizeof *found);
            weft_read_sequences(y, found, (size_t)weft_numel(y) * sizeof *found);
        }
        for (int32_t i = 0; i < n; at += s->len[from + i++]) {
            int64_t wrong = 0;
            const int32_t *mark = s->entry[from + i]->mark;
            for (int32_t t = 0; t < s->len[from + i]; t++) {
                bool same = mark_of(at[t], m->tags) == mark[t];
                wrong += !same;
                vowels += mark[t] > 0;
                right += mark[t] > 0 && same;
            }
            whole += !wrong;
        }
        free(found);
        weft_clear(m->w);
    }
    sum[0] += 100 * (double)right / (double)(vowels ? vowels : 1);
    sum[1] += 100 * (double)whole / (double)(s->n ? s->n : 1);
}

/* Prints means over the seeds. */
static void run(const kind *k, const dictionary *d, const said *parts, const options *o)
{
    double sum[2][2] = { { 0 } }, n = (double)o->seeds, trained = 0;
    int32_t longest = 1;
    for (part p = TRAIN; p <= TEST; p++)
        longest = parts[p].longest > longest ? parts[p].longest : longest;
    for (int64_t seed = 1; seed <= o->seeds; seed++) {
        weft *w = open_context(WEFT_CPU, seed, o->threads);
        net m = net_new(w, k, d->phones.n, longest, o);
        const double begin = (double)clock();
        train(&m, &parts[TRAIN], o);
        trained += ((double)clock() - begin) / CLOCKS_PER_SEC;
        for (part p = DEV; p <= (o->test ? TEST : DEV); p++)
            judge(&m, &parts[p], sum[p - DEV]);
        check_context(w, "%s, seed %lld", k->name, (long long)seed);
        weft_close(w);
        free(m.len);
        free(m.phones);
        free(m.tag);
    }
    printf("%-24s", k->name);
    for (part p = DEV; p <= (o->test ? TEST : DEV); p++)
        printf("  %6.2f %6.2f", sum[p - DEV][0] / n, sum[p - DEV][1] / n);
    printf("  %5.0f\n", trained / n);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    options o = { 0 };
    options_preset(&table, &o);
    int rest = options_read(&table, &o, NULL, argc, argv);
    if (rest < argc || !o.data)
        quit(2, "expected --data DICT and options only; see tagger --help");
    dictionary d = dictionary_read(o.data, o.set.words);
    if (o.write) {
        write_words(&d, o.write);
        return 0;
    }
    said parts[] = { said_of(&d, TRAIN), said_of(&d, DEV), said_of(&d, TEST) };
    printf("%lld pronunciations to train, %lld dev, %lld test; %%: right vowels, right words; seconds of "
           "all cores\n%-24s  %13s%s\n", (long long)parts[TRAIN].n, (long long)parts[DEV].n,
           (long long)parts[TEST].n, "", "dev", o.test ? "           test" : "");
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        run(&kinds[k], &d, parts, &o);
    return 0;
}
