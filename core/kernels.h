/* kernels.h - the contract of a back end: the device that every kernel takes first, the records that the
 * larger kernels take, and the table that a back end fills, generated from kernels.def.
 *
 * All pointers are device memory unless they say host. Kernels run in order on the device's stream; none of
 * them waits but download and wait. Sizes are int64_t; matrices are row-major. A kernel that finds an index
 * out of range puts it into device->fault and reads nothing. */
#ifndef WEFT_KERNELS_H
#define WEFT_KERNELS_H
#include "core/api_author.h"
#include "core/shared/cells.h"

typedef weft_real real;
typedef struct weft__kernels weft__kernels;
struct weft__links;

/* an index, and what it had to be below (-1: a number that no int holds, -2: a number outside a range); by:
 * which kernel, where that is not clear */
typedef struct weft__fault { bool is; int64_t row; int64_t value, below; const char *by; } weft__fault;

/* a BLAS's gemm, row-major or not */
typedef void weft__blas_gemm(int order, int ta, int tb, int m, int n, int k, real alpha, const real *a,
                             int lda, const real *b, int ldb, real beta, real *c, int ldc);
typedef struct weft__device {                    /* first argument of every kernel */
    const weft__kernels *k;
    void *(*allocate)(size_t, void *); void (*release)(void *, void *); void *user;
    struct weft__pool *pool;                     /* the CPU's threads */
    weft__blas_gemm *blas;                       /* what multiplies on the CPU; NULL: its own kernels */
    void *stream, *handle;                       /* a GPU's stream and cuBLAS handle */
    void *workspace; size_t workspace_bytes;     /* scratch of the kernels, grown as they need it */
    int index;
    bool by_rank;                                /* index is a rank's: those of a machine share devices */
    uint64_t unit;                               /* which GPU it is, whoever counts; 0: none */
    const struct weft__links *links;             /* to the devices of other ranks; NULL: none */
    weft_precision precision;
    bool deterministic;
    bool graphs;                                 /* of a GPU: kernels may be held back, until submit */
    bool parallel;                               /* of several ranks or shards: nothing hangs on time */
    int log;                                     /* what WEFT_LOG says */
    int64_t launches;                            /* of a GPU: kernels, products, copies within it */
    int64_t trials, recurrent[4];                /* of a GPU: see weft_usage */
    weft__fault fault;                           /* host memory; a GPU fills it at the next wait */
    char failure[160];                           /* the first failure of the back end itself; "" if none */
    weft_status status;                          /* its kind: WEFT_ENOMEM, WEFT_EDEVICE */
    bool lost;                                   /* the device is of no more use to this context */
} weft__device;

/* A loop nest of up to six axes: extents, and the steps of up to three operands (0: broadcast along that
 * axis). */
typedef struct weft__grid { int rank; int64_t size[WEFT_RANK], step[3][WEFT_RANK]; } weft__grid;

/* A block of a matrix, to a block of another, each with its rows so far apart. x NULL: zeros. from, to: row r
 * is that row of x, goes to that row of y; below 0: it is zeros, it goes nowhere. No row is twice in `to`. */
typedef struct weft__block_copy {
    int64_t rows, width; const real *x; int64_t ldx; real *y; int64_t ldy; bool add;
    const int32_t *from, *to;                    /* NULL: r itself */
} weft__block_copy;

/* Rows in runs: along an axis (offset NULL: every run has `length` rows) or the tokens of each sequence
 * (concat). Element of run s, row r, column j: ((offset ? offset[s] : s * length) + r) * inner + j. */
typedef struct weft__segments { int64_t count, length, inner; const int32_t *offset; } weft__segments;

/* an index array in both places */
typedef struct weft__ints { const int32_t *host, *device; } weft__ints;

/* What becomes of a product's numbers once their sums are complete: c = f(c + bias[column]). f is a function
 * of pointwise.def, or WEFT__UNARIES, which is none. */
