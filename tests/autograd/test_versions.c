/* test_versions.c - tests parameters and buffers that change between a step's operators and its
 * weft_backward. It is an error if the backward reads them. Otherwise the gradients equal those without the
 * change. */
#include "tests/io/files.h"
#include "nn/nn.h"
#include "rnn/api_rnn.h"

static const weft_init unit = { WEFT_INIT_UNIFORM, -1, 1 };
static const weft_real threes[] = { 3, 3, 3, 3, 3, 3 }, fives[] = { 5, 5, 5, 5, 5, 5 };

/* a parameter and a buffer [2, 3] of threes */
typedef struct { weft *w; weft_module *m; weft_tensor *p, *b; } kept;

static kept kept_in(weft *w)
{
    kept k = { .w = w, .m = weft_module_new(w, "net") };
    k.p = weft_parameter(k.m, "p", WEFT_SHAPE(2, 3), unit);
    k.b = weft_buffer(k.m, "b", WEFT_SHAPE(2, 3));
    weft_assign_values(k.p, threes, 6), weft_assign_values(k.b, threes, 6);
    return k;
}

/* ---- kinds of change ---- */
static void by_values(kept *k)     { weft_assign_values(k->p, fives, 6); }
static void by_tensor(kept *k)     { weft_assign(k->p, weft_full(k->w, 5, WEFT_SHAPE(2, 3))); }
static void by_buffer(kept *k)     { weft_assign_values(k->b, fives, 6); }
static void by_init(kept *k)       { weft_initialise(k->p, unit); }
static void by_average(kept *k)    { weft_ema_swap(weft_ema_new(k->m, (weft_real).5)); }
static void by_a_step(kept *k)
{
    weft_optim *o = weft_sgd_new(k->m, NULL);
    weft_backward(weft_sum_all(k->p));
    weft_optim_step(o);
}
static void by_a_file(kept *k)
{
    const char *path = in_folder("a.h5");
    DOES(weft_save(path, k->m, NULL, NULL, 0));
    DOES(weft_load(path, k->m, NULL, NULL, 0));
    end_folder();
}

TABLE_TEST(versions, changes_to_values_read_by_backward_are_refused)
{
    void (*const ways[])(kept *) = { by_values, by_tensor, by_init, by_average, by_a_step, by_a_file };
    for (int i = 0; i < COUNT(ways); i++) {
        kept k = kept_in(w);
        /* p^2: the new p would give the gradient of the new p */
        weft_tensor *loss = weft_sum_all(weft_mul(k.p, k.p));
        ways[i](&k);
        OK(w);
        FAILS_AT(w, weft_backward(loss), WEFT_EARG, "backward of mul: net.p has changed since mul read it");
    }
}

/* ---- kinds of reading ---- */
static weft_tensor *by_itself(const kept *k)    { return weft_mul(k->p, k->b); }
static weft_tensor *as_a_view(const kept *k)    { return weft_square(weft_reshape(k->p, WEFT_SHAPE(6))); }
static weft_tensor *detached(const kept *k)
{
    return weft_reshape(weft_detach(weft_reshape(k->p, WEFT_SHAPE(3, 2))), WEFT_SHAPE(2, 3));
}
static weft_tensor *in_a_product(const kept *k)
{
    return weft_matmul_with(weft_square(k->b), false, k->p, true);
}
static weft_tensor *in_a_layer(const kept *k)
{
    return weft_softmax(weft_layer_norm(weft_mul(k->p, k->b), NULL, NULL, (weft_real)1e-5), 1, NULL);
}

TABLE_TEST(versions, changes_are_found_through_every_kind_of_reader)
{
    weft_tensor *(*const ways[])(const kept *) = { by_itself, as_a_view, in_a_product, in_a_layer };
    for (int i = 0; i < COUNT(ways); i++) {
        kept k = kept_in(w);
        weft_tensor *loss = weft_sum_all(ways[i](&k)), *g;
        by_values(&k);
        FAILS_AT(w, weft_gradients(loss, &k.p, 1, &g), WEFT_EARG, "net.p has changed since");
    }
}

