#!/usr/bin/env python3
"""amalgamate.py OUT VERSION [-DMACRO] HEADER.. -- SOURCE..    writes the library as two files: weft.h, weft.c in OUT

weft.h has the public headers. weft.c has the sources, each after the private headers that it is the first to need. The
macros of a source end with it. A name of one source that means something else in another source or header gets the name
of the source at its end (rows_of_join). A large text that several kernels include (core/cpu/tier.h) is a part: weft.c
includes itself to get it, and its names get a prefix by K, the macro of the instruction set."""
import functools
import os
import pathlib
import re
import sys

V3 = "avx2,fma,bmi,bmi2,f16c,lzcnt,movbe"
BF16 = "arch=armv8.2-a+bf16"
V4 = V3 + ",avx512f,avx512bw,avx512cd,avx512dq,avx512vl"
X86, FLOAT = "defined __x86_64__", " && !defined WEFT_DOUBLE"
ARM = "defined __aarch64__ && (!defined __clang__ || __clang_major__ >= 16)"
# The sources that mk/compile.mk compiles with other flags: the CPU and the features that each is compiled for.
KERNELS = {
    "core/cpu/generic.c": None,
    "core/cpu/avx2.c": (X86, V3),
    "core/cpu/amx_emulated.c": (X86 + FLOAT, V3),
    "core/cpu/avx512.c": (X86, V4),
    "core/cpu/amx.c": (X86 + FLOAT, V4 + ",amx-tile,amx-bf16"),
    "core/cpu/neon_bf16.c": (ARM + FLOAT, BF16),
}
EXACT = "core/random.c"
PART = 50000  # bytes: a text of this size is a part
WORD = re.compile(r"[A-Za-z_]\w*")
TOKEN = re.compile(r"""/\*.*?\*/|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|(?:\.|->)\s*[A-Za-z_]\w*|[A-Za-z_]\w*"""
                   r"""|\d[\w.]*|\s+|.""", re.S)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">].*\n', re.M)
MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.M)
GUARD = re.compile(r"^#ifndef (\w+_H)\n#define \1\n(.*)^#endif.*\n\Z", re.M | re.S)
STATIC = "static", "INLINE", "CELL_FN", "WEFT__BOTH", "CELL_FACT"
once, unconditional, parts = set(), set(), {}  # headers that are written, system headers, parts by their path


@functools.cache
def text_of(path):
    return pathlib.Path(path).read_text()


@functools.cache
def is_guarded(path):
    return bool(GUARD.search(text_of(path)))


@functools.cache
def read(path):
    """The text of a file without its guard."""
    return GUARD.sub(r"\2", text_of(path))


def macros_of(text):
    return set(MACRO.findall(text))


@functools.cache
def included(path):
    """The files that a file includes, with the matches of INCLUDE; None: a system header."""
    near = pathlib.Path(path).parent
    return [(m, None if m[1] == "<" else m[2] if pathlib.Path(m[2]).exists() else os.path.normpath(near / m[2]))
            for m in INCLUDE.finditer(read(path))]


@functools.cache
def closure(path):
    """All files that a file includes, directly or not."""
    direct = [name for _, name in included(path) if name]
    return {f for name in direct for f in [name, *closure(name)]}


@functools.cache
def has_functions(path):
    return bool(re.search(r"^(?:%s)\b.*\(" % "|".join(STATIC), read(path), re.M))


def expanded(path, written):
    """The text of a file, with what it includes. written: the headers that are not written again; a part has its own,
    for headers with functions, because functions are compiled for each instruction set."""
    text, end, out = read(path), 0, []
    for m, name in included(path):
        out += text[end:m.start()], include(m, name, text[:m.start()], written)
        end = m.end()
    return "".join(out) + text[end:]


def is_inside(before):
    """Whether a condition is open after a text."""
    count = [len(re.findall(rf"^[ \t]*#[ \t]*{word}", before, re.M)) for word in ("if", "endif")]
    return count[0] > count[1]


def include(m, name, before, written):
    """The text that replaces a line with #include."""
    if name is None:
        if is_inside(before):
            return m[0]
        known = m[2] in unconditional
        unconditional.add(m[2])
        return "" if known else m[0]
    if name in parts:
        return f'#define WEFT__PART {list(parts).index(name) + 1}\n#include "weft.c"\n#undef WEFT__PART\n'
    if not is_guarded(name):
        return expanded(name, written)
    seen = written if has_functions(name) and name not in public else once
    if name not in seen:
        seen.add(name)
        return expanded(name, written)
    inner = [] if written is once else [(n, f) for n, f in included(name) if f and is_guarded(f)]
    return "".join(include(n, f, "", written) for n, f in inner)


