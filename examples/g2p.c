/* g2p.c - learns to pronounce English, from letters to phones, with an attention encoder-decoder on ragged
 * batches.
 *
 *     g2p --data DICT --out FILE      trains; `g2p --help` lists the settings; --resume continues from FILE
 *     g2p --test FILE                 prints the error on the test words
 *     g2p --say FILE WORD...          prints the phones of words
 *
 * The model is that of Luong et al. 2015: a bidirectional LSTM reads the letters. An LSTM that starts from
 * its last states writes phones, and each phone attends to all letters. A second such LSTM writes them from
 * the last to the first. Both propose pronunciations by beam search, and the proposal with the highest
 * probability under both together is the result (Liu et al. 2016). FILE holds weights, settings, phones,
 * the words of the test, and the state of the training. So a run that was killed and resumed ends with the
 * same bytes as one that was not. After kill -9 the log repeats the points since the last save of FILE. The
 * seconds of a resumed run count its last process only. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "weft_op.h"
#include "common/dictionary.h"
#include "common/training.h"

const char program[] = "g2p";

/* ---- options ---- */
typedef struct {
    training_settings train;
    int64_t hidden, embed, layers, decoders, decoder_layers, pool, words;
    double dropout, smoothing;
} settings;
enum { SETTINGS = 18 };
typedef struct {
    settings set;
    run_options run;
    const char *data, *say, *said, *with;
    int64_t beam;
    char **words;                                /* of --say */
    int count;
} options;

