"""weft.py - the installed weft in Python, through ctypes, to try it in a notebook.

The import reads structs, enums and functions from the public headers, with the C
preprocessor and pycparser (`apt install python3-pycparser`, `pip install pycparser`).
pkg-config finds headers and library. WEFT_PC=weft_f64 selects the double library.

    import weft
    w = weft.weft_open(weft.weft_opts(seed=1))
    x = weft.weft_reals(w, weft.reals(1, 2, 3), *weft.SHAPE(3))
    weft.show(weft.weft_softmax(x, 0, None))

Names are those of C. Pass an options struct itself; ctypes passes its pointer. Write
*SHAPE(2, 3) for WEFT_SHAPE(2, 3) and *LIST(a, b) for WEFT_LIST(a, b). char * is bytes.
"""
import ctypes as c
import difflib
import os
import pathlib
import subprocess
import tempfile

from pycparser import c_ast, c_parser

# Declarations of the C library that the headers need.
_SYSTEM = {
    "stdbool.h": "#define bool _Bool\n#define true 1\n#define false 0\n",
    "stddef.h": "typedef unsigned long size_t;\n#define NULL ((void *)0)\n",
    "stdint.h": "typedef signed char int8_t; typedef unsigned char uint8_t;\n"
                "typedef short int16_t; typedef unsigned short uint16_t;\n"
                "typedef int int32_t; typedef unsigned uint32_t;\n"
                "typedef long int64_t; typedef unsigned long uint64_t;\n",
    "stdio.h": "typedef struct FILE FILE;\n",
}
HEADERS = [f"weft_{level}.h" for level in "op plan lab forecast parallel plot".split()]
_PLAIN = {
    "void": None, "_Bool": c.c_bool, "char": c.c_char, "signed char": c.c_byte,
    "unsigned char": c.c_ubyte, "short": c.c_short, "unsigned short": c.c_ushort,
    "int": c.c_int, "unsigned": c.c_uint, "unsigned int": c.c_uint, "long": c.c_long,
    "unsigned long": c.c_ulong, "long long": c.c_longlong, "float": c.c_float,
    "double": c.c_double,
}
_OPERATORS = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
    "<<": lambda a, b: a << b, "|": lambda a, b: a | b, "/": lambda a, b: a // b,
}


def _pkg_config(*asked):
    package = os.environ.get("WEFT_PC", "weft")
    command = [os.environ.get("PKG_CONFIG", "pkg-config"), *asked, package]
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except FileNotFoundError:
        raise ImportError(f"weft: {command[0]} is not installed; "
                          "on Debian: apt install pkgconf") from None
    except subprocess.CalledProcessError as error:
        raise ImportError(
            f"weft: {command[0]} does not find {package}: {error.stderr.strip()}\n"
            "Install weft (make install). If it is not below /usr or /usr/local, set "
            "PKG_CONFIG_PATH=PREFIX/lib/pkgconfig.") from None


def _preprocessed():
    """Returns the public headers, preprocessed, without those of the C library."""
    with tempfile.TemporaryDirectory() as system:
        for name, text in _SYSTEM.items():
            pathlib.Path(system, name).write_text(text)
        command = [*os.environ.get("CC", "cc").split(), "-E", "-P", "-nostdinc",
                   "-I", system, "-D__attribute__(x)=", "-D__asm__(x)=",
                   *_pkg_config("--cflags").split(), "-x", "c", "-"]
        includes = "".join(f"#include <{header}>\n" for header in HEADERS)
        return subprocess.run(command, input=includes, check=True,
                              capture_output=True, text=True).stdout


class _Fields:
    """Accepts only the fields of the struct; plain ctypes accepts any attribute name."""

    def _known(self, name):
        names = [field[0] for field in getattr(self, "_fields_", ())]
        if name in names:
            return
        near = difflib.get_close_matches(name, names, 1)
        raise TypeError(f"{type(self).__name__} has no field {name!r}"
                        + (f"; {near[0]!r} is near" if near else "")
                        + f"; it has: {', '.join(names)}")

    def __init__(self, *values, **named):
        for name in named:
            self._known(name)
        super().__init__(*values, **named)

    def __setattr__(self, name, value):
        self._known(name)
        super().__setattr__(name, value)


