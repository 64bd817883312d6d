/* onnx.h - tensors of ONNX files and the gates of their recurrent nodes, for the list of weights and for the
 * import. */
#ifndef WEFT_IO_ONNX_H
#define WEFT_IO_ONNX_H
#include "io/weights/protobuf.h"
#include "io/weights/weights.h"

/* Element types of ONNX. */
enum { WEFT__ONNX_FLOAT = 1, WEFT__ONNX_UINT8 = 2, WEFT__ONNX_INT32 = 6, WEFT__ONNX_INT64 = 7 };
enum { WEFT__ONNX_STRING = 8, WEFT__ONNX_BOOL, WEFT__ONNX_HALF, WEFT__ONNX_DOUBLE, WEFT__ONNX_BFLOAT16 = 16 };
/* Returns the numbers of an element type; ODD for texts, complex numbers and types below 8 bits. */
weft__number weft__onnx_number(int type);
/* Reads a TensorProto. Its numbers stay in the image if they are stored there as such. *type gets the element
 * type. Returns false after a failure. */
bool weft__onnx_tensor(weft__weights *, weft__pb message, weft__array *, int *type);
/* Copies a text. Returns NULL after a failure. */
const char *weft__onnx_text(weft__weights *, weft__pb bytes);
/* Fails: the message that ends at `end` is damaged at `next`. Returns false. */
bool weft__onnx_damaged(weft__weights *, weft__pb message);

/* The fields of a message by their numbers in onnx.proto: the last one of each, and their count. */
enum { WEFT__ONNX_FIELDS = 26 };
typedef struct weft__onnx_record {
    weft__pb message, bytes[WEFT__ONNX_FIELDS];
    uint64_t value[WEFT__ONNX_FIELDS];
    int count[WEFT__ONNX_FIELDS];
} weft__onnx_record;
bool weft__onnx_fields(weft__weights *, weft__pb message, weft__onnx_record *);
/* Both move to the next field of this number, and return false after the last. each also returns false after
 * a failure. */
bool weft__onnx_field(weft__pb *message, int number, weft__pb *bytes);
bool weft__onnx_each(weft__weights *, weft__pb *message, int number, weft__onnx_record *);

/* A kind of recurrent node. order[k]: which block of ONNX is gate k of weft. */
typedef struct weft__onnx_cell { const char *op; int gates; unsigned char order[4]; } weft__onnx_cell;
/* Returns the cell of an operator, NULL if it is not recurrent. */
const weft__onnx_cell *weft__onnx_cell_of(const char *op);
/* Returns array [direction, from ..] of x as one with a rank below by 1 and `rows` rows, in the order of the
 * cell's gates. */
weft__array weft__onnx_part(const weft__array *x, int direction, int64_t from, int64_t rows,
                            const weft__onnx_cell *);
/* Sets out[0 .. n - 1] to the arrays of one direction: weight_ih, weight_hh and, unless b is NULL, bias_ih
 * and bias_hh. w is [D, gates H, in], r [D, gates H, H], b [D, 2 gates H]. Returns n; 0: the shapes do not
 * agree. */
int weft__onnx_direction(const weft__onnx_cell *, const weft__array *w, const weft__array *r,
                         const weft__array *b, int direction, weft__array out[4]);
#endif
