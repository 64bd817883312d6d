/* test_decode_refused.c - tests decoding with invalid options, faulty models and failed allocations. */
#include "tests/rnn/decode_model.h"

/* ---- errors ---- */
typedef enum {
    GOOD, NO_SCORES, FLAT, MORE_ROWS, OTHER_CLASSES, INTS, NOT_A_NUMBER, ALL_FORBIDDEN,
    STATE_GROWS, STATE_GOES, STATE_COMES, CLEARS, FAILS_ITSELF
} fault;
typedef struct { fault kind; int at, step; } faulty;

static weft_tensor *faulty_step(weft_decode_rows *at, void *user)
{
    faulty *f = user;
    weft *w = weft_context_of(at->tokens);
    weft_state *s = &at->state;
    int64_t rows = at->n;
    fault now = f->step++ == f->at ? f->kind : GOOD;
    weft_real v[64] = { 0 };
    for (int64_t j = rows / 2 * 4; j < rows * 4; j++)
        v[j] = now == NOT_A_NUMBER ? (weft_real)NAN : now == ALL_FORBIDDEN ? (weft_real)-INFINITY : 0;
    switch (now) {
    case NO_SCORES:     return NULL;
    case FLAT:          return weft_zeros(w, WEFT_SHAPE(rows * 4));
    case MORE_ROWS:     return weft_zeros(w, WEFT_SHAPE(rows + 1, 4));
    case OTHER_CLASSES: return weft_zeros(w, WEFT_SHAPE(rows, 5));
    case INTS:          return weft_ints(w, (const int32_t[64]){ 0 }, WEFT_SHAPE(rows, 4));
    case STATE_GROWS:   s->h = weft_zeros(w, WEFT_SHAPE(1, rows, 4)); break;
    case STATE_GOES:    s->h = NULL; break;
    case STATE_COMES:   s->c = weft_zeros(w, WEFT_SHAPE(1, rows, 3)); break;
    case CLEARS:        weft_clear(w); break;
    case FAILS_ITSELF:  weft_fail(w, WEFT_EARG, "the step gave up"); break;
    default:            break;
    }
    return weft_reals(w, v, WEFT_SHAPE(rows, 4));
}

/* It would never end a sequence. */
CPU_TEST(decode_refused, end_outside_the_classes_is_refused)
{
    for (int i = 0; i < WAYS; i++) {
        weft_state first = { weft_zeros(w, WEFT_SHAPE(1, 2, 3)), NULL };
        weft_decoded d = decode_by((way)i, w, 2, first, faulty_step, &(faulty){ GOOD, -1, 0 },
                                   &(weft_decode_opts){ .end = 4, .limit = 5, .beams = 2 });
        cr_assert(d.n == 0 && !d.tokens);
        FAILS(w, WEFT_EARG, "end is 4; expected less than 4 classes");
    }
}

/* Two beams of one sequence are two rows, like two sequences. Exceptions: a fault of the second row, and the
 * first step, in which a sequence has one row. */
CPU_TEST(decode_refused, faulty_step_is_refused)
{
    static const struct { fault kind; int at; weft_status status; const char *text; } bad[] = {
        { NO_SCORES, 1, WEFT_EARG, "step 1: the tensor of scores is NULL" },
        { FLAT, 0, WEFT_ESHAPE, "step 0: the scores are [8]; expected [2, classes] of reals" },
        { MORE_ROWS, 2, WEFT_ESHAPE, "step 2: the scores are [3, 4]" },
        { OTHER_CLASSES, 1, WEFT_ESHAPE, "step 1: the scores are [2, 5]" },
        { INTS, 0, WEFT_ESHAPE, "of ints" },
        { NOT_A_NUMBER, 2, WEFT_ENUMERIC, "step 2, sequence 1: a score is NaN" },
        { ALL_FORBIDDEN, 1, WEFT_ENUMERIC, "step 1, sequence 1: a score is NaN" },
        { STATE_GROWS, 1, WEFT_ESHAPE, "step 1: state h is [1, 2, 4]; expected [1, 2, 3], as before" },
        { STATE_GOES, 1, WEFT_ESHAPE, "step 1: state h is NULL" },
        { STATE_COMES, 1, WEFT_ESHAPE, "step 1: state c is [1, 2, 3]; expected NULL, as before" },
        { CLEARS, 1, WEFT_EARG, "clear: called inside the step function of \"" },
        { FAILS_ITSELF, 3, WEFT_EARG, "the step gave up" },
    };
    for (int i = 0; i < WAYS * COUNT(bad); i++) {
        const fault kind = bad[i / WAYS].kind;
        const way how = (way)(i % WAYS);
        bool of_second = kind == NOT_A_NUMBER || kind == ALL_FORBIDDEN;
        faulty f = { kind, bad[i / WAYS].at, 0 };
        int64_t n = how == BY_BEAMS && !of_second && f.at > 0 ? 1 : 2;
        weft_state first = { weft_zeros(w, WEFT_SHAPE(1, n, 3)), NULL };
        weft_decoded d = decode_by(how, w, n, first, faulty_step, &f,
                                   &(weft_decode_opts){ .end = NEVER, .limit = 5, .beams = 2 });
        cr_assert(d.n == 0 && !d.tokens && !d.len && !d.score && w->recording && w->training,
                  "fault %d, decoder %d: %s", kind, how, weft_error_message(w));
        FAILS(w, bad[i / WAYS].status, bad[i / WAYS].text);
    }
}

