/* api_core.h - contexts, tensors, ragged batches and random numbers: the base of all other headers.
 *
 * Contents: kinds of number, statuses; the context, errors, modes, the device and memory, tensors,
 * ragged batches, random numbers.
 *
 * Lifetimes. Modules, parameters and optimisers belong to the context and end at weft_close. Every
 * tensor that a function returns belongs to the step and ends at weft_clear or weft_rewind. So do
 * arrays that a function returns, unless its comment names another owner. The program owns
 * weft_decoded, weft_dataset, weft_frame, weft_plan and weft_journal, and frees each by its own
 * function. Unless a comment says otherwise, weft copies the arrays, strings and options that a
 * function gets: the program may change or free them after the call.
 *
 * Errors are sticky. The context keeps the first failure with its text. Every later operator
 * returns an inert tensor, never NULL, so expressions need no checks, and a failed step changes no
 * parameter. A NULL tensor, a tensor of another context and a stale tensor are such errors. A stale
 * tensor is one of an earlier step. weft reports its use until its memory is reused, two or more
 * steps later; with WEFT_CHECK=1 always. It cannot report a tensor of a closed context: its memory
 * is freed, so its use is undefined behaviour. A call with only NULL tensors has no context to
 * fail. It returns an inert tensor; the next operator that gets it together with a valid tensor
 * reports the error. A context of NULL counts as a failed context. Functions on files and plans
 * return a weft_status and do not change the context.
 *
 * Words. A shape such as [N, features] lists extents; ".." means any further axes. N counts
 * the rows of a ragged tensor, n its sequences. The user's order is the order in weft_lengths. A
 * callback is any function of the program that weft calls: of weft_opts, weft_on_error,
 * weft_on_result, an operator, a cell, a decoder, a planner, weft_gradcheck or a rolling forecast.
 * In a callback weft_clear, weft_recover and weft_close do nothing and fail the context.
 *
 * Threads. One thread at a time may use a context; there may be many. Fork: docs/conventions.md. */
#ifndef WEFT_API_CORE_H
#define WEFT_API_CORE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of these headers; weft_version returns that of the library. */
#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 2
#define WEFT_VERSION_PATCH 0

/* WEFT_MUST_USE: the compiler warns if a program ignores the result. */
#if defined(__GNUC__)
#define WEFT_API      __attribute__((visibility("default")))
#define WEFT_MUST_USE __attribute__((warn_unused_result))
#else
#define WEFT_API
#define WEFT_MUST_USE
#endif

#ifdef WEFT_DOUBLE
typedef double weft_real;    /* by -DWEFT_DOUBLE, for the library built with `make V=double` */
#define WEFT__OPEN "weft_open_f64"
#else
typedef float weft_real;
#define WEFT__OPEN "weft_open_f32"
#endif

/* In every struct of options 0 is the default, so a zero-initialised struct has all defaults.
 * If the default of a double is another number, such as 1e-5, write WEFT_ZERO for the value 0. */
#define WEFT_ZERO (-0x1p-1022)

/* The kinds of number: weft_real, int32_t, int64_t, double, text with a final 0, bytes. A tensor
 * holds WEFT_REAL or WEFT_I32; an item of a checkpoint holds any of them. */
typedef enum { WEFT_REAL, WEFT_I32, WEFT_I64, WEFT_F64, WEFT_TEXT, WEFT_BYTES } weft_dtype;

/* Lists all statuses: expands to XX(name, meaning) for each. WEFT_OK is 0; WEFT_STATUSES is the
 * number of statuses. weft_status_name returns a name as text. */
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

typedef struct weft weft;                        /* a context */
typedef struct weft_tensor weft_tensor;          /* a tensor of a step, a parameter or a buffer */

/* ---- the context ---- */
/* WEFT_BEST: a GPU if the machine has one, otherwise the CPU. WEFT_CUDA: a GPU, or weft_open fails.
 * WEFT_REF: the CPU by plain loops, which specify what all other kernels compute. */
