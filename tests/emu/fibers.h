/* fibers.h - the threads of a kernel as fibers of one CPU thread, and what they wait for.
 *
 * A thread runs until it waits: then its stack is kept, and another thread goes on. A thread that has not
 * begun takes over the stack of one that has ended, so that a kernel without barriers is a loop of calls.
 * Which thread goes on is an adversary's choice (WEFT_EMU_ORDER): 0 and 1 let the lowest or the highest one
 * run as far ahead of the others as the barriers allow, 2 draws lots.
 *
 * AddressSanitizer is told of each change of stacks. For ThreadSanitizer each CUDA thread is a thread of its
 * own, and nothing but barriers and fences orders them, so that a missing __syncthreads is a data race; a
 * shuffle orders nothing but its operands, an atomic nothing at all. */
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

enum : size_t { SHARED_ROOM = 227 << 10, SHARED_DEFAULT = 48 << 10 };
/* NaN as float, double and bf16; < 0 as int */
enum : unsigned { MOST_THREADS = 1024, WARP = 32, EVERY = ~0u, POISON = 0xFFFBABABu };
void poison(void *, size_t bytes);

struct Thread;
struct Barrier {
    unsigned members, arrived, phase;
    std::vector<Thread *> waiting;
    void *mark;                                  /* what ThreadSanitizer knows it by: new in each block */
};

/* What all lanes of a mask do together: the last that comes runs `finish` for all of them. */
struct Warp;
typedef void (*Finish)(Warp &, unsigned mask);
struct Lane {
    unsigned mask, from;                         /* lanes it waits for; lane whose value it wants */
    uint64_t value, got;
    Finish finish;
    union { float f[4]; uint32_t u[4]; } a, b, d; /* fragments of a matrix product */
};
struct Warp {
    unsigned alive, here;
    Thread *first;
    void *mark;
    Lane lane[WARP];
};

/* st.async that is not done yet */
struct Store { void *to, *barrier; size_t size; char bytes[16]; };

struct Thread {
    dim3 index;
    unsigned number;                             /* within its block */
    struct Block *block;
    void *top;                                   /* the stack pointer while it waits */
    char *stack;                                 /* NULL: has not begun, or has ended */
    void *tsan, *fake;                           /* the sanitizers' own notes */
    /* for ThreadSanitizer, see order.cpp: all before its last fence; what it changed since by atomics */
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
    uint64_t touched;                            /* bit i: variable i has been met by this block */
};

struct Variable { const void *key; size_t at, bytes; };

/* A launch: `cluster` blocks run at a time, or all of them if `together`. */
struct Launch {
    const char *name;
    dim3 grid, threads;
    size_t dynamic;
    unsigned cluster;
    bool together;
    std::function<void()> body;
    /* for tests/ptx: the kernel's address; its arguments as in a GPU's memory, and where each lies */
    const void *kernel;
    std::vector<char> arguments;
    std::vector<size_t> places;
    std::vector<Variable> variables;
    /* asynchronous stores; tensor cores that err; stores that never come */
    bool late, wrong, lost;
    int capability;
    std::unordered_map<void *, std::vector<Store>> stores; /* of each barrier */
    const char *failure;                         /* NULL, or why it was given up */
};

extern Thread *me;                               /* who runs: a lock lets one CPU thread in at a time */
extern Launch *launch;

void run(Launch &);                              /* to its end, or to its failure */
void fail(const char *why);                      /* gives the launch up; does not come back */
void yield();                                    /* for who polls: all others first */
/* the clock, which goes on only while all that can go on do nothing but poll */
long long ticks();
void progress();                                 /* what a poller may have waited for has happened */
void arrive(Barrier &);
void await(Barrier &, unsigned phase);           /* until that phase is over */
void sync(Barrier &);
void together(unsigned mask, Finish);            /* lanes of a warp */
void leave(Warp &, unsigned lane);               /* no one waits for a lane that has ended */
void go_on();                                    /* with whoever's turn it is */
void ready_again(Thread *);
void *shared_variable(const void *key, size_t bytes);
#if defined(__SANITIZE_THREAD__) /* order.cpp: a fence; what precedes an atomic, and what follows one */
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
