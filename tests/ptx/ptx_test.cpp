/* ptx_test.cpp - tests the interpreter with short programs: instructions against the PTX manual, diverging
 * paths, tensor cores against the manual's fragment tables, and every error that it must report. The last
 * line is "N of M .. hold". */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "tests/ptx/ptx.h"

namespace ptx {
/* One array is all device memory. */
static float memory[4096];
bool device_memory(uint64_t at, uint64_t *low, uint64_t *high)
{
    *low = (uint64_t)(uintptr_t)memory;
    *high = *low + sizeof memory;
    return at >= *low && at < *high;
}
} // namespace ptx
using ptx::memory;

static int all, bad;
static void check(bool right, const std::string &what)
{
    all++;
    if (!right)
        printf("ptx_test: %s\n", what.c_str()), bad++;
}

/* ---- programs ---- */
struct Shape {
    unsigned grid, threads, cluster;
    size_t dynamic;
    int capability, order;
    bool late, cooperative = false;
};
static const Shape ONE_WARP = { 1, 32, 1, 0, 90, 0, false };
static const char *const HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n";
static const char *const REGISTERS = ".reg .pred %p<8>; .reg .b16 %rs<8>; .reg .b32 %r<32>; .reg .f32 %f<32>;"
                                     ".reg .b64 %rd<16>; .reg .f64 %fd<8>;\n"
                                     "ld.param.u64 %rd1, [k_param_0]; mov.u32 %r1, %tid.x;\n"
                                     "mul.wide.u32 %rd2, %r1, 4; add.s64 %rd2, %rd1, %rd2;\n";
/* Runs a body with %rd1 the memory, %rd2 the address of this thread's number in it, %r1 the thread's index.
 * Returns the failure, or "". */
static std::string run(const std::string &body, Shape s = ONE_WARP, const std::string &top = "",
                       const std::string &bounds = "")
{
    ptx::Text t;
    t.path = "by hand";
    t.source = HEAD + top + ".visible .entry k(.param .u64 k_param_0)\n" + bounds + "{\n" + REGISTERS + body +
               "\nret;\n}\n";
    const float *argument = memory;
    try {
        index_text(t);
        ptx::Kernel *k = ptx::parse(t, "k");
        ptx::run(ptx::Call{ k, { s.grid, 1, 1 }, { s.threads, 1, 1 }, s.cluster, s.cooperative, s.dynamic,
                            (const char *)&argument, s.capability, s.order, 1, s.late, false, false });
    } catch (const ptx::Failure &f) {
        return f.message;
    }
    return "";
}
/* In each order, with asynchronous stores early and late. */
static void check_fails(const char *what, const std::string &body, const char *message, Shape s = ONE_WARP,
                        const std::string &top = "")
{
    for (s.order = 0; s.order < 3; s.order++) {
        std::string failure = run(body, s, top);
        check(failure.find(message) != std::string::npos,
              std::string(what) + ": \"" + failure + "\", not \"" + message + "\"");
    }
}
static uint32_t bits_of(float x) { return emu::bits<uint32_t>(x); }

/* ---- arithmetic ---- */
/* Tests one instruction. Operands are bits; kinds: 'i' a 32-bit register, 'f' fp32, 'l' 64 bits, 'd' fp64,
 * 'h' 16 bits, 'p' a predicate. The first kind is the result's. */
