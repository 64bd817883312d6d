/* g2p.c - learns to pronounce English: letters in, phones out, ragged on both sides, an attention
 * encoder-decoder from scratch.
 *
 *     g2p --data DICT --out FILE      trains; `g2p --help` lists the settings; --resume goes
 *                                     on where FILE was saved
 *     g2p --test FILE                   the error on the words that were kept apart
 *     g2p --say FILE WORD...            reads words aloud in phones
 *
 * The model is that of Luong et al. 2015: a bidirectional LSTM reads the letters; an LSTM that starts from
 * its last states writes phones; after it every phone looks at all letters. FILE holds weights, settings,
 * phones, the test's words and all it takes to go on bit for bit. It holds no times, so a run that was killed
 * and resumed ends in the same bytes as one that was not. The log is no such file: after kill -9 it repeats
 * the points since FILE was saved; and the seconds of a resumed run, there and in the last line, are its last
 * process's. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/program.h"
#include "common/progress.h"
#include "g2p_data.h"
#include "g2p_judge.h"
#include "g2p_model.h"
#include "g2p_options.h"
#include "g2p_pictures.h"

const char program[] = "g2p";

/* ---- training ---- */
/* updates between two losses that count, between two points of their curve */
enum { READ = 10, POINT = 100 };

typedef struct {
    options o; dictionary d; model m;
    weft_optim *optim; weft_loader *loader; weft_journal *log;
    weft_parallel *parallel; bool first;         /* first: of all ranks, which speaks for them */
    /* [pairs] what there is to learn: a word and one of its pronunciations; of both, how long */
    int64_t pairs, *word, *saying; int32_t *tokens;
    int64_t devs, *dev;                          /* words */
    /* a batch: tokens, and lengths of both sides */
    int32_t *letters, *before, *after, *read, *write;
    int64_t total, points;                       /* updates in all; of the loss's curve */
    /* from here on in the file: epochs done; of the dictionary */
    int64_t epochs, print;
    /* sum and number of losses read; [points]; [epochs][per, wer] */
    double  meter[2], *curve, *judged;
    weft_loader_state at;
    char    phones[PHONES * NAME], *test;
    progress bar;                                /* this process */
} run;

/* What the file holds beside weights, optimiser and random streams; the test's words last. */
enum { ITEMS = SETTINGS + 8 };
static void items_of(run *r, weft_checkpoint_item items[ITEMS])
{
    options_items(&g2p_table, &r->o, items);
    const weft_checkpoint_item more[ITEMS - SETTINGS] = {
        { "epochs_done", WEFT_I64, &r->epochs, 1 },
        { "dictionary", WEFT_I64, &r->print, 1 },
        { "loader", WEFT_I64, r->at.at, 4 },
        { "meter", WEFT_F64, r->meter, 2 },
        { "loss", WEFT_F64, r->curve, r->points + 1 },
        { "dev", WEFT_F64, r->judged, 2 * r->o.set.epochs + 2 },
        { "phone_set", WEFT_TEXT, r->phones, (int64_t)sizeof r->phones },
        { "test", WEFT_TEXT, r->test, r->test ? (int64_t)strlen(r->test) + 1 : 0 },
    };
    memcpy(items + SETTINGS, more, sizeof more);
}

static void save(run *r)
{
    weft_checkpoint_item items[ITEMS];
    r->at = weft_loader_get_state(r->loader);
    items_of(r, items);
    check_file(weft_parallel_save(r->parallel, r->o.out, r->m.all, r->optim, items, ITEMS));
}

static void restore(run *r)
{
    weft_checkpoint_item items[ITEMS];
    check_context(r->m.w, "%s", "");
    items_of(r, items);
    check_file(weft_parallel_load(r->parallel, r->o.out, r->m.all, r->optim, items, ITEMS - 1));
    weft_loader_set_state(r->loader, r->at);
    if (r->first)
        printf("goes on after update %lld of %lld\n", (long long)weft_optim_steps(r->optim),
               (long long)r->total);
}

/* Every distinct pronunciation of every training word. Sorted by letters first and phones second, a batch
 * is even on both sides. */
