/* alu.cpp - arithmetic: applies the formulas of instructions.def to rows of 32 values. */
#include <cmath>
#include <unordered_map>
#include <utility>
#include "tests/ptx/ptx.h"

namespace ptx {
namespace {
/* ---- types: `cell` is stored in a row, `value` is used by a formula ---- */
#define CELL __attribute__((may_alias))
#define TYPE(name, c, v, letter)          \
    struct name {                         \
        typedef c cell CELL;              \
        typedef v value;                  \
        static const char width = letter; \
    };
TYPE(x16, uint32_t, uint16_t, 'W')
TYPE(u16, uint32_t, uint16_t, 'W')
TYPE(s16, uint32_t, int16_t, 'W')
TYPE(x32, uint32_t, uint32_t, 'W')
TYPE(u32, uint32_t, uint32_t, 'W')
TYPE(s32, int32_t, int32_t, 'W')
TYPE(f32, float, float, 'W')
TYPE(x64, uint64_t, uint64_t, 'L')
TYPE(u64, uint64_t, uint64_t, 'L')
TYPE(s64, int64_t, int64_t, 'L')
TYPE(f64, double, double, 'L')
#undef TYPE

/* ---- formulas without a C operator ---- */
template <class T> T divide(T a, T b) /* defined for all operands, as on a GPU */
{
    return b == 0 ? ~(T)0 : b == -1 ? (T)(0 - (typename std::make_unsigned<T>::type)a) : a / b;
}
template <class T> T insert_bits(T a, T b, uint32_t at, uint32_t length, uint32_t bits)
{
    at &= 255;
    length &= 255;
    if (at >= bits || !length)
        return b;
    T mask = (length >= bits ? ~(T)0 : ((T)1 << length) - 1) << at;
    return (b & ~mask) | (a << at & mask);
}
template <class T> T minimum(T a, T b)
{
    return a != a ? b : b != b ? a : a < b || (a == b && signbit(a)) ? a : b;
}
template <class T> T maximum(T a, T b)
{
    return a != a ? b : b != b ? a : a > b || (a == b && !signbit(a)) ? a : b;
}
float flushed(float a) { return fabsf(a) < 0x1p-126f ? copysignf(0, a) : a; }
double upper_half(double a) { return emu::bits<double>(emu::bits<uint64_t>(a) & ~0xFFFFFFFFull); }
/* r minus the exact sum a + b, with the right sign (Knuth's two-sum) */
double rounding_excess(float r, double a, double b)
{
    double s = a + b, back = s - a, rest = (a - (s - back)) + (b - back);
    return ((double)r - s) - rest;
}
float toward_zero(float r, double a, double b)
{
    double excess = isfinite(r) ? rounding_excess(r, a, b) : 0;
    return (r > 0 && excess > 0) || (r < 0 && excess < 0) ? nextafterf(r, 0) : r;
}
float downward(float r, double a, double b)
{
    return isfinite(r) && rounding_excess(r, a, b) > 0 ? nextafterf(r, -INFINITY) : r;
}
template <class T> T saturate(double a) /* saturates a whole number; NaN becomes 0 */
{
    const double least = std::is_signed<T>::value ? -0x1p31 : 0,
                 most = std::is_signed<T>::value ? 0x1p31 - 1 : 0x1p32 - 1;
    return a != a ? 0 : (T)(a < least ? least : a > most ? most : a);
}

/* ---- rows ---- */
/* Replaces any NaN by the one that GPUs return. */
template <class V> V canonical(V v) { return v; }
float canonical(float v) { return v != v ? gpu_nan() : v; }
template <class D, class... A, class F>
void lanes(uint32_t active, typename D::cell *d, F f, const typename A::cell *...a)
{
    each(active, [=](unsigned l) { d[l] = canonical((typename D::value)f((typename A::value)a[l]...)); });
}
template <class D, class... A, class F, size_t... N>
void rows(Warp &w, const Operand *o, F f, std::index_sequence<N...>)
{
    lanes<D, A...>(w.active, w.row<typename D::cell>(o[0]), f, w.row<typename A::cell>(o[N + 1])...);
    set_known(w, o[0], (w.known[o[N + 1].slot] & ...));
}
template <class D, class... A, class F> void rows(Warp &w, const Instruction &i, F f)
{
    rows<D, A...>(w, i.operand, f, std::index_sequence_for<A...>());
}
void unpack(Warp &w, const Instruction &i)
{
    const Operand *o = i.operand;
    u32::cell *low = w.row<u32::cell>(o[0]), *high = w.row<u32::cell>(o[1]);
    const u64::cell *a = w.row<u64::cell>(o[2]);
    each(w.active, [=](unsigned l) { low[l] = (uint32_t)a[l], high[l] = (uint32_t)(a[l] >> 32); });
    set_known(w, o[0], w.known[o[2].slot]), set_known(w, o[1], w.known[o[2].slot]);
}
/* An unselected operand may be unwritten. */
template <class T> void select(Warp &w, const Instruction &i)
{
    const Operand *o = i.operand;
    typename T::cell *d = w.row<typename T::cell>(o[0]);
    const typename T::cell *a = w.row<typename T::cell>(o[1]), *b = w.row<typename T::cell>(o[2]);
    uint32_t first = *w.row<u32::cell>(o[3]);
    each(w.active, [=](unsigned l) { d[l] = first >> l & 1 ? a[l] : b[l]; });
    uint32_t known = (w.known[o[1].slot] & first) | (w.known[o[2].slot] & ~first);
    set_known(w, o[0], known & w.known[o[3].slot]);
}
template <class T, class F> void compare(Warp &w, const Instruction &i, F f)
{
    const Operand *o = i.operand;
    const typename T::cell *a = w.row<typename T::cell>(o[1]), *b = w.row<typename T::cell>(o[2]);
    uint32_t yes = 0, *d = w.row<uint32_t>(o[0]);
    each(w.active, [=, &yes](unsigned l) {
        yes |= (uint32_t)f((typename T::value)a[l], (typename T::value)b[l]) << l;
    });
    *d = (*d & ~w.active) | yes;
    set_known(w, o[0], w.known[o[1].slot] & w.known[o[2].slot]);
}
template <class F> void combine(Warp &w, const Instruction &i, unsigned operands, F f)
{
    const Operand *o = i.operand;
    const Operand &last = o[operands];
    uint32_t *d = w.row<uint32_t>(o[0]), r = f(*w.row<uint32_t>(o[1]), *w.row<uint32_t>(last));
    *d = (*d & ~w.active) | (r & w.active);
    set_known(w, o[0], w.known[o[1].slot] & w.known[last.slot]);
}

/* ---- the table ---- */
template <class... T> std::string letters() { return std::string{ T::width... }; }
#define OP(name, parameters, formula, D, ...)                                                             \
    { name, letters<D, __VA_ARGS__>(), [](Warp &w, const Instruction &i) {                                \
         rows<D, __VA_ARGS__>(w, i, [] parameters -> D::value { return (D::value)(formula); });           \
     } },
#define OP1(name, D, A, formula)          OP(name, (A::value a), formula, D, A)
#define OP2(name, D, A, B, formula)       OP(name, (A::value a, B::value b), formula, D, A, B)
#define OP3(name, D, A, B, C, formula)    OP(name, (A::value a, B::value b, C::value c), formula, D, A, B, C)
#define OP4(name, R, A, B, C, D, formula) \
    OP(name, (A::value a, B::value b, C::value c, D::value d), formula, R, A, B, C, D)
#define CHOICE(name, T) { name, letters<T, T, T>() + "P", select<T> },
#define COMPARE(name, T, formula)                                              \
    { "setp." name, "P" + letters<T, T>(), [](Warp &w, const Instruction &i) { \
         compare<T>(w, i, [](T::value a, T::value b) { return formula; });    \
     } },
#define LOGIC(name, formula)                                                \
    { name, "PPP", [](Warp &w, const Instruction &i) {                      \
         combine(w, i, 2, [](uint32_t a, uint32_t b) { return formula; }); \
     } },
#define LOGIC1(name, formula)                                             \
    { name, "PP", [](Warp &w, const Instruction &i) {                     \
         combine(w, i, 1, [](uint32_t a, uint32_t) { return formula; }); \
     } },
const Implementation table[] = {
    { "unpack.b64", "WWL", unpack }, /* mov.b64 {low, high}, a */
#include "tests/ptx/instructions.def"
};
} // namespace

const Implementation *find_arithmetic(const std::string &name)
{
    static std::unordered_map<std::string, const Implementation *> &known =
        *new std::unordered_map<std::string, const Implementation *>;
    if (known.empty())
        for (const Implementation &m : table)
            known[m.name] = &m;
    auto found = known.find(name);
    return found == known.end() ? NULL : found->second;
}
} // namespace ptx
