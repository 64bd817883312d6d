/* plan_cost.c - milliseconds of plans as the cost model predicts them, beside what they take.
 *
 * For each width and corpus the table is measured as `weft plan --explain` does it; then plans that it has
 * not seen are run: padded, packed, in rows and in slots. The corpora are formulas: short words, texts with a
 * heavy tail, nearly equal lengths. ms is the median of the runs after one that is not counted, error the
 * prediction's. The last line has the median of all errors, and the least that nine of ten do not exceed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "bench.h"
#include "tools/plan/costs.h"

/* ---- corpora ---- */
/* tokens: about how many of a corpus run, so that wide layers take no longer. */
static const char *const corpora[] = { "words", "texts", "proteins" };
enum { CORPORA = 3, PLANS = 4, MOST = 8000 };

static int64_t lengths_of(int corpus, int32_t *len, int64_t most, int64_t tokens)
{
    int64_t n = 0, sum = 0;
    for (; n < most && sum < tokens; n++) {
        double u = .5 + formula(corpora[corpus], n), v = .5 + formula("more", 3 * n + corpus);
        double normal = sqrt(-2 * log(u + 1e-6)) * cos(6.283185307 * v);
        double is = corpus == 0 ? 7.3 + 2.2 * normal :
                    corpus == 1 ? exp(4.2 + .9 * normal) :
                                  120 + 4 * normal;
        len[n] = (int32_t)(is < 1 ? 1 : is > 600 ? 600 : is);
        sum += len[n];
    }
    return n;
}

static int32_t longest_of(const int32_t *len, int64_t n)
{
    int32_t most = 1;
    for (int64_t i = 0; i < n; i++)
        most = len[i] > most ? len[i] : most;
    return most;
}

static bool make_plan(int which, const int32_t *len, int64_t n, weft_plan *p)
{
    static const char *const name[PLANS] = { "random", "random", "first_fit", "streams" };
    weft_plan_opts o = { 0 };
    if (which < 2)
        o = (weft_plan_opts){ .count = 40, .seed = 5 };
    else if (which == 2)
        o = (weft_plan_opts){ .capacity = longest_of(len, n), .rows = 12 };
    else
        o = (weft_plan_opts){ .slots = 20, .window = 60 };
    return weft_plan_make(weft_planner_named(name[which]), len, n, &o, p) == WEFT_OK;
}

/* ---- predicted and measured ---- */
typedef struct {
    const settings *s;
    int64_t H;
    int errors;
    double error[5 * CORPORA * PLANS];
} comparison;

static void say(comparison *c, const char *corpus, int which, const weft_plan_time *t, times *took)
{
    static const char *const layout[PLANS] = { "padded", "packed", "rows", "slots" };
    double ms = median(took), error = t->ms / ms - 1;
    c->error[c->errors++] = fabs(error);
    printf(
        "{\"who\": \"weft-%s\", \"threads\": %d, \"case\": \"plan_cost\", \"H\": %lld, \"lengths\": \"%s\", "
        "\"layout\": \"%s\", \"batches\": %lld, \"steps\": %lld, \"tokens\": %lld, \"predicted_ms\": %.4f, "
        "\"error\": %.4f, \"ms\": %.4f, \"ms_min\": %.4f, \"runs\": %d}\n",
        weft_version(), c->s->open.threads, (long long)c->H, corpus, layout[which], (long long)t->batches,
        (long long)t->steps, (long long)t->cells, t->ms, error, ms, took->ms[0], took->n);
    fflush(stdout);
}

/* The first pass, which finds nothing in place, is not counted. */
static bool time_plan(const comparison *c, const cost_runner *r, const weft_plan *p, cost_pass pass, times *t)
{
    bool good = r->pass(r->user, p, pass);
    double start = now_ms();
    while (good && (good = r->pass(r->user, p, pass)) && more(t, now_ms() - start, c->s))
        start = now_ms();
    return good;
}

static bool compare(comparison *c, const cost_runner *r, const weft_plan_cost *cost, int corpus)
{
    int64_t tokens = c->s->tiny ? 400 : (int64_t)(1e6 / (double)c->H) + 2000;
    int32_t *len = calloc(MOST, sizeof *len);
    int64_t n = len ? lengths_of(corpus, len, MOST, tokens) : 0;
    bool good = len != NULL;
    for (int which = 0; which < PLANS && good; which++) {
        weft_plan p = { 0 };
        weft_plan_time t = { 0 };
        times took = { 0 };
        good = make_plan(which, len, n, &p) && weft_plan_predict(&p, cost, which == 0, &t) == WEFT_OK &&
               time_plan(c, r, &p, which ? COST_PLAN : COST_PADDED, &took);
        if (good)
            say(c, corpora[corpus], which, &t, &took);
        weft_plan_free(&p);
    }
    free(len);
    return good;
}

static bool compare_width(comparison *c)
{
    cost_layer layer = { .cell = "lstm",
                         .input = c->H,
                         .hidden = c->H,
                         .threads = c->s->open.threads,
                         .device = c->s->open.device,
                         .precision = c->s->open.precision };
    cost_model m;
    bool good = cost_model_open(&m, &layer);
    cost_runner r = { cost_model_pass, &m };
    for (int corpus = 0; corpus < CORPORA && good; corpus++) {
        weft_plan_cost cost;
        good = calibrate(&r, 64, c->s->tiny ? .02 : cost_seconds(&layer), &cost);
        good = good && compare(c, &r, &cost, corpus);
    }
    good = good && !failed(m.w, "plan_cost");
    cost_model_close(&m);
    return good;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

bool bench_plan_cost(const settings *s)
{
    static const int64_t widths[] = { 32, 64, 128, 256, 512 };
    comparison c = { .s = s };
    bool good = true;
    for (int i = 0; i < (s->tiny ? 1 : s->quick ? 3 : 5) && good; i++) {
        c.H = s->tiny ? 16 : widths[i];
        good = compare_width(&c);
    }
    qsort(c.error, (size_t)c.errors, sizeof *c.error, ascending);
    if (good && c.errors)
        printf("{\"who\": \"weft-%s\", \"case\": \"plan_cost\", \"plans\": %d, \"median_error\": %.4f, "
               "\"p90_error\": "
               "%.4f, \"ms\": 0, \"runs\": %d}\n",
               weft_version(), c.errors, c.error[c.errors / 2], c.error[c.errors * 9 / 10], s->runs);
    return good;
}