static void check_op(const char *name, const char *kinds, std::vector<uint64_t> in, uint64_t expected)
{
    std::string body, list;
    static const char *const prefix[] = { "i%r", "f%f", "l%rd", "d%fd", "h%rs", "p%p" };
    auto reg = [&](char kind, size_t n) {
        for (const char *p : prefix)
            if (*p == kind)
                return std::string(p + 1) + std::to_string(n + 3);
        return std::string();
    };
    for (size_t i = 0; i < in.size(); i++) {
        char value[40];
        snprintf(value, sizeof value, "%llu", (unsigned long long)in[i]);
        char kind = kinds[i + 1];
        std::string r = reg(kind, i + 1);
        body += (kind == 'p'                ? "setp.ne.s32 " + r + ", " + value + ", 0;" :
                 kind == 'l' || kind == 'd' ? "mov.b64 " + r + ", " + value + ";" :
                 kind == 'h'                ? "mov.b16 " + r + ", " + value + ";" :
                                              "mov.b32 " + r + ", " + value + ";") +
                "\n";
        list += ", " + r;
    }
    std::string out = reg(*kinds, 0);
    body += std::string(name) + " " + out + list + ";\n";
    if (*kinds == 'p')
        body += "selp.u32 %r20, 1, 0, " + out + "; cvt.u64.u32 %rd10, %r20;\n";
    else if (*kinds == 'l' || *kinds == 'd')
        body += "mov.b64 %rd10, " + out + ";\n";
    else if (*kinds == 'h')
        body += "cvt.u32.u16 %r20, " + out + "; cvt.u64.u32 %rd10, %r20;\n";
    else
        body += "mov.b32 %r20, " + out + "; cvt.u64.u32 %rd10, %r20;\n";
    std::string failure = run(body + "st.global.u64 [%rd1], %rd10;");
    uint64_t result;
    memcpy(&result, memory, sizeof result);
    char text[200];
    snprintf(text, sizeof text, "%s of %llx, %llx: %llx, not %llx", name, (unsigned long long)in[0],
             (unsigned long long)(in.size() > 1 ? in[1] : 0), (unsigned long long)result,
             (unsigned long long)expected);
    check(failure.empty() && result == expected, failure.empty() ? text : failure);
}
static const uint32_t NAN32 = 0x7FC00000, INF32 = 0x7F800000, ONE = 0x3F800000, MINUS = 0x80000000;
static uint64_t wide(double x) { return emu::bits<uint64_t>(x); }

static void integers()
{
    check_op("add.s32", "iii", { 0xFFFFFFFF, 2 }, 1);
    check_op("sub.s64", "lll", { 1, 3 }, (uint64_t)-2);
    check_op("mul.lo.s32", "iii", { 0x10001, 0x10001 }, 0x20001);
    check_op("mul.wide.s32", "lii", { 0xFFFFFFFF, 7 }, (uint64_t)-7);
    check_op("mul.wide.u32", "lii", { 0xFFFFFFFF, 7 }, 7ull * 0xFFFFFFFF);
    check_op("mul.wide.u16", "ihh", { 0xFFFF, 0xFFFF }, 0xFFFE0001);
    check_op("mad.lo.s32", "iiii", { 3, 5, 7 }, 22);
    check_op("rem.s64", "lll", { (uint64_t)-7, 2 }, (uint64_t)-1);
    check_op("div.u32", "iii", { 7, 0 }, 0xFFFFFFFF);
    check_op("min.s32", "iii", { 0xFFFFFFFF, 1 }, 0xFFFFFFFF);
    check_op("max.s64", "lll", { (uint64_t)-1, 1 }, 1);
    check_op("neg.s32", "ii", { 5 }, (uint32_t)-5);
    check_op("shl.b32", "iii", { 1, 32 }, 0);
    check_op("shl.b64", "lli", { 1, 63 }, 1ull << 63);
    check_op("shr.u32", "iii", { 0x80000000, 31 }, 1);
    check_op("shr.s32", "iii", { 0x80000000, 40 }, 0xFFFFFFFF);
    check_op("shr.s64", "lli", { 1ull << 63, 62 }, (uint64_t)-2);
    check_op("bfi.b32", "iiiii", { 0xF, 0, 4, 2 }, 0x30);
    check_op("bfi.b64", "lllii", { 0xAA, ~0ull, 8, 8 }, 0xFFFFFFFFFFFFAAFFull);
    check_op("and.b16", "hhh", { 0xFF0F, 0x0FFF }, 0x0F0F);
    check_op("not.b64", "ll", { 1 }, ~1ull);
    check_op("selp.b32", "iiip", { 1, 2, 0 }, 2);
    check_op("xor.pred", "ppp", { 1, 1 }, 0);
    check_op("not.pred", "pp", { 0 }, 1);
    check_op("setp.lt.s32", "pii", { 0xFFFFFFFF, 0 }, 1);
    check_op("setp.lt.u32", "pii", { 0xFFFFFFFF, 0 }, 0);
    check_op("setp.ge.s16", "phh", { 0xFFFF, 0 }, 0);
    check_op("cvt.s64.s32", "li", { 0xFFFFFFFF }, ~0ull);
    check_op("cvt.s64.s32", "ll", { 0x1FFFFFFFFull }, ~0ull); /* lower half of a wider register */
    check_op("cvt.u64.u32", "li", { 0xFFFFFFFF }, 0xFFFFFFFF);
}

