/* fibers.cpp - schedules the fibers of fibers.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <deque>
#include <utility>
#include "tests/emu/launch.h"
#if !defined(__x86_64__)
#error "the emulation of CUDA switches stacks in assembly; add eight instructions for this processor"
#endif
#if defined(__SANITIZE_THREAD__)
#define UNSEEN __attribute__((no_sanitize("thread"), noinline))
#else
#define UNSEEN __attribute__((noinline))
#endif

namespace emu {
Thread *me;
Launch *launch;

#if defined(__SANITIZE_THREAD__)
/* reused memory would look like a race; malloc makes it new */
enum : bool { FRESH = true };
#else
enum : bool { FRESH = false };
#endif
/* address space; untouched pages cost nothing */
enum : size_t { STACK = FRESH ? 64 << 10 : 256 << 10, STACKS = 64 };
/* polls without progress that count as a deadlock */
enum : unsigned { PATIENCE = 300000 };

static Thread host;                               /* the CPU thread's own stack */
#if defined(__SANITIZE_ADDRESS__)
static const void *host_stack;
static size_t host_bytes;
#endif
static std::vector<char *> &stacks = *new std::vector<char *>;      /* free ones */
static std::vector<char *> &shared_memories = *new std::vector<char *>; /* shared memories */
static std::vector<Thread> &threads = *new std::vector<Thread>;
static std::vector<Block> &blocks = *new std::vector<Block>;
static std::vector<Cluster> &clusters = *new std::vector<Cluster>;
/* the last runs first, so a released thread runs ahead */
static std::vector<Thread *> &ready = *new std::vector<Thread *>;
static std::deque<Thread *> &polling = *new std::deque<Thread *>;
static unsigned live, started, count, order, first_index, random_state, polls;
static long long clock_ticks;
static size_t failed_launches;

int setting(const char *variable, int otherwise)
{
    const char *value = getenv(variable);
    return value && *value ? atoi(value) : otherwise;
}

void poison(void *p, size_t bytes)
{
    const uint32_t word = POISON;
    size_t i = 0;
    for (; i + 4 <= bytes; i += 4)
        memcpy((char *)p + i, &word, 4);
    memcpy((char *)p + i, &word, bytes - i);
}

/* ---- changing stacks ---- */
extern "C" void weft_emu_switch(void **save, void *to);
asm(".text\n.globl weft_emu_switch\n.hidden weft_emu_switch\n.type "
    "weft_emu_switch,@function\nweft_emu_switch:\n"
    " push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n mov %rsp,(%rdi)\n mov "
    "%rsi,%rsp\n"
    " pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n ret\n.size "
    "weft_emu_switch,.-weft_emu_switch\n");

static void finish_switch(void *fake)             /* AddressSanitizer: called first on another stack */
{
#if defined(__SANITIZE_ADDRESS__)
    const void *bottom;
    size_t bytes;
    __sanitizer_finish_switch_fiber(fake, &bottom, &bytes);
    if (!host_stack) {                           /* the first change comes from the host */
        host_stack = bottom;
        host_bytes = bytes;
    }
#else
    (void)fake;
#endif
}

UNSEEN static void switch_to(Thread *t)           /* on the stack that is in use */
{
    me = t == &host ? NULL : t;
#if defined(__SANITIZE_THREAD__)
    __tsan_switch_to_fiber(t->tsan, 1 /* orders nothing */);
#endif
}

UNSEEN static void go(Thread *to, bool ended = false)
{
    Thread *from = me ? me : &host;
#if defined(__SANITIZE_ADDRESS__)
    bool home = to == &host;
    __sanitizer_start_switch_fiber(ended ? NULL : &from->fake, home ? host_stack : to->stack,
                                   home ? host_bytes : (size_t)STACK);
#else
    (void)ended;
#endif
    switch_to(to);
    weft_emu_switch(&from->top, to->top);
    finish_switch(from->fake);
}

static char *memory(size_t bytes)
{
    void *p =
        FRESH ? malloc(bytes) :
                mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!p || p == MAP_FAILED)
        perror("emulated CUDA"), abort();
    return (char *)p;
}

static char *take_stack()
{
    if (FRESH)
        return memory(STACK);
    if (stacks.empty()) {
        char *slab = memory(STACK * STACKS);
        for (size_t i = STACKS; i-- > 0;)
            stacks.push_back(slab + i * STACK);
    }
    char *stack = stacks.back();
    stacks.pop_back();
    return stack;
}

static void entry();
static void make_stack(Thread *t)
{
    t->stack = take_stack();
    ASAN_UNPOISON_MEMORY_REGION(t->stack, STACK);
    /* tops at equal offsets would share one set of the cache */
    size_t colour = (uintptr_t)t->stack / STACK % 32 * 128;
    void **top = (void **)(((uintptr_t)t->stack + STACK - colour) & ~(uintptr_t)63);
    *--top = NULL, *--top = (void *)entry;
    for (int i = 0; i < 6; i++)
        *--top = NULL;
    t->top = top;
}

