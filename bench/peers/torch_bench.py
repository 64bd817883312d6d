#!/usr/bin/env python3
"""torch_bench.py - runs the work of weft_bench in PyTorch. Prints one JSON object a line with the same fields.

    python3 bench/peers/torch_bench.py --case net,lstm,gru,bilstm,mingru,scan,transformer_lstm,tft,attention,g2p,conv,crf,ctc,gemm,long,never_slower
                                       [--device cpu|cuda] [--threads N] [--runs R] [--precision fp32|tf32|bf16] [--compile] [--peak] [--quick] [--tiny]

Every case runs padded and packed: recurrent layers with pack_padded_sequence, attention sequence by sequence over concatenated tokens.
Attention also runs with nested tensors. Weights, inputs and lengths come from the formulas of bench/formula.c. Equal loss and gradient norm of
one training step prove equal work. --peak measures the memory of a step as bench/train.c does. bf16 is autocast. tf32 is for CUDA; fp32 there
turns TF32 off for products and for cuDNN's recurrent layers, which use it by default. A layout that fails gives a row with the error. A case that
would take minutes is left out with a message.
"""
import argparse
import contextlib
import ctypes
import gc
import json
import os
import statistics
import sys
import time

sys.dont_write_bytecode = True
import torch
from torch import nn

from torch_models import G2P, TFT, MinGRU, MultiHead, Recurrent, Scan, scan_loop, TransformerLSTM, formula, lengths, padded, reals, set_weights

PACKED_BYTES = 1e11              # limit for the backward of packed layers, where each of T steps writes gradients of all tokens
LONG = 10                        # a step that takes more seconds runs once


# ---- a module, and its loss in each layout. `step`: a training step that is more than a loss and its backward ----
class Work:
    def __init__(self, net, ways, step=None, graphs=1):
        self.net, self.ways, self.step, self.graphs = net, ways, step, graphs


def recurrent(args, row):
    lens = lengths(row["lengths"], row["B"], row["T"])
    tokens, classifier = sum(lens), row["case"] in ("net", "slow_pack")
    flat = 1 + ((formula("ids", tokens) + .5) * 9).long() if classifier else reals("x", tokens, row["I"])
    x = padded(flat, lens, row["T"]).to(args.device)
    keep = padded(torch.ones(tokens, 1), lens, row["T"]).to(args.device)
    classes = (torch.arange(row["B"]) % 2).to(args.device)
    net, lens = set_weights(Recurrent(row), row["H"]), torch.tensor(lens)
    if classifier:                               # as in weft's embedding: the padding row is zero
        with torch.no_grad():
            net.embedding.weight[0] = 0
    net.to(args.device)
    row["tokens"] = tokens

    def loss(packed):
        y = net(x, lens, keep, packed)
        return nn.functional.cross_entropy(y, classes) if classifier else y.float().sum()
    moved = row["T"] * tokens * 16 * row["H"]
    too_long = f"left out: packed, its backward writes {moved / 1e12:.1f} TB" if moved > PACKED_BYTES and row["case"] == "long" else None
    return Work(net, {"padded": lambda: loss(False), "packed": too_long or (lambda: loss(True))})


def scan(args, row):
    """scan and mingru, time-major: steps into one tensor with their own backward; with --compile also a loop that torch.compile fuses."""
    lens = lengths(row["lengths"], row["B"], row["T"])
    tokens = row["tokens"] = sum(lens)

    def side(name, width, scale=1.):
        return padded(scale * reals(name, tokens, width), lens, row["T"]).transpose(0, 1).contiguous().to(args.device)
    keep = padded(torch.ones(tokens, 1), lens, row["T"]).transpose(0, 1).contiguous().to(args.device)
    if row["case"] == "scan":
        net = nn.ParameterDict({name: nn.Parameter(side(name, row["H"], .95)) for name in ("a", "b")}).to(args.device)
        given = lambda: (net["a"], net["b"])
    else:
        x = side("x", row["I"])
        net = set_weights(nn.ModuleDict({"mingru": MinGRU(row["I"], row["H"])}), row["H"]).to(args.device)
        given = lambda: net["mingru"](x)

    def loss_by(run):
        return lambda: (run(*given()) * keep).float().sum()
    ways = {"padded": loss_by(Scan.apply)}
    if args.compile:
        ways["padded-compile"] = loss_by(torch.compile(scan_loop))
    return Work(net, ways)