typedef enum { WEFT_BEST, WEFT_CPU, WEFT_REF, WEFT_CUDA } weft_device;

/* Precision of matrix products; storage and sums stay fp32. FP32: the accuracy of fp32, by the
 * fastest kernel. STRICT_FP32: fp32 multiplications only. TF32: at least the accuracy of TF32; on a
 * CPU with AMX only gradients change, on other CPUs nothing. BF16: operands are rounded to
 * bfloat16; on a GPU attention and recurrent steps use TF32. The double library uses double. */
typedef enum { WEFT_FP32, WEFT_STRICT_FP32, WEFT_TF32, WEFT_BF16 } weft_precision;

/* Matrix products on the CPU. OWN: weft's kernels; a row of a result has the same bits for any
 * number of rows and threads, on one instruction set. OPENBLAS: loaded at run time; its bits depend
 * on the shape. DEFAULT: OWN; where weft_device_name is "generic", OPENBLAS if it is 1.3 times
 * faster, but not with `deterministic`, shards or several ranks. Recurrent steps stay weft's. */
typedef enum { WEFT_DEFAULT_GEMM, WEFT_OWN_GEMM, WEFT_OPENBLAS_GEMM } weft_gemm;

typedef struct {
    weft_device    device;                       /* default: WEFT_BEST */
    /* Number of the GPU. 0: GPU 0; in a process of mpirun or srun, the GPU of its local rank. In
     * such a process only the environment variable WEFT_DEVICE=cuda:0 selects GPU 0. */
    int            index;
    uint64_t       seed;                         /* of all random streams; any number, also 0 */
    /* 1 .. 1024. 0: the cores of this process; under mpirun or srun, its share of them. */
    int            threads;
    weft_precision precision;                    /* default: WEFT_FP32 */
    weft_gemm      gemm;                         /* default: WEFT_DEFAULT_GEMM */
    /* GPU: true gives a sequence the same bits alone, in any batch and in every run. false: batch
     * size and timing select recurrent kernels that differ in the last bits. CPU: true uses weft's
     * own products by default, which give a sequence the same bits in any batch. */
    bool           deterministic;
    /* Recurrent layers keep only the states of each token and compute gates again in backward,
     * one segment of steps at a time. An LSTM keeps 2 numbers for each unit instead of 6 and takes
     * 30 to 40 % more time. On the CPU outputs and gradients of inputs keep their bits. Gradients
     * of weights agree to rounding, as do all results on a GPU. */
    bool           lean;
    /* Limit in bytes for cached copies of weights, packed as matrix products read them.
     * Streaming, decoding and inference use them. 0: no limit. Below 0, or with .lean: no cache. */
    int64_t        kept_weights;
    /* Functions for host memory, both or neither; NULL: malloc and free. allocate returns memory of
     * `bytes` bytes, 1 or more, aligned as malloc does, or NULL. weft calls both only on threads of
     * the program. Neither may use the context. user: passed to both. */
    void *(*allocate)(size_t bytes, void *user);
    void  (*release)(void *memory, void *user);
    void  *user;
} weft_opts;

/* Returns the version of the library, "0.2.0", a constant. Like torch.__version__. */
WEFT_API const char *weft_version(void);
/* Opens a context; opts NULL: all defaults. Never returns NULL. If opening fails, it returns a
 * context that has failed for good: check weft_ok, read weft_error_message, then weft_close it.
 * weft_recover does not repair that context. Tape and dropout are on (see modes).
 *
 * Environment variables override the options: WEFT_DEVICE, WEFT_THREADS, WEFT_GEMM, and WEFT_ISA,
 * the instruction set of the CPU's kernels. WEFT_LOG=1 prints device and memory to stderr, 2 also
 * the time of operators. WEFT_CHECK=1 reports mistakes of the program. See docs/conventions.md.
 *
 * The linker symbol encodes weft_real (WEFT__OPEN), so a float program cannot link against the
 * double library. dlsym also finds the function as weft_open.
 * Errors: an option out of its range; a device, GPU or instruction set that this machine does not
 * have; out of memory. Like torch.device with torch.manual_seed. */