static const option all_options[] = {
    SETTING("hidden", WHOLE, hidden, 128, 1, 4096, "units of each recurrent layer, in each direction"),
    SETTING("embed", WHOLE, embed, 32, 1, 4096, "width of the vectors of letters and phones"),
    SETTING("layers", WHOLE, layers, 2, 1, 8, "layers of the encoder"),
    SETTING("decoders", WHOLE, decoders, 2, 1, 2,
            "decoders; the second writes from the last phone to the first"),
    SETTING("decoder-layers", WHOLE, decoder_layers, 1, 1, 8, "layers of the decoder"),
    SETTING("batch", WHOLE, train.batch, 32, 1, 65536, "words per update"),
    SETTING("shards", WHOLE, train.shards, 0, 0, 65536,
            "parts of an update; fixes the result for any number of ranks; 0: one per rank"),
    SETTING("pool", WHOLE, pool, 50, 1, 1e6, "batches whose words are sorted by length together"),
    SETTING("epochs", WHOLE, train.epochs, 8, 0, 1e6, "passes over the training words"),
    SETTING("warmup", WHOLE, train.warmup, 300, 0, 1e9, "updates until the full learning rate"),
    SETTING("seed", WHOLE, train.seed, 1, 0, 9e15, "seed of all random numbers"),
    SETTING("words", WHOLE, words, 0, 0, 1e9, "number of words to take from the dictionary, about; 0: all"),
    SETTING("lr", REAL, train.lr, 2.5e-3, 0, 10, "learning rate after warm-up; falls to 0 on a cosine"),
    SETTING("dropout", REAL, dropout, 0.03, 0, 0.95, "probability of dropout"),
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

/* ---- the model ---- */
/* LIMIT: largest number of phones of a decoded word */
enum { LIMIT = 32, DECODERS = 2 };

typedef struct {
    weft_embedding *phones;
    weft_rnn *rnn;
    weft_linear *bridge_h, *bridge_c, *combine, *output;
    weft_attention_layer *attention;
    weft_dropout_layer *drop_phones, *drop_output;
    int64_t hidden, layers;
} decoder;
typedef struct model {
    weft *w;
    weft_module *all;
    weft_embedding *letters;
    weft_rnn *encoder;
    weft_dropout_layer *drop_letters;
    decoder decoder[DECODERS];
    int decoders;
    weft_ema *average;                           /* NULL: none */
    weft_parallel *ranks;                        /* they share the evaluation */
    struct model *next;                          /* NULL, or another model that pronounces with this one */
} model;
typedef struct {
    weft_tensor *memory;
    weft_state last;
} encoded;

static decoder decoder_new(weft_module *parent, const char *name, const settings *s, int classes)
{
    weft_module *m = weft_submodule_new(parent, name);
    int64_t h = s->hidden, e = s->embed, layers = s->decoder_layers;
    weft_rnn_opts writes = { e, h, .layers = (int)layers, .dropout = s->dropout };
    weft_linear_opts bridge = { .in = 2 * h, .out = layers * h };
    weft_attention_layer_opts looks = { .kind = WEFT_GENERAL, .dq = h, .dm = 2 * h };
    weft_dropout_opts drop = { .p = s->dropout };
    return (decoder){
        .phones = weft_embedding_new(m, "phones", &(weft_embedding_opts){ .rows = classes, .columns = e }),
        .rnn = weft_lstm_new(m, "rnn", &writes),
        .bridge_h = weft_linear_new(m, "bridge_h", &bridge),
        .bridge_c = weft_linear_new(m, "bridge_c", &bridge),
        .attention = weft_attention_new(m, "attention", &looks),
        .combine = weft_linear_new(m, "combine", &(weft_linear_opts){ .in = 3 * h, .out = h }),
        .output = weft_linear_new(m, "output", &(weft_linear_opts){ .in = h, .out = classes }),
        .drop_phones = weft_dropout_new(m, "drop_phones", &drop),
        .drop_output = weft_dropout_new(m, "drop_output", &drop),
        .hidden = h,
        .layers = layers,
    };
}

static model model_new(weft *w, const settings *s, int classes)
{
    static const char *const names[DECODERS] = { "forward", "backward" };
    weft_module *m = weft_module_new(w, "g2p");
    int64_t e = s->embed;
    weft_rnn_opts reads = { e, s->hidden, .layers = (int)s->layers, .bidirectional = true,
                            .dropout = s->dropout };
    model it = {
        .w = w,
        .all = m,
        .letters = weft_embedding_new(m, "letters", &(weft_embedding_opts){ .rows = LETTERS, .columns = e }),
        .encoder = weft_lstm_new(m, "encoder", &reads),
        .drop_letters = weft_dropout_new(m, "drop_letters", &(weft_dropout_opts){ .p = s->dropout }),
        .decoders = (int)s->decoders,
    };
    for (int k = 0; k < it.decoders; k++)
        it.decoder[k] = decoder_new(m, names[k], s, classes);
    it.average = s->train.average > 0 ? weft_ema_new(m, s->train.average) : NULL;
    it.ranks = weft_parallel_new(m, &(weft_parallel_opts){ .shards = (int)s->train.shards });
    return it;
}

/* Exchanges the weights of all models with their averages. */
static void swap_averages(const model *m)
{
    for (; m; m = m->next)
        weft_ema_swap(m->average);
}

/* ---- a batch ---- */
typedef struct {
    int64_t n;
    int32_t *letters, *read;                     /* tokens end to end; length of each word */
    int32_t *before[DECODERS], *after[DECODERS], *write; /* inputs and targets of the decoders */
    int64_t letter_count, phone_count;
} batch;

static batch batch_new(size_t n, size_t longest_word, size_t most_phones)
{
    batch b = { .letters = memory(n * longest_word, sizeof *b.letters),
                .read = memory(n, sizeof *b.read),
                .write = memory(n, sizeof *b.write) };
    for (int k = 0; k < DECODERS; k++) {
        b.before[k] = memory(n * (most_phones + 1), sizeof(int32_t));
        b.after[k] = memory(n * (most_phones + 1), sizeof(int32_t));
    }
    return b;
}

static void batch_free(batch *b)
{
    free(b->letters);
    free(b->read);
    free(b->write);
    for (int k = 0; k < DECODERS; k++) {
        free(b->before[k]);
        free(b->after[k]);
    }
}

static void batch_empty(batch *b)
{
    b->n = b->letter_count = b->phone_count = 0;
}

/* Adds a word's letters, and its n phones in both orders with a mark before the first and after the last. */
static void batch_add(batch *b, const char *word, const int32_t *phones, int32_t n)
{
    b->read[b->n] = (int32_t)strlen(word);
    b->write[b->n++] = n + 1;
    for (; *word; word++)
        b->letters[b->letter_count++] = *word - 'a';
    for (int k = 0; k < DECODERS; k++) {
        int32_t *before = b->before[k] + b->phone_count, *after = b->after[k] + b->phone_count;
        before[0] = after[n] = MARK;
        for (int32_t i = 0; i < n; i++)
            before[i + 1] = after[i] = phones[k == 0 ? i : n - 1 - i];
    }
    b->phone_count += n + 1;
}

/* Maps the encoder's last states [2 L, n, H] to the decoder's first [D, n, H], from both directions of the
 * top layer. */
static weft_tensor *bridge(const decoder *d, weft_linear *l, weft_tensor *last)
{
    int64_t n = weft_size(last, 1);
    weft_tensor *top = weft_transpose(weft_slice(last, 0, -2, weft_size(last, 0)), 0, 1); /* [n, 2, H] */
    weft_tensor *y = weft_tanh(weft_linear_run(l, weft_reshape(top, WEFT_SHAPE(n, 2 * d->hidden))));
    return weft_transpose(weft_reshape(y, WEFT_SHAPE(n, d->layers, d->hidden)), 0, 1);
}

static weft_state first_state(const decoder *d, const encoded *e)
{
    return (weft_state){ bridge(d, d->bridge_h, e->last.h), bridge(d, d->bridge_c, e->last.c) };
}

static encoded encode(const model *m, const batch *b)
{
    weft_tensor *letters = weft_ragged_ints(m->w, b->letters, &(weft_lengths){ .n = b->n, .len = b->read });
    weft_tensor *x = weft_dropout_run(m->drop_letters, weft_embedding_run(m->letters, letters));
    weft_rnn_out out = weft_rnn_run(m->encoder, x, WEFT_ZERO_STATE);
    return (encoded){ out.y, out.last };
}

/* Returns logits [N, classes] from the decoder's output y [N, H] and its attended memory. */
static weft_tensor *scores(const decoder *d, weft_tensor *y, weft_tensor *seen)
{
    weft_tensor *both = weft_tanh(weft_linear_run(d->combine, weft_concat(WEFT_LIST(y, seen), 1)));
    return weft_linear_run(d->output, weft_dropout_run(d->drop_output, both));
}

/* Returns decoder k's logits [N, classes] of whole pronunciations with teacher forcing, and the targets [N]
 * in *right. map: NULL, or receives the attention's weights, as from weft_attention_run. */
static weft_tensor *logits(const model *m, int k, const encoded *e, const batch *b, weft_tensor **right,
                           weft_tensor **map)
{
    const decoder *d = &m->decoder[k];
    weft_lengths write = { .n = b->n, .len = b->write };
    *right = weft_ragged_ints(m->w, b->after[k], &write);
    weft_tensor *before = weft_ragged_ints(m->w, b->before[k], &write);
    weft_tensor *x = weft_dropout_run(d->drop_phones, weft_embedding_run(d->phones, before));
    weft_tensor *y = weft_rnn_run(d->rnn, x, first_state(d, e)).y;
    return scores(d, y, weft_attention_run(d->attention, y, e->memory, WEFT_ALL_KEYS, map));
}

/* ---- writing phones, one at a time ---- */
typedef struct {
    const decoder *d;
    weft_attention_memory memory;
} writer;

static weft_tensor *next_phones(weft_decode_rows *rows, void *user)
{
    const writer *it = user;
    const decoder *d = it->d;
    weft_rnn_out out = weft_rnn_step(d->rnn, weft_embedding_run(d->phones, rows->tokens), rows->state);
    rows->state = out.last;
    weft_tensor *y = weft_decode_ragged(rows, out.y);
    weft_tensor *seen = weft_attention_query(d->attention, y, it->memory, WEFT_ALL_KEYS, NULL);
    return scores(d, out.y, weft_plain(seen));
}

static weft_decoded write_phones(const model *m, int k, const encoded *e, int64_t n, int64_t limit,
                                 int64_t beam)
{
    const decoder *d = &m->decoder[k];
    weft_decode_opts opts = { .begin = MARK, .end = MARK, .has_begin = true, .has_end = true,
                              .limit = limit, .beams = (int)beam, .best = (int)beam,
                              .length_penalty = beam > 1 };
    writer it = { d, weft_attention_project(d->attention, e->memory) };
    return weft_decode(m->w, n, first_state(d, e), next_phones, &it, &opts);
}

/* ---- choosing among the decoders' proposals ---- */
enum { MODELS = 8 };
typedef struct {
    const int32_t *phones;
    int32_t n;
    double score;
} proposal;
typedef struct {
    int64_t words, most;                         /* most: proposals of a word */
    proposal *of;                                /* [words, most], each once */
    int64_t *count, total;                       /* [words] and their sum */
} proposals;

static void reverse(int32_t *x, int32_t n)
{
    for (int32_t i = 0; i < n / 2; i++) {
        int32_t first = x[i];
        x[i] = x[n - 1 - i];
        x[n - 1 - i] = first;
    }
}

/* Adds the pronunciations that decoder k wrote. Those of the second decoder get the usual order. */
static void propose(proposals *p, const weft_decoded *said, int k)
{
    for (int64_t i = 0; i < p->words * said->best; i++) {
        int64_t word = i / said->best;
        int32_t n = said->len[i], *phones = said->tokens + i * said->limit;
        proposal *list = p->of + word * p->most;
        if (k == 1)
            reverse(phones, n);
        bool known = n < 0;
        for (int64_t j = 0; j < p->count[word] && !known; j++)
            known = list[j].n == n && !memcmp(list[j].phones, phones, (size_t)n * sizeof *phones);
        if (!known) {
            list[p->count[word]++] = (proposal){ phones, n, 0 };
            p->total++;
        }
    }
}

/* Adds the log probabilities under all decoders of a model to the proposals' scores. */
static void add_scores(const model *m, proposals *p, const char *const *words, size_t longest, int64_t limit)
{
    batch b = batch_new((size_t)p->total, longest, (size_t)limit);
    for (int64_t i = 0; i < p->words; i++)
        for (proposal *it = p->of + i * p->most, *end = it + p->count[i]; it < end; it++)
            batch_add(&b, words[i], it->phones, it->n);
    encoded e = encode(m, &b);
    for (int k = 0; k < m->decoders; k++) {
        weft_tensor *right, *guess = logits(m, k, &e, &b, &right, NULL);
        weft_tensor *log_p = weft_gather(weft_log_softmax(guess, 1, NULL), right);
        double *sums = numbers_of(weft_pool(log_p, WEFT_POOL_SUM)), *next = sums;
        for (int64_t i = 0; i < p->words; i++)
            for (int64_t j = 0; j < p->count[i]; j++)
                p->of[i * p->most + j].score += *next++;
        free(sums);
    }
    batch_free(&b);
}

/* Puts the best proposal of each word to its first place in `said`, where it has room. */
static void choose(const proposals *p, weft_decoded *said)
{
    for (int64_t i = 0; i < p->words; i++) {
        const proposal *list = p->of + i * p->most, *best = list;
        for (int64_t j = 1; j < p->count[i]; j++)
            if (list[j].score > best->score)
                best = &list[j];
        memmove(said->tokens + i * said->best * said->limit, best->phones, (size_t)best->n * sizeof(int32_t));
        said->len[i * said->best] = best->n;
    }
}

/* Returns the best phones of n words, each at the first of its `best` places. All decoders of all models
 * propose and choose; beam 1: the first decoder of the first model alone writes the most probable phones. The
 * caller ends the result by weft_decoded_free and weft_clear. */
static weft_decoded pronounce(const model *m, const char *const *words, int64_t n, int64_t limit, int64_t beam)
{
    weft_decoded said[MODELS * DECODERS] = { 0 };
    int count = 0;
    size_t longest = 0;
    for (int64_t i = 0; i < n; i++)
        longest = strlen(words[i]) > longest ? strlen(words[i]) : longest;
    batch b = batch_new((size_t)n, longest, 0);
    for (int64_t i = 0; i < n; i++)
        batch_add(&b, words[i], NULL, 0);
    proposals p = { .words = n, .most = MODELS * DECODERS * beam };
    p.of = memory((size_t)(n * p.most), sizeof *p.of);
    p.count = memory((size_t)n, sizeof *p.count);
    WEFT_NO_GRAD(m->w) WEFT_EVAL(m->w) {
        for (const model *it = m; it && (beam > 1 || !count); it = it->next) {
            encoded e = encode(it, &b);
            for (int k = 0; k < (beam > 1 ? it->decoders : 1); k++) {
                said[count] = write_phones(it, k, &e, n, limit, beam);
                check_context(m->w, "%s", "");
                propose(&p, &said[count++], k);
            }
        }
        for (const model *it = m; it && count > 1; it = it->next)
            add_scores(it, &p, words, longest, limit);
    }
    check_context(m->w, "%s", "");
    if (count > 1)
        choose(&p, said);
    for (int k = 1; k < count; k++)
        weft_decoded_free(&said[k]);
    free(p.of);
    free(p.count);
    batch_free(&b);
    return said[0];
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
    enum { WORDS = 8, LONGEST = 64 };
    const char *labels[WORDS * LONGEST];
    int32_t length[WORDS];
    for (int i = 0, n = 0; i < WORDS; i++) {
        const char *word = r->pair[(2 * i + 1) * r->pairs / (2 * WORDS)]->word;
        for (length[i] = 0; word[length[i]] && length[i] < LONGEST; length[i]++)
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
    *m = model_new(w, &o->set, phones->n);
    check_context(w, "%s", "");
    check_file(weft_load(path, m->all, NULL, NULL, 0));
    return m;
}

/* Loads the model of a file, and links those of --with to it. */
static model *load_models(options *o, const char *path, phone_set *phones)
{
    static const bool none[OPTIONS];
    model *first = load_model(o, o->run.given, path, NULL, phones), *last = first;
    int count = 1;
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
    r->m = model_new(open_context(r->o.run.device, s->train.seed, r->o.run.threads), s, r->d.phones.n);
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
