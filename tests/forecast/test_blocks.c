/* test_blocks.c - the blocks of gated residual networks against their formulas by plain loops; ragged and
 * plain alike; gradients. */
#include "tests/nn/layers.h"

/* ---- by loops, in double ---- */
enum { WIDE = 16 };
typedef struct { double x[WIDE]; int n; } row;

static row row_of(const weft_real *x, int64_t n)
{
    row r = { .n = (int)n };
    for (int i = 0; i < r.n; i++)
        r.x[i] = (double)x[i];
    return r;
}
/* path.weight, and path.bias if there is one */
static row linear(const weft_module *m, const char *path, row x, int out)
{
    char name[96];
    row y = { .n = out };
    snprintf(name, sizeof name, "%s.weight", path);
    const weft_real *w = of(m, name);
    snprintf(name, sizeof name, "%s.bias", path);
    const weft_real *b = weft_find_parameter(m, name) ? of(m, name) : NULL;
    for (int o = 0; o < out; o++) {
        y.x[o] = b ? (double)b[o] : 0;
        for (int i = 0; i < x.n; i++)
            y.x[o] += (double)w[o * x.n + i] * x.x[i];
    }
    return y;
}
static row added(row a, row b)
{
    for (int i = 0; i < a.n; i++)
        a.x[i] += b.x[i];
    return a;
}
static double sigma(double x) { return 1 / (1 + exp(-x)); }
static row glu(const weft_module *m, const char *path, row x, int out)
{
    row both = linear(m, path, x, 2 * out), y = { .n = out };
    for (int o = 0; o < out; o++)
        y.x[o] = both.x[o] * sigma(both.x[out + o]);
    return y;
}
static row norm(const weft_module *m, const char *path, row x)
{
    char name[96];
    double mean = 0, var = 0;
    snprintf(name, sizeof name, "%s.weight", path);
    const weft_real *gain = of(m, name);
    snprintf(name, sizeof name, "%s.bias", path);
    const weft_real *shift = of(m, name);
    for (int i = 0; i < x.n; i++)
        mean += x.x[i] / x.n;
    for (int i = 0; i < x.n; i++)
        var += (x.x[i] - mean) * (x.x[i] - mean) / x.n;
    for (int i = 0; i < x.n; i++)
        x.x[i] = (x.x[i] - mean) / sqrt(var + 1e-5) * (double)gain[i] + (double)shift[i];
    return x;
}
static row scaled(const weft_real *mask, row x)
{
    for (int i = 0; i < x.n; i++)
        x.x[i] *= 2 * sigma((double)mask[i]);
    return x;
}
static row resampled(row x, int out)
{
    row y = { .n = out };
    for (int j = 0; j < out; j++) {
        double at = out > 1 ? (double)j * (x.n - 1) / (out - 1) : 0;
        int i = (int)at;
        y.x[j] = x.x[i] + (at - i) * ((i + 1 < x.n ? x.x[i + 1] : 0) - x.x[i]);
    }
    return y;
}
static row elu(row x)
{
    for (int i = 0; i < x.n; i++)
        x.x[i] = x.x[i] > 0 ? x.x[i] : expm1(x.x[i]);
    return x;
}
static row grn(const weft_module *m, row x, const row *context, int hidden, int out)
{
    row h = linear(m, "fc1", x, hidden);
    if (context)
        h = added(h, linear(m, "fc3", *context, hidden));
    h = glu(m, "glu1.fc1", linear(m, "fc2", elu(h), out), out);
    row skip = weft_find_parameter(m, "project.weight") ?
                   linear(m, "project", x, out) :
               weft_find_parameter(m, "resample.mask") ?
                   norm(m, "resample.norm", scaled(of(m, "resample.mask"), resampled(x, out))) :
                   x;
    return norm(m, "norm", added(h, skip));
}
#define BLOCK_TOL TOL(1e-12, 2e-5)
static void same_rows(const char *name, weft_tensor *y, const row *want, int64_t rows)
{
    weft_real *got = numbers(weft_layout_of(y) == WEFT_PLAIN ? y : weft_to_layout(y, WEFT_CONCAT)),
              expected[WIDE];
    for (int64_t r = 0; r < rows; r++) {
        for (int i = 0; i < want[r].n; i++)
            expected[i] = (weft_real)want[r].x[i];
        close_to(name, got + r * want[r].n, expected, want[r].n, BLOCK_TOL);
    }
}

