/* weft_op.h - for authors of operators, layers and recurrent cells, and to look at the tape.
 *
 * Contents: properties of tensors and of the context, ragged batches by their rows, scans, second
 * derivatives, gradient checks, the tape, records of operators, modules inside modules, windows
 * over tokens and convolutions, other cells, losses of label sequences. */
#ifndef WEFT_OP_LEVEL_H
#define WEFT_OP_LEVEL_H
#include "weft.h"
#include "core/api_author.h"
#include "autograd/api_ragged.h"
#include "autograd/api_scan.h"
#include "autograd/api_windows.h"
#include "autograd/api_tape.h"
#include "autograd/api_op.h"
#include "nn/api_module.h"
#include "nn/api_conv.h"
#include "nn/api_crf.h"
#include "rnn/api_cell.h"
#include "rnn/api_ctc.h"
#include "rnn/api_linear_rnn.h"
#endif
