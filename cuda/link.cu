/* link.cu - implements core/shared/link.h with NCCL. The library is loaded when ranks first need it, so weft
 * also runs without NCCL.
 *
 * Communicators are non-blocking (NCCL 2.14): calls return immediately, and ncclCommGetAsyncError reports
 * when a call is complete. Until then NCCL may add kernels to the stream, so weft must not use it.
 * ncclCommAbort closes a link. It waits for no other rank and stops kernels that would. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/shared/link.h"
#include "cuda/cuda.h"

#if !defined(WEFT_EMULATED) && defined(__has_include)
#if __has_include(<nccl.h>)
#include <nccl.h>
#endif
#endif

#ifdef NCCL_VERSION_CODE
#define NCCL(X)                                                                                         \
    X(ncclGetVersion) X(ncclGetUniqueId) X(ncclCommInitRankConfig) X(ncclCommGetAsyncError)             \
    X(ncclCommAbort) X(ncclGroupStart) X(ncclGroupEnd) X(ncclSend) X(ncclRecv) X(ncclGetErrorString)

enum { OLDEST = 21400 };
static struct {
#define X(name) decltype(&::name) name;
    NCCL(X)
#undef X
    int version;
    char fault[256];
} nccl;
static pthread_once_t once = PTHREAD_ONCE_INIT;

struct weft__link {
    weft__device *d;
    ncclComm_t comm;
    ncclResult_t result;                         /* of the last call */
    char why[200];
};

/* ---- the library ---- */
#ifdef WEFT_EMULATED
static const char *const usual_library = NULL;   /* no default: the real NCCL cannot use emulated memory */
#else
static const char *const usual_library = "libnccl.so.2";
#endif