static void real_numbers()
{
    check_op("add.f32", "fff", { bits_of(1), bits_of(0x1p-24f) }, ONE); /* a tie, to even */
    check_op("add.rz.f32", "fff", { bits_of(1), bits_of(0x1.8p-24f) }, ONE);
    check_op("add.rz.f32", "fff", { bits_of(-1), bits_of(-0x1.8p-24f) }, bits_of(-1));
    check_op("fma.rn.f32", "ffff", { bits_of(1 + 0x1p-23f), bits_of(1 - 0x1p-23f), bits_of(-1) },
             bits_of(-0x1p-46f));
    check_op("fma.rm.f32", "ffff", { bits_of(1), bits_of(0x1.8p-24f), bits_of(1) }, ONE);
    check_op("fma.rm.f32", "ffff", { bits_of(-1), bits_of(0x1p-30f), bits_of(1) }, bits_of(1 - 0x1p-24f));
    check_op("min.f32", "fff", { NAN32, ONE }, ONE);
    check_op("max.f32", "fff", { ONE, NAN32 }, ONE);
    check_op("min.f32", "fff", { 0, MINUS }, MINUS);
    check_op("max.f32", "fff", { MINUS, 0 }, 0);
    check_op("abs.f32", "ff", { bits_of(-2) }, bits_of(2));
    check_op("neg.f32", "ff", { 0 }, MINUS);
    check_op("copysign.f32", "fff", { bits_of(-3), bits_of(2) }, bits_of(-2));
    check_op("div.rn.f32", "fff", { bits_of(1), bits_of(3) }, bits_of(1.f / 3));
    check_op("rcp.rn.f32", "ff", { bits_of(0) }, INF32);
    check_op("sqrt.rn.f32", "ff", { bits_of(2) }, bits_of(sqrtf(2)));
    check_op("ex2.approx.ftz.f32", "ff", { bits_of(-127) }, 0); /* subnormal: flushed */
    check_op("ex2.approx.f32", "ff", { bits_of(-127) }, bits_of(0x1p-127f));
    check_op("rcp.approx.ftz.f32", "ff", { bits_of(0x1p-127f) }, INF32);
    check_op("cvt.sat.f32.f32", "ff", { NAN32 }, 0);
    check_op("cvt.sat.f32.f32", "ff", { bits_of(3) }, ONE);
    check_op("cvt.rni.f32.f32", "ff", { bits_of(2.5) }, bits_of(2));
    check_op("cvt.rmi.f32.f32", "ff", { bits_of(-2.5) }, bits_of(-3));
    check_op("cvt.rzi.f32.f32", "ff", { bits_of(-2.5) }, bits_of(-2));
    check_op("cvt.rzi.s32.f32", "if", { bits_of(3e9f) }, 0x7FFFFFFF);
    check_op("cvt.rzi.s32.f32", "if", { NAN32 }, 0);
    check_op("cvt.rni.s32.f32", "if", { bits_of(-2.5f) }, (uint32_t)-2);
    check_op("cvt.rn.f32.s64", "fl", { (1ull << 40) + 1 }, bits_of(0x1p40f));
    check_op("cvt.rn.f32.f64", "fd", { wide(1 + 0x1p-24) }, ONE);
    check_op("cvt.f64.f32", "df", { bits_of(1.5) }, wide(1.5));
    check_op("setp.lt.f32", "pff", { NAN32, ONE }, 0);
    check_op("setp.ltu.f32", "pff", { NAN32, ONE }, 1);
    check_op("setp.ne.f32", "pff", { NAN32, ONE }, 0);
    check_op("setp.neu.f32", "pff", { NAN32, ONE }, 1);
    check_op("setp.equ.f32", "pff", { NAN32, ONE }, 1);
    check_op("setp.nan.f32", "pff", { ONE, NAN32 }, 1);
    check_op("setp.num.f32", "pff", { ONE, NAN32 }, 0);
    check_op("fma.rn.f64", "dddd", { wide(3), wide(4), wide(5) }, wide(17));
    check_op("rcp.approx.ftz.f64", "dd", { wide(3) }, wide(1. / 3) & ~0xFFFFFFFFull);
}