WEFT_API weft *weft_open(const weft_opts *opts) __asm__(WEFT__OPEN);
/* Closes the context and frees everything that belongs to it. NULL is allowed. Do not use a tensor,
 * module or other handle of the context afterwards: weft cannot detect that mistake. */
WEFT_API void weft_close(weft *w);
/* Ends the step: its tensors, ragged batches and tape. Parameters, buffers and gradients keep their
 * numbers, and an error stays. Call it once per step. NULL is allowed. */
WEFT_API void weft_clear(weft *w);
/* Ends the step and the error, and zeroes all gradients, so that the program can go on, perhaps
 * with a smaller batch. After WEFT_ENOMEM it also frees cached memory. A context that could not be
 * opened, or whose device is lost, stays failed. NULL is allowed. */
WEFT_API void weft_recover(weft *w);

/* ---- errors ---- */
/* Returns whether nothing has failed since weft_open or weft_recover; false for NULL. It does not
 * wait for a GPU: an error on a GPU appears at the next function that waits. */
WEFT_API bool weft_ok(const weft *w);
/* Returns the kind of the first failure; WEFT_OK if nothing failed, WEFT_EARG for NULL. */
WEFT_API weft_status weft_error_code(const weft *w);
/* Returns the text of the first failure: operator, shapes, layer, sequence, expected value. "" if
 * none, "no context" for NULL. The context owns it until weft_recover. Like str(exception). */
WEFT_API const char *weft_error_message(const weft *w);
/* Returns the name of a status, a constant: "ESHAPE" for WEFT_ESHAPE, "unknown status" for a number
 * that is not a status. Like errno.errorcode. */
WEFT_API const char *weft_status_name(weft_status status);
/* Calls fn(status, message, user) when the context fails, before the failing function returns.
 * Further failures do not call fn until weft_recover. A context has one fn: a new one replaces the
 * old one, NULL removes it. message is valid during the call. fn must return. Inside fn weft_read
 * gives zeros; weft_clear, weft_recover and weft_close do nothing. Like sys.excepthook. */
WEFT_API void weft_on_error(weft *w,
                            void (*fn)(weft_status status, const char *message, void *user),
                            void *user);

/* ---- modes ---- */
/* Turns dropout on (the default) or off for all modules of the context, and returns the previous
 * mode; false for NULL. Like Module.train. */
WEFT_API bool weft_set_training(weft *w, bool on);
/* Turns the tape on (the default) or off, and returns the previous mode; false for NULL. Results
 * computed while the tape is off have no gradient. Like torch.set_grad_enabled. */
WEFT_API bool weft_set_grad_enabled(weft *w, bool on);
/* WEFT_NO_GRAD(w) { .. } runs its block once with the tape off, WEFT_EVAL(w) { .. } with dropout
 * off; WEFT_NO_GRAD(w) WEFT_EVAL(w) { .. } does both. The previous mode comes back however the
 * program leaves the block: at its end, by break or continue (which leave the block, not a loop
 * around it), by return, goto, or a C++ exception, but not by longjmp. w must outlive the block. */
#define WEFT_NO_GRAD(w) WEFT__SCOPE(w, grad_enabled)
#define WEFT_EVAL(w)    WEFT__SCOPE(w, training)
/* Private: a loop of one round, whose variable restores the mode. */
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
/* Returns the name of the compute kernels: "ref", "generic", "neon", "avx2", "avx512", "cuda"; with
 * matrix tiles "amx" or "neon-bf16"; "none" for NULL. A constant, like get_device_name of torch. */
WEFT_API const char *weft_device_name(const weft *w);

