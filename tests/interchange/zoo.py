#!/usr/bin/env python3
"""zoo.py FOLDER [--run PROGRAM] [--only TEXT] [--operators]    exports small models to ONNX and runs them in onnxruntime and in weft.

Models come from PyTorch's two exporters, from Keras through tf2onnx, and from scikit-learn. Each is run with the batch size and length of its
export and with others, and its outputs must agree within 1e-5. Files in FOLDER are not exported again. PROGRAM is the command weft; without it,
models are only run in onnxruntime. --operators lists the operators of all files. Seeds are fixed."""
import argparse, collections, contextlib, io, logging, os, pathlib, subprocess, sys, tempfile, warnings
os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="", TF_ENABLE_ONEDNN_OPTS="0", KERAS_BACKEND="tensorflow")
warnings.filterwarnings("ignore")
logging.disable(logging.ERROR)
import numpy as np, onnx, onnxruntime, torch
from torch import nn
from torch.nn import functional as F

WORDS, WIDE, HIDDEN, CLASSES = 11, 4, 5, 3
SIZES = [(3, 6), (2, 9), (1, 2), (4, 6)]         # batch and length; models are exported with the first
REFUSED = {"keras_gru_loop": "Loop", "keras_masked_loop": "Loop"}
RNN = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}


# ---- inputs: (name, shape); "b" and "t" are the batch size and the length, a shape without numbers is of ids, "n" is of lengths ----
def inputs(spec, b, t, seed=0):
    r, made = np.random.default_rng(seed), {}
    for name, shape in spec:
        size = [{"b": b, "t": t, "s": t + 2}.get(s, s) for s in shape]
        if name == "lengths":
            made[name] = np.array([t] + sorted(r.integers(1, t + 1, b - 1), reverse=True), np.int64)
        elif name in ("ids", "id"):
            made[name] = r.integers(0, WORDS, size).astype(np.int64)
        else:
            made[name] = r.standard_normal(size).astype(np.float32)
    return made


