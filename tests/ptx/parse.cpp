/* parse.cpp - translates a kernel's text. Register names become rows of a warp's register file, symbols
 * become addresses, and called functions are inlined. Any unknown construct is a failure. */
#include <string.h>
#include <stdlib.h>
#include "tests/ptx/words.h"

namespace ptx {
namespace {
struct Register { char width; uint32_t row, slot; };
struct Range { char width; uint32_t row, slot, count; };

/* Names that are valid within braces. */
struct Scope {
    std::map<std::string, Register> registers, parameters;
    std::map<std::string, Range> ranges;
};
/* An operand; width 'C' means a constant. */
struct Parsed { char width; Register r; uint64_t value; int64_t offset; };
uint32_t row_bytes(char width) { return width == 'P' ? 32 : width == 'W' ? 4 * LANES : 8 * LANES; }

class Builder {
    Text &text;
    Kernel &k;
    Words *words = NULL;
    std::vector<Scope> scopes;
    /* numbers of the calls being read: each function has its own labels, and label ">" is its end */
    std::vector<unsigned> frames;
    unsigned calls = 0;
    std::map<std::string, uint32_t> labels;
    std::vector<std::pair<uint32_t, std::string>> jumps;
    std::map<std::pair<char, uint64_t>, Register> constants;
    std::map<std::string, uint64_t> symbols; /* parameters, shared and local variables, tables */

    /* ---- rows ---- */
    Register row(char width)
    {
        Register r{ width, k.bytes, k.slots++ };
        k.bytes += row_bytes(width);
        return r;
    }
    static char width_of(const std::string &type)
    {
        return type == ".pred" ? 'P' : bytes_of(type) == 8 ? 'L' : 'W';
    }
    Register constant(char width, uint64_t value)
    {
        auto found = constants.find({ width, value });
        if (found != constants.end())
            return found->second;
        Register r = row(width);
        k.constants.push_back(Constant{ r.row, r.slot, width, value });
        return constants[{ width, value }] = r;
    }
    const Register *find(const std::string &name)
    {
        size_t digits = name.find_last_not_of("0123456789") + 1;
        static Register in_range;
        for (size_t s = scopes.size(); s-- > 0;) {
            auto one = scopes[s].registers.find(name);
            if (one != scopes[s].registers.end())
                return &one->second;
            auto many = scopes[s].ranges.find(name.substr(0, digits));
            if (digits < name.size() && many != scopes[s].ranges.end()) {
                const Range &r = many->second;
                uint32_t i = (uint32_t)atoi(name.c_str() + digits);
                if (i < r.count)
                    return in_range = Register{ r.width, r.row + i * row_bytes(r.width), r.slot + i },
                           &in_range;
            }
        }
        return NULL;
    }
    const Register *call_parameter(const std::string &name) /* a parameter of a call, which is also a row */
    {
        for (size_t s = scopes.size(); s-- > 0;) {
            auto p = scopes[s].parameters.find(name);
            if (p != scopes[s].parameters.end())
                return &p->second;
        }
        return NULL;
    }

    /* ---- declarations ---- */
    void registers() /* .reg TYPE NAME[<COUNT>], ..; */
    {
        char width = width_of(words->take());
        do {
            std::string name = words->take();
            if (words->skip("<")) {
                Range r{ width, k.bytes, k.slots, (uint32_t)atoi(words->take().c_str()) };
                for (uint32_t i = 0; i < r.count; i++)
                    row(width);
                scopes.back().ranges[name] = r;
                words->expect(">");
            } else
                scopes.back().registers[name] = row(width);
        } while (words->skip(","));
        words->expect(";");
    }
    void variable(size_t &end, uint64_t base) /* .align N TYPE NAME[COUNT]; */
    {
        Declared d = declared(*words);
        end = (end + d.align - 1) / d.align * d.align;
        symbols[d.name] = base + end;
        end += d.bytes;
        words->expect(";");
    }
    void parameter_of_call() /* .param TYPE NAME; */
    {
        Declared d = declared(*words);
        scopes.back().parameters[d.name] = row(d.bytes == 8 ? 'L' : 'W');
        words->expect(";");
    }
    bool declaration(const std::string &word)
    {
        if (word == ".reg")
            registers();
        else if (word == ".shared")
            variable(k.shared, STATIC_PART);
        else if (word == ".local")
            variable(k.local, 0);
        else if (word == ".param")
            parameter_of_call();
        else if (word == ".pragma")
            while (words->take() != ";") {}
        else
            return false;
        return true;
    }

