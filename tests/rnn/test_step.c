/* test_step.c - tests one token at a time: steps that record nothing (rnn/step.c), products of few rows, and
 * their cache of packed weights (autograd/packed_weights.h). They have the bits of a whole run, which packs
 * again, after any change of the weights. */
#include "autograd/tape.h"
#include "rnn/rnn.h"
#include "tests/rnn/rnn_kinds.h"

enum { T = 4, MOST = 9, LETTERS = 7 }; /* tokens of a sequence; sequences; rows of a table */

typedef struct net {
    weft_module *m;
    weft_embedding *e;
    weft_rnn *r;
    weft_linear *head;
} net;

static net net_of(weft *w, const kind *k, int64_t letters)
{
    net s = { .m = weft_module_new(w, "m") };
    if (letters)
        s.e = weft_embedding_new(s.m, "e", &(weft_embedding_opts){ .rows = letters, .columns = k->o.input });
    s.r = rnn_of(s.m, "r", k);
    const int64_t out = k->o.hidden < 128 ? 19 : 130;
    s.head = weft_linear_new(s.m, "head", &(weft_linear_opts){ .in = width_of(k), .out = out });
    return s;
}

/* ---- single steps against a whole run ---- */
static int32_t ids[MOST * T];
static void draw_ids(void)
{
    for (int i = 0; i < COUNT(ids); i++)
        ids[i] = (int32_t)dice(LETTERS + 1) - 1; /* -1: a row of zeros */
}
/* [n, T] of them, by tokens [n] of step t if t >= 0. */
static weft_tensor *input(weft *w, const net *s, const kind *k, int64_t n, int t)
{
    weft_tensor *x = s->e ? weft_embedding_run(s->e, weft_ints(w, ids, WEFT_SHAPE(n, T))) :
                            random_tensor(w, 21, WEFT_SHAPE(n, T, k->o.input));
    int32_t now[MOST];
    for (int64_t i = 0; t >= 0 && i < n; i++)
        now[i] = ids[i * T + t];
    if (t < 0)
        return x;
    return s->e ? weft_embedding_run(s->e, weft_ints(w, now, WEFT_SHAPE(n))) :
                  weft_reshape(weft_slice(x, 1, t, t + 1), WEFT_SHAPE(n, k->o.input));
}

/* y [n, T, width], and the last states, of a run or of steps. */
/* Recorded runs cache no packed weights, so they are the reference. */
static void run_whole(weft *w, const net *s, const kind *k, int64_t n, bool recorded, bag *b)
{
    bool before = weft_set_grad_enabled(w, recorded);
    b->n = 0;
    weft_rnn_out o = weft_rnn_run(s->r, input(w, s, k, n, -1), random_state(w, k, n));
    put(b, o.y), put(b, o.last.h);
    if (o.last.c)
        put(b, o.last.c);
    put(b, weft_linear_run(s->head, o.y));
    OK(w);
    weft_set_grad_enabled(w, before);
    weft_clear(w);
}
static void run_steps(weft *w, const net *s, const kind *k, int64_t n, bag *b)
{
    weft_tensor *y[T], *of_head[T];
    weft_state state = random_state(w, k, n);
    b->n = 0;
    for (int t = 0; t < T; t++) {
        weft_rnn_out o = weft_rnn_step(s->r, input(w, s, k, n, t), state);
        y[t] = o.y;
        of_head[t] = weft_linear_run(s->head, o.y);
        state = o.last;
    }
    put(b, weft_stack(y, T, 1)), put(b, state.h);
    if (state.c)
        put(b, state.c);
    put(b, weft_stack(of_head, T, 1));
    OK(w);
    weft_clear(w);
}

static bag whole, kept_whole, steps;
static void agree(weft *w, const net *s, const kind *k, int64_t n, const char *when)
{
    char text[160];
    snprintf(text, sizeof text, "%s: %s, %d layers, %d -> %d, %d sequences, table %d, %s",
             weft_device_name(w), cell_name[k->cell], k->o.layers, (int)k->o.input, (int)k->o.hidden, (int)n,
             s->e != NULL, when);
    run_whole(w, s, k, n, true, &whole), run_whole(w, s, k, n, false, &kept_whole);
    run_steps(w, s, k, n, &steps);
    cr_assert(whole.n == steps.n && whole.n == kept_whole.n, "%s", text);
    same_in_company(text, whole.v, steps.v, whole.n);
    same_in_company(text, whole.v, kept_whole.v, whole.n);
}

