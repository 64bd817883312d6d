/* ptx.h - an interpreter that executes nvcc's PTX of a kernel on the CPU.
 *
 * The emulation of tests/emu compiles the plug-in's sources with g++, so its tests do not execute the shipped
 * code. With WEFT_EMU_PTX a launch executes the kernel's PTX instead, as passed to ptxas for the compute
 * capability WEFT_EMU_CC. So the tests also cover nvcc's output and inline PTX.
 *
 * The 32 lanes of a warp execute in lockstep. Where they diverge, each path runs to the point where the lanes
 * reconverge (flow.cpp). WEFT_EMU_ORDER decides which path runs first. A register is a row of 32 values. One
 * bit per lane records whether the value was ever written. A branch, address or store that uses an unwritten
 * value is a failure. So are accesses outside device memory or at an unaligned address, a barrier that only
 * part of a warp reaches, and a wait that never ends.
 *
 * parse.cpp reads the text. instructions.def defines arithmetic instructions, memory.cpp loads, stores and
 * atomics, sync.cpp barriers, clusters and shuffles, mma.cpp tensor cores. run.cpp schedules warps.
 * launched.cpp finds a kernel's text. The interpreter does not show errors of ptxas, effects of weak memory
 * order, or timing. */
#ifndef WEFT_PTX_INTERPRETER_H
#define WEFT_PTX_INTERPRETER_H
#include <stddef.h>
#include <stdint.h>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>
#include "tests/emu/launch.h"