def transformer_lstm(args, row):
    """The padded LSTM runs over padding and passes on another state, so its loss differs from weft's. The useful work is the same."""
    past_lens, future_lens = lengths(row["lengths"], row["B"], row["T"], 1), lengths(row["lengths"], row["B"], row["horizon"], 2)
    row.update(T=max(past_lens), horizon=max(future_lens), tokens=sum(past_lens) + sum(future_lens))

    def side(name, lens, features):
        return padded(reals(name, sum(lens), features), lens, max(lens)).to(args.device)
    past, future, target = side("past", past_lens, 4), side("future", future_lens, 3), side("target", future_lens, 1)
    keep = padded(torch.ones(sum(future_lens), 1), future_lens, row["horizon"]).to(args.device)
    net = set_weights(TransformerLSTM(4, 3, row["H"], row["layers"]), row["H"]).to(args.device)
    past_lens, future_lens = torch.tensor(past_lens), torch.tensor(future_lens)

    def loss_by(model, packed):
        return lambda: ((model(past, future, past_lens, future_lens, packed) - target).square() * keep).sum() / keep.sum()
    ways = {"padded": loss_by(net, False), "packed": loss_by(net, True)}
    if args.compile:
        ways["padded-compile"] = loss_by(torch.compile(net), False)
    return Work(net, ways)


def tft(args, row):
    B, T, horizon = row["B"], row["T"], row["horizon"]
    row["tokens"] = B * (T + horizon)
    past, future, target = (reals(name, B, n, features).to(args.device) for name, n, features in (("past", T, 4), ("future", horizon, 3), ("target", horizon, 1)))
    net = set_weights(TFT(4, 3, row["H"]), row["H"]).to(args.device)
    return Work(net, {"padded": lambda: (net(past, future) - target).square().mean()})


def attention(args, row):
    lens = lengths(row["lengths"], row["B"], row["T"])
    tokens = row["tokens"] = sum(lens)
    flat = reals("x", tokens, row["H"])
    x, keep = padded(flat, lens, row["T"]).to(args.device), padded(torch.ones(tokens, 1), lens, row["T"]).to(args.device)
    flat = flat.to(args.device)
    mask = keep[:, None, None, :, 0] > 0
    net = set_weights(nn.ModuleDict({"attention": MultiHead(row["H"], row["heads"])}), row["H"]).to(args.device)

    def nested():
        offsets = torch.tensor([0] + lens, device=args.device).cumsum(0)
        return net["attention"](torch.nested.nested_tensor_from_jagged(flat, offsets)).values().float().sum()

    def loss_by(model):
        return lambda: (model(x, mask) * keep).float().sum()
    ways = {"padded": loss_by(net["attention"]), "packed": lambda: net["attention"](flat, lens=lens).float().sum(), "nested": nested}
    if args.compile:
        ways["padded-compile"] = loss_by(torch.compile(net["attention"]))
    return Work(net, ways)


def g2p(args, row, updates=16, classes=40):
    """Runs sixteen updates of the demo's model, with clipping and AdamW (rate 0); see bench/words.c."""
    words, B = updates * row["B"], row["B"]
    read = sorted(lengths("uniform", words, row["T"]))
    write = [max(2, n - i % 3) for i, n in enumerate(read)]
    row["tokens"] = sum(read) + sum(write)
    letter = ((formula("word", sum(read)) + .5) * 26).long()
    after = 1 + ((formula("said", sum(write)) + .5) * (classes - 1)).long()
    after[torch.tensor(write).cumsum(0) - 1] = 0
    before = torch.cat([torch.zeros(1, dtype=torch.long), after[:-1]])
    net = set_weights(G2P(row["I"], row["H"], classes), row["H"]).to(args.device)
    adam = torch.optim.AdamW(net.parameters(), lr=0, weight_decay=0)
    batches, at_read, at_write = [], 0, 0
    for k in range(0, words, B):
        r, w = read[k:k + B], write[k:k + B]
        parts = [padded(flat[at:at + sum(n)], n, max(n), fill).to(args.device)
                 for flat, at, n, fill in ((letter, at_read, r, 0), (before, at_write, w, 0), (after, at_write, w, -100))]
        forbidden = (torch.arange(max(r))[None] >= torch.tensor(r)[:, None]).to(args.device)
        batches.append((*parts, torch.tensor(r), torch.tensor(w), forbidden))
        at_read, at_write = at_read + sum(r), at_write + sum(w)

    def loss_of(batch, packed):
        letter, before, after, r, w, forbidden = batch
        logits = net(letter, before, r, w, forbidden, packed)
        return nn.functional.cross_entropy(logits.float().flatten(0, 1), after.flatten(), ignore_index=-100, label_smoothing=.05)

    def losses(packed):
        return lambda: (loss_of(b, packed) for b in batches)

    def step(loss):
        for value in loss():
            net.zero_grad(set_to_none=True)
            value.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 2)
            adam.step()
    return Work(net, {"padded": losses(False), "packed": losses(True)}, step, updates)