def declared(text):
    """The names that a text declares at file scope: types, tags, constants, static functions and variables."""
    names, item, depth = set(), [], 0
    for t in TOKEN.findall(re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*\n", "", text, flags=re.M)):
        if t.isspace() or t.startswith("/*"):
            continue
        item = [t] if t in ("static", "typedef") and item[-1:] == [")"] and not depth else [*item, t]
        depth += (t in "{(") - (t in "})")
        if depth or not (t == ";" or t == "}" and re.search(r"^[^={]*\) \{", " ".join(item))):
            continue
        s = re.sub(r"__attribute__ \( \( .*? \) \) (?=[\w;{])", "", " ".join(item))
        names.update(re.findall(r"\b(?:struct|union|enum) (\w+) \{", s))
        if item[0] in ("typedef", "enum"):
            for body in re.findall(r"\benum (?:\w+ )?\{(.*?)\}", s):
                names.update(re.findall(r"(?:^|,) *([A-Za-z_]\w*)(?= *(?:[=,]|$))", body))
        if item[0] in ("typedef", *STATIC):
            head = re.sub(r"\{.*\}", "", s if item[0] == "typedef" else s.split("=")[0]).rstrip(" ;")
            found = re.search(r"(\w+) \((?! \*)|\( \*(?: const)? (\w+)|(\w+)(?: \[.*\])?$", head)
            names.update(filter(None, found.groups()))
        if item[0] == "static" and "{" not in item:  # static const double A = 1, B = 2;
            names.update(re.findall(r"([A-Za-z_]\w*)(?: \[[^]]*\])* = ", s))
        item = []
    return names


def renamed(text, new):
    """The text with new names, except for members of structs."""
    out, structs, last, tokens = [], [], ["", ""], TOKEN.findall(text)
    for i, t in enumerate(tokens):
        if t == "{":
            structs.append("struct" in last or "union" in last)
        elif t == "}" and structs:
            structs.pop()
        if t in new:
            following = "".join(tokens[i + 1:i + 3]).strip()[:1]
            is_member = structs and structs[-1] and following in list(";,[:)")
            out.append(t if is_member else new[t])
        else:
            out.append(t)
        last = last if t.isspace() else [last[1], t]
    return "".join(out)


def undefine(names):
    return "".join(f"#undef {m}\n" for m in sorted(names))


def title(path):
    return f"\n/* ==== {path} ==== */\n"


def private(path):
    return [h for h in closure(path) if is_guarded(h) and h not in public]


def ordinary(sources):
    """The texts of the sources without kernels. <tgmath.h> changes the meaning of sqrt, so its users come last."""
    headers = {h: (declared(read(h)), macros_of(read(h))) for s in sources for h in private(s)}
    text, own = {}, {}
    for s in sorted(sources, key=lambda s: any("<tgmath.h>" in text_of(f) for f in [s, *closure(s)])):
        before = "".join(include(m, n, "", once) for m, n in included(s)
                         if (is_guarded(n) if n else not is_inside(read(s)[:m.start()])))
        text[s] = before, expanded(s, once)
        own[s] = declared(text[s][1])
    for s, (before, body) in text.items():
        foreign = [v for h, v in headers.items() if h not in closure(s)]
        macros = {m for _, ms in foreign for m in ms}
        known = {n for names, _ in foreign for n in names} | macros
        others = {n for t in own if t != s for n in own[t]}
        clash = own[s] & (others | known) | macros_of(body) & known | set(WORD.findall(body)) & macros
        parts_of = pathlib.Path(s).with_suffix("").parts
        short = parts_of[-1] if sum(t.endswith(f"/{parts_of[-1]}.c") for t in sources) == 1 else "_".join(parts_of)
        body = renamed(body, {n: f"{short}__{n}" for n in clash if not n.lower().startswith("weft_")})
        exact = "#ifdef __clang__\n#pragma clang fp contract(%s)\n#endif\n"
        if s == EXACT:
            body = exact % "off" + body + exact % "on"
        yield before + title(s) + body + undefine(macros_of(body))


def part(path, kernels):
    """The text of a part. Each of its names gets the prefix of K."""
    text = expanded(path, set())
    given = {m for k in kernels for m in macros_of(read(k))}
    needed = {h for k in kernels for h in closure(k)}
    foreign = {m for h in once - needed for m in macros_of(read(h))} & set(WORD.findall(text))
    pasted = re.compile(r"(?m)^(#define V_.*)|(?<!K\()(?<![\w#])(?!WEFT__)(\w+(?:##\w+)+)")
    # tile_##rows: also tile_4 is such a name. Names that begin with a parameter are not written out anywhere.
    forms = "|".join(re.sub(r"##\w+(##)?", r"\\w+", m[2]) for m in pasted.finditer(text)
                     if m[2] and not m[2].startswith("name##"))
    text = pasted.sub(lambda m: m[1] or f"K({m[2]})", text)
    members = set(re.findall(r"(?:\.|->)(\w+)", text))
    text = renamed(text, {n: f"own_{n}" for n in declared(text) & members})
    names = declared(text) - {"K"} - macros_of(text)
    names |= {w for w in WORD.findall(text) if re.fullmatch(forms, w) and w not in members}
    return undefine((macros_of(text) | foreign) - given) + \
        "".join(f"#define {n} K({n})\n" for n in sorted(names)) + text


def kernel(path):
    """The text of a kernel source, between the pragmas for its instruction set."""
    text = expanded(path, once)
    text += undefine(macros_of(text) - {"WEFT__PART"})
    if not KERNELS[path]:
        return title(path) + text
    cpu, features = KERNELS[path]
    macros = ["__ARM_FEATURE_BF16_VECTOR_ARITHMETIC"] if features == BF16 else \
        [f"__{f.upper().replace('-', '_')}__" for f in features.split(",")]
    frame = f"#if {cpu}\n#ifdef __clang__\n%s#else\n%s#endif\n#endif\n"
    wide = ",prefer-vector-width=512" if "avx512f" in features else ""
    push = f'#pragma clang attribute push(__attribute__((target("{features}"))), apply_to = function)\n'
    push += "".join(f'#pragma push_macro("{m}")\n#undef {m}\n#define {m} 1\n' for m in macros)
    pop = "#pragma clang attribute pop\n" + "".join(f'#pragma pop_macro("{m}")\n' for m in macros)
    return title(path) + frame % (push, f'#pragma GCC push_options\n#pragma GCC target("{features}{wide}")\n') + \
        text + frame % (pop, "#pragma GCC pop_options\n")


BEGIN = """#ifndef WEFT__PART
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64
#endif
#include "weft.h"
#ifdef __clang__
#pragma clang diagnostic ignored "-Wunused-function"
#elif defined __FP_FAST_FMA || defined __FP_FAST_FMAF /* products are not fused with sums, as in -std=c11 */
#pragma GCC optimize("fp-contract=off")
#endif
"""
KERNELS_BEGIN = """
/* ==== kernels, once for each instruction set ==== */
#ifdef __SSE2__
#include <immintrin.h>
#elif defined __aarch64__
#include <arm_neon.h>
#endif
#ifdef __clang__
#pragma clang fp contract(fast)
#else
#pragma GCC optimize("O3", "fp-contract=fast")
#endif
"""


def main():
    global public
    out, version, split = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv.index("--")
    options, sources = sys.argv[3:split], sys.argv[split + 1:]
    if {f + ".c" for f in re.findall(r"\$\(B\)/(core/[\w/]+)\.o", text_of("mk/compile.mk"))} != {*KERNELS, EXACT}:
        sys.exit("amalgamate.py: KERNELS and EXACT do not list the sources with flags of their own in mk/compile.mk")
    headers = [o for o in options if not o.startswith("-D")]
    defines = "".join(f"#ifndef {o[2:]}\n#define {o[2:]}\n#endif\n" for o in options if o.startswith("-D"))
    about = f"weft {version}, written by `make weft.c`. docs/drop_in.md says how to use it.\n *\n"
    about += "".join(f" * {line}".rstrip() + "\n" for line in text_of("LICENSE").splitlines()) + " */\n"
    public = {h for top in headers for h in [top, *closure(top)]}
    api = "".join("" if h in once else once.add(h) or title(h) + expanded(h, once) for h in headers)
    (out / "weft.h").write_text(f"/* weft.h - {about}#ifndef WEFT_H\n#define WEFT_H\n{defines}{api}#endif\n")

    kernels = [s for s in KERNELS if s in sources]
    body = "".join(ordinary([s for s in sources if s not in kernels])) + KERNELS_BEGIN
    for name in [f for k in kernels for _, f in included(k) if f and not is_guarded(f)]:
        if name not in parts and len(expanded(name, set())) > PART:
            parts[name] = part(name, kernels)
    body += "".join(kernel(k) for k in kernels)
    body += "".join(f"\n#elif WEFT__PART == {i + 1}\n{title(n)}{parts[n]}" for i, n in enumerate(parts))
    (out / "weft.c").write_text(f"/* weft.c - {about}{BEGIN}{body}#endif\n")


main()