TABLE_TEST(versions, changes_to_a_needed_constant_are_refused)
{
    kept k = kept_in(w);
    weft_tensor *loss = weft_sum_all(weft_mul(weft_pow(weft_add(k.p, k.b), 3), k.b));
    by_buffer(&k);
    FAILS_AT(w, weft_backward(loss), WEFT_EARG, "backward of mul: net.b has changed since mul read it");
    weft_tensor *q = weft_parameter(k.m, "q", WEFT_SHAPE(2, 3), unit);
    loss = weft_sum_all(weft_mul(q, detached(&k)));
    OK(w);
    by_values(&k);
    FAILS_AT(w, weft_backward(loss), WEFT_EARG, "backward of mul: net.p has changed since");
}

/* ---- values that backward does not read: the gradients equal those without the change ---- */
static weft_tensor *added(const kept *k)
{
    return weft_square(weft_sub(weft_add(k->p, k->b), weft_scale(k->b, 2)));
}
static weft_tensor *chosen(const kept *k)
{
    return weft_square(weft_where(weft_full(k->w, 1, WEFT_SHAPE(1, 3)), k->p, k->b));
}
static weft_tensor *looked_up(const kept *k)
{
    return weft_square(weft_index_select(k->p, weft_ints(k->w, (int32_t[]){ 1, 1, 0 }, WEFT_SHAPE(3))));
}
static weft_tensor *summed(const kept *k)
{
    return weft_square(weft_add(weft_sum(k->p, 0), weft_mean(k->p, 0)));
}
static weft_tensor *put(const kept *k)
{
    return weft_square(weft_concat(
        (weft_tensor *[]){ k->p, weft_transpose(weft_flip(weft_cumsum(k->p, 1), 0), 1, 0) }, 1, 0));
}
static weft_tensor *cut(const kept *k)
{
    return weft_square(weft_slice(weft_tile(weft_max(k->p, 1), 0, 2), 0, 1, 3));
}
static weft_tensor *by_the_result(const kept *k)
{
    return weft_add(weft_exp(k->p), weft_add(weft_tanh(k->p), weft_softmax(k->p, 1, NULL)));
}
static weft_tensor *of_a_copy(const kept *k)
{
    weft_tensor *x = weft_scale(k->p, 1);
    return weft_mul(x, x);
}

TABLE_TEST(versions, values_not_read_by_backward_may_change)
{
    weft_tensor *(*const ways[])(const kept *) = { added, chosen, looked_up,     summed,
                                                   put,   cut,    by_the_result, of_a_copy };
    for (int i = 0; i < COUNT(ways); i++) {
        kept a = kept_in(w), b = kept_in(w);
        weft_tensor *loss = weft_sum_all(ways[i](&a)), *other = weft_sum_all(ways[i](&b));
        by_values(&b), by_buffer(&b);
        weft_backward(loss), weft_backward(other);
        cr_assert(weft_ok(w), "%d: %s", i, weft_error_message(w));
        same_bits("a gradient", numbers(weft_grad(b.p)), numbers(weft_grad(a.p)), 6);
        weft_clear(w);
    }
}

/* An optimiser step before the backward of another loss is an error only if that loss reads the changed
 * parameters. */
CPU_TEST(versions, step_of_another_part_is_accepted)
{
    kept a = kept_in(w), b = kept_in(w);
    weft_optim *o = weft_sgd_new(a.m, NULL);
    weft_tensor *trunk = weft_square(b.p), *one = weft_sum_all(weft_mul(trunk, a.p)),
                *two = weft_sum_all(weft_square(trunk));
    weft_backward(one);
    weft_optim_step(o);
    weft_backward(two);
    OK(w);
}

/* ---- a carried state is assigned before the backward: recurrent layers keep their inputs ---- */
typedef struct { weft_module *m; weft_rnn *layer; weft_tensor *x, *h, *c; } stream;

static stream stream_in(weft *w, int kind, bool lean)
{
    stream s = { .m = weft_module_new(w, "net") };
    weft_rnn_opts o = { .input = 3, .hidden = 4, .layers = 2, .bidirectional = kind == 1, .lean = lean };
    s.layer = (kind == 0 ? weft_elman_new : kind == 1 ? weft_gru_new : weft_lstm_new)(s.m, "layer", &o);
    int64_t stacked = kind == 1 ? 4 : 2;
    s.h = weft_buffer(s.m, "h", WEFT_SHAPE(stacked, 3, 4)),
    s.c = weft_buffer(s.m, "c", WEFT_SHAPE(stacked, 3, 4));
    s.x = weft_parameter(s.m, "x", WEFT_SHAPE(6, 3), unit);
    return s;
}

