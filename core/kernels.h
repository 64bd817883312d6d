/* kernels.h - the interface of a back end: the device, the argument structs of the larger kernels, and the
 * table of kernels, which is generated from kernels.def.
 *
 * Pointers are device memory unless marked as host. Kernels run in order on the device's stream. Only
 * download and wait block. Sizes are int64_t and matrices row-major. A kernel that finds an index out of
 * range stores it in device->fault and does not read there. */
#ifndef WEFT_KERNELS_H
#define WEFT_KERNELS_H
#include "core/api_author.h"

#define CELL(name, ...) WEFT__##name,
typedef enum {
#include "core/cells.def"
    WEFT__CELLS
} weft__cell;
#include "core/shared/cells.h"

typedef weft_real real;
typedef struct weft__kernels weft__kernels;
struct weft__links;

/* An invalid element and its row. below: the exclusive upper bound of an index; -1: a number that no int
 * holds; -2: a number outside a range. by: the kernel, if the message needs it. */
typedef struct weft__fault { bool is; int64_t row; int64_t value, below; const char *by; } weft__fault;

/* gemm of a BLAS library, row-major or column-major */
typedef void weft__blas_gemm(int order, int ta, int tb, int m, int n, int k, real alpha, const real *a,
                             int lda, const real *b, int ldb, real beta, real *c, int ldc);
typedef struct weft__device {                    /* first argument of every kernel */
    const weft__kernels *k;
    void *(*allocate)(size_t, void *); void (*release)(void *, void *); void *user;
    struct weft__pool *pool;                     /* threads of the CPU */
    weft__blas_gemm *blas;                       /* matrix product on the CPU; NULL: the own kernels */
    bool blas_is_default;                        /* chosen by its time, see blas_choice.c */
    void *stream, *handle;                       /* CUDA stream and cuBLAS handle */
    void *workspace; size_t workspace_bytes;     /* scratch of the kernels, grown on demand */
    int index;
    bool by_rank;                            /* index is a local rank: ranks of a machine may share devices */
    uint64_t unit;                               /* identifies the GPU across processes; 0: none */
    const struct weft__links *links;             /* connections to devices of other ranks, or NULL */
    weft_precision precision;
    bool deterministic;
    bool parallel;                           /* one of several ranks or shards: no choice depends on timing */
    int log;                                     /* value of WEFT_LOG */
    int64_t launches;                            /* GPU: kernels, products and copies on the device */
    int64_t trials, recurrent[4];                /* GPU: see weft_usage */
    weft__fault fault;                           /* host memory; a GPU writes it at the next wait */
    char failure[160];                           /* first failure of the back end itself, or "" */
    weft_status status;                          /* kind of failure: WEFT_ENOMEM or WEFT_EDEVICE */
    bool lost;                                   /* the device cannot be used again in this context */
} weft__device;

/* A loop nest of up to six axes: extents, and the strides of up to three operands. Stride 0 broadcasts. */
typedef struct weft__grid { int rank; int64_t size[WEFT_RANK], step[3][WEFT_RANK]; } weft__grid;

/* Copies rows between two matrices with row strides ldx and ldy. x NULL: zeros. Row r comes from row from[r]
 * of x and goes to row to[r] of y. Negative: zeros, or not written. No row occurs twice in `to`. */
typedef struct weft__block_copy {
    int64_t rows, width; const real *x; int64_t ldx; real *y; int64_t ldy; bool add;
    const int32_t *from, *to;                    /* NULL: row r */
} weft__block_copy;

/* Runs of rows: along an axis (offset NULL: each run has `length` rows), or the tokens of each sequence
 * (CONCAT). Element of run s, row r, column j: ((offset ? offset[s] : s * length) + r) * inner + j. */
typedef struct weft__segments { int64_t count, length, inner; const int32_t *offset; } weft__segments;
/* What `softmax` computes. The log sum of exponentials has one number for each run and column. */
typedef enum weft__softmax { WEFT__SOFTMAX, WEFT__LOG_SOFTMAX, WEFT__LOG_SUM } weft__softmax;

/* an index array in host and device memory */
typedef struct weft__ints { const int32_t *host, *device; } weft__ints;

/* Epilogue of a matrix product: c = f(c + bias[column]). f is a function of pointwise.def, or WEFT__UNARIES
 * for the identity. */
typedef struct weft__finish {
    const real *bias; int64_t stride;            /* [n], or NULL; stride between the products of a batch */
    int f; real p, q;
} weft__finish;

/* Windows as rows of an operand: row i holds the rows index[i * width + j], j < width, of a matrix with
 * `columns` columns, one after the other. An index below 0 gives zeros. */