/* ---- paths ---- */
/* Tests that thread i stores expected(i) at memory[i]. */
static void check_memory(const char *what, const std::string &body, unsigned (*expected)(unsigned),
                         Shape s = ONE_WARP, const std::string &top = "")
{
    for (int i = 0; i < 6; i++) {
        s.order = i % 3;
        s.late = i / 3;
        memset(memory, 0xFF, sizeof memory);
        std::string failure = run(body, s, top);
        check(failure.empty(), std::string(what) + ": " + failure);
        for (unsigned t = 0; t < s.grid * s.threads; t++)
            check(bits_of(memory[t]) == expected(t), std::string(what) + ", thread " + std::to_string(t) +
                                                         ": " + std::to_string(bits_of(memory[t])));
    }
}
static void paths()
{
    /* lane i iterates i times; all reconverge before the barrier */
    check_memory("a loop with a different length for each lane",
                 "mov.u32 %r2, 0; mov.u32 %r3, %r1;\n$again: setp.eq.s32 %p1, %r3, 0; @%p1 bra $out;\n"
                 "add.s32 %r2, %r2, %r3; add.s32 %r3, %r3, -1; bra.uni $again;\n$out: bar.sync 0; "
                 "st.global.u32 [%rd2], %r2;",
                 [](unsigned t) { return t * (t + 1) / 2; });
    check_memory("two paths that reconverge",
                 "and.b32 %r2, %r1, 1; setp.eq.s32 %p1, %r2, 0; @%p1 bra $even; mov.u32 %r3, 7; bra $both;\n"
                 "$even: mov.u32 %r3, 5; setp.lt.u32 %p2, %r1, 16; @%p2 bra $both; mov.u32 %r3, 6;\n"
                 "$both: bar.sync 0; st.global.u32 [%rd2], %r3;",
                 [](unsigned t) { return t & 1  ? 7u :
                                   t < 16 ? 5u :
                                            6u; });
    check_memory("some lanes return early",
                 "mov.u32 %r3, 1; st.global.u32 [%rd2], %r3; setp.ge.u32 %p1, %r1, 40; @%p1 ret;\n"
                 "bar.sync 0; mov.u32 %r3, 2; st.global.u32 [%rd2], %r3;",
                 [](unsigned t) { return t < 40 ? 2u : 1u; }, { 1, 50, 1, 0, 90, 0, false });
    check_memory(
        "a function is called twice",
        "{ .param .b64 param0; st.param.f64 [param0+0], %fd1; .param .b64 retval0; cvt.rn.f64.u32 %fd1, "
        "%r1;\n"
        "st.param.f64 [param0+0], %fd1; call.uni (retval0), twice, (param0); ld.param.f64 %fd2, [retval0+0]; "
        "}\n"
        "{ .param .b64 param0; st.param.f64 [param0+0], %fd2; .param .b64 retval0;\n"
        "call.uni (retval0), twice, (param0); ld.param.f64 %fd3, [retval0+0]; }\n"
        "cvt.rzi.s32.f64 %r2, %fd3; st.global.u32 [%rd2], %r2;",
        [](unsigned t) { return 4 * t; }, ONE_WARP,
        ".func (.param .b64 out) twice(.param .b64 in) { .reg .f64 %fd<3>; .reg .pred %p<2>;\n"
        "ld.param.f64 %fd1, [in]; setp.lt.f64 %p1, %fd1, 0d4024000000000000; @%p1 bra $small;\n"
        "add.f64 %fd2, %fd1, %fd1; st.param.f64 [out+0], %fd2; ret;\n"
        "$small: add.f64 %fd2, %fd1, %fd1; st.param.f64 [out+0], %fd2; ret; }\n");
    check_memory(
        "lanes exchange values",
        "mov.u32 %r5, 31; mov.u32 %r6, -1; mov.u32 %r4, 1; shfl.sync.bfly.b32 %r2|%p1, %r1, %r4, %r5, %r6;\n"
        "mov.u32 %r4, 3; mov.u32 %r5, 6175; shfl.sync.idx.b32 %r3, %r2, %r4, %r5, %r6; st.global.u32 [%rd2], "
        "%r3;",
        [](unsigned t) { return ((t & 24) | 3) ^ 1; }); /* 6175: segments of 8 lanes */
    check_memory(
        "shared memory after a barrier",
        "mov.u32 %r2, there; shl.b32 %r3, %r1, 2; add.s32 %r2, %r2, %r3; st.shared.u32 [%r2], %r1; bar.sync "
        "0;\n"
        "mov.u32 %r4, there; sub.s32 %r4, %r4, %r3; ld.shared.u32 %r5, [%r4+252]; st.global.u32 [%rd2], %r5;",
        [](unsigned t) { return 63 - t; }, { 1, 64, 1, 0, 90, 0, false },
        ".shared .align 4 .b8 there[256];\n");
    check_memory("atomics count",
                 "atom.global.add.u32 %r2, [%rd1+4000], 1; bar.sync 0; ld.global.u32 %r3, [%rd1+4000];\n"
                 "add.s32 %r3, %r3, 1; st.global.u32 [%rd2], %r3;",
                 [](unsigned) { return 64u; }, { 1, 64, 1, 0, 90, 0, false });
}

