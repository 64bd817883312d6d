/* test_decode.c - greedy, sampled and beam decoding against a hand-made model whose every sequence can be tried out, and with a real
 * LSTM against a run over what was decoded. */
#include "core/core.h"
#include "tests/check.h"

enum { V = 3, END = 2, BEGIN = 1, LIMIT = 4, HYPOTHESES = 31 };  /* 1 + 2 + 4 + 8 ended ones, 16 that the limit cuts */

/* ---- the model: logits are a function of (sequence, all tokens before), which the state carries as a number ---- */
static void logits_of(int sequence, int prefix, double *out)
{
    for (int j = 0; j < V; j++) {
        uint64_t z = (uint64_t)(sequence * 1000003 + prefix * 101 + j + 1) * 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 31)) * 0xbf58476d1ce4e5b9u;
        out[j] = 4 * (double)((z ^ (z >> 29)) >> 40) / (1 << 24);
    }
    out[END] -= .7;
}

static double log_p(int sequence, int prefix, int token)
{
    double x[V], sum = 0;
    logits_of(sequence, prefix, x);
    for (int j = 0; j < V; j++)
        sum += exp(x[j]);
    return x[token] - log(sum);
}

static int append(int prefix, int token) { return prefix * (V + 1) + token + 1; }

typedef struct { int step; bool searching; } model_user;

/* state h [1, rows, 2]: the sequence, and its prefix; the first token is BEGIN and not part of it. What has ended gets END again, but for beams. */
static weft_tensor *model(weft_tensor *tokens, weft_state *s, int64_t beams, void *user)
{
    weft *w = weft_of(tokens);
    int64_t rows = weft_size(tokens, 0);
    model_user *u = user;
    int32_t last[600];
    weft_real h[600 * 2], scores[600 * V];
    cr_assert(rows <= 600 && beams >= 1);
    weft_read(tokens, last, (size_t)rows * sizeof *last);
    weft_read(s->h, h, (size_t)rows * 2 * sizeof *h);
    for (int64_t r = 0; r < rows; r++) {
        double x[V];
        cr_assert(u->searching || (int)h[2 * r + 1] % (V + 1) != END + 1 || last[r] == END);
        if (u->step > 0)
            h[2 * r + 1] = (weft_real)append((int)h[2 * r + 1], last[r]);
        else
            cr_assert(last[r] == BEGIN);
        cr_assert((int)h[2 * r] == (int)(r / beams), "row %d is given the state of sequence %d", (int)r, (int)h[2 * r]);
        logits_of((int)h[2 * r], (int)h[2 * r + 1], x);
        for (int j = 0; j < V; j++)
            scores[r * V + j] = (weft_real)x[j];
    }
    u->step++;
    s->h = weft_reals(w, h, WEFT_SHAPE(1, rows, 2));
    return weft_reals(w, scores, WEFT_SHAPE(rows, V));
}

static weft_state numbered(weft *w, int64_t n)
{
    weft_real h[1200] = { 0 };
    for (int64_t s = 0; s < n; s++)
        h[2 * s] = (weft_real)s;
    return (weft_state){ weft_reals(w, h, WEFT_SHAPE(1, n, 2)), NULL };
}

typedef weft_decoded decoder(weft *, int64_t, weft_state, weft_decode_step *, void *, const weft_decode_opts *);

static weft_decoded decode(weft *w, decoder *how, int64_t n, const weft_decode_opts *o)
{
    model_user u = { 0, how == weft_decode_beam };
    weft_decoded d = how(w, n, numbered(w, n), model, &u, o);
    OK(w);
    cr_assert(d.n == n && d.limit == o->limit && d.tokens && d.len && d.score);
    return d;
}

static double score_of(int s, const int32_t *tokens, int len, int64_t limit)
{
    double sum = 0;
    int prefix = 0;
    for (int t = 0; t < len; prefix = append(prefix, tokens[t++]))
        sum += log_p(s, prefix, tokens[t]);
    return len < limit ? sum + log_p(s, prefix, END) : sum;
}

