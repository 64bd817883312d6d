/* test_layers.c - the layers: values against loops written out here, gradients against differences, and what is refused. */
#include "check.h"
#include "nn/nn.h"

#define EXACT TOL(1e-12, 3e-6)
enum { N = 4, TOKENS = 3 + 0 + 5 + 1 };
static const int32_t lengths_of_n[N] = { 3, 0, 5, 1 };
static const weft_lengths some = { N, lengths_of_n, NULL };

static weft_tensor *drawn(weft *w, int rank, const int64_t *shape) { return weft_uniform(w, -1, 1, rank, shape); }
static weft_tensor *ragged(weft *w, int64_t width, const weft_lengths *l)
{
    static weft_real rows[4096];
    int64_t tokens = 0;
    for (int64_t s = 0; s < l->n; s++)
        tokens += l->len[s];
    cr_assert(tokens * width <= COUNT(rows));
    return weft_ragged(w, dice_fill(rows, tokens * width, -1, 1), width, l);
}

static void renew(weft_module *m)                /* parameters that are not their first values: biases that are not 0 */
{
    weft_real values[4096];
    for (int i = 0; i < weft_parameters(m); i++) {
        weft_tensor *p = weft_parameter_at(m, i, NULL);
        cr_assert(weft_count(p) <= COUNT(values));
        weft_assign_values(p, dice_fill(values, weft_count(p), -.9, .9), weft_count(p));
    }
}

static weft_real *of(const weft_module *m, const char *path) { return numbers(weft_find(m, path)); }

/* ---- gradients: of a weighted sum of the result, by all parameters and by the tensors given ---- */
typedef struct { weft_tensor *(*run)(weft_tensor *const *x, void *user); void *user; } probe;

static weft_tensor *weighted(weft_tensor *const *x, void *user)
{
    const probe *p = user;
    weft_tensor *y = weft_plain(p->run(x, p->user));
    weft_real c[4096];
    cr_assert(weft_count(y) <= COUNT(c));
    for (int64_t i = 0; i < weft_count(y); i++)
        c[i] = (weft_real)sin(1 + .7 * (double)i);
    int64_t n = weft_count(y);
    return weft_total(weft_mul(weft_reshape(y, 1, &n), weft_reals(weft_of(y), c, 1, &n)));
}

static void gradients_hold(const weft_module *m, probe p, weft_tensor *const *x, int n)
{
    weft_tensor *all[16];
    int k = 0;
    for (; k < n; k++)
        all[k] = x[k];
    for (int i = 0; m && i < weft_parameters(m); i++)
        all[k++] = weft_parameter_at(m, i, NULL);
    double off = weft_gradcheck(weighted, all, k, &p);
    OK(weft_of(all[0]));
    cr_assert(off < TOL(1e-7, 2e-2), "gradients are off by %g", off);
}

/* ---- linear ---- */
static void product(const weft_real *x, const weft_real *weight, const weft_real *bias, int64_t rows, int64_t in, int64_t out, weft_real *y)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t o = 0; o < out; o++) {
            double sum = bias ? (double)bias[o] : 0;
            for (int64_t i = 0; i < in; i++)
                sum += (double)x[r * in + i] * (double)weight[o * in + i];
            y[r * out + o] = (weft_real)sum;
        }
}

static weft_tensor *run_linear(weft_tensor *const *x, void *l) { return weft_linear_run(l, x[0]); }

Test(layers, linear)
{
    FOR_DEVICES(w) {
        weft_real y[200];
        weft_module *m = weft_module_new(w, "m");
        weft_linear *l = weft_linear_new(m, "l", 5, 3), *u = weft_linear_unbiased(m, "u", 5, 3);
        cr_assert(weft_parameter_count(m) == 15 + 3 + 15 && !weft_find(m, "u.bias"));
        for (int i = 0; i < 18; i++)
            cr_assert(fabs((double)(i < 15 ? of(m, "l.weight")[i] : of(m, "l.bias")[i - 15])) <= 1 / sqrt(5) + 1e-7);
        weft_tensor *x[] = { drawn(w, WEFT_SHAPE(4, 5)), drawn(w, WEFT_SHAPE(2, 3, 5)), ragged(w, 5, &some), drawn(w, WEFT_SHAPE(0, 5)) };
        for (int i = 0; i < COUNT(x); i++) {
            weft_tensor *r = weft_linear_run(l, x[i]);
            cr_assert(weft_rank(r) == weft_rank(x[i]) && weft_size(r, -1) == 3 && weft_layout_of(r) == weft_layout_of(x[i]));
            product(numbers(x[i]), of(m, "l.weight"), of(m, "l.bias"), weft_count(x[i]) / 5, 5, 3, y);
            close_to("y", numbers(r), y, weft_count(r), EXACT);
            product(numbers(x[i]), of(m, "u.weight"), NULL, weft_count(x[i]) / 5, 5, 3, y);
            close_to("y without bias", numbers(weft_linear_run(u, x[i])), y, weft_count(r), EXACT);
        }
        gradients_hold(m, (probe){ run_linear, l }, (weft_tensor *[]){ ragged(w, 5, &some) }, 1);
        weft_linear_new(m, "empty", 0, 3);       /* as in PyTorch: zeros, not NaN */
        cr_assert(of(m, "empty.bias")[2] == 0);
    }
}

