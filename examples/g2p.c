/* g2p.c - learns to pronounce English, from letters to phones, with an attention encoder-decoder on ragged
 * batches.
 *
 *     g2p --data DICT --out FILE      trains; `g2p --help` lists the settings; --resume continues from FILE
 *     g2p --test FILE                 prints the error on the test words
 *     g2p --say FILE WORD...          prints the phones of words
 *
 * The model is in common/pronouncer.c. FILE holds weights, settings, phones, the words of the test, the
 * aligned training words, and the state of the training. So a run that was killed and resumed ends with the
 * same bytes as one that was not. After kill -9 the log repeats the points since the last save of FILE. The
 * seconds of a resumed run count its last process only. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "weft_op.h"
#include "common/pronouncer.h"
#include "common/training.h"

const char program[] = "g2p";

/* ---- options ---- */
typedef struct {
    training_settings train;
    model_opts model;
    int64_t pool, words, joint;
    double smoothing;
} settings;
enum { SETTINGS = 19 };
typedef struct {
    settings set;
    run_options run;
    const char *data, *say, *said, *with;
    int64_t beam;
    char **words;                                /* of --say */
    int count;
} options;

static const option all_options[] = {
    SETTING("hidden", WHOLE, model.hidden, 128, 1, 4096, "units of each recurrent layer, in each direction"),
    SETTING("embed", WHOLE, model.embed, 32, 1, 4096, "width of the vectors of letters and phones"),
    SETTING("layers", WHOLE, model.layers, 2, 1, 8, "layers of the encoder"),
    SETTING("decoders", WHOLE, model.decoders, 2, 1, 2,
            "decoders; the second writes from the last phone to the first"),
    SETTING("ctc", WHOLE, model.ctc, 0, 0, 1, "1: a CTC layer instead of decoders"),
    SETTING("joint", WHOLE, joint, 8, 0, ORDERS,
            "longest n-gram of the joint model, which proposes and chooses too; 0: no such model"),
    SETTING("batch", WHOLE, train.batch, 32, 1, 65536, "words per update"),
    SETTING("shards", WHOLE, train.shards, 0, 0, 65536,
            "parts of an update; fixes the result for any number of ranks; 0: one per rank"),
    SETTING("pool", WHOLE, pool, 50, 1, 1e6, "batches whose words are sorted by length together"),
    SETTING("epochs", WHOLE, train.epochs, 6, 0, 1e6, "passes over the training words"),
    SETTING("warmup", WHOLE, train.warmup, 300, 0, 1e9, "updates until the full learning rate"),
    SETTING("seed", WHOLE, train.seed, 1, 0, 9e15, "seed of all random numbers"),
    SETTING("words", WHOLE, words, 0, 0, 1e9, "number of words to take from the dictionary, about; 0: all"),
    SETTING("lr", REAL, train.lr, 2.5e-3, 0, 10, "learning rate after warm-up; falls to 0 on a cosine"),
    SETTING("dropout", REAL, model.dropout, 0.03, 0, 0.95, "probability of dropout"),
    SETTING("smoothing", REAL, smoothing, 0.05, 0, 0.95, "smoothing of the labels"),
    SETTING("decay", REAL, train.decay, 0, 0, 10, "weight decay (AdamW)"),
    SETTING("clip", REAL, train.clip, 2, 1e-9, 1e9, "limit of the gradient's norm"),
    SETTING("average", REAL, train.average, 0.9995, 0, 0.999999,
            "decay of the average of the weights, which judges and pronounces; 0: no average"),
    OTHER("beam", WHOLE, beam, 4, 1, 100,
          "beams of each decoder, which then choose together; 1: the first decoder alone, greedy"),
    OTHER("data", TEXT, data, 0, 0, 0, "dictionary"),
    OTHER("say", TEXT, say, 0, 0, 0, "checkpoint that pronounces the words"),
    OTHER("with", TEXT, with, 0, 0, 0, "more checkpoints for --test and --say, as FILE,FILE.."),
    OTHER("said", TEXT, said, 0, 0, 0, "file for the test words and their phones"),
};
static const option_table table = {
    "usage:\n"
    "  g2p --data DICT [OPTION]..                 trains, and saves to --out (g2p.h5)\n"
    "  g2p --test FILE [--data DICT] [OPTION]..   prints the error on the test words\n"
    "  g2p --say FILE [OPTION].. WORD..           prints the phones of words\n"
    "  mpirun -n RANKS g2p ..                     trains with several processes, see docs/cluster.md\n",
    all_options, sizeof all_options / sizeof *all_options, SETTINGS,
};

