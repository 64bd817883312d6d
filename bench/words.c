/* words.c - the cases g2p and decode: the model of examples/g2p.c without dropout, on words made by formula.
 *
 * g2p: sixteen updates of 32 words: zero_grad, forward, loss with smoothed labels, backward, clipping, AdamW.
 * The learning rate is 0, so every update has the formula's weights, and loss (summed over the updates) and
 * norm (of the summed gradients) are comparable. Words are sorted by length, so batches have little padding.
 *
 * decode: encodes 10,567 unsorted words, the number in the demo's test part, and decodes them, B at a time,
 * greedily and with 4 beams. The formula's weights never end a word. So the score of the end token is raised
 * at the end of the known pronunciation and lowered before it. `forward` is the whole work, `decode` the part
 * after encoding. loss is the sum of the scores, norm the sum of all tokens.
 *
 * B words at a time, T letters at most, I the embedding's width, H units. MARK begins and ends a word. */
#include <math.h>
#include <stdlib.h>
#include "bench.h"

enum { LETTERS = 26, CLASSES = 40, MARK = 0, UPDATES = 16, WORDS = 10567, LIMIT = 22 };
static const double away = 30;                   /* added to or subtracted from the end's score */

typedef struct bench {
    weft *w;
    weft_module *all;
    weft_embedding *letters, *phones;
    weft_rnn *encoder, *decoder;
    weft_linear *bridge_h, *bridge_c, *combine, *output;
    weft_attention_layer *attention;
    weft_optim *adam;                            /* case g2p */
    weft_attention_memory memory;                /* case decode */
    /* words: lengths of both sides, tokens end to end */
    int64_t n, letter_count, phone_count;
    int32_t *read, *write, *letter, *before, *after;
    int64_t at, letters_read, phones_read;       /* where the next batch begins */
    const int32_t *ends;                         /* `write` of the batch that is being decoded */
    double decode_ms;
    row row;
} bench;

/* ---- the model ---- */
static bench bench_new(row r, const settings *s)
{
    weft *w = weft_open(&s->open);
    weft_module *m = weft_module_new(w, "g2p");
    int64_t H = r.H;
    weft_rnn_opts reads = { .input = r.I, .hidden = H, .layers = 2, .bidirectional = true },
                  writes = { .input = r.I, .hidden = H };
    weft_embedding_opts letters = { .rows = LETTERS, .columns = r.I },
                        phones = { .rows = CLASSES, .columns = r.I };
    weft_linear_opts bridge = { .in = 2 * H, .out = H };
    return (bench){
        .row = r,
        .w = w,
        .all = m,
        .letters = weft_embedding_new(m, "letters", &letters),
        .phones = weft_embedding_new(m, "phones", &phones),
        .encoder = weft_lstm_new(m, "encoder", &reads),
        .decoder = weft_lstm_new(m, "decoder", &writes),
        .bridge_h = weft_linear_new(m, "bridge_h", &bridge),
        .bridge_c = weft_linear_new(m, "bridge_c", &bridge),
        .attention = weft_attention_new(
            m, "attention", &(weft_attention_layer_opts){ .kind = WEFT_GENERAL, .dq = H, .dm = 2 * H }),
        .combine = weft_linear_new(m, "combine", &(weft_linear_opts){ .in = 3 * H, .out = H }),
        .output = weft_linear_new(m, "output", &(weft_linear_opts){ .in = H, .out = CLASSES }),
    };
}

/* [4, n, H], the encoder's last states -> [1, n, H], from both directions of the top layer. */
static weft_tensor *bridge(const bench *b, weft_linear *l, weft_tensor *last)
{
    int64_t n = weft_size(last, 1);
    weft_tensor *top =
        weft_reshape(weft_transpose(weft_slice(last, 0, -2, 4), 0, 1), WEFT_SHAPE(n, 2 * b->row.H));
    return weft_reshape(weft_tanh(weft_linear_run(l, top)), WEFT_SHAPE(1, n, b->row.H));
}

/* Returns the encoder's outputs, and writes the decoder's first state. */
static weft_tensor *read_words(const bench *b, const int32_t *letters, const weft_lengths *lengths,
                               weft_state *first)
{
    weft_rnn_out read =
        weft_rnn_run(b->encoder, weft_embedding_run(b->letters, weft_ragged_ints(b->w, letters, lengths)),
                     WEFT_ZERO_STATE);
    *first = (weft_state){ bridge(b, b->bridge_h, read.last.h), bridge(b, b->bridge_c, read.last.c) };
    return read.y;
}

static weft_tensor *scores_of(const bench *b, weft_tensor *y, weft_tensor *seen)
{
    weft_tensor *both = weft_concat(WEFT_LIST(y, seen), 1);
    return weft_linear_run(b->output, weft_tanh(weft_linear_run(b->combine, both)));
}

/* ---- words ---- */
static int by_length(const void *a, const void *b) { return *(const int32_t *)a - *(const int32_t *)b; }