/* ---- embedding ---- */
Test(layers, embedding)
{
    FOR_DEVICES(w) {
        static const int32_t id[TOKENS] = { 4, 0, 2, 2, 2, 1, 5, 4, 2 };
        weft_module *m = weft_module_new(w, "m");
        weft_embedding *plain = weft_embedding_new(m, "plain", 6, 3);
        weft_embedding *padded = weft_embedding_with(m, "padded", &(weft_embedding_opts){ 6, 3, 2, true });
        for (int kind = 0; kind < 3; kind++) {
            weft_tensor *ids = kind == 2 ? weft_ragged_ints(w, id, &some) : kind ? weft_ints(w, id, WEFT_SHAPE(3, 3)) : weft_ints(w, id, WEFT_SHAPE(TOKENS));
            for (int with = 0; with < 2; with++) {
                const weft_real *table = of(m, with ? "padded.weight" : "plain.weight");
                weft_tensor *y = weft_embed(with ? padded : plain, ids);
                weft_real *got = numbers(y), *gradient;
                cr_assert(weft_rank(y) == weft_rank(ids) + 1 && weft_size(y, -1) == 3 && weft_layout_of(y) == weft_layout_of(ids));
                int count[6] = { 0 };
                for (int t = 0; t < TOKENS; count[id[t]]++, t++)
                    for (int j = 0; j < 3; j++)
                        cr_assert(got[3 * t + j] == table[3 * id[t] + j] && (got[3 * t + j] != 0) == !(with && id[t] == 2));
                weft_zero_grad(m);
                weft_backward(y);
                gradient = numbers(weft_gradient(weft_find(m, with ? "padded.weight" : "plain.weight")));
                for (int i = 0; i < 18; i++)
                    cr_assert(gradient[i] == (with && i / 3 == 2 ? 0 : (weft_real)count[i / 3]), "gradient of row %d", i / 3);
            }
        }
    }
}

Test(layers, a_padding_row_stays_zero)
{
    weft *w = open_on(WEFT_CPU);
    weft_module *m = weft_module_new(w, "m");
    weft_embedding *e = weft_embedding_with(m, "e", &(weft_embedding_opts){ 4, 2, 1, true });
    cr_assert(of(m, "e.weight")[2] == 0 && of(m, "e.weight")[3] == 0 && of(m, "e.weight")[0] != 0);
    renew(m);                                    /* whatever was put there */
    weft_real *y = numbers(weft_embed(e, weft_ints(w, (int32_t[]){ 1, 3 }, WEFT_SHAPE(2))));
    cr_assert(y[0] == 0 && y[1] == 0 && y[2] == of(m, "e.weight")[6]);
    CLEAN(w);
}

/* ---- norm ---- */
static weft_tensor *run_norm(weft_tensor *const *x, void *n) { return weft_norm_run(n, x[0]); }

Test(layers, norm)
{
    FOR_DEVICES(w) {
        enum { WIDTH = 6 };
        weft_real want[TOKENS * WIDTH];
        weft_module *m = weft_module_new(w, "m");
        weft_norm *n = weft_norm_new(m, "n", WIDTH);
        cr_assert(of(m, "n.weight")[WIDTH - 1] == 1 && of(m, "n.bias")[WIDTH - 1] == 0);
        renew(m);
        weft_tensor *x = ragged(w, WIDTH, &some);
        weft_real *v = numbers(x), *gain = of(m, "n.weight"), *shift = of(m, "n.bias");
        for (int r = 0; r < TOKENS; r++) {
            double mean = 0, variance = 0;
            for (int j = 0; j < WIDTH; j++)
                mean += (double)v[r * WIDTH + j] / WIDTH;
            for (int j = 0; j < WIDTH; j++)
                variance += pow((double)v[r * WIDTH + j] - mean, 2) / WIDTH;
            for (int j = 0; j < WIDTH; j++)
                want[r * WIDTH + j] = (weft_real)(((double)v[r * WIDTH + j] - mean) / sqrt(variance + 1e-5) * (double)gain[j] + (double)shift[j]);
        }
        close_to("norm", numbers(weft_norm_run(n, x)), want, TOKENS * WIDTH, EXACT);
        gradients_hold(m, (probe){ run_norm, n }, &x, 1);
    }
}

/* ---- dropout ---- */
static void close_twin(weft *w)                  /* while numbers of another context are still lent */
{
    heap *h = heap_of(w);
    OK(w);
    weft_close(w);
    cr_assert(h->live == 0);
    h->w = NULL;
}

