#!/usr/bin/env python3
"""refusals.py - generates the C header through which tests/api/test_refused.c calls every public function.

The public headers are preprocessed and parsed by pycparser. Each function gets a caller, which
takes its tensors and handles from a struct `slots`, and a row in the table `functions`. A new
public function is therefore called with bad tensors, handles and numbers without an edit here.
Environment: CC. Arguments: flags of the preprocessor. Writes to stdout.
"""
import glob
import os
import subprocess
import sys

from pycparser import c_ast, c_parser

# Options for the constructor of each handle. Constructors without an entry get NULL. Handles that need
# files or data are always NULL.
OPTIONS = {
    "weft_linear_opts": ".in = 2, .out = 2",
    "weft_embedding_opts": ".rows = 2, .columns = 2",
    "weft_conv_opts": ".in = 2, .out = 2, .width = 2",
    "weft_layer_norm_opts": ".width = 2",
    "weft_attention_layer_opts": ".kind = WEFT_ADDITIVE, .dq = 2, .dm = 2, .width = 2",
    "weft_mlp_opts": ".layers = 1, .widths = (const int64_t[]){ 2, 2 }",
    "weft_attention_layer_opts": ".width = 2, .heads = 1",
    "weft_crf_opts": ".tags = 2",
    "weft_rnn_opts": ".input = 2, .hidden = 2",
    "weft_linear_rnn_opts": ".input = 2, .hidden = 2",
    "weft_encoder_decoder_lstm_opts":
        ".num_past_features = 2, .num_future_features = 2, .d_encoder = 2, .d_decoder = 2, "
        ".num_encoder_layers = 1, .num_decoder_layers = 1, .output_dim = 1",
    "weft_loader_opts": ".count = 2",
    "weft_plan_opts": ".count = 2",
    "weft_attention_lstm_opts":
        ".num_past_features = 2, .num_future_features = 2, .d_model = 2, .num_layers = 1, .num_heads = 1",
    "weft_transformer_lstm_opts":
        ".num_past_features = 2, .num_future_features = 2, .d_model = 2, .num_layers = 1, "
        ".num_transformer_blocks = 1, .num_heads = 1",
    "weft_tft_opts":
        ".num_past_features = 2, .num_future_features = 2, .d_model = 2, .num_heads = 1, .num_lstm_layers = 1",
    "weft_decode_opts": ".limit = 2",
    "weft_features_opts":
        ".context = 2, .horizon = 2, .known = (const char *const[]){ \"u\", NULL }, "
        ".target = (const char *const[]){ \"y\", NULL }",
}
# Functions that fill a given number of structs. With bad numbers they get NULL.
OUT_ARRAYS = {"weft_plan_split", "weft_plan_split_context"}
# Structs that the library fills: programs do not change them.
FILLED_BY_WEFT = {"weft_plan", "weft_frame"}
NEVER_MADE = {"weft_packer", "weft_parallel", "weft_carried", "weft_windows", "weft_hdf5", "weft_journal", "weft_onnx"}
# Values of parameters and fields with these names; all other integers are 1, other numbers .5.
GOOD = {"axis": "0", "other": "0", "from": "0", "to": "1", "n": "2", "bytes": "2 * sizeof(weft_real)",
        "rows": "2", "columns": "2", "classes": "2", "total": "2", "path": '"/no/such/folder/file"',
        "folder": '"/no/such/folder/file"', "order": "1", "power": "2", "size": "2", "i": "0", "quantiles": "2", "layer": "0", "past": "2", "future": "2", "width": "2", "steps": "2", "sequences": "2"}
FUNCTIONS = {"weft_gradcheck": "first_input", "weft_decode": "no_scores", "weft_rolling_forecast": "no_model",
             "weft_rolling_forecasts": "no_model"}


def parsed(flags):
    command = [*os.environ.get("CC", "cc").split(), "-E", "-P", "-I.", "-std=c11", "-D__attribute__(x)=",
               "-D__asm__(x)=", "-D__extension__=", "-D__builtin_va_list=int", "-D__inline=", "-D__restrict=",
               *flags, "-x", "c", "-"]
    text = subprocess.run(command, input="".join(f'#include "{h}"\n' for h in sorted(glob.glob("weft*.h"))), check=True, capture_output=True, text=True)
    return c_parser.CParser().parse(text.stdout).ext