static void make_pairs(run *r)
{
    const dictionary *d = &r->d;
    int32_t *size = memory((size_t)d->sayings, sizeof *size), most_letters = 0, most_phones = 0;
    r->tokens = memory((size_t)d->sayings, sizeof *r->tokens);
    r->word = memory((size_t)d->sayings, sizeof *r->word);
    r->saying = memory((size_t)d->sayings, sizeof *r->saying);
    for (int64_t i = 0; i < d->words; i++)
        for (int64_t s = d->first[i]; part_of(i) == TRAIN && s < d->first[i + 1]; s++) {
            most_letters = d->letters[i] > most_letters ? d->letters[i] : most_letters;
            most_phones = d->length[s] > most_phones ? d->length[s] : most_phones;
            size[r->pairs] = 64 * d->letters[i] + d->length[s];
            r->tokens[r->pairs] = d->letters[i] + d->length[s] + 1;
            r->word[r->pairs] = i;
            r->saying[r->pairs++] = s;
        }
    size_t n = (size_t)r->o.set.batch;
    r->letters = memory(n * (size_t)most_letters, sizeof *r->letters);
    r->before = memory(n * (size_t)(most_phones + 1), sizeof *r->before);
    r->after = memory(n * (size_t)(most_phones + 1), sizeof *r->after);
    r->read = memory(n, sizeof *r->read);
    r->write = memory(n, sizeof *r->write);
    weft_loader_opts opts = { .count = r->o.set.batch, .pool = (int)r->o.set.pool };
    r->loader = weft_loader_new(r->m.w, "train", r->pairs, size, &opts);
    weft_parallel_opts shards = { .shards = (int)r->o.set.shards, .n = r->pairs, .len = r->tokens };
    r->parallel = weft_parallel_new(r->m.all, &shards);
    r->first = weft_parallel_place_of(r->parallel).rank == 0;
    free(size);
}

static void fill(run *r, const int32_t *pick, int64_t n)
{
    int32_t *letters = r->letters, *before = r->before, *after = r->after;
    for (int64_t i = 0; i < n; i++) {
        int64_t saying = r->saying[pick[i]];
        int32_t length = r->d.length[saying];
        letters = spell(letters, r->d.word[r->word[pick[i]]], &r->read[i]);
        r->write[i] = length + 1;
        memcpy(after, r->d.said[saying], (size_t)length * sizeof *after);
        memcpy(before + 1, after, (size_t)length * sizeof *before);
        before[0] = after[length] = MARK;
        before += length + 1;
        after += length + 1;
    }
}

static void log_point(run *r, double norm)
{
    int64_t updates = weft_optim_steps(r->optim);
    double loss = r->meter[1] > 0 ? r->meter[0] / r->meter[1] : 0;
    r->curve[updates / POINT - 1] = loss;
    r->meter[0] = r->meter[1] = 0;
    weft_journal_number(r->log, "update", (double)updates);
    weft_journal_number(r->log, "epoch", (double)weft_loader_epoch(r->loader));
    weft_journal_number(r->log, "loss", loss);
    weft_journal_number(r->log, "lr", (double)weft_optim_lr(r->optim));
    weft_journal_number(r->log, "norm", norm);
    progress_log(&r->bar, r->log);
    weft_journal_line_end(r->log);
}

/* Of one shard: what each phone should have been. */
static weft_loss loss_of(run *r, const weft_part *shard)
{
    fill(r, shard->index, shard->n);
    weft_lengths read = { .n = shard->n, .len = r->read }, write = { .n = shard->n, .len = r->write };
    encoded e = encode(&r->m, r->letters, &read);
    weft_tensor *right = weft_ragged_ints(r->m.w, r->after, &write);
    weft_tensor *guess = logits(&r->m, &e, r->before, &write, NULL);
    return weft_cross_entropy(guess, right, &(weft_ce_opts){ .smoothing = r->o.set.smoothing });
}

