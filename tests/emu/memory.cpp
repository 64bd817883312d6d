/* memory.cpp - devices, errors and memory of runtime.h.
 *
 * Device memory is a private mapping of a file that is full of poison, so large pieces cost nothing until
 * they are written. An inaccessible page follows it. While no stream runs, the memory itself is
 * inaccessible. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <map>
#include <mutex>
#include "tests/emu/runtime.h"

namespace {
enum : size_t { PAGE = 4096, POISONED = 4 << 20, ALIGNED = 256 };
enum { DEVICES = 8, MULTIPROCESSORS = 16 };
/* pages, all (counted by its pool): in bytes. exists: in stream order; ended: for the host */
struct Piece {
    char *page; size_t pages, bytes; int device; bool managed, exists, ended; emu_pool *pool; size_t all;
};

std::recursive_mutex &mutex = *new std::recursive_mutex;
std::map<char *, Piece> &pieces = *new std::map<char *, Piece>;
std::map<char *, size_t> &pins = *new std::map<char *, size_t>;
cudaError_t lost_errors[DEVICES];
size_t used[DEVICES];
int open_count, locks;                          /* locks: depth of the thread that holds the lock */
bool is_open;
thread_local int current;
thread_local cudaError_t last;

int devices()
{
    int n = emu::setting("WEFT_EMU_DEVICES", 2);
    return n < DEVICES ? n : (int)DEVICES;
}

int poisoned_file()
{
    static int file = -1;
    if (file >= 0)
        return file;
    file = memfd_create("poison", 0);
    std::vector<char> bytes(POISONED);
    emu::poison(bytes.data(), POISONED);
    if (file < 0 || write(file, bytes.data(), POISONED) != (ssize_t)POISONED)
        perror("emulated CUDA: poisoned file"), abort();
    return file;
}

bool map(Piece &p)
{
    void *address = mmap(NULL, p.pages + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED)
        return false;
    p.page = (char *)address;
    int access = p.exists && (p.managed || is_open) ? PROT_READ | PROT_WRITE : PROT_NONE;
    for (size_t at = 0; at < p.pages; at += POISONED) {
        size_t n = p.pages - at < POISONED ? p.pages - at : POISONED;
        if (mmap(p.page + at, n, access, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, poisoned_file(), 0) ==
            MAP_FAILED)
            return false;
    }
    return true;
}

void protect(int access)
{
    for (auto &p : pieces)
        if (!p.second.managed && p.second.exists)
            mprotect(p.second.page, p.second.pages, access);
    is_open = access != PROT_NONE;
}

void on_crash(int, siginfo_t *about, void *)     /* prints the thread; then the crash continues */
{
    char text[400];
    const emu::Thread *t = emu::me;
    int n = t ? snprintf(text, sizeof text,
                         "emulated CUDA: %s: thread %u of block (%u, %u, %u) cannot access %p\n",
                         emu::launch->name, t->number, t->block->index.x, t->block->index.y,
                         t->block->index.z, about->si_addr) :
                snprintf(text, sizeof text, "emulated CUDA: the host, or a copy, cannot access %p\n",
                         about->si_addr);
    if (write(2, text, (size_t)n) < 0)
        return;
}

void install_crash_handler()                     /* unless a handler exists, such as a sanitizer's */
{
    struct sigaction now, action = {};
    action.sa_sigaction = on_crash;
    action.sa_flags = (int)(SA_SIGINFO | SA_RESETHAND);
    if (!sigaction(SIGSEGV, NULL, &now) && !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL)
        sigaction(SIGSEGV, &action, NULL);
}