/* ---- gates and sums ---- */
Test(blocks, gates_and_residual_sums)
{
    FOR_DEVICES(w) {
        weft_module *m = weft_module_new(w, "m");
        weft_glu *g = weft_glu_new(m, "glu", &(weft_glu_opts){ .in = 3, .out = 4 });
        weft_add_norm *plain = weft_add_norm_new(m, "plain", &(weft_add_norm_opts){ .width = 4 }),
                      *masked = weft_add_norm_new(m, "masked",
                                                  &(weft_add_norm_opts){ .width = 4, .trainable_add = true });
        weft_gate_add_norm *both = weft_gate_add_norm_new(
            m, "both", &(weft_gate_add_norm_opts){ .in = 3, .out = 4, .trainable_add = true });
        renew(m);
        weft_tensor *x = ragged(w, 3, &some), *skip = ragged(w, 4, &some);
        row out[4][TOKENS];
        for (int t = 0; t < TOKENS; t++) {
            row in = row_of(numbers(x) + 3 * t, 3), s = row_of(numbers(skip) + 4 * t, 4);
            out[0][t] = glu(m, "glu.fc1", in, 4);
            out[1][t] = norm(m, "plain.norm", added(out[0][t], s));
            out[2][t] = norm(m, "masked.norm", added(out[0][t], scaled(of(m, "masked.mask"), s)));
            out[3][t] = norm(m, "both.add_norm.norm",
                             added(glu(m, "both.glu.fc1", in, 4), scaled(of(m, "both.add_norm.mask"), s)));
        }
        weft_tensor *u = weft_glu_run(g, x);
        same_rows("glu", u, out[0], TOKENS);
        same_rows("add_norm", weft_add_norm_run(plain, u, skip), out[1], TOKENS);
        same_rows("trainable add_norm", weft_add_norm_run(masked, u, skip), out[2], TOKENS);
        same_rows("gate_add_norm", weft_gate_add_norm_run(both, x, skip), out[3], TOKENS);
        weft_tensor *alike = weft_gate_add_norm_run(both, weft_plain(x), weft_plain(skip)),
                    *packed = weft_gate_add_norm_run(both, weft_to_layout(x, WEFT_PACKED), skip);
        same_rows("plain", alike, out[3], TOKENS);
        same_rows("packed", packed, out[3], TOKENS);
        weft_tensor *cube =
            weft_gate_add_norm_run(both, weft_reshape(weft_plain(x), 3, (int64_t[]){ 3, 3, 3 }),
                                   weft_reshape(weft_plain(skip), 3, (int64_t[]){ 3, 3, 4 }));
        cr_assert(weft_rank(cube) == 3 && weft_size(cube, 2) == 4);
        same_bits("of rank 3", numbers(cube), numbers(alike), TOKENS * 4);
    }
}

