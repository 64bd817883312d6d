/* test_kernels.cu - small kernels that show what the emulation can do and what it finds. nvcc compiles them,
 * too, so that all of cuda/ptx.h is known to be PTX: nvcc -std=c++17 -arch=sm_90 -I. -c -o /dev/null
 * tests/emu/test_kernels.cu */
#include "cuda/ptx.h"

enum { ALL = 256 };                              /* threads of most of them */

__global__ void add_one(float *y, const float *x, int64_t n)
{
    for (int64_t i = first_index(); i < n; i += index_step())
        y[i] = x[i] + 1;
}

__device__ static float block_total(float v, float *part, bool waits)
{
    for (int d = 16; d; d /= 2)
        v += __shfl_xor_sync(~0u, v, d);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = v;
    if (waits)
        __syncthreads();
    v = 0;
    for (unsigned i = 0; i < blockDim.x / 32; i++)
        v += part[i];
    return v;
}
/* a block's total, in each thread */
template <bool WAITS> __global__ void totals(float *y, const float *x)
{
    SHARED(part, float[8]);
    size_t i = (size_t)first_index();
    y[i] = block_total(x[i], part, WAITS);
}
template __global__ void totals<true>(float *, const float *);
template __global__ void totals<false>(float *, const float *);

__global__ void lanes(double *y)                 /* 8 rows of 32 */
{
    int lane = threadIdx.x;
    y[lane] = __shfl_sync(~0u, (double)lane, 5);
    y[32 + lane] = (double)__shfl_xor_sync(~0u, (long long)lane << 40, 3, 8);
    y[64 + lane] = __shfl_down_sync(~0u, lane, 4, 16);
    y[96 + lane] = __shfl_up_sync(~0u, (float)lane, 1);
    y[128 + lane] = __ballot_sync(~0u, lane % 3 == 0);
    y[160 + lane] = lane < 8 ? __shfl_sync(0xFFu, (float)lane, 7) : 0;
    /* from a lane that is not there */
    y[192 + lane] = lane < 8 ? __shfl_sync(0xFFu, (float)lane, 9) : 0;
    y[224 + lane] = __any_sync(~0u, lane == 9) + 2 * __all_sync(~0u, lane < 31);
}

__global__ void half_waits() { if (threadIdx.x % 2) __syncthreads(); else __syncwarp(); }
__global__ void other_masks() { __syncwarp(threadIdx.x < 16 ? ~0u : 0xFFFF0001u); }
__global__ void beyond_shared(int i) { SHARED(a, float[8]); DYN_SHARED(float, b); (i < 8 ? b : a)[i] = 1; }
__global__ void unwritten_shared(float *y)
{
    SHARED(a, float[32]);
    DYN_SHARED(float, b);
    y[threadIdx.x] = a[threadIdx.x], y[32 + threadIdx.x] = b[threadIdx.x];
}
__global__ void touch(float *p) { *p = 1; }
__global__ void count_up(unsigned long long *least, unsigned *n)
{
    atomicMin(least, (unsigned long long)first_index() + 7), atomicAdd(n, 1u);
}

/* ---- tensor cores ---- */
/* row-major; a 16 x 8, b 8 x 8 */
__global__ void one_mma(float *d, const float *a, const float *b)
{
    unsigned g = threadIdx.x / 4, t = threadIdx.x % 4;
    float sum[4] = { 0, 0, 0, 0 };
    uint32_t fa[4], fb[2];
    for (unsigned i = 0; i < 4; i++)
        fa[i] = to_tf32(a[(g + i % 2 * 8) * 8 + t + i / 2 * 4]);
    for (unsigned i = 0; i < 2; i++)
        fb[i] = to_tf32(b[(t + i * 4) * 8 + g]);
    mma_tf32(sum, fa, fb);
    for (unsigned i = 0; i < 4; i++)
        d[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = sum[i];
}

/* ---- clusters: every block sends its number to all, each adds up what it got ---- */
template <bool WAITS> __global__ void by_st_async(float *y, int rounds)
{
    SHARED(box, float4[2][8]);
    SHARED(full, uint64_t[2]);
    unsigned others = cluster_size();
    if (threadIdx.x == 0) {
        mbarrier_init(&full[0], 1), mbarrier_init(&full[1], 1);
        mbarrier_init_done();
    }
    cluster_sync();
    float sum = 0;
    for (int r = 0; r < rounds; r++) {
        if (threadIdx.x == 0)
            mbarrier_arrive_expect(&full[r % 2], others * 16);
        if (threadIdx.x < others)
            st_async(&box[r % 2][cluster_rank()], &full[r % 2], threadIdx.x,
                     make_float4((float)blockIdx.x, 0, 0, (float)r));
        while (WAITS && !mbarrier_try_wait(&full[r % 2], (unsigned)r / 2 % 2)) {}
        for (unsigned i = 0; i < others; i++)
            sum += box[r % 2][i].x + box[r % 2][i].w;
        cluster_sync();
    }
    if (threadIdx.x == 0)
        y[blockIdx.x] = sum;
}
template __global__ void by_st_async<true>(float *, int);
template __global__ void by_st_async<false>(float *, int);

/* ---- fences ---- */
__device__ static float sum_of(const float *x, unsigned n)
{
    float sum = 0;
    for (unsigned i = 0; i < n; i++)
        sum += x[i];
    return sum;
}
/* The last block to be done adds up what each has written. FENCES: 1, before the count; 2, behind it. */
template <int FENCES> __global__ void last_adds(float *y, float *part, unsigned *counter)
{
    SHARED(last, bool);
    part[blockIdx.x * blockDim.x + threadIdx.x] = (float)blockIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) {
        if (FENCES & 1)
            __threadfence();
        last = atomicAdd(counter, 1u) == gridDim.x - 1;
        if (FENCES & 2)
            __threadfence();
    }
    __syncthreads();
    if (last && threadIdx.x == 0)
        *y = sum_of(part, gridDim.x * blockDim.x);
}
/* Fences of all, but before the barrier: the one who counts has none for what the others wrote. */
__global__ void fences_too_early(float *y, float *part, unsigned *counter)
{
    part[blockIdx.x * blockDim.x + threadIdx.x] = 1;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0 && atomicAdd(counter, 1u) == gridDim.x - 1) {
        __threadfence();
        *y = sum_of(part, gridDim.x * blockDim.x);
    }
}
template __global__ void last_adds<0>(float *, float *, unsigned *);
template __global__ void last_adds<1>(float *, float *, unsigned *);
template __global__ void last_adds<2>(float *, float *, unsigned *);
template __global__ void last_adds<3>(float *, float *, unsigned *);

/* ---- a whole grid ---- */
__global__ void whole_grid(float *y, float *part, unsigned *counter)
{
    for (unsigned round = 0; round < 3; round++) {
        if (threadIdx.x == 0)
            part[blockIdx.x] = (float)(blockIdx.x + round);
        grid_sync(counter);
        float sum = 0;
        for (unsigned i = 0; i < gridDim.x; i++)
            sum += part[i];
        y[first_index()] = sum;
        grid_sync(counter);
    }
}

void launch_all_kinds(float *y, float *part, unsigned *counter, cudaStream_t s)
{
    LAUNCH_CLUSTER_RAW(by_st_async<true>, 8, 64, 0, s, 4, y, 5);
    LAUNCH_COOP_RAW(whole_grid, 8, 64, 0, s, y, part, counter);
}