static void scores_are_true(const weft_decoded *d)
{
    for (int s = 0; s < d->n; s++) {
        double want = score_of(s, d->tokens + s * d->limit, d->len[s], d->limit);
        cr_assert(fabs(d->score[s] - want) < TOL(1e-12, 1e-5), "sequence %d: %g, not %g", s, d->score[s], want);
    }
}

static bool same(const weft_decoded *a, const weft_decoded *b)
{
    bool equal = a->n == b->n && a->limit == b->limit && !memcmp(a->len, b->len, (size_t)a->n * sizeof *a->len);
    for (int64_t s = 0; equal && s < a->n; s++)
        equal = fabs(a->score[s] - b->score[s]) < 1e-9 && !memcmp(a->tokens + s * a->limit, b->tokens + s * b->limit, (size_t)a->len[s] * sizeof *a->tokens);
    return equal;
}

/* ---- greedy ---- */
Test(decode, greedy_takes_the_largest)
{
    FOR_DEVICES(w) {
        weft_decoded d = decode(w, weft_decode_greedy, 40, &(weft_decode_opts){ .begin = BEGIN, .end = END, .limit = LIMIT });
        int ended = 0;
        for (int s = 0; s < 40; s++) {
            int prefix = 0, t = 0;
            for (; t < LIMIT; t++) {
                double x[V];
                logits_of(s, prefix, x);
                int best = x[1] > x[0] ? 1 : 0;
                best = x[2] > x[best] ? 2 : best;
                if (best == END)
                    break;
                cr_assert(t < d.len[s] && d.tokens[s * LIMIT + t] == best);
                prefix = append(prefix, best);
            }
            cr_assert_eq(d.len[s], t);
            ended += t < LIMIT;
        }
        cr_assert(ended > 3 && ended < 40);
        scores_are_true(&d);
        weft_decoded_end(&d);
        cr_assert(!d.tokens && !d.n);
    }
}

/* ---- beams ---- */
typedef struct { int32_t tokens[LIMIT]; int len; double worth; } best_of;

static void try_all(int s, int32_t *tokens, int prefix, double score, int len, double penalty, best_of *best)
{
    double ended = score + log_p(s, prefix, END), worth = len == LIMIT ? score / pow(LIMIT, penalty) : ended / pow(len + 1, penalty);
    if (worth > best->worth) {
        *best = (best_of){ .len = len, .worth = worth };
        memcpy(best->tokens, tokens, (size_t)len * sizeof *tokens);
    }
    for (int j = 0; j < V && len < LIMIT; j++)
        if (j != END) {
            tokens[len] = j;
            try_all(s, tokens, append(prefix, j), score + log_p(s, prefix, j), len + 1, penalty, best);
        }
}

static best_of truly_best(int s, double penalty)
{
    int32_t tokens[LIMIT];
    best_of best = { .worth = -INFINITY };
    try_all(s, tokens, 0, 0, 0, penalty, &best);
    return best;
}

static double worth_of(const weft_decoded *d, int s, double penalty)
{
    return d->score[s] / pow(d->len[s] < LIMIT ? d->len[s] + 1 : LIMIT, penalty);
}

Test(decode, enough_beams_find_the_best)
{
    static const double penalties[] = { 0, .6, 1, 2, -.5 };
    FOR_DEVICES(w)
        for (int i = 0; i < COUNT(penalties); i++) {
            weft_decode_opts o = { .begin = BEGIN, .end = END, .limit = LIMIT, .beams = HYPOTHESES, .length_penalty = penalties[i] };
            weft_decoded d = decode(w, weft_decode_beam, 12, &o);
            for (int s = 0; s < 12; s++) {
                best_of best = truly_best(s, penalties[i]);
                cr_assert(d.len[s] == best.len && !memcmp(d.tokens + s * LIMIT, best.tokens, (size_t)best.len * sizeof *best.tokens),
                          "sequence %d, penalty %g: worth %g, the best is %g", s, penalties[i], worth_of(&d, s, penalties[i]), best.worth);
            }
            scores_are_true(&d);
            weft_decoded_end(&d);
            weft_clear(w);
        }
}

