/* scatter.cu - y[index[r]] += x[r], with rows of equal index added in a fixed order. Used for the gradient of
 * an embedding, where few indices have a hundred thousand rows, and of a permutation, where each index has
 * one.
 *
 * A stable radix sort orders the rows by index, with one or two digits of up to 11 bits. It counts the digits
 * of each chunk of rows, sums the counts and places the rows, so memory depends on the number of rows, not on
 * n. Then pieces of fixed size of the sorted rows are summed. A sum within one piece goes directly into y. A
 * sum across pieces is combined by its first piece. Rows without a valid index get the key n and are sorted
 * last. */
#include "cuda/groups.h"

enum {
    DIGIT_BITS = 11, BINS = 1 << DIGIT_BITS, CHUNKS = 1024, PIECES = 4096,
    FEW_ROWS = 512, FEW_TARGETS = 4096
};
typedef struct rows_by_index {
    int64_t rows, width, n, chunk, chunks, piece, pieces;       /* of unsorted rows, of sorted rows */
    int shift, bins;                             /* current digit: key >> shift & (bins - 1) */
    const real *x; const int32_t *index; real *y;
    int32_t *order;                              /* [rows], sorted so far; NULL: original order */
    int *counts, *totals;                        /* [bins, chunks], [bins] */
    /* [pieces, width]: sum at a piece's start that began earlier; sum at its end that continues */
    real *heads, *tails;
} rows_by_index;

__device__ static inline int64_t key_of(const rows_by_index &s, int64_t row)
{
    int64_t i = s.index[row];
    return i >= 0 && i < s.n ? i : s.n;
}
__device__ static inline int64_t row_at(const rows_by_index &s, int64_t place)
{
    return s.order ? s.order[place] : place;
}
__device__ static inline int64_t key_at(const rows_by_index &s, int64_t place)
{
    return key_of(s, row_at(s, place));
}
__device__ static inline int digit_at(const rows_by_index &s, int64_t place)
{
    return (int)(key_at(s, place) >> s.shift) & (s.bins - 1);
}

/* ---- sorting ---- */
/* Replaces x[i] by the sum of the elements before it. Returns the total. Threads own consecutive ranges. */
__device__ static int sum_up(int *x, int n)
{
    SHARED(part, int[THREADS]);
    int each = (n + THREADS - 1) / THREADS, from = threadIdx.x * each, to = from + each < n ? from + each : n,
        sum = 0;
    for (int i = from; i < to; i++)
        sum += x[i];
    part[threadIdx.x] = sum;
    for (int back = 1; back < THREADS; back *= 2) {
        __syncthreads();
        int before = (int)threadIdx.x >= back ? part[threadIdx.x - back] : 0;
        __syncthreads();
        part[threadIdx.x] += before;
    }
    __syncthreads();
    sum = part[threadIdx.x] - sum;
    for (int i = from; i < to; i++) {
        int v = x[i];
        x[i] = sum;
        sum += v;
    }
    sum = part[THREADS - 1];
    __syncthreads();
    return sum;
}
__global__ static void count_digits(rows_by_index s, faults f)
{
    SHARED(count, int[BINS]);
    int64_t from = blockIdx.x * s.chunk, end = from + s.chunk < s.rows ? from + s.chunk : s.rows;
    for (int b = threadIdx.x; b < s.bins; b += THREADS)
        count[b] = 0;
    __syncthreads();
    for (int64_t p = from + threadIdx.x; p < end; p += THREADS) {
        if (!s.order)
            checked(f, p, s.index[p], s.n);
        atomicAdd(&count[digit_at(s, p)], 1);
    }
    __syncthreads();
    for (int b = threadIdx.x; b < s.bins; b += THREADS)
        s.counts[b * s.chunks + blockIdx.x] = count[b];
}
__global__ static void sum_counts(rows_by_index s)
{
    int all = sum_up(s.counts + blockIdx.x * s.chunks, (int)s.chunks);
    if (threadIdx.x == 0)
        s.totals[blockIdx.x] = all;
}
/* Writes the rows to `to` in the order of the digit. Equal digits keep their order. */
__global__ static void place_rows(rows_by_index s, int32_t *to)
{
    SHARED(start, int[BINS]);
    SHARED(digit, int[THREADS]);
    int64_t from = blockIdx.x * s.chunk, end = from + s.chunk < s.rows ? from + s.chunk : s.rows;
    for (int b = threadIdx.x; b < s.bins; b += THREADS)
        start[b] = s.totals[b];
    __syncthreads();
    sum_up(start, s.bins);
    for (int b = threadIdx.x; b < s.bins; b += THREADS)
        start[b] += s.counts[b * s.chunks + blockIdx.x];
    for (; from < end; from += THREADS) {
        int64_t p = from + threadIdx.x;
        int bin = p < end ? digit_at(s, p) : -1, before = 0;
        digit[threadIdx.x] = bin;
        __syncthreads();
        for (int i = 0; i < (int)threadIdx.x; i++)
            before += digit[i] == bin;
        if (bin >= 0)
            to[start[bin] + before] = (int32_t)row_at(s, p);
        __syncthreads();
        if (bin >= 0)
            atomicAdd(&start[bin], 1);
    }
}

