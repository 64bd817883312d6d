/* test_beam.c - tests beam search against a direct implementation of its definition, step by step and without
 * pruning before the end: every returned hypothesis, for several beams, penalties and prompts. */
#include "tests/rnn/decode_model.h"

enum { MOST = 8, N = 60 };
typedef struct { int32_t tokens[LIMIT]; int prefix, len; double score, worth; } written;
typedef struct { written at[MOST]; int n; } written_list;

/* an ordered list of at most `most` entries, ties by position */
static void insert(written_list *l, int most, written x)
{
    int i = l->n;
    if (l->n == most && !(x.worth > l->at[most - 1].worth))
        return;
    for (i = l->n < most ? l->n++ : most - 1; i > 0 && x.worth > l->at[i - 1].worth; i--)
        l->at[i] = l->at[i - 1];
    l->at[i] = x;
}

static double worth_by(double score, int length, double penalty)
{
    return penalty == 0 ? score : score / pow(length, penalty);
}

/* Takes one step: the 2 K best continuations of the live hypotheses, in order. Endings among the first K
 * compete. */
static void advance(int s, written_list *alive, written_list *best, int beams, int wanted, int length,
                    double penalty)
{
    written all[2 * MOST];
    int n = 0, goes_on = 0;
    for (int i = 0; i < alive->n; i++)
        for (int j = 0; j < V; j++) {
            written x = alive->at[i];
            x.score += log_p(s, x.prefix, j);
            x.tokens[length - 1] = j;
            x.prefix = append(x.prefix, j);
            int k = n < 2 * beams ? n++ : n;
            for (; k > 0 && x.score > all[k - 1].score; k--)
                if (k < 2 * beams)
                    all[k] = all[k - 1];
            if (k < 2 * beams)
                all[k] = x;
        }
    alive->n = 0;
    for (int i = 0; i < n && goes_on < beams; i++) {
        written x = all[i];
        x.len = length;
        x.worth = worth_by(x.score, length, penalty);
        if (x.tokens[length - 1] != END)
            alive->at[alive->n++] = x, goes_on++;
        else if (i < beams)
            x.len--, insert(best, wanted, x);
    }
}

static written_list searched(int s, int prefix, const weft_decode_opts *o)
{
    written_list alive = { { { .prefix = prefix } }, 1 }, best = { .n = 0 };
    int wanted = o->best ? o->best : 1;
    for (int length = 1; length <= o->limit; length++)
        advance(s, &alive, &best, o->beams, wanted, length, o->length_penalty);
    for (int i = 0; i < alive.n; i++)
        insert(&best, wanted, alive.at[i]);
    return best;
}

static void is_as_searched(const weft_decoded *d, int s, int prefix, const weft_decode_opts *o)
{
    written_list want = searched(s, prefix, o);
    cr_assert(d->best == (o->best ? o->best : 1));
    for (int i = 0; i < d->best; i++) {
        int64_t at = s * d->best + i;
        if (i >= want.n) {
            cr_assert(d->len[at] == -1 && isinf(d->score[at]) && d->score[at] < 0);
            continue;
        }
        const written *x = &want.at[i];
        cr_assert(d->len[at] == x->len && !memcmp(d->tokens + at * d->limit, x->tokens,
                                                  (size_t)x->len * sizeof *x->tokens),
                  "sequence %d, hypothesis %d of %d beams, penalty %g: %d tokens of score %g; %d and %g are "
                  "expected",
                  s, i, o->beams, o->length_penalty, d->len[at], d->score[at], x->len, x->score);
        cr_assert(fabs(d->score[at] - x->score) < TOL(1e-12, 1e-5));
    }
}

TABLE_TEST(beam, every_hypothesis_matches_the_definition)
{
    static const double penalties[] = { 0, .6, 1, 2, -.5 };
    for (int i = 0; i < COUNT(penalties); i++)
        for (int beams = 2; beams <= MOST; beams++) {
            weft_decode_opts o = { .begin = BEGIN, .end = END, .limit = LIMIT, .beams = beams,
                                   .length_penalty = penalties[i],
                                   .best = (beams * 5 + i) % (beams + 1) };
            model_user u = { .searching = true };
            scoped_decoded d = weft_decode(w, N, numbered(w, N), model, &u, &o);
            OK(w);
            for (int s = 0; s < N; s++)
                is_as_searched(&d, s, 0, &o);
            weft_clear(w);
        }
}

/* ---- prompts ---- */
/* Of sequence s s % 4 tokens, and END may be one of them. */
static int prompts(int32_t *prompt, int32_t *len, int *prefix)
{
    int at = 0;
    for (int s = 0; s < N; s++) {
        len[s] = s % 4;
        prefix[s] = 0;
        for (int i = 0; i < len[s]; i++, at++) {
            prompt[at] = (s + 2 * i) % V;
            prefix[s] = append(prefix[s], prompt[at]);
        }
    }
    return at;
}

static double greedy_score(int s, int prefix, const weft_decoded *d)
{
    double sum = 0;
    for (int t = 0; t < d->len[s]; prefix = append(prefix, d->tokens[s * LIMIT + t++])) {
        sum += log_p(s, prefix, d->tokens[s * LIMIT + t]);
        for (int j = 0; j < V; j++)
            cr_assert(log_p(s, prefix, j) <= log_p(s, prefix, d->tokens[s * LIMIT + t]));
    }
    return d->len[s] < LIMIT ? sum + log_p(s, prefix, END) : sum;
}

