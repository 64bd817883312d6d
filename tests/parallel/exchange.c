/* exchange.c - compares the cost of the gradient sum over ranks with MPI_Allreduce of the same bytes, in
 * turns: mpirun -n 2 exchange [ROUNDS]. Compile with mpicc. Prints a line of JSON per size. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include "parallel/parallel.h"
#include "clock.h"

enum { MOST = 1000 };

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, by_size);
    return x[n / 2];
}

/* of all ranks the slowest */
static double timed(weft_parallel *p, float *own, float *sum, int64_t n)
{
    double most, took;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = now();
    if (own)
        MPI_Allreduce(own, sum, (int)n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    else if (!weft__exchange(p))
        exit(1);
    took = now() - start;
    MPI_Allreduce(&took, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most;
}

static void measure(int64_t n, int rounds)
{
    static double ours[MOST], mpi[MOST];
    weft *w = weft_open(&(weft_opts){ .device = WEFT_CPU, .threads = 1 });
    weft_module *m = weft_module_new(w, "m");
    weft_parameter(m, "x", WEFT_SHAPE(n), (weft_init){ WEFT_INIT_ZERO, 0, 0 });
    weft_parallel *p = weft_parallel_new(m, NULL);
    if (!weft_ok(w))
        fprintf(stderr, "%s\n", weft_error_message(w)), exit(1);
    float *own = malloc((size_t)n * sizeof *own), *sum = malloc((size_t)n * sizeof *sum);
    for (int64_t i = 0; i < n; i++)
        own[i] = sum[i] = 1;
    p->n = n, p->done = 1;
    for (int k = -3; k < rounds; k++) {
        double a = timed(p, NULL, NULL, n), b = timed(p, own, sum, n);
        if (k >= 0)
            ours[k] = a, mpi[k] = b;
    }
    if (p->world.rank == 0)
        printf("{\"case\": \"exchange\", \"ranks\": %d, \"floats\": %lld, \"weft_us\": %.1f, "
               "\"allreduce_us\": %.1f, "
               "\"ratio\": %.3f}\n",
               p->world.ranks, (long long)n, 1e6 * median(ours, rounds), 1e6 * median(mpi, rounds),
               median(ours, rounds) / median(mpi, rounds));
    fflush(stdout);
    free(own), free(sum);
    weft_close(w);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 101;
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    for (int64_t n = 10000; n <= 10000000; n *= 10)
        measure(n, rounds < 1 ? 1 : rounds > MOST ? MOST : n > 1000000 ? (rounds + 4) / 5 : rounds);
    MPI_Finalize();
    return 0;
}