/* ---- clusters: each block sends its index to the next ---- */
static const char *const BARRIER = ".shared .align 8 .b8 bar[8];\n.shared .align 16 .b8 box[16];\n";
static std::string cluster(const std::string &init, const std::string &fence, const std::string &expect,
                           const std::string &rank, const std::string &before_end)
{
    return "mov.u32 %r2, bar; mov.u32 %r3, box; mov.u32 %r4, %cluster_ctarank; mov.u32 %r9, 0;\n"
           "setp.ne.s32 %p1, %r1, 0; @%p1 bra $made; mbarrier.init.shared::cta.b64 [%r2], " +
           init + ";\n" + fence +
           "$made: barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n"
           "@%p1 bra $sent;\n"
           "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], " +
           expect +
           "; add.s32 %r5, %r4, 1; and.b32 %r5, %r5, 1;\n"
           "mapa.shared::cluster.u32 %r6, %r3, %r5; mapa.shared::cluster.u32 %r7, %r2, " +
           rank +
           ";\n"
           "cvt.rn.f32.u32 %f1, %r4;\n"
           "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%r6], {%f1,%f1,%f1,%f1}, "
           "[%r7];\n"
           "$sent: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], %r9; @!%p2 bra $sent;\n"
           "ld.shared.f32 %f2, [box+12]; mov.u32 %r8, %ctaid.x; mad.lo.s32 %r8, %r8, 32, %r1; mul.wide.u32 "
           "%rd4, %r8, 4;\n"
           "add.s64 %rd4, %rd1, %rd4; cvt.rzi.s32.f32 %r10, %f2; st.global.u32 [%rd4], %r10;\n" +
           before_end;
}
static const char *const FENCE = "fence.mbarrier_init.release.cluster;\n";
static const char *const LAST =
    "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n";
