#!/usr/bin/env python3
"""model.py FOLDER H.. - writes the models of stream.c for onnxruntime: FOLDER/table_H.onnx and FOLDER/real_H.onnx.

A model is an embedding of 256 rows (none in real_H), one LSTM of H units, and a linear layer to 256. Weights come from the formula of
bench/formula.c, so both sides must give the same logits."""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CLASSES = 256


def formula(name, n):
    key = 0
    for c in name.encode():
        key = (key * 31 + c) % 2**64
    x = (np.arange(n, dtype=np.int64) * 2654435761 + key % 65521 * 40503) % 2**31
    x = (1103515245 * x + 12345) % 2**31
    return (x >> 15).astype(np.float64) / 65536 - .5


def weights(name, H, *shape):
    return (2 / H**.5 * formula(name, int(np.prod(shape)))).reshape(shape).astype(np.float32)


def gates(w, H):
    """Reorders gates from i f g o (PyTorch, weft) to i o f c (ONNX)."""
    i, f, g, o = (w[k * H:(k + 1) * H] for k in range(4))
    return np.concatenate([i, o, f, g])


def model(H, table):
    constants = {
        "W": gates(weights("lstm.weight_ih_l0", H, 4 * H, H), H)[None],
        "R": gates(weights("lstm.weight_hh_l0", H, 4 * H, H), H)[None],
        "B": np.concatenate([gates(weights(f"lstm.{b}_l0", H, 4 * H), H) for b in ("bias_ih", "bias_hh")])[None],
        "head": weights("head.weight", H, CLASSES, H).T.copy(),
        "head_bias": weights("head.bias", H, CLASSES),
        "first": np.array([0], dtype=np.int64),
    }
    nodes = []
    if table:
        constants["table"] = weights("table.weight", H, CLASSES, H)
        nodes.append(helper.make_node("Gather", ["table", "x"], ["rows"]))
    nodes += [
        helper.make_node("Unsqueeze", ["rows" if table else "x", "first"], ["steps"]),
        helper.make_node("LSTM", ["steps", "W", "R", "B", "", "h", "c"], ["", "h_out", "c_out"], hidden_size=H),
        helper.make_node("Squeeze", ["h_out", "first"], ["y"]),
        helper.make_node("Gemm", ["y", "head", "head_bias"], ["logits"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.INT64, ["n"]) if table else helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", H])
    state = {s: helper.make_tensor_value_info(s, TensorProto.FLOAT, [1, "n", H]) for s in ("h", "c", "h_out", "c_out")}
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", CLASSES])
    graph = helper.make_graph(nodes, "stream", [x, state["h"], state["c"]], [logits, state["h_out"], state["c_out"]],
                              [numpy_helper.from_array(v, k) for k, v in constants.items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    made.ir_version = 8
    return made


for H in map(int, sys.argv[2:]):
    for kind in ("table", "real"):
        onnx.save(model(H, kind == "table"), f"{sys.argv[1]}/{kind}_{H}.onnx")