/* ---- sums of sorted rows ---- */
/* Sums one column of a piece, with eight loads in flight. */
__global__ static void sum_pieces(rows_by_index s)
{
    int64_t piece = (int64_t)blockIdx.x * blockDim.y + threadIdx.y,
            j = (int64_t)blockIdx.y * blockDim.x + threadIdx.x;
    int64_t from = piece * s.piece, end = from + s.piece < s.rows ? from + s.piece : s.rows;
    if (from >= s.rows || j >= s.width)
        return;
    int64_t key = key_at(s, from);
    bool continued = from > 0 && key_at(s, from - 1) == key;
    exact_sum sum = {};
    for (int64_t p = from; p < end; p += 8) {
        int64_t keys[8];
        real v[8];
        for (int i = 0; i < 8; i++) {
            int64_t row = p + i < end ? row_at(s, p + i) : 0;
            keys[i] = p + i < end ? key_of(s, row) : -1;
            v[i] = keys[i] >= 0 && keys[i] < s.n ? s.x[row * s.width + j] : 0;
        }
        for (int i = 0; i < 8; i++) {
            /* keys ascend: the one that ends here is below n */
            if (keys[i] >= 0 && keys[i] != key) {
                put((continued ? s.heads + piece * s.width : s.y + key * s.width) + j, sum.sum, !continued);
                key = keys[i];
                sum = {};
                continued = false;
            }
            add_exactly(sum, v[i]);
        }
    }
    if (key == s.n)
        return;
    bool ends = end == s.rows || key_at(s, end) != key;
    put((continued ? s.heads + piece * s.width :
         ends  ? s.y + key * s.width :
                 s.tails + piece * s.width) +
            j,
        sum.sum, !continued && ends);
}
/* Combines the sum that begins in piece blockIdx.x and ends in a later one. */
__global__ static void join_pieces(rows_by_index s)
{
    int64_t from = blockIdx.x * s.piece, end = from + s.piece,
            j = (int64_t)blockIdx.y * blockDim.x + threadIdx.x;
    int64_t key = end < s.rows ? key_at(s, end - 1) : s.n, low = blockIdx.x + 1, high = s.pieces;
    if (key == s.n || key_at(s, end) != key || (from > 0 && key_at(s, from - 1) == key))
        return;
    while (low < high) {                         /* finds the first piece that begins with another key */
        int64_t middle = (low + high) / 2;
        if (key_at(s, middle * s.piece) == key)
            low = middle + 1;
        else
            high = middle;
    }
    group g = group_below();
    exact_sum sum = {};
    for (int64_t p = blockIdx.x + 1 + g.lane; j < s.width && p < low; p += g.lanes)
        add_exactly(sum, s.heads[p * s.width + j]);
    const real all = together<SUM>(g, sum.sum);
    if (g.lane == 0 && j < s.width)
        s.y[key * s.width + j] += s.tails[blockIdx.x * s.width + j] + all;
}