typedef struct weft__gathered { const int32_t *index; int64_t width, columns; } weft__gathered;

/* c[i] (+)= op(a[i]) op(b[i]) for i < batches; ta, tb: op transposes. op(a): m x k, op(b): k x n, c: m x
 * n. */
typedef struct weft__product {
    bool ta, tb, add;
    int64_t m, n, k, lda, ldb, ldc;
    int64_t batches, stride_a, stride_b, stride_c;
    /* back: the product is a gradient, so it never runs one token at a time */
    weft_precision precision; bool back;
    const weft__finish *then;                    /* host memory; NULL: no epilogue */
    const void *packed;                          /* b packed by gemm_pack for this kind of product, or NULL */
    const weft__gathered *gathered;              /* rows of a, or of b if ta; NULL: none */
} weft__product;

/* destination of a gradient; NULL: not needed */
typedef struct weft__into { real *to; bool add; } weft__into;

/* A linear recurrence over the rows of each run, from the last to the first if reverse: y = a y_before + b,
 * where y_before is the result of the row before, or `first` for the first row. later: a is the factor of the
 * row before (and the first row is b); a product with y_before = 0 is 0, as for gradients. The rows of a run
 * are summed in order, by fused multiply-add where the instruction set has it, so splitting a run and handing
 * y on as `first` changes no bit.
 *
 * backward (never `later`): db = dy + (a db) of the row after, da = db y_before, dfirst = a db of the first
 * row, 0 for an empty run. A product with db = 0 is 0. */
typedef struct weft__scan {
    weft__segments s; bool reverse, later;
    const real *a; int64_t a_row;                /* step between rows of a: inner, or 0 for one row for all */
    const real *b, *first; real *y;              /* first [count, inner], NULL: zeros */
    const real *dy; weft__into da, db, dfirst;   /* backward, which reads y; da [rows, inner] */
} weft__scan;

/* Layer norm: y = (s - mean) rstd gain + shift for each row s. s is the row of x, or with a gate a sigmoid(b)
 * plus the row of x, where a and b are the halves of the gate's row. Row r uses gain and shift r % groups;
 * groups divides rows. rms: the mean counts as 0. */
typedef struct weft__layer_norm {
    int64_t rows, width, groups; real eps; bool rms;
    const real *x, *gate;                        /* [rows, width], [rows, 2 width] or NULL */
    const real *gain, *shift;                    /* [groups, width]; NULL: ones, zeros */
    real *y, *mean, *rstd;                       /* mean, rstd [rows] */
    /* backward, which reads mean and rstd; NULL: not needed; add_..: adds to the gradient */
    const real *dy; real *dx, *dgate, *dgain, *dshift; bool add_x, add_gate, add_gain, add_shift;
} weft__layer_norm;

/* Scaled dot product attention between two ragged tensors in CONCAT layout. Queries of sequence s are rows
 * q_offset[s] .. q_offset[s + 1], its keys and values k_offset[s] .. Head h owns columns h * dk .. and h * dv
 * .. A row without keys gives 0. causal: 0 none, 1 top left (j <= i), 2 bottom right (j <= i + keys -
 * queries), 3 like 2 without the last key (j < i + keys - queries). shared_values: all heads use the dv
 * columns of v. mean: only with shared_values; y is the mean over the heads. map, if not NULL, receives the
 * weight of key j at (map_offset[query row] + j) * heads + head. Dropout: the weight of key j becomes 0 if
 * weft__philox_mask(weft__head_key(mask_key, head), id[query row], position[query row], j) < below. Other
 * weights are multiplied by `kept`, also in the map. lse covers all keys. below 0: no dropout. */
typedef struct weft__attention {
    int64_t sequences, queries, keys, heads, dk, dv;
    weft__ints q_offset, k_offset, map_offset;
    int causal; bool shared_values, mean; real scale;
    /* dropout; id [queries]: of the sequence; position [queries]: in the sequence */
    uint32_t below; real kept; uint64_t mask_key; const int64_t *id; const int32_t *position;
    /* [queries, heads * dk], [keys, heads * dk], [keys, heads * dv] */
    const real *q, *k, *v;
    /* [queries, heads * dv], or [queries, dv] if mean; [queries, heads] log sum exp of the scores */
    real *y, *lse, *map;
    /* backward, which reads y and lse and adds to the gradients; NULL: not needed */
    const real *dy; real *dq, *dk_, *dv_;
} weft__attention;