static void make_words(bench *b, int64_t n, bool sorted)
{
    b->n = n;
    b->write = keep(n, sizeof *b->write);
    b->read = make_lengths("uniform", 1, n, (int32_t)b->row.T, &b->letter_count);
    if (sorted)
        qsort(b->read, (size_t)n, sizeof *b->read, by_length);
    for (int64_t i = 0; i < n; i++) {
        int32_t phones = b->read[i] - (int32_t)(i % 3);
        b->write[i] = phones > 2 ? phones : 2;
        b->phone_count += b->write[i];
    }
    b->letter = keep(b->letter_count, sizeof *b->letter);
    for (int64_t i = 0; i < b->letter_count; i++)
        b->letter[i] = (int32_t)((formula("word", i) + .5) * LETTERS);
}

static void make_phones(bench *b)
{
    b->before = keep(b->phone_count, sizeof *b->before);
    b->after = keep(b->phone_count, sizeof *b->after);
    for (int64_t i = 0, next = 0; i < b->n; i++)
        for (int32_t t = 0; t < b->write[i]; t++, next++) {
            b->before[next] = t ? b->after[next - 1] : MARK;
            b->after[next] =
                t + 1 < b->write[i] ? 1 + (int32_t)((formula("said", next) + .5) * (CLASSES - 1)) : MARK;
        }
}

/* Adds the work of encoding, and of decoding `rows` phones that each attend to the letters of their word. */
static work work_of_reading(const bench *b)
{
    const row *r = &b->row;
    work read = { 0 };
    for (int k = 0; k < 4; k++)                  /* two bidirectional layers */
        add_recurrent(&read, (double)b->letter_count, 4, k < 2 ? r->I : 2 * r->H, r->H, true);
    add_linear(&read, 2 * (double)b->n, 2 * r->H, r->H, true);
    return read;
}

static void add_writing(work *to, const bench *b, double rows)
{
    add_recurrent(to, rows, 4, b->row.I, b->row.H, true);
    add_linear(to, rows, 3 * b->row.H, b->row.H, true);
    add_linear(to, rows, b->row.H, CLASSES, true);
}

static double pairs_of(const bench *b)
{
    double pairs = 0;
    for (int64_t i = 0; i < b->n; i++)
        pairs += (double)b->read[i] * b->write[i];
    return pairs;
}

/* ---- g2p ---- */
/* Returns the loss of the next batch. After the last batch the first follows. */
static weft_tensor *next_loss(void *user)
{
    bench *b = user;
    weft_lengths read = { .n = b->row.B, .len = b->read + b->at },
                 write = { .n = b->row.B, .len = b->write + b->at };
    const int32_t *letter = b->letter + b->letters_read;
    const int32_t *before = b->before + b->phones_read, *after = b->after + b->phones_read;
    for (int64_t i = 0; i < b->row.B; i++) {
        b->letters_read += read.len[i];
        b->phones_read += write.len[i];
    }
    b->at += b->row.B;
    if (b->at == b->n)
        b->at = b->letters_read = b->phones_read = 0;
    weft_state first;
    weft_tensor *memory = read_words(b, letter, &read, &first);
    weft_tensor *embedded = weft_embedding_run(b->phones, weft_ragged_ints(b->w, before, &write));
    weft_tensor *y = weft_rnn_run(b->decoder, embedded, first).y;
    weft_tensor *seen = weft_attention_run(b->attention, y, memory, WEFT_ALL_KEYS, NULL);
    return weft_mean_loss(
        weft_cross_entropy(scores_of(b, y, seen), weft_ragged_ints(b->w, after, &write),
                           &(weft_cross_entropy_opts){ .label_smoothing = (weft_real).05 }));
}

static void updates(void *user, bool train)
{
    bench *b = user;
    for (int k = 0; k < UPDATES; k++) {
        weft_tensor *loss = next_loss(b);
        if (train) {
            weft_backward(loss);
            weft_clip_grad_norm(b->all, 2, 0);
            weft_optim_step(b->adam);            /* it also zeroes the gradients */
        }
        weft_clear(b->w);
    }
}

static bool run_g2p(row r, const settings *s)
{
    bench b = bench_new(r, s);
    weft_adam_opts adam = { 0 };
    adam.lr = 0;
    b.adam = weft_adamw_new(b.all, &adam);
    make_words(&b, UPDATES * r.B, true);
    make_phones(&b);
    b.row.tokens = b.letter_count + b.phone_count;
    b.row.work = work_of_reading(&b);
    add_writing(&b.row.work, &b, (double)b.phone_count);
    add_linear(&b.row.work, (double)b.phone_count, r.H, 2 * r.H, true);    /* query times score weight */
    add_attention(&b.row.work, pairs_of(&b), 2 * r.H, 2 * r.H);
    bool ok = set_weights(b.all, 2 / sqrt((double)r.H)) &&
              measure_training(&(training){ b.w, b.all, next_loss, UPDATES, updates, &b, b.row }, s);
    weft_close(b.w);
    return ok;
}

bool bench_g2p(const settings *s)
{
    row r = { .name = "g2p", .lengths = "pooled", .B = 32, .T = 16, .I = 32, .H = 128, .layers = 2 };
    r.bidirectional = true;
    return measure(run_g2p, r, "packed", s);
}