void *create_piece(Piece p)                      /* NULL: out of memory */
{
    size_t rounded = (p.bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
    p.pages = (rounded + PAGE - 1) / PAGE * PAGE;
    if (!map(p))
        return NULL;
    char *start = p.page + p.pages - rounded;
    ASAN_POISON_MEMORY_REGION(p.page, p.pages);
    if (p.exists)
        ASAN_UNPOISON_MEMORY_REGION(start, p.bytes);
    pieces[start] = p;
    return start;
}
void unmap(std::map<char *, Piece>::iterator it) /* the addresses are never reused */
{
    Piece &piece = it->second;
    ASAN_UNPOISON_MEMORY_REGION(piece.page, piece.pages);
    mmap(piece.page, piece.pages, PROT_NONE, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    pieces.erase(it);
}

cudaError_t allocate(void **to, size_t bytes, bool managed)
{
    emu::Locked locked;
    *to = NULL;
    emu::counts.stalls++;
    install_crash_handler();
    if (emu::lost(current))
        return emu::note(emu::lost(current));
    if (bytes > emu::limit() || used[current] + bytes > emu::limit())
        return emu::note(cudaErrorMemoryAllocation);
    if (bytes && !(*to = create_piece(Piece{ NULL, 0, bytes, current, managed, true, false, NULL, 0 })))
        return emu::note(cudaErrorMemoryAllocation);
    used[current] += bytes;
    return cudaSuccess;
}

/* Returns the entry with the greatest start <= p. */
template <class Map> typename Map::iterator find_piece(Map &m, const void *p)
{
    auto it = m.upper_bound((char *)p);
    return it == m.begin() ? m.end() : --it;
}
} // namespace

namespace emu {
Locked::Locked() { mutex.lock(), locks++; }
Locked::~Locked() { locks--, mutex.unlock(); }
void yield_lock()
{
    int depth = locks;
    locks = 0;
    for (int i = 0; i < depth; i++)
        mutex.unlock();
    sched_yield();
    for (int i = 0; i < depth; i++)
        mutex.lock();
    locks = depth;
}
Open::Open()
{
    if (!open_count++ && !is_open)
        protect(PROT_READ | PROT_WRITE);
}
Open::~Open()
{
    if (!--open_count && setting("WEFT_EMU_GUARD", 1))
        protect(PROT_NONE);
}
cudaError_t note(cudaError_t e)
{
    if (e != cudaSuccess)
        last = e;
    return e;
}
cudaError_t &lost(int device) { return lost_errors[device]; }
int current_device() { return current; }
size_t &held(int device) { return used[device]; }
size_t limit()
{
    const char *bytes = getenv("WEFT_EMU_MEMORY");
    return bytes && *bytes ? strtoull(bytes, NULL, 10) : (size_t)4 << 30;
}
bool on_device(const void *p)
{
    auto it = find_piece(pieces, p);
    return it != pieces.end() && (char *)p < it->first + it->second.bytes && !it->second.ended;
}
void *piece_of(emu_pool *pool, size_t bytes, size_t all, int device)
{
    install_crash_handler();
    return create_piece(Piece{ NULL, 0, bytes, device, false, false, false, pool, all });
}
void piece_begins(void *p)
{
    Piece &piece = pieces[(char *)p];
    piece.exists = true;
    ASAN_UNPOISON_MEMORY_REGION(p, piece.bytes);
    mprotect(piece.page, piece.pages, is_open ? PROT_READ | PROT_WRITE : PROT_NONE);
}
emu_pool *piece_ends(void *p, size_t *bytes, size_t *all)
{
    auto it = pieces.find((char *)p);
    if (it == pieces.end() || it->second.ended || !it->second.pool)
        return NULL;
    it->second.ended = true;
    *bytes = it->second.bytes;
    *all = it->second.all;
    return it->second.pool;
}
void piece_is_gone(void *p) { unmap(pieces.find((char *)p)); }
bool pinned(const void *p)
{
    auto it = find_piece(pins, p);
    return it != pins.end() && (char *)p < it->first + it->second;
}
bool piece_around(const void *p, uint64_t *low, uint64_t *high)
{
    auto it = find_piece(pieces, p);
    auto pin = find_piece(pins, p);
    if (it != pieces.end() && (char *)p < it->first + it->second.bytes) {
        *low = (uint64_t)it->first;
        *high = *low + it->second.bytes;
    } else if (pin != pins.end() && (char *)p < pin->first + pin->second) {
        *low = (uint64_t)pin->first;
        *high = *low + pin->second;
    } else
        return false;
    return true;
}
} // namespace emu
bool weft_emu_holds(const void *at, size_t bytes)
{
    emu::Locked locked;
    if (!bytes)
        return true;
    auto it = find_piece(pieces, at);
    return emu::on_device(at) && !it->second.pool && emu::on_device((const char *)at + bytes - 1);
}

/* ---- errors ---- */
const char *cudaGetErrorString(cudaError_t e)
{
    switch (e) {
#define E(name, number, text) \
    case name: return text;
        EMU_ERRORS(E)
#undef E
    }
    return "unrecognized error code";
}
cudaError_t cudaPeekAtLastError() { return emu::lost(current) ? emu::lost(current) : last; }
cudaError_t cudaGetLastError()
{
    cudaError_t e = cudaPeekAtLastError();
    last = cudaSuccess;
    return e;
}

/* ---- devices ---- */
static int driver() { return emu::setting("WEFT_EMU_DRIVER", 13000); }
cudaError_t cudaGetDeviceCount(int *n)
{
    *n = devices();
    return emu::note(driver() < 13000 ? cudaErrorInsufficientDriver :
                     *n > 0           ? cudaSuccess :
                                        cudaErrorNoDevice);
}
cudaError_t cudaDriverGetVersion(int *v) { return *v = driver(), cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int *v) { return *v = 13000, cudaSuccess; }
cudaError_t cudaSetDevice(int device)
{
    if (device < 0 || device >= devices())
        return emu::note(cudaErrorInvalidDevice);
    current = device;
    return cudaSuccess;
}
void weft_emu_thread(int *device, int *last_error)
{
    if (*device >= 0)
        current = *device;
    if (*last_error >= 0)
        last = (cudaError_t)*last_error;
    *device = current;
    *last_error = last;
}

/* A context is a device's number plus one. */
static thread_local std::vector<int> context_stack; /* contexts below the top */
static CUresult cuDeviceGet(CUdevice *d, int i)
{
    return *d = i, i >= 0 && i < devices() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
static CUcontext context_of(int device) { return (CUcontext)(intptr_t)(device + 1); }
static CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d)
{
    return *c = context_of(d), CUDA_SUCCESS;
}
static CUresult cuCtxGetCurrent(CUcontext *c) { return *c = context_of(current), CUDA_SUCCESS; }
static CUresult cuCtxPushCurrent(CUcontext c)
{
    if (!c)
        return CUDA_ERROR_INVALID_CONTEXT;
    context_stack.push_back(current);
    current = (int)(intptr_t)c - 1;
    return CUDA_SUCCESS;
}
static CUresult cuCtxPopCurrent(CUcontext *c)
{
    if (context_stack.empty())
        return CUDA_ERROR_INVALID_CONTEXT;
    *c = context_of(current);
    current = context_stack.back();
    context_stack.pop_back();
    return CUDA_SUCCESS;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult *query)
{
    static const struct { const char *name; void *function;
    } known[] = {
        { "cuDeviceGet", (void *)cuDeviceGet },
        { "cuDevicePrimaryCtxRetain", (void *)cuDevicePrimaryCtxRetain },
        { "cuCtxGetCurrent", (void *)cuCtxGetCurrent },
        { "cuCtxPushCurrent", (void *)cuCtxPushCurrent },
        { "cuCtxPopCurrent", (void *)cuCtxPopCurrent },
    };
    *query = cudaDriverEntryPointSymbolNotFound;
    for (auto &k : known)
        if (!strcmp(k.name, name)) {
            *function = k.function;
            *query = cudaDriverEntryPointSuccess;
        }
    return cudaSuccess;
}

namespace emu {
Model model()
{
    static const Model models[] = { { 90, 227 << 10, 16, 90 }, { 75, 64 << 10, 1, 0 },
                                    { 80, 163 << 10, 1, 80 },  { 86, 99 << 10, 1, 0 },
                                    { 89, 99 << 10, 1, 80 },   { 100, 227 << 10, 16, 90 },
                                    { 110, 227 << 10, 16, 90 }, { 120, 99 << 10, 8, 120 } };
    const int needed = setting("WEFT_EMU_CC", 90);
    Model found = models[0];
    for (const Model &m : models)
        if (m.capability == needed)
            found = m;
    found.code = setting("WEFT_EMU_CODE", found.code);
    return found;
}
} // namespace emu
static int processors() { return emu::setting("WEFT_EMU_PROCESSORS", MULTIPROCESSORS); }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int device)
{
    if (device < 0 || device >= devices())
        return emu::note(cudaErrorInvalidDevice);
    *p = cudaDeviceProp();
    snprintf(p->name, sizeof p->name, "emulated GPU %d", device);
    p->totalGlobalMem = emu::limit();
    p->sharedMemPerBlockOptin = (size_t)emu::model().shared;
    p->sharedMemPerMultiprocessor = p->sharedMemPerBlockOptin + 1024;
    p->major = emu::model().capability / 10;
    p->minor = emu::model().capability % 10;
    p->multiProcessorCount = processors();
    p->pciBusID = device + 1;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *v, cudaDeviceAttr a, int)
{
    const emu::Model &m = emu::model();
    if (emu::setting("WEFT_EMU_QUERIES", 1) == 0)
        return emu::note(cudaErrorNotSupported);
    *v = a == cudaDevAttrMaxSharedMemoryPerBlockOptin ? m.shared :
         a == cudaDevAttrMultiProcessorCount          ? processors() :
         a == cudaDevAttrCooperativeLaunch            ? 1 :
         a == cudaDevAttrClockRate                    ? 1980000 :
         a == cudaDevAttrMemoryPoolsSupported         ? emu::setting("WEFT_EMU_POOLS", 1) != 0 :
                                                        0;
    return cudaSuccess;
}