/* One direction of a recurrent layer over a packed batch. Step t has rows start[t] .. start[t] + live[t],
 * always the same sequences first (longest first). Sequences of length 0 come last, after live[0]: no step
 * contains them, and their rows of dh0 and dc0 stay unchanged. The step before t is t - 1, or t + 1 if
 * reverse. A sequence starts from its row of h0 and c0: forward all at t = 0, in reverse each at its end,
 * rows live[t + 1] .. live[t]. With `reset`, a column (the same row in all steps) holds several sequences one
 * after the other, and reset marks where each begins.
 *
 * gates [tokens, slots * H]: slots of H columns; core/cells.def and the cell bodies define them. On entry a
 * slot holds the sums of x's block and all biases; a slot that depends on h only is undefined, and b_h_alone
 * begins its sums. On return it holds the gates. With a projection (cells of two states) raw is the cell's h;
 * h' = W_hr raw is the output and enters the next step.
 *
 * backward takes gates, h, c and raw from forward and turns the slots into gradients of the sums. The caller
 * computes sums over tokens: dW_hh = d^T h_before with d the slots of h's blocks, dW_hr = dh^T raw, dx and
 * the rest from the slots.
 *
 * A call runs steps from .. to - 1, at least one. Calls for successive segments, in the direction of the
 * recurrence, give the same bits as one call: earlier state is read from h and c, in backward from the
 * carries. Of gates, raw, h_before and dh only the rows of these steps need to exist. */
/* the first token of a column, in the direction of the recurrence, never has WEFT__ON */
enum { WEFT__ON = -1, WEFT__ANEW = -2 };
typedef struct weft__recurrence {
    weft__cell cell; bool reverse;
    int64_t sequences, tokens, steps, hidden, width;   /* width of h: hidden, or that of the projection */
    int64_t from, to;                            /* steps of this call; 0 and steps: all */
    /* [steps], [steps + 1]: rows of each step, and its first row */
    weft__ints live, start;
    /* [tokens]; {NULL}: column s is sequence s. Otherwise, for each token: s if sequence s begins here;
     * WEFT__ANEW: starts from zeros; WEFT__ON: continues from the previous state */
    weft__ints reset;
    /* [gates * hidden, width]; [hidden], NULL: zeros; [width, hidden] or NULL */
    const real *w_hh, *b_h_alone, *w_hr;
    /* [sequences, width], [sequences, hidden] in packed order; NULL: zeros */
    const real *h0, *c0;
    /* h [tokens, width], c [tokens, hidden] (two states; otherwise NULL), raw: h before a projection */
    real *gates, *h, *c, *raw;
    /* backward only */
    /* gradients of h (after a projection) and c of each token; NULL: none */
    const real *dy, *dyc;
    real *dh0, *dc0;                    /* shapes of h0 and c0; each row is added to once; NULL: not needed */
    /* scratch [columns, width] and, for c, [columns, hidden]; zeroed by the caller */
    real *carry_h, *carry_c;
    /* output [tokens, width]: the h that entered each token; NULL: not needed */
    real *h_before;
    /* output [tokens, width]: total gradient of h; only with a projection */
    real *dh;
    const void *packed;                        /* the recurrence's part of recur_layer's l->packed, or NULL */
} weft__recurrence;

/* The whole layer in one direction: the recurrence and the products and sums over its tokens. The kernel
 * computes the sums, so the gates are undefined on entry. A back end may process a few tokens at a time to
 * stay in its caches. The kernel sets r.b_h_alone. In backward r.h_before, r.dh and `total` are scratch, and
 * the gates are undefined afterwards. A call covers steps r.from .. r.to - 1: dx is written in their rows,
 * other gradients are sums over their tokens. */
typedef struct weft__recur_layer {
    weft__recurrence r;
    int64_t inputs;
    /* [tokens, inputs], [gates * hidden, inputs], [gates * hidden]; biases: both or neither */
    const real *x, *w_ih, *b_ih, *b_hh;
    /* if not NULL, x is a table [rows, inputs], dx its gradient, and token i uses row ids[i], which is
     * valid */
    const int32_t *ids; int64_t rows;
    /* with ids: scratch [rows, slots * hidden] for the input sums of each row; in backward for their
     * gradients */
    real *of_rows;
    real *total;                                 /* scratch [slots * hidden] */
    /* forward: packed by recur_pack, or NULL; summed: an earlier call filled of_rows */
    const void *packed; bool summed;
    weft__into dx, dw_ih, dw_hh, dw_hr, db_ih, db_hh;
    /* The other direction over the same tokens and with the same sizes, without packed weights, or NULL. The
     * same call runs it; its gradients come after those of this direction. */
    const struct weft__recur_layer *beside;
} weft__recur_layer;

/* Upper bounds of absolute values: of this step's gradients, and of values, m, v and a before the step (for
 * Adam a is |m| / sqrt(v)). */
