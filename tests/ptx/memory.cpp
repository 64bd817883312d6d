/* memory.cpp - loads, stores and atomics. Every address is checked for its range and alignment. A value
 * loaded from memory that was never written counts as unwritten. */
#include <stdlib.h>
#include <string.h>
#include "tests/ptx/ptx.h"

namespace ptx {
namespace {
enum Space { GLOBAL, SHARED, LOCAL, PARAM };
enum : uint8_t { WRITTEN = 0xFF };

/* ---- addresses ---- */
uint64_t address(Warp &w, const Operand &o, bool wide, unsigned lane)
{
    return (wide ? w.row<uint64_t>(o)[lane] : w.row<uint32_t>(o)[lane]) + (uint64_t)o.offset;
}
void check_aligned(uint64_t at, size_t bytes)
{
    if (at % bytes)
        fail("address %#llx is not a multiple of %zu", (unsigned long long)at, bytes);
}
char *global(Warp &w, uint64_t at, size_t bytes)
{
    check_aligned(at, bytes);
    if (at >= w.low && at + bytes <= w.high)
        return (char *)(uintptr_t)at;
    for (auto &table : w.block->cluster->call->kernel->text->globals)
        if (at >= (uint64_t)(uintptr_t)table.second.data() &&
            at + bytes <= (uint64_t)(uintptr_t)(table.second.data() + table.second.size()))
            return (char *)(uintptr_t)at;
    if (!device_memory(at, &w.low, &w.high) || at + bytes > w.high)
        fail("address %#llx is not in the device's memory", (unsigned long long)at);
    return (char *)(uintptr_t)at;
}
size_t shared(Warp &w, uint64_t at, size_t bytes) /* returns the offset in the block's shared memory */
{
    const Call &c = *w.block->cluster->call;
    check_aligned(at, bytes);
    if (!in_shared(c, at, bytes))
        fail("address %#llx is not in the block's shared memory (%zu + %zu bytes)", (unsigned long long)at,
             c.kernel->shared, c.dynamic);
    return at;
}
size_t local(Warp &w, uint64_t at, size_t bytes, unsigned lane)
{
    size_t all = w.block->cluster->call->kernel->local;
    check_aligned(at, bytes);
    if (at + bytes > all || at > all)
        fail("address %#llx is not in a thread's local memory (%zu bytes)", (unsigned long long)at, all);
    return lane * all + at;
}

struct Bytes { char *data; uint8_t *known; };    /* known NULL: counts as written */
template <Space S> Bytes bytes_at(Warp &w, uint64_t at, size_t bytes, unsigned lane)
{
    if (S == SHARED) {
        size_t offset = shared(w, at, bytes);
        return Bytes{ w.block->shared.data() + offset, w.block->shared_known.data() + offset };
    }
    if (S == LOCAL) {
        size_t offset = local(w, at, bytes, lane);
        return Bytes{ w.local + offset, w.local_known + offset };
    }
    if (S == PARAM) {
        check_aligned(at, bytes);
        if (at + bytes > w.block->cluster->call->kernel->parameter_bytes)
            fail("offset %llu is not in the kernel's parameters", (unsigned long long)at);
        return Bytes{ const_cast<char *>(w.block->cluster->call->arguments) + at, NULL };
    }
    return Bytes{ global(w, at, bytes), NULL };
}
template <class T> bool written(const uint8_t *known)
{
    for (size_t i = 0; i < sizeof(T); i++)
        if (known[i] != WRITTEN)
            return false;
    return true;
}

/* ---- loads and stores of one number or a vector ---- */
template <Space S, class T, class Cell, bool WIDE> void loads(Warp &w, const Instruction &i)
{
    const Operand &from = i.operand[i.count];
    uint32_t known[4] = { ALL, ALL, ALL, ALL };
    require_known(w, from, "an address");
    each(w.active, [&](unsigned l) {
        Bytes p = bytes_at<S>(w, address(w, from, WIDE, l), i.count * sizeof(T), l);
        for (unsigned c = 0; c < i.count; c++) {
            T value;
            memcpy(&value, p.data + c * sizeof(T), sizeof value);
            w.row<Cell>(i.operand[c])[l] = (Cell)value;
            if (p.known && !written<T>(p.known + c * sizeof(T)))
                known[c] &= ~(1u << l);
        }
    });
    for (unsigned c = 0; c < i.count; c++)
        set_known(w, i.operand[c], known[c]);
}
template <Space S, class T, class Cell, bool WIDE> void stores(Warp &w, const Instruction &i)
{
    const Operand &to = i.operand[0];
    require_known(w, to, "an address");
    for (unsigned c = 0; c < i.count && S == GLOBAL; c++)
        require_known(w, i.operand[1 + c], "the stored value");
    each(w.active, [&](unsigned l) {
        Bytes p = bytes_at<S>(w, address(w, to, WIDE, l), i.count * sizeof(T), l);
        for (unsigned c = 0; c < i.count; c++) {
            T value = (T)w.row<Cell>(i.operand[1 + c])[l];
            memcpy(p.data + c * sizeof(T), &value, sizeof value);
            if (p.known)
                memset(p.known + c * sizeof(T), w.known[i.operand[1 + c].slot] >> l & 1 ? WRITTEN : 0,
                       sizeof(T));
        }
    });
    progress(w);
}

/* ---- words with which blocks exchange data ---- */
/* A relaxed load may be one of a polling loop. With WEFT_EMU_LOSE, relaxed stores are dropped. */
void poll_word(Warp &w, const Instruction &i)
{
    loads<GLOBAL, uint64_t, uint64_t, true>(w, i);
    w.state = POLLS;
}
void send_word(Warp &w, const Instruction &i)
{
    if (!w.block->cluster->call->lost)
        stores<GLOBAL, uint64_t, uint64_t, true>(w, i);
    progress(w);
}

/* ---- atomics: lane by lane ---- */
template <Space S, class T, bool WIDE, class F> void atomics(Warp &w, const Instruction &i, F f)
{
    const Operand &to = i.operand[1], &with = i.operand[2];
    require_known(w, to, "an address"), require_known(w, with, "the stored value");
    each(w.active, [&](unsigned l) {
        Bytes p = bytes_at<S>(w, address(w, to, WIDE, l), sizeof(T), l);
        T old, result;
        if (p.known && !written<T>(p.known))
            fail("an atomic on memory that was never written");
        memcpy(&old, p.data, sizeof old);
        result = f(old, w.row<T>(with)[l]);
        memcpy(p.data, &result, sizeof result);
        w.row<T>(i.operand[0])[l] = old;
    });
    set_known(w, i.operand[0], ALL);
    progress(w);
}
template <Space S, class T, bool WIDE> Run atomic(const std::string &what)
{
    if (what == "add")
        return [](Warp &w, const Instruction &i) {
            atomics<S, T, WIDE>(w, i, [](T a, T b) { return (T)(a + b); });
        };
    if (what == "min")
        return [](Warp &w, const Instruction &i) {
            atomics<S, T, WIDE>(w, i, [](T a, T b) { return b < a ? b : a; });
        };
    if (what == "exch")
        return [](Warp &w, const Instruction &i) { atomics<S, T, WIDE>(w, i, [](T, T b) { return b; }); };
    return NULL;
}

/* ---- by name ---- */
std::vector<std::string> parts_of(const std::string &name)
{
    std::vector<std::string> parts;
    for (size_t at = 0, dot; at <= name.size(); at = dot + 1) {
        dot = name.find('.', at);
        dot = dot == std::string::npos ? name.size() : dot;
        parts.push_back(name.substr(at, dot - at));
    }
    return parts;
}

template <Space S, bool WIDE> Run access(bool load, const std::string &type, bool to_wide)
{
#define BOTH(T, cell) (load ? (Run)loads<S, T, cell, WIDE> : (Run)stores<S, T, cell, WIDE>)
    if (type == "u8" || type == "b8")
        return BOTH(uint8_t, uint32_t);
    if (type == "s8")
        return load ? (Run)loads<S, int8_t, uint32_t, WIDE> : NULL;
    if (type == "u16" || type == "b16")
        return BOTH(uint16_t, uint32_t);
    if (type == "u32" || type == "b32" || type == "f32" || type == "s32")
        return !to_wide      ? BOTH(uint32_t, uint32_t) :
               type == "s32" ? BOTH(int32_t, int64_t) :
                               BOTH(uint32_t, uint64_t);
    if (type == "u64" || type == "b64" || type == "f64" || type == "s64")
        return BOTH(uint64_t, uint64_t);
#undef BOTH
    return NULL;
}
template <bool WIDE> Run access(Space s, bool load, const std::string &type, bool to_wide)
{
    return s == GLOBAL ? access<GLOBAL, WIDE>(load, type, to_wide) :
           s == SHARED ? access<SHARED, WIDE>(load, type, to_wide) :
           s == LOCAL  ? access<LOCAL, WIDE>(load, type, to_wide) :
                         access<PARAM, WIDE>(load, type, to_wide);
}
template <class T> Run atomic(Space s, bool wide, const std::string &what)
{
    return s == GLOBAL ? wide ? atomic<GLOBAL, T, true>(what) : NULL :
           s == SHARED ? wide ? atomic<SHARED, T, true>(what) : atomic<SHARED, T, false>(what) :
                         NULL;
}
bool space_of(const std::string &word, Space *s)
{
    static const char *const names[] = { "global", "shared", "local", "param" };
    for (unsigned i = 0; i < 4; i++)
        if (word == names[i])
            return *s = (Space)i, true;
    return false;
}
bool is_cache_or_order(const std::string &word) /* qualifiers for caching and visibility; no effect here */
{
    return word == "nc" || word == "cg" || word == "ca" || word == "cs" || word == "acquire" ||
           word == "gpu" || word == "relaxed" || word == "volatile";
}
unsigned size_of(const std::string &type) { return (unsigned)atoi(type.c_str() + 1) / 8; }
} // namespace

bool memory_access(const std::string &name, std::string &widths, Instruction &i)
{
    std::vector<std::string> part = parts_of(name);
    const std::string type = part.back();
    Space space = GLOBAL; /* also for generic addresses: only global ones are converted to generic */
    bool load = part[0] == "ld", atom = part[0] == "atom", relaxed = false;
    if (!load && !atom && part[0] != "st")
        return false;
    i.count = 1;
    i.bytes = (uint8_t)size_of(type);
    std::string what;
    for (size_t p = 1; p + 1 < part.size(); p++) {
        if (part[p] == "v2" || part[p] == "v4")
            i.count = (uint8_t)(part[p][1] - '0');
        else if (space_of(part[p], &space)) {
        } else if (atom && what.empty())
            what = part[p];
        else if (!is_cache_or_order(part[p]))
            return false;
        relaxed |= part[p] == "relaxed";
    }
    if (widths.size() != (atom ? 3u : i.count + 1u))
        return false;
    const char own = i.bytes == 8 ? 'L' : 'W';
    for (char &letter : widths) /* an address without a register is 64 bits wide */
        letter = letter != 'C' ? letter : &letter == &widths[atom ? 1 : load ? i.count : 0] ? 'L' : own;
    bool wide = widths[atom ? 1 : load ? i.count : 0] == 'L', to_wide = widths[load ? 0 : 1] == 'L';
    if (atom)
        i.run = type == "b32" || type == "u32" ? atomic<uint32_t>(space, wide, what) :
                type == "b64" || type == "u64" ? atomic<uint64_t>(space, wide, what) :
                                                 NULL;
    else if (relaxed && space == GLOBAL && i.bytes == 8 && i.count == 1 && wide)
        i.run = load ? poll_word : send_word;
    else
        i.run = wide ? access<true>(space, load, type, to_wide) : access<false>(space, load, type, to_wide);
    return i.run != NULL && !(i.bytes == 8 && !to_wide);
}
} // namespace ptx