# ---- PyTorch ----
class Net(nn.Module):
    """A scaler, an embedding, a recurrent layer, and one of several heads."""
    def __init__(self, kind="lstm", head="tag", layers=1, both=False, first=True, ids=True, states=False, lengths=False, dropout=0., norm=False,
                 residual=False, scale=False, tied=False, relu=False, bias=True, mlp=False):
        super().__init__()
        self.__dict__.update(kind=kind, head=head, first=first, states=states, lengths=lengths, residual=residual, scale=scale, mlp=mlp)
        n, out = (1 + both) * layers, HIDDEN * (1 + both)
        wide = out if residual else HIDDEN if tied else WIDE
        self.embed = nn.Embedding(WORDS, wide, padding_idx=0) if ids else None
        self.mean, self.std = (nn.Parameter(torch.rand(wide) + i) for i in range(2))
        more = {"nonlinearity": "relu"} if relu else {}
        self.rnn = RNN[kind](wide, HIDDEN, layers, batch_first=first, bidirectional=both, dropout=dropout, bias=bias, **more)
        self.norm = nn.LayerNorm(out) if norm else None
        self.drop = nn.Dropout(dropout)
        self.query, self.attend = nn.Linear(out, 1), nn.MultiheadAttention(out, 1 + both, batch_first=first) if head == "mha" else None
        self.out = nn.Linear(out, WORDS if tied else CLASSES)
        if mlp:
            self.out = nn.Sequential(nn.Linear(out, 6), nn.GELU(), nn.Dropout(dropout), nn.Linear(6, CLASSES))
        if tied:
            self.out.weight = self.embed.weight
        bt = ("b", "t") if first else ("t", "b")
        self.spec = [("ids", bt) if ids else ("x", bt + (wide,))] + [("lengths", ("b",))] * lengths
        self.spec += [(s, (n, "b", HIDDEN)) for s in ("h", "c")[:2 if kind == "lstm" else 1]] * states

    def forward(self, x, *rest):
        x = self.embed(x) if self.embed else x
        x = (x - self.mean) / self.std if self.scale else x
        rest, time, inner = list(rest), 1 if self.first else 0, x
        total = x.shape[time]
        lengths = rest.pop(0) if self.lengths else None
        state = (tuple(rest) if len(rest) > 1 else rest[0]) if self.states else None
        if self.lengths:
            inner = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=self.first)
        y, last = self.rnn(inner, state) if self.states else self.rnn(inner)
        if self.lengths:
            y, _ = nn.utils.rnn.pad_packed_sequence(y, batch_first=self.first, total_length=total)
        h = last[0] if self.kind == "lstm" else last
        y = F.relu(y + x) if self.residual else y
        y = self.drop(self.norm(y) if self.norm else y)
        z = self.headed(y, h, time, lengths)
        return (z, *(last if self.kind == "lstm" else [last])) if self.states else z

    def headed(self, y, h, time, lengths):
        match self.head:
            case "tag": return self.out(y)
            case "softmax": return F.log_softmax(self.out(y), -1)
            case "last": return self.out(y[:, -1] if self.first else y[-1])
            case "h": return self.out(torch.cat([h[-2], h[-1]], 1) if self.rnn.bidirectional else h[-1]).softmax(-1)
            case "mean": return torch.sigmoid(self.out(y.mean(time)))
            case "max": return self.out(y.max(time)[0])
            case "argmax": return self.out(y).argmax(-1)
            case "mha": return self.out(y + self.attend(y, y, y, need_weights=False)[0])
            case "weigh": return self.out((self.query(torch.tanh(y)).softmax(time) * y).sum(time))
            case "masked":
                y = y if self.first else y.transpose(0, 1)
                mask = torch.arange(y.shape[1])[None, :] < lengths[:, None]
                a = self.query(y).squeeze(-1).masked_fill(~mask, float("-inf")).softmax(1)
                return self.out(torch.bmm(a.unsqueeze(1), y).squeeze(1))
            case "average":
                mask = (torch.arange(y.shape[1])[None, :] < lengths[:, None]).unsqueeze(-1).float()
                return self.out((y * mask).sum(1) / mask.sum(1).clamp(min=1))


class Encoder(nn.Module):
    spec = [("ids", ("b", "t"))]
    def __init__(self, kind="gru"):
        super().__init__()
        self.embed, self.rnn = nn.Embedding(WORDS, WIDE), RNN[kind](WIDE, HIDDEN, bidirectional=True, batch_first=True)
        self.fold = nn.Linear(2 * HIDDEN, HIDDEN)

    def forward(self, ids):
        y, h = self.rnn(self.embed(ids))
        h = h[0] if isinstance(h, tuple) else h
        return y, torch.tanh(self.fold(torch.cat((h[0], h[1]), 1))).unsqueeze(0)


class Step(nn.Module):
    """One step of a decoder with attention to the encoder's outputs."""
    def __init__(self, kind="gru", attention="dot", cell=False):
        super().__init__()
        self.__dict__.update(kind=kind, attention=attention, cell=cell)
        self.embed, self.out = nn.Embedding(WORDS, WIDE), nn.Linear(2 * HIDDEN, WORDS)
        self.rnn = (nn.GRUCell if kind == "gru" else nn.LSTMCell)(WIDE, HIDDEN) if cell else RNN[kind](WIDE, HIDDEN, batch_first=True)
        self.w, self.v, self.u = nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, 1, bias=False), nn.Linear(HIDDEN, HIDDEN)
        state = ("b", HIDDEN) if cell else (1, "b", HIDDEN)
        self.spec = [("id", ("b",) if cell else ("b", 1))] + [(s, state) for s in ("h", "c")[:1 + (kind == "lstm")]] + [("memory", ("b", "t", HIDDEN))]

    def forward(self, id, h, *rest):
        memory, x = rest[-1], self.embed(id)
        if self.cell:
            state = self.rnn(x, (h, rest[0]) if self.kind == "lstm" else h)
            y = (state[0] if self.kind == "lstm" else state).unsqueeze(1)
        else:
            y, state = self.rnn(x, (h, rest[0]) if self.kind == "lstm" else h)
        if self.attention == "dot":
            a = torch.matmul(self.w(y), memory.transpose(1, 2)) / HIDDEN ** .5
        else:
            a = self.v(torch.tanh(self.w(y) + self.u(memory))).transpose(1, 2)
        a = torch.softmax(a, -1)
        z = self.out(torch.cat([y, a @ memory], -1)).squeeze(1)
        return z, *(state if isinstance(state, tuple) else [state]), a


