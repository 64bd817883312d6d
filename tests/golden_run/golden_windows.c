/* golden_windows.c - compares convolutions over the tokens of each sequence with PyTorch's on each sequence
 * alone. */
#include "weft_op.h"
#include "weft_sequence.h"
#include "golden.h"

/* Compares output and loss. The result may have other lengths than x. */
static weft_tensor *result(trial *t, weft_tensor *y)
{
    weft_lengths l = lengths(t, "out_lengths"), got = weft_lengths_of(y);
    for (int64_t b = 0; b < l.n && weft_ok(t->w); b++)
        if (b >= got.n || got.len[b] != l.len[b])
            wrong(t, "sequence %lld has %d rows, expected %d", (long long)b, b < got.n ? got.len[b] : -1,
                  l.len[b]);
    if (t->why[0])
        return NULL;
    hold_tensor(t, "output", y, json_object_get(t->c, "output"));
    weft_tensor *loss = wavy_sum(t, y, &l, 1);
    hold_number(t, "loss", (double)weft_item(loss), json_object_get(t->c, "loss"));
    return loss;
}

static weft_tensor *input(trial *t, int64_t features)
{
    weft_lengths l = lengths(t, "lengths");
    weft_tensor *x = formula_ragged(t, 2, 0, 100, &l, features);
    ask(t, "x", x, &l, 0);
    return laid(t, x);
}

static weft_tensor *convolution(trial *t)
{
    const weft_conv_opts o = { .in = integer(t, "in"),
                               .out = integer(t, "out"),
                               .width = integer(t, "width"),
                               .dilation = integer(t, "dilation"),
                               .stride = integer(t, "stride"),
                               .causal = flag(t, "causal"),
                               .padding = flag(t, "valid") ? WEFT_CONV_VALID : WEFT_CONV_SAME,
                               .no_bias = flag(t, "no_bias") };
    weft_conv *c = weft_conv_new(t->m, "c", &o);
    if (t->why[0] || !weft_ok(t->w) || !set_parameters(t, "c", 2, 0))
        return NULL;
    return result(t, weft_conv_run(c, input(t, o.in)));
}

const kind golden_windows[] = { { "conv", convolution, PACKED | RECORDED }, { NULL, NULL, 0 } };