static options command_line(int argc, char **argv)
{
    options o = { .run.out = "g2p.h5" };
    options_preset(&table, &o);
    int rest = options_read(&table, &o, &o.run, argc, argv);
    o.words = argv + rest;
    o.count = argc - rest;
    if (o.count && !o.say)
        quit(2, "found \"%s\"; expected options only; see g2p --help", o.words[0]);
    if (!o.data && !o.run.test && !o.say)
        quit(2, "expected --data DICT, --test FILE or --say FILE; see g2p --help");
    if (o.with && !o.run.test && !o.say)
        quit(2, "--with: expected --test or --say beside it");
    if ((o.run.test != NULL) + (o.say != NULL) > 1 || (o.run.resume && !o.data))
        quit(2, "expected only one of --test, --say and --resume with --data");
    if (o.say && !o.count)
        quit(2, "--say: found no words; expected WORD..");
    return o;
}

/* ---- evaluation ---- */
enum { CHUNK = 256 };                            /* words at a time */

/* Scores the words of a shard, which are indices into `words`, and stores their phones. */
static score judge_shard(const model *m, const dictionary *d, const int64_t *words, const weft_part *shard,
                         int64_t beam)
{
    score s = { 0 };
    const char *text[CHUNK];
    for (int64_t from = 0; from < shard->n; from += CHUNK) {
        int64_t n = shard->n - from < CHUNK ? shard->n - from : CHUNK;
        const int32_t *pick = shard->index + from;
        for (int64_t i = 0; i < n; i++)
            text[i] = word_at(d, words[pick[i]]);
        weft_decoded decoded = pronounce(m, text, n, LIMIT, beam);
        for (int64_t i = 0; i < n; i++) {
            const int32_t *phones = decoded.tokens + i * decoded.best * decoded.limit;
            int32_t phone_count = decoded.len[i * decoded.best];
            score_word(&s, d, words[pick[i]], phones, phone_count);
            weft_parallel_put(m->ranks, from + i, phones, phone_count * (int64_t)sizeof *phones);
        }
        weft_decoded_free(&decoded);
        weft_clear(m->w);
    }
    return s;
}

/* Writes a line for each word: the word and the model's phones. */
static void write_said(const model *m, const dictionary *d, const int64_t *words, const char *path)
{
    int64_t n;
    const weft_parallel_result *said = weft_parallel_gathered(m->ranks, &n);
    FILE *file = fopen(path, "w");
    for (int64_t i = 0; file && i < n; i++)
        fprintf(file, "%s\t%s\n", word_at(d, words[i]),
                spoken(&d->phones, said[i].bytes, said[i].n / (int64_t)sizeof(int32_t)));
    end_file(file, path);
}

/* Scores words [n] with the average of the weights. Each rank scores its share, and all return the sum. said:
 * NULL, or a file that the first rank writes. */
static score judge(const model *m, const dictionary *d, const int64_t *words, int64_t n, int64_t beam,
                   const char *said)
{
    swap_averages(m);
    WEFT_NO_GRAD(m->w) WEFT_EVAL(m->w) {
        weft_parallel_begin(m->ranks, NULL, n);
        for (weft_part shard; weft_parallel_next(m->ranks, &shard);) {
            score s = judge_shard(m, d, words, &shard, beam);
            double counts[] = { (double)s.words, (double)s.wrong, (double)s.distance, (double)s.length };
            weft_parallel_add_values(m->ranks, counts, 4);
        }
    }
    swap_averages(m);
    check_context(m->w, "judging");
    if (said && weft_parallel_place_of(m->ranks).rank == 0)
        write_said(m, d, words, said);
    const double *sum = weft_parallel_values(m->ranks);
    return (score){ (int64_t)sum[0], (int64_t)sum[1], (int64_t)sum[2], (int64_t)sum[3] };
}