class Stack(nn.Module):
    """Layers one by one with norms and residuals between them, and a gate at the end."""
    spec = [("x", ("t", "b", HIDDEN))]
    def __init__(self, kind="gru", norm="before"):
        super().__init__()
        self.norm, self.gate = norm, nn.Linear(HIDDEN, 2 * HIDDEN)
        self.rnns, self.norms = (nn.ModuleList(f() for _ in range(3)) for f in (lambda: RNN[kind](HIDDEN, HIDDEN), lambda: nn.LayerNorm(HIDDEN)))

    def forward(self, x):
        for rnn, norm in zip(self.rnns, self.norms):
            x = x + rnn(norm(x))[0] if self.norm == "before" else norm(x + rnn(x)[0])
        return F.glu(self.gate(x), -1)


class Hybrid(nn.Module):
    """A value and a group as inputs: concatenated features, a log, clipping, two outputs."""
    spec = [("x", ("b", "t", 3)), ("ids", ("b", "t"))]
    def __init__(self):
        super().__init__()
        self.embed, self.rnn = nn.Embedding(WORDS, 2), nn.LSTM(5, HIDDEN, 2, batch_first=True)
        self.mean, self.spread = nn.Linear(HIDDEN, 1), nn.Linear(HIDDEN, 1)

    def forward(self, x, ids):
        x = torch.sign(x) * torch.log1p(x.abs())
        y = self.rnn(torch.cat([x.clamp(-2, 2), self.embed(ids)], -1))[0]
        return self.mean(y).squeeze(-1), F.softplus(self.spread(y)).squeeze(-1) + 1e-3


class Pair(nn.Module):
    """Two texts through one encoder, compared."""
    spec = [("ids", ("b", "t")), ("other", ("b", "s", WIDE))]
    def __init__(self):
        super().__init__()
        self.embed, self.rnn, self.out = nn.Embedding(WORDS, WIDE), nn.GRU(WIDE, HIDDEN, batch_first=True), nn.Linear(4 * HIDDEN, 2)

    def forward(self, ids, other):
        a, b = self.rnn(self.embed(ids))[1][0], self.rnn(other)[1][0]
        return self.out(torch.cat([a, b, (a - b).abs(), a * b], -1)), F.cosine_similarity(a, b)


class Char(nn.Module):
    """Characters of words in one layer, words in another: a reshape to batch * time."""
    spec = [("ids", ("b", "t", 6))]
    def __init__(self):
        super().__init__()
        self.embed, self.chars = nn.Embedding(WORDS, 3), nn.LSTM(3, WIDE, batch_first=True, bidirectional=True)
        self.words, self.out = nn.LSTM(2 * WIDE, HIDDEN, batch_first=True), nn.Linear(HIDDEN, CLASSES)

    def forward(self, ids):
        b, t, n = ids.shape
        h = self.chars(self.embed(ids.reshape(b * t, n)))[1][0]
        return self.out(self.words(h.transpose(0, 1).reshape(b, t, -1))[0])


class Transposed(nn.Module):
    """The caller's axes are [batch, features, time], and the window's end is dropped."""
    spec = [("x", ("b", WIDE, "t"))]
    def __init__(self):
        super().__init__()
        self.rnn, self.out = nn.RNN(WIDE, HIDDEN), nn.Linear(HIDDEN, 2)

    def forward(self, x):
        y = self.rnn(x.permute(2, 0, 1))[0]
        return self.out(F.leaky_relu(y[:-1])).permute(1, 2, 0), y.flip(0)[0]