Test(layers, dropout_is_named_by_its_place)
{
    FOR_DEVICES(w) {
        weft_module *m = weft_module_new(w, "m");
        weft_drop *a = weft_drop_new(m, "a", (weft_real).5, false), *b = weft_drop_new(m, "b", (weft_real).5, false), *once = weft_drop_new(m, "once", (weft_real).5, true);
        weft_drop *none = weft_drop_new(m, "none", 0, false);
        weft *twin = open_on(WEFT_REF);          /* the same seed, step and call */
        static const weft_real ones[64 * TOKENS] = { 0 };
        weft_tensor *x = weft_add(weft_ragged(w, ones, 64, &some), weft_scalar(w, 1)), *of_twin = weft_add(weft_ragged(twin, ones, 64, &some), weft_scalar(twin, 1));
        weft_real *of_a = numbers(weft_drop_run(a, x)), *of_b = numbers(weft_drop_run(b, x)), *same = numbers(weft_dropout(x, (weft_real).5, "m.a", false));
        same_bits("named by its path", of_a, numbers(weft_dropout(of_twin, (weft_real).5, "m.a", false)), 64 * TOKENS);
        cr_assert(memcmp(of_a, of_b, 64 * sizeof *of_a) && memcmp(of_a, same, 64 * sizeof *same), "another layer, another call: another mask");
        int kept = 0;
        for (int i = 0; i < 64 * TOKENS; i++) {
            cr_assert(of_a[i] == 0 || of_a[i] == 2);
            kept += of_a[i] != 0;
        }
        cr_assert(kept > 64 * TOKENS / 3 && kept < 64 * TOKENS * 2 / 3);
        weft_real *row = numbers(weft_drop_run(once, x));
        same_bits("one mask a sequence", row, row + 64, 64);
        cr_assert(memcmp(row, row + 3 * 64, 64 * sizeof *row));
        cr_assert(weft_drop_run(none, x) == x);
        weft_training(w, false);
        cr_assert(weft_drop_run(a, x) == x);
        close_twin(twin);
    }
}

/* ---- MLP ---- */
static double activation(weft_activation a, double x)
{
    switch (a) {
    case WEFT_RELU:       return fmax(x, 0);
    case WEFT_LEAKY_RELU: return x > 0 ? x : .01 * x;
    case WEFT_ELU:        return x > 0 ? x : exp(x) - 1;
    case WEFT_GELU:       return .5 * x * (1 + erf(x / sqrt(2)));
    case WEFT_SILU:       return x / (1 + exp(-x));
    case WEFT_TANH:       return tanh(x);
    case WEFT_SIGMOID:    return 1 / (1 + exp(-x));
    }
    return NAN;
}

static weft_tensor *run_mlp(weft_tensor *const *x, void *l) { return weft_mlp_run(l, x[0]); }

Test(layers, mlp)
{
    FOR_DEVICES(w) {
        static const int64_t widths[] = { 4, 6, 5, 2 };
        weft_module *root = weft_module_new(w, "m");
        for (int a = WEFT_RELU; a <= WEFT_SIGMOID; a++) {
            char name[16];
            snprintf(name, sizeof name, "%d", a);
            weft_module *m = weft_module_in(root, name);
            weft_mlp *l = weft_mlp_new(m, "mlp", &(weft_mlp_opts){ 3, widths, (weft_activation)a, 0 });
            weft_tensor *x = ragged(w, 4, &some);
            weft_real buffer[2][TOKENS * 6];
            cr_assert(weft_parameter_count(m) == 4 * 6 + 6 + 6 * 5 + 5 + 5 * 2 + 2);
            memcpy(buffer[0], numbers(x), TOKENS * 4 * sizeof(weft_real));
            for (int i = 0; i < 3; i++) {
                char weight[32], bias[32];
                snprintf(weight, sizeof weight, "mlp.%d.weight", i);
                snprintf(bias, sizeof bias, "mlp.%d.bias", i);
                product(buffer[i & 1], of(m, weight), of(m, bias), TOKENS, widths[i], widths[i + 1], buffer[!(i & 1)]);
                for (int j = 0; i < 2 && j < TOKENS * widths[i + 1]; j++)
                    buffer[!(i & 1)][j] = (weft_real)activation((weft_activation)a, (double)buffer[!(i & 1)][j]);
            }
            close_to(name, numbers(weft_mlp_run(l, x)), buffer[1], TOKENS * 2, EXACT);
            if (a >= WEFT_GELU)                  /* the others have corners */
                gradients_hold(m, (probe){ run_mlp, l }, &x, 1);
        }
    }
}

