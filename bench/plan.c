/* plan.c - measures seconds and bytes per sequence of planners for millions of sequences, including the
 * check.
 *
 * Each planner runs in a process of its own. Its peak memory counts from the point where lengths exist. */
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <sys/resource.h>
#include "bench.h"

/* All planners except exact_fill, column_generation, optimal_buckets and lpfhp, which are for thousands of
 * sequences. */
static const char *const planners[] = {
    "order:count=64", "sorted:count=64", "random:count=64", "pool:count=64,shuffle=yes",
    "pool:tokens=10000,shuffle=yes", "laplace:count=64", "tokens:budget=16384",
    "buckets:bounds=64/128/256/512,sizes=256/128/64/32/8", "geometric:budget=16384,ratio=1.2,least=16",
    "powers:budget=16384", "next_fit:capacity=2048", "first_fit:capacity=2048",
    "best_fit:capacity=2048", "worst_fit:capacity=2048", "first_fit:capacity=2048,open=16",
    "best_fit:capacity=2048,open=16", "next_fit_decreasing:capacity=2048",
    "first_fit_decreasing:capacity=2048", "best_fit_decreasing:capacity=2048",
    "worst_fit_decreasing:capacity=2048", "modified_first_fit_decreasing:capacity=2048",
    "greedy_knapsack:capacity=2048", "first_fit_decreasing:capacity=2048,squares=2097152,longer=split",
    "best_fit_decreasing:capacity=2048,align=128", "spfhp:capacity=2048", "spfhp_stacked:capacity=2048",
    "chunk:capacity=2048", "chunk:capacity=2048,rows=64,carry=yes", "best_fit_split:capacity=2048",
    "refill:slots=64", "refill:slots=64,longest_first=yes", "streams:slots=64,window=256", "fold",
    "balance:ranks=8", "balance:ranks=8,method=kk", "balance:ranks=8,per_square=4e-5",
};
enum { MEAN_OF_LOG = 5, MOST = 2048 };

typedef struct result {
    double seconds, bytes;
    int64_t pieces, batches;
    char message[160];
} result;

/* Draws log-normal lengths up to MOST, with a heavy tail as in texts; mean about 164. */
static int32_t *draw_lengths(int64_t n)
{
    weft_stream *s = weft_stream_new(1, "bench.plan");
    int32_t *len = keep(n, sizeof *len);
    for (int64_t i = 0; i < n && s; i++) {
        double u = ((double)weft_stream_below(s, 1u << 30) + .5) / (1u << 30),
               v = (double)weft_stream_below(s, 1u << 30) / (1u << 30);
        double x = exp(MEAN_OF_LOG + .5 * sqrt(-2 * log(u)) * cos(8 * atan(1) * v));
        len[i] = x < 1 ? 1 : x > MOST ? MOST : (int32_t)x;
    }
    weft_stream_free(s);
    return len;
}

static double most_bytes(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return 1024. * (double)u.ru_maxrss;
}

typedef struct job {
    const char *text;
    const int32_t *len;
    int64_t n;
} job;

static void plan_once(void *user, void *out)
{
    const job *j = user;
    result r = { 0 };
    const weft_planner *planner;
    weft_plan_opts o;
    weft_plan p = { 0 };
    void *memory = NULL;
    double before = most_bytes(), start = now_ms();
    if (weft_plan_parse(j->text, &planner, &o, &memory) || weft_plan_make(planner, j->len, j->n, &o, &p))
        snprintf(r.message, sizeof r.message, "%s", weft_plan_message());
    r.seconds = (now_ms() - start) / 1e3;
    r.bytes = most_bytes() - before;
    r.pieces = p.segments;
    r.batches = p.batches;
    weft_plan_free(&p);
    free(memory);
    *(result *)out = r;
}

/* The median of the runs' seconds. */
static bool bench_planner(const char *text, const int32_t *len, int64_t n, const settings *s)
{
    times t = { 0 };
    result r;
    do
        if (!in_child(plan_once, &(job){ text, len, n }, &r, sizeof r) || *r.message) {
            fprintf(stderr, "weft_bench: %s: %s\n", text, *r.message ? r.message : "no result");
            return false;
        }
    while (more(&t, 1e3 * r.seconds, s));
    printf("{\"who\": \"weft-%s\", \"threads\": 1, \"case\": \"plan\", \"planner\": \"%s\", "
           "\"sequences\": %lld, \"pieces\": %lld, \"batches\": %lld, \"bytes_a_sequence\": %.1f, "
           "\"bytes_a_piece\": %.1f, \"ms\": %.3f, \"runs\": %d}\n",
           weft_version(), text, (long long)n, (long long)r.pieces, (long long)r.batches, r.bytes / (double)n,
           r.bytes / (double)(r.pieces ? r.pieces : 1), median(&t), t.n);
    return true;
}

bool bench_plan(const settings *s)
{
    int64_t n = s->tiny ? 1000 : s->quick ? 1000000 : 10000000;
    int32_t *len = draw_lengths(n);
    bool ok = true;
    for (size_t i = 0; i < sizeof planners / sizeof *planners && ok; i++)
        ok = bench_planner(planners[i], len, n, s);
    free_kept();
    return ok;
}
