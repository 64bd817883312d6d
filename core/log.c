/* log.c - WEFT_LOG=1 says on stderr what a context runs on, and at its end how much memory it had; WEFT_LOG=2
 * adds a table of its operators: calls, ms, share, GF/s of those that multiply, GB/s of the others.
 *
 * A clock is handed over: an operator that begins takes it from the one at work, and gives it back, so a
 * row's time is its own. The arithmetic of products is counted where all of it goes through, in a copy of the
 * kernel table with those kernels replaced; how much a product is, is said here and nowhere else. On a GPU
 * each hand-over waits, or times would be those of launches. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "core/log.h"

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- rows ---- */
static weft__log_row *row_named(struct weft__log *l, const char *name, bool back)
{
    uint64_t at = weft__hash(back, name);
    for (int i = 0; i < WEFT__LOG_ROWS - 1; i++, at++) {
        weft__log_row *r = &l->row[1 + at % (WEFT__LOG_ROWS - 1)];
        if (!r->name[0]) {
            snprintf(r->name, sizeof r->name, "%s", *name ? name : "?");
            r->back = back;
        }
        if (r->back == back && !strncmp(r->name, *name ? name : "?", sizeof r->name - 1))
            return r;
    }
    return &l->row[0];                           /* more names than rows */
}

static void switch_row(weft *w, weft__log_row *to)
{
    struct weft__log *l = w->log;
    if (!w->dev.k->synchronous)
        w->dev.k->wait(&w->dev);
    int64_t t = now();
    l->now->ns += t - l->since;
    l->since = t, l->now = to;
}

weft__log_row *weft__log_enter(weft *w, const char *name, bool back)
{
    weft__log_row *before = w->log->now;
    switch_row(w, row_named(w->log, name, back));
    w->log->now->calls++;
    return before;
}

void weft__log_leave(weft *w, weft__log_row *before) { switch_row(w, before); }
void weft__log_bytes(weft *w, int64_t bytes)         { w->log->now->bytes += (double)bytes; }

/* ---- how much arithmetic a product is ---- */
static double of_product(const weft__product *p)
{
    return 2. * (double)p->m * (double)p->n * (double)p->k * (double)p->batches;
}

/* Only the products with the weights, and the cell: the other products of a layer are the caller's. Backward
 * is one with each of them, too. */
static double of_recurrence(const weft__recurrence *r)
{
    int64_t tokens = r->start.host[r->to] - r->start.host[r->from];
    double units = (double)tokens * (double)r->hidden;
    return 2. * units * (double)r->width * (weft__gates(r->cell) + (r->w_hr != NULL)) +
           units * weft__flops(r->cell);
}

static double of_layer(const weft__recur_layer *l, bool back)    /* and those that are the caller's */
{
    const weft__recurrence *r = &l->r;
    double tokens = 2. * (double)(r->start.host[r->to] - r->start.host[r->from]),
           G = (double)(r->hidden * weft__gates(r->cell));
    int of_x = back ? (l->dx.to != NULL) + (l->dw_ih.to != NULL) : 1;
    double more = back && l->dw_hh.to ? G * (double)r->width : 0,
           projected = back && l->dw_hr.to ? (double)(r->width * r->hidden) : 0;
    return of_recurrence(r) + (l->ids ? 2. * (double)l->rows : tokens) * of_x * G * (double)l->inputs +
           tokens * (more + projected);
}

static double count_pairs(int causal, int64_t queries, int64_t keys) /* that meet, see weft__attention */
{
    double pairs = 0;
    int64_t shift = causal == 1 ? 1 : keys - queries + (causal == 2);
    for (int64_t i = 0; causal && i < queries; i++)
        pairs += (double)(i + shift < 0 ? 0 : i + shift > keys ? keys : i + shift);
    return causal ? pairs : (double)queries * (double)keys;
}

/* Forward each pair is a product of dk and one of dv; backward its score again, and gradients of score, q,
 * k and v. */