typedef struct {
    /* Bytes of host memory held now, as requested from the allocator, with threads and scratch. */
    int64_t host_bytes;
    int64_t device_bytes;          /* bytes of GPU memory held now, without CUDA's own; CPU: 0 */
    int64_t allocations;           /* blocks requested since weft_open, without scratch */
    int64_t tape;                  /* entries of the tape: operators recorded in this step */
    int64_t host_peak;             /* the most bytes of host memory held since weft_open */
    int64_t device_peak;           /* the most bytes of GPU memory held since weft_open; CPU: 0 */
    int64_t kept_weights;          /* bytes of cached packed weights, part of host_bytes */
    int64_t launches;              /* GPU, since weft_open: kernels, products, copies on it */
    /* GPU: passes of recurrent layers in which weft timed kernels to select the fastest. After a
     * step that adds none, all later steps use the same kernels, so measure from there on. */
    int64_t trials;
    /* GPU: passes of recurrent layers: [0] by one kernel for each step; by one kernel for all steps
     * [1] in blocks, [2] in clusters, [3] in groups of blocks. */
    int64_t recurrent[4];
} weft_usage;
/* Returns memory and counters of the context; zeros for NULL. Like torch.cuda.memory_stats. */
WEFT_API weft_usage weft_usage_of(const weft *w);

typedef struct weft_mark { int64_t at[6]; uint64_t step; } weft_mark;   /* private fields */
/* Returns a mark of the present moment of the step, for weft_rewind. A mark holds no memory and
 * serves any number of rewinds. For NULL it returns zeros, which weft_rewind refuses. */
WEFT_API weft_mark weft_mark_here(weft *w);
/* Ends the tensors, ragged batches and entries of the tape made since the mark, so that a decoder
 * loop of any length runs in constant memory. To keep a tensor, copy it before the rewind: to a
 * buffer by weft_assign, or to host memory by weft_read. Gradients do not change, and counters of
 * dropout and random streams do not go back. weft reports the use of an ended tensor until a new
 * tensor uses its memory; with WEFT_CHECK=1 always. Errors: a mark of another step; a mark that an
 * earlier rewind has ended; inside a callback, a mark from before that callback. */
WEFT_API void weft_rewind(weft *w, weft_mark mark);

/* ---- tensors ---- *
 * Row-major and contiguous, rank 0 to WEFT_RANK, reals (weft_real) or ints (int32). An extent may
 * be 0. Functions that make a tensor take a rank and its extents (WEFT_SHAPE); for rank 0 `shape`
 * may be NULL. Errors of all: a rank out of range, an extent below 0, 2^59 elements or more. */
enum { WEFT_RANK = 6 };
/* WEFT_SHAPE(4, n) passes two arguments, the rank 2 and the extents {4, n}. WEFT_LIST(a, b, c)
 * passes two arguments, the tensors {a, b, c} and their number 3. Use both macros only in calls. In
 * C their arrays live until the block ends, in C++ until the full expression ends. */
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

/* Makes a tensor of reals (weft_reals) or ints (weft_ints) from a copy of `values`: all elements of
 * the shape, row by row, in host memory. values NULL: zeros. Like torch.tensor. */
WEFT_API weft_tensor *weft_reals(weft *w, const weft_real *values, int rank, const int64_t *shape);
WEFT_API weft_tensor *weft_ints(weft *w, const int32_t *values, int rank, const int64_t *shape);
/* Makes a tensor of reals, all 0; weft_ints with NULL makes ints. Like torch.zeros. */
WEFT_API weft_tensor *weft_zeros(weft *w, int rank, const int64_t *shape);
/* Makes a tensor of reals with the same value everywhere. Like torch.full. */
WEFT_API weft_tensor *weft_full(weft *w, double value, int rank, const int64_t *shape);
/* Makes a tensor of rank 0 with one real. Like torch.tensor(value). */
WEFT_API weft_tensor *weft_scalar(weft *w, double value);
/* Returns the int32 numbers from, from + step, .. before `to`, as [n]: (w, 0, 3, 1) gives 0, 1, 2.
 * step may be negative. from equal to `to` gives an empty tensor, [0].
 * Errors: a step of 0 or away from `to`; a number that does not fit an int32. Like torch.arange. */