/* A step may not end memory of the decoder, but may end its own. */
typedef struct { weft_mark before; int at, step; bool own; } rewinder;

static weft_tensor *rewinding_step(weft_decode_rows *at, void *user)
{
    rewinder *r = user;
    weft *w = weft_context_of(at->tokens);
    int64_t rows = at->n;
    weft_mark here = weft_mark_here(w);
    for (int i = 0; i < 10; i++) {
        weft_full(w, 9, WEFT_SHAPE(1000));
        if (r->own)
            weft_rewind(w, here);
    }
    /* a decoder in a decoder's step has a floor of its own, and gives the outer one back */
    if (r->own && r->step == 0) {
        rewinder inner = { here, -1, 1, true };
        scoped_decoded d = weft_decode(w, 1, WEFT_ZERO_STATE, rewinding_step, &inner,
                                       &(weft_decode_opts){ .end = NEVER, .limit = 3 });
        cr_assert(d.n == 1 && d.len[0] == 3, "%s", weft_error_message(w));
        weft_rewind(w, here);
        OK(w);
        weft_rewind(w, r->before);
    }
    if (r->step++ == r->at)
        weft_rewind(w, r->before);
    return weft_zeros(w, WEFT_SHAPE(rows, 4));
}

TABLE_TEST(decode_refused, step_cannot_rewind_its_decoder)
{
    for (int i = 0; i < 3 * WAYS; i++) {
        rewinder r = { weft_mark_here(w), i / 3, 0, false };
        weft_state first = { weft_zeros(w, WEFT_SHAPE(1, 2, 3)), NULL };
        weft_decode_opts o = { .end = NEVER, .limit = 5, .beams = 2 };
        scoped_decoded d = decode_by((way)(i % 3), w, 2, first, rewinding_step, &r, &o);
        cr_assert(d.n == 0 && !d.tokens, "decoder %d", i % 3);
        FAILS(w, WEFT_EARG, "rewind: the mark is older than the call of the step function of \"");
        r = (rewinder){ r.before, -1, 1, true };
        d = decode_by((way)(i % 3), w, 2, WEFT_ZERO_STATE, rewinding_step, &r, &o);
        cr_assert(d.n == 2 && d.len[1] == 5, "%s", weft_error_message(w));
        weft_mark before = weft_mark_here(w);
        weft_zeros(w, WEFT_SHAPE(4));
        weft_rewind(w, before); /* the floor is gone with the call */
    }
}

CPU_TEST(decode_refused, step_can_run_another_decoder)
{
    rewinder r = { weft_mark_here(w), -1, 0, true };
    weft_decode(w, 2, WEFT_ZERO_STATE, rewinding_step, &r, &(weft_decode_opts){ .end = NEVER, .limit = 5 });
    FAILS(w, WEFT_EARG, "which still runs");
}

static void decoding_fails(weft *w, int64_t n, weft_state first, const weft_decode_opts *o,
                           weft_status status, const char *text)
{
    faulty f = { GOOD, 0, 0 };
    weft_decoded d = weft_decode(w, n, first, faulty_step, &f, o);
    cr_assert(d.n == 0 && f.step == 0, "%s: %d steps", text, f.step);
    FAILS(w, status, text);
}

