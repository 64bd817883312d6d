/* fibers.h - runs the threads of a kernel as fibers of one CPU thread, with their barriers.
 *
 * A thread runs until it waits. Its stack is kept, and another thread continues. A new thread takes over the
 * stack of one that has ended, so a kernel without barriers is a loop of calls. WEFT_EMU_ORDER selects the
 * next thread: 0 and 1 run the lowest or the highest one as far ahead of the others as the barriers allow, 2
 * selects at random.
 *
 * The code reports each change of stacks to AddressSanitizer. For ThreadSanitizer each CUDA thread is a
 * separate thread. Only barriers and fences order them, so a missing __syncthreads is a data race. A shuffle
 * orders only its operands, an atomic orders nothing. */
#ifndef WEFT_EMU_FIBERS_H
#define WEFT_EMU_FIBERS_H
#include <stddef.h>
#include <stdint.h>
#include <functional>
#include <unordered_map>
#include <vector>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
extern "C" void AnnotateIgnoreReadsBegin(const char *, int), AnnotateIgnoreReadsEnd(const char *, int);
extern "C" void AnnotateIgnoreWritesBegin(const char *, int), AnnotateIgnoreWritesEnd(const char *, int);
#endif

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned X = 1, unsigned Y = 1, unsigned Z = 1) : x(X), y(Y), z(Z) {}
};

namespace emu {
#if defined(__SANITIZE_THREAD__) /* the emulation's own reads and writes are not the kernel's */
struct Quiet {
    Quiet() { AnnotateIgnoreReadsBegin("", 0), AnnotateIgnoreWritesBegin("", 0); }
    ~Quiet() { AnnotateIgnoreReadsEnd("", 0), AnnotateIgnoreWritesEnd("", 0); }
};
inline void release(void *p) { __tsan_release(p); }
inline void acquire(void *p) { __tsan_acquire(p); }
#else
struct Quiet { Quiet() {} };
inline void release(void *) {}
inline void acquire(void *) {}
#endif

enum : size_t { SHARED_BYTES = 227 << 10, SHARED_DEFAULT = 48 << 10 };
/* NaN as float, double and bf16; < 0 as int */
enum : unsigned { MOST_THREADS = 1024, WARP = 32, EVERY = ~0u, POISON = 0xFFFBABABu };
void poison(void *, size_t bytes);

struct Thread;
struct Barrier {
    unsigned members, arrived, phase;
    std::vector<Thread *> waiting;
    void *mark;                                  /* address for ThreadSanitizer; new in each block */
};

/* An operation of all lanes of a mask: the last lane to arrive runs `finish` for all of them. */
struct Warp;
typedef void (*Finish)(Warp &, unsigned mask);
struct Lane {
    unsigned mask, from;                         /* lanes it waits for; lane whose value it reads */
    uint64_t value, result;
    Finish finish;
    union { float f[4]; uint32_t u[4]; } a, b, d; /* fragments of a matrix product */
};
struct Warp {
    unsigned alive, waiting;
    Thread *first;
    void *mark;
    Lane lane[WARP];
};

/* a pending st.async */
struct Store { void *to, *barrier; size_t size; char bytes[16]; };

struct Thread {
    dim3 index;
    unsigned number;                             /* within its block */
    struct Block *block;
    void *top;                                   /* the stack pointer while it waits */
    char *stack;                                 /* NULL: has not begun, or has ended */
    void *tsan, *fake;                           /* handles of the sanitizers */
    /* for ThreadSanitizer, see order.cpp: all before its last fence; its atomics since then */
    char *fenced;
    std::vector<void *> seen;
};

struct Cluster { Barrier barrier; struct Block *first; };

struct Block {
    dim3 index;
    unsigned rank;                               /* in its cluster */
    Cluster *cluster;
    Thread *threads;
    std::vector<Warp> warps;
    Barrier barrier;
    char *shared;                                /* the dynamic part, then the variables */
    uint64_t touched;                            /* bit i: this block has used variable i */
};

struct Variable { const void *key; size_t offset, bytes; };

/* A launch: `cluster` blocks run at a time, or all of them if `cooperative`. */
struct Launch {
    const char *name;
    dim3 grid, threads;
    size_t dynamic;
    unsigned cluster;
    bool cooperative;
    std::function<void()> body;
    /* for tests/ptx: the kernel's address; its arguments as in GPU memory, and their offsets */
    const void *kernel;
    std::vector<char> arguments;
    std::vector<size_t> offsets;
    std::vector<Variable> variables;
    /* asynchronous stores; wrong tensor cores; lost stores */
    bool late, wrong, lost;
    int capability;
    std::unordered_map<void *, std::vector<Store>> stores; /* of each barrier */
    const char *failure;                         /* NULL, or the reason of the failure */
};

extern Thread *me;                               /* the running thread; a lock admits one CPU thread */
extern Launch *launch;

void run(Launch &);                              /* to its end, or to its failure */
void fail(const char *why);                      /* ends the launch; does not return */
void yield();                                    /* for polling: lets all others run first */
/* the clock; it advances only while all runnable threads poll */
long long ticks();
void progress();                                 /* an event that may end a poll */
void arrive(Barrier &);
void await(Barrier &, unsigned phase);           /* until the end of that phase */
void sync(Barrier &);
void join_lanes(unsigned mask, Finish);          /* lanes of a warp */
void leave(Warp &, unsigned lane);               /* removes an ended lane from all waits */
void run_next();                                 /* runs the next thread */
void make_ready(Thread *);
void *shared_variable(const void *key, size_t bytes);
#if defined(__SANITIZE_THREAD__) /* order.cpp: a fence; before an atomic, after an atomic */
void fence(), publish(void *), witness(void *);
#else
inline void fence() {}
inline void publish(void *) {}
inline void witness(void *) {}
#endif
int  setting(const char *variable, int otherwise);               /* WEFT_EMU_.. of the environment */

inline unsigned lane_of(const Thread *t) { return t->number % WARP; }
inline Warp &warp_of(const Thread *t) { return t->block->warps[t->number / WARP]; }
inline Lane &my_lane() { return warp_of(me).lane[lane_of(me)]; }
} // namespace emu
#endif
