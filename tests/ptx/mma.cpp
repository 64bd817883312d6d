/* mma.cpp - products of tensor cores, with their rounding: what is added up is brought to the exponent of
 * the largest and CUT to a few bits more than fp32 has, and the sum is cut to fp32 (Fasi, Higham, Mikaitis
 * and Pranesh, Numerical Behavior of NVIDIA Tensor Cores, 2021). An A100 takes four products at a time with
 * one bit more, an H100 eight with two. */
#include <math.h>
#include <string.h>
#include "tests/ptx/ptx.h"

namespace ptx {
namespace {
enum { M = 16, N = 8, K = 8, MOST = K + 1 };

float cut_tf32(uint32_t bits)
{
    float x;
    bits &= ~0x1FFFu;
    memcpy(&x, &bits, sizeof x);
    return x;
}
double power(int64_t e) /* 2^e */
{
    uint64_t bits = (uint64_t)(e + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
int64_t exponent(double x) /* |x| < 2^that; of 0: very small */
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (int64_t)(bits >> 52 & 0x7FF) - 1022;
}

/* The sum of n numbers for each of N columns. Whole numbers of a unit: 9 * 2^26 < 2^31. */
void cut_sums(float *sum, const double (*x)[N], int n, int extra)
{
    double most[N] = {}, many[N], unit[N];
    int32_t s[N] = {};
    for (int k = 0; k < n; k++)
        for (int c = 0; c < N; c++)
            most[c] = fabs(x[k][c]) > most[c] ? fabs(x[k][c]) : most[c];
    for (int c = 0; c < N; c++) {
        int64_t e = exponent(most[c] > 0x1p-900 ? most[c] : 0x1p-900);
        many[c] = power(24 + extra - e), unit[c] = power(e - 24 - extra);
    }
    for (int k = 0; k < n; k++)
        for (int c = 0; c < N; c++)
            s[c] += (int32_t)(x[k][c] * many[c]);
    for (int c = 0; c < N; c++) {
        int64_t surplus = exponent((double)s[c]) - 24;
        int32_t size = s[c] < 0 ? -s[c] : s[c], bits = surplus > 0 ? (int32_t)surplus : 0;
        size = size >> bits << bits;
        sum[c] = (float)((s[c] < 0 ? -(double)size : (double)size) * unit[c]);
    }
}
float not_a_number() /* the one that GPUs make */
{
    uint32_t bits = 0x7FFFFFFF;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
/* Infinities and NaN are not cut: where they are, and nowhere else. */
void odd_sums(float *sum, double (*x)[N], int n, int extra)
{
    float odd[N] = {};
    for (int c = 0; c < N; c++) {
        double s = 0;
        for (int k = 0; k < n; k++)
            s += x[k][c];
        if (s - s == 0)
            continue;
        odd[c] = s != s ? not_a_number() : (float)s;
        for (int k = 0; k < n; k++)
            x[k][c] = 0;
    }
    cut_sums(sum, x, n, extra);
    for (int c = 0; c < N; c++)
        sum[c] = odd[c] != 0 ? odd[c] : sum[c];
}
bool finite(const float *x, int n)
{
    float all = 0;
    for (int i = 0; i < n; i++)
        all += x[i] * 0;
    return all == 0;
}

struct Fragments {
    float a[M][K], b[K][N], d[M][N];
};
void gather(Warp &w, const Operand *o, bool wrong, Fragments &f)
{
    for (unsigned l = 0; l < LANES; l++) {
        for (unsigned i = 0; i < 4; i++) {
            unsigned from = wrong && (i == 1 || i == 2) ? 3 - i : i; /* each other's place */
            f.a[l / 4 + i % 2 * 8][l % 4 + i / 2 * 4] = cut_tf32(w.row<uint32_t>(o[4 + from])[l]);
            memcpy(&f.d[l / 4 + i / 2 * 8][l % 4 * 2 + i % 2], &w.row<uint32_t>(o[10 + i])[l], 4);
        }
        for (unsigned i = 0; i < 2; i++)
            f.b[l % 4 + i * 4][l / 4] = cut_tf32(w.row<uint32_t>(o[8 + i])[l]);
    }
}
void multiply(Fragments &f, int at_once, int extra)
{
    bool cut = finite(f.a[0], M * K) && finite(f.b[0], K * N) && finite(f.d[0], M * N);
    for (int row = 0; row < M; row++)
        for (int k = 0; k < K; k += at_once) {
            double x[MOST][N];
            for (int c = 0; c < N; c++)
                x[0][c] = f.d[row][c];
            for (int i = 0; i < at_once; i++)
                for (int c = 0; c < N; c++)
                    x[1 + i][c] = (double)f.a[row][k + i] * f.b[k + i][c];
            if (cut)
                cut_sums(f.d[row], x, at_once + 1, extra);
            else
                odd_sums(f.d[row], x, at_once + 1, extra);
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
    multiply(f, c.capability < 90 ? 4 : 8, c.capability < 90 ? 1 : 2);
    for (unsigned l = 0; l < LANES; l++)
        for (unsigned n = 0; n < 4; n++)
            memcpy(&w.row<uint32_t>(o[n])[l], &f.d[l / 4 + n / 2 * 8][l % 4 * 2 + n % 2], 4);
    for (unsigned n = 0; n < 4; n++)
        learn(w, o[n], known == ALL ? (uint32_t)ALL : 0);
}
} // namespace ptx