class Headers:
    def __init__(self, declarations):
        self.structs, self.enums, self.function_types, self.functions = {}, set(), set(), []
        for d in declarations:
            if isinstance(d, c_ast.Typedef):
                self.typedef(d.name, d.type)
            elif isinstance(d, c_ast.Decl) and isinstance(d.type, c_ast.FuncDecl) and d.name.startswith("weft_"):
                self.functions.append(d)
            elif isinstance(d, c_ast.Decl) and isinstance(d.type, c_ast.Struct) and d.type.decls:
                self.structs[d.type.name] = d.type.decls

    def typedef(self, name, t):
        if isinstance(t, c_ast.FuncDecl):
            self.function_types.add(name)
        elif isinstance(t.type, c_ast.Enum):
            self.enums.add(name)
        elif isinstance(t.type, c_ast.Struct) and t.type.decls:
            self.structs[name] = t.type.decls


def named(t):
    """The name of a type without qualifiers, "" if it has none."""
    t = t.type if isinstance(t, c_ast.TypeDecl) else t
    if isinstance(t, c_ast.IdentifierType):
        return " ".join(t.names)
    return t.name if isinstance(t, c_ast.Struct) else ""


class Caller:
    """One public function: its arguments as C expressions, and the slots that they read."""

    def __init__(self, headers, d):
        self.headers, self.name = headers, d.name
        self.tensors, self.handles = [], []
        self.filled = []                        # structs that the function may fill, to be freed
        self.arguments = []
        for p in d.type.args.params:
            if isinstance(p, c_ast.EllipsisParam) or named(p.type) != "void":
                self.arguments.append(self.argument(p))
        self.result = d.type.type

    def tensor(self, name):
        self.tensors.append(name)
        return f"s->t[{len(self.tensors) - 1}]"

    def handle(self, name, good):
        self.handles.append(name)
        return f"(s->null[{len(self.handles) - 1}] ? NULL : {good})"

    def argument(self, p):
        if isinstance(p, c_ast.EllipsisParam):
            return "1"
        if p.name == "format":
            return '"%d"'
        if isinstance(p.type, c_ast.ArrayDecl):
            return f"({named(p.type.type)}[8]){{ 0 }}"
        if p.name == "n" and any("(weft_tensor *[])" in a for a in self.arguments):
            return "few_of(s)"
        return self.pointer(p) if isinstance(p.type, c_ast.PtrDecl) else self.value(p.name, p.type)

    def pointer(self, p):
        to, const = p.type.type, "const" in getattr(p.type.type, "quals", [])
        if isinstance(to, c_ast.FuncDecl) or named(to) in self.headers.function_types:
            return FUNCTIONS.get(self.name, "NULL")
        if isinstance(to, c_ast.PtrDecl):
            return self.pointer_to_pointer(p.name, to)
        to = named(to)
        if p.name == "shape":
            return "shape_of(s)"
        if to == "weft_tensor":
            return self.tensor(p.name)
        if to == "weft":
            return self.handle(p.name, "s->w")
        if to == "weft_module":
            return self.handle(p.name, "s->m")
        if to == "FILE":
            return self.handle(p.name, "nowhere")
        if to == "char":
            return f"name_of(s, {GOOD.get(p.name, chr(34) + 'name' + chr(34))})"
        if to == "void":
            return "pointer(s, room)"
        if to == "weft_lengths" and const:
            return "lengths_of(s)"
        if to in self.headers.structs:
            return self.options(to, const)
        if to.startswith("weft_") and to != "weft_real":
            return self.handle(p.name, f"(s->inert ? inert_{to} : good_{to})")
        if to == "weft_real" and const:
            return "pointer(s, (void *)reals)"
        return f"({to} *)pointer(s, {'zeros' if const else 'room'})"

    def pointer_to_pointer(self, name, to):
        if named(to.type) != "weft_tensor":
            return "pointer(s, names)" if "const" in to.quals else "pointer(s, room)"
        return f"(weft_tensor *[]){{ {self.tensor(name)}, s->t[{len(self.tensors) - 1}] }}" \
            if "const" in to.quals else "(weft_tensor **)room"

    def options(self, struct, const):
        if struct == "weft_op":
            return "&fine"
        if struct in ("weft_call", "weft_planner"):
            return self.handle(struct, "weft_planner_named(\"order\")" if struct == "weft_planner" else "NULL")
        if not const:
            usable = "false" if self.name in OUT_ARRAYS else "s->filled"
            if not any(f.name == f"{struct}_free" for f in self.headers.functions):
                return f"(s->bad >= 0 && !({usable}) ? NULL : &({struct}){{ 0 }})"
            self.filled.append(struct)
            return f"(s->bad >= 0 && !({usable}) ? NULL : &filled{len(self.filled)})"
        bad = "0" if struct in FILLED_BY_WEFT else self.fields(struct)
        tensors = [f for f in bad.split(", ") if "s->t[" in f]
        good = [*OPTIONS.get(struct, "").split(", "), *tensors] if struct in OPTIONS else tensors
        good = f"&({struct}){{ {', '.join(good)} }}" if good else "NULL"
        return f"(s->bad < 0 ? {good} : s->filled ? &({struct}){{ {bad} }} : NULL)"

    def fields(self, struct):
        text = []
        for f in self.headers.structs[struct]:
            if isinstance(f.type, c_ast.PtrDecl) and named(f.type.type) == "weft_tensor":
                text.append(f".{f.name} = {self.tensor(f.name)}")
            elif isinstance(f.type, c_ast.TypeDecl):
                text.append(f".{f.name} = {self.value(f.name, f.type)}")
        return ", ".join(text) or "0"

    def value(self, name, t):
        of = named(t)
        if of in self.headers.structs:
            return f"({of}){{ {self.fields(of)} }}"
        if of in self.headers.enums or not of:
            return f"({of or 'int'})int_of(s, {int(of == 'weft_layout')})"
        if of == "_Bool":
            return "s->bad == 1"
        if of in ("double", "weft_real", "float"):
            return f"({of})real_of(s, {GOOD.get(name, '.5')})"
        return f"({of}){'int' if of == 'int' else 'number'}_of(s, {GOOD.get(name, '1')})"

    def text(self):
        call = f"{self.name}({', '.join(self.arguments)})"
        status = isinstance(self.result, c_ast.TypeDecl) and named(self.result) == "weft_status"
        opens = isinstance(self.result, c_ast.PtrDecl) and self.name == "weft_open"
        lines = [f"{t} filled{i} = {{ 0 }};" for i, t in enumerate(self.filled, 1)] + ["(void)s;"]
        of = named(self.result) if isinstance(self.result, c_ast.TypeDecl) else None
        owned = any(f.name == f"{of}_free" for f in self.headers.functions)
        lines.append(f"s->status = {call};" if status else f"weft_close({call});" if opens else
                     f"{of} got = {call};\n    {of}_free(&got);" if owned else f"(void){call};")
        lines += [f"{t}_free(&filled{i});" for i, t in enumerate(self.filled, 1)]
        return f"static void call_{self.name}(slots *s)\n{{\n    " + "\n    ".join(lines) + "\n}\n"

    def row(self):
        names = ", ".join(f'"{n}"' for n in self.tensors + self.handles)
        return f'    {{ "{self.name}", call_{self.name}, {len(self.tensors)}, {len(self.handles)}, ' \
               f"{{ {names or 0} }} }},"