class _Headers:
    """Converts declarations of C to types and functions of ctypes."""

    def __init__(self, library):
        self.library, self.types, self.tags, self.names = library, {}, {}, {}

    def value(self, e):
        if isinstance(e, c_ast.Constant):
            return int(e.value.rstrip("uUlL"), 0)
        if isinstance(e, c_ast.ID):
            return self.names[e.name]
        if isinstance(e, c_ast.UnaryOp) and e.op == "-":
            return -self.value(e.expr)
        if isinstance(e, c_ast.BinaryOp):
            return _OPERATORS[e.op](self.value(e.left), self.value(e.right))
        raise TypeError(f"unsupported constant: {e}")

    def enum(self, e):
        following = 0
        for item in e.values.enumerators if e.values else ():
            following = self.value(item.value) if item.value else following
            self.names[item.name] = following
            following += 1
        return c.c_int

    def struct(self, s):
        base = c.Union if isinstance(s, c_ast.Union) else c.Structure
        made = self.tags.get(s.name) if s.name else None
        if not made:
            made = type(s.name or "struct", (_Fields, base), {})
            if s.name:
                self.tags[s.name] = made
        if s.decls and not hasattr(made, "_fields_"):
            made._fields_ = [(d.name, self.type(d.type)) for d in s.decls]
        return made

    def function(self, f):
        given = f.args.params if f.args else []
        named = [a.type for a in given if not isinstance(a, c_ast.EllipsisParam)]
        args = [a for a in map(self.argument, named) if a]             # (void) gives none
        return c.CFUNCTYPE(self.type(f.type), *args)

    def argument(self, t):
        if isinstance(t, c_ast.ArrayDecl):
            return c.POINTER(self.type(t.type))
        return self.type(t)

    def pointer(self, p):
        to = self.type(p.type)
        if isinstance(p.type, c_ast.FuncDecl):
            return to
        return {None: c.c_void_p, c.c_char: c.c_char_p}.get(to) or c.POINTER(to)

    def type(self, t):
        if isinstance(t, c_ast.TypeDecl):
            return self.type(t.type)
        if isinstance(t, c_ast.PtrDecl):
            return self.pointer(t)
        if isinstance(t, c_ast.ArrayDecl):
            return self.type(t.type) * self.value(t.dim)
        if isinstance(t, c_ast.FuncDecl):
            return self.function(t)
        if isinstance(t, c_ast.Enum):
            return self.enum(t)
        if isinstance(t, (c_ast.Struct, c_ast.Union)):
            return self.struct(t)
        name = " ".join(t.names)
        return self.types[name] if name in self.types else _PLAIN[name]

    def declare(self, d):
        if isinstance(d, c_ast.Typedef):
            made = self.types[d.name] = self.names[d.name] = self.type(d.type)
            if isinstance(made, type) and made.__name__ == "struct":
                made.__name__ = d.name
        elif isinstance(d, c_ast.Decl) and isinstance(d.type, c_ast.FuncDecl):
            made = self.function(d.type)
            function = getattr(self.library, d.name)
            function.restype, function.argtypes = made._restype_, made._argtypes_
            self.names[d.name] = function
        elif isinstance(d, c_ast.Decl):
            self.type(d.type)


def _load():
    folder = _pkg_config("--variable=libdir").strip()
    name = "lib" + os.environ.get("WEFT_PC", "weft") + ".so"
    headers = _Headers(c.CDLL(os.path.join(folder, name)))
    for d in c_parser.CParser().parse(_preprocessed()).ext:
        headers.declare(d)
    return headers.names


globals().update(_load())


# ---- C macros, and arrays from lists ----
def SHAPE(*extents):
    return len(extents), (c.c_int64 * len(extents))(*extents)


def LIST(*tensors):
    return (c.POINTER(weft_tensor) * len(tensors))(*tensors), len(tensors)


def reals(*values):
    return (weft_real * len(values))(*values)


def ints(*values):
    return (c.c_int32 * len(values))(*values)


def lengths(*values):
    return weft_lengths(n=len(values), len=ints(*values))


def read(x):
    """Returns the numbers of a tensor, row by row."""
    kind = c.c_int32 if weft_dtype_of(x) == WEFT_I32 else weft_real
    out = (kind * weft_numel(x))()
    weft_read(x, out, c.sizeof(out))
    return list(out)


def show(x):
    """Prints a tensor on Python's stdout, which a notebook shows."""
    shape = [weft_size(x, axis) for axis in range(weft_rank(x))]
    print(shape, " ".join(f"{value:.4g}" for value in read(x)))


def check(w):
    """Raises an exception with weft's message if an operator has failed."""
    if not weft_ok(w):
        raise RuntimeError(weft_error_message(w).decode())
