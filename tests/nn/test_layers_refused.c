/* test_layers_refused.c - tests that layers refuse invalid shapes and options, and survive failures of
 * memory. */
#include "autograd/tape.h"
#include "layers.h"

enum { LINEAR, EMBEDDING, NORM, DROP, MLP, ATTENTION, MULTIHEAD = ATTENTION + 2, LAYERS };
static const char *const layer_names[LAYERS] = { "linear", "embedding", "norm",    "drop",
                                                 "mlp",    "additive",  "general", "multihead" };

static void *layer_new(weft_module *m, const char *name, int kind)
{
    static const weft_attention_layer_opts attention[] = { { WEFT_ADDITIVE, .dq = 3, .dm = 3, .width = 3 },
                                                           { WEFT_GENERAL, .dq = 3, .dm = 3 },
                                                           { WEFT_MULTIHEAD, .width = 3, .heads = 1 } };
    static const int64_t widths[] = { 3, 3, 3 };
    switch (kind) {
    case LINEAR: return weft_linear_new(m, name, &(weft_linear_opts){ .in = 3, .out = 3 });
    case EMBEDDING:
        return weft_embedding_new(
            m, name, &(weft_embedding_opts){ .rows = 5, .columns = 3, .padding = 0, .has_padding = true });
    case NORM: return weft_layer_norm_new(m, name, &(weft_layer_norm_opts){ .width = 3 });
    case DROP: return weft_dropout_new(m, name, &(weft_dropout_opts){ .p = (weft_real).1 });
    case MLP:  return weft_mlp_new(m, name, &(weft_mlp_opts){ 2, widths, WEFT_GELU, (weft_real).1 });
    default:   return weft_attention_new(m, name, &attention[kind - ATTENTION]);
    }
}
static void all_layers(weft_module *m, void **l)
{
    for (int i = 0; i < LAYERS; i++)
        l[i] = layer_new(m, layer_names[i], i);
}

static weft_tensor *run_layer(void *const *l, int i, weft_tensor *x, weft_tensor *memory, weft_tensor **map)
{
    switch (i) {
    case LINEAR:    return weft_linear_run(l[i], x);
    case EMBEDDING: return weft_embedding_run(l[i], x);
    case NORM:      return weft_layer_norm_run(l[i], x);
    case DROP:      return weft_dropout_run(l[i], x);
    case MLP:       return weft_mlp_run(l[i], x);
    default:        return weft_attention_run(l[i], x, memory, WEFT_ALL_KEYS, map);
    }
}

CPU_TEST(layers_refused, messages_name_the_layer)
{
    void *l[LAYERS];
    all_layers(weft_submodule_new(weft_module_new(w, "net"), "part"), l);
    for (int i = 0; i < LAYERS; i++)
        for (int kind = 0; kind < 2; kind++) {
            char place[64];
            snprintf(place, sizeof place, "net.part.%s", layer_names[i]);
            weft_tensor *memory = ragged(w, 3, &some), *wrong = ragged(w, 2, &some), *map,
                        *ints = weft_ragged_ints(w, lengths_of_n,
                                                 &(weft_lengths){ .n = 1, .len = (int32_t[]){ 4 } });
            weft_tensor *x[] = { wrong, i == 1 ? memory : ints };
            if (i == 3 && kind == 0)
                continue;                        /* dropout takes any width */
            if (i == 1 && kind == 0)
                x[0] = weft_ints(w, (int32_t[]){ 0, 5 }, WEFT_SHAPE(2));      /* an id too large */
            weft_tensor *y = run_layer(l, i, x[kind], memory, &map);
            cr_assert(y && weft_numel(y) == 0, "%s, kind %d", layer_names[i], kind);
            cr_assert(strstr(weft_error_message(w), place), "%s, kind %d: %s", place, kind,
                      weft_error_message(w));
            cr_assert_null(w->tape->scope, "the scope stayed open");
            weft_recover(w);
        }
}

