/* parse.cpp - reads a kernel's text: names become rows of a warp's file, symbols become addresses, functions
 * that are called become part of the kernel. Nothing is skipped in silence: what is not understood is a
 * failure. */
#include <string.h>
#include <stdlib.h>
#include "tests/ptx/words.h"

namespace ptx {
namespace {
struct Register {
    char width;
    uint32_t at, slot;
};
struct Range {
    char width;
    uint32_t at, slot, count;
};

/* Names that hold within braces. */
struct Scope {
    std::map<std::string, Register> registers, parameters;
    std::map<std::string, Range> ranges;
};
/* An operand; width 'C': a constant. */
struct Parsed {
    char width;
    Register r;
    uint64_t value;
    int64_t offset;
};
uint32_t row_bytes(char width) { return width == 'P' ? 32 : width == 'W' ? 4 * LANES : 8 * LANES; }

class Builder {
    Text &text;
    Kernel &k;
    Words *words = NULL;
    std::vector<Scope> scopes;
    /* calls that are being read, by number: labels are a function's own, and one of ours, ">", is its end */
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
        auto at = constants.find({ width, value });
        if (at != constants.end())
            return at->second;
        Register r = row(width);
        k.constants.push_back(Constant{ r.at, r.slot, width, value });
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
                    return in_range = Register{ r.width, r.at + i * row_bytes(r.width), r.slot + i },
                           &in_range;
            }
        }
        return NULL;
    }
    const Register *passed(const std::string &name) /* a parameter of a call: a row, too */
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
        auto at = symbols.find(name);
        if (at != symbols.end())
            return at->second;
        auto table = text.globals.find(name);
        if (table != text.globals.end())
            return (uint64_t)(uintptr_t)table->second.data();
        auto shared = text.shared.find(name);
        if (shared == text.shared.end())
            fail("nothing is named %s", name.c_str());
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
        if (o.at == NOWHERE) {
            Register made = row('W');
            o.at = made.at;
            o.slot = made.slot;
        }
        return Parsed{ 'W', Register{ 'W', o.at, o.slot }, 0, 0 };
    }
    Parsed simple(const std::string &word)
    {
        static const char *const special[SPECIALS] = { "%tid.x",    "%tid.y",           "%tid.z",
                                                       "%ntid.x",   "%ntid.y",          "%ntid.z",
                                                       "%ctaid.x",  "%ctaid.y",         "%ctaid.z",
                                                       "%nctaid.x", "%nctaid.y",        "%nctaid.z",
                                                       "%laneid",   "%cluster_ctarank", "%cluster_nctarank" };
        if (word == "_") {
            Register r = row('L');
            return Parsed{ 'L', r, 0, 0 };
        }
        if (is_number(word))
            return Parsed{ 'C', {}, number(word), 0 };
        const Register *r = find(word);
        if (!r && word[0] != '%')
            return Parsed{ 'C', {}, symbol(word), 0 };
        for (unsigned i = 0; i < SPECIALS; i++)
            if (word == special[i])
                return special_register(k.special[i]);
        if (!r)
            fail("no register is named %s", word.c_str());
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
    /* One, or those of a vector; says by a letter which of them it was. */
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
        const Meaning *m = arithmetic(name);
        if (!m)
            m = synchronising(name);
        for (const Parsed &p : all)
            widths += p.width;
        if (m) {
            widths = m->widths;
            i.run = m->run;
        } else if (!memory_access(name, widths, i))
            fail("no instruction %s is known", name.c_str());
        if (widths.size() != all.size())
            fail("%s has %zu operands, not %zu", name.c_str(), widths.size(), all.size());
        std::vector<Operand> list;
        for (size_t o = 0; o < all.size(); o++) {
            if (all[o].width == 'C')
                all[o].r = constant(widths[o], all[o].value);
            else if (o == 1 && all[o].width == 'L' && widths[o] == 'W' && name.compare(0, 4, "cvt.") == 0)
                all[o].r = lower_half(all[o], guard, unless);
            else if (all[o].width != widths[o])
                fail("operand %zu of %s is of another width", o + 1, name.c_str());
            list.push_back(Operand{ all[o].r.at, all[o].r.slot, all[o].offset });
        }
        i.operand = lasting(list);
        k.code.push_back(i);
    }
    Register lower_half(const Parsed &p, const Operand *guard,
                        bool unless) /* a cvt may take it of a wider one */
    {
        std::vector<Parsed> both = { Parsed{ 'W', row('W'), 0, 0 }, p };
        put("cvt.u32.u64", both, guard, unless);
        return both[0].r;
    }
    const Operand *lasting(const std::vector<Operand> &list)
    {
        k.operands.push_back(list);
        return k.operands.back().data();
    }
    const Operand *guarded(bool *unless) /* @%p, @!%p */
    {
        *unless = words->skip("!");
        Parsed p = simple(words->take());
        if (p.width != 'P')
            fail("a guard that is no predicate");
        return lasting({ Operand{ p.r.at, p.r.slot, 0 } });
    }
    void jump(const std::string &label, const Operand *guard, bool unless)
    {
        put("bra", BRANCH, guard, unless);
        jumps.push_back({ (uint32_t)k.code.size() - 1, std::to_string(frames.back()) + label });
    }
    /* A value goes to, or comes from, a parameter of a call: a row like others. */
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
        const Register *r = passed(words->take());
        if (!r) {
            *words = before;
            return false;
        }
        if (words->skip("+") && words->take() != "0")
            fail("a part of a call's parameter");
        words->expect("]");
        Parsed there{ r->width, *r, 0, 0 };
        if (load)
            all.push_back(there);
        else
            all.push_back(there), words->expect(","), operand(all);
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
            fail("no function is named %s", name.c_str());
        if (frames.size() > 8)
            fail("%s calls itself", name.c_str());
        Words inside(text, body->second), *outside = words;
        Scope own;
        results.insert(results.end(), arguments.begin(), arguments.end());
        words = &inside;
        for (const std::string &formal : formals(inside)) {
            const Register *r = results.empty() ? NULL : passed(results.front());
            if (!r)
                fail("%s is called with something else than its parameters", name.c_str());
            own.parameters[formal] = *r;
            results.erase(results.begin());
        }
        frames.push_back(++calls);
        scopes.push_back(own);
        try {
            statements();
        } catch (const Failure &f) {
            words = outside;
            fail("%s, line %u: %s", name.c_str(), inside.line, f.why.c_str());
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
    void statements() /* up to the closing brace */
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
                    fail("a declaration %s", word.c_str());
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
    void bounds() /* what stands between a kernel's parameters and its body */
    {
        while (!words->skip("{")) {
            std::string word = words->take();
            if (word == ".maxntid") {
                k.most_threads = (unsigned)atoi(words->take().c_str());
                while (words->skip(","))
                    k.most_threads *= (unsigned)atoi(words->take().c_str());
            } else if (word == ".minnctapersm")
                words->take();
            else
                fail("%s of a kernel", word.c_str());
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
                w.take(); /* the function's name */
        }
        w.expect("{");
        return names;
    }
    void settle()
    {
        for (auto &j : jumps) {
            auto to = labels.find(j.second);
            if (to == labels.end())
                fail("no label %s", j.second.c_str());
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
            bounds();
            statements();
            put("ret", RETURN, NULL, false);
            settle();
        } catch (const Failure &f) {
            fail("%s:%u: %s", text.path.c_str(), words->line, f.why.c_str());
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
    std::unique_ptr<Kernel> made(new Kernel());
    made->name = entry;
    made->text = &text;
    made->most_threads = 1024;
    for (Operand &s : made->special)
        s.at = NOWHERE;
    Builder(text, *made).build(body->second);
    k = std::move(made);
    return k.get();
}
} // namespace ptx