def conv(args, row):
    """Two causal layers. Padding follows each sequence, so only the loss needs a mask. Channels first, PyTorch's layout, from the start."""
    lens = lengths(row["lengths"], row["B"], row["T"])
    row["tokens"] = sum(lens)
    flat = reals("x", sum(lens), row["I"])
    x = padded(flat, lens, row["T"]).transpose(1, 2).contiguous().to(args.device)
    keep = padded(torch.ones(sum(lens), 1), lens, row["T"]).transpose(1, 2).contiguous().to(args.device)
    net = nn.ModuleDict({f"conv{i}": nn.Conv1d(row["I"] if i == 0 else row["H"], row["H"], 3, dilation=1 + i) for i in range(2)})
    set_weights(net, row["H"]).to(args.device)
    apart = [f.t()[None].contiguous() for f in flat.to(args.device).split(lens)]

    def run(y):
        for i in range(2):
            y = net[f"conv{i}"](nn.functional.pad(y.relu() if i else y, (2 * (1 + i), 0)))
        return y
    return Work(net, {"padded": lambda: (run(x) * keep).float().sum(), "packed": lambda: sum(run(y).float().sum() for y in apart)})


def crf(args, row):
    """pytorch-crf, time-major. Without gradients the step is the best path."""
    from torchcrf import CRF
    lens = lengths(row["lengths"], row["B"], row["T"])
    row["tokens"] = sum(lens)

    def side(flat):
        return padded(flat, lens, row["T"]).transpose(0, 1).contiguous().to(args.device)
    net = set_weights(nn.ModuleDict({"crf": CRF(row["H"])}), 1)
    net.register_parameter("emissions", nn.Parameter(side(2 * formula("emissions", row["tokens"] * row["H"]).reshape(-1, row["H"]))))
    net.to(args.device)
    tags = side(((formula("tags", row["tokens"]) + .5) * row["H"]).long())
    keep = side(torch.ones(row["tokens"], dtype=torch.bool))
    return Work(net, {"padded": lambda: -net["crf"](net.emissions, tags, keep) if torch.is_grad_enabled() else net["crf"].decode(net.emissions, keep)})