    /* ---- operands ---- */
    uint64_t symbol(const std::string &name)
    {
        if (symbols.count(name))
            return symbols[name];
        auto table = text.globals.find(name);
        if (table != text.globals.end())
            return (uint64_t)(uintptr_t)table->second.data();
        auto shared = text.shared.find(name);
        if (shared == text.shared.end())
            fail("unknown symbol %s", name.c_str());
        if (shared->second.dynamic)
            return symbols[name] = DYNAMIC_PART;
        size_t align = shared->second.align;
        k.shared = (k.shared + align - 1) / align * align;
        symbols[name] = STATIC_PART + k.shared;
        k.shared += shared->second.bytes;
        return symbols[name];
    }
    Parsed special_register(Operand &o)
    {
        if (o.row == NOWHERE) {
            Register created = row('W');
            o.row = created.row;
            o.slot = created.slot;
        }
        return Parsed{ 'W', Register{ 'W', o.row, o.slot }, 0, 0 };
    }
    Parsed simple(const std::string &word)
    {
        static const char *const special[SPECIALS] = { "%tid.x",    "%tid.y",           "%tid.z",
                                                       "%ntid.x",   "%ntid.y",          "%ntid.z",
                                                       "%ctaid.x",  "%ctaid.y",         "%ctaid.z",
                                                       "%nctaid.x", "%nctaid.y",        "%nctaid.z",
                                                       "%laneid",   "%cluster_ctarank", "%cluster_nctarank" };
        if (word == "_")
            return Parsed{ 'L', row('L'), 0, 0 };
        if (is_number(word))
            return Parsed{ 'C', {}, number(word), 0 };
        const Register *r = find(word);
        if (!r && word[0] != '%')
            return Parsed{ 'C', {}, symbol(word), 0 };
        for (unsigned i = 0; i < SPECIALS; i++)
            if (word == special[i])
                return special_register(k.special[i]);
        if (!r)
            fail("unknown register %s", word.c_str());
        return Parsed{ r->width, *r, 0, 0 };
    }
    Parsed address() /* BASE], BASE+OFFSET] */
    {
        Parsed p = simple(words->take());
        if (words->skip("+"))
            p.offset = (int64_t)number(words->take());
        words->expect("]");
        if (p.width == 'C') {
            p.offset += (int64_t)p.value;
            p.value = 0;
        }
        return p;
    }
    /* Reads an operand, or the elements of a vector. Returns its form: 'a' address, 's' single, '|' pair, 'v'
     * vector. */
    char operand(std::vector<Parsed> &all)
    {
        std::string word = words->take();
        if (word == "[")
            return all.push_back(address()), 'a';
        if (word != "{") {
            all.push_back(simple(word));
            if (words->skip("|"))
                return all.push_back(simple(words->take())), '|';
            return 's';
        }
        do
            all.push_back(simple(words->take()));
        while (words->skip(","));
        words->expect("}");
        return 'v';
    }

