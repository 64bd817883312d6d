/* learning.c - the operators of ai.onnx.ml that pipelines of scikit-learn have around a network. */
#include <string.h>
#include "io/onnx/model.h"

static weft_tensor *listed(run *r, const char *name, int rank, const int64_t *size)
{
    const attribute *a = weft__onnx_attribute(r, name, 6);
    if (a && a->n != weft__onnx_product(size, rank))
        weft__onnx_fail(r, "%s has %lld numbers; expected %lld", name, (long long)a->n,
                        (long long)weft__onnx_product(size, rank));
    return a && weft_ok(r->w) ? weft_reals(r->w, a->floats, rank, size) : NULL;
}

static int64_t count_of(run *r, const char *name)
{
    const attribute *a = weft__onnx_attribute(r, name, 6);
    return a ? a->n : 0;
}

/* The elements of the last axis at the indices of input 1, as a list. */
static void feature_extractor(run *r, const value *in, value *out)
{
    value index = weft__onnx_integers_of(r, in + 1);
    index = weft__onnx_reshape(r, &index, 1, &index.count);
    if (in->rank)
        *out = weft__onnx_gather(r, in, in->rank - 1, &index);
}

/* The map from labels to probabilities is the tensor of probabilities. */
static void zip_map(run *r, const value *in, value *out)
{
    (void)r;
    *out = *in;
}

static void scaler(run *r, const value *in, value *out)
{
    int64_t offsets = count_of(r, "offset"), factors = count_of(r, "scale");
    weft_tensor *x = weft__onnx_tensor_of(r, in);
    x = offsets ? weft_sub(x, listed(r, "offset", 1, &offsets)) : x;
    x = factors ? weft_mul(x, listed(r, "scale", 1, &factors)) : x;
    *out = weft__onnx_reals(r, x);
}

static void normalizer(run *r, const value *in, value *out)
{
    const char *norm = weft__onnx_string(r, "norm", "MAX");
    weft_tensor *x = weft__onnx_tensor_of(r, in);
    weft_tensor *n = !strcmp(norm, "MAX") ? weft_max(x, 1) : weft_vector_norm(x, 1, norm[1] == '1' ? 1 : 2);
    n = weft_reshape(n, 2, (int64_t[]){ in->size[0], 1 });
    *out = weft__onnx_reals(r, weft_mul(x, weft_reciprocal(n)));
}

/* x [n, F] times coefficients [E, F], plus E intercepts. */
static weft_tensor *scores(run *r, const value *in, int64_t outputs)
{
    if (in->rank != 2 || outputs < 1) {
        weft__onnx_fail(r, "rank %d, %lld results", in->rank, (long long)outputs);
        return &r->w->nil;
    }
    weft_tensor *c = listed(r, "coefficients", 2, (int64_t[]){ outputs, in->size[1] }),
                *b = listed(r, "intercepts", 1, &outputs);
    weft_tensor *y = weft_matmul_with(weft__onnx_tensor_of(r, in), false, c, true);
    return b ? weft_add(y, b) : y;
}

static weft_tensor *transformed(run *r, weft_tensor *x)
{
    const char *how = weft__onnx_string(r, "post_transform", "NONE");
    if (!strcmp(how, "SOFTMAX"))
        return weft_softmax(x, 1, NULL);
    if (!strcmp(how, "LOGISTIC"))
        return weft_sigmoid(x);
    if (strcmp(how, "NONE"))
        weft__onnx_fail(r, "post_transform %.20s; expected NONE, SOFTMAX or LOGISTIC", how);
    return x;
}

static void regressor(run *r, const value *in, value *out)
{
    *out = weft__onnx_reals(r, transformed(r, scores(r, in, weft__onnx_int(r, "targets", 1))));
}

static void classifier(run *r, const value *in, value *out)
{
    const attribute *labels = weft__onnx_attribute(r, "classlabels_ints", 7);
    int64_t n = in->rank == 2 && in->size[1] ? count_of(r, "coefficients") / in->size[1] : 0;
    weft_tensor *x = scores(r, in, n);
    if (!labels || labels->n != (n == 1 ? 2 : n)) {
        weft__onnx_fail(r, "class labels; expected integers, one for each class");
        return;
    }
    if (n == 1) /* the score of the second class */
        x = weft_concat(WEFT_LIST(weft_neg(x), x), 1);
    out[0] = weft__onnx_ints(r, weft_argmax(x, 1));
    for (int64_t i = 0; i < out[0].count; i++)
        out[0].number[i] = labels->ints[out[0].number[i]];
    out[1] = weft__onnx_reals(r, transformed(r, x));
}

const operation weft__onnx_learning[] = {
    { "ArrayFeatureExtractor", feature_extractor, .inputs = 2 }, { "ZipMap", zip_map, .inputs = 1 },
    { "Scaler", scaler, .inputs = 1 }, { "Normalizer", normalizer, .inputs = 1 },
    { "LinearRegressor", regressor, .inputs = -1 }, { "LinearClassifier", classifier, .inputs = -1 },
    { .name = NULL },
};