/* ---- training ---- */
/* updates between two recorded losses, and between two points of their curve */
enum { READ = 10, POINT = 100 };

typedef struct {
    options o;
    dictionary d;
    model m;
    training t;
    /* a pair is one pronunciation of a training word */
    int64_t pairs;
    entry **pair;
    batch batch;
    int64_t devs, *dev;                          /* words */
    int32_t *graphones;
    int64_t graphone_count;
    int64_t points, hash;                        /* of the loss's curve; of the dictionary */
    double *curve, *judged;                      /* [points], [epochs][per, wer] */
    char phones[PHONES * NAME], *test;
} run;

/* Makes the pairs. Sorting by letters first and phones second gives batches of similar lengths on both sides.
 * */
static void make_pairs(run *r)
{
    const dictionary *d = &r->d;
    int32_t *size = memory((size_t)d->entries, sizeof *size), longest = 0, most_phones = 0;
    int32_t *tokens = memory((size_t)d->entries, sizeof *tokens);
    r->pair = memory((size_t)d->entries, sizeof *r->pair);
    for (int64_t i = 0; i < d->words; i++)
        for (int64_t k = d->first[i]; part_of(i) == TRAIN && k < d->first[i + 1]; k++) {
            entry *e = &d->entry[k];
            int32_t letters = (int32_t)strlen(e->word);
            longest = letters > longest ? letters : longest;
            most_phones = e->n > most_phones ? e->n : most_phones;
            size[r->pairs] = 64 * letters + e->n;
            tokens[r->pairs] = letters + e->n + 1;
            r->pair[r->pairs++] = e;
        }
    r->batch = batch_new((size_t)r->o.set.train.batch, (size_t)longest, (size_t)most_phones);
    training_data(&r->t, r->pairs, size, tokens, r->o.set.pool);
    free(size);
    r->graphones = joint_align(r->pair, r->o.set.joint ? r->pairs : 0, &r->graphone_count);
    if (r->o.set.joint)
        r->m.joint = joint_new(r->graphones, r->graphone_count, (int)r->o.set.joint);
}

/* Returns the sum of the decoders' losses. */
static weft_loss loss_of(void *user, const weft_part *shard)
{
    run *r = user;
    const model *m = &r->m;
    batch_empty(&r->batch);
    for (int64_t i = 0; i < shard->n; i++) {
        const entry *e = r->pair[shard->index[i]];
        batch_add(&r->batch, e->word, e->phones, e->n);
    }
    encoded e = encode(m, &r->batch);
    weft_loss sum = { 0 };
    if (m->steps) {
        weft_tensor *weight, *losses = ctc_losses(m, &e, &r->batch, &weight);
        return (weft_loss){ weft_sum_all(losses), weft_sum_all(weight) };
    }
    for (int k = 0; k < m->decoders; k++) {
        weft_tensor *right, *guess = logits(m, k, &e, &r->batch, &right, NULL);
        weft_loss loss = weft_cross_entropy(
            guess, right, &(weft_cross_entropy_opts){ .label_smoothing = r->o.set.smoothing });
        sum = k == 0 ? loss : (weft_loss){ weft_add(sum.sum, loss.sum), weft_add(sum.weight, loss.weight) };
    }
    return sum;
}

static double last_loss(const run *r)
{
    int64_t points = weft_optim_steps(r->t.optim) / POINT;
    const double *meter = r->t.meter;
    return meter[1] > 0 ? meter[0] / meter[1] : points ? r->curve[points - 1] : NAN;
}

