/* test_layers_refused.c - tests that layers refuse invalid shapes and options, and survive failures of
 * memory. */
#include "autograd/tape.h"
#include "core/inside.h"
#include "layers.h"

typedef struct {
    weft_linear *linear;
    weft_embedding *embedding;
    weft_norm_layer *norm;
    weft_dropout_layer *drop;
    weft_mlp *mlp;
    weft_attention_layer *additive;
    weft_attention_layer *general;
    weft_attention_layer *multihead;
} layers;

static layers all_layers(weft_module *m)
{
    return (layers){
        weft_linear_new(m, "linear", &(weft_linear_opts){ .in = 3, .out = 3 }),
        weft_embedding_new(
            m, "embedding",
            &(weft_embedding_opts){ .rows = 5, .columns = 3, .padding = 0, .has_padding = true }),
        weft_layer_norm_new(m, "norm", &(weft_layer_norm_opts){ .width = 3 }),
        weft_dropout_new(m, "drop", &(weft_dropout_opts){ .p = (weft_real).1 }),
        weft_mlp_new(m, "mlp", &(weft_mlp_opts){ 2, (int64_t[]){ 3, 3, 3 }, WEFT_GELU, (weft_real).1 }),
        weft_attention_new(
            m, "additive",
            &(weft_attention_layer_opts){ .kind = WEFT_ADDITIVE, .dq = 3, .dm = 3, .width = 3 }),
        weft_attention_new(m, "general",
                           &(weft_attention_layer_opts){ .kind = WEFT_GENERAL, .dq = 3, .dm = 3 }),
        weft_attention_new(m, "multihead",
                           &(weft_attention_layer_opts){ .kind = WEFT_MULTIHEAD, .width = 3, .heads = 1 })
    };
}

static weft_tensor *run_layer(const layers *l, int i, weft_tensor *x, weft_tensor *memory, weft_tensor **map)
{
    switch (i) {
    case 0: return weft_linear_run(l->linear, x);
    case 1: return weft_embedding_run(l->embedding, x);
    case 2:
        return weft_layer_norm_run(l->norm, x);
    case 3:
        return weft_dropout_run(l->drop, x);
    case 4: return weft_mlp_run(l->mlp, x);
    case 5:
        return weft_attention_run(l->additive, x, memory, WEFT_ALL_KEYS, map);
    case 6:
        return weft_attention_run(l->general, x, memory, WEFT_ALL_KEYS, map);
    case 7:
        return weft_attention_run(l->multihead, x, memory, WEFT_ALL_KEYS, map);
    }
    return NULL;
}
enum { LAYERS = 8, ATTENTION = 5 };
static const char *const layer_names[LAYERS] = { "linear", "embedding", "norm",    "drop",
                                                 "mlp",    "additive",  "general", "multihead" };

CPU_TEST(layers_refused, messages_name_the_layer)
{
    layers l = all_layers(weft_submodule_new(weft_module_new(w, "net"), "part"));
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
            weft_tensor *y = run_layer(&l, i, x[kind], memory, &map);
            cr_assert(y && weft_numel(y) == 0, "%s, kind %d", layer_names[i], kind);
            cr_assert(strstr(weft_error_message(w), place), "%s, kind %d: %s", place, kind,
                      weft_error_message(w));
            cr_assert_null(w->tape->scope, "the scope stayed open");
            weft_recover(w);
        }
}

CPU_TEST(layers_refused, invalid_memories_are_refused)
{
    layers l = all_layers(weft_module_new(w, "net"));
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
            run_layer(&l, i, bad[kind].q, bad[kind].memory, &map);
            cr_assert(map && !weft_ok(w) && strstr(weft_error_message(w), bad[kind].part) &&
                          strstr(weft_error_message(w), layer_names[i]),
                      "%s, kind %d: %s", layer_names[i], kind, weft_error_message(w));
            weft_recover(w);
        }
    weft_attention_run(l.multihead, ragged(w, 3, &some), ragged(w, 3, &some), (weft_causal)7, NULL);
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
    for (int i = 0; i <= COUNT(mlp); i++) {
        weft_mlp_new(m, "x", i < COUNT(mlp) ? &mlp[i] : NULL);
        FAILS(w, WEFT_EARG, "mlp: ");
    }
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
    for (int64_t width = -1; width < 1; width++) {
        weft_layer_norm_new(m, "n", &(weft_layer_norm_opts){ .width = width });
        FAILS(w, WEFT_EARG,
              width ? "layer_norm \"n\" in m: width is -1;" :
                      "layer_norm \"n\" in m: width is 0, or missing; expected 1");
    }
    weft_attention_new(m, "g", &(weft_attention_layer_opts){ .kind = WEFT_GENERAL, .dq = 2, .dm = -1 });
    FAILS(w, WEFT_EARG, "general_attention \"g\" in m: dm is -1");
    weft_attention_new(m, "a",
                       &(weft_attention_layer_opts){ .kind = WEFT_ADDITIVE, .dq = 2, .dm = 2, .width = -1 });
    FAILS(w, WEFT_EARG, "additive_attention \"a\" in m: width is -1");
    cr_assert(!m->child && !m->first && m->n == 0, "a failed layer left parameters");
}

static uint64_t one_layer(weft_module *m, int kind)                /* how many numbers it trains */
{
    static const int64_t widths[] = { 2, 3, 2 };
    switch (kind) {
    case 0:  weft_linear_new(m, "x", &(weft_linear_opts){ .in = 2, .out = 3 }); break;
    case 1:
        weft_embedding_new(
            m, "x", &(weft_embedding_opts){ .rows = 4, .columns = 2, .padding = 1, .has_padding = true });
        break;
    case 2:
        weft_layer_norm_new(m, "x", &(weft_layer_norm_opts){ .width = 3 });
        break;
    case 3:
        weft_dropout_new(m, "x", &(weft_dropout_opts){ 0 });
        break;
    case 4:  weft_mlp_new(m, "x", &(weft_mlp_opts){ 2, widths, WEFT_RELU, 0 }); break;
    case 5:
        weft_attention_new(
            m, "x", &(weft_attention_layer_opts){ .kind = WEFT_ADDITIVE, .dq = 2, .dm = 3, .width = 4 });
        break;
    case 6:
        weft_attention_new(m, "x", &(weft_attention_layer_opts){ .kind = WEFT_GENERAL, .dq = 2, .dm = 3 });
        break;
    case 7:
        weft_attention_new(m, "x",
                           &(weft_attention_layer_opts){ .kind = WEFT_MULTIHEAD, .width = 4, .heads = 2 });
        break;
    case 8:  weft_lstm_new(m, "x", &(weft_rnn_opts){ .input = 2, .hidden = 3, .bidirectional = true }); break;
    case 9:  weft_parameter(m, "x", WEFT_SHAPE(3, 5), (weft_init){ WEFT_INIT_ORTHOGONAL, 1, 0 }); break;
    default: weft_ema_new(m, (weft_real).9); break;
    }
    return (uint64_t)weft_parameter_numel(m);
}

/* The name of a failed module can be used again. Modules created before and after keep their initial
 * values. */
Test(layers_refused, name_is_free_after_a_failure)
{
    for (int kind = 0; kind <= 10; kind++)
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
    layers l = all_layers(m);
    for (int64_t n = 1, done = 0; !done; n++) {
        weft_tensor *map;
        fail_take(w, n);
        for (int i = 0; i < LAYERS; i++) {
            weft_tensor *x = i == 1 ? weft_arange(w, 0, 4, 1) : ragged(w, 3, &some),
                        *y = run_layer(&l, i, x, x, &map);
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
