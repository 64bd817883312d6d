/* gpu_micro.cu - measures the basic GPU costs that determine the choice between kernels.
 *
 * It times launches, the matrix product of a recurrent step through cuBLAS, and copies. Within kernels it
 * times dependent tensor core products and the exchange of states between the blocks of a cluster. It prints
 * one JSON object a line. */
#include <cublas_v2.h>
#include <stdio.h>
#include <stdlib.h>
#include "cuda/ptx.h"

enum { NUMBERS = 1 << 26, TIMES = 200, ROUNDS = 1000 };
static cudaStream_t stream;
static cudaEvent_t started, ended;
static float *from, *to, *pinned;                /* NUMBERS each; pinned: on the host */

static void check(int error, const char *what)
{
    if (error) {
        fprintf(stderr, "gpu_micro: %s: error %d\n", what, error);
        exit(1);
    }
}

static __global__ void nothing() {}
static __global__ void add_one(float *x, int64_t n)
{
    for (int64_t i = first_index(); i < n; i += index_step())
        x[i] += 1;
}

/* ---- within a kernel: ROUNDS of each ---- */
static __global__ void products(float *out)      /* each waits for the one before */
{
    const uint32_t a[4] = { to_tf32(.5f), 0, 0, 0 }, b[2] = { to_tf32(.5f), 0 };
    float d[4] = {};
    for (int i = 0; i < ROUNDS; i++)
        mma_tf32(d, a, b);
    out[threadIdx.x] = d[0];
}
/* The exchange of a forward step of recur_cluster.cu. Each block sends FOURS x 16 bytes to every block of its
 * cluster and waits for the same from all of them. Four neighbouring threads share the blocks to send to. */
enum { FOURS = 64 };
static __global__ void exchanges(float *out)
{
    SHARED(place, float4[2][16][FOURS]);
    SHARED(full, uint64_t[2]);
    const unsigned rank = cluster_rank(), size = cluster_size();
    const unsigned four = threadIdx.x / 4, part = threadIdx.x % 4;
    float seen = 0;
    if (threadIdx.x == 0) {
        mbarrier_init(&full[0], 1);
        mbarrier_init(&full[1], 1);
        mbarrier_init_done();
    }
    __syncwarp();
    cluster_sync();
    for (int i = 0; i < ROUNDS; i++) {
        if (threadIdx.x == 0)
            mbarrier_arrive_expect(&full[i % 2], size * FOURS * (unsigned)sizeof(float4));
        for (unsigned to = part; to < size; to += 4)
            st_async(&place[i % 2][rank][four], &full[i % 2], to, make_float4(seen, 1, 2, 3));
        while (!mbarrier_try_wait(&full[i % 2], i / 2 % 2)) {}
        seen = place[i % 2][threadIdx.x % size][four].x + 1;
        __syncthreads();
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = seen;
    cluster_sync();
}

typedef struct piece { int B, H; } piece;        /* exchanges use B blocks */
static void multiply(piece)     { LAUNCH_RAW(products, dim3(1), dim3(32), 0, stream, to); }
static void exchange(piece p)
{
    LAUNCH_CLUSTER_RAW(exchanges, dim3((unsigned)p.B), dim3(256), 0, stream, (unsigned)p.B, to);
}

/* ---- kernels and copies ---- */
static void launch(piece) { LAUNCH_RAW(nothing, dim3(1), dim3(32), 0, stream); }
static void launch_and_wait(piece p)
{
    launch(p);
    check(cudaStreamSynchronize(stream), "wait");
}
template <cudaMemcpyKind KIND> static void copy(piece)
{
    float *target = KIND == cudaMemcpyDeviceToHost ? pinned : to;
    const float *source = KIND == cudaMemcpyHostToDevice ? pinned : from;
    check(cudaMemcpyAsync(target, source, NUMBERS * sizeof *to, KIND, stream), "copy");
}
static void read_and_write(piece)
{
    LAUNCH_RAW(add_one, blocks_for(NUMBERS), dim3(THREADS), 0, stream, to, (int64_t)NUMBERS);
}

/* Returns the mean time of `times` calls of work, after one call that is not counted. */
static float mean_us(void (*work)(piece), piece p, int times)
{
    float ms = 0;
    work(p);
    check(cudaEventRecord(started, stream), "event");
    for (int i = 0; i < times; i++)
        work(p);
    check(cudaEventRecord(ended, stream), "event");
    check(cudaEventSynchronize(ended), "wait");
    check(cudaEventElapsedTime(&ms, started, ended), "time");
    return ms * 1000 / (float)times;
}
static void report(const char *what, void (*work)(piece), piece p, int times, double bytes, double operations)
{
    double us = mean_us(work, p, times);
    printf("{\"micro\": \"%s\", ", what);
    if (p.H)
        printf("\"B\": %d, \"H\": %d, ", p.B, p.H);
    printf("\"us\": %.3f", us);
    if (bytes)
        printf(", \"gb_s\": %.1f", bytes / us * 1e-3);
    if (operations)
        printf(", \"gflop_s\": %.1f", operations / us * 1e-3);
    printf("}\n");
}

/* Prints the time of one of the `rounds` rounds in a call of work. */
static void report_round(const char *what, void (*work)(piece), piece p, int rounds)
{
    const double us = mean_us(work, p, TIMES / 10 + 1) / rounds;
    check(cudaGetLastError(), what);
    printf("{\"micro\": \"%s\", \"blocks\": %d, \"us\": %.4f}\n", what, p.B, us);
}
static void within_kernels()
{
    static const int sizes[] = { 2, 4, 8, 16 };
    report_round("tensor core product, one after the other", multiply, piece{ 1, 0 }, ROUNDS);
    check(cudaFuncSetAttribute(exchanges, cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
          "clusters of 16");
    for (int blocks : sizes)
        report_round("exchange within a cluster", exchange, piece{ blocks, 0 }, ROUNDS);
}
/* Prints how many clusters run at the same time with the shared memory of layers of 256 and of 512
 * units. */
static void report_clusters()
{
    check(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10), "200 KB");
    check(cudaFuncSetAttribute(nothing, cudaFuncAttributeNonPortableClusterSizeAllowed, 1), "clusters of 16");
    for (int blocks = 8; blocks <= 16; blocks *= 2)
        for (int kilobytes = 130; kilobytes <= 200; kilobytes += 70) {
            int clusters = 0;
            check(clusters_at_once(&clusters, nothing, blocks, 256, (size_t)kilobytes << 10, stream),
                  "occupancy");
            printf("{\"micro\": \"clusters at once\", \"blocks\": %d, \"shared_kb\": %d, \"clusters\": %d}\n",
                   blocks, kilobytes, clusters);
        }
}

/* ---- the product of a recurrent step through cuBLAS ---- */
static cublasHandle_t handle;

/* [B, 4H] += [B, H] times [4H, H] transposed */
static void multiply_by(piece p, cublasComputeType_t compute)
{
    const float one = 1;
    check(cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, 4 * p.H, p.B, p.H, &one, from, CUDA_R_32F, p.H, from,
                       CUDA_R_32F, p.H, &one, to, CUDA_R_32F, 4 * p.H, compute, CUBLAS_GEMM_DEFAULT),
          "product");
}
static void step_in_fp32(piece p) { multiply_by(p, CUBLAS_COMPUTE_32F); }
static void step_in_tf32(piece p) { multiply_by(p, CUBLAS_COMPUTE_32F_FAST_TF32); }
static void steps()
{
    static const piece sizes[] = { { 8, 16 },    { 64, 32 },  { 512, 32 }, { 8, 128 },  { 64, 128 },
                                   { 512, 128 }, { 64, 256 }, { 64, 512 }, { 64, 1024 } };
    check(cublasCreate(&handle) || cublasSetStream(handle, stream), "cuBLAS");
    for (piece p : sizes) {
        const double operations = 8. * p.B * p.H * p.H;
        report("step, fp32", step_in_fp32, p, TIMES, 0, operations);
        report("step, tf32", step_in_tf32, p, TIMES, 0, operations);
    }
    cublasDestroy(handle);
}

