/* ptx.h - an interpreter of PTX: it executes, on a CPU, what nvcc has made of a kernel.
 *
 * The emulation of tests/emu compiles the plug-in's sources by g++, so no test of it executes a line of what
 * is shipped. With WEFT_EMU_PTX a launch takes the kernel's PTX instead, as it was handed to ptxas for the
 * compute capability WEFT_EMU_CC, and what nvcc has made of the sources, inline PTX included, is what the
 * tests test.
 *
 * The 32 lanes of a warp go in step; where they part, each path is walked to the place where they must meet
 * again (flow.cpp), the first of them being an adversary's choice. A register is a row of 32 numbers, and a
 * bit for each lane says whether it was ever written: who decides, addresses or stores by what was not, has
 * failed. So has who touches memory that is not the device's, or not at a multiple of its size, who
 * synchronises a part of a warp, or waits for what does not come.
 *
 * parse.cpp reads the text, instructions.def says what each arithmetic instruction does, memory.cpp loads and
 * stores, sync.cpp has barriers, clusters and shuffles, mma.cpp the tensor cores, run.cpp the warps' turns,
 * find.cpp looks up a kernel's text. It cannot show what ptxas makes of PTX, nor weak memory order, nor time.
 */
#ifndef WEFT_PTX_INTERPRETER_H
#define WEFT_PTX_INTERPRETER_H
#include <stddef.h>
#include <stdint.h>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ptx {
enum : unsigned { LANES = 32, ALL = ~0u, NOWHERE = ~0u };

/* Whatever goes wrong, with the kernel's place in its text. */
struct Failure { std::string why; };
[[noreturn]] __attribute__((format(printf, 1, 2))) void fail(const char *format, ...);

/* ---- a kernel ---- */
/* `at`: bytes into a warp's file, where its row of 32 begins: a predicate's row is one word, a bit for each
 * lane; `slot`: its word of what is known; an address adds `offset`. */
struct Operand { uint32_t at, slot; int64_t offset; };
struct Warp;
struct Instruction;
typedef void (*Run)(Warp &, const Instruction &);
enum Kind : uint8_t { PLAIN, BRANCH, RETURN, TRAP };
struct Instruction {
    Run run;
    const Operand *operand;                      /* in the order of the text */
    const Operand *guard;                        /* NULL: all lanes execute it */
    uint32_t target, join;                       /* of a branch: where to, and where its paths meet again */
    uint32_t line;
    Kind kind;
    bool unless;                                 /* where the guard is false */
    uint8_t count, bytes;                        /* of a load or store: numbers, and bytes of each */
    const char *name;
};

enum Special : uint8_t {
    TID_X, TID_Y, TID_Z, NTID_X, NTID_Y, NTID_Z, CTAID_X, CTAID_Y, CTAID_Z, NCTAID_X, NCTAID_Y, NCTAID_Z,
    LANEID, CLUSTER_CTARANK, CLUSTER_NCTARANK, SPECIALS
};
/* width: 'P' a predicate, 'W' 4 bytes a lane, 'L' 8 */
struct Constant { uint32_t at, slot; char width; uint64_t value; };
struct Parameter { size_t at, bytes; };
struct Text;                                     /* a file of PTX */

struct Kernel {
    std::string name;
    const Text *text;
    std::vector<Instruction> code;
    std::deque<std::vector<Operand>> operands;
    std::deque<std::string> names;               /* of the instructions */
    std::vector<Constant> constants;
    Operand special[SPECIALS];                   /* at NOWHERE: it is not used */
    uint32_t bytes, slots;                       /* of a warp's file */
    std::vector<Parameter> parameters;
    size_t parameter_bytes;
    size_t shared, local;                        /* bytes: static ones of a block; of a thread */
    unsigned most_threads;                       /* .maxntid, or 1024 */
    std::map<std::string, size_t> places;        /* of shared variables */
};

struct Text {
    std::string path, source;
    struct Body { size_t at; unsigned line; };
    std::map<std::string, Body> entries, functions;
    struct Shared { size_t bytes, align; bool dynamic; };
    std::map<std::string, Shared> shared;
    std::map<std::string, std::vector<char>> globals;    /* tables */
    std::map<std::string, std::unique_ptr<Kernel>> parsed;
};
void    index_text(Text &);                      /* finds what stands in its source */
Kernel *parse(Text &, const std::string &entry);
void    find_joins(Kernel &);                    /* flow.cpp */