static void run(stream *s, int kind, bool assigned, const int32_t *len)
{
    weft *w = s->x->w;
    weft_tensor *x =
        weft_ragged_like(s->x, weft_ragged(w, (weft_real[6]){ 0 }, 1, &(weft_lengths){ .n = 3, .len = len }));
    for (int t = 0; t < 2; t++) {
        weft_tensor *h = assigned ? s->h : weft_scale(s->h, 1), *c = assigned ? s->c : weft_scale(s->c, 1);
        weft_rnn_out y = weft_rnn_run(s->layer, x, (weft_state){ h, kind == 2 ? c : NULL });
        weft_tensor *loss = weft_sum_all(weft_square(y.y));
        for (int after = 0; after < 2; after++)
            if (after == assigned)
                weft_backward(loss);
            else {
                weft_assign(s->h, y.last.h);
                if (kind == 2)
                    weft_assign(s->c, y.last.c);
            }
        cr_assert(weft_ok(w), "%s", weft_error_message(w));
    }
    weft_clear(w);
}

TABLE_TEST(versions, states_of_recurrent_layers_may_change)
{
    static const int32_t lengths[][3] = { { 3, 2, 1 }, { 1, 2, 3 }, { 4, 0, 2 } };
    for (int i = 0; i < 18; i++) {
        int kind = i % 3;
        stream a = stream_in(w, kind, i / 3 % 2), b = stream_in(w, kind, i / 3 % 2);
        run(&a, kind, false, lengths[i / 6]), run(&b, kind, true, lengths[i / 6]);
        for (int k = 0; k < weft_parameter_count(a.m); k++) {
            weft_tensor *want = weft_grad(weft_parameter_at(a.m, k, NULL)),
                        *got = weft_grad(weft_parameter_at(b.m, k, NULL));
            same_bits("a gradient", numbers(got), numbers(want), weft_numel(want));
        }
    }
}

CPU_TEST(versions, weights_of_recurrent_layers_may_not_change)
{
    stream s = stream_in(w, 2, false);
    weft_tensor *x =
        weft_ragged_like(s.x, weft_ragged(w, (weft_real[6]){ 0 }, 1,
                                          &(weft_lengths){ .n = 3, .len = (int32_t[]){ 3, 2, 1 } }));
    weft_tensor *loss = weft_sum_all(weft_rnn_run(s.layer, x, WEFT_ZERO_STATE).y);
    weft_initialise(weft_find_parameter(s.m, "layer.weight_hh_l1"), unit);
    weft_backward(loss);
    FAILS(w, WEFT_EARG, "backward of lstm: net.layer.weight_hh_l1 has changed since lstm read it");
}

/* ---- a program's operator reads all inputs unless it declares otherwise ---- */
static void twice(weft_call *c)
{
    for (int64_t i = 0; i < weft_numel(c->y[0]); i++)
        weft_op_data(c->y[0])[i] = 2 * weft_op_data(c->x[0])[i];
}
static weft_tensor *twice_back(const weft_call *c, weft_tensor *dy, int i)
{
    (void)c, (void)i;
    return weft_scale(dy, 2);
}

Test(versions, program_operators_declare_unread_inputs)
{
    static const weft_op careful = {
        .name = "careful", .shape = like_first, .forward = twice, .backward = twice_back
    };
    static const weft_op blind = {
        .name = "blind", .unread = 1, .shape = like_first, .forward = twice, .backward = twice_back
    };
    kept k = kept_in(open_on(WEFT_CPU));
    weft_tensor *loss = weft_sum_all(weft_op_apply(&careful, &k.p, 1, NULL, 0)),
                *other = weft_sum_all(weft_op_apply(&blind, &k.p, 1, NULL, 0));
    by_values(&k);
    weft_backward(other);
    cr_assert(weft_ok(k.w) && numbers(weft_grad(k.p))[0] == 2, "%s", weft_error_message(k.w));
    weft_backward(loss);
    FAILS(k.w, WEFT_EARG, "backward of careful: net.p has changed since careful read it");
    CLEAN(k.w);
}
