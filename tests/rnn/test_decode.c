/* test_decode.c - tests greedy and sampled decoding against a hand-made model, and all decoding with a real
 * LSTM against one run over the decoded tokens. test_beam.c tests beam search. */
#include "tests/rnn/decode_model.h"

TABLE_TEST(decode, greedy_takes_the_largest)
{
    weft_decoded d = decode(w, GREEDILY, 40,
                            &(weft_decode_opts){ .begin = BEGIN, .end = END, .limit = LIMIT });
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
    weft_decoded_free(&d);
    cr_assert(!d.tokens && !d.n);
}

/* ---- sampling ---- */
Test(decode, samples_repeat_by_seed)
{
    weft_decode_opts o = { .begin = BEGIN, .end = END, .limit = LIMIT };
    weft *a = open_with((weft_opts){ .device = WEFT_REF, .seed = 5 }),
         *b = open_with((weft_opts){ .device = WEFT_CPU, .seed = 5 }),
         *c = open_with((weft_opts){ .seed = 6 });
    weft_decoded in_a = decode(a, BY_CHANCE, 50, &o), in_b = decode(b, BY_CHANCE, 50, &o),
                 in_c = decode(c, BY_CHANCE, 50, &o);
    weft_decoded more = decode(a, BY_CHANCE, 50, &o);
    o.stream = "other";
    weft_decoded other = decode(b, BY_CHANCE, 50, &o);
    /* floats of two tables may differ by a rounding */
    cr_assert(same(&in_a, &in_b) || sizeof(weft_real) == 4);
    cr_assert(!same(&in_a, &in_c) && !same(&in_a, &more) && !same(&in_b, &other));
    scores_are_true(&in_a), scores_are_true(&more), scores_are_true(&other);
    weft_decoded *all[] = { &in_a, &in_b, &in_c, &more, &other };
    for (int i = 0; i < COUNT(all); i++)
        weft_decoded_free(all[i]);
    CLEAN(a), CLEAN(b), CLEAN(c);
}

static weft_tensor *four_classes(weft_decode_rows *rows, void *user)
{
    weft *w = weft_context_of(rows->tokens);
    (void)user;
    weft_tensor *row = weft_reals(w, (const weft_real[]){ 1, 0, 2, (weft_real)-INFINITY }, WEFT_SHAPE(1, 4));
    return weft_tile(row, 0, rows->n);
}

static void frequencies(weft *w, double temperature, int64_t top_k, double top_p, const double want[4])
{
    enum { N = 20000 };
    int count[4] = { 0 };
    weft_decode_opts o = {
        .end = -1, .limit = 1, .sample = true, .temperature = temperature, .top_k = top_k, .top_p = top_p
    };
    scoped_decoded d = weft_decode(w, N, WEFT_ZERO_STATE, four_classes, NULL, &o);
    OK(w);
    for (int s = 0; s < N; s++)
        count[d.tokens[s]]++;
    for (int j = 0; j < 4; j++)
        cr_assert(fabs((double)count[j] / N - want[j]) < .015 && (want[j] > 0 || !count[j]),
                  "class %d: %d of %d, %g is expected", j, count[j], N, want[j]);
}

CPU_TEST(decode, samples_have_the_models_frequencies)
{
    double e = exp(1), s = 1 + e + e * e, r = sqrt(e), q = 1 + r + e;
    frequencies(w, 0, 0, 0, (const double[4]){ e / s, 1 / s, e * e / s, 0 });
    frequencies(w, 2, 0, 1, (const double[4]){ r / q, 1 / q, e / q, 0 });
    frequencies(w, 1, 2, 0, (const double[4]){ 1 / (1 + e), 0, e / (1 + e), 0 });
    /* Probabilities are .665, .245, .090: top-p .6 keeps the first, .7 and .9 keep two. At four times the
     * temperature they are .419, .326, .254. */
    frequencies(w, 1, 0, .6, (const double[4]){ 0, 0, 1, 0 });
    frequencies(w, 1, 0, .7, (const double[4]){ 1 / (1 + e), 0, e / (1 + e), 0 });
    frequencies(w, 1, 0, .95, (const double[4]){ e / s, 1 / s, e * e / s, 0 });
    frequencies(w, 4, 0, .7, (const double[4]){ 1 / (1 + pow(e, .25)), 0, 1 / (1 + pow(e, -.25)), 0 });
    /* the probabilities are those among the k best */
    frequencies(w, 1, 2, .72, (const double[4]){ 0, 0, 1, 0 });
    frequencies(w, 1, 1, .99, (const double[4]){ 0, 0, 1, 0 });
    frequencies(w, 1e-4, 0, 0, (const double[4]){ 0, 0, 1, 0 });
}