CPU_TEST(layers_refused, invalid_memories_are_refused)
{
    void *l[LAYERS];
    all_layers(weft_module_new(w, "net"), l);
    for (int i = ATTENTION; i < LAYERS; i++)
        for (int kind = 0; kind < 6; kind++) {
            weft_tensor *q = ragged(w, 3, &some), *plain = weft_zeros(w, WEFT_SHAPE(N, 3));
            struct { weft_tensor *q, *memory; const char *part;
            } bad[] = { { q, NULL, "memory is NULL" },
                        { q, plain, "ragged of rank 2" },
                        { q, ragged(w, 4, &some), "" },
                        { q, ragged(w, 3, &(weft_lengths){ .n = 3, .len = lengths_of_n }),
                          "4, memory of 3 sequences" },
                        { weft_zeros(w, WEFT_SHAPE(3, 3)), q, "3, memory of 4 sequences" },
                        { weft_zeros(w, WEFT_SHAPE(N, 3, 3, 1)), q, "rank 2" } };
            weft_tensor *map = NULL;
            run_layer(l, i, bad[kind].q, bad[kind].memory, &map);
            cr_assert(map && !weft_ok(w) && strstr(weft_error_message(w), bad[kind].part) &&
                          strstr(weft_error_message(w), layer_names[i]),
                      "%s, kind %d: %s", layer_names[i], kind, weft_error_message(w));
            weft_recover(w);
        }
    weft_attention_run(l[MULTIHEAD], ragged(w, 3, &some), ragged(w, 3, &some), (weft_causal)7, NULL);
    FAILS(w, WEFT_EARG, "weft_causal");
}

CPU_TEST(layers_refused, invalid_options_are_refused)
{
    weft_module *m = weft_module_new(w, "m");
    static const int64_t widths[] = { 2, 2, 2 };
    static const weft_mlp_opts mlp[] = { { 0, widths, WEFT_RELU, 0 },
                                         { 1, NULL, WEFT_RELU, 0 },
                                         { 2, widths, (weft_activation)50, 0 },
                                         { 2, widths, WEFT_RELU, 1 },
                                         { 2, widths, WEFT_RELU, (weft_real)NAN } };
    static const weft_embedding_opts rows[] = {
        { .rows = -1, .columns = 2 },
        { .columns = 2 },
        { .rows = 4 },
        { .rows = 4, .columns = 2, .padding = 4 },
        { .rows = 4, .columns = 2, .padding = -1, .has_padding = true },
        { .rows = (int64_t)1 << 33, .columns = 1 },
        { .columns = 2, .has_padding = true }
    };
    for (int i = 0; i <= COUNT(mlp); i++)
        FAILS_AT(w, weft_mlp_new(m, "x", i < COUNT(mlp) ? &mlp[i] : NULL), WEFT_EARG, "mlp: ");
    for (int i = 0; i <= COUNT(rows); i++) {
        weft_embedding_new(m, "x", i < COUNT(rows) ? &rows[i] : NULL);
        FAILS(w, WEFT_EARG, "embedding \"x\" in m: ");
    }
    for (int i = 0; i < 3; i++) {
        weft_attention_new(m, "x",
                           &(weft_attention_layer_opts){ .kind = WEFT_MULTIHEAD,
                                                         .width = (int64_t[]){ 6, 0, 6 }[i],
                                                         .heads = (int[]){ 4, 1, 0 }[i] });
        FAILS(w, WEFT_EARG, "multihead_attention");
        weft_dropout_new(m, "x", &(weft_dropout_opts){ .p = (weft_real[]){ -1, 1, (weft_real)NAN }[i] });
        FAILS(w, WEFT_EARG, "dropout: ");
    }
    cr_assert(!m->child, "a refused layer left parameters");
    weft_linear_new(m, "l", &(weft_linear_opts){ .in = -1, .out = 2 });
    FAILS(w, WEFT_EARG, "linear \"l\" in m: in is -1; expected 1 or more");
    cr_assert(!m->child && !m->first && m->n == 0, "a failed layer left parameters");
}

