/* norms.c - softmax and normalisation. */
#include <string.h>
#include "io/onnx/model.h"

static double epsilon(run *r) { return weft__onnx_float(r, "epsilon", 1e-5); }

/* Returns 1 / sqrt(variance + epsilon). */
static weft_tensor *inverse_deviation(run *r, weft_tensor *variance)
{
    return weft_rsqrt(weft_add(variance, weft_scalar(r->w, epsilon(r))));
}

/* Before opset 13 the axes from `axis` on are one. */
static void softmax(run *r, const value *in, value *out)
{
    bool old = r->node->version < 13;
    int64_t axis = weft__onnx_int(r, "axis", old ? 1 : -1);
    if (!weft__onnx_axis(r, &axis, in->rank))
        return;
    value x = old ? weft__onnx_matrix(r, in, (int)axis) : *in;
    weft_tensor *y = weft__onnx_tensor_of(r, &x);
    axis = old ? 1 : axis;
    y = r->node->operation->option ? weft_log_softmax(y, (int)axis, NULL) : weft_softmax(y, (int)axis, NULL);
    *out = weft__onnx_reals(r, weft_reshape(y, in->rank, in->size));
}

/* LayerNormalization, RMSNormalization: over the axes from `axis` on. */
static void layer_norm(run *r, const value *in, value *out)
{
    int64_t axis = weft__onnx_int(r, "axis", -1);
    double eps = epsilon(r);
    if (!in->x || !in[1].x || !weft__onnx_axis(r, &axis, in->rank))
        return;
    value matrix = weft__onnx_matrix(r, in, (int)axis);
    int64_t width = matrix.size[1];
    weft_tensor *x = matrix.x, *gain = weft_reshape(in[1].x, 1, &width);
    if (r->node->operation->option) {
        weft_tensor *mean = weft_mean(weft_square(x), 1);
        x = weft_mul(x, weft_reshape(inverse_deviation(r, mean), 2, (int64_t[]){ matrix.size[0], 1 }));
        x = weft_mul(x, gain);
    } else {
        weft_tensor *shift = in[2].x ? weft_reshape(in[2].x, 1, &width) : weft_zeros(r->w, 1, &width);
        x = weft_layer_norm(x, gain, shift, eps == 0 ? WEFT_ZERO : eps);
    }
    *out = weft__onnx_reals(r, weft_reshape(x, in->rank, in->size));
}

static void batch_norm(run *r, const value *in, value *out)
{
    int64_t size[WEFT_RANK] = { 1, 1, 1, 1, 1, 1 };
    weft_tensor *p[5];
    if (weft__onnx_int(r, "training_mode", 0))
        weft__onnx_fail(r, "training_mode; expected inference");
    int channel = in->rank > 1;
    size[channel] = in->size[channel];
    for (int i = 0; i < 5; i++) {
        p[i] = weft__onnx_tensor_of(r, &in[i]);
        p[i] = i ? weft_reshape(p[i], in->rank, size) : p[i];
    }
    weft_tensor *factor = weft_mul(p[1], inverse_deviation(r, p[4]));
    *out = weft__onnx_reals(r, weft_add(weft_mul(weft_sub(p[0], p[3]), factor), p[2]));
}

const operation weft__onnx_norms[] = {
    { "Softmax", softmax, .inputs = 1 }, { "LogSoftmax", softmax, 1, .option = 1 },
    { "LayerNormalization", layer_norm, .inputs = 2 }, { "RMSNormalization", layer_norm, 2, .option = 1 },
    { "SimplifiedLayerNormalization", layer_norm, 2, .option = 1 },
    { "BatchNormalization", batch_norm, .inputs = 5 },
    { .name = NULL },
};
