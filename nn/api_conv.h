/* api_conv.h - convolutions over the tokens of sequences.
 *
 * _new and _run are as in api_layers.h. */
#ifndef WEFT_API_CONV_H
#define WEFT_API_CONV_H
#include "../autograd/api_windows.h"
#include "api_layers.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- convolutions ---- */
/* SAME: a row for each token, with the window around it. VALID: rows of complete windows only. */
typedef enum { WEFT_CONV_SAME, WEFT_CONV_VALID } weft_conv_padding;
typedef struct {
    int64_t in;                      /* width of x; required */
    int64_t out;                     /* width of the result; required */
    int64_t width;                   /* tokens of a window, torch's kernel_size; required */
    int64_t dilation;                /* distance between them; 0 means 1 */
    int64_t stride;                  /* distance between windows; 0 means 1 */
    bool causal;                     /* SAME: a window ends at its token instead */
    weft_conv_padding padding;       /* 0: SAME */
    bool no_bias;
} weft_conv_opts;
typedef struct weft_conv weft_conv;
/* Makes a convolution y_t = sum_k W_k x_(t stride + from + k dilation) + b within each sequence;
 * tokens outside it count as 0. weight [out, in, width] and bias [out] are uniform in +-1/sqrt(in *
 * width) at first. With span = dilation * (width - 1), from is -(span / 2), rounded towards 0, as
 * torch's padding="same"; 0 with VALID; -span if causal. A sequence of length L gets ceil(L /
 * stride) rows; with VALID ceil((L - span) / stride), or none if it is shorter than a window.
 * Errors: causal with VALID; an option below 0. Like torch.nn.Conv1d. */
WEFT_API weft_conv *weft_conv_new(weft_module *m, const char *name, const weft_conv_opts *opts);
/* Runs the layer: ragged [N, in] -> ragged [rows, out] in the layout CONCAT, or plain [n, T, in] ->
 * [n, rows, out]. If lengths change, the batch is new, with x's ids and offsets 0. Windows are
 * copied in pieces, so they take no memory. */
WEFT_API weft_tensor *weft_conv_run(weft_conv *c, weft_tensor *x);

#ifdef __cplusplus
}
#endif
#endif
