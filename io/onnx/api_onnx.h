/* api_onnx.h - ONNX models: import as a module that runs, export from the tape. */
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
/* Imports a model, opsets 7 to 28, with the file's numbers as its first values. opts NULL: all
 * defaults. The context owns the model until weft_close. Operators whose inputs are all constant
 * are computed now. Returns NULL on failure; weft_file_message then has the reason, and the context
 * is unchanged. Errors: those of functions on files (api_io.h); operators that weft does not know,
 * which the message lists with their nodes; If, Loop and Scan, except an If with a constant
 * condition; numbers in other files (external data). Like onnxruntime.InferenceSession. */
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
/* Return the inputs or the outputs of the graph in its order, and set *n, which may be NULL, to
 * their number. The model owns the array. NULL and 0 for NULL. Like session.get_inputs(). */
WEFT_API const weft_onnx_value *weft_onnx_inputs(const weft_onnx *model, int64_t *n);
WEFT_API const weft_onnx_value *weft_onnx_outputs(const weft_onnx *model, int64_t *n);
/* Runs the model on n inputs, into m outputs, both in the order of the graph. n and m are their
 * numbers. Inputs are plain tensors; those with integers or truth values are ints. outputs[i] is a
 * tensor of the step, ints for integers and truth values. Dropout does nothing. Returns whether it
 * succeeded. On error all outputs are inert, and the message names node and operator. Errors:
 * another number, type or shape of inputs; an integer that does not fit an int32 as an output. Like
 * session.run. */
WEFT_API bool weft_onnx_run(weft_onnx *model, weft_tensor *const *inputs, int64_t n,
                            weft_tensor **outputs, int64_t m);

#ifdef __cplusplus
}
#endif
#endif