/* ---- who goes on ---- */
static unsigned position(unsigned k, unsigned n) /* the k-th of n */
{
    unsigned long step = n % 7919 ? 7919 : 1;    /* a prime that does not divide n: each k once */
    return order == 0 ? k : order == 1 ? n - 1 - k : (unsigned)((first_index + k * step) % n);
}

static Thread *next_new() { return &threads[position(started++, count)]; }

static Thread *random_thread()
{
    random_state = random_state * 1664525u + 1013904223u;
    size_t i = (random_state >> 8) % (ready.size() + (started < count));
    if (i == ready.size())
        return next_new();
    std::swap(ready[i], ready.back());
    Thread *t = ready.back();
    ready.pop_back();
    return t;
}

static Thread *next_poller()
{
    if (polling.empty() || polls > PATIENCE)
        return NULL;
    Thread *t = polling.front();
    polling.pop_front();
    return t;
}

static Thread *next()                             /* NULL: none can run */
{
    if (ready.empty() && started == count)
        return next_poller();
    if (order == 2)
        return random_thread();
    if (ready.empty())
        return next_new();
    Thread *t = ready.back();
    ready.pop_back();
    return t;
}

void run_next()
{
    Thread *t = next();
    if (t == me)
        return;
    if (t && !t->stack)
        make_stack(t);
    go(t ? t : &host);
}

void make_ready(Thread *t) { ready.push_back(t); }

UNSEEN void progress() { polls = 0; }

UNSEEN long long ticks() { return clock_ticks; }

void yield()
{
    Quiet quiet;
    if (++polls > 2 * count)
        clock_ticks += 1 << 26;
    polling.push_back(me);
    run_next();
}

void fail(const char *why)
{
    launch->failure = why;
    go(&host);
}

/* ---- barriers ---- */
static void release_all(Barrier &b)
{
    progress();
    b.arrived = 0, b.phase++;
    /* the first to arrive runs first */
    ready.insert(ready.end(), b.waiting.rbegin(), b.waiting.rend());
    b.waiting.clear();
}

static void count_arrival(Barrier &b)
{
    if (++b.arrived == b.members)
        release_all(b);
}

void arrive(Barrier &b)
{
    Quiet quiet;
    release(b.mark);
    count_arrival(b);
}

void await(Barrier &b, unsigned phase)
{
    Quiet quiet;
    if (b.phase == phase) {
        b.waiting.push_back(me);
        run_next();
    }
    acquire(b.mark);
}

void sync(Barrier &b)
{
    Quiet quiet;
    release(b.mark);
    b.waiting.push_back(me);
    count_arrival(b);
    run_next();
    acquire(b.mark);
}

static void leave(Barrier &b)                     /* removes an ended thread */
{
    if (--b.members && b.arrived == b.members)
        release_all(b);
}

/* ---- a thread's life ---- */
/* Ends the running thread. Returns the next one, which may take over its stack. */
static Thread *end_thread()
{
    Quiet quiet;
    char *stack = me->stack;
    leave(warp_of(me), lane_of(me));
    leave(me->block->barrier);
    leave(me->block->cluster->barrier);
    me->stack = NULL, live--;
    progress();
    Thread *t = next();
    bool begins = t && !t->stack;
    if (begins && !FRESH)
        t->stack = stack;
    else
        stacks.push_back(stack);
    if (begins && FRESH)
        make_stack(t);
    return t;
}

static void body()
{
    acquire(&launch->grid);
    launch->body();
    release(&launch->threads);
}

/* Runs threads while new ones remain. */
UNSEEN static void entry()
{
    finish_switch(NULL);
    for (;;) {
        body();
        char *stack = me->stack;
        Thread *t = end_thread();
        if (!t || t->stack != stack)
            go(t ? t : &host, true);
        switch_to(t);
    }
}

/* ---- a launch ---- */
/* Fills in the fields of threads and blocks that are the same for all sets. */
static void prepare_threads(const Launch &l, unsigned set)
{
    unsigned each = l.threads.x * l.threads.y * l.threads.z;
    count = set * each;
    threads.resize(count), blocks.resize(set), clusters.resize(set / l.cluster);
    for (unsigned i = 0; i < set; i++) {
        Block &b = blocks[i];
        b.threads = &threads[i * each];
        b.rank = i % l.cluster;
        b.cluster = &clusters[i / l.cluster];
        b.warps.resize((each + WARP - 1) / WARP);
        for (unsigned w = 0; w < b.warps.size(); w++)
            b.warps[w].first = b.threads + w * WARP;
        for (unsigned t = 0; t < each; t++) {
            Thread &thread = b.threads[t];
            thread.block = &b;
            thread.number = t;
            thread.index =
                dim3(t % l.threads.x, t / l.threads.x % l.threads.y, t / l.threads.x / l.threads.y);
        }
    }
}

