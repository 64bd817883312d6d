/* operators.c - finds the function of an operator. */
#include <string.h>
#include "io/onnx/model.h"

static const operation recurrent[] = {
    { "LSTM", weft__onnx_recurrent, -1, 0, NULL, NULL },
    { "GRU", weft__onnx_recurrent, -1, 0, NULL, NULL },
    { "RNN", weft__onnx_recurrent, -1, 0, NULL, NULL },
    { NULL, NULL, 0, 0, NULL, NULL },
};

const operation *weft__onnx_operation(weft__pb domain, weft__pb op)
{
    const operation *main[] = {
        recurrent,       weft__onnx_pointwise,  weft__onnx_shapes,   weft__onnx_parts, weft__onnx_indexed,
        weft__onnx_made, weft__onnx_reductions, weft__onnx_products, weft__onnx_norms, weft__onnx_attention
    };
    const operation *learning[] = { weft__onnx_learning };
    bool is_main = !weft__pb_size(domain) || weft__pb_is(domain, "ai.onnx");
    size_t tables = is_main ? sizeof main / sizeof *main : weft__pb_is(domain, "ai.onnx.ml");
    for (size_t i = 0; i < tables; i++)
        for (const operation *o = is_main ? main[i] : learning[i]; o->name; o++)
            if (weft__pb_is(op, o->name))
                return o;
    return NULL;
}
