/* weft_op.h - for authors of operators, layers and recurrent cells, and to look at the tape.
 *
 * Contents: properties of tensors and of the context, ragged batches by their rows, second
 * derivatives, gradient checks, the tape, records of operators, modules inside modules, other
 * cells. */
#ifndef WEFT_OP_LEVEL_H
#define WEFT_OP_LEVEL_H
#include "weft.h"
#include "core/api_author.h"
#include "autograd/api_ragged.h"
#include "autograd/api_tape.h"
#include "autograd/api_op.h"
#include "nn/api_module.h"
#include "rnn/api_cell.h"
#endif