static void reset(void *&mark)                    /* with the old one, earlier work would count as ordered */
{
    if (FRESH)
        free(mark), mark = memory(1);
}
static void reset(Barrier &b, unsigned members)
{
    reset(b.mark);
    b.members = members;
    b.arrived = b.phase = 0;
    b.waiting.clear();
}

static void reset_shared(const Launch &l, Block &b, unsigned i)
{
    if (FRESH && i < shared_memories.size())
        free(shared_memories[i]), shared_memories[i] = memory(SHARED_BYTES);
    if (i == shared_memories.size())
        shared_memories.push_back(memory(SHARED_BYTES));
    b.shared = (char *)(((uintptr_t)shared_memories[i] + 15) & ~(uintptr_t)15);
    b.touched = 0;
    ASAN_POISON_MEMORY_REGION(b.shared, SHARED_BYTES - 16);
    ASAN_UNPOISON_MEMORY_REGION(b.shared, l.dynamic);
    poison(b.shared, l.dynamic);
    /* On a GPU a lost store leaves numbers of an earlier kernel, not NaN. */
    if (l.lost)
        memset(b.shared, 0x3E, l.dynamic);
}

/* For ThreadSanitizer. Its threads are expensive, so they are reused, but not in the next set: two
 * consecutive blocks must stay unordered. */
static void *tsan_thread()
{
#if defined(__SANITIZE_THREAD__)
    static std::vector<void *> &fibers = *new std::vector<void *>;
    static size_t next_fiber, failures_seen;
    static pid_t owner;
    /* unfinished ones, or those of the process before a fork */
    if (failures_seen != failed_launches || owner != getpid())
        fibers.clear(), failures_seen = failed_launches, owner = getpid();
    if (fibers.size() < count * (count > 2048 ? 1 : 2))
        fibers.push_back(__tsan_create_fiber(0)), next_fiber = fibers.size() - 1;
    return fibers[next_fiber++ % fibers.size()];
#else
    return NULL;
#endif
}

static void begin_set(const Launch &l, unsigned first, unsigned set)
{
    unsigned each = count / set;
    for (unsigned i = 0; i < set; i++) {
        Block &b = blocks[i];
        unsigned id = first + i;
        b.index = dim3(id % l.grid.x, id / l.grid.x % l.grid.y, id / l.grid.x / l.grid.y);
        reset(b.barrier, each);
        for (unsigned w = 0; w < b.warps.size(); w++) {
            b.warps[w].alive = each - w * WARP < WARP ? (1u << (each - w * WARP)) - 1 : EVERY;
            b.warps[w].waiting = 0;
            reset(b.warps[w].mark);
        }
        reset_shared(l, b, i);
    }
    for (Cluster &c : clusters)
        reset(c.barrier, each * l.cluster), c.first = &blocks[(&c - clusters.data()) * l.cluster];
    for (Thread &t : threads)
        delete std::exchange(t.fenced, (char *)NULL), t.seen.clear(), t.stack = NULL, t.tsan = tsan_thread();
    started = 0;
    live = count;
    polls = 0;
    first_index = random_state % count;
    ready.clear(), polling.clear(), launch->stores.clear();
}

UNSEEN static void abandon(Thread &t)             /* ThreadSanitizer: orders its work before later work */
{
#if defined(__SANITIZE_THREAD__)
    __tsan_switch_to_fiber(t.tsan, 1);
    release(&launch->threads);
    __tsan_switch_to_fiber(host.tsan, 1);
#else
    (void)t;
#endif
}

static void end_set()
{
    for (Thread &t : threads) {
        if (launch->failure)
            abandon(t);
        if (t.stack)
            stacks.push_back(t.stack);
    }
    failed_launches += launch->failure != NULL;
    if (FRESH) {
        for (char *stack : stacks)
            free(stack);
        stacks.clear();
    }
}

static void run_set(Launch &l, unsigned first, unsigned set)
{
    begin_set(l, first, set);
    Thread *t = next_new();
    make_stack(t);
    go(t);
    if (live && !l.failure)
        l.failure = "deadlock: a barrier that not all threads reach, or a flag that no thread sets";
    end_set();
}

void run(Launch &l)
{
    unsigned all = l.grid.x * l.grid.y * l.grid.z, set = l.cooperative ? all : l.cluster, sets = all / set;
    release(&l.grid);
    {
        Quiet quiet;
        launch = &l;
        l.late = setting("WEFT_EMU_ASYNC", 0) != 0;
        order = (unsigned)setting("WEFT_EMU_ORDER", 0);
        random_state = (unsigned)setting("WEFT_EMU_SEED", 0) + 12345;
#if defined(__SANITIZE_ADDRESS__)
        host_stack = NULL;
#endif
#if defined(__SANITIZE_THREAD__)
        host.tsan = __tsan_get_current_fiber();
#endif
        prepare_threads(l, set);
        for (unsigned i = 0, offset = random_state; i < sets && !l.failure; i++) {
            first_index = offset % sets;
            run_set(l, position(i, sets) * set, set);
        }
        launch = NULL;
    }
    acquire(&l.threads);
}

} // namespace emu
