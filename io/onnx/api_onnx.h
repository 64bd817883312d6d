/* api_onnx.h - models as ONNX files.
 *
 * Contents: export. */
#ifndef WEFT_API_ONNX_H
#define WEFT_API_ONNX_H
#include "../../core/api_core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- export ---- */
/* An input of the exported model. */
typedef struct {
    weft_tensor *tensor; /* a tensor that the program made in this step */
    const char *name; /* its name in the file; NULL: "input0", "input1", .. */
    int batch_axis; /* plain: axis whose extent is the number of sequences; -1: none */
} weft_onnx_input;
typedef struct {
    const weft_onnx_input *inputs; /* [n_inputs]; see weft_export_onnx for those not listed */
    int64_t n_inputs;
    const char *const *output_names; /* [n]; NULL: "output0", "output1", .. */
} weft_onnx_export_opts;
/* Writes the operators that computed n outputs as an ONNX model of opset 17. Call it after a
 * forward pass with the tape on and dropout off (WEFT_EVAL), in the same step. opts NULL: defaults.
 * Parameters and buffers become initializers with PyTorch's names; the weights of recurrent layers
 * become W, R and B. Equal tapes give equal files. The file is written atomically.
 *
 * A ragged tensor [N, F] becomes a padded tensor [time, batch, F]: sequences in the user's order,
 * data first, then padding. Each batch of the step has an input of its lengths, int64 [batch]:
 * "lengths", "lengths2", .., in the order of their first use. weft keeps equal lengths once, so
 * trace batches with different lengths. The model runs with any lengths and any number of
 * sequences. Ids in the padding must be valid, such as 0; other numbers there do not matter. The
 * padding of outputs is 0. Ints are int64. The time axis must be at least the longest length; the
 * models of weft_tft_new require exactly the longest length.
 *
 * A plain tensor that the program made is an input if one of its axes has as many elements as there
 * are sequences. This axis is then "batch". The steps of a plain [n, T, ..] that a layer reads are
 * "time". Other plain tensors become constants, unless the model has no sequences. List a tensor in
 * opts->inputs to make it an input, or to give its name and axis. Trace with two sequences or more,
 * and with a number of them that no other axis has. A sum along a dynamic axis that is scaled by 1
 * / n or 1 / (n - 1) counts as a mean or variance. A TFT without static features has an input more,
 * which must be 0.
 *
 * Returns a status and does not change the context. weft_file_message returns the text. Errors: an
 * operator without an ONNX form, such as MGU, an LSTM with a projection or a cell of your own (the
 * message names all of them and their first entries); dropout; an output that is not on the tape;
 * an ambiguous batch axis; names that are not unique; parameters above 2 GiB. Like
 * torch.onnx.export. */
WEFT_API weft_status weft_export_onnx(const char *path, weft_tensor *const *outputs, int64_t n,
                                      const weft_onnx_export_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