TORCH = {
    "tagger_lstm": lambda: Net(), "tagger_gru_both": lambda: Net("gru", both=True), "tagger_rnn_time_first": lambda: Net("rnn", first=False),
    "tagger_lstm_both_2": lambda: Net(layers=2, both=True, dropout=.3), "tagger_gru_3": lambda: Net("gru", layers=3, dropout=.5, norm=True),
    "tagger_rnn_relu_2": lambda: Net("rnn", layers=2, relu=True, head="softmax"), "tagger_lstm_packed": lambda: Net(lengths=True, both=True),
    "tagger_gru_packed": lambda: Net("gru", lengths=True, first=False, both=True), "tagger_argmax": lambda: Net(head="argmax", both=True),
    "tagger_no_bias": lambda: Net("gru", bias=False, both=True), "tagger_rnn_packed_2": lambda: Net("rnn", lengths=True, layers=2),
    "class_last": lambda: Net(head="last"), "class_h_both": lambda: Net("gru", head="h", both=True, layers=2),
    "class_mean": lambda: Net("rnn", head="mean", both=True), "class_max": lambda: Net(head="max", both=True, ids=False),
    "class_mlp": lambda: Net("gru", head="last", mlp=True, norm=True, dropout=.1), "states_packed_both": lambda: Net(states=True, lengths=True, both=True),
    "class_weighed": lambda: Net("gru", head="weigh", both=True), "class_masked": lambda: Net(head="masked", lengths=True, both=True),
    "class_average": lambda: Net("gru", head="average", lengths=True), "class_time_first": lambda: Net("gru", head="last", first=False, layers=3),
    "class_scaled": lambda: Net(head="last", ids=False, scale=True, layers=2), "class_rnn_h": lambda: Net("rnn", head="h", ids=False, first=False),
    "lm_lstm": lambda: Net(tied=True, states=True, layers=2, first=False), "lm_gru": lambda: Net("gru", tied=True, states=True),
    "lm_rnn_softmax": lambda: Net("rnn", head="softmax", tied=True, states=True, layers=3), "lm_lstm_free": lambda: Net(tied=True, head="softmax", norm=True),
    "states_both": lambda: Net(states=True, both=True, layers=2), "states_packed": lambda: Net("gru", states=True, lengths=True),
    "residual_lstm": lambda: Net(residual=True, norm=True), "residual_gru_both": lambda: Net("gru", residual=True, both=True, ids=False),
    "attend_lstm": lambda: Net(head="mha", both=True), "attend_gru_time_first": lambda: Net("gru", head="mha", first=False),
    "forecast_scaled": lambda: Net("gru", ids=False, scale=True, head="last", norm=True), "forecast_two_heads": Hybrid,
    "encoder_gru": Encoder, "encoder_lstm": lambda: Encoder("lstm"), "step_gru_dot": Step, "step_lstm_additive": lambda: Step("lstm", "additive"),
    "step_gru_cell": lambda: Step("gru", "additive", True), "step_lstm_cell": lambda: Step("lstm", "dot", True),
    "stack_norm_before": Stack, "stack_norm_behind": lambda: Stack("lstm", "behind"), "pair_gru": Pair, "characters": Char, "transposed": Transposed,
}


