/* api_core.h - what all else stands on: contexts, tensors, ragged batches, random numbers.
 *
 * Contents: kinds of number, statuses; the context, errors, modes, the device and memory, tensors,
 * ragged batches, random numbers.
 *
 * Lifetimes. Modules, parameters and optimisers hang below the context and end at weft_close. Every
 * tensor that a function returns belongs to the step and ends at weft_clear (or at weft_rewind).
 * Only weft_decoded, weft_dataset, weft_frame and weft_journal are the program's own, each with a
 * function that ends it.
 *
 * Errors are sticky. The first failure is kept in the context with its text; every later operator
 * returns an inert tensor, never NULL, so expressions need no checks, and a failed step changes no
 * parameter. A NULL tensor, a tensor of another open context and a stale tensor are such errors. A
 * stale tensor, from an earlier step, is recognised until its memory is used again, two or more
 * steps later; under WEFT_CHECK=1 always. A tensor of a closed context is never recognised, also
 * under WEFT_CHECK=1: weft_close frees its memory, so reading it is undefined behaviour. A call
 * with only NULL tensors has no context to fail. It returns an inert tensor; the next operator that
 * gets it together with a valid tensor reports the error. Functions on files return a weft_status
 * of their own and do not change the context.
 *
 * Threads. A context is used by one thread at a time; many contexts may exist. See
 * docs/conventions.md for fork. */
#ifndef WEFT_API_CORE_H
#define WEFT_API_CORE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 2
#define WEFT_VERSION_PATCH 0

#if defined(__GNUC__)
#define WEFT_API      __attribute__((visibility("default")))
#define WEFT_MUST_USE __attribute__((warn_unused_result))
#else
#define WEFT_API
#define WEFT_MUST_USE
#endif

#ifdef WEFT_DOUBLE
typedef double weft_real;                        /* the library built with `make V=double` */
#define WEFT__OPEN "weft_open_f64"
#else
typedef float weft_real;
#define WEFT__OPEN "weft_open_f32"
#endif

/* In every struct of options 0 is the default, so one that is zero-initialised is all defaults.
 * Where 0 itself is expected of a number that has another default (an eps, say), this says so. */
#define WEFT_ZERO (-0x1p-1022)

/* The kinds of number: a tensor holds the first two, an item of a checkpoint any. */
typedef enum { WEFT_REAL, WEFT_I32, WEFT_I64, WEFT_F64, WEFT_TEXT, WEFT_BYTES } weft_dtype;

#define WEFT_STATUS_MAP(XX)                                                      \
    XX(OK, "no error")                                                           \
    XX(ENOMEM, "out of memory")                                                  \
    XX(ESHAPE, "shapes or layouts that do not agree")                            \
    XX(EARG, "an argument out of its range, or a NULL, stale or foreign handle") \
    XX(EDEVICE, "no such device, or a failure on it")                            \
    XX(ENUMERIC, "numbers that are not finite")                                  \
    XX(EIO, "a file that cannot be read or written")                             \
    XX(ENOENT, "no such file")                                                   \
    XX(EFORMAT, "a file that is not what it should be")
#define WEFT_STATUS_NAME(name, text) WEFT_##name,
typedef enum { WEFT_STATUS_MAP(WEFT_STATUS_NAME) WEFT_STATUSES } weft_status;
#undef WEFT_STATUS_NAME

typedef struct weft weft;
typedef struct weft_tensor weft_tensor;

/* ---- the context ---- */

/* WEFT_BEST: a GPU if there is one, else the CPU. WEFT_REF: the CPU by plain loops, the
 * specification of all others. */
typedef enum { WEFT_BEST, WEFT_CPU, WEFT_REF, WEFT_CUDA } weft_device;

/* Precision of matrix products; storage and sums are fp32 always. FP32: fp32-accurate by the
 * fastest route; STRICT_FP32: fp32 multiplications only; TF32: at least that accurate (a CPU with
 * AMX computes gradients on matrix tiles); BF16: operands rounded to bfloat16, or to TF32
 * (attention and recurrent layers' steps on a GPU). In the library of doubles all are double. */
typedef enum { WEFT_FP32, WEFT_STRICT_FP32, WEFT_TF32, WEFT_BF16 } weft_precision;

