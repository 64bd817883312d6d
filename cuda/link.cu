/* link.cu - core/shared/link.h by NCCL. Its library is opened when ranks ask for it: weft runs where there is
 * none.
 *
 * Communicators do not block (NCCL 2.14): each call returns at once, and ncclCommGetAsyncError says when it
 * has done what it was asked for. Until then NCCL may still put kernels into the stream, so nobody else may.
 * A link is ended by ncclCommAbort: it waits for no other rank, and ends kernels that would. */
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
static const char *const usual = NULL;           /* a GPU's own would be given what is none */
#else
static const char *const usual = "libnccl.so.2";
#endif

static bool look_up(void *library)
{
#define X(name)                                                                                         \
    if (!(nccl.name = (decltype(nccl.name))dlsym(library, #name)))                                      \
        return snprintf(nccl.fault, sizeof nccl.fault, "NCCL: its library has no " #name), false;
    NCCL(X)
#undef X
    if (nccl.ncclGetVersion(&nccl.version) == ncclSuccess && nccl.version >= OLDEST)
        return true;
    snprintf(nccl.fault, sizeof nccl.fault, "NCCL: its library is of version %d; %d or later is expected",
             nccl.version, (int)OLDEST);
    return false;
}

static void load()
{
    const char *said = secure_getenv("WEFT_NCCL"), *name = said && *said ? said : usual;
    if (!name || !strcmp(name, "off"))
        snprintf(nccl.fault, sizeof nccl.fault, "%s", name ? "WEFT_NCCL=off" : "NCCL: WEFT_NCCL names none");
    else if (void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL))
        look_up(library);
    else
        snprintf(nccl.fault, sizeof nccl.fault, "NCCL: %s", dlerror());
}

static bool is_there(char *why, size_t size)
{
    pthread_once(&once, load);
    snprintf(why, size, "%s", nccl.fault);
    return !nccl.fault[0];
}

/* ---- results ---- */
static const visit at_home(const weft__link *l) { return visit(context_of(l->d)); }

static bool bad(ncclResult_t result) { return result != ncclSuccess && result != ncclInProgress; }

/* The first failure is the one that matters. */
static void note(weft__link *l, ncclResult_t result, const char *what)
{
    if (!bad(l->result))
        l->result = result;
    if (bad(result) && !l->why[0])
        snprintf(l->why, sizeof l->why, "NCCL: %s: %s", what, nccl.ncclGetErrorString(result));
}

static int state_of(const weft__link *l)
{
    return bad(l->result) ? (int)WEFT__LINK_FAILED : l->result == ncclSuccess;
}

static int taken(weft__link *l)
{
    const visit here = at_home(l);
    ncclResult_t now = l->result;
    if (l->result != ncclInProgress)
        return state_of(l);
    const ncclResult_t asked = nccl.ncclCommGetAsyncError(l->comm, &now);
    note(l, asked == ncclSuccess ? now : asked, "a call");
    return state_of(l);
}

static int done(weft__link *l)
{
    const visit here = at_home(l);
    ncclResult_t now = ncclSuccess;
    if (bad(l->result))
        return WEFT__LINK_FAILED;
    const cudaError_t error = cudaStreamQuery(stream_of(l->d));
    if (error == cudaSuccess)
        return 1;
    if (refused(error) && error != cudaErrorNotReady) {
        snprintf(l->why, sizeof l->why, "NCCL: %s", cudaGetErrorString(error));
        l->result = ncclUnhandledCudaError;
    } else {
        const ncclResult_t asked = nccl.ncclCommGetAsyncError(l->comm, &now);
        note(l, asked == ncclSuccess ? now : asked, "a message");
    }
    return bad(l->result) ? (int)WEFT__LINK_FAILED : 0;
}

static const char *why_of(const weft__link *l) { return l->why; }

/* ---- joining and leaving ---- */
static bool begin_world(weft__device *d, void *id, char *name, char *why, size_t size)
{
    static_assert(sizeof(ncclUniqueId) == WEFT__LINK_ID, "the contract has room for an id");
    const visit here(context_of(d));
    if (!is_there(why, size))
        return false;
    const ncclResult_t result = id ? nccl.ncclGetUniqueId((ncclUniqueId *)id) : ncclSuccess;
    snprintf(name, size, "NCCL %d.%d.%d", nccl.version / 10000, nccl.version / 100 % 100, nccl.version % 100);
    if (result != ncclSuccess)
        snprintf(why, size, "NCCL: an id: %s", nccl.ncclGetErrorString(result));
    return result == ncclSuccess;
}

static void close_link(weft__link *l)
{
    const visit here = at_home(l);
    if (l->comm)
        nccl.ncclCommAbort(l->comm);
    l->d->release(l, l->d->user);
}

static weft__link *open_link(weft__device *d, const void *id, int rank, int ranks, char *why, size_t size)
{
    const visit here(context_of(d));
    ncclUniqueId world;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    if (!is_there(why, size))
        return NULL;
    weft__link *l = (weft__link *)d->allocate(sizeof *l, d->user);
    if (!l)
        return snprintf(why, size, "NCCL: out of memory"), (weft__link *)NULL;
    memset(l, 0, sizeof *l);
    l->d = d;
    memcpy(&world, id, sizeof world);
    config.blocking = 0;
    note(l, nccl.ncclCommInitRankConfig(&l->comm, ranks, world, rank, &config), "joining");
    if (!bad(l->result))
        return l;
    snprintf(why, size, "%s", l->why);
    close_link(l);
    return NULL;
}

/* ---- messages ---- */
static const ncclDataType_t number = sizeof(real) == 4 ? ncclFloat32 : ncclFloat64;

static void begin(weft__link *l)
{
    const visit here = at_home(l);
    stream_of(l->d);                             /* uploads that wait go first */
    if (!bad(l->result))
        note(l, nccl.ncclGroupStart(), "a group");
}
static void end(weft__link *l)
{
    const visit here = at_home(l);
    if (!bad(l->result))
        note(l, nccl.ncclGroupEnd(), "a group");
}
static void send(weft__link *l, int to, const real *x, int64_t n)
{
    const visit here = at_home(l);
    if (!bad(l->result))
        note(l, nccl.ncclSend(x, (size_t)n, number, to, l->comm, stream_of(l->d)), "sending");
}
static void receive(weft__link *l, int from, real *x, int64_t n)
{
    const visit here = at_home(l);
    if (!bad(l->result))
        note(l, nccl.ncclRecv(x, (size_t)n, number, from, l->comm, stream_of(l->d)), "receiving");
}

const weft__links *links_of_gpus()
{
    static const weft__links us = { begin_world, open_link, begin, end, send,
                                    receive,     taken,     done,  why_of, close_link };
    return &us;
}
#else
const weft__links *links_of_gpus() { return NULL; }        /* made without nccl.h */
#endif
