/* pronouncer.c - layers, batches, decoding from both ends, and the choice among proposals. */
#include "pronouncer.h"
#include <stdlib.h>
#include <string.h>
#include "weft_op.h"
#include "weft_sequence.h"

/* ---- the model ---- */
static decoder decoder_new(weft_module *parent, const char *name, const model_opts *s, int classes)
{
    weft_module *m = weft_submodule_new(parent, name);
    int64_t h = s->hidden, e = s->embed;
    weft_linear_opts bridge = { .in = 2 * h, .out = h };
    weft_attention_layer_opts looks = { .kind = WEFT_GENERAL, .dq = h, .dm = 2 * h };
    weft_dropout_opts drop = { .p = s->dropout };
    return (decoder){
        .phones = weft_embedding_new(m, "phones", &(weft_embedding_opts){ .rows = classes, .columns = e }),
        .rnn = weft_lstm_new(m, "rnn", &(weft_rnn_opts){ .input = e, .hidden = h }),
        .bridge_h = weft_linear_new(m, "bridge_h", &bridge),
        .bridge_c = weft_linear_new(m, "bridge_c", &bridge),
        .attention = weft_attention_new(m, "attention", &looks),
        .combine = weft_linear_new(m, "combine", &(weft_linear_opts){ .in = 3 * h, .out = h }),
        .output = weft_linear_new(m, "output", &(weft_linear_opts){ .in = h, .out = classes }),
        .drop_phones = weft_dropout_new(m, "drop_phones", &drop),
        .drop_output = weft_dropout_new(m, "drop_output", &drop),
        .hidden = h,
    };
}

model model_new(weft *w, const model_opts *s, const training_settings *train, int classes)
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
        .decoders = s->ctc ? 0 : (int)s->decoders,
    };
    if (s->ctc)
        it.steps =
            weft_linear_new(m, "steps", &(weft_linear_opts){ .in = 2 * s->hidden, .out = 2 * classes });
    for (int k = 0; k < it.decoders; k++)
        it.decoder[k] = decoder_new(m, names[k], s, classes);
    it.average = train->average > 0 ? weft_ema_new(m, train->average) : NULL;
    it.ranks = weft_parallel_new(m, &(weft_parallel_opts){ .shards = (int)train->shards });
    return it;
}

void swap_averages(const model *m)
{
    for (; m; m = m->next)
        weft_ema_swap(m->average);
}

/* ---- a batch ---- */
batch batch_new(size_t n, size_t longest_word, size_t most_phones)
{
    batch b = { .letters = memory(n * longest_word, sizeof *b.letters),
                .read = memory(n, sizeof *b.read),
                .write = memory(n, sizeof *b.write),
                .phones = memory(n * most_phones + 1, sizeof *b.phones),
                .said = memory(n, sizeof *b.said) };
    for (int k = 0; k < DECODERS; k++) {
        b.before[k] = memory(n * (most_phones + 1), sizeof(int32_t));
        b.after[k] = memory(n * (most_phones + 1), sizeof(int32_t));
    }
    return b;
}

void batch_free(batch *b)
{
    free(b->letters);
    free(b->read);
    free(b->write);
    free(b->phones);
    free(b->said);
    for (int k = 0; k < DECODERS; k++) {
        free(b->before[k]);
        free(b->after[k]);
    }
}

void batch_empty(batch *b)
{
    b->n = b->letter_count = b->phone_count = 0;
}