WEFT_API weft_tensor *weft_arange(weft *w, int64_t from, int64_t to, int64_t step);
/* Draws a tensor of standard normal reals from weft_stream_of(w, "tensor"). Like torch.randn. */
WEFT_API weft_tensor *weft_randn(weft *w, int rank, const int64_t *shape);
/* Draws a tensor of reals uniform in [low, high) from weft_stream_of(w, "tensor"). low = high makes
 * every element low. Errors: low > high; low, high or high - low not finite. Like torch.rand. */
WEFT_API weft_tensor *weft_rand(weft *w, double low, double high, int rank, const int64_t *shape);
/* Returns the context of a tensor; NULL for NULL. Like x.device. */
WEFT_API weft *weft_context_of(const weft_tensor *x);
/* Returns the number of axes; 0 for NULL and for the result of a failed call. Like x.ndim. */
WEFT_API int weft_rank(const weft_tensor *x);
/* Returns the extent of an axis; a negative axis counts from the end. Returns 0 for an axis that
 * does not exist, for NULL and for the result of a failed call. The extent of axis 0 of a ragged
 * tensor is its number of rows, pads of the layout ROWS included. Like x.size(axis). */
WEFT_API int64_t weft_size(const weft_tensor *x, int axis);
/* Returns the number of elements, pads of the layout ROWS included; 0 for NULL and for the result
 * of a failed call. Like x.numel(). */
WEFT_API int64_t weft_numel(const weft_tensor *x);
/* Copies all elements, weft_real or int32_t by x's type, to host memory of exactly their size in
 * bytes. Rows of a ragged tensor are in the order of its layout, with the pads of ROWS;
 * weft_read_sequences gives the user's order. Waits for the device. On error fills out with zeros
 * and fails the context. Errors: bytes is not the size of x; out is NULL. Like x.cpu().numpy(). */
WEFT_API void weft_read(const weft_tensor *x, void *out, size_t bytes);
/* Returns the value of a tensor of one element, real or int. Waits for the device. On error, such
 * as another number of elements, returns NaN and fails the context. Like x.item(). */
WEFT_API double weft_item(const weft_tensor *x);
/* Prints shape, layout and numbers, one line for each row of the last axis. Axes longer than 8 show
 * their first and last 4 elements; weft_set_print_limit changes this. Waits for the device. If x
 * is NULL, prints "NULL". If file is NULL, prints only "NULL", to stderr. If x cannot be read,
 * prints the reason and fails the context. Like print(x). */
WEFT_API void weft_print(FILE *file, const weft_tensor *x);

/* ---- ragged batches ---- *
 * A ragged tensor is a tensor whose rows are the tokens of a batch of sequences, PyTorch's
 * PackedSequence. Every operator takes ragged tensors; no operator needs a mask for them. A layout
 * is storage, not meaning: an operator brings its ragged inputs to one layout. */
/* Lengths of the sequences of a batch, in the user's order, which need not be sorted. Functions
 * copy the arrays, which are in host memory. Fewer than 2^31 - 1 sequences and tokens. */
typedef struct {
    int64_t n;                                   /* number of sequences; 0 is allowed */
    const int32_t *len;                          /* [n] tokens of each sequence, 0 or more */
    /* [n] identity of each sequence; equal ids get equal dropout masks. NULL: 0 .. n - 1. */
    const int64_t *id;
    /* [n], 0 or more, for pieces of longer sequences: tokens of the sequence before the piece, so
     * that dropout has the masks of the uncut sequence. Dropout of attention adds the offset to
     * positions of queries, not of keys. NULL: all 0. */
    const int32_t *offset;
} weft_lengths;