static void set_up()
{
    cudaDeviceProp about;
    check(cudaGetDeviceProperties(&about, 0), "no GPU");
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
    check(cudaEventCreate(&started) || cudaEventCreate(&ended), "events");
    check(cudaMalloc(&from, NUMBERS * sizeof *from) || cudaMalloc(&to, NUMBERS * sizeof *to), "memory");
    check(cudaMallocHost(&pinned, NUMBERS * sizeof *pinned), "pinned memory");
    check(cudaMemsetAsync(from, 0x3A, NUMBERS * sizeof *from, stream) ||
             cudaMemsetAsync(to, 0, NUMBERS * sizeof *to, stream),
          "filling");
    for (int i = 0; i < NUMBERS; i++)
        pinned[i] = (float)i;
    printf("{\"micro\": \"device\", \"name\": \"%s\", \"multiprocessors\": %d, \"shared_bytes\": %zu, "
           "\"capability\": \"%d.%d\"}\n",
           about.name, about.multiProcessorCount, (size_t)about.sharedMemPerBlockOptin, about.major,
           about.minor);
}

int main()
{
    const double bytes = (double)NUMBERS * sizeof(float);
    set_up();
    within_kernels();
    report_clusters();
    report("launch", launch, piece{ 0, 0 }, TIMES * 5, 0, 0);
    report("launch and wait", launch_and_wait, piece{ 0, 0 }, TIMES, 0, 0);
    steps();
    report("device to device", copy<cudaMemcpyDeviceToDevice>, piece{ 0, 0 }, TIMES / 10 + 1, 2 * bytes, 0);
    report("a kernel reads and writes", read_and_write, piece{ 0, 0 }, TIMES / 10 + 1, 2 * bytes, 0);
    report("host to device, pinned", copy<cudaMemcpyHostToDevice>, piece{ 0, 0 }, TIMES / 20 + 1, bytes, 0);
    report("device to host, pinned", copy<cudaMemcpyDeviceToHost>, piece{ 0, 0 }, TIMES / 20 + 1, bytes, 0);
    return 0;
}