/* ---- a real model: one run of the layer over the decoded tokens gives the same scores ---- */
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
    weft_lengths l = { .n = SEQUENCES, .len = len };
    weft_rnn_out o = weft_rnn_run(m->rnn, weft_embedding_run(m->embed, weft_ragged_ints(w, in, &l)), first);
    weft_tensor *p = weft_log_softmax(weft_scale(weft_linear_run(m->out, o.y), 3), 1, NULL);
    const weft_real *v = numbers(weft_plain(weft_gather(p, weft_ragged_ints(w, out, &l))));
    OK(w);
    for (int s = 0, at = 0; s < SEQUENCES; s++) {
        double sum = 0;
        for (int t = 0; t < len[s]; t++)
            sum += (double)v[at++];
        cr_assert(fabs(sum - d->score[s]) < TOL(1e-11, 1e-4), "sequence %d: %g, a run gives %g", s,
                  d->score[s], sum);
    }
}

TABLE_TEST(decode, a_run_over_the_result_gives_its_scores)
{
    for (int i = 0; i < 9; i++) {
        network m = network_new(w, i % 3);
        weft_state first = some_state(w, i % 3);
        weft_tensor *before = weft_exp(first.h);
        weft_mark here = weft_mark_here(w);
        int end = i % 2 ? 7 : NEVER;
        weft_decode_opts o = { .end = end, .limit = LONG, .beams = 3, .length_penalty = .5 };
        scoped_decoded d = decode_by((way)(i / 3), w, SEQUENCES, first, next, &m, &o);
        OK(w);
        cr_assert(w->recording && w->training && !memcmp(here.at, weft_mark_here(w).at, sizeof here.at) &&
                  isfinite((double)numbers(before)[0]));
        scores_are_those_of_a_run(w, &m, first, &d, end);
        weft_clear(w);
    }
}

Test(decode, thousands_of_steps_run_in_constant_memory, .init = unchecked)
{
    for (int i = 0; i < WAYS; i++) {
        weft *w = open_on(WEFT_CPU);
        network m = network_new(w, 2);
        scoped_decoded d = decode_by((way)i, w, SEQUENCES, WEFT_ZERO_STATE, next, &m,
                                     &(weft_decode_opts){ .end = NEVER, .limit = 2000, .beams = 2 });
        OK(w);
        int64_t trellis = i == BY_BEAMS ? 2 * 2001 * 2 * SEQUENCES * 16 : 0;
        cr_assert(m.calls == 2000 && d.len[0] == 2000);
        cr_assert(weft_usage_of(w).host_bytes - m.held <= trellis, "%lld bytes more",
                  (long long)(weft_usage_of(w).host_bytes - m.held));
        CLEAN(w);
    }
}

CPU_TEST(decode, ties_are_broken_by_position)
{
    for (int i = 0; i < WAYS; i++) {
        scoped_decoded d = decode_by((way)i, w, 1, WEFT_ZERO_STATE, equal_scores, &(int64_t){ 4 },
                                     &(weft_decode_opts){ .end = NEVER, .limit = 6, .beams = 3, .top_k = 1 });
        OK(w);
        for (int t = 0; t < 6; t++)
            cr_assert_eq(d.tokens[t], 0);
    }
}

/* ---- empty cases ---- */
CPU_TEST(decode, empty_batch_is_accepted)
{
    for (int i = 0; i < WAYS; i++) {
        const weft_decode_opts o = { .begin = BEGIN, .end = END, .limit = 3, .beams = 2 };
        scoped_decoded none = decode(w, (way)i, 0, &o);
        cr_assert_eq(none.n, 0);
    }
    weft_decoded_free(NULL);
}

CPU_TEST(decode, beams_may_end_without_continuations)
{
    scoped_decoded d = weft_decode(w, 2, WEFT_ZERO_STATE, equal_scores, &(int64_t){ 1 },
                                   &(weft_decode_opts){ .has_end = true, .limit = 3, .beams = 4 });
    OK(w);
    cr_assert(d.len[0] == 0 && d.len[1] == 0 && d.score[0] == 0);
}