    /* ---- instructions ---- */
    Instruction &put(const std::string &name, Kind kind, const Operand *guard, bool unless)
    {
        k.names.push_back(name);
        k.code.push_back(Instruction{ NULL, NULL, guard, 0, NOWHERE, words->line, kind, unless, 1, 0,
                                      k.names.back().c_str() });
        return k.code.back();
    }
    void put(const std::string &name, std::vector<Parsed> &all, const Operand *guard, bool unless)
    {
        Instruction i = put(name, PLAIN, guard, unless);
        k.code.pop_back();
        std::string widths;
        const Implementation *m = find_arithmetic(name);
        if (!m)
            m = find_sync(name);
        for (const Parsed &p : all)
            widths += p.width;
        if (m) {
            widths = m->widths;
            i.run = m->run;
        } else if (!memory_access(name, widths, i))
            fail("unknown instruction %s", name.c_str());
        if (widths.size() != all.size())
            fail("%s has %zu operands, not %zu", name.c_str(), widths.size(), all.size());
        std::vector<Operand> list;
        for (size_t o = 0; o < all.size(); o++) {
            if (all[o].width == 'C')
                all[o].r = constant(widths[o], all[o].value);
            else if (o == 1 && all[o].width == 'L' && widths[o] == 'W' && name.compare(0, 4, "cvt.") == 0)
                all[o].r = lower_half(all[o], guard, unless);
            else if (all[o].width != widths[o])
                fail("operand %zu of %s has a different width", o + 1, name.c_str());
            list.push_back(Operand{ all[o].r.row, all[o].r.slot, all[o].offset });
        }
        i.operand = store_operands(list);
        k.code.push_back(i);
    }
    Register lower_half(const Parsed &p, const Operand *guard,
                        bool unless) /* cvt may read the lower half of a wider register */
    {
        std::vector<Parsed> both = { Parsed{ 'W', row('W'), 0, 0 }, p };
        put("cvt.u32.u64", both, guard, unless);
        return both[0].r;
    }
    const Operand *store_operands(const std::vector<Operand> &list)
    {
        k.operands.push_back(list);
        return k.operands.back().data();
    }
    const Operand *guarded(bool *unless) /* @%p, @!%p */
    {
        *unless = words->skip("!");
        Parsed p = simple(words->take());
        if (p.width != 'P')
            fail("a guard is not a predicate");
        return store_operands({ Operand{ p.r.row, p.r.slot, 0 } });
    }
    void jump(const std::string &label, const Operand *guard, bool unless)
    {
        put("bra", BRANCH, guard, unless);
        jumps.push_back({ (uint32_t)k.code.size() - 1, std::to_string(frames.back()) + label });
    }
    /* Reads ld.param and st.param of a call's parameter, which become moves between rows. */
    bool parameter_moved(const std::string &name, const Operand *guard, bool unless)
    {
        bool load = name.compare(0, 9, "ld.param.") == 0;
        if ((!load && name.compare(0, 9, "st.param.") != 0))
            return false;
        Words before = *words;
        std::vector<Parsed> all;
        if (load)
            operand(all), words->expect(",");
        words->expect("[");
        const Register *r = call_parameter(words->take());
        if (!r) {
            *words = before;
            return false;
        }
        if (words->skip("+") && words->take() != "0")
            fail("access to a part of a call's parameter");
        words->expect("]");
        Parsed parameter{ r->width, *r, 0, 0 };
        if (load)
            all.push_back(parameter);
        else
            all.push_back(parameter), words->expect(","), operand(all);
        words->expect(";");
        put(r->width == 'L' ? "mov.b64" : "mov.b32", all, guard, unless);
        return true;
    }
    std::vector<std::string> names_in_parentheses()
    {
        std::vector<std::string> names;
        words->expect("(");
        while (!words->skip(")")) {
            names.push_back(words->take());
            words->skip(",");
        }
        return names;
    }
    void call() /* (RESULT), FUNCTION, (PARAMETERS); */
    {
        std::vector<std::string> results = names_in_parentheses();
        words->expect(",");
        std::string name = words->take();
        words->expect(",");
        std::vector<std::string> arguments = names_in_parentheses();
        words->expect(";");
        auto body = text.functions.find(name);
        if (body == text.functions.end())
            fail("unknown function %s", name.c_str());
        if (frames.size() > 8)
            fail("%s calls itself", name.c_str());
        Words inside(text, body->second), *outside = words;
        Scope scope;
        results.insert(results.end(), arguments.begin(), arguments.end());
        words = &inside;
        for (const std::string &formal : formals(inside)) {
            const Register *r = results.empty() ? NULL : call_parameter(results.front());
            if (!r)
                fail("call of %s: the arguments do not match its parameters", name.c_str());
            scope.parameters[formal] = *r;
            results.erase(results.begin());
        }
        frames.push_back(++calls);
        scopes.push_back(scope);
        try {
            statements();
        } catch (const Failure &f) {
            words = outside;
            fail("%s, line %u: %s", name.c_str(), inside.line, f.message.c_str());
        }
        scopes.pop_back();
        labels[std::to_string(frames.back()) + ">"] = (uint32_t)k.code.size();
        frames.pop_back();
        words = outside;
    }
    void ordinary(const std::string &name, const Operand *guard, bool unless)
    {
        std::vector<Parsed> all;
        std::string kinds, whole = name;
        while (!words->skip(";")) {
            if (words->skip("%clock64"))
                whole = "clock64";
            else
                kinds += operand(all);
            words->skip(",");
        }
        if (name == "mov.b64" && kinds != "ss")
            whole = kinds == "vs" ? "unpack.b64" : "pack.b64";
        if (kinds[0] == '|')
            whole += "|p";
        put(whole, all, guard, unless);
    }
    void instruction(const std::string &name, const Operand *guard, bool unless)
    {
        const bool call_ends = frames.size() > 1 && (name == "ret" || name == "exit");
        if (name == "call.uni" && !guard)
            return call();
        if (name == "bra" || name == "bra.uni")
            jump(words->take(), guard, unless);
        else if (call_ends)
            jump(">", guard, unless);
        else if (name == "ret" || name == "exit")
            put(name, RETURN, guard, unless);
        else if (name == "trap")
            put(name, TRAP, guard, unless);
        else if (!parameter_moved(name, guard, unless))
            return ordinary(name, guard, unless);
        else
            return;
        words->expect(";");
    }
    void statements() /* until the closing brace */
    {
        for (;;) {
            std::string word = words->take();
            if (word == "}")
                return;
            if (word == "{") {
                scopes.push_back(Scope());
                statements();
                scopes.pop_back();
            } else if (word[0] == '.') {
                if (!declaration(word))
                    fail("unknown declaration %s", word.c_str());
            } else if (word == "@") {
                bool unless;
                const Operand *guard = guarded(&unless);
                instruction(words->take(), guard, unless);
            } else if (words->skip(":"))
                labels[std::to_string(frames.back()) + word] = (uint32_t)k.code.size();
            else
                instruction(word, NULL, false);
        }
    }
    void parameters()
    {
        words->expect("(");
        size_t end = 0;
        while (!words->skip(")")) {
            words->expect(".param");
            Declared d = declared(*words);
            end = (end + d.align - 1) / d.align * d.align;
            symbols[d.name] = end;
            k.parameters.push_back(Parameter{ end, d.bytes });
            end += d.bytes;
            words->skip(",");
        }
        k.parameter_bytes = end;
    }
    void attributes() /* attributes between a kernel's parameters and its body */
    {
        while (!words->skip("{")) {
            std::string word = words->take();
            if (word == ".maxntid") {
                k.max_threads = (unsigned)atoi(words->take().c_str());
                while (words->skip(","))
                    k.max_threads *= (unsigned)atoi(words->take().c_str());
            } else if (word == ".minnctapersm")
                words->take();
            else
                fail("unknown attribute %s of a kernel", word.c_str());
        }
    }
    std::vector<std::string> formals(Words &w) /* (.param TYPE NAME, ..) {; the result comes first */
    {
        std::vector<std::string> names;
        for (unsigned list = 0; list < 2; list++) {
            w.expect("(");
            while (!w.skip(")")) {
                w.expect(".param");
                names.push_back(declared(w).name);
                w.skip(",");
            }
            if (list == 0)
                w.take(); /* skip the function's name */
        }
        w.expect("{");
        return names;
    }
    void resolve_jumps()
    {
        for (auto &j : jumps) {
            auto to = labels.find(j.second);
            if (to == labels.end())
                fail("unknown label %s", j.second.c_str());
            k.code[j.first].target = to->second;
        }
    }

  public:
    Builder(Text &t, Kernel &kernel) : text(t), k(kernel) {}
    void build(const Text::Body &body)
    {
        Words from(text, body);
        words = &from;
        scopes.push_back(Scope()), frames.push_back(0);
        try {
            parameters();
            attributes();
            statements();
            put("ret", RETURN, NULL, false);
            resolve_jumps();
        } catch (const Failure &f) {
            fail("%s:%u: %s", text.path.c_str(), words->line, f.message.c_str());
        }
        find_joins(k);
    }
};
} // namespace

Kernel *parse(Text &text, const std::string &entry)
{
    std::unique_ptr<Kernel> &k = text.parsed[entry];
    if (k)
        return k.get();
    auto body = text.entries.find(entry);
    if (body == text.entries.end())
        return NULL;
    std::unique_ptr<Kernel> kernel(new Kernel());
    kernel->name = entry;
    kernel->text = &text;
    kernel->max_threads = 1024;
    for (Operand &s : kernel->special)
        s.row = NOWHERE;
    Builder(text, *kernel).build(body->second);
    k = std::move(kernel);
    return k.get();
}
} // namespace ptx