static void after_update(void *user, weft_tensor *norm)
{
    run *r = user;
    training *t = &r->t;
    int64_t updates = weft_optim_steps(t->optim);
    if (updates % READ == 1) {
        t->meter[0] += weft_parallel_mean(t->parallel);
        t->meter[1]++;
    }
    if (updates % POINT == 0 && weft_ok(t->w)) { /* ignores a failed step */
        double loss = t->meter[1] > 0 ? t->meter[0] / t->meter[1] : 0;
        r->curve[updates / POINT - 1] = loss;
        t->meter[0] = t->meter[1] = 0;
        weft_journal_number(t->log, "update", (double)updates);
        weft_journal_number(t->log, "epoch", (double)weft_loader_epoch(t->loader));
        weft_journal_number(t->log, "loss", loss);
        weft_journal_number(t->log, "lr", (double)weft_optim_lr(t->optim));
        weft_journal_number(t->log, "norm", weft_item(norm));
        training_end_line(t);
    }
    t->loss = last_loss(r);
}

static bool after_epoch(void *user)
{
    run *r = user;
    training *t = &r->t;
    score s = judge(&r->m, &r->d, r->dev, r->devs, 1, NULL);
    r->judged[2 * t->epochs - 2] = per_of(&s);
    r->judged[2 * t->epochs - 1] = wer_of(&s);
    training_print(t, "epoch %lld of %lld: loss %.4f, dev PER %.2f %% WER %.2f %%, %.0f s\n",
                   (long long)t->epochs, (long long)t->set->epochs, last_loss(r), per_of(&s), wer_of(&s),
                   training_seconds(t));
    weft_journal_number(t->log, "epochs_done", (double)t->epochs);
    weft_journal_number(t->log, "dev_per", per_of(&s));
    weft_journal_number(t->log, "dev_wer", wer_of(&s));
    training_end_line(t);
    return false;
}

/* ---- pictures ---- */
static const char letter_names[LETTERS][2] = { "a", "b", "c", "d", "e", "f", "g", "h", "i",
                                               "j", "k", "l", "m", "n", "o", "p", "q", "r",
                                               "s", "t", "u", "v", "w", "x", "y", "z" };

/* Draws losses, and errors on dev after each epoch. */
static void draw_history(const char *path, const run *r)
{
    int64_t epochs = r->t.set->epochs, points = r->points;
    double *x = memory((size_t)(points + 3 * epochs), sizeof *x);
    double *end = x + points, *per = end + epochs, *wer = per + epochs;
    for (int64_t i = 0; i < points; i++)
        x[i] = (double)((i + 1) * POINT);
    for (int64_t i = 0; i < epochs; i++) {
        end[i] = (double)((i + 1) * (r->t.total / epochs));
        per[i] = r->judged[2 * i];
        wer[i] = r->judged[2 * i + 1];
    }
    const weft_curve curves[] = {
        { "training loss", points, x, r->curve, false, NULL },
        { "words wrong (dev)", epochs, end, wer, true, NULL },
        { "phones wrong (dev)", epochs, end, per, true, NULL },
    };
    const weft_chart chart = { NULL, "updates", "loss", "errors, %", 0, 0, curves, 3 };
    check_file(weft_plot_lines(path, "Learning to pronounce English", &chart, 1, 0));
    free(x);
}

/* Draws the letters of a word that each of its phones attends to. */
static void draw_attention(const char *path, const model *m, const phone_set *p, const char *word)
{
    const char *rows[LIMIT + 1], *columns[LIMIT];
    char title[100];
    weft_decoded decoded = pronounce(m, &word, 1, LIMIT, 1);
    int32_t phones = decoded.len[0] + 1, length = (int32_t)strlen(word);
    for (int i = 0; i < phones; i++)
        rows[i] = i < phones - 1 ? p->name[decoded.tokens[i]] : "end";
    for (int i = 0; i < length; i++)
        columns[i] = letter_names[word[i] - 'a'];
    batch b = batch_new(1, (size_t)length, LIMIT);
    batch_add(&b, word, decoded.tokens, decoded.len[0]);
    weft_decoded_free(&decoded);
    WEFT_NO_GRAD(m->w) WEFT_EVAL(m->w) {
        weft_tensor *right, *map;
        encoded e = encode(m, &b);
        logits(m, 0, &e, &b, &right, &map);
        double *weights = numbers_of(weft_to_layout(map, WEFT_CONCAT));
        check_context(m->w, "%s", "");
        snprintf(title, sizeof title, "%s: the letters that each phone attends to", word);
        check_file(weft_plot_heatmap(path, title, phones, length, weights, rows, columns, NULL));
        free(weights);
    }
    batch_free(&b);
    weft_clear(m->w);
}

