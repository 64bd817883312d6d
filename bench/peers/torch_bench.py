#!/usr/bin/env python3
"""torch_bench.py - PyTorch on the work of weft_bench: one JSON object a line, the same fields.

    python3 bench/peers/torch_bench.py --case net,lstm,bilstm,transformer_lstm [--compile] [--device cpu|cuda] [--threads N] [--runs R] [--tf32] [--quick] [--tiny]

Every case runs padded and packed. Weights, inputs and lengths come from the formulas of bench/models.c and weft_bench.c; loss and
norm are those of one training step, so that equal numbers prove equal work. On CUDA the default is fp32 for products and for
cuDNN's recurrent layers alike (PyTorch lets the latter use TF32 unless it is told); --tf32 allows it for both. A device that fails is a result, too.
"""
import argparse
import json
import statistics
import time

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


def formula(name, n):
    key = 0
    for c in name.encode():
        key = (key * 31 + c) % 2**64
    i = torch.arange(n, dtype=torch.int64)
    x = (i * 2654435761 + key % 65521 * 40503) % 2**31
    x = (1103515245 * x + 12345) % 2**31
    return (x >> 15).double() / 65536 - .5


def lengths(kind, batch, longest, seed=1):
    if kind == "triangle":
        return [longest - i % longest for i in range(batch)]
    if kind == "equal":
        return [longest] * batch
    low, x, out = max(1, longest // 8), seed, []
    for _ in range(batch):
        x = (1103515245 * x + 12345) % 2**31
        out.append(low + (x >> 8) % (longest - low + 1))
    return out


def set_weights(module, hidden):
    with torch.no_grad():
        for name, p in module.named_parameters():
            p.copy_((2 / hidden**.5 * formula(name, p.numel())).reshape(p.shape))


def padded(flat, lens, longest):
    """[tokens, ..] end to end -> [B, T, ..] with zeros behind each sequence"""
    out, at = flat.new_zeros((len(lens), longest) + flat.shape[1:]), 0
    for i, n in enumerate(lens):
        out[i, :n] = flat[at:at + n]
        at += n
    return out


class Net(nn.Module):
    """what both cases are: an embedding (or none), LSTM layers, a linear head summed over time (or none)"""

    def __init__(self, row):
        super().__init__()
        if row["case"] == "net":
            self.embedding = nn.Embedding(10, row["I"], padding_idx=0)
        self.lstm = nn.LSTM(row["I"], row["H"], row["layers"], batch_first=True, bidirectional=row["bidirectional"])
        if row["case"] == "net":
            self.linear = nn.Linear(row["H"], 2)

    def forward(self, x, lens, keep, packed):
        if hasattr(self, "embedding"):
            x = self.embedding(x)
        if packed:
            y, _ = self.lstm(pack_padded_sequence(x, lens, batch_first=True, enforce_sorted=False))
            y, _ = pad_packed_sequence(y, batch_first=True)
        else:
            y = self.lstm(x)[0]
        if hasattr(self, "linear"):
            return (self.linear(y) * keep).sum(1)
        return y * keep


class GLU(nn.Module):
    def __init__(self, n, m):
        super().__init__()
        self.fc1 = nn.Linear(n, 2 * m)

    def forward(self, x):
        a, b = self.fc1(x).chunk(2, -1)
        return a * torch.sigmoid(b)


class GRN(nn.Module):
    def __init__(self, n, m):
        super().__init__()
        self.project, self.fc1, self.fc2, self.glu1, self.norm = nn.Linear(n, m), nn.Linear(n, m), nn.Linear(m, m), GLU(m, m), nn.LayerNorm(m)

    def forward(self, x):
        return self.norm(self.glu1(self.fc2(nn.functional.elu(self.fc1(x)))) + self.project(x))


class Attention(nn.Module):
    """heads with queries and keys of their own and shared values; one product for all heads, and the mean of their maps before the values: the
    faster way. Its weights are filled as if each head had its own layers, as they have by name in weft"""

    def __init__(self, d, heads):
        super().__init__()
        self.heads, self.k = heads, d // heads
        self.query_layers, self.key_layers = nn.Linear(d, d), nn.Linear(d, d)
        self.value_layer, self.output_layer = nn.Linear(d, d // heads), nn.Linear(d // heads, d)

    def forward(self, q, memory, forbidden):
        B, Tq, _ = q.shape
        Q = self.query_layers(q).view(B, Tq, self.heads, self.k).transpose(1, 2)
        K = self.key_layers(memory).view(B, memory.shape[1], self.heads, self.k).transpose(1, 2)
        scores = ((Q @ K.transpose(2, 3)) * self.k**-.5).masked_fill(forbidden[:, None], -1e9)
        return self.output_layer(scores.softmax(-1).mean(1) @ self.value_layer(memory))


class Gate(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.glu, self.add_norm = GLU(d, d), nn.ModuleDict({"norm": nn.LayerNorm(d)})

    def forward(self, x, skip):
        return self.add_norm["norm"](self.glu(x) + skip)


class TransformerLSTM(nn.Module):
    def __init__(self, past, future, d, layers, heads=4, blocks=2):
        super().__init__()
        self.encoder_grn, self.decoder_grn = GRN(past, d), GRN(future, d)
        self.encoder, self.decoder = (nn.LSTM(d, d, layers, batch_first=True) for _ in range(2))
        self.transformer_blocks = nn.ModuleList(nn.ModuleDict({
            "encoder_self_attention": Attention(d, heads), "cross_attention": Attention(d, heads),
            "encoder_gate_add_norm": Gate(d), "decoder_gate_add_norm": Gate(d)}) for _ in range(blocks))
        self.output_head = nn.Linear(d, 1)

    def set_weights(self, hidden):
        with torch.no_grad():
            for name, p in self.named_parameters():
                part = next((w for w in ("query_layers", "key_layers") if w in name), None)
                names = [name.replace(part, f"{part}.{h}") for h in range(4)] if part else [name]
                p.copy_(torch.cat([2 / hidden**.5 * formula(n, p.numel() // len(names)) for n in names]).reshape(p.shape))

    def run(self, lstm, x, lens, state, packed):
        if not packed:
            return lstm(x, state)
        y, state = lstm(pack_padded_sequence(x, lens, batch_first=True, enforce_sorted=False), state)
        return pad_packed_sequence(y, batch_first=True, total_length=x.shape[1])[0], state

    def forward(self, past, future, past_lens, future_lens, packed):
        ge, gd = self.encoder_grn(past), self.decoder_grn(future)
        e, state = self.run(self.encoder, ge, past_lens, None, packed)
        d, _ = self.run(self.decoder, gd, future_lens, state, packed)
        e, d, Te, Td = e + ge, d + gd, past.shape[1], future.shape[1]
        pads = torch.arange(Te, device=past.device)[None] >= past_lens[:, None].to(past.device)
        causal = torch.ones(Td, Td, dtype=torch.bool, device=past.device).triu()
        both = torch.cat([pads[:, None].expand(-1, Td, -1), causal[None].expand(past.shape[0], -1, -1)], 2)
        for b in self.transformer_blocks:
            e = b["encoder_gate_add_norm"](b["encoder_self_attention"](e, e, pads[:, None].expand(-1, Te, -1)), e)
            d = b["decoder_gate_add_norm"](b["cross_attention"](d, torch.cat([e, d], 1), both), d)
        return self.output_head(d)


def timed(step, device, runs):
    out = []
    step(), step()
    while len(out) < runs and sum(out) <= 20e3:
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        step()
        if device == "cuda":
            torch.cuda.synchronize()
        out.append((time.perf_counter() - start) * 1e3)
    return out


def run(args, row):
    if args.tiny:
        row.update(B=min(row["B"], 8), T=min(row["T"], 12), I=min(row["I"], 16), H=min(row["H"], 16))
    lens = lengths(row["lengths"], row["B"], row["T"])
    tokens, classifier = sum(lens), row["case"] == "net"
    flat = 1 + ((formula("ids", tokens) + .5) * 9).long() if classifier else (2 * formula("x", tokens * row["I"])).float().reshape(tokens, row["I"])
    x = padded(flat, lens, row["T"]).to(args.device)
    keep = padded(torch.ones(tokens, 1), lens, row["T"]).to(args.device)
    classes = (torch.arange(row["B"]) % 2).to(args.device)
    net, lens = Net(row), torch.tensor(lens)
    set_weights(net, row["H"])
    net.to(args.device)
    if classifier:                               # weft's embedding, too, has zeros in the row of the padding
        with torch.no_grad():
            net.embedding.weight[0] = 0

    def loss(packed):
        y = net(x, lens, keep, packed)
        return nn.functional.cross_entropy(y, classes) if classifier else y.sum()

    def train(packed):
        net.zero_grad(set_to_none=True)
        loss(packed).backward()

    def forward(packed):
        with torch.no_grad():
            loss(packed)

    for packed in (False, True):
        for name, step in (("forward", forward), ("train", train)):
            measure(args, dict(row, tokens=tokens, layout="packed" if packed else "padded", **{"pass": name}), net, loss, lambda: step(packed), packed)


def run_transformer_lstm(args, row):
    """a padded LSTM that runs over its pads hands on another state: its loss is not weft's; the work, and what must be paid for it, are"""
    if args.tiny:
        row.update(B=4, T=12, horizon=6, H=16)
    past_lens, future_lens = lengths(row["lengths"], row["B"], row["T"], 1), lengths(row["lengths"], row["B"], row["horizon"], 2)
    row.update(T=max(past_lens), horizon=max(future_lens))
    tokens = sum(past_lens) + sum(future_lens)

    def side(name, lens, features):
        return padded((2 * formula(name, sum(lens) * features)).float().reshape(-1, features), lens, max(lens)).to(args.device)
    past, future, target = side("past", past_lens, 4), side("future", future_lens, 3), side("target", future_lens, 1)
    keep = padded(torch.ones(sum(future_lens), 1), future_lens, row["horizon"]).to(args.device)
    net = TransformerLSTM(4, 3, row["H"], row["layers"])
    net.set_weights(row["H"])
    net.to(args.device)
    past_lens, future_lens = torch.tensor(past_lens), torch.tensor(future_lens)

    def loss_by(model):
        return lambda packed: ((model(past, future, past_lens, future_lens, packed) - target).square() * keep).sum() / keep.sum()

    ways = [(loss_by(net), packed, "packed" if packed else "padded", "") for packed in (False, True)]
    if args.compile:
        ways.append((loss_by(torch.compile(net)), False, "padded", "-compile"))
    for loss, packed, layout, suffix in ways:
        def train():
            net.zero_grad(set_to_none=True)
            loss(packed).backward()

        def forward():
            with torch.no_grad():
                loss(packed)
        for name, step in (("forward", forward), ("train", train)):
            measure(args, dict(row, tokens=tokens, layout=layout, **{"pass": name}), net, loss, step, packed, suffix)


def measure(args, row, net, loss, step, packed, suffix=""):
    row = {"who": f"torch-{torch.__version__}-{args.device}{suffix}", "threads": torch.get_num_threads(), **row, "precision": "tf32" if args.tf32 else "fp32"}
    try:
        net.zero_grad(set_to_none=True)
        value = loss(packed)
        value.backward()
        row["loss"] = float(f"{value.item():.6g}")
        row["norm"] = float(f"{sum(p.grad.double().square().sum() for p in net.parameters()).sqrt().item():.6g}")
        ms = timed(step, args.device, args.runs)
        row.update(ms=round(statistics.median(ms), 4), ms_min=round(min(ms), 4), runs=len(ms))
    except Exception as e:
        row["error"] = f"{type(e).__name__}: {e}"[:200]
    print(json.dumps(row), flush=True)


def cases(args):
    quick, gpu = args.quick, args.device == "cuda"
    net = [dict(case="net", B=512, T=T, I=16, H=32, layers=1, bidirectional=False, lengths="triangle") for T in ((64, 256) if quick else (32, 64, 128, 256, 512))]
    shapes = [(128, 64, 512), (256, 64, 512), (32, 64, 512), (64, 64, 512), (512, 64, 512), (1024, 64, 512)] if gpu else \
             [(128, 64, 128), (256, 64, 128), (128, 8, 256), (512, 64, 128), (1024, 64, 64)]
    lstm = [dict(case="lstm", B=B, T=T, I=H, H=H, layers=1, bidirectional=False, lengths="uniform") for H, B, T in (shapes[:2] if quick else shapes)]
    bilstm = [dict(case="bilstm", B=64, T=128, I=256, H=256, layers=2, bidirectional=True, lengths="uniform")]
    transformer = [dict(case="transformer_lstm", B=64, T=300, horizon=100, I=4, H=128, layers=2, bidirectional=False, lengths=kind)
                   for kind in (("uniform",) if quick else ("uniform", "equal", "triangle"))]
    return {"net": net, "lstm": lstm, "bilstm": bilstm, "transformer_lstm": transformer}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--case", default="net,lstm,bilstm,transformer_lstm")
    p.add_argument("--device", default="cpu")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--runs", type=int, default=7)
    p.add_argument("--tf32", action="store_true")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--tiny", action="store_true")
    p.add_argument("--compile", action="store_true", help="transformer_lstm padded under torch.compile, too")
    args = p.parse_args()
    torch.set_num_threads(args.threads)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = args.tf32
    for name in args.case.split(","):
        for row in cases(args)[name]:
            (run_transformer_lstm if name == "transformer_lstm" else run)(args, row)


main()