def constructor(headers, handle):
    """The call that makes a valid handle of this type, or None."""
    for d in headers.functions:
        returned = d.type.type
        if not (isinstance(returned, c_ast.PtrDecl) and named(returned.type) == handle and d.type.args):
            continue
        arguments = []
        for p in d.type.args.params:
            to = named(p.type.type) if isinstance(p.type, c_ast.PtrDecl) else ""
            arguments.append("w" if to == "weft" else "own_module(w)" if to == "weft_module" else
                             '"made"' if to == "char" else
                             f"&({to}){{ {OPTIONS[to]} }}" if to in OPTIONS else
                             "(int32_t *)zeros" if to == "int32_t" else "NULL" if to else ".5" if named(p.type) == "double" else "2")
        return f"{d.name}({', '.join(arguments)})"
    return None


def main():
    headers = Headers(parsed(sys.argv[1:]))
    callers = [Caller(headers, d) for d in headers.functions]
    handles = sorted({a.split("good_")[1].split(")")[0] for c in callers for a in c.arguments if "good_" in a})
    print("/* Generated by tests/api/refusals.py. */")
    for h in handles:
        print(f"static {h} *good_{h}, *inert_{h};")
    print("static void make_handles(weft *w, bool inert)\n{")
    for h in handles:
        made = None if h in NEVER_MADE else constructor(headers, h)
        print(f"    *(inert ? &inert_{h} : &good_{h}) = {made or 'NULL'};")
        print(f'    cr_expect(inert || weft_ok(w), "{h}: %s", weft_error_message(w));')
    print("}\n" + "\n".join(c.text() for c in callers))
    print("static const function functions[] = {\n" + "\n".join(c.row() for c in callers) + "\n};")


main()