static void clusters()
{
    Shape two = { 4, 32, 2, 0, 90, 0, false };
    check_memory(
        "blocks send to each other", cluster("1", FENCE, "16", "%r5", LAST),
        [](unsigned t) { return 1 - t / 32 % 2; }, two, BARRIER);
    check_fails("too many bytes are expected", cluster("1", FENCE, "32", "%r5", LAST),
                "deadlock", two, BARRIER);
    check_fails("too few arrivals", cluster("2", FENCE, "16", "%r5", LAST), "deadlock", two,
                BARRIER);
    check_fails("no fence", cluster("1", "", "16", "%r5", LAST), "has not published", two, BARRIER);
    check_fails("a barrier in another block", cluster("1", FENCE, "16", "%r4", LAST),
                "data goes to one block, its barrier is in another", two, BARRIER);
    std::string relaxed = cluster("1", FENCE, "16", "%r5", LAST);
    relaxed.replace(relaxed.find("arrive.release"), 14, "arrive.relaxed");
    check_fails("a relaxed arrival", relaxed, "has not published its barrier", two, BARRIER);
    check_fails("a cluster's barrier that only some lanes reach",
                "setp.lt.u32 %p1, %r1, 7; @%p1 bra $on;\n"
                "barrier.cluster.arrive.release.aligned; $on: bar.sync 0;",
                "expected all live lanes, 0xffffffff", two);
    check_fails("an arrival without a wait", std::string(LAST, 40) + LAST, "arrives twice", two);
    two.late = true;
    /* the block ends before the store arrives */
    check_fails(
        "a store without a wait",
        "mov.u32 %r2, bar; mov.u32 %r3, box; mov.u32 %r4, %cluster_ctarank; setp.ne.s32 %p1, %r1, 0;\n"
        "@%p1 bra $made; mbarrier.init.shared::cta.b64 [%r2], 1; fence.mbarrier_init.release.cluster;\n"
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 16;\n"
        "$made: barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned; @%p1 ret;\n"
        "sub.s32 %r5, 1, %r4; mapa.shared::cluster.u32 %r6, %r3, %r5; mapa.shared::cluster.u32 %r7, %r2, "
        "%r5;\n"
        "mov.f32 %f1, 0f3F800000;\n"
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%r6], {%f1,%f1,%f1,%f1}, [%r7];",
        "a block has ended before all data sent to it arrived", two, BARRIER);
}

/* ---- tagged words with which concurrent blocks exchange data ---- */
static std::string words(const std::string &tag)
{
    return "mov.u32 %r2, %ctaid.x; mad.lo.s32 %r3, %r2, 32, %r1; mul.wide.u32 %rd3, %r3, 8;\n"
           "add.s64 %rd3, %rd1, %rd3; cvt.u64.u32 %rd4, %r3; mov.u64 %rd5, " +
           tag +
           "; shl.b64 %rd6, %rd5, 32; or.b64 %rd4, %rd4, %rd6; st.relaxed.gpu.global.u64 [%rd3+8192], %rd4;\n"
           "xor.b32 %r4, %r3, 32; mul.wide.u32 %rd6, %r4, 8; add.s64 %rd6, %rd1, %rd6;\n"
           "$look: ld.relaxed.gpu.global.u64 %rd7, [%rd6+8192]; shr.u64 %rd8, %rd7, 32;\n"
           "setp.ne.s64 %p1, %rd8, %rd5; @%p1 bra $look; cvt.u32.u64 %r5, %rd7;\n"
           "mul.wide.u32 %rd9, %r3, 4; add.s64 %rd9, %rd1, %rd9; st.global.u32 [%rd9], %r5;";
}
static void words_with_tags()
{
    Shape two = { 2, 32, 1, 0, 80, 0, false, true };
    check_memory("blocks exchange words", words("7"), [](unsigned t) { return t ^ 32; }, two);
    two.cooperative = false;                     /* run once, because the words stay in memory */
    check(run(words("8"), two).find("deadlock") != std::string::npos,
          "blocks that run one after another should deadlock");
}

