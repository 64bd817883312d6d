"""weft.py - weft in Python, through ctypes.

    import weft
    w = weft.weft_open(weft.weft_opts(seed=1))
    x = weft.tensor(w, [[1, 2, 3]])
    print(weft.array(weft.weft_softmax(weft.weft_to_reals(x), 1, None)))

Names are those of C. Pass an options struct itself; ctypes passes its pointer. Write
*SHAPE(2, 3) for WEFT_SHAPE(2, 3), *LIST(a, b) for WEFT_LIST(a, b), NAMES("a", "b") for
WEFT_NAMES("a", "b"). char * takes str or bytes, and a field of a struct returns bytes. A
pointer to numbers takes a list or a contiguous NumPy array of its type. A callback that returns
a tensor returns address(x).

A failure raises weft.Error with weft's message. A failed operator has also ended the step
(weft_recover): make the tensors of the step again.

The wheel has the library and its declarations. Without it the import reads structs, enums and
functions from the public headers of the installed weft, with the C preprocessor and pycparser
(`apt install python3-pycparser`, `pip install pycparser`). pkg-config finds headers and
library. WEFT_PC=weft_f64 selects the installed double library.
"""
import contextlib
import ctypes as c
import difflib
import os
import pathlib
import subprocess
import tempfile
import threading

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
HEADERS = [f"weft_{level}.h" for level in "op plan lab forecast parallel plot onnx".split()]
_IN_WHEEL = pathlib.Path(__file__).with_name("declarations.h")      # made by `make wheel`
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