def ctc(args, row):
    """A label for every four steps; class 0 is the blank. Time-major logits from the start."""
    lens = lengths(row["lengths"], row["B"], row["T"])
    row["tokens"] = sum(lens)
    net = nn.Module()
    flat = 2 * formula("emissions", row["tokens"] * row["H"]).reshape(-1, row["H"])
    net.register_parameter("emissions", nn.Parameter(padded(flat, lens, row["T"]).transpose(0, 1).contiguous().to(args.device)))
    said = torch.tensor([n // 4 for n in lens])
    labels = 1 + ((formula("tags", int(said.sum())) + .5) * (row["H"] - 1)).long().to(args.device)

    def loss():
        return nn.functional.ctc_loss(net.emissions.float().log_softmax(2), labels, torch.tensor(lens), said, reduction="sum")
    return Work(net, {"padded": loss})


BUILD = {"conv": conv, "crf": crf, "ctc": ctc, "scan": scan, "mingru": scan, "transformer_lstm": transformer_lstm, "tft": tft, "attention": attention, "g2p": g2p}


# ---- steps ----
def precision(args):
    return torch.autocast(args.device, torch.bfloat16) if args.precision == "bf16" else contextlib.nullcontext()


def graphs_of(args, work, loss):
    """Yields the losses of a step. Use each before the next is made."""
    with precision(args):
        if work.graphs == 1:
            yield loss()
        else:
            yield from loss()


def train(args, work, loss):
    if work.step:
        work.step(lambda: graphs_of(args, work, loss))
    else:
        work.net.zero_grad(set_to_none=True)
        for value in graphs_of(args, work, loss):
            value.backward()


def forward(args, work, loss):
    with torch.no_grad():
        for _ in graphs_of(args, work, loss):
            pass


def prove(args, work, loss):
    """Returns loss, gradient norm and seconds of a step without its optimiser."""
    work.net.zero_grad(set_to_none=True)
    start, total = time.perf_counter(), 0.
    for value in graphs_of(args, work, loss):
        value.backward()
        total += value.item()
    norm = sum(p.grad.double().square().sum() for p in work.net.parameters()).sqrt().item()
    return total, norm, time.perf_counter() - start


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


# ---- memory, as in bench/train.c ----
def resident(which):
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith(which))


def grow(args, row, way):
    """Returns the growth of the peak memory over one step; runs in a child process."""
    small = dict(row, B=1, T=1, **({"horizon": 1} if "horizon" in row else {}))
    torch.set_num_threads(args.threads)
    for shape in (small, dict(row)):
        work = build(args, shape)
        for p in work.net.parameters():
            p.grad = torch.zeros_like(p)
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        with open("/proc/self/clear_refs", "w") as f:
            f.write("5")
        begin = resident("VmRSS")
        train(args, work, work.ways[way])
        growth = resident("VmHWM") - begin
    return growth


def step_bytes(args, row, way):
    ends = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(ends[1], str(grow(args, row, way)).encode())
        finally:
            os._exit(0)
    os.close(ends[1])
    with os.fdopen(ends[0]) as f:
        said = f.read()
    os.waitpid(child, 0)
    return int(said) if said else None


def peaks(args, names):
    """Measures all peaks. Call it before any computation, because a forked child has no threads of its parent."""
    found = {}
    for case in names:
        for row in cases(args)[case]:
            for way in ("padded", "packed", "nested") if case != "gemm" and args.device == "cpu" else ():
                found[json.dumps(row), way] = step_bytes(args, row, way) if way != "nested" or case == "attention" else None
    return found


# ---- rows ----
def print_row(args, row, suffix="", **more):
    print(json.dumps({"who": f"torch-{torch.__version__}-{args.device}{suffix}", "threads": torch.get_num_threads(), **row,
                      "precision": args.precision, **more}), flush=True)


def numbers(ms):
    return dict(ms=round(statistics.median(ms), 4), ms_min=round(min(ms), 4), runs=len(ms))


def shortened(x):
    return float(f"{x:.6g}")


def build(args, row):
    return BUILD.get(row["case"], recurrent)(args, row)


def run(args, row, found):
    key = json.dumps(row)
    work = build(args, row)
    for way, loss in work.ways.items():
        layout, suffix = way.split("-")[0], "-compile" if way.endswith("compile") else ""
        try:
            if isinstance(loss, str):
                raise TimeoutError(loss)
            for _ in range(2 if suffix else 1):  # the first step of a compiled model compiles it
                total, norm, seconds = prove(args, work, loss)
            proof = dict(loss=shortened(total), norm=shortened(norm))
            for name, step in (("forward", forward), ("train", train)):
                ms = [seconds * 1e3] if seconds > LONG and name == "train" else timed(lambda: step(args, work, loss), args.device, args.runs)
                peak = {"peak_bytes": found[key, way]} if name == "train" and found.get((key, way)) else {}
                print_row(args, row, suffix, layout=layout, **{"pass": name}, **proof, **peak, **numbers(ms))
        except Exception as e:
            print_row(args, row, suffix, layout=layout, **{"pass": "train"}, error=f"{type(e).__name__}: {e}"[:200])


def gemm(args, row):
    x, weight, dy = (reals(name, *shape).to(args.device) for name, shape in
                     (("x", (row["B"], row["I"])), ("weight", (row["H"], row["I"])), ("dy", (row["B"], row["H"]))))
    for name, product in (("forward", lambda: torch.mm(x, weight.t())), ("dx", lambda: torch.mm(dy, weight)), ("dw", lambda: torch.mm(dy.t(), x))):
        with torch.no_grad(), precision(args):
            y = product().float()
            ms = timed(product, args.device, args.runs)
        print_row(args, row, layout="plain", **{"pass": name}, loss=shortened(y.sum().item()), norm=shortened(y.norm().item()), **numbers(ms))


# ---- shapes: those of weft_bench ----
def layer(case, H, B, T, kind, layers=1, both=False):
    return dict(case=case, B=B, T=T, I=H, H=H, layers=layers, bidirectional=both, lengths=kind)


def cases(args):
    quick, gpu = args.quick, args.device == "cuda"
    net = [dict(case="net", B=512, T=T, I=16, H=32, layers=1, bidirectional=False, lengths="triangle") for T in ((64, 256) if quick else (32, 64, 128, 256, 512))]
    shapes = [(128, 64, 512), (256, 64, 512), (32, 64, 512), (64, 64, 512), (512, 64, 512), (1024, 64, 512)] if gpu else \
             [(128, 64, 128), (256, 64, 128), (512, 64, 128), (128, 8, 256), (1024, 64, 64)]
    alone = {case: [layer(case, *s, "uniform") for s in (shapes[:2 if gpu else 3] if quick else shapes)] for case in ("lstm", "gru")}
    transformer = [dict(case="transformer_lstm", B=64, T=300, horizon=100, I=4, H=128, layers=2, bidirectional=False, lengths=kind)
                   for kind in (("uniform",) if quick or args.tiny else ("uniform", "equal", "triangle"))]
    fusion = [dict(case="tft", B=B, T=200, horizon=80, I=4, H=64, layers=1, bidirectional=False, lengths="equal") for B in ((8,) if quick or args.tiny else (8, 64))]
    heads = [dict(layer("attention", H, B, T, "uniform"), heads=n) for H, n, B, T in ((128, 4, 64, 300), (512, 8, 64, 128), (256, 8, 8, 1024))[:2 if quick else 3]]
    words = [dict(case="g2p", B=32, T=16, I=32, H=128, layers=2, bidirectional=True, lengths="pooled")]
    convs = [layer("conv", *s, kind, 2) for s in ((64, 64, 128), (256, 64, 128), (128, 64, 128), (512, 64, 64), (32, 64, 512))[:2 if quick else 5] for kind in ("uniform", "equal")]
    products = [dict(case="gemm", B=B, T=1, I=I, H=H, layers=1, bidirectional=False, lengths="equal", tokens=B) for B, I, H in
                ((5176, 128, 512), (5176, 256, 1024), (65792, 16, 128), (65792, 32, 2), (5176, 512, 2048), (5176, 128, 128), (1024, 512, 8000),
                 (64, 256, 1024), (1, 512, 2048))[:4 if quick else 9]]
    long = [layer("long", H, 2**18 // T, T, "equal") for H in ((32,) if quick else (32, 128)) for T in ((32, 4096) if quick else (32, 4096, 128, 512, 2048))]
    grid = [layer("never_slower", H, B, min(max(2**32 // (48 * H * H * B), 4), 128), "uniform")
            for H in (32, 128, 1024, 16, 100, 256, 512)[:3 if quick else 7] for B in (1, 64, 8, 512)[:2 if quick else 4]]
    slow = [dict(net[0], case="slow_pack", T=T, lengths=kind) for kind in ("equal", "triangle") for T in (32, 64, 128, 256, 512)[:3 if quick else 5]]
    found = {"net": net, "slow_pack": slow, **alone, "bilstm": [layer("bilstm", 256, 64, 128, "uniform", 2, True)], "mingru": [layer("mingru", 256, 64, 128, "uniform")], "scan": [layer("scan", 256, 64, 128, "uniform")], "transformer_lstm": transformer, "tft": fusion, "attention": heads,
             "g2p": words, "conv": convs, "crf": [layer("crf", H, 64, 128, "uniform") for H in (9, 45)], "ctc": [layer("ctc", 40, 64, 128, "uniform"), layer("ctc", 64, 16, 800, "uniform")], "gemm": products, "long": long + ([] if quick else [layer("long", 128, 1, 70000, "equal")]), "never_slower": grid}
    for row in (r for rows in found.values() for r in rows) if args.tiny else ():
        row.update({k: min(row[k], most) for k, most in dict(B=8, T=12, I=16, H=16, horizon=6, tokens=8).items() if k in row})
    return found


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--case", default="net,lstm,bilstm,transformer_lstm")
    p.add_argument("--device", default="cpu")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--runs", type=int, default=7)
    p.add_argument("--precision", default="fp32", choices=("fp32", "tf32", "bf16"))
    p.add_argument("--tf32", action="store_const", dest="precision", const="tf32")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--tiny", action="store_true")
    p.add_argument("--peak", action="store_true", help="also measure the memory of a training step")
    p.add_argument("--compile", action="store_true", help="also run padded transformer_lstm, attention, mingru and scan with torch.compile")
    return p.parse_args()


def main():
    args = arguments()
    names = args.case.split(",")
    found = peaks(args, names) if args.peak else {}
    torch.set_num_threads(args.threads)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = args.precision == "tf32"
    for name in names:
        for row in cases(args)[name]:
            gemm(args, row) if name == "gemm" else run(args, row, found)


main()