def export_torch(path, name, make, dynamo):
    torch.manual_seed(0)
    model = make().eval()
    args = {k: torch.from_numpy(v) for k, v in inputs(model.spec, 3, 6).items()}
    names = [k for k, _ in model.spec]
    axes = {k: {i: {"b": "batch", "t": "time", "s": "others"}[s] for i, s in enumerate(shape) if isinstance(s, str)} for k, shape in model.spec}
    if dynamo:
        how = {"dynamic_shapes": tuple({i: torch.export.Dim.AUTO for i in axes[k]} for k in names)}
        if isinstance(model, (Net, Step)):           # their forward has *args
            fixed = 1 if isinstance(model, Net) else 2
            rest = how["dynamic_shapes"][fixed:]
            how = {"dynamic_shapes": how["dynamic_shapes"][:fixed] + ((rest,) if rest else ())}
    else:
        with torch.no_grad():
            n = len(r) if isinstance(r := model(*args.values()), tuple) else 1
        how = {"dynamic_axes": axes | {f"out{i}": {} for i in range(n)}, "output_names": [f"out{i}" for i in range(n)]}
    torch.onnx.export(model, tuple(args.values()), path, dynamo=dynamo, input_names=names, external_data=False, verbose=False, **how)
    return model.spec


# ---- Keras, through tf2onnx. A loop over time becomes an LSTM there, or with unroll=True plain operators; other loops stay Loop ----
def keras_models():
    import keras
    from keras import layers as L
    def chain(*layers, time=None, ids=True, out=3):
        first = keras.Input((time,), dtype="int32", name="ids") if ids else keras.Input((time, WIDE), name="x")
        layers = ([L.Embedding(WORDS, WIDE)] if ids else []) + list(layers) + ([L.Dense(out, activation="softmax")] if out else [])
        x = first
        for layer in layers:
            x = layer(x)
        return keras.Model(first, x)
    def residual():
        first = keras.Input((None, WIDE), name="x")
        y = L.LSTM(WIDE, return_sequences=True)(first)
        return keras.Model(first, L.Dense(2)(L.LayerNormalization()(L.Add()([first, y]))))
    def coder():
        ids, h, c = keras.Input((1,), dtype="int32", name="ids"), keras.Input((HIDDEN,), name="h"), keras.Input((HIDDEN,), name="c")
        y, *state = L.LSTM(HIDDEN, return_sequences=True, return_state=True)(L.Embedding(WORDS, WIDE)(ids), initial_state=[h, c])
        return keras.Model([ids, h, c], [L.Dense(WORDS)(y), *state])
    def attend():
        first = keras.Input((None, WIDE), name="x")
        y = L.LSTM(HIDDEN, return_sequences=True)(first)
        return keras.Model(first, L.Dense(2)(L.GlobalAveragePooling1D()(L.Attention()([y, y]))))
    both, deep = lambda layer: L.Bidirectional(layer), {"return_sequences": True}
    return {
        "keras_tagger": lambda: chain(L.LSTM(HIDDEN, **deep)), "keras_classifier": lambda: chain(L.LSTM(HIDDEN), L.Dropout(.3)),
        "keras_both": lambda: chain(both(L.LSTM(HIDDEN, **deep)), L.Dense(4, activation="relu")),
        "keras_both_last": lambda: chain(both(L.LSTM(HIDDEN))), "keras_two": lambda: chain(L.LSTM(HIDDEN, **deep), L.LSTM(4), ids=False),
        "keras_three_norm": lambda: chain(L.LSTM(4, **deep), L.LayerNormalization(), L.LSTM(4, **deep), L.LSTM(4), L.Dense(4, activation="elu")),
        "keras_pool": lambda: chain(both(L.LSTM(HIDDEN, **deep)), L.GlobalMaxPooling1D()), "keras_scaled": lambda: chain(
            L.Rescaling(.3, -.2), L.LSTM(HIDDEN), ids=False, out=1), "keras_residual": residual,
        "keras_states": coder, "keras_attend": attend, "keras_reversed": lambda: chain(L.LSTM(HIDDEN, go_backwards=True)),
        "keras_gru_unrolled": lambda: chain(L.GRU(HIDDEN, unroll=True), time=6), "keras_rnn_unrolled": lambda: chain(
            L.SimpleRNN(HIDDEN, unroll=True, **deep), time=6, ids=False), "keras_gru_before_unrolled": lambda: chain(
            L.GRU(HIDDEN, unroll=True, reset_after=False, **deep), time=6), "keras_flat": lambda: chain(L.LSTM(4, **deep), L.Flatten(), time=6),
        "keras_gru_loop": lambda: chain(L.GRU(HIDDEN)), "keras_masked_loop": lambda: chain(L.Masking(), L.LSTM(HIDDEN), ids=False),
    }


