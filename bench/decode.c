/* decode.c - the case decode: as many words as examples/g2p.c's test has, by formula, are read and written
 * out by its model, greedily and by 4 beams, B words at a time, as they come.
 *
 * Weights by formula would never end a word, so the end's score is lifted at the step at which a word's
 * pronunciation is over, and lowered before. `forward` is all of it, `decode` what comes after the words are
 * read. loss is the sum of the scores, norm the sum of all tokens: those of any other way to decode the
 * same. */
#include <math.h>
#include <stdlib.h>
#include "speller.h"

enum { WORDS = 10567, LIMIT = 22 };
static const double away = 30;                   /* how far the end's score is moved */

typedef struct bench {
    speller of;
    words words;
    weft_attention_memory memory;
    const int32_t *write;                        /* of the batch that is being written */
    double decode_ms;
    row row;
} bench;

static weft_tensor *end_moved(const weft_decode_rows *rows, const bench *b)
{
    weft *w = b->of.w;
    weft_real by[2048];
    for (int64_t r = 0; r < rows->n; r++)
        by[r] = (weft_real)(rows->step + 1 >= b->write[rows->sequence[r]] ? away : -away);
    weft_tensor *end = weft_one_hot(weft_ints(w, &(int32_t){ MARK }, WEFT_SHAPE(1)), CLASSES);
    return weft_mul(weft_reals(w, by, WEFT_SHAPE(rows->n, 1)), end);
}

static weft_tensor *next_phones(weft_decode_rows *rows, void *user)
{
    const bench *b = user;
    const speller *s = &b->of;
    weft_rnn_out out = weft_rnn_step(s->decoder, weft_embedding_run(s->phones, rows->tokens), rows->state);
    rows->state = out.last;
    weft_tensor *q = weft_decode_ragged(rows, out.y),
                *seen = weft_plain(weft_attention_query(s->attention, q, b->memory, WEFT_ALL_KEYS, NULL));
    return weft_add(speller_scores(s, out.y, seen), end_moved(rows, b));
}

/* Some words from `first` on, whose letters begin at `letter`. */
static void write_some(bench *b, int64_t first, int64_t n, const int32_t *letter)
{
    weft *w = b->of.w;
    weft_lengths lengths = { .n = n, .len = b->words.read + first };
    weft_decode_opts how = { .begin = MARK,
                             .end = MARK,
                             .has_end = true,
                             .limit = LIMIT,
                             .beams = b->row.beams,
                             .length_penalty = b->row.beams > 1 };
    spelled read = speller_read(&b->of, letter, &lengths);
    double start = now_ms();
    b->memory = weft_attention_project(b->of.attention, read.memory);
    b->write = b->words.write + first;
    weft_decoded said = weft_decode(w, n, read.first, next_phones, b, &how);
    b->decode_ms += now_ms() - start;
    for (int64_t i = 0; i < said.n; i++) {
        b->row.loss += said.score[i];
        for (int32_t t = 0; t < said.len[i]; t++)
            b->row.norm += said.tokens[i * LIMIT + t];
    }
    weft_decoded_free(&said);
    weft_clear(w);
}

static double write_all(bench *b)
{
    const int32_t *letter = b->words.letter;
    double start = now_ms();
    b->decode_ms = b->row.loss = b->row.norm = 0;
    for (int64_t first = 0, n; first < b->words.n; first += n) {
        n = b->words.n - first < b->row.B ? b->words.n - first : b->row.B;
        write_some(b, first, n, letter);
        for (int64_t i = 0; i < n; i++)
            letter += b->words.read[first + i];
    }
    return now_ms() - start;
}

/* What reading takes, and writing: a row for each beam. */
static work work_of_reading(const bench *b)
{
    const row *r = &b->row;
    work read = { 0 };
    for (int k = 0; k < 4; k++)                  /* two layers of two directions */
        add_recurrent(&read, (double)b->words.letters, 4, k < 2 ? r->I : 2 * r->H, r->H, true);
    add_linear(&read, 2 * (double)b->words.n, 2 * r->H, r->H, true);
    return read;
}
static work work_of_writing(const bench *b)
{
    const row *r = &b->row;
    double rows = (double)b->words.phones * r->beams, pairs = 0;
    work write = { 0 };
    for (int64_t i = 0; i < b->words.n; i++)
        pairs += (double)b->words.read[i] * b->words.write[i] * r->beams;
    add_linear(&write, (double)b->words.letters, 2 * r->H, r->H, true);      /* the keys */
    add_recurrent(&write, rows, 4, r->I, r->H, true);
    add_attention(&write, pairs, r->H, 2 * r->H);
    add_linear(&write, rows, 3 * r->H, r->H, true);
    add_linear(&write, rows, r->H, CLASSES, true);
    return write;
}
static void emit_both(bench *b, const settings *s, times *all, times *alone)
{
    weft *w = b->of.w;
    work read = work_of_reading(b), write = work_of_writing(b);
    b->row.pass = "forward", b->row.work.forward = read.forward + write.forward;
    emit(s, w, &b->row, all);
    b->row.pass = "decode", b->row.work = write;
    emit(s, w, &b->row, alone);
}

static bool run(row r, const settings *s)
{
    weft *w = weft_open(&s->open);
    bench b = { .row = r, .of = speller_new(w, r.I, r.H) };
    times all = { 0 }, alone = { 0 };
    settling warm = { 0 };
    weft_set_training(w, false), weft_set_grad_enabled(w, false);
    bool good = words_new(&b.words, s->tiny ? 3 * r.B : WORDS, (int32_t)r.T, false) &&
                set_weights(b.of.all, 4 / sqrt((double)r.H));
    b.row.tokens = b.words.phones;
    while (good && s->open.device == WEFT_CUDA && !settled(w, &warm))
        write_all(&b);
    weft_usage before = weft_usage_of(w);
    if (good)
        do {
            double ms = write_all(&b);
            more(&alone, b.decode_ms, s), good = more(&all, ms, s);
        } while (good && weft_ok(w));
    good = !failed(w, "decode");
    if (good) {
        count_launches(&b.row, w, &before, all.n);
        emit_both(&b, s, &all, &alone);
    }
    weft_close(w);
    words_free(&b.words);
    return good;
}

bool bench_decode(const settings *s)
{
    bool good = true;
    for (int beams = 1; beams <= 4; beams += 3)
        for (int64_t B = s->tiny ? 8 : 256; B > 0 && !(s->quick && B == 1); B = B == 1 ? 0 : 1)
            good &= run((row){ .name = "decode",
                               .lengths = "words",
                               .layout = "packed",
                               .B = B,
                               .T = s->tiny ? 12 : 16,
                               .I = s->tiny ? 16 : 32,
                               .H = s->tiny ? 16 : 128,
                               .layers = 2,
                               .bidirectional = true,
                               .beams = beams },
                        s);
    return good;
}