Test(layers, mlp_drops_between_its_layers)
{
    weft *w = open_on(WEFT_CPU);
    weft_module *m = weft_module_new(w, "m");
    weft_mlp *l = weft_mlp_new(m, "mlp", &(weft_mlp_opts){ 2, (int64_t[]){ 3, 100, 2 }, WEFT_TANH, (weft_real).5 });
    weft_mlp *one = weft_mlp_new(m, "one", &(weft_mlp_opts){ 1, (int64_t[]){ 3, 2 }, WEFT_TANH, (weft_real).5 });
    weft_tensor *x = drawn(w, WEFT_SHAPE(4, 3));
    weft_real *a = numbers(weft_mlp_run(l, x)), *b = numbers(weft_mlp_run(l, x));
    weft *twin = open_on(WEFT_CPU);
    weft_module *of_twin = weft_module_in(weft_module_new(twin, "m"), "mlp");
    weft_linear *first = weft_linear_new(of_twin, "0", 3, 100), *second = weft_linear_new(of_twin, "1", 100, 2);
    weft_tensor *y = weft_tanh(weft_linear_run(first, weft_reals(twin, numbers(x), WEFT_SHAPE(4, 3))));
    same_bits("its steps", a, numbers(weft_linear_run(second, weft_dropout(y, (weft_real).5, "m.mlp.0", false))), 8);
    close_twin(twin);
    cr_assert(a[0] != b[0] && numbers(weft_mlp_run(one, x))[0] == numbers(weft_mlp_run(one, x))[0]);
    weft_training(w, false);
    same_bits("evaluation", numbers(weft_mlp_run(l, x)), numbers(weft_mlp_run(l, x)), 8);
    CLEAN(w);
}

/* ---- attention: by loops over sequences, queries, keys ---- */
enum { DQ = 4, DM = 6, WIDTH = 5, HEADS = 2, PAIRS = 256 };
typedef struct { int64_t first_q, q, first_k, k; } stretch;       /* rows of one sequence */
typedef double score(const weft_module *m, const weft_real *q, const weft_real *k, int head);