def export_keras(path, make):
    import keras
    keras.utils.set_random_seed(1)
    model = make()
    spec = [(i.name, tuple("b" if k == 0 else "t" if n is None else n for k, n in enumerate(i.shape))) for i in model.inputs]
    model([inputs(spec, 3, 6)[n].astype(i.dtype) for (n, _), i in zip(spec, model.inputs)])
    model.export(path, format="onnx", verbose=False)
    return spec


# ---- scikit-learn: a scaler in front ----
def sklearn_models():
    from sklearn import decomposition, linear_model, neural_network, pipeline, preprocessing
    make, mlp = pipeline.make_pipeline, {"hidden_layer_sizes": (6, 5), "max_iter": 40, "random_state": 0}
    return {
        "scaler_mlp": make(preprocessing.StandardScaler(), neural_network.MLPRegressor(activation="tanh", **mlp)),
        "scaler_mlp_classes": make(preprocessing.StandardScaler(), neural_network.MLPClassifier(**mlp)),
        "scaler_ridge": make(preprocessing.MinMaxScaler(), linear_model.Ridge()),
        "scaler_pca_logistic": make(preprocessing.StandardScaler(), decomposition.PCA(3), linear_model.LogisticRegression()),
    }


def export_sklearn(path, name, model):
    from skl2onnx import to_onnx
    r = np.random.default_rng(2)
    x = (r.standard_normal((60, WIDE)) * [1, 20, .1, 3] + [0, 5, 1, -7]).astype(np.float32)
    model.fit(x, (x[:, 0] > .3).astype(int) + (x[:, 3] > -7) if name.endswith(("classes", "logistic")) else x[:, 0] * 2 - x[:, 2])
    options = {"zipmap": False} if hasattr(model, "predict_proba") else {}
    pathlib.Path(path).write_bytes(to_onnx(model, x[:1], target_opset=17, options={id(model): options} if options else None).SerializeToString())
    return x


# ---- all of them ----
def exports():
    """Yields names, and functions that export to a path and return the inputs."""
    for name, make in TORCH.items():
        yield name + ".trace", lambda p, name=name, make=make: export_torch(p, name, make, False)
        if "packed" not in name and name not in ("class_masked", "class_average"):   # torch.export does not pack
            yield name + ".dynamo", lambda p, name=name, make=make: export_torch(p, name, make, True)
    for name, make in optional(keras_models):
        yield name, lambda p, make=make: export_keras(p, make)
    for name, model in optional(sklearn_models):
        yield name, lambda p, name=name, model=model: export_sklearn(p, name, model)


def optional(models):
    try:
        return models().items()
    except ImportError as e:
        print(f"skipped: {models.__name__}: {e}")
        return ()


