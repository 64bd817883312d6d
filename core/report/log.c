/* log.c - WEFT_LOG. At level 1 a context prints its device and settings to stderr, and at its end its memory.
 * Level 2 adds the profile as a table: calls, ms, share, GF/s of operators with products, GB/s of the others.
 * Only rank 0 prints. */
#include "core/report/log.h"
#include "core/os.h"

void weft__warn(const char *format, ...)
{
    char text[600];
    WEFT__PLAIN_TEXT(text, sizeof text, format);
    fprintf(stderr, "weft: %s\n", text);
}

/* ---- opening ---- */
const char *weft__precision_of(const weft *w)
{
    static const char *const names[] = { "fp32", "strict fp32", "tf32", "bf16" };
    return sizeof(real) == 8 ? "fp64" : names[w->dev.precision];
}

bool weft__log_level(int *level)
{
    const char *value = weft__variable("WEFT_LOG");
    bool known = !value || !*value || (value[0] >= '0' && value[0] <= '2' && !value[1]);
    *level = known && value && *value ? value[0] - '0' : 0;
    return known;
}

void weft__log_open(weft *w, int level, const char *but)
{
    if (!level || w->status)
        return;
    int rank = weft__launched_rank();
    if (rank && *but)                            /* other ranks print failures only */
        fprintf(stderr, "weft: rank %d: %s\n", rank, but);
    if (rank)
        return;
    inside(w)->opened = weft__now();
    if (level > 1)
        weft_set_profiling(w, true);
    const char *products = w->dev.k->synchronous && w->dev.blas ? "OpenBLAS" :
                           w->dev.k->synchronous                 ? "own" :
                                                                   "cuBLAS";
    fprintf(stderr, "weft %s: %s, %d thread%s, %s, %s products\n", weft_version(), w->dev.k->name,
            weft_threads(w), weft_threads(w) == 1 ? "" : "s", weft__precision_of(w), products);
    if (*but)
        fprintf(stderr, "weft: %s\n", but);
}

/* ---- closing ---- */
static void print_row(const weft_profile_row *r, double all)
{
    double ms = r->ms > 0 ? r->ms : 1e-6;
    fprintf(stderr, "  %-28s %-8s %9lld %12.3f %7.1f%%", r->name,
            !r->calls ? "" : r->backward ? "backward" : "forward", (long long)r->calls, ms,
            100 * r->ms / all);
    if (r->flops > 0)
        fprintf(stderr, " %9.2f %9s", r->flops / ms * 1e-6, "");
    else if (r->bytes > 0)
        fprintf(stderr, " %9s %9.2f", "", r->bytes / ms * 1e-6);
    else if (r->launches)
        fprintf(stderr, " %9s %9s", "", "");
    if (r->launches)
        fprintf(stderr, " %9lld", (long long)r->launches);
    fprintf(stderr, "\n");
}

static void print_table(weft *w)
{
    weft_profile p = weft_profile_of(w);
    double all = p.ms > 0 ? p.ms : 1;
    weft_profile_row beside = { .name = "outside operators", .ms = p.beside_ms };
    int64_t before = 0;                          /* rows that took longer than the time outside operators */
    while (before < p.n && p.rows[before].ms > p.beside_ms)
        before++;
    fprintf(stderr, "  %-28s %-8s %9s %12s %8s %9s %9s%s\n", "operator", "", "calls", "ms", "share", "GF/s",
            "GB/s", w->dev.launches ? "  launches" : "");
    for (int64_t i = 0; i <= p.n; i++) {
        if (i == before)
            print_row(&beside, all);
        if (i < p.n)
            print_row(&p.rows[i], all);
    }
}

void weft__log_close(weft *w)
{
    if (!inside(w)->opened)
        return;
    void *before = weft__plain_locale();
    weft_usage u = weft_usage_of(w);
    fprintf(stderr, "weft: closed after %.3f s, at most %.1f MB of host memory",
            (double)(weft__now() - inside(w)->opened) * 1e-9, (double)u.host_peak * 1e-6);
    if (!w->dev.k->synchronous)
        fprintf(stderr, " and %.1f MB of the device's", (double)u.device_peak * 1e-6);
    fprintf(stderr, "\n");
    if (w->dev.log > 1)
        print_table(w);
    weft__plain_locale_end(before);
}