# ---- failures ----
class Error(RuntimeError):
    """A failure of weft. status is one of WEFT_ENOMEM .. WEFT_EFORMAT."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class _Failure(threading.local):
    found = None                        # status, message and context, until it is raised


_failure = _Failure()


@c.CFUNCTYPE(None, c.c_int, c.c_char_p, c.c_void_p)
def _on_error(status, message, context):
    _failure.found = status, message.decode(errors="replace"), c.cast(context, c.POINTER(weft))


def _checked(result, function, arguments):
    """ctypes calls it after each function."""
    if _failure.found:
        failure, _failure.found = _failure.found, None
        weft_recover(failure[2])
        if not weft_ok(failure[2]):     # in a callback, whose caller raises it again
            _failure.found = failure
        raise Error(*failure[:2])
    return result.decode(errors="replace") if isinstance(result, bytes) else result


def _checked_status(result, function, arguments):
    if result and not _failure.found:
        plan = function.__name__.startswith(("weft_plan_", "weft_first_fit"))
        raise Error(result, weft_plan_message() if plan else weft_file_message())
    return _checked(result, function, arguments)


def _opened(w, function, arguments):
    if weft_ok(w):
        weft_on_error(w, _on_error, w)
        return w
    error = Error(weft_error_code(w), weft_error_message(w))
    weft_close(w)
    raise error


def _closed(result, function, arguments):
    _failure.found = None


_AFTER = {"weft_open": _opened, "weft_close": _closed, "weft_error_code": _checked,
          "weft_plan_refuse": _checked}


# ---- arguments and fields ----
def _text(value):
    return value.encode() if isinstance(value, str) else value


def _numbers(value, kind):
    """Returns a list or a NumPy array as an array of ctypes; other values unchanged."""
    if isinstance(value, (list, tuple)):
        return (kind * len(value))(*map(_text, value))
    if not hasattr(value, "__array_interface__"):
        return value
    if value.dtype != kind or not value.flags.c_contiguous:
        raise TypeError(f"an array of {value.dtype}; expected a contiguous array of {kind.__name__}")
    return (kind * value.size).from_buffer(value if value.flags.writeable else value.copy())


def _is_simple(pointer):
    to = getattr(pointer, "_type_", None)
    return isinstance(to, type) and issubclass(to, c._SimpleCData)


def _converter(pointer):
    """Returns the type of an argument that also takes str, lists and NumPy arrays."""
    def take(value):
        return pointer.from_param(_text(value) if pointer is c.c_char_p else
                                  _numbers(value, pointer._type_))

    if pointer is c.c_char_p or _is_simple(pointer):
        return type("argument", (), {"from_param": staticmethod(take)})
    return pointer


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
        kind = dict(self._fields_)[name]
        value = _numbers(value, kind._type_) if _is_simple(kind) else _text(value)
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
        result = self.type(f.type)                  # ctypes has no callbacks that return pointers
        return c.CFUNCTYPE(c.c_void_p if isinstance(f.type, c_ast.PtrDecl) else result, *args)

    def argument(self, t):
        if isinstance(t, c_ast.ArrayDecl):
            return c.POINTER(self.type(t.type))
        return self.type(t)

    def pointer(self, p):
        to = self.type(p.type)
        if isinstance(to, type) and issubclass(to, c._CFuncPtr):
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

    def bound(self, d):
        """Returns the name and the function, unless the library was built without it."""
        if not hasattr(self.library, d.name):
            return {}
        function, result = getattr(self.library, d.name), d.type.type
        function.restype = self.type(result)
        function.argtypes = [_converter(a) for a in self.function(d.type)._argtypes_]
        status = getattr(result.type, "names", None) == ["weft_status"]
        function.errcheck = _AFTER.get(d.name, _checked_status if status else _checked)
        return {d.name: function}

    def declare(self, d):
        if isinstance(d, c_ast.Typedef):
            made = self.types[d.name] = self.names[d.name] = self.type(d.type)
            if isinstance(made, type) and made.__name__ == "struct":
                made.__name__ = d.name
        elif isinstance(d, c_ast.Decl) and isinstance(d.type, c_ast.FuncDecl):
            self.names.update(self.bound(d))
        elif isinstance(d, c_ast.Decl):
            self.type(d.type)


def _load():
    if _IN_WHEEL.exists() and "WEFT_PC" not in os.environ:
        path, text = _IN_WHEEL.with_name("libweft.so"), _IN_WHEEL.read_text()
    else:
        name = "lib" + os.environ.get("WEFT_PC", "weft") + ".so"
        path, text = os.path.join(_pkg_config("--variable=libdir").strip(), name), _preprocessed()
    headers = _Headers(c.CDLL(path))
    for d in c_parser.CParser().parse(text).ext:
        headers.declare(d)
    return headers.names


globals().update(_load())


# ---- C macros, and arrays from lists ----
def SHAPE(*extents):
    return len(extents), (c.c_int64 * len(extents))(*extents)


def LIST(*tensors):
    return (c.POINTER(weft_tensor) * len(tensors))(*tensors), len(tensors)


def NAMES(*names):
    return [*names, None]


def address(x):
    return c.cast(x, c.c_void_p).value


@contextlib.contextmanager
def _off(set_mode, w):
    was = set_mode(w, False)
    try:
        yield
    finally:
        set_mode(w, was)


def NO_GRAD(w):
    """with NO_GRAD(w): turns the tape off in its block."""
    return _off(weft_set_grad_enabled, w)


def EVAL(w):
    """with EVAL(w): turns dropout off in its block."""
    return _off(weft_set_training, w)


def reals(*values):
    return (weft_real * len(values))(*values)


def ints(*values):
    return (c.c_int32 * len(values))(*values)


def lengths(*values):
    return weft_lengths(n=len(values), len=ints(*values))


# ---- NumPy ----
def _host(values):
    """Returns numbers as an array of int32 if they are integers, otherwise of weft_real."""
    import numpy
    values = numpy.asarray(values)
    if values.dtype.kind not in "iu":
        return numpy.array(values, weft_real, order="C")
    out = numpy.array(values, numpy.int32, order="C")
    if (out != values).any():
        raise OverflowError("a number that does not fit an int32")
    return out


def tensor(w, values):
    """Makes a tensor from an array or from nested lists; integers give ints."""
    values = _host(values)
    make = weft_ints if values.dtype == c.c_int32 else weft_reals
    return make(w, values, *SHAPE(*values.shape))


def ragged(w, sequences):
    """Makes a ragged tensor from arrays or lists, [T] or [T, features], one for each sequence."""
    import numpy
    sequences = [numpy.asarray(s) for s in sequences]
    rows = _host(numpy.concatenate([s for s in sequences if len(s)] or [numpy.zeros(0)]))
    of = lengths(*map(len, sequences))
    if rows.ndim == 1 and rows.dtype == c.c_int32:
        return weft_ragged_ints(w, rows, of)
    if rows.ndim > 2:
        raise TypeError(f"sequences of rank {rows.ndim}; expected [T] or [T, features]")
    return weft_ragged(w, rows.astype(weft_real), rows.shape[1] if rows.ndim == 2 else 0, of)


def array(x):
    """Returns a tensor as an array. A ragged one gives a list of arrays, one for each sequence."""
    import numpy
    of, shape = weft_lengths_of(x), [weft_size(x, axis) for axis in range(weft_rank(x))]
    if of.len:
        shape[0] = sum(of.len[:of.n])
    out = numpy.empty(shape, c.c_int32 if weft_dtype_of(x) == WEFT_I32 else weft_real)
    weft_read_sequences(x, out.ctypes.data, out.nbytes)
    return numpy.split(out, numpy.cumsum(of.len[:of.n])[:-1])[:of.n] if of.len else out


def read(x):
    """Returns the numbers of a tensor as a list, row by row."""
    kind = c.c_int32 if weft_dtype_of(x) == WEFT_I32 else weft_real
    out = (kind * weft_numel(x))()
    weft_read(x, out, c.sizeof(out))
    return list(out)


def show(x):
    """Prints a tensor on Python's stdout, which a notebook shows."""
    shape = [weft_size(x, axis) for axis in range(weft_rank(x))]
    print(shape, " ".join(f"{value:.4g}" for value in read(x)))