static double dot(const weft_real *a, const weft_real *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

static double additive_score(const weft_module *m, const weft_real *q, const weft_real *k, int head)
{
    double sum = 0;
    (void)head;
    for (int i = 0; i < WIDTH; i++)
        sum += (double)of(m, "l.score")[i] * tanh(dot(of(m, "l.query_weight") + i * DQ, q, DQ) + dot(of(m, "l.memory_weight") + i * DM, k, DM) + (double)of(m, "l.bias")[i]);
    return sum;
}

static double general_score(const weft_module *m, const weft_real *q, const weft_real *k, int head)
{
    double sum = 0;
    (void)head;
    for (int i = 0; i < DQ; i++)
        sum += (double)q[i] * dot(of(m, "l.weight") + i * DM, k, DM);
    return sum;
}

static void attend(const weft_module *m, score *f, weft_causal causal, int heads, stretch s, const weft_real *q, int64_t dq, const weft_real *k, int64_t dk,
                   const weft_real *v, int64_t dv, weft_real *y, weft_real *map)
{
    int64_t wide = dv / heads;                   /* of a head */
    for (int64_t i = 0; i < s.q; i++, map += s.k * heads)
        for (int h = 0; h < heads; h++) {
            double e[PAIRS], total = 0;
            for (int64_t j = 0; j < s.k; j++) {
                bool seen = !causal || j <= i + (causal == WEFT_CAUSAL_BOTTOM_RIGHT ? s.k - s.q : 0);
                total += e[j] = seen ? exp(f(m, q + (s.first_q + i) * dq, k + (s.first_k + j) * dk, h)) : 0;
            }
            for (int64_t j = 0; j < s.k; j++)
                map[j * heads + h] = (weft_real)(total > 0 ? e[j] / total : 0);
            for (int64_t c = h * wide; c < (h + 1) * wide; c++) {
                double sum = 0;
                for (int64_t j = 0; j < s.k; j++)
                    sum += (double)map[j * heads + h] * (double)v[(s.first_k + j) * dv + c];
                y[(s.first_q + i) * dv + c] = (weft_real)sum;
            }
        }
}

static const int32_t q_len[N] = { 2, 1, 4, 3 }, m_len[N] = { 3, 0, 5, 1 }, ones[N] = { 1, 1, 1, 1 };
static const weft_lengths q_lengths = { N, q_len, NULL }, m_lengths = { N, m_len, NULL };

typedef weft_tensor *runner(void *layer, weft_tensor *q, weft_tensor *memory, weft_tensor **map);

/* Ragged queries, in two layouts, and plain ones. */
static void attention_holds(weft *w, const weft_module *m, score *f, runner *run, void *layer)
{
    for (int kind = 0; kind < 3; kind++) {
        const int32_t *len = kind == 2 ? ones : q_len;
        weft_tensor *memory = ragged(w, DM, &m_lengths), *map, *q = kind == 2 ? drawn(w, WEFT_SHAPE(N, DQ)) : ragged(w, DQ, &q_lengths);
        weft_real want[16 * DM], want_map[PAIRS], *rows = numbers(q), *keys = numbers(memory);
        stretch s = { 0 };
        int64_t pairs = 0;
        for (int i = 0; i < N; i++, s.first_q += s.q, s.first_k += s.k, pairs += s.q * s.k) {
            s.q = len[i], s.k = m_len[i];
            attend(m, f, WEFT_ALL_KEYS, 1, s, rows, DQ, keys, DM, keys, DM, want, want_map + pairs);
        }
        weft_tensor *y = run(layer, kind == 1 ? weft_arrange(q, WEFT_PACKED) : q, weft_arrange(memory, kind == 1 ? WEFT_PACKED : WEFT_CONCAT), &map);
        OK(w);
        cr_assert(weft_layout_of(y) == WEFT_PLAIN ? kind == 2 : kind < 2);
        cr_assert(weft_rank(y) == 2 && weft_size(y, 0) == s.first_q && weft_size(y, 1) == DM);
        close_to("y", numbers(kind == 2 ? y : weft_arrange(y, WEFT_CONCAT)), want, weft_count(y), EXACT);
        cr_assert(weft_count(map) == pairs && weft_size(map, 1) == 1 && weft_lengths_of(map).n == s.first_q);
        close_to("map", numbers(map), want_map, pairs, EXACT);
        close_to("without a map", numbers(run(layer, q, memory, NULL)), numbers(run(layer, q, memory, &map)), weft_count(y), EXACT);
    }
}

static weft_tensor *additive(void *layer, weft_tensor *q, weft_tensor *memory, weft_tensor **map) { return weft_additive_run(layer, q, memory, map); }
static weft_tensor *general(void *layer, weft_tensor *q, weft_tensor *memory, weft_tensor **map)  { return weft_general_run(layer, q, memory, map); }
static weft_tensor *probe_additive(weft_tensor *const *x, void *layer) { return weft_additive_run(layer, x[0], x[1], NULL); }
static weft_tensor *probe_general(weft_tensor *const *x, void *layer)  { return weft_general_run(layer, x[0], x[1], NULL); }

Test(layers, additive_attention)
{
    FOR_DEVICES(w) {
        weft_module *m = weft_module_new(w, "m");
        weft_additive *l = weft_additive_new(m, "l", DQ, DM, WIDTH);
        renew(m);
        attention_holds(w, m, additive_score, additive, l);
        gradients_hold(m, (probe){ probe_additive, l }, (weft_tensor *[]){ ragged(w, DQ, &q_lengths), ragged(w, DM, &m_lengths) }, 2);
        gradients_hold(m, (probe){ probe_additive, l }, (weft_tensor *[]){ drawn(w, WEFT_SHAPE(N, DQ)), ragged(w, DM, &m_lengths) }, 2);
    }
}

Test(layers, general_attention)
{
    FOR_DEVICES(w) {
        weft_module *m = weft_module_new(w, "m");
        weft_general *l = weft_general_new(m, "l", DQ, DM);
        attention_holds(w, m, general_score, general, l);
        gradients_hold(m, (probe){ probe_general, l }, (weft_tensor *[]){ ragged(w, DQ, &q_lengths), ragged(w, DM, &m_lengths) }, 2);
        gradients_hold(m, (probe){ probe_general, l }, (weft_tensor *[]){ drawn(w, WEFT_SHAPE(N, DQ)), ragged(w, DM, &m_lengths) }, 2);
    }
}

/* ---- several heads ---- */
static double head_score(const weft_module *m, const weft_real *q, const weft_real *k, int head)
{
    (void)m;
    return dot(q + head * (DM / HEADS), k + head * (DM / HEADS), DM / HEADS) / sqrt(DM / HEADS);
}

static void heads_hold(weft *w, const weft_module *m, weft_multihead *l, bool self, bool plain, weft_causal causal)
{
    const int32_t *len = plain ? ones : self ? m_len : q_len;
    weft_tensor *memory = ragged(w, DM, &m_lengths), *map = NULL;
    weft_tensor *q = self ? memory : plain ? drawn(w, WEFT_SHAPE(N, DM)) : ragged(w, DM, &(weft_lengths){ N, len, NULL });
    weft_real part[3][16 * DM], mixed[16 * DM], want[16 * DM], want_map[PAIRS], *weight = of(m, "l.in_proj_weight"), *bias = of(m, "l.in_proj_bias");
    for (int i = 0; i < 3; i++)
        product(numbers(i ? memory : q), weight + i * DM * DM, bias + i * DM, weft_size(i ? memory : q, 0), DM, DM, part[i]);
    stretch s = { 0 };
    int64_t pairs = 0;
    for (int i = 0; i < N; i++, s.first_q += s.q, s.first_k += s.k, pairs += s.q * s.k) {
        s.q = len[i], s.k = m_len[i];
        attend(m, head_score, causal, HEADS, s, part[0], DM, part[1], DM, part[2], DM, mixed, want_map + HEADS * pairs);
    }
    product(mixed, of(m, "l.out_proj.weight"), of(m, "l.out_proj.bias"), s.first_q, DM, DM, want);
    weft_tensor *y = weft_multihead_run(l, q, memory, causal, &map);
    OK(w);
    cr_assert((weft_layout_of(y) == WEFT_PLAIN) == plain && weft_size(y, 0) == s.first_q && weft_size(y, 1) == DM);
    close_to("y", numbers(y), want, weft_count(y), EXACT);
    cr_assert(weft_count(map) == HEADS * pairs && weft_size(map, 1) == HEADS && weft_lengths_of(map).n == s.first_q);
    close_to("map", numbers(map), want_map, HEADS * pairs, EXACT);
    close_to("without a map", numbers(weft_multihead_run(l, q, memory, causal, NULL)), want, weft_count(y), EXACT);
}

static weft_tensor *probe_cross(weft_tensor *const *x, void *l) { return weft_multihead_run(l, x[0], x[1], WEFT_CAUSAL_TOP_LEFT, NULL); }
static weft_tensor *probe_self(weft_tensor *const *x, void *l)  { return weft_multihead_run(l, x[0], x[0], WEFT_ALL_KEYS, NULL); }

Test(layers, multihead_attention)
{
    FOR_DEVICES(w) {
        weft_module *m = weft_module_new(w, "m");
        weft_multihead *l = weft_multihead_new(m, "l", DM, HEADS);
        cr_assert(weft_parameter_count(m) == 3 * DM * DM + 3 * DM + DM * DM + DM);
        cr_assert(of(m, "l.in_proj_bias")[0] == 0 && of(m, "l.out_proj.bias")[0] == 0);
        renew(m);
        for (int causal = WEFT_ALL_KEYS; causal <= WEFT_CAUSAL_BOTTOM_RIGHT; causal++)
            for (int kind = 0; kind < 3; kind++)
                heads_hold(w, m, l, kind == 1, kind == 2, (weft_causal)causal);
        gradients_hold(m, (probe){ probe_cross, l }, (weft_tensor *[]){ ragged(w, DM, &q_lengths), ragged(w, DM, &m_lengths) }, 2);
        gradients_hold(m, (probe){ probe_self, l }, (weft_tensor *[]){ ragged(w, DM, &m_lengths) }, 1);
    }
}

Test(layers, a_plain_query_is_one_token_a_sequence)
{
    weft *w = open_on(WEFT_CPU);
    weft_module *m = weft_module_new(w, "m");
    weft_general *l = weft_general_new(m, "l", DQ, DM);
    weft_tensor *q = drawn(w, WEFT_SHAPE(N, DQ)), *map, *y;
    weft_tensor *memory = ragged(w, DM, &(weft_lengths){ N, m_len, (int64_t[]){ 40, 30, 20, 10 } });      /* with ids */
    weft_tensor *as_ragged = weft_ragged(w, numbers(q), DQ, &(weft_lengths){ N, ones, (int64_t[]){ 40, 30, 20, 10 } });
    y = weft_general_run(l, q, memory, NULL);
    same_bits("y", numbers(y), numbers(weft_arrange(weft_general_run(l, as_ragged, memory, NULL), WEFT_CONCAT)), N * DM);
    weft_lengths empty = { 0, NULL, NULL };      /* no sequences at all */
    cr_assert(weft_count(weft_general_run(l, weft_zeros(w, WEFT_SHAPE(0, DQ)), weft_ragged(w, NULL, DM, &empty), &map)) == 0);
    OK(w);
    CLEAN(w);
}

Test(layers, a_decoder_step_takes_no_memory_from_the_system)
{
    weft *w = open_on(WEFT_CPU);
    weft_module *m = weft_module_new(w, "m");
    weft_additive *a = weft_additive_new(m, "a", DQ, DM, WIDTH);
    weft_general *g = weft_general_new(m, "g", DQ, DM);
    weft_embedding *e = weft_embedding_with(m, "e", &(weft_embedding_opts){ 9, DQ, 0, true });
    int64_t before = 0;
    for (int step = 0; step < 6; step++) {
        weft_tensor *memory = ragged(w, DM, &m_lengths), *q = weft_embed(e, weft_iota(w, N)), *map;
        for (int i = 0; i < 5; i++)
            q = weft_slice(weft_add(weft_additive_run(a, q, memory, &map), weft_general_run(g, q, memory, NULL)), 1, 0, DQ);
        weft_backward(q);
        weft_clear(w);
        cr_assert(step < 3 || allocations(w) == before, "step %d allocates", step);
        before = allocations(w);
    }
    CLEAN(w);
}

/* ---- what is refused ---- */
typedef struct { weft_linear *linear; weft_embedding *embedding; weft_norm *norm; weft_drop *drop; weft_mlp *mlp; weft_additive *additive; weft_general *general; weft_multihead *multihead; } layers;

static layers all_layers(weft_module *m)
{
    return (layers){
        weft_linear_new(m, "linear", 3, 3), weft_embedding_with(m, "embedding", &(weft_embedding_opts){ 5, 3, 0, true }), weft_norm_new(m, "norm", 3),
        weft_drop_new(m, "drop", (weft_real).1, false), weft_mlp_new(m, "mlp", &(weft_mlp_opts){ 2, (int64_t[]){ 3, 3, 3 }, WEFT_GELU, (weft_real).1 }),
        weft_additive_new(m, "additive", 3, 3, 3), weft_general_new(m, "general", 3, 3), weft_multihead_new(m, "multihead", 3, 1) };
}

static weft_tensor *run_layer(const layers *l, int i, weft_tensor *x, weft_tensor *memory, weft_tensor **map)
{
    switch (i) {
    case 0: return weft_linear_run(l->linear, x);
    case 1: return weft_embed(l->embedding, x);
    case 2: return weft_norm_run(l->norm, x);
    case 3: return weft_drop_run(l->drop, x);
    case 4: return weft_mlp_run(l->mlp, x);
    case 5: return weft_additive_run(l->additive, x, memory, map);
    case 6: return weft_general_run(l->general, x, memory, map);
    case 7: return weft_multihead_run(l->multihead, x, memory, WEFT_ALL_KEYS, map);
    }
    return NULL;
}
enum { LAYERS = 8, ATTENTION = 5 };
static const char *const layer_names[LAYERS] = { "linear", "embedding", "norm", "drop", "mlp", "additive", "general", "multihead" };

Test(layers, a_layer_that_could_not_be_made_runs_to_an_error)
{
    weft *w = open_on(WEFT_CPU);
    weft_fail(w, WEFT_EARG, "something else");
    weft_module *m = weft_module_new(w, "m");
    layers inert[] = { all_layers(m), all_layers(NULL), { 0 } };
    weft_recover(w);
    for (int i = 0; i < LAYERS; i++)
        for (int kind = 0; kind < COUNT(inert); kind++) {
            weft_tensor *x = ragged(w, 3, &some), *map = NULL;
            weft_tensor *y = run_layer(&inert[kind], i, x, x, &map);
            cr_assert(y && weft_count(y) == 0 && (i < ATTENTION || (map && weft_count(map) == 0)));
            FAILS(w, WEFT_EARG, "could not be made");
            cr_assert_not_null(run_layer(&inert[kind], i, NULL, NULL, NULL));
            cr_assert_not_null(run_layer(&inert[kind], i, NULL, NULL, &map));
            OK(w);
        }
    CLEAN(w);
}

Test(layers, messages_name_the_layer)
{
    weft *w = open_on(WEFT_CPU), *other = open_on(WEFT_CPU);
    layers l = all_layers(weft_module_in(weft_module_new(w, "net"), "part"));
    OK(w);
    for (int i = 0; i < LAYERS; i++)
        for (int kind = 0; kind < 6; kind++) {
            char place[64];
            snprintf(place, sizeof place, "net.part.%s", layer_names[i]);
            weft_tensor *stale = weft_zeros(w, WEFT_SHAPE(4, 3)), *map;
            weft_clear(w);
            weft_tensor *memory = ragged(w, 3, &some), *wrong = ragged(w, 2, &some), *inert = &w->nil, *ints = weft_ragged_ints(w, lengths_of_n, &(weft_lengths){ 1, (int32_t[]){ 4 }, NULL });
            weft_tensor *x[] = { NULL, stale, inert, wrong, i == 1 ? memory : ints, weft_zeros(other, WEFT_SHAPE(4, 3)) };
            if (i == 3 && kind == 3)
                continue;                        /* dropout takes any width */
            if (i == 1 && kind == 3)
                x[3] = weft_ints(w, (int32_t[]){ 0, 5 }, WEFT_SHAPE(2));      /* an id too large */
            weft_tensor *y = run_layer(&l, i, x[kind], memory, &map);
            cr_assert(y && weft_count(y) == 0, "%s, kind %d", layer_names[i], kind);
            cr_assert(strstr(weft_message(w), place), "%s, kind %d: %s", place, kind, weft_message(w));
            cr_assert_null(w->scope, "the scope was left");
            OK(other);
            weft_recover(w);
        }
    CLEAN(w);
    CLEAN(other);
}

Test(layers, memories_that_cannot_be)
{
    weft *w = open_on(WEFT_CPU);
    layers l = all_layers(weft_module_new(w, "net"));
    for (int i = ATTENTION; i < LAYERS; i++)
        for (int kind = 0; kind < 6; kind++) {
            weft_tensor *q = ragged(w, 3, &some), *plain = weft_zeros(w, WEFT_SHAPE(N, 3));
            struct { weft_tensor *q, *memory; const char *part; } bad[] = {
                { q, NULL, "memory is NULL" }, { q, plain, "ragged memory" }, { q, ragged(w, 4, &some), "" },
                { q, ragged(w, 3, &(weft_lengths){ 3, q_len, NULL }), "4, but the memory has 3 sequences" },
                { weft_zeros(w, WEFT_SHAPE(3, 3)), q, "3, but the memory has 4 sequences" }, { weft_zeros(w, WEFT_SHAPE(N, 3, 3)), q, "rank 2" } };
            weft_tensor *map = NULL;
            run_layer(&l, i, bad[kind].q, bad[kind].memory, &map);
            cr_assert(map && !weft_ok(w) && strstr(weft_message(w), bad[kind].part) && strstr(weft_message(w), layer_names[i]), "%s, kind %d: %s", layer_names[i], kind, weft_message(w));
            weft_recover(w);
        }
    weft_multihead_run(l.multihead, ragged(w, 3, &some), ragged(w, 3, &some), (weft_causal)7, NULL);
    FAILS(w, WEFT_EARG, "weft_causal");
    CLEAN(w);
}

Test(layers, options_that_cannot_be)
{
    weft *w = open_on(WEFT_CPU);
    weft_module *m = weft_module_new(w, "m");
    static const int64_t widths[] = { 2, 2, 2 };
    static const weft_mlp_opts mlp[] = { { 0, widths, WEFT_RELU, 0 }, { 1, NULL, WEFT_RELU, 0 }, { 2, widths, (weft_activation)50, 0 }, { 2, widths, WEFT_RELU, 1 }, { 2, widths, WEFT_RELU, (weft_real)NAN } };
    static const weft_embedding_opts rows[] = { { -1, 2, 0, false }, { 4, 2, 4, true }, { 4, 2, -1, true }, { (int64_t)1 << 33, 1, 0, false }, { 0, 2, 0, true } };
    for (int i = 0; i <= COUNT(mlp); i++) {
        weft_mlp_new(m, "x", i < COUNT(mlp) ? &mlp[i] : NULL);
        FAILS(w, WEFT_EARG, "mlp: ");
    }
    for (int i = 0; i <= COUNT(rows); i++) {
        weft_embedding_with(m, "x", i < COUNT(rows) ? &rows[i] : NULL);
        FAILS(w, WEFT_EARG, "embedding: ");
    }
    for (int i = 0; i < 3; i++) {
        weft_multihead_new(m, "x", (int64_t[]){ 6, 0, 6 }[i], (int[]){ 4, 1, 0 }[i]);
        FAILS(w, WEFT_EARG, "multihead: ");
        weft_drop_new(m, "x", (weft_real[]){ -1, 1, (weft_real)NAN }[i], false);
        FAILS(w, WEFT_EARG, "drop: ");
    }
    cr_assert(!m->child, "what was refused left nothing behind");
    weft_linear_new(m, "l", -1, 2);
    FAILS(w, WEFT_ESHAPE, "m.l.weight: extent -1");
    weft_norm_new(m, "n", -1);
    FAILS(w, WEFT_ESHAPE, "m.n.weight");
    weft_general_new(m, "g", 2, -1);
    FAILS(w, WEFT_ESHAPE, "m.g.weight");
    weft_additive_new(m, "a", 2, 2, -1);
    FAILS(w, WEFT_ESHAPE, "m.a.query_weight");
    CLEAN(w);
}

Test(layers, any_allocation_may_fail)
{
    for (int64_t n = 1;; n++) {
        weft *w = open_on(WEFT_CPU);
        weft_tensor *x = ragged(w, 3, &some), *map;
        fail_in(w, n);
        layers l = all_layers(weft_module_new(w, "m"));
        for (int i = 0; i < LAYERS; i++)
            cr_assert_not_null(run_layer(&l, i, i == 1 ? weft_iota(w, 4) : x, x, &map));
        if (weft_ok(w)) {
            cr_assert(n > 40, "%lld allocations were made to fail", (long long)n - 1);
            CLEAN(w);
            break;
        }
        cr_assert(weft_error(w) == WEFT_ENOMEM, "%s", weft_message(w));
        CLEAN_FAILED(w);
    }
}

Test(layers, any_piece_of_a_step_may_fail)
{
    weft *w = open_on(WEFT_CPU);
    weft_module *m = weft_module_new(w, "m");
    layers l = all_layers(m);
    for (int64_t n = 1, done = 0; !done; n++) {
        weft_tensor *map;
        w->fail_in = n;
        for (int i = 0; i < LAYERS; i++) {
            weft_tensor *x = i == 1 ? weft_iota(w, 4) : ragged(w, 3, &some), *y = run_layer(&l, i, x, x, &map);
            weft_backward(y);
        }
        done = weft_ok(w);
        cr_assert(done ? n > 100 : weft_error(w) == WEFT_ENOMEM, "%lld: %s", (long long)n, weft_message(w));
        w->fail_in = 0;
        weft_recover(w);
        for (int i = 0; i < weft_parameters(m); i++)
            cr_assert(numbers(weft_gradient(weft_parameter_at(m, i, NULL)))[0] == 0);
    }
    CLEAN(w);
}
