/* api_onnx.h - models as ONNX files.
 *
 * Contents: import, export. */
#ifndef WEFT_API_ONNX_H
#define WEFT_API_ONNX_H
#include "../../rnn/api_cell.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- import ---- *
 * An imported model is a module with parameters and layers, and a list of nodes that run on them.
 * Recurrent nodes are ordinary layers. Everything else is computed by weft's operators, so a run
 * is recorded on the tape and the model can be trained further. Integers and truth values of the
 * graph, such as shapes, indices and masks, are computed on the host, exactly, as 64-bit integers.
 * docs/onnx.md lists the operators. */
typedef struct weft_onnx weft_onnx;
typedef struct {
    const char *name;                            /* of the root module; NULL: "onnx" */
} weft_onnx_import_opts;
/* Loads a model of an ONNX file, opsets 7 to 28, with the file's numbers as its first values. opts
 * NULL: all 0. The context owns the model until weft_close. Operators whose inputs are all constant
 * are computed now. Returns NULL on failure; weft_file_message then has the reason, and the context
 * is unchanged. Errors: those of functions on files (api_io.h); operators that weft does not know,
 * which the message lists with their nodes; Loop and Scan; numbers in other files (external data).
 * Like onnxruntime.InferenceSession. */
WEFT_API weft_onnx *weft_import_onnx(const char *path, weft *w, const weft_onnx_import_opts *opts);
/* Returns the root module of a model, with all parameters; NULL for NULL. Initialisers of reals
 * with rank 1 or more are parameters under their names in the file: "fc.weight" is the parameter
 * "weight" of the module "fc". Other characters than letters, digits, - and _ become _. Recurrent
 * layers have the name of their node, "/lstm/LSTM" without the first character and with _ for /,
 * and PyTorch's parameters: "lstm_LSTM.weight_ih_l0". */
WEFT_API weft_module *weft_onnx_module(weft_onnx *model);
/* Returns the recurrent layer of that name, the node's or the layer's, for weft_rnn_step and
 * weft_rnn_run. NULL, without an error, if no such layer exists or an argument is NULL. A layer
 * whose weights are inputs of the graph exists after the first run. */
WEFT_API weft_rnn *weft_onnx_rnn(weft_onnx *model, const char *name);
/* An input or output of the graph. The model owns the texts. */
typedef struct {
    const char *name;
    weft_dtype type;                             /* WEFT_REAL, or WEFT_I32 for all integers */
    int rank;                                    /* -1: not in the file */
    int64_t size[WEFT_RANK];                     /* -1: any extent */
    const char *axis[WEFT_RANK];                 /* name of a dynamic axis, "batch"; or NULL */
} weft_onnx_value;
/* Returns the inputs or the outputs of the graph in its order, and sets *n, which may be NULL, to
 * their number. The model owns the array. NULL and 0 for NULL. Like session.get_inputs(). */
WEFT_API const weft_onnx_value *weft_onnx_inputs(const weft_onnx *model, int64_t *n);
WEFT_API const weft_onnx_value *weft_onnx_outputs(const weft_onnx *model, int64_t *n);
/* Runs the model on n inputs, into m outputs, both in the order of the graph. n and m are their
 * numbers. Inputs are plain tensors; those with integers or truth values are ints. outputs[i] is a
 * tensor of the step, ints for integers and truth values. Dropout does nothing. Returns whether it
 * succeeded. On error all outputs of the graph are inert, and the message names node and operator.
 * Errors: another number, type or shape of inputs; an integer that does not fit an int32 as an
 * output. Like session.run. */
WEFT_API bool weft_onnx_run(weft_onnx *model, weft_tensor *const *inputs, int64_t n,
                            weft_tensor **outputs, int64_t m);

/* ---- export ---- */
/* An input of the exported model. */
typedef struct {
    weft_tensor *tensor;        /* a tensor that the program made in this step */
    const char  *name;          /* its name in the file; NULL: "input0", "input1", .. */
    int          batch_axis;    /* plain: axis whose extent is the number of sequences; -1: none */
} weft_onnx_input;
typedef struct {
    const weft_onnx_input *inputs;      /* [n_inputs]; see weft_export_onnx for those not listed */
    int64_t                n_inputs;
    const char *const     *output_names;        /* [n]; NULL: "output0", "output1", .. */
} weft_onnx_export_opts;
/* Writes the operators that computed n outputs as an ONNX model of opset 17. Call it after a
 * forward pass with the tape on and dropout off (WEFT_EVAL), in the same step. opts NULL: defaults.
 * Parameters and buffers become initializers with PyTorch's names; the weights of recurrent layers
 * become W, R and B. Equal tapes give equal files. The file is written atomically.
 *
 * A ragged tensor [N, F] becomes a padded tensor [time, batch, F]: sequences in the user's order,
 * data first, then padding. Each batch of the step has an input of its lengths, int64 [batch]:
 * "lengths", "lengths2", .., in the order of their first use. Tensors with the axis "time2" belong
 * to "lengths2". weft keeps equal lengths once, so trace batches with different lengths. The model
 * runs with any lengths and any number of sequences. Ids in the padding must be valid, such as 0;
 * other numbers there do not matter. The padding of outputs is 0. Ints are int64. The time axis
 * must be at least the longest length.
 *
 * A plain tensor that the program made is an input if one of its axes has as many elements as there
 * are sequences. This axis is then "batch". The steps of a plain [n, T, ..] that a layer reads are
 * "steps". Other plain tensors become constants, unless the model has no sequences. List a tensor
 * in opts->inputs to make it an input, or to give its name and axis. Trace with two sequences or
 * more, and with a number of them that no other axis has. A sum along a dynamic axis that is scaled
 * by 1 / n or 1 / (n - 1) counts as a mean or a variance. A TFT without static features has one
 * more input, which must be 0.
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
