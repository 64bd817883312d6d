#!/usr/bin/env python3
"""onnx_files.py FOLDER    writes golden files of the import of ONNX models

nodes.bin: the recurrent tests of onnx and some of its attention tests (onnx 1.23.2). models.bin: networks
exported by PyTorch 2.15, and graphs by hand, with the outputs of onnxruntime 1.32.

A file has cases end to end. A case: its name and its model, each after its number of bytes; the numbers of
inputs and outputs; the arrays. An array: 0 for float32 or 1 for int32; the rank; the extents; the numbers.
All integers are 32-bit and little-endian."""
import io
import pathlib
import struct
import sys
import warnings

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases
from torch import nn

warnings.filterwarnings("ignore")
ATTENTION = """attention_3d_causal attention_3d_gqa attention_4d_causal attention_4d_attn_mask_bool
attention_4d_with_past_and_present""".split()


def array(a):
    a = np.asarray(a)
    a = a.astype(np.float32) if a.dtype.kind == "f" else a.astype(np.int32)
    return struct.pack(f"<{2 + a.ndim}i", a.dtype.kind == "i", a.ndim, *a.shape) + a.tobytes()


def case(name, model, inputs, outputs):
    text = name.encode()
    parts = [struct.pack("<i", len(text)), text, struct.pack("<i", len(model)), model]
    parts += [struct.pack("<2i", len(inputs), len(outputs))]
    return b"".join(parts + [array(a) for a in [*inputs, *outputs]])


def computed(name, model, inputs):
    """A case with the outputs of onnxruntime."""
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return case(name, model, inputs, session.run(None, {i.name: a for i, a in zip(session.get_inputs(), inputs)}))


def nodes():
    for t in collect_testcases(None):
        name = t.name[5:]
        recurrent = {n.op_type for n in t.model.graph.node} <= {"LSTM", "GRU", "RNN"}
        if recurrent or name in ATTENTION:
            inputs, outputs = t.data_sets[0]
            yield case(name, t.model.SerializeToString(), inputs, outputs)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 3)
        self.rnn = nn.LSTM(3, 2, 2, bidirectional=True, batch_first=True)
        self.out = nn.Linear(4, 3)

    def forward(self, x):
        return torch.log_softmax(self.out(self.rnn(self.embed(x))[0]), -1)


class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(2, 3, bidirectional=True, batch_first=True)
        self.norm = nn.LayerNorm(6)

    def forward(self, x, lengths):
        x = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        y, h = self.rnn(x)
        y = nn.utils.rnn.pad_packed_sequence(y, batch_first=True)[0]
        return self.norm(y), h


def exported(model, inputs, dynamo, **options):
    file = io.BytesIO()
    torch.onnx.export(model.eval(), inputs, file, dynamo=dynamo, verbose=False, **options)
    return file.getvalue()


def graph(nodes_, inputs, outputs, initial=(), functions=(), opset=17):
    values = [helper.make_tensor_value_info(n, t, s) for n, t, s in inputs]
    results = [helper.make_tensor_value_info(n, t, s) for n, t, s in outputs]
    weights = [numpy_helper.from_array(a, n) for n, a in initial]
    sets = [helper.make_opsetid("", opset), helper.make_opsetid("own", 1)]
    model = helper.make_model(helper.make_graph(nodes_, "g", values, results, weights),
                              opset_imports=sets, functions=list(functions), ir_version=9)
    return model.SerializeToString()


def ragged_lstm(draw):
    """Peepholes, three lengths with 0, and first states."""
    weights = [("W", draw(2, 12, 2)), ("R", draw(2, 12, 3)), ("B", draw(2, 24)), ("P", draw(2, 9))]
    node = helper.make_node("LSTM", ["X", "W", "R", "B", "L", "h", "c", "P"], ["Y", "Yh", "Yc"], name="/enc/LSTM",
                            direction="bidirectional", hidden_size=3)
    f, i = TensorProto.FLOAT, TensorProto.INT32
    return graph([node], [("X", f, ["t", "n", 2]), ("L", i, ["n"]), ("h", f, [2, "n", 3]), ("c", f, [2, "n", 3])],
                 [("Y", f, None), ("Yh", f, None), ("Yc", f, None)], weights)


def control(draw):
    """A function of the model, and an If whose condition is known in the run only."""
    f = TensorProto.FLOAT
    twice = helper.make_function("own", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])],
                                 [helper.make_opsetid("", 17)])
    branch = [helper.make_graph([helper.make_node(op, ["y"], [op])], op, [],
                                [helper.make_tensor_value_info(op, f, None)]) for op in ("Tanh", "Neg")]
    made = [helper.make_node("Twice", ["x"], ["y"], domain="own"), helper.make_node("Size", ["x"], ["n"]),
            helper.make_node("Less", ["n", "five"], ["few"]),
            helper.make_node("If", ["few"], ["z"], then_branch=branch[0], else_branch=branch[1])]
    return graph(made, [("x", f, ["n"])], [("z", f, None)], [("five", np.array(5))], [twice])


def models():
    torch.manual_seed(1)
    rng = np.random.default_rng(1)

    def draw(*shape):
        return rng.standard_normal(shape).astype(np.float32) * np.float32(.5)

    ids = torch.randint(0, 9, (2, 4))
    other = rng.integers(0, 9, (3, 6))
    for dynamo in (False, True):
        sizes = {"dynamic_shapes": ({0: torch.export.Dim.AUTO, 1: torch.export.Dim.AUTO},), "external_data": False}
        options = sizes if dynamo else {"dynamic_axes": {"x": {0: "batch", 1: "time"}}}
        model = exported(Tagger(), (ids,), dynamo, input_names=["x"], **options)
        if dynamo:                               # the tracer's notes are most of the file
            bare = onnx.load_from_string(model)
            for n in bare.graph.node:
                del n.metadata_props[:]
            del bare.graph.value_info[:]
            model = bare.SerializeToString()
        yield computed(f"tagger_{'dynamo' if dynamo else 'trace'}", model, [other])
    lengths = np.array([3, 6, 1])
    model = exported(Packed(), (torch.zeros(2, 4, 2), torch.tensor([4, 2])), False, input_names=["x", "lengths"],
                     dynamic_axes={"x": {0: "batch", 1: "time"}, "lengths": {0: "batch"}})
    yield computed("packed", model, [draw(3, 6, 2), lengths])
    yield computed("ragged_lstm", ragged_lstm(draw), [draw(4, 3, 2), np.array([2, 0, 4], np.int32),
                                                      draw(2, 3, 3), draw(2, 3, 3)])
    for n in (3, 7):
        yield computed(f"control_{n}", control(draw), [draw(n)])


def main():
    folder = pathlib.Path(sys.argv[1])
    (folder / "nodes.bin").write_bytes(b"".join(nodes()))
    (folder / "models.bin").write_bytes(b"".join(models()))


main()