static void update(run *r, const int32_t *pick, int64_t n)
{
    const settings *s = &r->o.set;
    weft_parallel_begin(r->parallel, pick, n);
    for (weft_part shard; weft_parallel_next(r->parallel, &shard);)
        weft_parallel_add(r->parallel, loss_of(r, &shard));
    weft_tensor *norm = weft_clip_grad_norm(r->m.all, s->clip, 0);
    int64_t warmup = s->warmup < r->total ? s->warmup : r->total;          /* a short run is all warm-up */
    weft_optim_set_lr(r->optim,
                      weft_cosine_warmup(weft_optim_steps(r->optim), r->total, s->lr, warmup, 0));
    weft_optim_step(r->optim);
    int64_t updates = weft_optim_steps(r->optim);
    weft_ema_update(r->m.average, updates);
    r->first = progress_speaks(&r->bar, r->first, r->o.log, &r->log);
    for (int64_t i = 0; i < n; i++)
        r->bar.tokens += r->tokens[pick[i]];
    if (updates % READ == 1) {
        r->meter[0] += weft_parallel_mean(r->parallel);
        r->meter[1]++;
    }
    if (updates % POINT == 0 && weft_ok(r->m.w)) /* a failed step is no update */
        log_point(r, weft_item(norm));
    weft_clear(r->m.w);
    check_context(r->m.w, "update %lld", (long long)updates);
}

/* ---- the bar ---- */
static double last_loss(const run *r)
{
    int64_t points = weft_optim_steps(r->optim) / POINT;
    return r->meter[1] > 0 ? r->meter[0] / r->meter[1] : points ? r->curve[points - 1] : NAN;
}

static void show(run *r)
{
    int64_t done = weft_optim_steps(r->optim);
    if (r->first && progress_due(&r->bar, done))
        progress_show(&r->bar, done, r->total, "epoch %lld of %lld  loss %.3f",
                      (long long)weft_loader_epoch(r->loader), (long long)r->o.set.epochs, last_loss(r));
}

/* ---- epochs ---- */
static void end_epoch(run *r)
{
    score s = judge(&r->m, &r->d, r->dev, r->devs, 1, NULL);
    r->judged[2 * r->epochs] = score_per(&s);
    r->judged[2 * r->epochs + 1] = score_wer(&s);
    r->epochs++;
    if (!r->first)
        return;
    progress_wipe();
    printf("epoch %lld of %lld: loss %.4f, dev PER %.2f %% WER %.2f %%, %.0f s\n", (long long)r->epochs,
           (long long)r->o.set.epochs, last_loss(r), score_per(&s), score_wer(&s), progress_seconds(&r->bar));
    fflush(stdout);
    weft_journal_number(r->log, "epochs_done", (double)r->epochs);
    weft_journal_number(r->log, "dev_per", score_per(&s));
    weft_journal_number(r->log, "dev_wer", score_wer(&s));
    progress_log(&r->bar, r->log);
    weft_journal_line_end(r->log);
}

/* False if a signal came. */
static bool train(run *r)
{
    bool saved = false;
    r->bar = progress_begin(weft_optim_steps(r->optim), r->parallel);
    if (r->bar.first == 0)
        save(r);                                 /* a path that cannot be written is better known now */
    while (r->epochs < r->o.set.epochs && !stopping(r->parallel)) {
        int64_t n;
        const int32_t *pick = weft_loader_next(r->loader, &n);
        if (pick) {
            update(r, pick, n);
            show(r);
        } else {
            end_epoch(r);
        }
        saved = !pick || weft_optim_steps(r->optim) % r->o.every == 0;
        if (saved)
            save(r);
    }
    if (!saved)
        save(r);
    if (r->first)
        progress_wipe();
    return r->epochs == r->o.set.epochs;
}

/* ---- after it ---- */
static void draw(const run *r)
{
    enum { SHOWN = 8 };
    char path[3][4096];
    static const char *const names[3] = { "curve.svg", "attention.svg", "batch.svg" };
    /* as they come: before the loader sorts them, with the pads that it avoids */
    const char *words[SHOWN];
    for (int i = 0; i < SHOWN; i++)
        words[i] = r->d.word[r->word[(2 * i + 1) * r->pairs / (2 * SHOWN)]];
    for (int i = 0; i < 3; i++)
        snprintf(path[i], sizeof path[i], "%s/%s", r->o.pictures, names[i]);
    history h = { r->points, POINT,    r->o.set.epochs, r->total / (r->o.set.epochs ? r->o.set.epochs : 1),
                  r->curve,  r->judged };
    weft_ema_swap(r->m.average);
    if (draw_history(path[0], &h) != WEFT_OK ||
        draw_attention(path[1], &r->m, &r->d.phones, "phlegm") != WEFT_OK ||
        draw_words(path[2], words, SHOWN) != WEFT_OK)
        quit(1, "%s", weft_file_message());
    weft_ema_swap(r->m.average);
}