CPU_TEST(decode_refused, options_are_checked)
{
    static const int32_t two[] = { 1, 1 }, negative[] = { 1, -1 }, one_empty[] = { 2, 0 };
    static const struct { weft_decode_opts o; const char *text; } bad[] = {
        { { .end = 3, .limit = -1 }, "decode: limit: expected 1 .. 2^31 - 1, the maximum number of "
                                     "tokens in a sequence; given: 2 sequences, limit -1" },
        { { .end = 3 }, "limit 0," },
        { { .end = 3, .sample = true }, "limit 0," },
        { { .end = 3, .beams = 2 }, "limit 0," },
        { { .limit = 5 }, "begin and end: both are 0; expected the tokens that start and finish a sequence" },
        { { .end = 3, .limit = 5, .beams = -1 }, "beams: expected 1 or more" },
        { { .end = 3, .limit = 5, .beams = 2, .length_penalty = NAN }, "length_penalty: expected" },
        { { .end = 3, .limit = 5, .beams = 2, .best = 3 }, "best: expected 0 (means 1) .. beams" },
        { { .end = 3, .limit = 5, .sample = true, .temperature = -1 }, "temperature: expected" },
        { { .end = 3, .limit = 5, .sample = true, .top_k = -1 }, "top_k: expected 0" },
        { { .end = 3, .limit = 5, .sample = true, .top_p = 1.5 }, "top_p: expected 0 (means 1, all) .. 1" },
        { { .end = 3, .limit = 5, .prompt_len = two }, "prompt_len: prompt is NULL" },
        { { .end = 3, .limit = 5, .prompt = two }, "prompt: prompt_len is NULL" },
        { { .end = 3, .limit = 5, .prompt = two, .prompt_len = negative },
          "the prompt of sequence 1 has -1 tokens; expected 0 or more" },
        { { .begin = -1, .end = 3, .limit = 5, .prompt = two, .prompt_len = one_empty },
          "begin is -1 and the prompt of sequence 1 has 0 tokens; expected begin" },
        /* options that would change nothing */
        { { .end = NEVER, .limit = 5, .beams = 2, .sample = true }, "beams and sample: both are set" },
        { { .end = NEVER, .limit = 5, .temperature = 1 }, "temperature: sample is false" },
        { { .end = NEVER, .limit = 5, .top_k = 3 }, "top_k: sample is false; expected sample = true" },
        { { .end = NEVER, .limit = 5, .beams = 3, .top_k = 3 }, "top_k: sample is false" },
        { { .end = NEVER, .limit = 5, .top_p = .5 }, "top_p: sample is false; expected sample = true" },
        { { .end = NEVER, .limit = 5, .stream = "my" }, "stream: sample is false; expected sample = true" },
        { { .end = NEVER, .limit = 5, .sample = true, .best = 2 }, "best: beams is below 2" },
        { { .end = NEVER, .limit = 5, .length_penalty = 1 }, "length_penalty: beams" },
        { { .end = NEVER, .limit = 5, .beams = 1, .length_penalty = -1 }, "length_penalty: beams" },
        { { .end = NEVER, .limit = 5, .sample = true, .length_penalty = 1 }, "length_penalty: beams" },
    };
    const weft_decode_opts good = { .end = 3, .limit = 5 }, beams = { .end = 3, .limit = 5, .beams = 2 };
    for (int i = 0; i < COUNT(bad); i++)
        decoding_fails(w, 2, WEFT_ZERO_STATE, &bad[i].o, WEFT_EARG, bad[i].text);
    decoding_fails(w, 2, WEFT_ZERO_STATE, NULL, WEFT_EARG, "decode: opts is NULL");
    decoding_fails(w, -1, WEFT_ZERO_STATE, &good, WEFT_EARG, "decode: n: expected 0 or more");
    weft_decode(w, 2, WEFT_ZERO_STATE, NULL, NULL, &good);
    FAILS(w, WEFT_EARG, "decode: the step function is NULL");
    weft_state stale = { weft_zeros(w, WEFT_SHAPE(1, 2, 3)), NULL };
    weft_clear(w);
    decoding_fails(w, 2, stale, &good, WEFT_EARG, "state h is of a step that has ended");
    decoding_fails(w, 2, (weft_state){ weft_zeros(w, WEFT_SHAPE(1, 5, 2)), NULL }, &good, WEFT_ESHAPE,
                   "step 0: state h is [1, 5, 2]; expected [layers * directions, 2, width] of reals");
    decoding_fails(w, 2, (weft_state){ weft_zeros(w, WEFT_SHAPE(1, 2, 3)), weft_zeros(w, WEFT_SHAPE(2, 3)) },
                   &beams, WEFT_ESHAPE, "decode: step 0: state c is [2, 3]");
    faulty f = { GOOD, 0, 0 };
    cr_assert(weft_decode(NULL, 2, WEFT_ZERO_STATE, faulty_step, &f, &good).n == 0);
    weft_decode_opts prompted = good;
    prompted.prompt = (const int32_t[]){ 1, 4 };
    prompted.prompt_len = (const int32_t[]){ 0, 2 };
    weft_decode(w, 2, WEFT_ZERO_STATE, faulty_step, &f, &prompted);
    FAILS(w, WEFT_EARG, "decode: the prompt of sequence 1 has a token 4; expected 0 .. 3");
}

Test(decode_refused, survives_failure_of_each_allocation)
{
    for (int beams = 1; beams < 4; beams += 2) {
        weft *w = open_on(WEFT_CPU);
        network m = network_new(w, 2);
        weft_decode_opts o = { .end = NEVER, .limit = 40, .beams = beams };
        int failed = 0;
        for (int i = 1;; i += 1 + i / rounds(20, 4000)) {
            bool whole = beams == 3 && i < 8;    /* the allocator itself; then pieces of arenas */
            weft_clear(w);
            fail_in(w, whole ? i : 0);
            fail_take(w, whole ? 0 : i);
            scoped_decoded d = weft_decode(w, SEQUENCES, WEFT_ZERO_STATE, next, &m, &o);
            fail_in(w, 0);
            bool ok = weft_ok(w);
            cr_assert(ok == (d.n == SEQUENCES) && w->recording && w->training);
            if (ok && !whole)
                break;
            failed += !ok;
            cr_assert(ok || strncmp(weft_error_message(w), "weft:", 5), "message without a function: %s",
                      weft_error_message(w));
            if (!ok)
                FAILS(w, WEFT_ENOMEM, "out of memory");
        }
        fail_take(w, 0);
        cr_assert(failed > 10, "%d", failed);
        CLEAN(w);
    }
}
