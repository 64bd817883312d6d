/* norms.c - softmax and normalisation. */
#include <string.h>
#include "io/onnx/model.h"

static double epsilon(run *r, double usual)
{
    double eps = weft__onnx_float(r, "epsilon", usual);
    return eps == 0 ? WEFT_ZERO : eps;
}

/* Before opset 13 the axes from `axis` on are one. */
static void softmax(run *r, const value *in, value *out)
{
    bool old = r->node->version < 13, logarithm = r->node->operation->option;
    int64_t axis = weft__onnx_int(r, "axis", old ? 1 : -1);
    if (!in->x || !weft__onnx_axis(r, &axis, in->rank))
        return;
    int64_t rows = weft__onnx_product(in->size, (int)axis);
    weft_tensor *x = old ? weft_reshape(in->x, 2, (int64_t[]){ rows, rows ? in->count / rows : 0 }) : in->x;
    int along = old ? 1 : (int)axis;
    x = logarithm ? weft_log_softmax(x, along, NULL) : weft_softmax(x, along, NULL);
    *out = weft__onnx_reals(r, old ? weft_reshape(x, in->rank, in->size) : x);
}

/* Returns x / sqrt(mean of squares + eps), over the last axis. */
static weft_tensor *divided_by_rms(weft_tensor *x, double eps)
{
    int64_t rows = weft_size(x, 0);
    weft_tensor *mean = weft_reshape(weft_mean(weft_square(x), 1), 2, (int64_t[]){ rows, 1 });
    return weft_mul(x,
                    weft_rsqrt(weft_add(mean, weft_scalar(weft_context_of(x), eps == WEFT_ZERO ? 0 : eps))));
}

/* LayerNormalization, RMSNormalization: over the axes from `axis` on. */
static void layer_norm(run *r, const value *in, value *out)
{
    int64_t axis = weft__onnx_int(r, "axis", -1);
    double eps = epsilon(r, 1e-5);
    if (!in->x || !in[1].x || !weft__onnx_axis(r, &axis, in->rank))
        return;
    int64_t rows = weft__onnx_product(in->size, (int)axis),
            width = weft__onnx_product(in->size + axis, in->rank - (int)axis);
    weft_tensor *x = weft_reshape(in->x, 2, (int64_t[]){ rows, width }),
                *gain = weft_reshape(in[1].x, 1, &width);
    for (int i = 1; i < r->node->outputs; i++)
        if (r->node->out[i] >= 0)
            weft__onnx_fail(r, "output %d; expected only the normalised tensor", i);
    if (r->node->operation->option)
        x = weft_mul(divided_by_rms(x, eps), gain);
    else
        x = weft_layer_norm(x, gain, in[2].x ? weft_reshape(in[2].x, 1, &width) : weft_zeros(r->w, 1, &width),
                            eps);
    *out = weft__onnx_reals(r, weft_reshape(x, in->rank, in->size));
}

static void batch_norm(run *r, const value *in, value *out)
{
    double eps = epsilon(r, 1e-5);
    int64_t size[WEFT_RANK] = { 1, 1, 1, 1, 1, 1 };
    weft_tensor *p[5] = { NULL };
    if (in->rank < 1 || weft__onnx_int(r, "training_mode", 0)) {
        weft__onnx_fail(r, "training_mode; expected inference");
        return;
    }
    int channel = in->rank > 1;
    size[channel] = in->size[channel];
    for (int i = 1; i < 5; i++)
        p[i] = weft_reshape(weft__onnx_tensor_of(r, &in[i]), in->rank, size);
    weft_tensor *factor =
        weft_mul(p[1], weft_rsqrt(weft_add(p[4], weft_scalar(r->w, eps == WEFT_ZERO ? 0 : eps))));
    *out = weft__onnx_reals(r, weft_add(weft_mul(weft_sub(weft__onnx_tensor_of(r, in), p[3]), factor), p[2]));
}

const operation weft__onnx_norms[] = {
    { "Softmax", softmax, 1, 0, NULL, NULL },
    { "LogSoftmax", softmax, 1, 1, NULL, NULL },
    { "LayerNormalization", layer_norm, 2, 0, NULL, NULL },
    { "RMSNormalization", layer_norm, 2, 1, NULL, NULL },
    { "SimplifiedLayerNormalization", layer_norm, 2, 1, NULL, NULL },
    { "BatchNormalization", batch_norm, 5, 0, NULL, NULL },
    { NULL, NULL, 0, 0, NULL, NULL },
};