static void one_layer(weft_module *m, int kind)
{
    if (kind < LAYERS)
        layer_new(m, "x", kind);
    else if (kind == LAYERS)
        weft_lstm_new(m, "x", &(weft_rnn_opts){ .input = 2, .hidden = 3, .bidirectional = true });
    else if (kind == LAYERS + 1)
        weft_parameter(m, "x", WEFT_SHAPE(3, 5), (weft_init){ WEFT_INIT_ORTHOGONAL, 1, 0 });
    else
        weft_ema_new(m, (weft_real).9);
}

/* The name of a failed module can be used again. Modules created before and after keep their initial
 * values. */
Test(layers_refused, name_is_free_after_a_failure)
{
    for (int kind = 0; kind <= LAYERS + 2; kind++)
        for (int64_t n = 1, failed = 0;; n++) {
            weft *w = open_on(WEFT_CPU), *v = open_on(WEFT_CPU);
            weft_module *m = weft_module_new(w, "m"), *same = weft_module_new(v, "m");
            weft_linear_new(m, "first", &(weft_linear_opts){ .in = 2, .out = 2 }),
                weft_linear_new(same, "first", &(weft_linear_opts){ .in = 2, .out = 2 });
            fail_in(w, n);
            one_layer(m, kind);
            bool left = none_failed(w);
            fail_in(w, 0);
            failed += !weft_ok(w);
            if (!weft_ok(w)) {
                weft_recover(w);
                cr_assert(weft_parameter_count(m) == 2 && weft_buffer_count(m) == 0,
                          "kind %d, allocation %lld: the module has parameters", kind, (long long)n);
                one_layer(m, kind);
            }
            one_layer(same, kind);
            weft_linear_new(m, "last", &(weft_linear_opts){ .in = 2, .out = 2 }),
                weft_linear_new(same, "last", &(weft_linear_opts){ .in = 2, .out = 2 });
            OK(w);
            cr_assert(m->n == same->n && weft_parameter_count(m) == weft_parameter_count(same));
            weft_real *a = calloc(2 * (size_t)m->n, sizeof *a);
            w->dev.k->download(&w->dev, a, m->values, (size_t)m->n * sizeof *a);
            v->dev.k->download(&v->dev, a + m->n, same->values, (size_t)m->n * sizeof *a);
            same_bits("values", a, a + m->n, m->n);
            free(a);
            CLEAN(w);
            CLEAN(v);
            if (left) {
                cr_assert(failed > 0, "kind %d: nothing failed", kind);
                break;
            }
        }
}

CPU_TEST(layers_refused, step_survives_failure_of_each_allocation)
{
    weft_module *m = weft_module_new(w, "m");
    void *l[LAYERS];
    all_layers(m, l);
    for (int64_t n = 1, done = 0; !done; n++) {
        weft_tensor *map;
        fail_take(w, n);
        for (int i = 0; i < LAYERS; i++) {
            weft_tensor *x = i == 1 ? weft_arange(w, 0, 4, 1) : ragged(w, 3, &some),
                        *y = run_layer(l, i, x, x, &map);
            /* only dropout trains nothing */
            weft_backward(weft_add(weft_sum_all(y), weft_sum_all(weft_parameter_at(m, 0, NULL))));
        }
        done = weft_ok(w);
        cr_assert(done ? n > 100 : weft_error_code(w) == WEFT_ENOMEM, "%lld: %s", (long long)n,
                  weft_error_message(w));
        fail_take(w, 0);
        weft_recover(w);
        for (int i = 0; i < weft_parameter_count(m); i++)
            cr_assert(numbers(weft_grad(weft_parameter_at(m, i, NULL)))[0] == 0);
    }
}
