/* flops.c - measures the peak arithmetic of the machine, on one core and on all threads together.
 *
 * It runs fused multiply-adds (or multiplications and additions, if the instruction set has none) on
 * registers only, in the width of the context's instruction set. Twelve independent chains cover the latency
 * of today's cores at two operations a cycle. The fastest of many short runs counts, because other programs
 * may use the machine. */
#include <pthread.h>
#include <string.h>
#include "bench.h"
#if defined __x86_64__
#include <immintrin.h>
#endif

enum { CHAINS = 12, STEPS = 20000, TRIES = 25, MOST_THREADS = 1024 };
typedef weft_real plain_vec __attribute__((vector_size(16)));
typedef struct loop { weft_real (*run)(int64_t steps, weft_real x); int lanes; } loop;

/* Chains begin with different values, because a compiler would merge equal ones. They converge to shift / (1
 * - factor), never to denormals. */
#define BEGIN(i) a##i = SET(x * (weft_real)(i + 1))
#define CHAIN(i) a##i = MULTIPLY_ADD(a##i, factor, shift);
#define LOOP(name, vector)                                                                             \
    static weft_real name(int64_t steps, weft_real x)                                                  \
    {                                                                                                  \
        vector factor = SET(x), shift = SET(x / 2), BEGIN(0), BEGIN(1), BEGIN(2), BEGIN(3), BEGIN(4),  \
               BEGIN(5), BEGIN(6), BEGIN(7), BEGIN(8), BEGIN(9), BEGIN(10), BEGIN(11);                 \
        for (int64_t i = 0; i < steps; i++) {                                                          \
            CHAIN(0)                                                                                   \
            CHAIN(1) CHAIN(2) CHAIN(3) CHAIN(4) CHAIN(5) CHAIN(6) CHAIN(7) CHAIN(8) CHAIN(9) CHAIN(10) \
                CHAIN(11)                                                                              \
        }                                                                                              \
        weft_real out[sizeof(vector) / sizeof(weft_real)];                                             \
        a0 += a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11;                                  \
        memcpy(out, &a0, sizeof out);                                                                  \
        return out[0];                                                                                 \
    }

#define SET(x) ((x) - (plain_vec){ 0 })
#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
LOOP(plain, plain_vec)
#undef SET
#undef MULTIPLY_ADD

#if defined __x86_64__
#ifdef WEFT_DOUBLE
#define SUFFIX(name) name##_pd
typedef __m256d vec256;
typedef __m512d vec512;
#else
#define SUFFIX(name) name##_ps
typedef __m256 vec256;
typedef __m512 vec512;
#endif
#define SET SUFFIX(_mm256_set1)
#define MULTIPLY_ADD SUFFIX(_mm256_fmadd)
__attribute__((target("avx2,fma"))) LOOP(avx2, vec256)
#undef SET
#undef MULTIPLY_ADD
#define SET SUFFIX(_mm512_set1)
#define MULTIPLY_ADD SUFFIX(_mm512_fmadd)
__attribute__((target("avx512f"))) LOOP(avx512, vec512)
#endif

/* Kernels with another name, such as "ref", are plain C. */
static loop loop_of(const char *isa)
{
#if defined __x86_64__
    if (__builtin_cpu_supports("avx512f") && (!strcmp(isa, "avx512") || !strcmp(isa, "amx")))
        return (loop){ avx512, 64 / (int)sizeof(weft_real) };
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && !strcmp(isa, "avx2"))
        return (loop){ avx2, 32 / (int)sizeof(weft_real) };
#endif
    return (loop){ plain, 16 / (int)sizeof(weft_real) };
}

typedef struct worker { loop loop; pthread_barrier_t *start; double gf_s; weft_real kept; } worker;

static void *work_on(void *user)
{
    worker *it = user;
    pthread_barrier_wait(it->start);
    for (int i = 0; i < TRIES; i++) {
        double begin = now_ms();
        it->kept += it->loop.run(STEPS, (weft_real).5);
        double gf_s = 2e-6 * it->loop.lanes * CHAINS * STEPS / (now_ms() - begin);
        it->gf_s = gf_s > it->gf_s ? gf_s : it->gf_s;
    }
    return NULL;
}

double fma_peak(const char *isa, int threads)
{
    static worker     all[MOST_THREADS];
    pthread_t         id[MOST_THREADS];
    pthread_barrier_t start;
    double            sum = 0;
    threads = threads < 1 ? 1 : threads > MOST_THREADS ? MOST_THREADS : threads;
    pthread_barrier_init(&start, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++) {
        all[i] = (worker){ .loop = loop_of(isa), .start = &start };
        if (pthread_create(&id[i], NULL, work_on, &all[i]))
            return 0;                            /* waiting threads end with the process */
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(id[i], NULL);
        sum += all[i].gf_s;
    }
    pthread_barrier_destroy(&start);
    return sum;
}