typedef struct weft__most { double g, x, m, v, a; } weft__most;

/* State of an optimiser on the device, so that a step does not wait. */
typedef struct weft__guard {
    /* of the last gradient: sum of |x|^power, or largest |x| */
    double norm;
    int64_t applied, skipped, in_a_row;          /* steps; skipped: the gradient was not finite */
    /* first non-finite element of the flat vector in the last bad step; -1: no bad step yet */
    int64_t bad;
    /* the gradients are finite, and after rehearse also the update */
    int32_t finite;
    /* the gradients were finite, but the update would not have been */
    int32_t over;
    /* known: most.x, m, v, a are valid; sure: the update is proved finite without a check */
    int32_t known, sure;
    weft__most most;
} weft__guard;

/* A checkpoint stores the number of a rule. */
typedef enum {
    WEFT__SGD, WEFT__RMSPROP, WEFT__ADAM, WEFT__ADAMW, WEFT__LION, WEFT__RADAM, WEFT__MUON
} weft__rule;
/* Rules and names of torch.optim. t = guard->applied + 1 counts from 1; powers beta^t are in double. */
typedef struct weft__update {
    /* g = dx + decay x; if decoupled g = dx, after x -= lr decay x */
    weft__rule rule;
    real lr, decay, eps;
    /* Adam, Lion; for SGD momentum and dampening; for RMSprop momentum and alpha; for Muon momentum */
    real beta1, beta2;
    /* Adam: m and v average g and g^2. RMSprop: v averages g^2, a averages g (centered), m is the
     * momentum. */
    bool nesterov, centered, decoupled;
/* SGD: m is the momentum (t = 1: m = g, without dampening). Muon: m is the momentum, and v the direction of
 * this step, which the caller computes. Unused vectors are NULL. */
} weft__update;
/* largest rate and decay of a step; anew: values have changed outside the optimiser */
typedef struct weft__foresight { weft__update most; bool anew; } weft__foresight;

/* Cross entropy of each row of logits [rows, classes], times the row's mask. Value and gradient are 0, and
 * logits and class are not read, where the mask is 0 or the class is `ignore` (has_ignore). Any other class
 * outside 0 .. classes - 1 is a fault. With p = softmax, w = class_weight or 1, a = smoothing: (1 - a)
 * w[class] (-log p[class]) + a / classes sum_c w[c] (-log p[c]). */
typedef struct weft__entropy {
    int64_t rows, classes; real smoothing; bool has_ignore; int32_t ignore;
    const real *class_weight, *mask;             /* [classes], [rows]; NULL: ones */
} weft__entropy;

/* CTC (Graves et al. 2006) between logits [tokens, classes] and labels, both ragged and in CONCAT layout.
 * Sequence s has steps offset[s] .. offset[s + 1] and labels label_offset[s] .. weight [sequences]: its
 * factor; 0 if it does not count: logits and labels are then not read. ctc_weight computes the weight of
 * a mask: 0 if the labels do not fit and `skip`, otherwise that is a fault, as are labels out of range or
 * equal to blank. alpha: (steps + 2) * 2 * (labels + 1) reals of each sequence from place[s] on, see
 * core/shared/ctc.h; the last two rows are scratch of ctc_back. lse [tokens]: log sum exp of the logits. */
enum { WEFT__NO_FIT = -3, WEFT__IS_BLANK = -4 }; /* weft__fault.below; its row is a sequence, a label */
typedef struct weft__ctc {
    int64_t sequences, classes; int32_t blank; bool skip;
    weft__ints offset, label_offset;
    const int64_t *place;
    const real *logits, *weight; const int32_t *labels;
    real *alpha, *lse;
} weft__ctc;

#define SERVICE(result, name, parameters)       typedef result weft__##name##_kernel parameters;
#define KERNEL(result, name, parameters, names) SERVICE(result, name, parameters)
#include "core/kernels.def"
struct weft__kernels {
    const char *name;
    /* device memory is host memory, and a kernel is complete when it returns */
    bool synchronous;
#define SERVICE(result, name, parameters)       weft__##name##_kernel *name;
#define KERNEL(result, name, parameters, names) SERVICE(result, name, parameters)
#include "core/kernels.def"
};

/* the last two exist for float only */
extern const weft__kernels weft__ref, weft__generic, weft__avx2, weft__avx512, weft__amx, weft__amx_emulated,
    weft__neon_bf16;

#define UNARY(name, ...) WEFT__##name,
enum {
#include "core/shared/pointwise.def"
    WEFT__UNARIES };
#define BINARY(name, ...) WEFT__##name,
enum {
#include "core/shared/pointwise.def"
    WEFT__BINARIES };
#endif