Test(blocks, features_resampled)
{
    static const weft_real up[] = { 1, 2, 4, 8 }, count[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    static const struct { const weft_real *x; int64_t in, out; double y[8];
    } cases[] = { { up, 4, 7, { 1, 1.5, 2, 3, 4, 6, 8 } },
                  { count, 8, 3, { 0, 3.5, 7 } },
                  { count, 8, 8, { 0, 1, 2, 3, 4, 5, 6, 7 } },
                  { up, 4, 2, { 1, 8 } } };
    FOR_DEVICES(w)
        for (int c = 0; c < COUNT(cases); c++) {
            weft_module *m = weft_module_new(w, "m");
            weft_resample_norm *r = weft_resample_norm_new(
                m, "r",
                &(weft_resample_norm_opts){ .in = cases[c].in, .out = cases[c].out, .trainable_add = true });
            renew(m);
            row y = { .n = (int)cases[c].out };
            memcpy(y.x, cases[c].y, sizeof cases[c].y);
            y = norm(m, "r.norm", scaled(of(m, "r.mask"), y));
            same_rows("resampled",
                      weft_resample_norm_run(r, weft_reals(w, cases[c].x, WEFT_SHAPE(1, cases[c].in))), &y,
                      1);
        }
    weft *w = open_on(WEFT_CPU);
    weft_module *m = weft_module_new(w, "m");
    /* of one number the norm is its bias */
    weft_resample_norm *first =
        weft_resample_norm_new(m, "first", &(weft_resample_norm_opts){ .in = 4, .out = 1 });
    cr_assert(numbers(weft_resample_norm_run(first, weft_reals(w, up, WEFT_SHAPE(1, 4))))[0] == 0);
    CLEAN(w);
}

/* ---- GRN ---- */
static weft_tensor *run_grn(weft_tensor *const *x, void *g)       { return weft_grn_run(g, x[0], x[1]); }
static weft_tensor *run_grn_alone(weft_tensor *const *x, void *g) { return weft_grn_run(g, x[0], NULL); }

Test(blocks, gated_residual_networks)
{
    static const struct { int64_t in, out, hidden, context; bool interpolate;
    } of_a_kind[] = { { 3, 3, 0, 0, false },
                      { 3, 5, 4, 0, false },
                      { 3, 5, 2, 2, true },
                      { 5, 2, 0, 2, true },
                      { 2, 2, 7, 2, false } };
    FOR_DEVICES(w)
        for (int k = 0; k < COUNT(of_a_kind); k++) {
            int64_t in = of_a_kind[k].in, out = of_a_kind[k].out, hidden = of_a_kind[k].hidden,
                    context = of_a_kind[k].context;
            weft_module *m = weft_module_new(w, "m");
            weft_grn_opts o = { .dropout = .1 };
            o.in = in, o.out = out, o.hidden = hidden, o.context = context,
            o.interpolate = of_a_kind[k].interpolate, o.dropout = 0;
            weft_grn *g = weft_grn_new(m, "g", &o);
            renew(m);
            weft_tensor *x = ragged(w, in, &some), *c = context ? drawn(w, WEFT_SHAPE(N, context)) : NULL;
            row want[TOKENS];
            for (int s = 0, t = 0; s < N; s++)
                for (int i = 0; i < lengths_of_n[s]; i++, t++) {
                    row of_c = context ? row_of(numbers(c) + s * context, context) : (row){ 0 };
                    want[t] = grn(m->child, row_of(numbers(x) + t * in, in), context ? &of_c : NULL,
                                  (int)(hidden ? hidden : in), (int)out);
                }
            weft_tensor *y = weft_grn_run(g, x, c);
            same_rows("grn", y, want, TOKENS);
            same_rows("a context for each row", weft_grn_run(g, x, c ? weft_broadcast_to_tokens(c, x) : NULL),
                      want, TOKENS);
            /* [N, 5, in] beside [N, context] */
            weft_tensor *full = weft_pad_packed_sequence(x, 5, 0, WEFT_ALIGN_LEFT),
                        *padded = weft_grn_run(g, full, c);
            same_rows("plain of rank 3", weft_pack_padded_sequence(padded, &some, WEFT_ALIGN_LEFT), want,
                      TOKENS);
            if (w->dev.k->synchronous && k % 2 == 0)
                gradients_hold(m, (probe){ c ? run_grn : run_grn_alone, g }, (weft_tensor *[]){ x, c },
                               c ? 2 : 1);
        }
}

/* What is gated and what is added to it may come in unlike layouts: the bits are the same. */
Test(blocks, a_gate_and_its_skip_in_unlike_layouts)
{
    enum { IN = 5, OUT = 7 };
    FOR_DEVICES(w) {
        weft_module *m = weft_module_new(w, "m");
        weft_gate_add_norm *g =
            weft_gate_add_norm_new(m, "g", &(weft_gate_add_norm_opts){ .in = IN, .out = OUT });
        renew(m);
        weft_tensor *x = ragged(w, IN, &some), *skip = ragged(w, OUT, &some);
        const int32_t in_row[N] = { 0, 0, 1, 1 }, column[N] = { 0, 3, 0, 5 };
        weft_tensor *of[] = { skip, weft_to_layout(skip, WEFT_PACKED),
                              weft_to_rows(skip, &(weft_placement){ 2, 6, in_row, column }) };
        const weft_real *want = numbers(weft_gate_add_norm_run(g, x, skip));
        for (int i = 0; i < COUNT(of); i++) {
            weft_tensor *y = weft_gate_add_norm_run(g, x, of[i]);
            same_bits("gated", numbers(weft_to_layout(y, WEFT_CONCAT)), want, TOKENS * OUT);
        }
    }
}

/* ---- variable selection ---- */
static weft_tensor *run_selection(weft_tensor *const *x, void *v)
{
    return weft_variable_selection_run(v, x[0], x[1], NULL);
}

static const weft_module *below(const weft_module *m, const char *name)
{
    for (m = m->child; m && strcmp(m->name, name); m = m->sibling)
        ;
    cr_assert(m, "%s", name);
    return m;
}

/* One row: what each feature says, and how much it counts. */
static row select_by_loops(const weft_module *m, row x, row context, int d_hidden, int d_model, double *share)
{
    row all = { .n = x.n * d_hidden }, y = { .n = d_model };
    char number[16];
    for (int i = 0; i < x.n; i++) {
        snprintf(number, sizeof number, "%d", i);
        row one =
            linear(below(below(m, "prescalers"), number)->parent, number, (row){ { x.x[i] }, 1 }, d_hidden);
        memcpy(all.x + i * d_hidden, one.x, (size_t)d_hidden * sizeof *one.x);
    }
    double most = -INFINITY, sum = 0;
    row logits = { .n = 1 };
    if (x.n > 1)
        logits = grn(below(m, "flattened_grn"), all, &context, d_model < x.n ? d_model : x.n, x.n);
    for (int i = 0; i < x.n; i++)
        most = fmax(most, logits.x[i]);
    for (int i = 0; i < x.n; i++)
        sum += exp(logits.x[i] - most);
    for (int i = 0; i < x.n; i++) {
        snprintf(number, sizeof number, "%d", i);
        row p = { .n = d_hidden };
        memcpy(p.x, all.x + i * d_hidden, (size_t)d_hidden * sizeof *p.x);
        row e = grn(below(below(m, "single_grn"), number), p, NULL, d_hidden < d_model ? d_hidden : d_model,
                    d_model);
        share[i] = exp(logits.x[i] - most) / sum;
        for (int o = 0; o < d_model; o++)
            y.x[o] += share[i] * e.x[o];
    }
    return y;
}

Test(blocks, variable_selection)
{
    enum { D_HIDDEN = 3, D_MODEL = 5, CONTEXT = 2 };
    FOR_DEVICES(w)
        for (int n = 1; n <= 4; n++) {
            weft_module *m = weft_module_new(w, "m");
            weft_variable_selection *v = weft_variable_selection_new(
                m, "v", &(weft_variable_selection_opts){ n, D_HIDDEN, D_MODEL, CONTEXT, 0 });
            renew(m);
            weft_tensor *x = ragged(w, n, &some), *c = drawn(w, WEFT_SHAPE(N, CONTEXT)), *weights;
            row want[TOKENS];
            double share[TOKENS][4];
            for (int s = 0, t = 0; s < N; s++)
                for (int i = 0; i < lengths_of_n[s]; i++, t++)
                    want[t] = select_by_loops(m->child, row_of(numbers(x) + t * n, n),
                                              row_of(numbers(c) + s * CONTEXT, CONTEXT), D_HIDDEN, D_MODEL,
                                              share[t]);
            weft_tensor *y = weft_variable_selection_run(v, x, c, &weights);
            same_rows("selected", y, want, TOKENS);
            cr_assert(weft_layout_of(weights) == WEFT_CONCAT && weft_size(weights, 0) == TOKENS &&
                      weft_size(weights, 1) == n);
            for (int t = 0; t < TOKENS; t++)
                for (int i = 0; i < n; i++)
                    cr_assert(fabs((double)numbers(weights)[t * n + i] - share[t][i]) < BLOCK_TOL,
                              "%d features, row %d", n, t);
            if (w->dev.k->synchronous && n == 2)
                gradients_hold(m, (probe){ run_selection, v }, (weft_tensor *[]){ x, c }, 2);
        }
}

/* ---- attention with shared values ---- */
static weft_tensor *run_attention(weft_tensor *const *x, void *a)
{
    return weft_interpretable_attention_run(a, x[0], x[1], WEFT_CAUSAL_TOP_LEFT, NULL, NULL);
}

Test(blocks, interpretable_attention_fused_and_with_all_scores)
{
    enum { D = 6, TQ = 3, TK = 4 };
    FOR_DEVICES(w) {
        weft_module *m = weft_module_new(w, "m");
        weft_interpretable_attention *a = weft_interpretable_attention_new(
            m, "a", &(weft_interpretable_attention_opts){ .d_model = D, .heads = 2 });
        renew(m);
        weft_tensor *q = drawn(w, WEFT_SHAPE(2, TQ, D)), *memory = drawn(w, WEFT_SHAPE(2, TK, D)), *map, *all;
        weft_lengths lq = { .n = 2, .len = (int32_t[]){ TQ, TQ } },
                     lk = { .n = 2, .len = (int32_t[]){ TK, TK } };
        weft_real seen[2 * TQ * TK];
        for (int i = 0; i < COUNT(seen); i++)
            seen[i] = i % TK <= i / TK % TQ;
        weft_tensor *mask = weft_reals(w, seen, WEFT_SHAPE(2, TQ, TK)),
                    *of_all = weft_full(w, 1, WEFT_SHAPE(2, 1, TK));
        weft_tensor *plain = weft_interpretable_attention_run(a, q, memory, WEFT_CAUSAL_TOP_LEFT, NULL, NULL),
                    *masked = weft_interpretable_attention_run(a, q, memory, WEFT_ALL_KEYS, mask, &all);
        close_to("with its map",
                 numbers(weft_interpretable_attention_run(a, q, memory, WEFT_CAUSAL_TOP_LEFT, NULL, &map)),
                 numbers(plain), 2 * TQ * D, BLOCK_TOL);
        close_to("plain and masked", numbers(plain), numbers(masked), 2 * TQ * D, BLOCK_TOL);
        weft_tensor *packed = weft_interpretable_attention_run(
            a, weft_pack_padded_sequence(q, &lq, WEFT_ALIGN_LEFT),
            weft_pack_padded_sequence(memory, &lk, WEFT_ALIGN_LEFT), WEFT_CAUSAL_TOP_LEFT, NULL, NULL);
        same_bits("packed", numbers(weft_pad_packed_sequence(packed, 0, 0, WEFT_ALIGN_LEFT)), numbers(plain),
                  2 * TQ * D);
        close_to("a mask of all",
                 numbers(weft_interpretable_attention_run(a, q, memory, WEFT_ALL_KEYS, of_all, NULL)),
                 numbers(weft_interpretable_attention_run(a, q, memory, WEFT_ALL_KEYS, NULL, NULL)),
                 2 * TQ * D, BLOCK_TOL);
        /* [n, Tq, Tk, heads] */
        weft_real *one = numbers(weft_to_layout(map, WEFT_CONCAT)),
                  *other = numbers(weft_transpose(weft_transpose(all, 1, 2), 2, 3));
        close_to("maps", one, other, 2 * TQ * TK * 2, BLOCK_TOL);
        weft_tensor *first = weft_reshape(weft_slice(q, 1, 0, 1), 2, (int64_t[]){ 2, D });
        same_bits(
            "one query each",
            numbers(weft_interpretable_attention_run(a, first, memory, WEFT_CAUSAL_TOP_LEFT, NULL, NULL)),
            numbers(weft_slice(plain, 1, 0, 1)), 2 * D);
        /* all keys evenly */
        weft_tensor *blind = weft_interpretable_attention_run(a, q, memory, WEFT_ALL_KEYS,
                                                              weft_zeros(w, WEFT_SHAPE(2, 1, TK)), &all);
        OK(w);
        for (int i = 0; i < 2 * 2 * TQ * TK; i++)
            cr_assert(fabs((double)numbers(all)[i] - 1. / TK) < 1e-6, "%d: %g", i, (double)numbers(all)[i]);
        cr_assert(weft_size(blind, 1) == TQ);
        if (w->dev.k->synchronous)
            gradients_hold(m, (probe){ run_attention, a },
                           (weft_tensor *[]){ ragged(w, D, &some), ragged(w, D, &some) }, 2);
    }
}

/* ---- first values, dropout ---- */
/* deviation 0: all 0 */
static void starts(const weft_module *m, const char *path, double deviation, double bound)
{
    weft_tensor *p = weft_find_parameter(m, path);
    cr_assert(p, "%s", path);
    int64_t n = weft_numel(p);
    double square = 0, most = 0;
    for (int64_t i = 0; i < n; i++)
        square += (double)of(m, path)[i] * (double)of(m, path)[i],
            most = fmax(most, fabs((double)of(m, path)[i]));
    cr_assert(deviation == 0 ? most == 0 : fabs(sqrt(square / (double)n) - deviation) < .15 * deviation,
              "%s: %g, not %g", path, sqrt(square / (double)n), deviation);
    cr_assert(bound == 0 || most <= bound, "%s: %g", path, most);
}

Test(blocks, first_values_are_the_originals)
{
    weft *w = open_on(WEFT_CPU);
    weft_module *m = weft_module_new(w, "m");
    weft_grn_new(m, "g", &(weft_grn_opts){ .in = 20, .out = 30, .hidden = 40, .context = 10 });
    weft_glu_new(m, "glu", &(weft_glu_opts){ .in = 20, .out = 30 }),
        weft_gate_add_norm_new(m, "gate",
                               &(weft_gate_add_norm_opts){ .in = 20, .out = 30, .trainable_add = true }),
        weft_interpretable_attention_new(m, "a",
                                         &(weft_interpretable_attention_opts){ .d_model = 32, .heads = 4 });
    starts(m, "g.fc1.weight", sqrt(2 / 20.), 0), starts(m, "g.fc2.weight", sqrt(2 / 40.), 0),
        starts(m, "g.glu1.fc1.weight", sqrt(2 / 30.), 0);
    starts(m, "g.fc1.bias", 0, 0), starts(m, "g.project.bias", 0, 0), starts(m, "g.glu1.fc1.bias", 0, 0);
    double fc3 = sqrt(6 / 50.), glu_bound = sqrt(6 / 80.), project = 1 / sqrt(20.), query = sqrt(6 / 40.);
    starts(m, "g.fc3.weight", fc3 / sqrt(3), fc3), starts(m, "g.project.weight", project / sqrt(3), project);
    starts(m, "glu.fc1.weight", glu_bound / sqrt(3), glu_bound), starts(m, "glu.fc1.bias", 0, 0),
        starts(m, "gate.add_norm.mask", 0, 0);
    starts(m, "a.query_layers.3.weight", query / sqrt(3), query), starts(m, "a.output_layer.bias", 0, 0);
    cr_assert(!weft_find_parameter(m, "g.fc3.bias"));
    CLEAN(w);
}

Test(blocks, dropout_in_training_only)
{
    weft *w = open_on(WEFT_CPU);
    weft_module *m = weft_module_new(w, "m");
    weft_glu *g = weft_glu_new(m, "glu", &(weft_glu_opts){ .in = 64, .out = 64, .dropout = (weft_real).5 });
    weft_interpretable_attention *a = weft_interpretable_attention_new(
        m, "a", &(weft_interpretable_attention_opts){ .d_model = 8, .heads = 2, .dropout = (weft_real).5 });
    weft_tensor *x = drawn(w, WEFT_SHAPE(4, 64)), *q = drawn(w, WEFT_SHAPE(3, 5, 8));
    cr_assert(memcmp(numbers(weft_glu_run(g, x)), numbers(weft_glu_run(g, x)), 4 * 64 * sizeof(weft_real)));
    weft_tensor *map;
    weft_interpretable_attention_run(a, q, q, WEFT_ALL_KEYS, NULL, &map);
    weft_real *of_map = numbers(weft_to_layout(map, WEFT_CONCAT));
    int zeros = 0;
    for (int i = 0; i < 3 * 5 * 5 * 2; i++)
        zeros += of_map[i] == 0;
    cr_assert(zeros > 45 && zeros < 105, "%d of 150 weights were dropped", zeros);
    weft_set_training(w, false);
    same_bits("evaluation", numbers(weft_glu_run(g, x)), numbers(weft_glu_run(g, x)), 4 * 64);
    same_bits("evaluation", numbers(weft_interpretable_attention_run(a, q, q, WEFT_ALL_KEYS, NULL, NULL)),
              numbers(weft_interpretable_attention_run(a, q, q, WEFT_ALL_KEYS, NULL, NULL)), 3 * 5 * 8);
    CLEAN(w);
}

/* ---- what they refuse ---- */
Test(blocks, what_cannot_be)
{
    weft *w = open_on(WEFT_CPU);
    weft_module *m = weft_module_new(w, "m");
    weft_grn *without = weft_grn_new(m, "without", &(weft_grn_opts){ .in = 3, .out = 3 }),
             *with = weft_grn_new(m, "with", &(weft_grn_opts){ .in = 3, .out = 3, .context = 2 });
    weft_variable_selection *v =
        weft_variable_selection_new(m, "v", &(weft_variable_selection_opts){ 3, 2, 4, 0, 0 });
    weft_interpretable_attention *a = weft_interpretable_attention_new(
        m, "a", &(weft_interpretable_attention_opts){ .d_model = 4, .heads = 2 });
    OK(w);
    weft_grn_run(without, ragged(w, 3, &some), weft_zeros(w, WEFT_SHAPE(N, 2)));
    FAILS(w, WEFT_EARG, "made without one");
    weft_grn_run(with, ragged(w, 3, &some), NULL);
    FAILS(w, WEFT_EARG, "grn: the context is NULL");
    weft_grn_run(with, ragged(w, 3, &some), weft_zeros(w, WEFT_SHAPE(N - 1, 2)));
    FAILS(w, WEFT_ESHAPE, "broadcast_to_tokens: [3, 3]");
    weft_variable_selection_run(v, ragged(w, 2, &some), NULL, NULL);
    FAILS(w, WEFT_ESHAPE, "[.., 3]");
    weft_variable_selection_run(v, ragged(w, 3, &some), weft_zeros(w, WEFT_SHAPE(N, 2)), NULL);
    FAILS(w, WEFT_EARG, "made without one");
    weft_interpretable_attention_run(a, ragged(w, 4, &some), ragged(w, 4, &some), WEFT_ALL_KEYS,
                                     weft_zeros(w, WEFT_SHAPE(2, 3, 5)), NULL);
    FAILS(w, WEFT_ESHAPE, "plain [n, Tq, 4]");
    weft_tensor *q = weft_zeros(w, WEFT_SHAPE(2, 3, 4)), *memory = weft_zeros(w, WEFT_SHAPE(2, 5, 4));
    weft_interpretable_attention_run(a, q, memory, WEFT_ALL_KEYS, q, NULL);
    FAILS(w, WEFT_ESHAPE, "a mask [n, Tq (or 1), Tk]");
    q = weft_zeros(w, WEFT_SHAPE(2, 3, 4));
    weft_interpretable_attention_run(a, q, q, WEFT_CAUSAL_STRICT, weft_zeros(w, WEFT_SHAPE(2, 3, 3)), NULL);
    FAILS(w, WEFT_EARG, "causal 3 and a mask; beside a mask WEFT_ALL_KEYS is expected");
    weft_interpretable_attention_run(a, weft_zeros(w, WEFT_SHAPE(2, 3, 4)),
                                     weft_zeros(w, WEFT_SHAPE(3, 3, 4)), WEFT_ALL_KEYS, NULL, NULL);
    FAILS(w, WEFT_ESHAPE, "sequences");
    weft_interpretable_attention_new(m, "b",
                                     &(weft_interpretable_attention_opts){ .d_model = 2, .heads = 5 });
    FAILS(w, WEFT_EARG, "d_model 2, 5 heads");
    weft_glu_new(m, "b", &(weft_glu_opts){ .in = 5, .out = 2, .dropout = 1 });
    FAILS(w, WEFT_EARG, "glu: dropout 1");
    weft_grn_new(m, "b", &(weft_grn_opts){ .in = 0, .out = 2 });
    FAILS(w, WEFT_ESHAPE, "grn: in 0");
    weft_variable_selection_new(m, "b", &(weft_variable_selection_opts){ 0, 2, 4, 0, 0 });
    FAILS(w, WEFT_ESHAPE, "0 features");
    /* what could not be made has left its name */
    weft_glu *good = weft_glu_new(m, "b", &(weft_glu_opts){ .in = 5, .out = 2 });
    OK(w);
    weft_add_norm_run(NULL, weft_zeros(w, WEFT_SHAPE(2, 2)), weft_zeros(w, WEFT_SHAPE(2, 2)));
    FAILS(w, WEFT_EARG, "add_norm: the layer is NULL");
    weft_glu_run(good, weft_zeros(w, WEFT_SHAPE(2, 4)));
    FAILS(w, WEFT_ESHAPE, "m.b.fc1: linear");
    CLEAN(w);
}