Test(decode, few_beams_are_sound)
{
    weft *w = open_on(WEFT_CPU);
    int better = 0, worse = 0;
    weft_decode_opts o = { .begin = BEGIN, .end = END, .limit = LIMIT };
    weft_decoded greedy = decode(w, weft_decode_greedy, 100, &o);
    for (o.beams = 1; o.beams <= 5; o.beams++) {
        weft_decoded d = decode(w, weft_decode_beam, 100, &o);
        scores_are_true(&d);
        cr_assert(o.beams > 1 || same(&d, &greedy));
        for (int s = 0; s < 100; s++) {
            cr_assert(d.score[s] <= truly_best(s, 0).worth + 1e-5);
            better += d.score[s] > greedy.score[s] + 1e-6, worse += d.score[s] < greedy.score[s] - 1e-6;
        }
        weft_decoded_end(&d);
    }
    cr_assert(better > 50 && worse < better / 10, "%d better, %d worse than greedy", better, worse);
    weft_decoded_end(&greedy);
    CLEAN(w);
}

/* ---- sampling ---- */
Test(decode, samples_repeat_by_seed)
{
    weft_decode_opts o = { .begin = BEGIN, .end = END, .limit = LIMIT };
    weft *a = open_with((weft_opts){ .device = WEFT_REF, .seed = 5 }), *b = open_with((weft_opts){ .device = WEFT_CPU, .seed = 5 }), *c = open_with((weft_opts){ .seed = 6 });
    weft_decoded in_a = decode(a, weft_decode_sampled, 50, &o), in_b = decode(b, weft_decode_sampled, 50, &o), in_c = decode(c, weft_decode_sampled, 50, &o);
    weft_decoded more = decode(a, weft_decode_sampled, 50, &o);
    o.stream = "other";
    weft_decoded other = decode(b, weft_decode_sampled, 50, &o);
    cr_assert(same(&in_a, &in_b) || sizeof(weft_real) == 4);      /* floats of two tables may differ by a rounding */
    cr_assert(!same(&in_a, &in_c) && !same(&in_a, &more) && !same(&in_b, &other));
    scores_are_true(&in_a), scores_are_true(&more), scores_are_true(&other);
    weft_decoded *all[] = { &in_a, &in_b, &in_c, &more, &other };
    for (int i = 0; i < COUNT(all); i++)
        weft_decoded_end(all[i]);
    CLEAN(a), CLEAN(b), CLEAN(c);
}

Test(decode, one_candidate_or_no_heat_is_greedy)
{
    weft *w = open_on(WEFT_CPU);
    weft_decode_opts o = { .begin = BEGIN, .end = END, .limit = LIMIT }, cold = o, one = o;
    cold.temperature = 1e-4, one.top_k = 1;
    weft_decoded greedy = decode(w, weft_decode_greedy, 60, &o), a = decode(w, weft_decode_sampled, 60, &cold), b = decode(w, weft_decode_sampled, 60, &one);
    cr_assert(same(&greedy, &a) && same(&greedy, &b));
    weft_decoded_end(&greedy), weft_decoded_end(&a), weft_decoded_end(&b);
    CLEAN(w);
}

static weft_tensor *four_classes(weft_tensor *tokens, weft_state *s, int64_t beams, void *user)
{
    weft *w = weft_of(tokens);
    (void)s, (void)beams, (void)user;
    weft_tensor *row = weft_reals(w, (const weft_real[]){ 1, 0, 2, (weft_real)-INFINITY }, WEFT_SHAPE(1, 4));
    return weft_repeat(row, 0, weft_size(tokens, 0));
}

