#!/usr/bin/env python3
"""keras_files.py FOLDER - writes the files of tests/io/test_keras.c: weights of Keras, and Keras' outputs.

Written with Keras 3.15 (backend torch) and h5py 3.14. Files of Keras 2 have the layout of its save_weights."""
import os
import sys

os.environ["KERAS_BACKEND"] = "torch"
import h5py
import keras
import numpy as np
from keras import layers as L

TOKENS = np.array([[1, 2, 3, 4], [6, 5, 0, 2]], np.int32)


def model(*layers):
    return keras.Sequential([keras.Input((None,), dtype="int32"), *layers])


def rnn(cell, *a, **k):
    return cell(*a, return_sequences=True, **k)


def models():
    yield "tagger", model(L.Embedding(7, 3, name="emb"), L.Bidirectional(rnn(L.LSTM, 2), name="bi"), rnn(L.GRU, 3, name="gru"),
                          L.TimeDistributed(L.Dense(2), name="out"))
    yield "stacked", model(L.Embedding(7, 3), rnn(L.LSTM, 2), rnn(L.LSTM, 2), L.Dense(2))
    yield "reset_before", model(L.Embedding(7, 3), rnn(L.GRU, 3, reset_after=False), L.Dense(2))
    yield "plain", model(L.Embedding(7, 3), rnn(L.SimpleRNN, 2, use_bias=False), L.LayerNormalization(epsilon=1e-5), L.Dense(2, use_bias=False))
    yield "relu", model(L.Embedding(7, 3), rnn(L.LSTM, 2, activation="relu"), L.Dense(2))


def write_keras_2(m, path):
    """The names are those of Keras 2.15: a cell is a part of its layer, and each name ends in :0."""
    roles = {"Embedding": ["embeddings"], "Dense": ["kernel", "bias"], "LSTM": ["kernel", "recurrent_kernel", "bias"]}
    roles["GRU"] = roles["LSTM"]
    with h5py.File(path, "w") as f:
        f.attrs["layer_names"] = [x.name.encode() for x in m.layers]
        f.attrs["backend"], f.attrs["keras_version"] = b"tensorflow", b"2.15.0"
        for x in m.layers:
            parts = [(f"{x.name}/{way.name}/lstm_cell", "LSTM", way) for way in (x.forward_layer, x.backward_layer)] if isinstance(x, L.Bidirectional) else \
                [(x.name, "Dense", x)] if isinstance(x, L.TimeDistributed) else \
                [(f"{x.name}/{type(x).__name__.lower()}_cell" if hasattr(x, "cell") else x.name, type(x).__name__, x)]
            group, names = f.create_group(x.name), []
            for place, kind, part in parts:
                for role, value in zip(roles[kind], part.get_weights(), strict=True):
                    names.append(f"{place}/{role}:0")
                    group[names[-1]] = value
            group.attrs["weight_names"] = [n.encode() for n in names]


def write_keras_3_h5(old, path):
    """The file of Keras 2 as model.save("NAME.h5") of Keras 3 writes it: in a group, and no name ends in :0."""
    with h5py.File(old) as f, h5py.File(path, "w") as g:
        g.attrs["keras_version"], top = b"3.15.1", g.create_group("model_weights")
        top.attrs["layer_names"] = f.attrs["layer_names"]
        for layer in f:
            names = [n if isinstance(n, str) else n.decode() for n in f[layer].attrs["weight_names"]]
            names = [n.removesuffix(":0") for n in names]
            top.create_group(layer).attrs["weight_names"] = [n.encode() for n in names]
            for n in names:
                top[layer][n] = f[layer][n + ":0"][()]


def main(folder):
    keras.utils.set_random_seed(3)
    with h5py.File(f"{folder}/keras_outputs.h5", "w") as out:
        for name, m in models():
            m(TOKENS)
            rng = np.random.default_rng(5)
            m.set_weights([rng.uniform(-1, 1, w.shape).astype(np.float32) for w in m.get_weights()])
            out[name] = np.asarray(m(TOKENS).detach(), np.float64)
            if name != "relu":
                m.save_weights(f"{folder}/{name}.weights.h5")
            if name in ("tagger", "relu"):
                m.save(f"{folder}/{name}.keras")
            if name == "tagger":
                write_keras_2(m, f"{folder}/tagger_of_keras_2.h5")
                write_keras_3_h5(f"{folder}/tagger_of_keras_2.h5", f"{folder}/tagger_of_keras_3.h5")


main(sys.argv[1])