static double of_attention(const weft__attention *a, bool back)
{
    double pairs = 0, each = 2. * (double)(back ? 3 * a->dk + 2 * a->dv : a->dk + a->dv);
    for (int64_t s = 0; s < a->sequences; s++)
        pairs += count_pairs(a->causal, a->q_offset.host[s + 1] - a->q_offset.host[s],
                             a->k_offset.host[s + 1] - a->k_offset.host[s]);
    return pairs * each * (double)a->heads;
}

/* ---- kernels that count, or that no operator calls; a context's device is its first member ---- */
static struct weft__log *log_of(weft__device *d) { return ((weft *)(void *)d)->log; }

static void counted_gemm(weft__device *d, const weft__product *p, const real *a, const real *b, real *c)
{
    log_of(d)->now->flops += of_product(p);
    log_of(d)->plain->gemm(d, p, a, b, c);
}
static void counted_recur(weft__device *d, const weft__recurrence *r)
{
    log_of(d)->now->flops += of_recurrence(r);
    log_of(d)->plain->recur(d, r);
}
static void counted_recur_back(weft__device *d, const weft__recurrence *r)
{
    log_of(d)->now->flops += of_recurrence(r);
    log_of(d)->plain->recur_back(d, r);
}
static void counted_recur_layer(weft__device *d, const weft__recur_layer *l)
{
    struct weft__log *log = log_of(d);
    log->now->flops += of_layer(l, false);
    d->k = log->plain;                           /* which may call itself in turn */
    log->plain->recur_layer(d, l);
    d->k = &log->counting;
}
static void counted_recur_layer_back(weft__device *d, const weft__recur_layer *l)
{
    struct weft__log *log = log_of(d);
    log->now->flops += of_layer(l, true);
    d->k = log->plain;
    log->plain->recur_layer_back(d, l);
    d->k = &log->counting;
}
static void counted_attention(weft__device *d, const weft__attention *a)
{
    log_of(d)->now->flops += of_attention(a, false);
    log_of(d)->plain->attention(d, a);
}
static void counted_attention_back(weft__device *d, const weft__attention *a)
{
    log_of(d)->now->flops += of_attention(a, true);
    log_of(d)->plain->attention_back(d, a);
}
static void counted_norm(weft__device *d, int64_t n, real power, const real *x, bool start, weft__guard *g)
{
    weft *w = (weft *)(void *)d;
    weft__log_row *before = weft__log_enter(w, "norm of gradients", false);
    w->log->plain->norm(d, n, power, x, start, g);
    weft__log_bytes(w, n * (int64_t)sizeof *x);
    weft__log_leave(w, before);
}
static void counted_clip(weft__device *d, int64_t n, real limit, const weft__guard *g, real *x)
{
    weft *w = (weft *)(void *)d;
    weft__log_row *before = weft__log_enter(w, "clip", false);
    w->log->plain->clip(d, n, limit, g, x);
    weft__log_bytes(w, 2 * n * (int64_t)sizeof *x);
    weft__log_leave(w, before);
}
static void counted_update(weft__device *d, int64_t n, const weft__update *u, const weft__guard *g,
                           const real *dx, real *m, real *v, real *a, real *x)
{
    weft *w = (weft *)(void *)d;
    weft__log_row *before = weft__log_enter(w, "update", false);
    w->log->plain->update(d, n, u, g, dx, m, v, a, x);
    weft__log_bytes(w, n * (int64_t)sizeof *x * (3 + 2 * ((m != NULL) + (v != NULL) + (a != NULL))));
    weft__log_leave(w, before);
}

/* ---- opening ---- */
static const char *precision_of(const weft *w)
{
    static const char *const names[] = { "fp32", "strict fp32", "tf32", "bf16" };
    return sizeof(real) == 8 ? "fp64" : names[w->dev.precision];
}