/* What multiplies matrices on the CPU. OWN, the default: kernels of weft's own, whose bits depend
 * on nothing but the operands. OPENBLAS, which must be installed: worth a try where no vectors of
 * the CPU are known (weft_device_name says generic), see docs/performance.md. Recurrent layers'
 * steps and attention are weft's own always. */
typedef enum { WEFT_DEFAULT_GEMM, WEFT_OWN_GEMM, WEFT_OPENBLAS_GEMM } weft_gemm;

typedef struct {
    weft_device    device;
    int            index;                        /* which GPU */
    uint64_t       seed;                         /* of every random stream of the context */
    int            threads;                 /* up to 1024; 0: the cores that this process may use */
    weft_precision precision;
    weft_gemm      gemm;
    /* GPU: a sequence's bits do not depend on its neighbours, nor on what the clock says of kernels
     * (on the CPU always) */
    bool           deterministic;
    /* GPU: a step, from weft_clear to weft_clear, whose launches are those of a step before is sent
     * to the device as one CUDA graph, or as some if the program reads in between. The bits stay
     * the same, and launches cost less: for small models whose batches have like shapes. A CUDA
     * call of the program's own that waits for the whole device belongs behind weft_clear or
     * weft_synchronize; elsewhere it makes the step fail. See docs/design/cuda.md */
    bool           graphs;
    /* recurrent layers keep only the states of each token, and make its gates again on the way
     * back, a segment of steps at a time: an LSTM 2 numbers a unit instead of 6, for 30 to 40 %
     * more time; on the CPU outputs are the same bits */
    bool           lean;
    /* bytes of weights that may stay packed between calls that record nothing, beside the weights
     * themselves: for streaming, decoding, and whole runs of recurrent layers; 0: no limit, below
     * 0, or lean: none do */
    int64_t        kept_weights;
    /* memory functions, both or neither (then malloc and free); they must not use the context */
    void *(*allocate)(size_t bytes, void *user);
    void  (*release)(void *memory, void *user);
    void  *user;
} weft_opts;

/* The version of the library, "0.2.0". */
WEFT_API const char *weft_version(void);
/* A new context; NULL options mean all zeros. Never NULL: if it could not be opened, one that has
 * failed, says why, and can be closed (without memory for a context WEFT_ENOMEM, for good). The
 * environment variables WEFT_DEVICE (best, cpu, ref, cuda, cuda:1), WEFT_THREADS and WEFT_GEMM
 * (own, openblas, or a library's absolute path) override the device, the threads and what
 * multiplies, WEFT_ISA (generic, avx2, avx512, amx, ref) the instruction set of the CPU's kernels;
 * what is not there is an error. One of several processes that mpirun or srun has started has by
 * default the GPU of its number on this machine, and its share of the cores. WEFT_LOG=1 and 2
 * print to stderr, 0 silences the one line on a forgotten weft_clear, WEFT_CHECK=1 looks for a
 * program's mistakes, see docs/conventions.md. A program asks the linker for it by a name that
 * says which weft_real it was compiled with (WEFT__OPEN), so that a header and a library that
 * disagree do not link; dlsym finds it as weft_open, too. */
WEFT_API weft *weft_open(const weft_opts *opts) __asm__(WEFT__OPEN);
/* Ends the context and everything below it. NULL is allowed. Inside a callback of the context it
 * does nothing and fails the context. Afterwards the program must not use a tensor, module or other
 * handle of the context: its memory is freed, and weft cannot detect the mistake. */
WEFT_API void weft_close(weft *w);
/* Ends the step: its tensors and its tape. An error stays. Inside a callback, a function of the
 * program that the library calls, it does nothing and fails the context: the step is in use. */
WEFT_API void weft_clear(weft *w);
/* Ends the step and the error, and zeroes all gradients: to go on, with a smaller batch perhaps.
 * Inside a callback it does nothing and fails the context. */
WEFT_API void weft_recover(weft *w);

/* ---- errors ---- */
/* Whether nothing has failed since weft_open or weft_recover. */
WEFT_API bool weft_ok(const weft *w);
/* The kind of the first failure, WEFT_OK if none. */
WEFT_API weft_status weft_error_code(const weft *w);
/* The text of the first failure: operator, shapes, layer, sequence, what was expected; "" if
 * none. Owned by the context. */
