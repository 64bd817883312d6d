/* activation.c - the activations that layers take by name. */
#include "nn/nn.h"

weft_tensor *weft__activated(weft_activation a, weft_tensor *x)
{
    switch (a) {
    case WEFT_DEFAULT_ACTIVATION:
    case WEFT_RELU:       return weft_relu(x);
    case WEFT_LEAKY_RELU: return weft_leaky_relu(x, .01);
    case WEFT_ELU:        return weft_elu(x, 1);
    case WEFT_GELU:       return weft_gelu(x);
    case WEFT_SILU:       return weft_silu(x);
    case WEFT_TANH:       return weft_tanh(x);
    case WEFT_SIGMOID:    return weft_sigmoid(x);
    }
    return x;
}
