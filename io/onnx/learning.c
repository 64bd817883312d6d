/* learning.c - the operators of ai.onnx.ml that pipelines of scikit-learn have around a network. */
#include <string.h>
#include "io/onnx/model.h"

/* Returns the numbers of an attribute in rows, or as a list for 0 rows; NULL if it is missing. */
static weft_tensor *listed(run *r, const char *name, int64_t rows)
{
    const attribute *a = weft__onnx_attribute(r, name, 6);
    int64_t size[2] = { rows, a && rows ? a->n / rows : 0 };
    if (a && rows && a->n % rows)
        weft__onnx_fail(r, "%s has %lld numbers for %lld results", name, (long long)a->n, (long long)rows);
    return !a ? NULL : rows ? weft_reals(r->w, a->floats, 2, size) : weft_reals(r->w, a->floats, 1, &a->n);
}

/* The elements of the last axis at the indices of input 1, as a list. */
static void feature_extractor(run *r, const value *in, value *out)
{
    value index = weft__onnx_integers_of(r, in + 1);
    index = weft__onnx_reshape(r, &index, 1, &index.count);
    if (in->rank)
        *out = weft__onnx_gather(r, in, in->rank - 1, &index);
}

static void scaler(run *r, const value *in, value *out)
{
    weft_tensor *x = weft__onnx_tensor_of(r, in), *offset = listed(r, "offset", 0),
                *scale = listed(r, "scale", 0);
    x = offset ? weft_sub(x, offset) : x;
    *out = weft__onnx_reals(r, scale ? weft_mul(x, scale) : x);
}

static void normalizer(run *r, const value *in, value *out)
{
    const char *norm = weft__onnx_string(r, "norm", "MAX");
    weft_tensor *x = weft__onnx_tensor_of(r, in);
    weft_tensor *n = !strcmp(norm, "MAX") ? weft_max(x, 1) : weft_vector_norm(x, 1, norm[1] == '1' ? 1 : 2);
    n = weft_reshape(n, 2, (int64_t[]){ in->size[0], 1 });
    *out = weft__onnx_reals(r, weft_mul(x, weft_reciprocal(n)));
}

/* Returns x [n, F] times coefficients [E, F], plus E intercepts. */
static weft_tensor *scores(run *r, const value *in, int64_t results)
{
    if (results < 1)
        weft__onnx_fail(r, "%lld results", (long long)results);
    weft_tensor *x = weft__onnx_tensor_of(r, in), *coefficients = listed(r, "coefficients", results),
                *b = listed(r, "intercepts", 0), *y = weft_matmul_with(x, false, coefficients, true);
    return b ? weft_add(y, weft_reshape(b, 1, &results)) : y;
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
    const attribute *labels = weft__onnx_attribute(r, "classlabels_ints", 7),
                    *a = weft__onnx_attribute(r, "coefficients", 6);
    int64_t n = a && in->rank == 2 && in->size[1] ? a->n / in->size[1] : 0;
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
    { "ArrayFeatureExtractor", feature_extractor, .inputs = 2 }, { "Scaler", scaler, .inputs = 1 },
    { "ZipMap", weft__onnx_identity, .inputs = 1 }, { "Normalizer", normalizer, .inputs = 1 },
    { "LinearRegressor", regressor, .inputs = -1 }, { "LinearClassifier", classifier, .inputs = -1 },
    { .name = NULL },
};