WEFT_API const char *weft_error_message(const weft *w);
/* "ESHAPE" for WEFT_ESHAPE, and so on. */
WEFT_API const char *weft_status_name(weft_status status);
/* Calls fn at the first failure of a step, before the function that failed returns. NULL: no
 * function. fn may read numbers; weft_clear, weft_recover and weft_close do nothing inside it. It
 * must return. */
WEFT_API void weft_on_error(weft *w,
                            void (*fn)(weft_status status, const char *message, void *user),
                            void *user);
/* Makes the context fail as an operator does, with text as printf; a program's own checks use
 * it. */
WEFT_API void weft_fail(weft *w, weft_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- modes ---- */
/* Dropout on (the default) or off; returns what it was. */
WEFT_API bool weft_set_training(weft *w, bool on);
/* Whether dropout is on; false for NULL. */
WEFT_API bool weft_is_training(const weft *w);
/* The tape on (the default) or off; returns what it was. */
WEFT_API bool weft_set_grad_enabled(weft *w, bool on);
/* Whether the tape is on; false for NULL. */
WEFT_API bool weft_is_grad_enabled(const weft *w);
/* WEFT_NO_GRAD(w) { .. } runs its block once with the tape off, WEFT_EVAL(w) { .. } with dropout
 * off; both at once: WEFT_NO_GRAD(w) WEFT_EVAL(w) { .. }. What was before is restored however the
 * block is left: at its end, by break or continue (which leave the block, not a loop around it), by
 * return, goto, or an exception of C++; only longjmp restores nothing. w must outlive the
 * block. */
#define WEFT_NO_GRAD(w) WEFT__SCOPE(w, grad_enabled)
#define WEFT_EVAL(w)    WEFT__SCOPE(w, training)
/* What the two are made of: a loop of one round, whose variable puts back what was. */
typedef struct { weft *w; bool was, open; } weft__scope;
static inline weft__scope weft__begin_grad_enabled(weft *w)
{
    weft__scope s = { w, weft_set_grad_enabled(w, false), true };
    return s;
}
static inline weft__scope weft__begin_training(weft *w)
{
    weft__scope s = { w, weft_set_training(w, false), true };
    return s;
}
static inline void weft__end_grad_enabled(weft__scope *s) { weft_set_grad_enabled(s->w, s->was); }
static inline void weft__end_training(weft__scope *s) { weft_set_training(s->w, s->was); }
#define WEFT__JOIN_(a, b) a##b
#define WEFT__JOIN(a, b)  WEFT__JOIN_(a, b)
#define WEFT__SCOPE_OF(w, what, name)                                                            \
    for (weft__scope name __attribute__((cleanup(weft__end_##what))) = weft__begin_##what(w);    \
         name.open; name.open = false)
#define WEFT__SCOPE(w, what) WEFT__SCOPE_OF(w, what, WEFT__JOIN(weft__##what##_, __LINE__))

/* ---- the device and memory ---- */
/* What runs the kernels: "ref", "generic", "avx2", "avx512", "cuda". */
WEFT_API const char *weft_device_name(const weft *w);
/* How many threads the CPU kernels use. */
WEFT_API int weft_threads(const weft *w);
/* Waits until the device has done everything asked of it so far. */
WEFT_API void weft_synchronize(weft *w);

typedef struct weft_mark { int64_t at[6]; uint64_t step; } weft_mark;
/* The present moment of a step. */
WEFT_API weft_mark weft_mark_here(weft *w);
/* Ends the tensors and ragged batches made since the mark, so that a decoder loop of any length
 * runs in constant memory. Errors: the mark is of another step, an earlier rewind has ended it, or
 * a callback runs and the mark is older than its call. A handle that it has ended is recognised
 * until another tensor takes its place: then it is that one (under WEFT_CHECK=1 none does). */
WEFT_API void weft_rewind(weft *w, weft_mark mark);

/* ---- tensors ---- *
 * Row-major and contiguous, rank 0 to 6, reals or int32. */
enum { WEFT_RANK = 6 };
/* WEFT_SHAPE(2, n): a rank and its extents, two arguments. WEFT_LIST(a, b, c): tensors and how many
 * there are, two arguments, too. In C both live until the block ends, in C++ until the full
 * expression does: they are for calls, not to be kept. */
#ifndef __cplusplus
#define WEFT_SHAPE(...) \
    (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }
#define WEFT_LIST(...)                     \
    (weft_tensor *const[]){ __VA_ARGS__ }, \
        (int64_t)(sizeof((weft_tensor *const[]){ __VA_ARGS__ }) / sizeof(weft_tensor *))
#else
extern "C++" {
template <typename T, size_t N> struct weft__list {
    static constexpr int count = static_cast<int>(N);
    T at[N];
    const T *data() const { return at; }
};
template <typename... N> constexpr weft__list<int64_t, sizeof...(N)> weft__shape(N... extent)
{
    return { { static_cast<int64_t>(extent)... } };
}
template <typename... X> constexpr weft__list<weft_tensor *, sizeof...(X)> weft__tensors(X... x)
{
    return { { x... } };
}
}
#define WEFT_SHAPE(...) \
    decltype(weft__shape(__VA_ARGS__))::count, weft__shape(__VA_ARGS__).data()
#define WEFT_LIST(...)                     \
    weft__tensors(__VA_ARGS__).data(),     \
        static_cast<int64_t>(decltype(weft__tensors(__VA_ARGS__))::count)
#endif

/* A tensor of the step with these numbers, copied at once; values NULL: zeros. */
WEFT_API weft_tensor *weft_reals(weft *w, const weft_real *values, int rank, const int64_t *shape);
WEFT_API weft_tensor *weft_ints(weft *w, const int32_t *values, int rank, const int64_t *shape);
WEFT_API weft_tensor *weft_zeros(weft *w, int rank, const int64_t *shape);
/* All elements the same value. */
WEFT_API weft_tensor *weft_full(weft *w, double value, int rank, const int64_t *shape);
/* A tensor of rank 0. */
WEFT_API weft_tensor *weft_scalar(weft *w, double value);
/* Returns the int32 numbers from, from + step, .. before `to`, [n], as torch.arange: (w, 0, n, 1)
 * counts from 0 to n - 1. step may be negative. weft_to_reals and weft_scale make other steps.
 * Errors: a step of 0 or away from `to`; a number that an int32 does not hold. */
WEFT_API weft_tensor *weft_arange(weft *w, int64_t from, int64_t to, int64_t step);
/* Standard normal, or uniform in [low, high), low <= high, from the context's stream "tensor". */
WEFT_API weft_tensor *weft_randn(weft *w, int rank, const int64_t *shape);
WEFT_API weft_tensor *weft_rand(weft *w, double low, double high, int rank, const int64_t *shape);
/* The context of a tensor; NULL for NULL. */
WEFT_API weft *weft_context_of(const weft_tensor *x);
WEFT_API weft_dtype weft_dtype_of(const weft_tensor *x);
WEFT_API int weft_rank(const weft_tensor *x);
/* The extent of an axis, counted from the end if negative; 0 if there is no such axis. */
WEFT_API int64_t weft_size(const weft_tensor *x, int axis);
/* How many elements. */
WEFT_API int64_t weft_numel(const weft_tensor *x);
/* Copies all elements to host memory of exactly that size; waits for the device. On error fills it
 * with zeros, and the context has failed. */
WEFT_API void weft_read(const weft_tensor *x, void *out, size_t bytes);
/* The value of a tensor of one element; waits; NaN on error, and the context has failed. */
WEFT_API double weft_item(const weft_tensor *x);
/* Prints shape, layout and numbers, a line for each row of the last axis; of an axis of more than 8
 * the first and last 4, unless weft_set_print_limit says otherwise. */
WEFT_API void weft_print(FILE *file, const weft_tensor *x);
/* From now on weft_print shows of an axis of more than `limit` the first half of so many, and the
 * last; 0: everything. Returns what it was, 8 at first. */
WEFT_API int64_t weft_set_print_limit(weft *w, int64_t limit);

/* ---- ragged batches ---- *
 * A packed sequence is a tensor whose rows are laid out by a batch of sequences. Every operator
 * takes it; nothing needs a mask. Layout is storage, not meaning: an operator arranges its ragged
 * inputs to one layout by itself. Length 0 and an empty batch are defined everywhere. */
/* id NULL: 0 .. n-1; equal ids: equal dropout masks. offset, of pieces of sequences that were cut:
 * how many tokens of its sequence come before each piece, which so has the masks of the whole
 * (attention's by its queries, keys count from the piece's first); NULL: none. */
typedef struct {
    int64_t n;
    const int32_t *len;
    const int64_t *id;
    const int32_t *offset;
} weft_lengths;

/* PACKED: time-major, longest first (PyTorch's PackedSequence). CONCAT: sequence by sequence. ROWS:
 * several whole sequences a row of fixed width, by a placement. PADDED: [n, T], what
 * weft_pack_padded_sequence reads and weft_pad_packed_sequence makes, never a tensor's own. */
typedef enum { WEFT_PLAIN, WEFT_PACKED, WEFT_CONCAT, WEFT_ROWS, WEFT_PADDED } weft_layout;
/* LEFT: data first, pads after it. RIGHT: pads first. */
typedef enum { WEFT_ALIGN_LEFT, WEFT_ALIGN_RIGHT } weft_align;
/* Where each sequence of a batch lies in the layout `rows`: sequence s in row[s] from column[s]
 * on; all below rows, width. */
typedef struct { int64_t rows, width; const int32_t *row, *column; } weft_placement;

/* A ragged tensor [N, features] from the sequences' rows end to end (concat), copied at once.
 * features 0: [N]. */
WEFT_API weft_tensor *weft_ragged(weft *w, const weft_real *rows, int64_t features,
                                  const weft_lengths *lengths);
/* A ragged tensor [N] of int32 from the sequences end to end. */
WEFT_API weft_tensor *weft_ragged_ints(weft *w, const int32_t *rows, const weft_lengths *lengths);
/* WEFT_PLAIN if x is not ragged. */
WEFT_API weft_layout weft_layout_of(const weft_tensor *x);
/* The batch of a ragged tensor: how many sequences, their lengths, ids and offsets (NULL: none) in
 * the user's order. Owned by the step; n = 0 and NULLs if x is not ragged. */
WEFT_API weft_lengths weft_lengths_of(const weft_tensor *x);
/* [n + 1] cu_seqlens: the first row of each sequence in the layout concat. Owned by the step; NULL
 * if x is not ragged. */
WEFT_API const int32_t *weft_offsets(const weft_tensor *x);
/* For every row of x's own layout, [rows], the sequence and the position in it, its offset
 * counted; -1 in a pad of the layout `rows`. Owned by the step; NULLs if x is not ragged. */
typedef struct { const int32_t *sequence, *position; } weft_rows;
WEFT_API weft_rows weft_rows_of(const weft_tensor *x);
/* Draws the layout as text: which token (sequence a, b, .., position) lies in each row; of a packed
 * batch first the staircase, a row a sequence, a column a step. */
WEFT_API void weft_print_layout(FILE *file, const weft_tensor *x);

/* ---- random numbers ---- *
 * Philox4x32-10 (Salmon et al. 2011), counter-based: a stream is a name and a counter, so drawing
 * from one never disturbs another; the counters of all streams are part of a checkpoint. */
typedef struct weft_stream weft_stream;
/* The stream of that name (1 .. 47 bytes), made at the first call; owned by the context. NULL if it
 * cannot be made: the context has failed, and what is drawn from NULL is 0. */
WEFT_API weft_stream *weft_stream_of(weft *w, const char *name);
/* One without a context, of this seed and name; the program's, freed by weft_stream_free. NULL: no
 * memory, or no such name. */
WEFT_API weft_stream *weft_stream_new(uint64_t seed, const char *name);
WEFT_API void weft_stream_free(weft_stream *stream);
WEFT_API uint64_t weft_stream_next(weft_stream *stream);
/* Uniform in [0, 1). */
WEFT_API double weft_stream_uniform(weft_stream *stream);
WEFT_API double weft_stream_normal(weft_stream *stream);
/* Uniform in 0 .. below - 1, without bias; 0 if below is 0. */
WEFT_API uint64_t weft_stream_below(weft_stream *stream, uint64_t below);
/* A uniform permutation of 0 .. n - 1. */
WEFT_API void weft_stream_permutation(weft_stream *stream, int64_t n, int32_t *out);

#ifdef __cplusplus
}
#endif
#endif