namespace ptx {
enum : unsigned { LANES = 32, ALL = ~0u, NOWHERE = ~0u };

/* Any failure, with the kernel's position in its text. */
struct Failure { std::string message; };
[[noreturn]] __attribute__((format(printf, 1, 2))) void fail(const char *format, ...);

/* ---- a kernel ---- */
/* row: offset in bytes of the register's 32 values in a warp's register file. A predicate's row is one word,
 * with a bit for each lane. slot: index of its word in Warp::known. offset: added to an address. */
struct Operand { uint32_t row, slot; int64_t offset; };
struct Warp;
struct Instruction;
typedef void (*Run)(Warp &, const Instruction &);
enum Kind : uint8_t { PLAIN, BRANCH, RETURN, TRAP };
struct Instruction {
    Run run;
    const Operand *operand;                      /* in the order of the text */
    const Operand *guard;                        /* NULL: all lanes execute it */
    uint32_t target, join;                       /* target of a branch; where its paths reconverge */
    uint32_t line;
    Kind kind;
    bool unless;                                 /* execute where the guard is false */
    uint8_t count, bytes;                        /* number and size of a load's or store's values */
    const char *name;
};

enum Special : uint8_t {
    TID_X, TID_Y, TID_Z, NTID_X, NTID_Y, NTID_Z, CTAID_X, CTAID_Y, CTAID_Z, NCTAID_X, NCTAID_Y, NCTAID_Z,
    LANEID, CLUSTER_CTARANK, CLUSTER_NCTARANK, SPECIALS
};
/* width: 'P' predicate, 'W' 4 bytes per lane, 'L' 8 */
struct Constant { uint32_t row, slot; char width; uint64_t value; };
struct Parameter { size_t offset, bytes; };
struct Text;                                     /* a PTX file */

struct Kernel {
    std::string name;
    const Text *text;
    std::vector<Instruction> code;
    std::deque<std::vector<Operand>> operands;
    std::deque<std::string> names;               /* names of the instructions */
    std::vector<Constant> constants;
    Operand special[SPECIALS];                   /* row is NOWHERE if unused */
    uint32_t bytes, slots;                       /* size of a warp's register file and of Warp::known */
    std::vector<Parameter> parameters;
    size_t parameter_bytes;
    size_t shared, local;                        /* bytes: static per block, local per thread */
    unsigned max_threads;                        /* .maxntid, or 1024 */
};

struct Text {
    std::string path, source;
    struct Body { size_t position; unsigned line; };
    std::map<std::string, Body> entries, functions;
    struct Shared { size_t bytes, align; bool dynamic; };
    std::map<std::string, Shared> shared;
    std::map<std::string, std::vector<char>> globals;    /* constant tables */
    std::map<std::string, std::unique_ptr<Kernel>> parsed;
};
void    index_text(Text &);                      /* finds the declarations and bodies in the source */
Kernel *parse(Text &, const std::string &entry);
void    find_joins(Kernel &);                    /* flow.cpp */

/* Implementation of an instruction. widths: one letter per operand, see Constant. The functions return NULL
 * for an unknown name. */
struct Implementation { const char *name; std::string widths; Run run; };
const Implementation *find_arithmetic(const std::string &name); /* alu.cpp */
const Implementation *find_sync(const std::string &name); /* sync.cpp */
void mma_tf32(Warp &, const Instruction &);
/* For loads, stores and atomics. Their operands' widths vary ('C' is a constant of any width). Returns false
 * for other names; otherwise sets run, count and bytes. */
bool memory_access(const std::string &name, std::string &widths, Instruction &);

/* ---- a launch ---- */
struct Size { unsigned x, y, z; };
struct Call {
    Kernel *kernel;
    Size grid, threads;
    unsigned cluster;
    bool cooperative;                            /* all blocks run at the same time */
    size_t dynamic;
    const char *arguments;
    int capability, order;
    unsigned seed;
    bool late, wrong, lost;                      /* see emu::Launch */
};
void run(const Call &);                          /* throws Failure */

/* Addresses of shared memory. Static variables and the dynamic part are far apart, so that an overrun of one
 * does not reach the other. For another block of the cluster its rank + 1 is added, in multiples of RANK. */
enum : uint32_t { STATIC_PART = 1024, DYNAMIC_PART = 64 << 10, RANK = 1 << 20 };

struct Store { uint32_t to; unsigned bytes; char value[16]; };
/* A barrier that counts bytes. creator: the warp that initialised it. The warp must fence it and arrive at
 * the cluster's barrier before other blocks use it. in_flight: stores that have not arrived. */
struct Mbarrier {
    uint32_t address; int64_t bytes; unsigned count, pending, phase, creator; bool fenced, published;
    std::deque<Store> in_flight;
};
struct Block;
/* Lanes that have diverged from others, until `join`. */
struct Path { uint32_t pc, join, lanes; };
enum State : uint8_t { READY, AT_BARRIER, AT_CLUSTER, POLLS, DONE };
struct Warp {
    Block *block;
    unsigned number;
    uint32_t alive, active;                      /* active: lanes that execute the current instruction */
    std::vector<Path> paths;                     /* the last one is executed */
    char *file;
    uint32_t *known;
    State state;
    unsigned cluster_phase;
    bool arrived;                                /* at the cluster's barrier, and has not waited for it */
    uint64_t low, high;                          /* range of device memory that contains the last access */
    char *local; uint8_t *local_known;
    template <class T> T *row(const Operand &o) { return (T *)(file + o.row); }
};
struct Block {
    Size index;
    unsigned rank;
    struct Cluster *cluster;
    std::vector<Warp> warps;
    unsigned live, at_barrier;
    std::vector<char> shared;
    std::vector<uint8_t> shared_known;           /* one byte per byte */
    std::vector<Mbarrier> barriers;
};
struct Cluster {
    const Call *call;
    std::vector<Block> blocks;
    unsigned live, arrived, phase;               /* warps */
    unsigned polls;                              /* consecutive polls without progress */
    long long time;                              /* clock64; advances while all runnable warps only poll */
};
/* Call after each event that may end a poll. */
inline void progress(Warp &w) { w.block->cluster->polls = 0; }
/* Returns true if the bytes are in the block's static or dynamic shared memory. */
inline bool in_shared(const Call &c, uint64_t at, size_t bytes)
{
    return (at >= STATIC_PART && at + bytes <= STATIC_PART + c.kernel->shared) ||
           (at >= DYNAMIC_PART && at + bytes <= DYNAMIC_PART + c.dynamic);
}
/* Finds the range of device memory that contains an address. Returns false if it is outside. */
bool device_memory(uint64_t address, uint64_t *low, uint64_t *high);

/* ---- helpers of instructions ---- */
inline float gpu_nan() { return emu::bits<float>(0x7FFFFFFF); }    /* the NaN that GPUs return */
/* Calls f(lane) for each active lane. */
template <class F> inline __attribute__((always_inline)) void each(uint32_t active, F f)
{
    if (active == ALL) {
#pragma GCC ivdep
        for (unsigned l = 0; l < LANES; l++)
            f(l);
    } else
        for (; active; active &= active - 1)
            f((unsigned)__builtin_ctz(active));
}
inline void set_known(Warp &w, const Operand &o, uint32_t known)
{
    w.known[o.slot] = (w.known[o.slot] & ~w.active) | (known & w.active);
}
/* Fails unless all active lanes have a written value. */
inline void require_known(Warp &w, const Operand &o, const char *what)
{
    if (w.active & ~w.known[o.slot])
        fail("%s was never written, in lane %d", what, __builtin_ctz(w.active & ~w.known[o.slot]));
}
/* Fails unless all live lanes of the warp are active. */
void require_whole_warp(Warp &, const char *what);
} // namespace ptx
#endif
