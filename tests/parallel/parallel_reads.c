/* parallel_reads.c - what a rank reads of its data: it writes a file of 20,000 sequences of 16 to 128
 * rows of 64 numbers, has the page cache forget it, and goes through an epoch of batches of 256 of one shard:
 * by turns with all of the file in memory and with what the shard works on, the last two from the page cache.
 * A line of JSON each. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "weft_lab.h"
#include "weft_parallel.h"

enum { N = 20000, COLUMNS = 64, BATCH = 256 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static long long bytes_read(void)
{
    long long n = 0;
    FILE *f = fopen("/proc/self/io", "r");
    if (!f || fscanf(f, "rchar: %lld", &n) != 1)
        fputs("reads: no /proc/self/io\n", stderr);
    if (f)
        fclose(f);
    return n;
}

static int failed(const char *text) { return fprintf(stderr, "reads: %s\n", text), 1; }

static int write_file(const char *path)
{
    int32_t *len = malloc(N * sizeof *len);
    int64_t rows = 0;
    for (int i = 0; len && i < N; i++)
        rows += len[i] = 16 + i * 37 % 113;
    weft_real *x = len ? calloc((size_t)rows * COLUMNS, sizeof *x) : NULL;
    if (!x)
        return failed("no memory");
    for (int64_t i = 0; i < rows * COLUMNS; i++)
        x[i] = (weft_real)(i % 1009);
    weft_dataset d = { .n = N, .columns = COLUMNS, .len = len, .rows = x };
    weft_status s = weft_write_hdf5(&d, path, NULL);
    free(len), free(x);
    return s ? failed(weft_file_message()) : 0;
}

/* An epoch's batches of one shard, each as a tensor; the sum of their numbers. */
static double epoch(weft *w, const weft_dataset *d, int shards)
{
    weft_module *m = weft_module_new(w, "m");
    weft_parallel *p =
        weft_parallel_new(m, &(weft_parallel_opts){ .shards = shards, .n = d->n, .len = d->len });
    weft_loader *l = weft_loader_new(w, "l", d->n, d->len, &(weft_loader_opts){ .count = BATCH });
    double sum = 0;
    int64_t n;
    for (const int32_t *index; (index = weft_loader_next(l, &n)) && weft_ok(w);)
        WEFT_NO_GRAD(w)
        {
            weft_parallel_begin(p, index, n);
            for (weft_part part; weft_parallel_next(p, &part);)
                if (part.shard == 0)
                    sum += weft_item(weft_sum_all(weft_plain(weft_dataset_batch(w, d, part.index, part.n))));
        }
    return sum;
}

static int measure(const char *path, int shards, bool whole)
{
    weft *w = weft_open(&(weft_opts){ .device = WEFT_CPU, .threads = 1, .seed = 1 });
    weft_hdf5 *file = NULL;
    weft_dataset d;
    double from = now();
    long long before = bytes_read();
    weft_status s = whole ? weft_read_hdf5(path, NULL, &d) : weft_open_hdf5(path, NULL, &file);
    if (s)
        return failed(weft_file_message());
    d = whole ? d : weft_hdf5_shape(file);
    double opened = now() - from, sum = epoch(w, &d, shards);
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    if (!weft_ok(w))
        return failed(weft_error_message(w));
    printf("{\"case\": \"%s\", \"open_s\": %.3f, \"s\": %.3f, \"read_mb\": %.1f, \"resident_mb\": %.0f, "
           "\"sum\": %.17g}\n",
           whole ? "the whole file" : "a shard's part", opened, now() - from,
           (double)(bytes_read() - before) / 1e6, (double)u.ru_maxrss / 1e3, sum);
    if (whole)
        weft_dataset_free(&d);
    weft_close_hdf5(file);
    weft_close(w);
    return 0;
}

static void forget(const char *path)
{
    int f = open(path, O_RDONLY | O_CLOEXEC);
    if (f < 0 || fsync(f) || posix_fadvise(f, 0, 0, POSIX_FADV_DONTNEED))
        fputs("reads: the page cache keeps the file\n", stderr);
    if (f >= 0)
        close(f);
}

/* In a process of its own, whose memory is its own. */
static int apart(const char *path, int shards, int what)
{
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (!child)
        exit(what < 0 ? write_file(path) : measure(path, shards, what));
    return child < 0 || waitpid(child, &status, 0) != child || status;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return fputs("reads FILE SHARDS\n", stderr), 2;
    int bad = apart(argv[1], 1, -1);
    for (int k = 0; k < 6 && !bad; k++) {
        if (k < 4) /* the last two find it in the page cache */
            forget(argv[1]);
        bad = apart(argv[1], atoi(argv[2]), !(k % 2));
    }
    unlink(argv[1]);
    return bad;
}
