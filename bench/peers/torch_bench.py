#!/usr/bin/env python3
"""torch_bench.py - PyTorch on the work of weft_bench: one JSON object a line, the same fields.

    python3 bench/peers/torch_bench.py --case net,lstm,bilstm [--device cpu|cuda] [--threads N] [--runs R] [--tf32] [--quick] [--tiny]

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


def lengths(kind, batch, longest):
    if kind == "triangle":
        return [longest - i % longest for i in range(batch)]
    low, x, out = max(1, longest // 8), 1, []
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


def measure(args, row, net, loss, step, packed):
    row = {"who": f"torch-{torch.__version__}-{args.device}", "threads": torch.get_num_threads(), **row, "precision": "tf32" if args.tf32 else "fp32"}
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
    return {"net": net, "lstm": lstm, "bilstm": bilstm}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--case", default="net,lstm,bilstm")
    p.add_argument("--device", default="cpu")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--runs", type=int, default=7)
    p.add_argument("--tf32", action="store_true")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--tiny", action="store_true")
    args = p.parse_args()
    torch.set_num_threads(args.threads)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = args.tf32
    for name in args.case.split(","):
        for row in cases(args)[name]:
            run(args, row)


main()