/* Draws some training words unsorted, with the padding that the loader's sorting avoids. */
static void draw_batch(const char *path, const run *r)
{
    enum { WORDS = 8, WIDEST = 64 };
    const char *labels[WORDS * WIDEST];
    int32_t length[WORDS];
    for (int i = 0, n = 0; i < WORDS; i++) {
        const char *word = r->pair[(2 * i + 1) * r->pairs / (2 * WORDS)]->word;
        for (length[i] = 0; word[length[i]] && length[i] < WIDEST; length[i]++)
            labels[n++] = letter_names[word[length[i]] - 'a'];
    }
    weft_lengths lengths = { .n = WORDS, .len = length };
    check_file(
        weft_plot_batch(path, "A batch: padded, packed, concatenated", &lengths, labels, NULL, NULL, NULL));
}

static void draw(const run *r)
{
    const char *folder = r->o.run.pictures;
    swap_averages(&r->m);
    draw_history(path_in(folder, "curve.svg"), r);
    if (!r->m.steps)
        draw_attention(path_in(folder, "attention.svg"), &r->m, &r->d.phones, "phlegm");
    draw_batch(path_in(folder, "batch.svg"), r);
    swap_averages(&r->m);
}

/* ---- speaking ---- */
/* Prints a word and its phones. d: NULL, or a dictionary to compare with. */
static void say(const model *m, const phone_set *phones, const char *word, int64_t beam, const dictionary *d)
{
    weft_decoded decoded = pronounce(m, &word, 1, 2 * (int64_t)strlen(word) + LIMIT, beam);
    printf("  %-18s %s", word, spoken(phones, decoded.tokens, decoded.len[0]));
    int64_t i = d ? dictionary_find(d, word) : -1;
    score s = { 0 };
    if (i >= 0)
        score_word(&s, d, i, decoded.tokens, decoded.len[0]);
    if (s.wrong) {
        const entry *e = &d->entry[d->first[i]];
        printf("   (the dictionary says %s)", spoken(phones, e->phones, e->n));
    }
    printf("\n");
    weft_decoded_free(&decoded);
    weft_clear(m->w);
}

/* Pronounces some words of the test: hard ones, or any. */
static void read_aloud(const run *r, const int64_t *test, int64_t n)
{
    static const char *const hard[] = { "enough", "chateau", "knives", "psychic", "queue", "honeycomb",
                                        "thorough", "righteously", "pronunciation" };
    int found = 0;
    puts("words it never saw:");
    swap_averages(&r->m);
    for (size_t i = 0; i < sizeof hard / sizeof *hard; i++) {
        int64_t word = dictionary_find(&r->d, hard[i]);
        if (word >= 0 && part_of(word) == TEST && ++found)
            say(&r->m, &r->d.phones, hard[i], r->o.beam, &r->d);
    }
    for (int64_t i = 0; i < 5 && found < 5 && i < n; i++)
        say(&r->m, &r->d.phones, word_at(&r->d, test[i * n / 5]), r->o.beam, &r->d);
    swap_averages(&r->m);
}

static void last_line(const score *s, const model *m, double spent)
{
    long long parameters = 0;
    for (const model *it = m; it; it = it->next)
        parameters += weft_parameter_numel(it->all);
    printf("g2p: PER %.2f %% WER %.2f %% on %lld words, %lld k parameters, %.0f s\n", per_of(s), wer_of(s),
           (long long)s->words, (parameters + 500) / 1000, spent);
}

