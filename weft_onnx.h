/* weft_onnx.h - models as ONNX files.
 *
 * Contents: import, export. */
#ifndef WEFT_ONNX_LEVEL_H
#define WEFT_ONNX_LEVEL_H
#include "weft.h"
#include "io/onnx/api_onnx.h"
#endif
