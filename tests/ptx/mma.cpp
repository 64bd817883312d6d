/* mma.cpp - matrix products with the rounding of tensor cores. All summands are aligned to the largest
 * exponent and truncated to a few bits more than fp32 has. The sum is truncated to fp32 (Fasi, Higham,
 * Mikaitis and Pranesh, Numerical Behavior of NVIDIA Tensor Cores, 2021). An A100 adds four products at a
 * time with one extra bit, an H100 eight with two. */
#include "tests/ptx/ptx.h"

namespace ptx {
namespace {
enum { M = 16, N = 8, K = 8, HALF = 4 };
typedef double Columns __attribute__((vector_size(HALF * sizeof(double)))); /* half of a row */
typedef uint64_t Bits __attribute__((vector_size(HALF * sizeof(uint64_t))));
typedef int32_t Ints __attribute__((vector_size(HALF * sizeof(int32_t))));
typedef float Floats __attribute__((vector_size(HALF * sizeof(float)), may_alias));

float cut_tf32(uint32_t bits) { return emu::bits<float>(bits & ~0x1FFFu); }
Columns absolute(Columns x) { return (Columns)((Bits)x & INT64_MAX); }
Columns power(Bits e) { return (Columns)((e + 1023) << 52); } /* 2^e */
Bits exponent(Columns x) { return ((Bits)x >> 52) - 1022; } /* 0 < x < 2^exponent(x) */

/* Adds TERMS numbers. They are converted to integers of a common unit, whose sum is below 9 * 2^26 and
 * therefore exact. The sum is truncated to the 24 bits of fp32. */
template <int TERMS, int EXTRA> Floats cut_sums(const Columns *x)
{
    const Columns smallest = Columns{} + 0x1p-900;
    Columns largest = smallest;
    Ints sum = {};
    for (int k = 0; k < TERMS; k++)
        largest = absolute(x[k]) > largest ? absolute(x[k]) : largest;
    Bits e = exponent(largest);
    Columns scale = power(24 + EXTRA - e), unit = power(e - 24 - EXTRA);
    for (int k = 0; k < TERMS; k++)
        sum += __builtin_convertvector(x[k] * scale, Ints);
    Bits bits = (Bits)__builtin_convertvector(sum, Columns) >> (53 - 24) << (53 - 24);
    return __builtin_convertvector((Columns)bits * unit, Floats);
}
/* The same for sums with infinities or NaN, which are not truncated. */
template <int TERMS, int EXTRA> Floats special_sums(Columns *x)
{
    float special[HALF] = {};
    for (int c = 0; c < HALF; c++) {
        double s = 0;
        for (int k = 0; k < TERMS; k++)
            s += x[k][c];
        if (s - s == 0)
            continue;
        special[c] = s != s ? gpu_nan() : (float)s;
        for (int k = 0; k < TERMS; k++)
            x[k][c] = 0;
    }
    Floats sum = cut_sums<TERMS, EXTRA>(x);
    for (int c = 0; c < HALF; c++)
        sum[c] = special[c] != 0 ? special[c] : sum[c];
    return sum;
}

struct Fragments {
    float a[M][K];
    Floats b[K][N / HALF], d[M][N / HALF];
};
/* Position of lane l's i-th value: in d with rows of N, in a with rows of K, in b with rows of N. */
unsigned index_d(unsigned l, unsigned i) { return (l / 4 + i / 2 * 8) * N + l % 4 * 2 + i % 2; }
unsigned index_a(unsigned l, unsigned i) { return (l / 4 + i % 2 * 8) * K + l % 4 + i / 2 * 4; }
unsigned index_b(unsigned l, unsigned i) { return (l % 4 + i * 4) * N + l / 4; }

void gather(Warp &w, const Operand *o, bool swap_rows, Fragments &f)
{
    float *a = f.a[0], *b = (float *)f.b, *d = (float *)f.d;
    for (unsigned i = 0; i < 4; i++) {
        unsigned from = swap_rows && (i == 1 || i == 2) ? 3 - i : i; /* swapped */
        const uint32_t *in_a = w.row<uint32_t>(o[4 + from]), *in_d = w.row<uint32_t>(o[10 + i]);
        for (unsigned l = 0; l < LANES; l++)
            a[index_a(l, i)] = cut_tf32(in_a[l]), memcpy(d + index_d(l, i), in_d + l, sizeof *d);
    }
    for (unsigned i = 0; i < 2; i++) {
        const uint32_t *in = w.row<uint32_t>(o[8 + i]);
        for (unsigned l = 0; l < LANES; l++)
            b[index_b(l, i)] = cut_tf32(in[l]);
    }
}
bool finite(const void *numbers, int n)
{
    uint32_t bits, special = 0;
    for (int i = 0; i < n; i++) {
        memcpy(&bits, (const float *)numbers + i, sizeof bits);
        special |= (bits & 0x7F800000) == 0x7F800000;
    }
    return !special;
}
template <int AT_ONCE, int EXTRA> void multiply(Fragments &f)
{
    const bool all_finite = finite(f.a, M * K) && finite(f.b, K * N) && finite(f.d, M * N);
    for (int half = 0; half < N / HALF; half++) {
        Columns b[K], x[AT_ONCE + 1];
        for (int k = 0; k < K; k++)
            b[k] = __builtin_convertvector(f.b[k][half], Columns);
        for (int row = 0; row < M; row++)
            for (int k = 0; k < K; k += AT_ONCE) {
                x[0] = __builtin_convertvector(f.d[row][half], Columns);
                for (int i = 0; i < AT_ONCE; i++)
                    x[1 + i] = f.a[row][k + i] * b[k + i];
                /* otherwise the sum has overflowed */
                bool cut = all_finite && (k == 0 || finite(&f.d[row][half], HALF));
                f.d[row][half] = cut ? cut_sums<AT_ONCE + 1, EXTRA>(x) : special_sums<AT_ONCE + 1, EXTRA>(x);
            }
    }
}
} // namespace

void mma_tf32(Warp &w, const Instruction &i)
{
    const Operand *o = i.operand;
    const Call &c = *w.block->cluster->call;
    Fragments f;
    uint32_t known = ALL;
    if (w.active != ALL)
        fail("a matrix product by lanes %#x", w.active);
    for (unsigned n = 4; n < 14; n++)
        known &= w.known[o[n].slot];
    gather(w, o, c.wrong, f);
    c.capability < 90 ? multiply<4, 1>(f) : multiply<8, 2>(f);
    for (unsigned n = 0; n < 4; n++) {
        uint32_t *out = w.row<uint32_t>(o[n]);
        for (unsigned l = 0; l < LANES; l++)
            memcpy(out + l, (const float *)f.d + index_d(l, n), sizeof *out);
        set_known(w, o[n], known == ALL ? (uint32_t)ALL : 0);
    }
}
} // namespace ptx