static void frequencies(weft *w, double temperature, int64_t top_k, const double want[4])
{
    enum { N = 20000 };
    int count[4] = { 0 };
    weft_decoded d = weft_decode_sampled(w, N, WEFT_ZERO_STATE, four_classes, NULL, &(weft_decode_opts){ .end = -1, .limit = 1, .temperature = temperature, .top_k = top_k });
    OK(w);
    for (int s = 0; s < N; s++)
        count[d.tokens[s]]++;
    for (int j = 0; j < 4; j++)
        cr_assert(fabs((double)count[j] / N - want[j]) < .015 && (want[j] > 0 || !count[j]), "class %d: %d of %d, %g is wanted", j, count[j], N, want[j]);
    weft_decoded_end(&d);
}

Test(decode, samples_have_the_models_frequencies)
{
    weft *w = open_on(WEFT_CPU);
    double e = exp(1), s = 1 + e + e * e, r = sqrt(e), q = 1 + r + e;
    frequencies(w, 0, 0, (const double[4]){ e / s, 1 / s, e * e / s, 0 });
    frequencies(w, 2, 0, (const double[4]){ r / q, 1 / q, e / q, 0 });
    frequencies(w, 1, 2, (const double[4]){ 1 / (1 + e), 0, e / (1 + e), 0 });
    CLEAN(w);
}

/* ---- a real model: what was decoded, run through the layer at once, gives the same scores ---- */
typedef struct { weft_embedding *embed; weft_rnn *rnn; weft_linear *out; weft_tensor *bias; int64_t calls, held; } network;
enum { CLASSES = 11, SEQUENCES = 4, LONG = 12, NEVER = -1 };

static weft_tensor *next(weft_tensor *tokens, weft_state *s, int64_t beams, void *user)
{
    network *m = user;
    weft *w = weft_of(tokens);
    (void)beams;
    cr_assert(!w->recording && !w->training);
    weft_rnn_out o = weft_rnn_step(m->rnn, weft_embed(m->embed, tokens), *s);
    *s = o.last;
    if (m->calls++ == 2)
        m->held = weft_usage_of(w).host_bytes;
    return weft_scale(weft_linear_run(m->out, o.y), 3);
}

static network network_new(weft *w, int cell)
{
    static int number;
    char name[24];
    snprintf(name, sizeof name, "m%d", number++);
    weft_module *m = weft_module_new(w, name);
    weft_rnn_opts o = { .input = 5, .hidden = 8, .layers = 2 };
    return (network){ .embed = weft_embedding_new(m, "e", CLASSES, 5), .out = weft_linear_new(m, "o", 8, CLASSES),
                      .rnn = cell == 0 ? weft_rnn_new(m, "r", &o) : cell == 1 ? weft_gru_new(m, "r", &o) : weft_lstm_new(m, "r", &o) };
}

static weft_state some_state(weft *w, int cell)
{
    weft_real v[2 * SEQUENCES * 8];
    dice_seed(3);
    weft_tensor *h = weft_reals(w, dice_fill(v, COUNT(v), -1, 1), WEFT_SHAPE(2, SEQUENCES, 8));
    return (weft_state){ h, cell == 2 ? weft_reals(w, dice_fill(v, COUNT(v), -1, 1), WEFT_SHAPE(2, SEQUENCES, 8)) : NULL };
}