static kind kind_of(int i, int64_t inputs, int64_t hidden)
{
    return (kind){ i % CELLS,
                   { .input = inputs, .hidden = hidden, .layers = 1 + i % 2, .no_bias = i % 5 == 0 },
                   i / 2 % 2 };
}

TABLE_TEST(step, has_the_bits_of_a_whole_run)
{
    static const int64_t sizes[][2] = {
        { 1, 2 }, { 3, 5 }, { 16, 32 }, { 33, 100 }, { 7, 130 }, { 300, 70 }
    };
    for (int i = 0; i < rounds(8 * CELLS, 40 * CELLS); i++) {
        const int64_t *size = sizes[i / CELLS % COUNT(sizes)];
        kind k = kind_of(i, size[0], size[1]);
        dice_seed((uint64_t)i), draw_ids();
        int64_t n = 1 + dice(MOST);
        weft_set_training(w, dice(2));
        net s = net_of(w, &k, dice(2) ? LETTERS : 0);
        weft_set_grad_enabled(w, false);
        agree(w, &s, &k, n, "at first");
        agree(w, &s, &k, 1, "one");
        agree(w, &s, &k, n, "again");
        weft_set_grad_enabled(w, true);
        agree(w, &s, &k, n, "recorded");
    }
}

/* The first sequence has the same output in a batch of MOST and in a batch of its own. */
static void same_in_every_batch(weft *w, const net *s, const kind *k)
{
    if (k->o.layers > 1)                         /* whose states are drawn in another order */
        return;
    run_whole(w, s, k, MOST, false, &whole), run_whole(w, s, k, 1, false, &steps);
    same_in_company(cell_name[k->cell], whole.v, steps.v, T * width_of(k));
}
/* Vectors keep rounded weights in WEFT_BF16, and matrix tiles keep their own packing. */
Test(step, has_the_bits_of_a_whole_run_in_every_precision)
{
    static const char *const names[] = { "ref", "generic", "avx2", "avx512", "amx", "amx-emulated",
                                        "neon-bf16" };
    static const int64_t sizes[][2] = { { 9, 20 }, { 70, 64 }, { 130, 128 }, { 33, 150 } };
    for (int i = 0; i < COUNT(names) * 2 * rounds(2 * CELLS, 8 * CELLS); i++) {
        const char *name = names[i / 2 % COUNT(names)];
        if (!table_is_here(name))
            continue;
        setenv("WEFT_ISA", name, 1);
        weft *w = open_with((weft_opts){ .device = WEFT_CPU, .precision = i % 2 ? WEFT_BF16 : WEFT_TF32 });
        unsetenv("WEFT_ISA");
        const int at = i / 2 / COUNT(names);
        kind k = kind_of(at, sizes[at / 2 % COUNT(sizes)][0], sizes[at / 2 % COUNT(sizes)][1]);
        dice_seed((uint64_t)at), draw_ids();
        net s = net_of(w, &k, dice(2) ? LETTERS : 0);
        weft_set_grad_enabled(w, false);
        agree(w, &s, &k, MOST, "at first"), agree(w, &s, &k, 1, "one");
        same_in_every_batch(w, &s, &k);
        CLEAN(w);
    }
}

/* ---- weights that change ---- */
static void train_once(weft *w, const net *s, const kind *k, weft_optim *o)
{
    weft_zero_grad(s->m);
    weft_rnn_out y = weft_rnn_run(s->r, input(w, s, k, 3, -1), random_state(w, k, 3));
    weft_backward(weft_sum_all(weft_linear_run(s->head, y.y)));
    weft_optim_step(o);
    weft_clear(w);
}
static void halve(weft *w, const net *s, int64_t which)
{
    weft_tensor *p = weft_parameter_at(s->m, which, NULL);
    weft_assign(p, weft_scale(p, .5));
    weft_clear(w);
}