static void say(const model *m, const phone_set *phones, const char *word, int64_t beam, const dictionary *d)
{
    int32_t length, *letters = memory(strlen(word), sizeof *letters);
    spell(letters, word, &length);
    weft_decoded said =
        pronounce(m, letters, &(weft_lengths){ .n = 1, .len = &length }, 2 * (int64_t)length + LIMIT, beam);
    printf("  %-18s %s", word, spoken(phones, said.tokens, said.len[0]));
    int64_t i = d ? dictionary_find(d, word) : -1;
    score s = { 0 };
    if (i >= 0)
        score_word(&s, d, i, said.tokens, said.len[0]);
    if (s.wrong)
        printf("   (the dictionary says %s)", spoken(phones, d->said[d->first[i]], d->length[d->first[i]]));
    printf("\n");
    weft_decoded_free(&said);
    weft_clear(m->w);
    free(letters);
}

/* A handful of words of the test: those of which English is proud, or any. */
static void read_aloud(const run *r, const int64_t *test, int64_t n)
{
    static const char *const hard[] = {
        "enough",    "chateau",  "knives",      "psychic",       "queue",
        "honeycomb", "thorough", "righteously", "pronunciation",
    };
    int found = 0;
    puts("words it never saw:");
    weft_ema_swap(r->m.average);
    for (size_t i = 0; i < sizeof hard / sizeof *hard; i++) {
        int64_t word = dictionary_find(&r->d, hard[i]);
        if (word >= 0 && part_of(word) == TEST && ++found)
            say(&r->m, &r->d.phones, hard[i], r->o.beam, &r->d);
    }
    for (int64_t i = 0; i < 5 && found < 5 && i < n; i++)
        say(&r->m, &r->d.phones, r->d.word[test[i * n / 5]], r->o.beam, &r->d);
    weft_ema_swap(r->m.average);
}

static void last_line(const score *s, const model *m, double spent)
{
    printf("g2p: PER %.2f %% WER %.2f %% on %lld words, %lld k parameters, %.0f s\n", score_per(s),
           score_wer(s), (long long)s->words, (long long)(weft_parameter_numel(m->all) + 500) / 1000, spent);
}

/* ---- the three things it does ---- */
static char *text_item(const char *path, const char *name)
{
    int64_t n = weft_checkpoint_item_size(path, name);
    char *text = memory(n > 0 ? (size_t)n : 1, 1);
    weft_checkpoint_item item = { name, WEFT_TEXT, text, n };
    if (n < 0 || weft_load(path, NULL, NULL, &item, 1) != WEFT_OK)
        quit(1, "%s", weft_file_message());
    return text;
}

/* The model of a file, its weights averaged. */
static model load_model(options *o, const char *path, phone_set *phones)
{
    options_of_file(&g2p_table, o, o->given, path);
    char *names = text_item(path, "phone_set");
    *phones = phones_parse(names);
    free(names);
    model m = model_new(open_context(o->device, o->set.seed, o->threads), &o->set, phones->n);
    check_context(m.w, "%s", "");
    check_file(weft_load(path, m.all, NULL, NULL, 0));
    return m;
}

static int do_say(options *o)
{
    phone_set phones;
    for (int i = 0; i < o->count; i++)
        if (!*o->words[i] || !lower_word(o->words[i]))
            quit(2, "\"%s\" is no word of the letters a to z; leave other characters out (dont)",
                 o->words[i]);
    model m = load_model(o, o->say, &phones);
    weft_ema_swap(m.average);
    for (int i = 0; i < o->count && weft_parallel_place_of(m.ranks).rank == 0; i++)
        say(&m, &phones, o->words[i], o->beam, NULL);
    weft_close(m.w);
    return 0;
}