static void scores_are_those_of_a_run(weft *w, network *m, weft_state first, const weft_decoded *d, int end)
{
    int32_t in[SEQUENCES * (LONG + 1)], out[SEQUENCES * (LONG + 1)], len[SEQUENCES], N = 0;
    for (int s = 0; s < SEQUENCES; s++) {
        bool ended = d->len[s] < d->limit;
        len[s] = d->len[s] + ended;
        for (int t = 0; t < len[s]; t++, N++) {
            in[N] = t ? d->tokens[s * d->limit + t - 1] : 0;
            out[N] = t < d->len[s] ? d->tokens[s * d->limit + t] : end;
        }
    }
    weft_lengths l = { SEQUENCES, len, NULL };
    weft_rnn_out o = weft_rnn_run(m->rnn, weft_embed(m->embed, weft_ragged_ints(w, in, &l)), first);
    weft_tensor *p = weft_log_softmax(weft_scale(weft_linear_run(m->out, o.y), 3), 1);
    const weft_real *v = numbers(weft_plain(weft_pick(p, weft_ragged_ints(w, out, &l))));
    OK(w);
    for (int s = 0, at = 0; s < SEQUENCES; s++) {
        double sum = 0;
        for (int t = 0; t < len[s]; t++)
            sum += (double)v[at++];
        cr_assert(fabs(sum - d->score[s]) < TOL(1e-11, 1e-4), "sequence %d: %g, a run gives %g", s, d->score[s], sum);
    }
}

Test(decode, a_run_over_the_decoded_gives_its_scores)
{
    static decoder *const decoders[] = { weft_decode_greedy, weft_decode_sampled, weft_decode_beam };
    FOR_DEVICES(w)
        for (int i = 0; i < 9; i++) {
            network m = network_new(w, i % 3);
            weft_state first = some_state(w, i % 3);
            weft_tensor *before = weft_exp(first.h);
            weft_mark here = weft_here(w);
            int end = i % 2 ? 7 : NEVER;
            weft_decoded d = decoders[i / 3](w, SEQUENCES, first, next, &m, &(weft_decode_opts){ .end = end, .limit = LONG, .beams = 3, .length_penalty = .5 });
            OK(w);
            cr_assert(w->recording && w->training && !memcmp(here.at, weft_here(w).at, sizeof here.at) && isfinite((double)numbers(before)[0]));
            scores_are_those_of_a_run(w, &m, first, &d, end);
            weft_decoded_end(&d);
            weft_clear(w);
        }
}

Test(decode, thousands_of_steps_take_no_memory)
{
    static decoder *const decoders[] = { weft_decode_greedy, weft_decode_sampled, weft_decode_beam };
    for (int i = 0; i < COUNT(decoders); i++) {
        weft *w = open_on(WEFT_CPU);
        network m = network_new(w, 2);
        weft_decoded d = decoders[i](w, SEQUENCES, WEFT_ZERO_STATE, next, &m, &(weft_decode_opts){ .end = NEVER, .limit = 2000, .beams = 2 });
        OK(w);
        int64_t trellis = decoders[i] == weft_decode_beam ? 2 * 2048 * 2 * SEQUENCES * (int64_t)sizeof(int32_t) : 0;
        cr_assert(m.calls == 2000 && d.len[0] == 2000);
        cr_assert(weft_usage_of(w).host_bytes - m.held <= trellis, "%lld bytes more", (long long)(weft_usage_of(w).host_bytes - m.held));
        weft_decoded_end(&d);
        CLEAN(w);
    }
}

/* ---- ties ---- */
static weft_tensor *all_equal(weft_tensor *tokens, weft_state *s, int64_t beams, void *user)
{
    (void)s, (void)beams, (void)user;
    return weft_zeros(weft_of(tokens), WEFT_SHAPE(weft_size(tokens, 0), 4));
}

Test(decode, the_first_of_equals_is_taken)
{
    static decoder *const decoders[] = { weft_decode_greedy, weft_decode_beam, weft_decode_sampled };
    weft *w = open_on(WEFT_CPU);
    for (int i = 0; i < COUNT(decoders); i++) {
        weft_decoded d = decoders[i](w, 1, WEFT_ZERO_STATE, all_equal, NULL, &(weft_decode_opts){ .end = NEVER, .limit = 6, .beams = 3, .top_k = 1 });
        OK(w);
        for (int t = 0; t < 6; t++)
            cr_assert_eq(d.tokens[t], 0);
        weft_decoded_end(&d);
    }
    CLEAN(w);
}