typedef struct weft__finish {
    const real *bias; int64_t stride;            /* [n], or NULL; from product to product of a batch */
    int f; real p, q;
} weft__finish;

/* c[i] (+)= op(a[i]) op(b[i]) for i < batches; op is a transposition if ta, tb. op(a): m x k, op(b): k x
 * n, c: m x n. */
typedef struct weft__product {
    bool ta, tb, add;
    int64_t m, n, k, lda, ldb, ldc;
    int64_t batches, stride_a, stride_b, stride_c;
    weft_precision precision; bool back;         /* back: a gradient, so never of one token at a time */
    const weft__finish *then;                    /* host memory; NULL: nothing */
    const void *packed;                          /* b, by gemm_pack for such a product; NULL: it was not */
} weft__product;

/* Layer norm: y = (s - mean) rstd gain + shift for each row s, which is x's or, with a gate whose row is a,
 * then b, a sigmoid(b) + x's. Row r has gain and shift r % groups; groups divides rows. */
typedef struct weft__layer_norm {
    int64_t rows, width, groups; real eps;
    const real *x, *gate;                        /* [rows, width], [rows, 2 width] or NULL */
    const real *gain, *shift;                    /* [groups, width]; NULL: ones, zeros */
    real *y, *mean, *rstd;                       /* mean, rstd [rows] */
    /* backward, which reads mean and rstd; NULL: not needed; added to if told */
    const real *dy; real *dx, *dgate, *dgain, *dshift; bool add_x, add_gate, add_gain, add_shift;
} weft__layer_norm;

/* Scaled dot product attention between two ragged tensors in concat layout. Queries of sequence s are rows
 * q_offset[s] .. q_offset[s + 1], its keys and values k_offset[s] .. ; head h owns columns h * dk .. and h *
 * dv ... A row without keys gives 0. causal: 0 none, 1 top left (j <= i), 2 bottom right (j <= i + keys -
 * queries), 3 the same without its last key (j < i + keys - queries). shared_values: v has dv columns, used
 * by every head; mean, then only: y is the mean over the heads. map, if not NULL: the weight of key j of its
 * sequence, at (map_offset[query row] + j) * heads + head. Dropout: what softmax gives key j becomes 0 if
 * weft__philox_mask(weft__head_key(mask_key, head), id[query row], position[query row], j) < below, and is
 * multiplied by `kept` if not, in the map, too; lse is that of all keys. below 0: there is none. */
typedef struct weft__attention {
    int64_t sequences, queries, keys, heads, dk, dv;
    weft__ints q_offset, k_offset, map_offset;
    int causal; bool shared_values, mean; real scale;
    /* dropout; id, position [queries]: of the sequence, in it */
    uint32_t below; real kept; uint64_t mask_key; const int64_t *id; const int32_t *position;
    /* [queries, heads * dk], [keys, heads * dk], [keys, heads * dv] */
    const real *q, *k, *v;
    /* [queries, heads * dv], or [queries, dv] if mean; [queries, heads] log sum exp of the scores */
    real *y, *lse, *map;
    /* backward, which reads y and lse, too: added to; NULL: not needed */
    const real *dy; real *dq, *dk_, *dv_;
} weft__attention;