static int do_test(options *o)
{
    phone_set phones;
    model m = load_model(o, o->test, &phones);
    char *text = text_item(o->test, "test");
    dictionary d =
        o->data ? dictionary_read(o->data, o->set.words) : dictionary_parse(text, o->test, &phones);
    if (memcmp(&d.phones, &phones, sizeof phones))
        quit(1, "%s has other phones than %s", o->data, o->test);
    int64_t n, *words = words_of(&d, o->data ? TEST : ALL, &n);
    double start = seconds();
    score s = judge(&m, &d, words, n, o->beam, o->said);
    if (weft_parallel_place_of(m.ranks).rank == 0)
        last_line(&s, &m, seconds() - start);
    free(words);
    dictionary_end(&d);
    free(text);
    weft_close(m.w);
    return 0;
}

static void must_be_the_same(const run *r)      /* dictionary as when the file was begun */
{
    int64_t print;
    weft_checkpoint_item item = { "dictionary", WEFT_I64, &print, 1 };
    check_file(weft_load(r->o.out, NULL, NULL, &item, 1));
    if (print != r->print)
        quit(1, "%s was begun with another dictionary than %s", r->o.out, r->o.data);
}

static void begin(run *r)
{
    bool resumes = r->o.resume && is_there(r->o.out);
    if (resumes)
        options_of_file(&g2p_table, &r->o, r->o.given, r->o.out);
    const settings *s = &r->o.set;
    r->d = dictionary_read(r->o.data, s->words);
    r->print = dictionary_print(&r->d);
    if (resumes)
        must_be_the_same(r);
    phones_text(&r->d.phones, r->phones);
    r->test = dictionary_text(&r->d, TEST);
    r->dev = words_of(&r->d, DEV, &r->devs);
    r->m = model_new(open_context(r->o.device, s->seed, r->o.threads), s, r->d.phones.n);
    r->optim = weft_adamw_new(r->m.all, &(weft_adam_opts){ .weight_decay = s->decay });
    make_pairs(r);
    if (r->o.resume && !resumes && r->first)
        printf("there is no %s yet: a fresh start\n", r->o.out);
    r->total = (r->pairs + s->batch - 1) / s->batch * s->epochs;
    r->points = r->total / POINT;
    r->curve = memory((size_t)r->points + 1, sizeof *r->curve);
    r->judged = memory(2 * (size_t)s->epochs + 2, sizeof *r->judged);
    if (resumes)
        restore(r);
    check_context(r->m.w, "%s", "");
    if (r->o.log && r->first)
        check_file(weft_journal_open(r->o.log, resumes, &r->log));
    weft_journal_text(r->log, "event", resumes ? "resume" : "begin");
    weft_journal_number(r->log, "update", (double)weft_optim_steps(r->optim));
    options_log(&g2p_table, &r->o, r->log);
    weft_journal_line_end(r->log);
}

static void end(run *r)
{
    void *const all[] = {
        r->word, r->saying, r->tokens, r->dev,   r->letters, r->before,
        r->after, r->read,  r->write,  r->curve, r->judged,  r->test,
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    weft_journal_close(r->log);
    dictionary_end(&r->d);
    weft_close(r->m.w);
}

static void finish(run *r)
{
    double spent = progress_seconds(&r->bar);
    int64_t n, *test = words_of(&r->d, TEST, &n);
    score s = judge(&r->m, &r->d, test, n, r->o.beam, r->o.said);
    if (!r->first) {
        free(test);
        return;
    }
    weft_journal_number(r->log, "test_per", score_per(&s));
    weft_journal_number(r->log, "test_wer", score_wer(&s));
    weft_journal_number(r->log, "seconds", spent);
    weft_journal_line_end(r->log);
    if (r->o.pictures)
        draw(r);
    read_aloud(r, test, n);
    last_line(&s, &r->m, spent);
    free(test);
}

static int do_train(const options *o, int argc, char **argv)
{
    run r = { .o = *o };
    begin(&r);
    if (weft_parallel_place_of(r.parallel).ranks == 1)
        obey_signals();
    bool complete = train(&r);
    if (complete) {
        finish(&r);
    } else if (r.first) {
        printf("stopped and saved after update %lld of %lld; to go on:\n",
               (long long)weft_optim_steps(r.optim), (long long)r.total);
        print_resume(argc, argv);
    }
    end(&r);
    return complete || !signal_came() ? 0 : 128 + signal_came();
}

int main(int argc, char **argv)
{
    options o = command_line(argc, argv);
    return o.test ? do_test(&o) : o.say ? do_say(&o) : do_train(&o, argc, argv);
}