/* ---- tensor cores ---- */
/* The fragments of m16n8k8 for tf32 in the manual. */
static float a_of[16][8], b_of[8][8], c_of[16][8];
static std::string fragments()
{
    return "shl.b32 %r2, %r1, 2; shr.u32 %r3, %r1, 2; and.b32 %r4, %r1, 3;\n" /* g %r3, t %r4 */
           "mad.lo.s32 %r5, %r3, 8, %r4; mul.wide.u32 %rd3, %r5, 4; add.s64 %rd3, %rd1, %rd3;\n"
           "ld.global.u32 %r10, [%rd3]; ld.global.u32 %r11, [%rd3+256]; ld.global.u32 %r12, [%rd3+16];\n"
           "ld.global.u32 %r13, [%rd3+272];\n"
           "mad.lo.s32 %r6, %r4, 8, %r3; mul.wide.u32 %rd4, %r6, 4; add.s64 %rd4, %rd1, %rd4;\n"
           "ld.global.u32 %r14, [%rd4+512]; ld.global.u32 %r15, [%rd4+640];\n"
           "shl.b32 %r7, %r4, 1; mad.lo.s32 %r7, %r3, 8, %r7; mul.wide.u32 %rd5, %r7, 4; add.s64 %rd5, %rd1, "
           "%rd5;\n"
           "ld.global.v2.f32 {%f1, %f2}, [%rd5+768]; ld.global.v2.f32 {%f3, %f4}, [%rd5+1024];\n"
           "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1,%f2,%f3,%f4}, {%r10,%r11,%r12,%r13}, "
           "{%r14,%r15}, {%f1,%f2,%f3,%f4};\n"
           "st.global.v2.f32 [%rd5+1280], {%f1, %f2}; st.global.v2.f32 [%rd5+1536], {%f3, %f4};";
}
static void multiply(int capability)
{
    memcpy(memory, a_of, sizeof a_of), memcpy(memory + 128, b_of, sizeof b_of),
        memcpy(memory + 192, c_of, sizeof c_of);
    Shape s = ONE_WARP;
    s.capability = capability;
    std::string failure = run(fragments(), s);
    check(failure.empty(), failure);
}
static float product(int i, int j) { return memory[320 + 8 * i + j]; }
/* The rounding of Fasi et al.: sums in units of the last bit kept. */
static float cut(double c, const double *x, int n, int extra)
{
    int e = -1000, t;
    double largest = fabs(c), sum;
    for (int k = 0; k < n; k++)
        largest = fmax(largest, fabs(x[k]));
    if (largest == 0)
        return 0;
    frexp(largest, &e);
    double unit = ldexp(1, e - 24 - extra);
    sum = trunc(c / unit);
    for (int k = 0; k < n; k++)
        sum += trunc(x[k] / unit);
    if (sum == 0)
        return 0;
    frexp(sum * unit, &t);
    double last = ldexp(1, t - 24);
    return (float)(trunc(sum * unit / last) * last);
}
static float tf32(float x) { return emu::bits<float>(bits_of(x) & ~0x1FFFu); }
static void tensor_cores()
{
    uint32_t rng = 1;
    auto draw = [&] { return rng = rng * 1664525u + 1013904223u, (float)(int32_t)rng * 0x1p-31f; };
    for (int round = 0; round < 20; round++)
        for (int capability : { 80, 90, 120 }) {
            for (auto &row : a_of)
                for (float &x : row)
                    x = round % 5 == 4 ? 0 : ldexpf(draw(), round % 3 * 6);
            for (auto &row : b_of)
                for (float &x : row)
                    x = draw();
            for (auto &row : c_of)
                for (float &x : row)
                    x = round % 4 == 3 ? 0 : draw();
            multiply(capability);
            bool same = true;
            for (int i = 0; i < 16; i++)
                for (int j = 0; j < 8; j++) {
                    double x[8];
                    for (int k = 0; k < 8; k++)
                        x[k] = (double)tf32(a_of[i][k]) * tf32(b_of[k][j]);
                    float expected = capability < 90 ? cut(cut(c_of[i][j], x, 4, 1), x + 4, 4, 1) :
                                                   cut(c_of[i][j], x, 8, 2);
                    same &= product(i, j) == expected;
                }
            check(same, "a product of tensor cores, sm_" + std::to_string(capability));
        }
    c_of[3][5] = NAN;
    multiply(90);
    check(isnan(product(3, 5)), "NaN in a product of tensor cores");
    c_of[3][5] = 0;
    for (int k : { 0, 7 })
        for (int capability : { 80, 90 }) {
            a_of[2][k] = -0x1p100f;
            b_of[k][4] = 0x1p100f;
            multiply(capability);
            check(product(2, 4) == -INFINITY, "an overflowing sum keeps its sign");
            a_of[2][k] = 0;
        }
    check_fails("a product by half a warp", "setp.lt.u32 %p1, %r1, 16; @%p1 ret;\n" + fragments(),
                "by lanes 0xffff0000");
}