TABLE_TEST(beam, prompts_may_have_different_lengths)
{
    int32_t prompt[4 * N], len[N];
    int prefix[N];
    prompts(prompt, len, prefix);
    for (int beams = 1; beams <= 3; beams++) {
        weft_decode_opts o = { .begin = BEGIN, .end = END, .limit = LIMIT, .beams = beams, .best = beams,
                               .prompt = prompt, .prompt_len = len };
        model_user u = { .searching = true, .read = 3 };
        scoped_decoded d = weft_decode(w, N, numbered(w, N), model, &u, &o);
        OK(w);
        for (int s = 0; s < N; s++)
            if (beams > 1)
                is_as_searched(&d, s, prefix[s], &o);
            else
                cr_assert(fabs(greedy_score(s, prefix[s], &d) - d.score[s]) < TOL(1e-12, 1e-5));
        weft_clear(w);
    }
}

/* Samples also start with a prompt, and their scores cover only the sampled tokens. */
CPU_TEST(beam, samples_after_a_prompt)
{
    int32_t prompt[N], len[N];
    for (int s = 0; s < N; s++) {
        len[s] = 1;
        prompt[s] = BEGIN;
    }
    weft_decode_opts o = { .begin = -1, .end = NEVER, .limit = LIMIT, .sample = true, .prompt = prompt,
                           .prompt_len = len };
    model_user u = { .read = 1 };
    scoped_decoded d = weft_decode(w, N, numbered(w, N), model, &u, &o);
    OK(w);
    for (int s = 0; s < N; s++) {
        cr_assert(d.len[s] == LIMIT);
        cr_assert(fabs(score_of(s, d.tokens + s * LIMIT, LIMIT, LIMIT) - d.score[s]) < TOL(1e-12, 1e-5));
    }
}

/* ---- log probabilities as they are ---- */
static weft_tensor *halves(weft_decode_rows *rows, void *user)
{
    weft_real v[64];
    (void)user;
    for (int i = 0; i < rows->n; i++)
        v[2 * i] = (weft_real)-1, v[2 * i + 1] = (weft_real)-3;      /* they do not add up to 1 */
    return weft_reals(weft_context_of(rows->tokens), v, WEFT_SHAPE(rows->n, 2));
}

CPU_TEST(beam, log_probabilities_are_not_normalised_again)
{
    for (int beams = 1; beams <= 2; beams++) {
        weft_decoded d = weft_decode(w, 3, WEFT_ZERO_STATE, halves, NULL,
                                     &(weft_decode_opts){ .end = NEVER, .limit = 5, .beams = beams,
                                                          .best = beams, .log_probabilities = true });
        OK(w);
        cr_assert(d.score[0] == -5 && (beams == 1 || d.score[1] == -7));
        weft_decoded_free(&d);
        model_user logits = { .searching = true };               /* some are above 0 */
        d = weft_decode(w, N, numbered(w, N), model, &logits,
                        &(weft_decode_opts){ .begin = BEGIN, .end = END, .limit = LIMIT, .beams = beams,
                                             .log_probabilities = true });
        cr_assert(d.n == 0);
        FAILS(w, WEFT_ENUMERIC, "or a log probability is above 0");
    }
}

CPU_TEST(beam, rows_are_ragged_queries)
{
    int32_t of[] = { 2, 0, 1 };
    weft_decode_rows rows = { .n = 3, .of = { .n = 3, .len = of } };
    weft_tensor *x = weft_reals(w, (weft_real[]){ 1, 2, 3, 4, 5, 6 }, WEFT_SHAPE(3, 2)),
                *y = weft_decode_ragged(&rows, x);
    OK(w);
    weft_lengths l = weft_lengths_of(y);
    cr_assert(weft_layout_of(y) == WEFT_CONCAT && l.n == 3 && l.len[1] == 0);
    same_bits("rows", numbers(y), numbers(x), 6);
    weft_decode_ragged(&rows, weft_zeros(w, WEFT_SHAPE(4, 2)));
    FAILS(w, WEFT_ESHAPE, "decode_ragged: [4, 2]: expected a plain tensor of 3 rows");
    weft_decode_ragged(NULL, weft_zeros(w, WEFT_SHAPE(3, 2)));
    FAILS(w, WEFT_EARG, "the rows are NULL; expected those of the step");
}

/* ---- memory ---- */
static int64_t four = 4;

static void decode_once(weft *w, int i)
{
    weft_decode_opts o = { .end = i % 2, .has_end = true, .limit = 3 + i % 3, .beams = i % 4,
                           .sample = !(i % 4) };
    scoped_decoded d = weft_decode(w, 1 + i % 5, WEFT_ZERO_STATE, equal_scores, &four, &o);
    cr_assert(weft_ok(w) && d.n == 1 + i % 5, "%s", weft_error_message(w));
    weft_clear(w);
}

/* A search inside the step of another one. */
static weft_tensor *nested_step(weft_decode_rows *at, void *user)
{
    weft *w = weft_context_of(at->tokens);
    weft_decode_opts o = { .end = 1, .limit = 9, .beams = 3 };
    scoped_decoded d = weft_decode(w, 4, WEFT_ZERO_STATE, equal_scores, &four, &o);
    cr_assert_eq(d.n, 4);
    return equal_scores(at, user);
}

TABLE_TEST(beam, steady_decoding_allocates_nothing, .init = unchecked)
{
    for (int i = 0; i < 60; i++)
        decode_once(w, i);
    int64_t before = allocations(w);
    for (int i = 0; i < 120; i++)
        decode_once(w, i);
    cr_assert_eq(allocations(w), before, "%lld", (long long)(allocations(w) - before));
    weft_decode_opts o = { .end = 1, .limit = 4, .beams = 2 };
    scoped_decoded d = weft_decode(w, 2, WEFT_ZERO_STATE, nested_step, &four, &o);
    cr_assert(d.n == 2, "%s", weft_error_message(w));
}