/* ---- empty cases ---- */
Test(decode, nothing_to_decode)
{
    static decoder *const decoders[] = { weft_decode_greedy, weft_decode_sampled, weft_decode_beam };
    weft *w = open_on(WEFT_CPU);
    for (int i = 0; i < COUNT(decoders); i++) {
        weft_decoded none = decode(w, decoders[i], 0, &(weft_decode_opts){ .begin = BEGIN, .end = END, .limit = 3, .beams = 2 });
        weft_decoded cut = decode(w, decoders[i], 2, &(weft_decode_opts){ .begin = BEGIN, .end = END, .limit = 0, .beams = 2, .length_penalty = 1 });
        cr_assert(cut.len[0] == 0 && cut.score[1] == 0);
        weft_decoded_end(&none), weft_decoded_end(&cut);
    }
    weft_decoded_end(NULL);
    CLEAN(w);
}

static weft_tensor *only_end(weft_tensor *tokens, weft_state *s, int64_t beams, void *user)
{
    (void)s, (void)beams, (void)user;
    return weft_zeros(weft_of(tokens), WEFT_SHAPE(weft_size(tokens, 0), 1));
}

Test(decode, beams_without_continuations)
{
    weft *w = open_on(WEFT_CPU);
    weft_decoded d = weft_decode_beam(w, 2, WEFT_ZERO_STATE, only_end, NULL, &(weft_decode_opts){ .end = 0, .limit = 3, .beams = 4 });
    OK(w);
    cr_assert(d.len[0] == 0 && d.len[1] == 0 && d.score[0] == 0);
    weft_decoded_end(&d);
    CLEAN(w);
}

/* ---- errors ---- */
typedef enum { GOOD, NO_SCORES, FLAT, MORE_ROWS, OTHER_CLASSES, INTS, NOT_A_NUMBER, ALL_FORBIDDEN, STATE_GROWS, STATE_GOES, STATE_COMES, CLEARS, FAILS_ITSELF } fault;
typedef struct { fault kind; int at, step; } faulty;

