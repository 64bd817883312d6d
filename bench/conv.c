/* conv.c - the case of convolutions: two causal layers of width 3 with dilations 1 and 2, a relu between
 * them, and the sum of the outputs as the loss. So a step has the gradients of both weights, and of the input
 * of the second layer. Weights and inputs come from a formula (formula.c). */
#include <math.h>
#include <stdio.h>
#include "weft_op.h"
#include "weft_sequence.h"
#include "bench.h"

enum { WIDTH = 3, LAYERS = 2 };
typedef struct convs {
    weft *w;
    weft_module *all;
    weft_conv *layer[LAYERS];
    weft_lengths lengths;
    weft_tensor *x; /* [tokens, I], on the device from the start */
} convs;

static weft_tensor *loss_of(void *user)
{
    const convs *c = user;
    weft_tensor *y = weft_ragged_like(c->x, weft_ragged(c->w, NULL, 0, &c->lengths));
    for (int i = 0; i < LAYERS; i++)
        y = weft_conv_run(c->layer[i], i ? weft_relu(y) : y);
    return weft_sum_all(y);
}

static bool run(row r, const settings *s)
{
    convs c = { .w = weft_open(&s->open) };
    c.all = weft_module_new(c.w, "bench");
    c.lengths.n = r.B;
    c.lengths.len = make_lengths(r.lengths, 1, r.B, (int32_t)r.T, &r.tokens);
    for (int i = 0; i < LAYERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "conv%d", i);
        weft_conv_opts o = { .in = i ? r.H : r.I, .out = r.H, .width = WIDTH, .dilation = 1 + i };
        o.causal = true;
        c.layer[i] = weft_conv_new(c.all, name, &o);
        add_linear(&r.work, (double)r.tokens, WIDTH * o.in, o.out, i);
    }
    c.x = weft_buffer(c.all, "x", WEFT_SHAPE(r.tokens, r.I));
    bool ok = fill_formula(c.x, "x", 2) && set_weights(c.all, 2 / sqrt((double)r.H)) &&
              measure_training(&(training){ c.w, c.all, loss_of, 1, NULL, &c, r }, s);
    weft_close(c.w);
    return ok;
}

bool bench_conv(const settings *s)
{
    /* H, B, T */
    static const int64_t all[][3] = {
        { 64, 64, 128 }, { 256, 64, 128 }, { 128, 64, 128 }, { 512, 64, 64 }, { 32, 64, 512 }
    };
    bool ok = true;
    for (int i = 0; i < (s->quick ? 2 : 5); i++)
        for (int equal = 0; equal < 2; equal++) {
            row r = {
                .name = "conv", .lengths = equal ? "equal" : "uniform", .B = all[i][1], .T = all[i][2]
            };
            r.I = r.H = all[i][0];
            r.layers = LAYERS;
            ok &= measure(run, r, "concat", s);
        }
    return ok;
}