/* ---- memory ---- */
cudaError_t cudaMalloc(void **p, size_t bytes) { return allocate(p, bytes, false); }
cudaError_t cudaMallocManaged(void **p, size_t bytes, unsigned) { return allocate(p, bytes, true); }
cudaError_t cudaFree(void *p)
{
    if (!p)
        return cudaSuccess;
    emu::Locked locked;
    cudaError_t e = emu::drain();
    emu::counts.stalls++;
    auto it = pieces.find((char *)p);
    if (it == pieces.end() || it->second.pool)   /* CUDA allows pool memory; the back end does not use it */
        return emu::note(cudaErrorInvalidValue);
    used[it->second.device] -= it->second.bytes;
    unmap(it);
    return e;
}
cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned)
{
    emu::Locked locked;
    *p = NULL;
    emu::counts.stalls++;
    if (emu::lost(current))
        return emu::note(emu::lost(current));
    if (posix_memalign(p, PAGE, bytes ? bytes : 1))
        return emu::note(cudaErrorMemoryAllocation);
    emu::poison(*p, bytes);
    pins[(char *)*p] = bytes;
    return cudaSuccess;
}
cudaError_t cudaMallocHost(void **p, size_t bytes) { return cudaHostAlloc(p, bytes, 0); }
cudaError_t cudaFreeHost(void *p)
{
    if (!p)
        return cudaSuccess;
    emu::Locked locked;
    cudaError_t e = emu::drain();
    emu::counts.stalls++;
    if (!pins.erase((char *)p))
        return emu::note(cudaErrorInvalidValue);
    free(p);
    return e;
}
cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned)
{
    emu::Locked locked;
    *device = emu::pinned(host) ? host : NULL;
    return emu::note(*device ? cudaSuccess : cudaErrorInvalidValue);
}