/* ---- mistakes ---- */
static void mistakes()
{
    static float host[4];
    char outside[300];
    snprintf(outside, sizeof outside,
             "mov.u64 %%rd3, %llu; ld.global.f32 %%f1, [%%rd3]; st.global.f32 [%%rd2], %%f1;",
             (unsigned long long)(uintptr_t)host);
    Shape two_warps = { 1, 64, 1, 0, 90, 0, false };
    check_fails("host memory", outside, "is not in the device's memory");
    check_fails("beyond the end", "st.global.u32 [%rd1+16384], %r1;", "is not in the device's memory");
    check_fails("a vector at 8 bytes", "ld.global.v4.f32 {%f1,%f2,%f3,%f4}, [%rd1+8];",
                "not a multiple of 16");
    check_fails("a number at 2 bytes", "st.global.u32 [%rd1+2], %r1;", "not a multiple of 4");
    check_fails("beyond shared memory", "mov.u32 %r2, there; st.shared.u32 [%r2+16], %r1;",
                "is not in the block's shared memory", ONE_WARP, ".shared .align 4 .b8 there[16];\n");
    check_fails("dynamic memory that was not requested", "mov.u32 %r2, some; st.shared.u32 [%r2], %r1;",
                "is not in the block's shared memory", ONE_WARP, ".extern .shared .align 16 .b8 some[];\n");
    check_memory("dynamic memory", "mov.u32 %r2, some; st.shared.u32 [%r2], %r1; st.global.u32 [%rd2], %r1;",
                 [](unsigned t) { return t; }, { 1, 32, 1, 4, 90, 0, false },
                 ".extern .shared .align 16 .b8 some[];\n");
    check_fails("a register without a value", "st.global.u32 [%rd2], %r9;", "stored value was never written");
    check_fails("an address without a value", "ld.global.u32 %r3, [%rd9];", "an address was never written");
    check_fails("a branch on an unwritten value", "setp.eq.s32 %p1, %r9, 0; @%p1 bra $on; $on: ret;",
                "a guard was never written");
    check_fails("shared memory without a value", "ld.shared.u32 %r2, [there]; st.global.u32 [%rd2], %r2;",
                "the stored value was never written", ONE_WARP, ".shared .align 4 .b8 there[16];\n");
    check_memory("an unselected operand may be unwritten",
                 "setp.eq.s32 %p1, %r1, %r1; selp.b32 %r2, %r1, %r9, %p1; st.global.u32 [%rd2], %r2;",
                 [](unsigned t) { return t; });
    check_fails("a barrier by half a warp", "setp.lt.u32 %p1, %r1, 16; @%p1 bra $on; bar.sync 0; $on: ret;",
                "expected all live lanes, 0xffffffff");
    check_fails("a barrier by one of two warps",
                "setp.lt.u32 %p1, %r1, 32; @%p1 bra $on; bar.sync 0; $on: "
                "mbarrier.try_wait.parity.shared::cta.b64 %p2, [there], %r1;",
                "no barrier at", two_warps, ".shared .align 8 .b8 there[8];\n");
    check_fails("a shuffle with inactive lanes",
                "mov.u32 %r5, 31; mov.u32 %r6, -1; setp.lt.u32 %p1, %r1, 16; @%p1 bra $on;\n"
                "shfl.sync.bfly.b32 %r2, %r1, 1, %r5, %r6; $on: ret;",
                "mask 0xffffffff, active lanes 0xffff0000");
    check_fails("a trap", "trap;", "trap");
    check_fails("an unknown instruction", "frob.s32 %r2, %r1;", "unknown instruction frob.s32");
    check_fails("an undeclared register", "mov.u32 %r99, %r1;", "unknown register %r99");
    check_fails("an undefined label", "bra $nowhere;", "unknown label");
    check_fails("too many operands", "add.s32 %r2, %r1, %r1, %r1;", "has 3 operands, not 4");
    check_fails("a register of another width", "add.s32 %rd3, %r1, %r1;", "has a different width");
    check_fails("a barrier without init", "mbarrier.arrive.expect_tx.shared::cta.b64 _, [there], 16;",
                "no barrier at", ONE_WARP, ".shared .align 8 .b8 there[8];\n");
    check_fails("a barrier at 4 bytes", "mov.u32 %r2, there; mbarrier.init.shared::cta.b64 [%r2+4], 1;",
                "outside shared memory", ONE_WARP, ".shared .align 8 .b8 there[16];\n");
}

int main()
{
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
        printf("skipped: the interpreter is compiled for a CPU with AVX2 and FMA\n1 of 1 hold\n");
        return 0;
    }
    integers();
    real_numbers();
    paths();
    clusters();
    words_with_tags();
    tensor_cores();
    mistakes();
    printf("%d of %d checks of the PTX interpreter hold\n", all - bad, all);
    return bad != 0;
}