TABLE_TEST(step, sees_every_change_of_the_weights)
{
    for (int i = 0; i < rounds(2 * CELLS, 2 * CELLS); i++) {
        kind k = kind_of(i, 6, i % 3 ? 9 : 120);
        const char *file = in_folder("step.h5");
        dice_seed((uint64_t)i), draw_ids();
        net s = net_of(w, &k, LETTERS);
        weft_optim *o = weft_adamw_new(s.m, &(weft_adam_opts){ .lr = .1 });
        weft_ema *mean = weft_ema_new(s.m, .5);
        cr_assert_eq(weft_save(file, s.m, o, NULL, 0), WEFT_OK, "%s", weft_file_message());
        weft_set_grad_enabled(w, false);
        agree(w, &s, &k, 3, "at first");
        for (int64_t p = 0; p < weft_parameter_count(s.m); p++)
            halve(w, &s, p), agree(w, &s, &k, 3, "assigned");
        weft_set_grad_enabled(w, true), train_once(w, &s, &k, o), weft_set_grad_enabled(w, false);
        agree(w, &s, &k, 3, "stepped");
        weft_ema_update(mean, 1), weft_ema_swap(mean);
        agree(w, &s, &k, 3, "averaged");
        weft_ema_swap(mean);
        agree(w, &s, &k, 3, "not averaged");
        cr_assert_eq(weft_load(file, s.m, o, NULL, 0), WEFT_OK);
        agree(w, &s, &k, 3, "loaded");
        weft_freeze(s.m, "*", true), weft_set_grad_enabled(w, true);
        agree(w, &s, &k, 3, "frozen, recorded");
        end_folder();
    }
}

/* ---- cached and uncached weights ---- */
static int64_t kept(const weft *w) { return weft_usage_of(w).kept_weights; }
static const kind usual = { LSTM, { .input = 8, .hidden = 130, .layers = 2 }, true };

Test(step, caches_within_the_limit, .init = unchecked)
{
    static const struct { int64_t most; bool lean; } may[] = { { 0, false },      { -1, false }, { 1, false },
                                                               { 700000, false }, { 0, true } };
    for (int i = 0; i < COUNT(may); i++) {
        weft *w = open_with(
            (weft_opts){ .device = WEFT_CPU, .kept_weights = may[i].most, .lean = may[i].lean });
        draw_ids();
        net s = net_of(w, &usual, LETTERS);
        cr_assert_eq(kept(w), 0);
        run_whole(w, &s, &usual, 2, true, &whole), run_steps(w, &s, &usual, 2, &steps);
        cr_assert_eq(kept(w), 0);
        weft_set_grad_enabled(w, false);
        agree(w, &s, &usual, 2, "limited");
        int64_t all = kept(w), whole_layer = 4 * 130 * (130 + 8) * (int64_t)sizeof(weft_real);
        if (!strncmp(weft_device_name(w), "avx", 3))
            cr_assert(may[i].lean || may[i].most < 0 ? all == 0 :
                      may[i].most == 1               ? all == 0 :
                      may[i].most                    ? all > 0 && all <= may[i].most :
                                                       all > 2 * whole_layer,
                      "%d: %lld bytes", i, (long long)all);
        agree(w, &s, &usual, 2, "again");
        cr_assert_eq(kept(w), all);
        cr_assert(weft_usage_of(w).host_bytes > all);
        CLEAN(w);
    }
}

static void step_of(weft *w, void *user)
{
    const net *s = user;
    WEFT_NO_GRAD(w)
    weft_linear_run(s->head, weft_rnn_step(s->r, input(w, s, &usual, 2, 1), random_state(w, &usual, 2)).y);
    weft_clear(w);
}
TABLE_TEST(step, allocates_nothing_after_the_first_step, .init = unchecked)
{
    net s = net_of(w, &usual, LETTERS);
    draw_ids();
    is_steady(w, step_of, &s);
}
/* Without memory for a cache, a step packs the weights each time and reports no error. */
TABLE_TEST(step, works_without_memory_for_a_cache, .init = unchecked)
{
    net s = net_of(w, &usual, LETTERS);
    draw_ids();
    weft_set_grad_enabled(w, false);
    run_whole(w, &s, &usual, 2, false, &whole);
    for (int i = 0; i < 3; i++)
        run_steps(w, &s, &usual, 2, &steps); /* the arenas have grown */
    for (int64_t p = 0; p < weft_parameter_count(s.m); p++)
        weft__node_of(weft_parameter_at(s.m, p, NULL))->packed_copies = NULL;
    int64_t before = kept(w);
    for (int i = 1; i < 4; i++) {
        atomic_store(&heap_of(w)->fail_in, i);
        run_steps(w, &s, &usual, 2, &steps);
        atomic_store(&heap_of(w)->fail_in, 0);
        same_in_company("without memory", whole.v, steps.v, whole.n);
    }
    if (!strncmp(weft_device_name(w), "avx", 3))
        cr_assert(kept(w) > before);
}