/* ---- few rows ---- */
/* Overwrites y: each row of y finds its rows of x. */
__global__ static void scatter_anew(rows_by_index s, faults f)
{
    SHARED(index, int32_t[FEW_ROWS]);            /* every thread searches it */
    const int i = (int)blockIdx.x, rows = (int)s.rows;
    for (int row = threadIdx.x; row < rows; row += blockDim.x) {
        index[row] = s.index[row];
        if (i == 0 && blockIdx.y == 0)
            checked(f, row, index[row], s.n);
    }
    __syncthreads();
    for (int64_t j = (int64_t)blockIdx.y * blockDim.x + threadIdx.x; j < s.width;
         j += (int64_t)gridDim.y * blockDim.x) {
        exact_sum sum = {};
        for (int row = 0; row < rows; row++)
            if (index[row] == i)
                add_exactly(sum, s.x[row * s.width + j]);
        s.y[i * s.width + j] = sum.sum;
    }
}
/* Adds to y: the first row of an index finds the others. */
__global__ static void scatter_few(rows_by_index s, faults f)
{
    SHARED(index, int32_t[FEW_ROWS]);            /* every thread searches it */
    const int r = (int)blockIdx.x, rows = (int)s.rows;
    for (int row = threadIdx.x; row < rows; row += blockDim.x)
        index[row] = s.index[row];
    __syncthreads();
    const int32_t i = index[r];
    if (blockIdx.y == 0 && threadIdx.x == 0)
        checked(f, r, i, s.n);
    if (i < 0 || i >= s.n)
        return;
    bool first = true;
    for (int before = 0; before < r; before++)
        first &= index[before] != i;
    if (!first)
        return;
    for (int64_t j = (int64_t)blockIdx.y * blockDim.x + threadIdx.x; j < s.width;
         j += (int64_t)gridDim.y * blockDim.x) {
        exact_sum sum = { s.y[i * s.width + j], 0 };
        for (int next = r; next < rows; next++)
            if (index[next] == i)
                add_exactly(sum, s.x[next * s.width + j]);
        s.y[i * s.width + j] = sum.sum;
    }
}

static bool allocate_memory(weft__device *d, rows_by_index *s, int digits, int32_t *order[2])
{
    s->chunk = parts(parts(s->rows, CHUNKS), THREADS) * THREADS;
    s->chunks = parts(s->rows, s->chunk);
    s->piece = most(64, parts(s->rows, PIECES));
    s->pieces = parts(s->rows, s->piece);
    size_t sums = (size_t)(s->pieces * s->width) * sizeof(real), rows = (size_t)s->rows * sizeof(int32_t);
    size_t counts = (size_t)(s->bins * s->chunks) * sizeof(int), totals = (size_t)s->bins * sizeof(int);
    char *memory = (char *)scratch(d, 2 * sums + 2 * rows + counts + totals);
    s->heads = (real *)memory;
    s->tails = (real *)(memory + sums);
    memory += 2 * sums;
    order[0] = (int32_t *)memory;
    order[1] = (int32_t *)(memory + (digits > 1 ? rows : 0));
    memory += 2 * rows;
    s->counts = (int *)memory;
    s->totals = (int *)(memory + counts);
    return s->heads;
}
void K(scatter)(weft__device *d, int64_t rows, int64_t width, int64_t n, const real *x, const int32_t *index,
                real *y, bool add)
{
    rows_by_index s = {};
    s.rows = rows;
    s.width = width;
    s.n = n;
    s.x = x;
    s.index = index;
    s.y = y;
    int32_t *order[2];
    int tx = power_for(width, 32), ty = THREADS / tx, bits = 1, digits;
    unsigned columns = (unsigned)parts(width, tx);
    while (n >> bits)
        bits++;
    digits = (int)parts(bits, DIGIT_BITS);
    bits = (int)parts(bits, digits);
    s.bins = 1 << bits;
    const unsigned strips = (unsigned)most(1, parts(width, THREADS));
    if (!add && rows <= FEW_ROWS && n > 0 && n <= FEW_TARGETS) {
        LAUNCH(d, scatter_anew, dim3((unsigned)n, strips), power_for(width, THREADS), 0, s, faults_of(d));
        return;
    }
    if (!add)
        K(fill)(d, n * width, 0, y);
    if (rows <= FEW_ROWS) {
        LAUNCH(d, scatter_few, dim3((unsigned)rows, strips), power_for(width, THREADS), 0, s, faults_of(d));
        return;
    }
    if (!allocate_memory(d, &s, digits, order))
        return;
    for (int i = 0; i < digits; i++, s.shift += bits) {
        LAUNCH(d, count_digits, dim3((unsigned)s.chunks), THREADS, 0, s, faults_of(d));
        LAUNCH(d, sum_counts, dim3((unsigned)s.bins), THREADS, 0, s);
        LAUNCH(d, place_rows, dim3((unsigned)s.chunks), THREADS, 0, s, order[i % 2]);
        s.order = order[i % 2];
    }
    LAUNCH(d, sum_pieces, dim3((unsigned)parts(s.pieces, ty), columns), dim3(tx, ty), 0, s);
    LAUNCH(d, join_pieces, dim3((unsigned)s.pieces, columns), dim3(tx, ty), 0, s);
}