def runs_of(path, spec, given):
    """Runs the model in onnxruntime and keeps inputs and outputs beside it, .npy arrays end to end. Sizes that the exporter fixed are left out."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session, k = onnxruntime.InferenceSession(path, options), 0
    types = {"tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(float)": np.float32}
    for b, t in SIZES:
        made = inputs(spec, b, t, k) if spec else {"X": given[:b]}
        feed = {i.name: made[i.name].astype(types[i.type]) for i in session.get_inputs()}
        try:
            outputs = session.run(None, feed)
        except Exception:
            if (b, t) == SIZES[0]:
                raise
            continue
        for part, arrays in (("in", feed.values()), ("out", outputs)):
            with open(path.replace(".part", f".{k}.{part}"), "wb") as f:
                for a in arrays:
                    np.save(f, np.ascontiguousarray(a))
        k += 1


def export_all(folder, only):
    paths = []
    for name, export in exports():
        path = folder / f"{name}.onnx"
        if only not in name:
            continue
        if not path.exists():
            with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
                try:
                    part = str(path.with_suffix(".part"))
                    spec = export(part)
                    runs_of(part, *(spec, None) if isinstance(spec, list) else (None, spec))
                    os.rename(part, path)
                except Exception as e:
                    out.error = e
            if not path.exists():
                print(f"  FAIL  {name} is not exported: {type(out.error).__name__}: {str(out.error)[-300:]}")
                continue
        paths.append(path)
    return paths


def arrays_in(path):
    with open(path, "rb") as f:
        size = os.fstat(f.fileno()).st_size
        while f.tell() < size:
            yield np.load(f)


def compare(path, program, folder):
    """Returns the fault of weft's outputs; an empty text: none."""
    k, refused = 0, REFUSED.get(path.stem)
    while (given := path.with_suffix(f".{k}.in")).exists():
        files, expected = [], list(arrays_in(path.with_suffix(f".{k}.out")))
        for i, a in enumerate(arrays_in(given)):
            np.save(f"{folder}/in{i}.npy", a)
            files += ["--input", f"{folder}/in{i}.npy"]
        for i in range(len(expected)):
            files += ["--output", f"{folder}/out{i}.npy"]
        r = subprocess.run([program, "run", path, *files], capture_output=True, text=True, timeout=60)
        if refused:
            return "" if r.returncode and refused in r.stderr else f"{refused} is not refused: {r.stderr}"
        if r.returncode:
            return f"run {k}: status {r.returncode}: {r.stderr.strip()[-400:]}"
        for i, x in enumerate(expected):
            y = np.load(f"{folder}/out{i}.npy")
            if x.shape != y.shape or not np.allclose(x, y, rtol=1e-5, atol=1e-5, equal_nan=True):
                off = np.abs(x - y).max() if x.shape == y.shape else y.shape
                return f"run {k}: output {i} of shape {x.shape}: off by {off}"
        k += 1
    return ""


def operators(paths):
    """Lists operators with the number of models, and their attributes."""
    models, forms, opsets = collections.Counter(), collections.defaultdict(collections.Counter), collections.Counter()
    for path in paths:
        model, here = onnx.load(path), set()
        opsets.update(f"{o.domain or 'ai.onnx'} {o.version}" for o in model.opset_import)
        graphs = [model.graph] + list(model.functions)
        for graph in graphs:
            for node in graph.node:
                here.add(key := (node.domain + "." if node.domain else "") + node.op_type)
                absent = [str(i) for i, name in enumerate(node.input) if not name]
                form = [f"{a.name}={'graph' if a.HasField('g') else str(onnx.helper.get_attribute_value(a))[:30]}" for a in node.attribute if a.name != "value"]
                forms[key][" ".join(sorted(form) + ["without:" + ",".join(absent)] * bool(absent) + [f"inputs:{len(node.input)}"])] += 1
                graphs.extend(a.g for a in node.attribute if a.HasField("g"))
        models.update(here)
    print("opsets:", dict(opsets))
    for key, n in models.most_common():
        print(f"{key:30} {n:3} models;  " + ";  ".join(f"{form} ({k})" for form, k in forms[key].most_common(8)))


def main():
    a = argparse.ArgumentParser()
    a.add_argument("folder", type=pathlib.Path)
    a.add_argument("--run")
    a.add_argument("--only", default="")
    a.add_argument("--operators", action="store_true")
    a = a.parse_args()
    a.folder.mkdir(parents=True, exist_ok=True)
    paths, faults = export_all(a.folder, a.only), 0
    if a.operators:
        return operators(paths)
    with tempfile.TemporaryDirectory() as own:
        for path in paths if a.run else []:
            if fault := compare(path, a.run, own):
                faults += 1
                print(f"  FAIL  {path.stem}: {fault}")
    missing = sum(a.only in name for name, _ in exports()) - len(paths)
    print(f"zoo: {len(paths)} models{' agree' if a.run and not faults else ''}, {faults} faults, {missing} not exported")
    return 1 if faults or missing else 0


if __name__ == "__main__":
    sys.exit(main())