bool weft__log_level(int *level)
{
    const char *want = secure_getenv("WEFT_LOG");
    bool known = !want || !*want || (want[0] >= '0' && want[0] <= '2' && !want[1]);
    *level = known && want && *want ? want[0] - '0' : 0;
    return known;
}

static void count_kernels(weft *w)
{
    struct weft__log *l = w->log;
    l->counting = *l->plain;
    l->counting.gemm = counted_gemm, l->counting.recur = counted_recur,
    l->counting.recur_back = counted_recur_back;
    l->counting.recur_layer = counted_recur_layer, l->counting.recur_layer_back = counted_recur_layer_back;
    l->counting.attention = counted_attention, l->counting.attention_back = counted_attention_back;
    l->counting.norm = counted_norm, l->counting.clip = counted_clip, l->counting.update = counted_update;
    w->dev.k = &l->counting;
}

void weft__log_open(weft *w, int level, const char *but)
{
    struct weft__log *l = level && !w->status ? weft__allocate(w, sizeof *l) : NULL;
    if (!l)
        return;
    memset(l, 0, sizeof *l);
    snprintf(l->row[0].name, sizeof l->row[0].name, "beside operators");
    l->plain = w->dev.k, l->now = l->row, l->opened = l->since = now();
    w->log = l;
    w->logging = level > 1;
    if (w->logging)
        count_kernels(w);
    const char *products = w->dev.k->synchronous && weft__blas() ? "OpenBLAS" :
                           w->dev.k->synchronous                 ? "own" :
                                                                   "cuBLAS";
    fprintf(stderr, "weft %s: %s, %d thread%s, %s, %s products\n", weft_version(), w->dev.k->name,
            weft_threads(w), weft_threads(w) == 1 ? "" : "s", precision_of(w), products);
    if (*but)
        fprintf(stderr, "weft: %s\n", but);
}

/* ---- the end ---- */
static int by_time(const void *a, const void *b)
{
    const weft__log_row *x = a, *y = b;
    return (x->ns < y->ns) - (x->ns > y->ns);
}

static void print_log_row(const weft__log_row *r, double all)
{
    double seconds = r->ns > 0 ? (double)r->ns * 1e-9 : 1e-9;
    fprintf(stderr, "  %-28s %-8s %9lld %12.3f %7.1f%%", r->name,
            r->calls ? r->back ? "backward" : "forward" : "", (long long)r->calls, seconds * 1e3,
            100 * (double)r->ns / all);
    if (r->flops > 0)
        fprintf(stderr, " %9.2f\n", r->flops / seconds * 1e-9);
    else if (r->bytes > 0)
        fprintf(stderr, " %9s %9.2f\n", "", r->bytes / seconds * 1e-9);
    else
        fprintf(stderr, "\n");
}

static void print_table(weft *w)
{
    struct weft__log *l = w->log;
    switch_row(w, l->row);
    double all = (double)(now() - l->opened);
    qsort(l->row, WEFT__LOG_ROWS, sizeof *l->row, by_time);
    fprintf(stderr, "  %-28s %-8s %9s %12s %8s %9s %9s\n", "operator", "", "calls", "ms", "share", "GF/s",
            "GB/s");
    for (int i = 0; i < WEFT__LOG_ROWS; i++)
        if (l->row[i].calls || l->row[i].ns)
            print_log_row(&l->row[i], all > 0 ? all : 1);
}

void weft__log_close(weft *w)
{
    struct weft__log *l = w->log;
    if (!l)
        return;
    weft_usage u = weft_usage_of(w);
    fprintf(stderr, "weft: closed after %.3f s, at most %.1f MB of host memory",
            (double)(now() - l->opened) * 1e-9, (double)u.host_peak * 1e-6);
    if (!l->plain->synchronous)
        fprintf(stderr, " and %.1f MB of the device's", (double)u.device_peak * 1e-6);
    fprintf(stderr, "\n");
    if (w->logging)
        print_table(w);
    w->dev.k = l->plain;
    w->log = NULL, w->logging = false;
    weft__release(w, l);
}