/* ---- --say and --test ---- */
static char *text_item(const char *path, const char *name)
{
    int64_t n = weft_checkpoint_item_size(path, name);
    char *text = memory(n > 0 ? (size_t)n : 1, 1);
    weft_checkpoint_item item = { name, WEFT_TEXT, text, n };
    if (n < 0 || weft_load(path, NULL, NULL, &item, 1) != WEFT_OK)
        quit(1, "%s", weft_file_message());
    return text;
}

/* Loads a model. w: its context; NULL: a new one. given: as for options_of_file. */
static model *load_model(options *o, const bool *given, const char *path, weft *w, phone_set *phones)
{
    options_of_file(&table, o, given, path);
    char *names = text_item(path, "phone_set");
    *phones = phones_parse(names);
    free(names);
    w = w ? w : open_context(o->run.device, o->set.train.seed, o->run.threads);
    model *m = memory(1, sizeof *m);
    *m = model_new(w, &o->set.model, &o->set.train, phones->n);
    check_context(w, "%s", "");
    check_file(weft_load(path, m->all, NULL, NULL, 0));
    return m;
}

static joint *load_joint(const char *path, int order)
{
    int64_t n = weft_checkpoint_item_size(path, "graphones");
    int32_t *graphones = memory(n > 0 ? (size_t)n : 1, sizeof *graphones);
    weft_checkpoint_item item = { "graphones", WEFT_I32, graphones, n };
    check_file(n < 0 ? WEFT_EFORMAT : weft_load(path, NULL, NULL, &item, 1));
    joint *j = joint_new(graphones, n, order);
    free(graphones);
    return j;
}

/* Loads the model of a file with its n-gram model, and links those of --with to it. */
static model *load_models(options *o, const char *path, phone_set *phones)
{
    static const bool none[OPTIONS];
    model *first = load_model(o, o->run.given, path, NULL, phones), *last = first;
    int count = 1;
    if (o->set.joint)
        first->joint = load_joint(path, (int)o->set.joint);
    for (const char *at = o->with; at; count++) {
        if (count == MODELS)
            quit(2, "--with: found more than %d files; expected at most that many", MODELS - 1);
        size_t n = strcspn(at, ",");
        char *name = memory(n + 1, 1);
        memcpy(name, at, n);
        options other = *o;
        phone_set same;
        model *next = load_model(&other, none, name, first->w, &same);
        if (memcmp(&same, phones, sizeof same))
            quit(1, "%s and %s have different phones", name, path);
        free(name);
        last->next = next;
        last = next;
        at = at[n] ? at + n + 1 : NULL;
    }
    return first;
}

static void close_models(model *m)
{
    weft_close(m->w);
    joint_free(m->joint);
    for (model *next; m; m = next) {
        next = m->next;
        free(m);
    }
}

static int do_say(options *o)
{
    phone_set phones;
    for (int i = 0; i < o->count; i++)
        if (!*o->words[i] || !lower_word(o->words[i]))
            quit(2, "found \"%s\"; expected a word of the letters a to z; leave other characters out (dont)",
                 o->words[i]);
    model *m = load_models(o, o->say, &phones);
    swap_averages(m);
    for (int i = 0; i < o->count && weft_parallel_place_of(m->ranks).rank == 0; i++)
        say(m, &phones, o->words[i], o->beam, NULL);
    close_models(m);
    return 0;
}

static int do_test(options *o)
{
    static dictionary d;
    phone_set phones;
    model *m = load_models(o, o->run.test, &phones);
    d = o->data ? dictionary_read(o->data, o->set.words) :
                  dictionary_parse(text_item(o->run.test, "test"), o->run.test, phones, 0);
    if (memcmp(&d.phones, &phones, sizeof phones))
        quit(1, "%s and %s have different phones", o->data ? o->data : "its test", o->run.test);
    int64_t n, *words = words_of(&d, o->data ? TEST : ALL, &n);
    double start = seconds();
    score s = judge(m, &d, words, n, o->beam, o->said);
    if (weft_parallel_place_of(m->ranks).rank == 0)
        last_line(&s, m, seconds() - start);
    free(words);
    close_models(m);
    return 0;
}

