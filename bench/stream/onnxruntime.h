/* onnxruntime.h - one model of onnxruntime, opened from its shared library, which PyPI's wheel has without a
 * header: for the benchmark of streaming. */
#ifndef WEFT_BENCH_ONNXRUNTIME_H
#define WEFT_BENCH_ONNXRUNTIME_H
#include <stdbool.h>
#include <stdint.h>

typedef struct ort ort;
enum { ORT_MOST = 4 };
/* A tensor in memory of the program's own, of float or, `whole`, of int64. */
typedef struct ort_tensor {
    const char *name;
    void *data;
    int rank;
    int64_t shape[3];
    bool whole;
} ort_tensor;

/* The model of a file, on one thread; NULL, and a message on stderr, if there is none. */
ort *ort_open(const char *library, const char *model);
const char *ort_version(const ort *);
/* Binds what goes in and what comes out, as set number 0 or 1, where it is; false, and a message: it
 * cannot. */
bool ort_bind(ort *, int set, const ort_tensor *in, int n, const ort_tensor *out, int m);
bool ort_run(ort *, int set);
#endif