/* One direction of one recurrent layer over a packed batch: rows start[t] .. start[t] + live[t] are step t,
 * the same sequences on top (longest first). Sequences of length 0 are the last, beyond live[0]: they take
 * part in no step, and their rows of dh0 and dc0 stay as they are. The step before t is t - 1, or t + 1 if
 * reverse; a sequence that has none (forwards: all at t = 0, in reverse: each at its own end, rows live[t +
 * 1] .. live[t]) starts there from its row of h0 and c0. With `reset` a column, one of those rows from step
 * to step, is several sequences one after the other, and says itself where each begins. Gate slots of H
 * columns in `gates` [tokens, slots * H]; core/cells.def and the bodies say what a cell makes of them. They
 * come in as the sums of x's block and all biases, a slot that only h has a part in as rubbish, and go out as
 * gates. b_h_alone begins the sums of such a slot. With a projection (cells of two states) raw is the cell's
 * h, and h' = W_hr raw is what goes on, out and into the next step. backward takes the gates as forward left
 * them, with the same h, c and raw, and turns the slots into gradients of the sums. What is left for the
 * caller is sums over tokens: dW_hh = d^T h_before, d the slots of h's blocks, dW_hr = dh^T raw, dx and the
 * rest from the slots. A call does the steps from .. to - 1, of which there is at least one. Segment by
 * segment, in the order of the direction, calls give the bits of one; what went before lies in h and c, and
 * backward in the carries. Of gates, raw, h_before and dh only the rows of these steps need be there. */
/* the first token of a column, in the direction of the recurrence, is never WEFT__ON */
enum { WEFT__ON = -1, WEFT__ANEW = -2 };
typedef struct weft__recurrence {
    weft__cell cell; bool reverse;
    int64_t sequences, tokens, steps, hidden, width;   /* width of h: hidden, or the projection's */
    int64_t from, to;                            /* the steps of this call; 0, steps: all of them */
    /* [steps], [steps + 1]: columns that take part in a step, and the row of its first */
    weft__ints live, start;
    /* [tokens]; {NULL}: column s is sequence s. Else a column is several sequences, one after the other:
     * of each token s, if sequence s begins here; WEFT__ANEW: from zeros; WEFT__ON: the state before goes
     * on */
    weft__ints reset;
    /* [gates * hidden, width]; [hidden], NULL: zeros; [width, hidden] or NULL */
    const real *w_hh, *b_h_alone, *w_hr;
    /* [sequences, width], [sequences, hidden] in packed order; NULL: zeros */
    const real *h0, *c0;
    /* h [tokens, width], c [tokens, hidden] of two states, else NULL; raw: h before a projection */
    real *gates, *h, *c, *raw;
    /* backward only */
    /* gradients of h (after a projection) and c of each token; NULL: none */
    const real *dy, *dyc;
    real *dh0, *dc0;                             /* as h0, c0; added to, each row once; NULL: not needed */
    /* scratch [columns, width], [columns, hidden] (of c), zeroed by the caller */
    real *carry_h, *carry_c;
    /* out [tokens, width]: the h that entered each token; NULL: not needed */
    real *h_before;
    /* out [tokens, width]: all that arrived at h; only with a projection */
    real *dh;
    const void *packed;                          /* of recur_layer's l->packed the recurrence's; or NULL */
} weft__recurrence;

/* where a gradient goes, or is added; NULL: not needed */
typedef struct weft__into { real *to; bool add; } weft__into;

/* The whole layer in that direction: the recurrence and what is one product or sum over all its tokens. The
 * gates come in as rubbish, for the kernel makes the sums; a back end may do both a few tokens at a time,
 * while they are in its caches. r.b_h_alone is the kernel's to set; r.h_before, r.dh and `total` are scratch
 * of its backward, which leaves the gates as rubbish. Only of the steps r.from .. r.to - 1, as for the
 * recurrence: dx is written in their rows, the other gradients are sums over their tokens. */
typedef struct weft__recur_layer {
    weft__recurrence r;
    int64_t inputs;
    /* [tokens, inputs], [gates * hidden, inputs], [gates * hidden]: both or none */
    const real *x, *w_ih, *b_ih, *b_hh;
    /* not NULL: x is a table [rows, inputs], dx its gradient, and token i has row ids[i] of it, which is
     * there */
    const int32_t *ids; int64_t rows;
    /* then: scratch [rows, slots * hidden], of the sums that rows begin with; backward, of their gradients */
    real *of_rows;
    real *total;                                 /* scratch [slots * hidden] */
    /* forward: by recur_pack, NULL: it was not; of_rows is full already, by an earlier call */
    const void *packed; bool summed;
    weft__into dx, dw_ih, dw_hh, dw_hr, db_ih, db_hh;
    /* The other direction over the same tokens, of the same sizes, with nothing packed: done by the same
     * call, its gradients after this one's. Or NULL */
    const struct weft__recur_layer *beside;
} weft__recur_layer;