/* ---- --data ---- */
static void check_dictionary(const run *r)
{
    int64_t hash;
    weft_checkpoint_item item = { "dictionary", WEFT_I64, &hash, 1 };
    check_file(weft_load(r->o.run.out, NULL, NULL, &item, 1));
    if (hash != r->hash)
        quit(1, "%s was begun with another dictionary than %s", r->o.run.out, r->o.data);
}

static void begin(run *r)
{
    training *t = &r->t;
    bool resumes = training_settings_of_file(&table, &r->o, &r->o.run);
    const settings *s = &r->o.set;
    r->d = dictionary_read(r->o.data, s->words);
    r->hash = dictionary_hash(&r->d);
    if (resumes)
        check_dictionary(r);
    phones_text(&r->d.phones, r->phones);
    r->test = test_text(&r->d);
    r->dev = words_of(&r->d, DEV, &r->devs);
    weft *w = open_context(r->o.run.device, s->train.seed, r->o.run.threads);
    r->m = model_new(w, &s->model, &s->train, r->d.phones.n);
    *t = (training){ .table = &table, .options = &r->o, .run = &r->o.run, .set = &s->train, .user = r,
                     .loss_of = loss_of, .after_update = after_update, .after_epoch = after_epoch,
                     .w = r->m.w, .all = r->m.all, .trained = r->m.all, .average = r->m.average,
                     .digits = 3 };
    make_pairs(r);
    r->points = t->total / POINT;
    r->curve = memory((size_t)r->points + 1, sizeof *r->curve);
    r->judged = memory(2 * (size_t)s->train.epochs + 2, sizeof *r->judged);
    const weft_checkpoint_item items[] = {
        { "epochs_done", WEFT_I64, &t->epochs, 1 },
        { "dictionary", WEFT_I64, &r->hash, 1 },
        { "loader", WEFT_I64, t->position.at, 4 },
        { "meter", WEFT_F64, t->meter, 2 },
        { "loss", WEFT_F64, r->curve, r->points + 1 },
        { "dev", WEFT_F64, r->judged, 2 * s->train.epochs + 2 },
        { "phone_set", WEFT_TEXT, r->phones, (int64_t)sizeof r->phones },
        { "graphones", WEFT_I32, r->graphones, r->graphone_count },
        { "test", WEFT_TEXT, r->test, (int64_t)strlen(r->test) + 1 },
    };
    training_keep(t, items, sizeof items / sizeof *items);
    check_context(t->w, "%s", "");
    training_resume(t, resumes);
    check_context(t->w, "%s", "");
    training_open_log(t, resumes);
}

static void finish(run *r)
{
    training *t = &r->t;
    double spent = training_seconds(t);
    int64_t n, *test = words_of(&r->d, TEST, &n);
    score s = judge(&r->m, &r->d, test, n, r->o.beam, r->o.said);
    weft_journal_number(t->log, "test_per", per_of(&s));
    weft_journal_number(t->log, "test_wer", wer_of(&s));
    weft_journal_number(t->log, "seconds", spent);
    weft_journal_line_end(t->log);
    if (t->first && r->o.run.pictures)
        draw(r);
    if (t->first) {
        read_aloud(r, test, n);
        last_line(&s, &r->m, spent);
    }
    free(test);
}

int main(int argc, char **argv)
{
    static run r;                                /* its memory lives until the program ends */
    r.o = command_line(argc, argv);
    if (r.o.run.test)
        return do_test(&r.o);
    if (r.o.say)
        return do_say(&r.o);
    begin(&r);
    if (training_run(&r.t))
        finish(&r);
    weft_journal_close(r.t.log);
    weft_close(r.m.w);
    return training_status(&r.t);
}