static bool look_up(void *library)
{
#define X(name)                                                                                         \
    if (!(nccl.name = (decltype(nccl.name))dlsym(library, #name)))                                      \
        return snprintf(nccl.fault, sizeof nccl.fault, "NCCL: the library has no " #name), false;
    NCCL(X)
#undef X
    if (nccl.ncclGetVersion(&nccl.version) == ncclSuccess && nccl.version >= OLDEST)
        return true;
    snprintf(nccl.fault, sizeof nccl.fault, "NCCL: version %d; expected %d or later",
             nccl.version, (int)OLDEST);
    return false;
}

static void load()
{
    const char *value = secure_getenv("WEFT_NCCL"), *name = value && *value ? value : usual_library;
    if (!name || !strcmp(name, "off"))
        snprintf(nccl.fault, sizeof nccl.fault, "%s",
                 name ? "WEFT_NCCL=off" : "NCCL: WEFT_NCCL names no library");
    else if (void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL))
        look_up(library);
    else
        snprintf(nccl.fault, sizeof nccl.fault, "NCCL: %s", dlerror());
}

static bool is_loaded(char *why, size_t size)
{
    pthread_once(&once, load);
    snprintf(why, size, "%s", nccl.fault);
    return !nccl.fault[0];
}

/* ---- results ---- */
static const device_scope enter_device(const weft__link *l) { return device_scope(context_of(l->d)); }

static bool is_error(ncclResult_t result) { return result != ncclSuccess && result != ncclInProgress; }

/* Records a result; the first failure stays. */
static void record(weft__link *l, ncclResult_t result, const char *what)
{
    if (!is_error(l->result))
        l->result = result;
    if (is_error(result) && !l->why[0])
        snprintf(l->why, sizeof l->why, "NCCL: %s: %s", what, nccl.ncclGetErrorString(result));
}

static int state_of(const weft__link *l)
{
    return is_error(l->result) ? (int)WEFT__LINK_FAILED : l->result == ncclSuccess;
}

static int is_accepted(weft__link *l)
{
    const device_scope scope = enter_device(l);
    ncclResult_t now = l->result;
    if (l->result != ncclInProgress)
        return state_of(l);
    const ncclResult_t query = nccl.ncclCommGetAsyncError(l->comm, &now);
    record(l, query == ncclSuccess ? now : query, "a call");
    return state_of(l);
}

static int is_complete(weft__link *l)
{
    const device_scope scope = enter_device(l);
    ncclResult_t now = ncclSuccess;
    if (is_error(l->result))
        return WEFT__LINK_FAILED;
    const cudaError_t error = cudaStreamQuery(stream_of(l->d));
    if (error == cudaSuccess)
        return 1;
    if (refused(error) && error != cudaErrorNotReady) {
        snprintf(l->why, sizeof l->why, "NCCL: %s", cudaGetErrorString(error));
        l->result = ncclUnhandledCudaError;
    } else {
        const ncclResult_t query = nccl.ncclCommGetAsyncError(l->comm, &now);
        record(l, query == ncclSuccess ? now : query, "a message");
    }
    return is_error(l->result) ? (int)WEFT__LINK_FAILED : 0;
}

static const char *why_of(const weft__link *l) { return l->why; }

/* ---- joining and leaving ---- */
static bool begin_world(weft__device *d, void *id, char *name, char *why, size_t size)
{
    static_assert(sizeof(ncclUniqueId) == WEFT__LINK_ID, "the contract has room for an id");
    const device_scope scope(context_of(d));
    if (!is_loaded(why, size))
        return false;
    const ncclResult_t result = id ? nccl.ncclGetUniqueId((ncclUniqueId *)id) : ncclSuccess;
    snprintf(name, size, "NCCL %d.%d.%d", nccl.version / 10000, nccl.version / 100 % 100, nccl.version % 100);
    if (result != ncclSuccess)
        snprintf(why, size, "NCCL: an id: %s", nccl.ncclGetErrorString(result));
    return result == ncclSuccess;
}

static void close_link(weft__link *l)
{
    const device_scope scope = enter_device(l);
    if (l->comm)
        nccl.ncclCommAbort(l->comm);
    l->d->release(l, l->d->user);
}

static weft__link *open_link(weft__device *d, const void *id, int rank, int ranks, char *why, size_t size)
{
    const device_scope scope(context_of(d));
    ncclUniqueId world;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    if (!is_loaded(why, size))
        return NULL;
    weft__link *l = (weft__link *)d->allocate(sizeof *l, d->user);
    if (!l)
        return snprintf(why, size, "NCCL: out of memory"), (weft__link *)NULL;
    memset(l, 0, sizeof *l);
    l->d = d;
    memcpy(&world, id, sizeof world);
    config.blocking = 0;
    record(l, nccl.ncclCommInitRankConfig(&l->comm, ranks, world, rank, &config), "joining");
    if (!is_error(l->result))
        return l;
    snprintf(why, size, "%s", l->why);
    close_link(l);
    return NULL;
}

/* ---- messages ---- */
static const ncclDataType_t number = sizeof(real) == 4 ? ncclFloat32 : ncclFloat64;

static void begin(weft__link *l)
{
    const device_scope scope = enter_device(l);
    stream_of(l->d);                             /* sends pending uploads first */
    if (!is_error(l->result))
        record(l, nccl.ncclGroupStart(), "a group");
}
static void end(weft__link *l)
{
    const device_scope scope = enter_device(l);
    if (!is_error(l->result))
        record(l, nccl.ncclGroupEnd(), "a group");
}
static void send(weft__link *l, int to, const real *x, int64_t n)
{
    const device_scope scope = enter_device(l);
    if (!is_error(l->result))
        record(l, nccl.ncclSend(x, (size_t)n, number, to, l->comm, stream_of(l->d)), "sending");
}
static void receive(weft__link *l, int from, real *x, int64_t n)
{
    const device_scope scope = enter_device(l);
    if (!is_error(l->result))
        record(l, nccl.ncclRecv(x, (size_t)n, number, from, l->comm, stream_of(l->d)), "receiving");
}

const weft__links *links_of_gpus()
{
    static const weft__links links = { begin_world, open_link, begin, end, send,
                                       receive, is_accepted, is_complete, why_of, close_link };
    return &links;
}
#else
const weft__links *links_of_gpus() { return NULL; }        /* compiled without nccl.h */
#endif