/* Order of the tokens in memory. PLAIN: not ragged. PACKED: time-major, the longest sequence first
 * (PyTorch's PackedSequence). CONCAT: sequence by sequence, in the user's order. ROWS: several
 * whole sequences in each row of a fixed width, by a placement; the other places are pads. PADDED
 * names the form [n, T, ..] in messages; no function takes or returns PADDED. */
typedef enum { WEFT_PLAIN, WEFT_PACKED, WEFT_CONCAT, WEFT_ROWS, WEFT_PADDED } weft_layout;
/* Side of the data in a padded tensor [n, T, ..]. LEFT: data, then pads. RIGHT: pads, then data. */
typedef enum { WEFT_ALIGN_LEFT, WEFT_ALIGN_RIGHT } weft_align;
/* Place of each sequence in the layout ROWS: `rows` rows of `width` tokens each, fewer than
 * 2^31 - 1 tokens in all. Sequence s begins in row row[s] at column column[s], counted from 0, and
 * must end in that row. row and column: [number of sequences], in the user's order. */
typedef struct { int64_t rows, width; const int32_t *row, *column; } weft_placement;

/* Makes a ragged tensor [N, features] of reals in the layout CONCAT from a copy of rows
 * [N, features], sequence by sequence in host memory. N is the sum of the lengths. features 0: the
 * tensor and rows are [N], one number for each token; then rows NULL gives zeros. Errors: a length
 * below 0; rows NULL with features and N above 0. Like torch.nested.nested_tensor. */
WEFT_API weft_tensor *weft_ragged(weft *w, const weft_real *rows, int64_t features,
                                  const weft_lengths *lengths);
/* Makes a ragged tensor [N] of int32 in the layout CONCAT from a copy of rows [N], sequence by
 * sequence in host memory. N is the sum of the lengths. Errors: a length below 0; rows NULL with N
 * above 0. Like torch.nested.nested_tensor. */
WEFT_API weft_tensor *weft_ragged_ints(weft *w, const int32_t *rows, const weft_lengths *lengths);
/* Returns the batch of a ragged tensor: the number of sequences, their lengths, ids (never NULL)
 * and offsets (NULL: all 0) in the user's order. The step owns the arrays, in host memory. Returns
 * n = 0 and NULLs if x is NULL, plain, or of an earlier step. */
WEFT_API weft_lengths weft_lengths_of(const weft_tensor *x);

/* ---- random numbers ---- *
 * Philox4x32-10 (Salmon et al. 2011), counter-based. A stream is a name and a counter, so drawing
 * from one never disturbs another. A checkpoint holds the counters of all streams. */
typedef struct weft_stream weft_stream;
/* Returns the stream of that name (1 .. 47 bytes, copied). The first call makes the stream, with a
 * key from the context's seed and the name. The context owns the stream. If it cannot be made,
 * fails the context and returns NULL; draws from NULL give 0. Like torch.Generator. */
WEFT_API weft_stream *weft_stream_of(weft *w, const char *name);
/* Draws a number uniform in [0, 1), a multiple of 2^-53; 0 from NULL. Like torch.rand. */
WEFT_API double weft_stream_uniform(weft_stream *stream);
/* Draws a standard normal number (mean 0, deviation 1); 0 from NULL. Like torch.randn. */
WEFT_API double weft_stream_normal(weft_stream *stream);
/* Draws an integer uniform in 0 .. below - 1, without bias; 0 if below is 0. Like torch.randint. */
WEFT_API uint64_t weft_stream_below(weft_stream *stream, uint64_t below);
/* Draws a uniform permutation of 0 .. n - 1, n below 2^31, into out [n]. Writes nothing if out is
 * NULL or n is 0 or less. A NULL stream always gives the same permutation. Like torch.randperm. */
WEFT_API void weft_stream_permutation(weft_stream *stream, int64_t n, int32_t *out);

#ifdef __cplusplus
}
#endif
#endif
