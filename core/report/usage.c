/* usage.c - reports the version, device, threads and memory of a context. */
#include "core/inside.h"
#include "core/report/api_report.h"
#include "core/report/log.h"

const char *weft_version(void)
{
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
    return TEXT(WEFT_VERSION_MAJOR) "." TEXT(WEFT_VERSION_MINOR) "." TEXT(WEFT_VERSION_PATCH);
}

int weft_threads(const weft *w) { return w && w->dev.pool ? weft__pool_threads(w->dev.pool) : 1; }
const char *weft_device_name(const weft *w) { return w && w->dev.k ? w->dev.k->name : "none"; }

void weft_print_device(FILE *file, weft *w)
{
    char text[16384];
    if (!file || !w || weft__is_no_context(w) || !w->dev.k)
        return;
    fprintf(file, "weft %s: %s, %d thread%s, %s\n", weft_version(), weft_device_name(w), weft_threads(w),
            weft_threads(w) == 1 ? "" : "s", weft__precision_of(w));
    w->dev.k->about(&w->dev, text, sizeof text);
    fputs(text, file);
}

weft_usage weft_usage_of(const weft *w)
{
    if (!w || weft__is_no_context(w))
        return (weft_usage){ 0 };
    int64_t scratch = (int64_t)w->dev.workspace_bytes,
            own = (int64_t)(sizeof(weft__inside) + weft__pool_bytes(w->dev.pool));
    int64_t of_host = own + (w->dev.k->synchronous ? scratch : 0),
            of_device = w->dev.k->synchronous ? 0 : scratch;
    return (
        weft_usage){ inside(w)->host_bytes + of_host,
                     inside(w)->device_bytes + of_device,
                     inside(w)->allocations,
                     weft__notify((weft *)(uintptr_t)w, WEFT__ENTRIES, NULL),
                     inside(w)->host_peak + of_host,
                     inside(w)->device_peak + of_device,
                     w->kept_bytes,
                     w->dev.launches,
                     w->dev.trials,
                     { w->dev.recurrent[0], w->dev.recurrent[1], w->dev.recurrent[2], w->dev.recurrent[3] } };
}