static weft_tensor *faulty_step(weft_tensor *tokens, weft_state *s, int64_t beams, void *user)
{
    faulty *f = user;
    weft *w = weft_of(tokens);
    int64_t rows = weft_size(tokens, 0);
    fault now = f->step++ == f->at ? f->kind : GOOD;
    (void)beams;
    weft_real v[64] = { 0 };
    for (int j = 0; j < 4; j++)
        v[4 + j] = now == NOT_A_NUMBER ? (weft_real)NAN : now == ALL_FORBIDDEN ? (weft_real)-INFINITY : 0;
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

static void fails(fault kind, int at, weft_status status, const char *text)
{
    static decoder *const decoders[] = { weft_decode_greedy, weft_decode_sampled, weft_decode_beam };
    weft *w = open_on(WEFT_CPU);
    for (int i = 0; i < COUNT(decoders); i++) {
        faulty f = { kind, at, 0 };
        weft_state first = { weft_zeros(w, WEFT_SHAPE(1, 2, 3)), NULL };
        weft_decoded d = decoders[i](w, 2, first, faulty_step, &f, &(weft_decode_opts){ .end = NEVER, .limit = 5, .beams = 1 });
        cr_assert(d.n == 0 && !d.tokens && !d.len && !d.score && w->recording && w->training, "fault %d, decoder %d: %s", kind, i, weft_message(w));
        FAILS(w, status, text);
    }
    CLEAN(w);
}

Test(decode, a_faulty_step_is_an_error)
{
    fails(NO_SCORES, 1, WEFT_EARG, "step 1: the scores' tensor is NULL");
    fails(FLAT, 0, WEFT_ESHAPE, "step 0: the scores are [8]; [2, classes] of reals are wanted");
    fails(MORE_ROWS, 2, WEFT_ESHAPE, "step 2: the scores are [3, 4]");
    fails(OTHER_CLASSES, 1, WEFT_ESHAPE, "step 1: the scores are [2, 5]");
    fails(INTS, 0, WEFT_ESHAPE, "of ints");
    fails(NOT_A_NUMBER, 2, WEFT_ENUMERIC, "step 2, sequence 1: the scores are not numbers");
    fails(ALL_FORBIDDEN, 1, WEFT_ENUMERIC, "step 1, sequence 1: the scores are not numbers");
    fails(STATE_GROWS, 1, WEFT_ESHAPE, "step 1: state h is [1, 2, 4], before it was [1, 2, 3]");
    fails(STATE_GOES, 1, WEFT_ESHAPE, "step 1: state h is NULL");
    fails(STATE_COMES, 1, WEFT_ESHAPE, "step 1: state c is [1, 2, 3], before it was NULL");
    fails(CLEARS, 1, WEFT_EARG, "step 1: the scores' tensor came after the end of the step");
    fails(FAILS_ITSELF, 3, WEFT_EARG, "the step gave up");
}

Test(decode, options_are_checked)
{
    weft *w = open_on(WEFT_CPU);
    faulty f = { GOOD, 0, 0 };
    weft_decode_opts good = { .end = 3, .limit = 5 }, o;
    weft_decode_greedy(w, 2, WEFT_ZERO_STATE, NULL, NULL, &good);
    FAILS(w, WEFT_EARG, "decode_greedy: a step function is wanted");
    weft_decode_beam(w, 2, WEFT_ZERO_STATE, faulty_step, &f, NULL);
    FAILS(w, WEFT_EARG, "decode_beam: options are wanted");
    weft_decode_sampled(w, -1, WEFT_ZERO_STATE, faulty_step, &f, &good);
    FAILS(w, WEFT_EARG, "decode_sampled: 0 or more sequences");
    weft_decode_greedy(w, 2, WEFT_ZERO_STATE, faulty_step, &f, (o = good, o.limit = -1, &o));
    FAILS(w, WEFT_EARG, "a limit of 0 or more");
    weft_decode_beam(w, 2, WEFT_ZERO_STATE, faulty_step, &f, (o = good, o.beams = -1, &o));
    FAILS(w, WEFT_EARG, "1 or more beams");
    weft_decode_beam(w, 2, WEFT_ZERO_STATE, faulty_step, &f, (o = good, o.length_penalty = NAN, &o));
    FAILS(w, WEFT_EARG, "a finite length_penalty");
    weft_decode_sampled(w, 2, WEFT_ZERO_STATE, faulty_step, &f, (o = good, o.temperature = -1, &o));
    FAILS(w, WEFT_EARG, "a temperature of 0");
    weft_decode_sampled(w, 2, WEFT_ZERO_STATE, faulty_step, &f, (o = good, o.top_k = -1, &o));
    FAILS(w, WEFT_EARG, "a top_k of 0");
    weft_state stale = { weft_zeros(w, WEFT_SHAPE(1, 2, 3)), NULL };
    weft_clear(w);
    weft_decode_greedy(w, 2, stale, faulty_step, &f, &good);
    FAILS(w, WEFT_EARG, "state h is of a step that has ended");
    cr_assert(weft_decode_greedy(NULL, 2, WEFT_ZERO_STATE, faulty_step, &f, &good).n == 0);
    CLEAN(w);
}

Test(decode, every_piece_of_memory_may_fail)
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
            w->fail_in = whole ? 0 : i;
            weft_decoded d = weft_decode_beam(w, SEQUENCES, WEFT_ZERO_STATE, next, &m, &o);
            fail_in(w, 0);
            bool ok = weft_ok(w);
            cr_assert(ok == (d.n == SEQUENCES) && w->recording && w->training);
            weft_decoded_end(&d);
            if (ok && !whole)
                break;
            failed += !ok;
            if (!ok)
                FAILS(w, WEFT_ENOMEM, "out of memory");
        }
        w->fail_in = 0;
        cr_assert(failed > 20, "%d", failed);
        CLEAN(w);
    }
}