void batch_add(batch *b, const char *word, const int32_t *phones, int32_t n)
{
    const int64_t at = b->phone_count - b->n;    /* phones so far; each word also has a mark */
    for (int32_t i = 0; i < n; i++)
        b->phones[at + i] = phones[i];
    b->read[b->n] = (int32_t)strlen(word);
    b->said[b->n] = n;
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

/* Maps the encoder's last states [2 L, n, H] to the decoder's first [1, n, H], from both directions of the
 * top layer. */
static weft_tensor *bridge(const decoder *d, weft_linear *l, weft_tensor *last)
{
    int64_t n = weft_size(last, 1);
    weft_tensor *top = weft_transpose(weft_slice(last, 0, -2, weft_size(last, 0)), 0, 1); /* [n, 2, H] */
    weft_tensor *y = weft_tanh(weft_linear_run(l, weft_reshape(top, WEFT_SHAPE(n, 2 * d->hidden))));
    return weft_reshape(y, WEFT_SHAPE(1, n, d->hidden));
}

static weft_state first_state(const decoder *d, const encoded *e)
{
    return (weft_state){ bridge(d, d->bridge_h, e->last.h), bridge(d, d->bridge_c, e->last.c) };
}

encoded encode(const model *m, const batch *b)
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

weft_tensor *logits(const model *m, int k, const encoded *e, const batch *b, weft_tensor **right,
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

/* ---- CTC ---- */
/* Returns logits [2 N, classes]: two steps for each letter. */
static weft_tensor *step_logits(const model *m, const encoded *e)
{
    weft_tensor *y = weft_to_layout(weft_linear_run(m->steps, e->memory), WEFT_CONCAT);
    int64_t letters = weft_size(y, 0), classes = weft_size(y, 1) / 2;
    weft_tensor *rows = weft_reshape(weft_plain(y), WEFT_SHAPE(2 * letters, classes));
    return weft_ragged_rows(rows, weft_tokens_repeat(e->memory, 2));
}

weft_tensor *ctc_losses(const model *m, const encoded *e, const batch *b, weft_tensor **weight)
{
    weft_tensor *labels = weft_ragged_ints(m->w, b->phones, &(weft_lengths){ .n = b->n, .len = b->said });
    weft_ctc_opts opts = { .blank = MARK, .skip_infeasible = true };
    return weft_ctc_losses(step_logits(m, e), labels, &opts, weight);
}

static weft_decoded write_steps(const model *m, const encoded *e, int64_t beam)
{
    weft_ctc_beam_opts opts = { .blank = MARK, .beams = (int)beam, .best = (int)beam };
    weft_tensor *y = step_logits(m, e);
    return beam > 1 ? weft_ctc_beam(y, &opts) : weft_ctc_greedy(y, MARK);
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
/* IMPOSSIBLE: log p of phones without a path. JOINT_WEIGHT: that of the n-gram model; each network has 1 */
static const double IMPOSSIBLE = -50, JOINT_WEIGHT = 2;
typedef struct {
    const int32_t *phones;
    int32_t n;
    double score;
} proposal;
typedef struct {
    int64_t words, most, limit;                  /* most: proposals of a word; limit: phones of a proposal */
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

/* Adds a pronunciation of n phones, unless it is there. n < 0: none. */
static void propose(proposals *p, int64_t word, const int32_t *phones, int32_t n)
{
    proposal *list = p->of + word * p->most;
    bool known = n < 0 || n > p->limit;
    for (int64_t j = 0; j < p->count[word] && !known; j++)
        known = list[j].n == n && !memcmp(list[j].phones, phones, (size_t)n * sizeof *phones);
    if (!known) {
        list[p->count[word]++] = (proposal){ phones, n, 0 };
        p->total++;
    }
}

/* Adds the pronunciations that decoder k wrote. Those of the second decoder get the usual order. */
static void propose_decoded(proposals *p, const weft_decoded *said, int k)
{
    for (int64_t i = 0; i < p->words * said->best; i++) {
        int32_t *phones = said->tokens + i * said->limit;
        if (k == 1)
            reverse(phones, said->len[i]);
        propose(p, i / said->best, phones, said->len[i]);
    }
}

/* Adds the `beam` best pronunciations of the n-gram model. store: receives their phones. */
static void propose_joint(proposals *p, const joint *j, const char *const *words, int64_t beam,
                          int32_t *store)
{
    pronunciation best[BEST];
    for (int64_t i = 0; i < p->words; i++) {
        int32_t count = joint_search(j, words[i], NULL, 0, best);
        for (int32_t k = 0; k < count && k < beam; k++) {
            for (int32_t f = 0; f < best[k].n; f++)
                store[f] = best[k].phones[f];
            propose(p, i, store, best[k].n);
            store += best[k].n;
        }
    }
}

/* Adds the log probabilities of the n-gram model, relative to its best pronunciation of the word. */
static void add_joint_scores(const joint *j, proposals *p, const char *const *words)
{
    pronunciation first[BEST], best[BEST];
    for (int64_t i = 0; i < p->words; i++) {
        int32_t known = joint_search(j, words[i], NULL, 0, first);
        for (proposal *it = p->of + i * p->most, *end = it + p->count[i]; known && it < end; it++) {
            int32_t count = joint_search(j, words[i], it->phones, it->n, best);
            it->score += JOINT_WEIGHT * (count ? best->log_p - first->log_p : IMPOSSIBLE);
        }
    }
}

static void add_to_scores(proposals *p, weft_tensor *log_p)
{
    double *number = numbers_of(log_p), *next = number;
    for (int64_t i = 0; i < p->words; i++)
        for (int64_t j = 0; j < p->count[i]; j++)
            p->of[i * p->most + j].score += *next++;
    free(number);
}

/* Adds the log probabilities under all decoders of a model to the proposals' scores. */
static void add_scores(const model *m, proposals *p, const char *const *words, size_t longest)
{
    batch b = batch_new((size_t)p->total, longest, (size_t)p->limit);
    for (int64_t i = 0; i < p->words; i++)
        for (proposal *it = p->of + i * p->most, *end = it + p->count[i]; it < end; it++)
            batch_add(&b, words[i], it->phones, it->n);
    encoded e = encode(m, &b);
    for (int k = 0; k < m->decoders; k++) {
        weft_tensor *right, *guess = logits(m, k, &e, &b, &right, NULL);
        weft_tensor *log_p = weft_gather(weft_log_softmax(guess, 1, NULL), right);
        add_to_scores(p, weft_pool(log_p, WEFT_POOL_SUM));
    }
    if (m->steps) {
        weft_tensor *weight, *losses = ctc_losses(m, &e, &b, &weight);
        weft_tensor *impossible = weft_scalar(m->w, IMPOSSIBLE);
        add_to_scores(p, weft_where(weight, weft_scale(losses, -1), impossible));
    }
    batch_free(&b);
}

/* Copies the best proposal of each word to its first place in `said`. */
static void choose(const proposals *p, weft_decoded *said)
{
    for (int64_t i = 0; i < p->words; i++) {
        const proposal *list = p->of + i * p->most, *best = list;
        if (!p->count[i])
            continue;
        for (int64_t j = 1; j < p->count[i]; j++)
            if (list[j].score > best->score)
                best = &list[j];
        memmove(said->tokens + i * said->best * said->limit, best->phones, (size_t)best->n * sizeof(int32_t));
        said->len[i * said->best] = best->n;
    }
}

weft_decoded pronounce(const model *m, const char *const *words, int64_t n, int64_t limit, int64_t beam)
{
    weft_decoded said[MODELS * DECODERS] = { 0 };
    int count = 0;
    size_t longest = 0;
    for (int64_t i = 0; i < n; i++)
        longest = strlen(words[i]) > longest ? strlen(words[i]) : longest;
    batch b = batch_new((size_t)n, longest, 0);
    for (int64_t i = 0; i < n; i++)
        batch_add(&b, words[i], NULL, 0);
    bool search = beam > 1 && m->joint;
    int32_t *found = memory(search ? (size_t)(n * beam) * 2 * longest + 1 : 1, sizeof *found);
    proposals p = { .words = n, .most = (MODELS * DECODERS + 1) * beam, .limit = limit };
    p.of = memory((size_t)(n * p.most), sizeof *p.of);
    p.count = memory((size_t)n, sizeof *p.count);
    WEFT_NO_GRAD(m->w) WEFT_EVAL(m->w) {
        for (const model *it = m; it && (beam > 1 || !count); it = it->next) {
            encoded e = encode(it, &b);
            for (int k = 0; k < (beam > 1 && !it->steps ? it->decoders : 1); k++) {
                said[count] = it->steps ? write_steps(it, &e, beam) :
                                          write_phones(it, k, &e, n, limit, beam);
                check_context(m->w, "%s", "");
                if (!count && said->best * said->limit < limit)
                    p.limit = said->best * said->limit; /* room for the result */
                propose_decoded(&p, &said[count++], k);
            }
        }
        if (search)
            propose_joint(&p, m->joint, words, beam, found);
        for (const model *it = m; it && (count > 1 || search); it = it->next)
            add_scores(it, &p, words, longest);
    }
    check_context(m->w, "%s", "");
    if (search)
        add_joint_scores(m->joint, &p, words);
    if (count > 1 || search)
        choose(&p, said);
    for (int k = 1; k < count; k++)
        weft_decoded_free(&said[k]);
    free(found);
    free(p.of);
    free(p.count);
    batch_free(&b);
    return said[0];
}