/* ---- decode ---- */
static weft_tensor *end_moved(const weft_decode_rows *rows, const bench *b)
{
    weft_real by[2048];
    for (int64_t r = 0; r < rows->n; r++)
        by[r] = (weft_real)(rows->step + 1 >= b->ends[rows->sequence[r]] ? away : -away);
    weft_tensor *end = weft_one_hot(weft_ints(b->w, &(int32_t){ MARK }, WEFT_SHAPE(1)), CLASSES);
    return weft_mul(weft_reals(b->w, by, WEFT_SHAPE(rows->n, 1)), end);
}

static weft_tensor *next_phones(weft_decode_rows *rows, void *user)
{
    const bench *b = user;
    weft_rnn_out out = weft_rnn_step(b->decoder, weft_embedding_run(b->phones, rows->tokens), rows->state);
    rows->state = out.last;
    weft_tensor *q = weft_decode_ragged(rows, out.y),
                *seen = weft_plain(weft_attention_query(b->attention, q, b->memory, WEFT_ALL_KEYS, NULL));
    return weft_add(scores_of(b, out.y, seen), end_moved(rows, b));
}

/* Decodes words from `first` on; their letters begin at `letter`. */
static void write_some(bench *b, int64_t first, int64_t n, const int32_t *letter)
{
    weft_lengths lengths = { .n = n, .len = b->read + first };
    weft_decode_opts opts = { .begin = MARK, .end = MARK, .has_end = true, .limit = LIMIT };
    opts.beams = b->row.beams;
    opts.length_penalty = b->row.beams > 1;
    weft_state state;
    weft_tensor *memory = read_words(b, letter, &lengths, &state);
    double start = now_ms();
    b->memory = weft_attention_project(b->attention, memory);
    b->ends = b->write + first;
    weft_decoded decoded = weft_decode(b->w, n, state, next_phones, b, &opts);
    b->decode_ms += now_ms() - start;
    for (int64_t i = 0; i < decoded.n; i++) {
        b->row.loss += decoded.score[i];
        for (int32_t t = 0; t < decoded.len[i]; t++)
            b->row.norm += decoded.tokens[i * LIMIT + t];
    }
    weft_decoded_free(&decoded);
    weft_clear(b->w);
}

static double write_all(bench *b)
{
    const int32_t *letter = b->letter;
    double start = now_ms();
    b->decode_ms = b->row.loss = b->row.norm = 0;
    for (int64_t first = 0, n; first < b->n; first += n) {
        n = b->n - first < b->row.B ? b->n - first : b->row.B;
        write_some(b, first, n, letter);
        for (int64_t i = 0; i < n; i++)
            letter += b->read[first + i];
    }
    return now_ms() - start;
}

static void emit_both(bench *b, const settings *s, times *all, times *alone)
{
    row *r = &b->row;
    work read = work_of_reading(b), write = { 0 };
    add_linear(&write, (double)b->letter_count, 2 * r->H, r->H, true);      /* the keys */
    add_attention(&write, pairs_of(b) * r->beams, r->H, 2 * r->H);
    add_writing(&write, b, (double)b->phone_count * r->beams);
    r->pass = "forward";
    r->work.forward = read.forward + write.forward;
    emit(s, b->w, r, all);
    r->pass = "decode";
    r->work = write;
    emit(s, b->w, r, alone);
}

static bool run_decode(row r, const settings *s)
{
    bench b = bench_new(r, s);
    times all = { 0 }, alone = { 0 };
    settling warm = { 0 };
    weft_set_training(b.w, false);
    weft_set_grad_enabled(b.w, false);
    make_words(&b, s->tiny ? 3 * r.B : WORDS, false);
    bool ok = set_weights(b.all, 4 / sqrt((double)r.H));
    b.row.tokens = b.phone_count;
    while (ok && s->open.device == WEFT_CUDA && !settled(b.w, &warm))
        write_all(&b);
    weft_usage before = weft_usage_of(b.w);
    while (ok && weft_ok(b.w)) {
        double ms = write_all(&b);
        more(&alone, b.decode_ms, s);
        ok = more(&all, ms, s);
    }
    ok = !failed(b.w, "decode");
    if (ok) {
        count_launches(&b.row, b.w, &before, all.n);
        emit_both(&b, s, &all, &alone);
    }
    weft_close(b.w);
    free_kept();
    return ok;
}

bool bench_decode(const settings *s)
{
    row r = { .name = "decode", .lengths = "words", .layout = "packed", .T = 16, .I = 32, .H = 128 };
    bool ok = true;
    r.layers = 2;
    r.bidirectional = true;
    if (s->tiny) {
        r.T = 12;
        r.I = r.H = 16;
    }
    for (r.beams = 1; r.beams <= 4; r.beams += 3)
        for (r.B = s->tiny ? 8 : 256; r.B > 0 && !(s->quick && r.B == 1); r.B = r.B == 1 ? 0 : 1)
            ok &= run_decode(r, s);
    return ok;
}