/* Sizes that no finite number exceeds: of this step's gradients; of values, m, v and a before it (a of
 * Adam: |m| / sqrt(v)). */
typedef struct weft__most { double g, x, m, v, a; } weft__most;

/* What an optimiser knows on the device itself, so that a step needs no wait. */
typedef struct weft__guard {
    /* of the last gradient: the sum of |x|^power, or the largest |x| */
    double norm;
    int64_t applied, skipped, in_a_row;          /* steps; skipped: a gradient that was not finite */
    /* in the last bad step the first element of the flat vector that was not finite; -1: none yet */
    int64_t bad;
    /* the gradients are; once rehearsed, so is what the update would write */
    int32_t finite;
    /* the gradients were, but not what the update would have written */
    int32_t over;
    /* most.x, m, v, a hold; what the update will write is finite, without a look at it */
    int32_t known, sure;
    weft__most most;
} weft__guard;

typedef enum { WEFT__SGD, WEFT__RMSPROP, WEFT__ADAM, WEFT__ADAMW } weft__rule;
/* torch.optim's rules and names; t = guard->applied + 1 counts from 1, powers beta^t in double */
typedef struct weft__update {
    /* g = dx + decay x, but ADAMW: g = dx, and first x -= lr decay x */
    weft__rule rule;
    real lr, decay, eps;
    /* Adam; SGD: momentum, dampening; RMSprop: momentum, alpha */
    real beta1, beta2;
    /* Adam: m, v averages of g, g^2. RMSprop: v of g^2, a of g (centered), m the momentum. */
    bool nesterov, centered;
/* SGD: m the momentum (t = 1: m = g, without dampening). Vectors not used are NULL. */
} weft__update;
/* the largest rate and decay of a step; anew: values have changed since the last one */
typedef struct weft__foresight { weft__update most; bool anew; } weft__foresight;

/* Cross entropy of each row of logits [rows, classes], times the row's mask: 0 (value and gradient) without a
 * look at logits or class where the mask is 0 or the class is `ignore` (has_ignore). Any other class out of 0
 * .. classes - 1 is a fault. With p = softmax, w = class_weight or 1, a = smoothing: (1 - a) w[class] (-log
 * p[class]) + a / classes sum_c w[c] (-log p[c]). */
typedef struct weft__entropy {
    int64_t rows, classes; real smoothing; bool has_ignore; int32_t ignore;
    const real *class_weight, *mask;             /* [classes], [rows]; NULL: ones */
} weft__entropy;

#define SERVICE(result, name, parameters)       typedef result weft__##name##_kernel parameters;
#define KERNEL(result, name, parameters, names) SERVICE(result, name, parameters)
#include "core/kernels.def"
struct weft__kernels {
    const char *name;
    /* device memory is host memory, and every kernel is done when it returns */
    bool synchronous;
#define SERVICE(result, name, parameters)       weft__##name##_kernel *name;
#define KERNEL(result, name, parameters, names) SERVICE(result, name, parameters)
#include "core/kernels.def"
};

/* the last two: float only */
extern const weft__kernels weft__ref, weft__generic, weft__avx2, weft__avx512, weft__amx, weft__amx_emulated;

#define UNARY(name, ...) WEFT__##name,
enum {
#include "core/shared/pointwise.def"
    WEFT__UNARIES };
#define BINARY(name, ...) WEFT__##name,
enum {
#include "core/shared/pointwise.def"
    WEFT__BINARIES };
#endif