/* What an instruction does, by its whole name: how wide each operand is is said by a letter each. NULL: there
 * is none of that name. */
struct Meaning { const char *name; std::string widths; Run run; };
const Meaning *arithmetic(const std::string &name);      /* alu.cpp */
const Meaning *synchronising(const std::string &name);   /* sync.cpp */
void mma_tf32(Warp &, const Instruction &);
/* Loads, stores and atomics depend on their registers' widths, too ('C': a constant, of any). They fill
 * run, count and bytes. */
bool memory_access(const std::string &name, std::string &widths, Instruction &);

/* ---- a launch ---- */
struct Size { unsigned x, y, z; };
struct Call {
    Kernel *kernel;
    Size grid, threads;
    unsigned cluster;
    bool together;                               /* all blocks at once */
    size_t dynamic;
    const char *arguments;
    int capability, order;
    unsigned seed;
    bool late, wrong, lost;                      /* see emu::Launch */
};
void run(const Call &);                          /* throws Failure */

/* Shared memory as a block sees it: static variables, the dynamic part in a place of its own, so that one is
 * not reached from the other; and that of another block of the cluster, whose rank stands above. */
enum : uint32_t { STATIC_PART = 1024, DYNAMIC_PART = 64 << 10, RANK = 1 << 20 };

struct Store { uint32_t to; unsigned bytes; char value[16]; };
/* A barrier that counts bytes; `by` is the warp that made it, which has to fence it and to arrive at the
 * cluster's barrier before other blocks may know of it; `coming`: on their way. */
struct Mbarrier {
    uint32_t at; int64_t bytes; unsigned count, pending, phase, by; bool fenced, seen;
    std::deque<Store> coming;
};
struct Block;
/* A path of lanes that have parted from others, until `join`. */
struct Path { uint32_t pc, join, lanes; };
enum State : uint8_t { READY, AT_BARRIER, AT_CLUSTER, POLLS, DONE };
struct Warp {
    Block *block;
    unsigned number;
    uint32_t alive, active;                      /* active: lanes that execute the present instruction */
    std::vector<Path> paths;                     /* the last is walked */
    char *file;
    uint32_t *known;
    State state;
    unsigned cluster_phase;
    bool arrived;                                /* at the cluster's barrier; it has still to wait for it */
    uint64_t low, high;                          /* device memory that was touched last */
    char *local; uint8_t *local_known;
    template <class T> T *row(const Operand &o) { return (T *)(file + o.at); }
};
struct Block {
    Size index;
    unsigned rank;
    struct Cluster *cluster;
    std::vector<Warp> warps;
    unsigned living, at_barrier;
    std::vector<char> shared;
    std::vector<uint8_t> shared_known;           /* a byte for each byte */
    std::vector<Mbarrier> barriers;
};
struct Cluster {
    const Call *call;
    std::vector<Block> blocks;
    unsigned living, arrived, phase;             /* warps */
    unsigned polls;                              /* in vain, in a row */
    long long time;                              /* goes on while all who can go on do nothing but poll */
};
/* Anything that somebody may have waited for has happened. */
inline void progress(Warp &w) { w.block->cluster->polls = 0; }
/* Are so many bytes there, static or dynamic, in a block's shared memory? */
inline bool in_shared(const Call &c, uint64_t at, size_t bytes)
{
    return (at >= STATIC_PART && at + bytes <= STATIC_PART + c.kernel->shared) ||
           (at >= DYNAMIC_PART && at + bytes <= DYNAMIC_PART + c.dynamic);
}
/* Device memory around an address: false, there is none. */
bool device_memory(uint64_t address, uint64_t *low, uint64_t *high);

/* ---- what instructions are written with ---- */
/* f(lane) for each lane that executes it. */
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
inline void learn(Warp &w, const Operand &o, uint32_t known)
{
    w.known[o.slot] = (w.known[o.slot] & ~w.active) | (known & w.active);
}
/* Those lanes' value must have been written. */
inline void need(Warp &w, const Operand &o, const char *what)
{
    if (w.active & ~w.known[o.slot])
        fail("%s was never written, in lane %d", what, __builtin_ctz(w.active & ~w.known[o.slot]));
}
/* All of the warp that is alive must be here. */
void together(Warp &, const char *what);
} // namespace ptx
#endif