/* ---- products of few rows ---- */
static weft_tensor *applied(weft_linear *l, bool squashed, weft_tensor *x)
{
    return squashed ? weft__run_activated(l, WEFT_TANH, x) : weft_linear_run(l, x);
}
TABLE_TEST(step, linear_layers_have_the_bits_of_many_rows)
{
    static const int64_t sizes[][2] = { { 1, 1 },    { 5, 3 },     { 31, 40 },  { 32, 64 },
                                        { 300, 17 }, { 520, 129 }, { 257, 256 } };
    for (int i = 0; i < COUNT(sizes) * 4; i++) {
        const int64_t in = sizes[i / 4][0], out = sizes[i / 4][1], m = 40;
        weft_module *top = weft_module_new(w, "top");
        weft_linear *l =
            weft_linear_new(top, "l", &(weft_linear_opts){ .in = in, .out = out, .no_bias = i % 2 });
        const bool squashed = i / 2 % 2;
        weft_set_grad_enabled(w, true);
        const weft_real *all = numbers(applied(l, squashed, random_tensor(w, 3, WEFT_SHAPE(m, in))));
        weft_set_grad_enabled(w, false);
        for (int64_t n = 1; n <= MOST; n++) {
            weft_tensor *x = random_tensor(w, 3, WEFT_SHAPE(m, in));
            const weft_real *few = numbers(applied(l, squashed, weft_slice(x, 0, 7, 7 + n)));
            same_in_company("few rows", few, all + 7 * out, n * out);
        }
        OK(w);
        weft_clear(w);
    }
}

/* ---- attention's projections, parts of one weight ---- */
static void attention_agrees(weft *w, weft_attention_layer *a, int64_t n)
{
    int32_t len[] = { 3, 2 }, one[] = { (int32_t)n, 1 };
    const weft_lengths of_memory = { .n = 2, .len = len }, of_q = { .n = 2, .len = one };
    weft_real m[5 * 40], q[(MOST + 1) * 40];
    dice_seed((uint64_t)n);
    dice_fill(m, COUNT(m), -1, 1), dice_fill(q, COUNT(q), -1, 1);
    bag *of[2] = { &whole, &kept_whole };
    for (int i = 0; i < 2; i++) {
        weft_set_grad_enabled(w, i == 0);
        weft_tensor *memory = weft_ragged(w, m, 40, &of_memory), *asks = weft_ragged(w, q, 40, &of_q);
        of[i]->n = 0;
        put(of[i], weft_attention_run(a, asks, memory, WEFT_ALL_KEYS, NULL));
    }
    OK(w);
    same_in_company("attention", kept_whole.v, whole.v, whole.n);
    weft_clear(w);
}
TABLE_TEST(step, projections_of_attention_are_cached)
{
    weft_module *top = weft_module_new(w, "top");
    weft_attention_layer *a = weft_attention_new(
        top, "a", &(weft_attention_layer_opts){ .kind = WEFT_MULTIHEAD, .width = 40, .heads = 4 });
    for (int round = 0; round < 3; round++) {
        for (int64_t n = 1; n < MOST; n++)
            attention_agrees(w, a, n);
        weft_set_grad_enabled(w, false);
        weft_tensor *weight = weft_find_parameter(top, "a.in_proj_weight");
        weft_assign(weight, weft_scale(weight, (weft_real).5));
        weft_clear(w);
    }
    if (!strncmp(weft_device_name(w), "avx", 3))
        cr_assert(kept(w) > 4 * 40 * 40 * (int64_t)sizeof(weft_real));
}
