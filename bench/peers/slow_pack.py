#!/usr/bin/env python3
"""PyTorch's side of examples/slow_pack.c, which starts it and takes turns with it: run by run, so that both meet the same neighbours.

    python3 slow_pack.py --threads 2 --device cpu

First it says who it is, {"who": ..}. Then a line "SETUP B T LAYOUT PASS" on stdin is one run, and its answer a line {"ms": .., "loss": .., "norm": ..}.
SETUP A: B sequences of length T; B: of T, T - 1, .. 1 and again. LAYOUT padded, packed. PASS forward, train (zero_grad, forward, loss, backward); norm, that
of the gradient, is 0 in forward. Where there is no torch, or not on that device, it says nothing and ends with 1.
"""
import argparse, json, sys, time

try:
    import torch
except ImportError:
    sys.exit(1)
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.lstm, self.linear = nn.Embedding(10, 16, padding_idx=0), nn.LSTM(16, 32, batch_first=True), nn.Linear(32, 2)

    def forward(self, ids, lens, packed):
        x = self.embedding(ids)
        if packed:
            x, _ = self.lstm(pack_padded_sequence(x, lens, batch_first=True, enforce_sorted=False))
            x, _ = pad_packed_sequence(x, batch_first=True)
        else:
            x = self.lstm(x)[0] * (ids != 0)[:, :, None]
        return self.linear(x).sum(1)


def formula(name, n):
    """the numbers that slow_pack.c calls by that name, too: in -1/2 .. 1/2"""
    key = 0
    for c in name.encode():
        key = (key * 31 + c) % 2**64
    x = (torch.arange(n, dtype=torch.int64) * 2654435761 + key % 65521 * 40503) % 2**31
    x = (1103515245 * x + 12345) % 2**31
    return (x >> 15).double() / 65536 - .5


def net_on(device):
    net = Net()
    with torch.no_grad():
        for name, p in net.named_parameters():
            p.copy_((2 / 32**.5 * formula(name, p.numel())).reshape(p.shape))
        net.embedding.weight[0] = 0
    return net.to(device)


def batch_of(setup, B, T, device):
    lens = torch.tensor([T if setup == "A" else T - i % T for i in range(B)])
    ids = 1 + ((formula("ids", B * T) + .5) * 9).long().reshape(B, T)
    return (ids * (torch.arange(T)[None] < lens[:, None])).to(device), lens, (torch.arange(B) % 2).to(device)


def one_run(net, batch, packed, train, wait):
    ids, lens, classes = batch
    wait()
    start = time.perf_counter()
    with torch.set_grad_enabled(train):
        if train:
            net.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(net(ids, lens, packed), classes)
        if train:
            loss.backward()
    wait()
    ms = (time.perf_counter() - start) * 1e3
    norm = sum(p.grad.double().square().sum() for p in net.parameters()).sqrt().item() if train else 0
    return {"ms": round(ms, 4), "loss": float(f"{loss.item():.6g}"), "norm": float(f"{norm:.6g}")}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--device", default="cpu")
    args = p.parse_args()
    gpu = args.device == "cuda"
    if gpu and not torch.cuda.is_available():
        return 1
    torch.set_num_threads(args.threads)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    net, known = net_on(args.device), {}
    print(json.dumps({"who": f"PyTorch {torch.__version__}, {args.device}, threads: {torch.get_num_threads()}"}), flush=True)
    for line in sys.stdin:
        setup, B, T, layout, what = line.split()
        if (setup, B, T) not in known:
            known = {(setup, B, T): batch_of(setup, int(B), int(T), args.device)}
        try:
            answer = one_run(net, known[setup, B, T], layout == "packed", what == "train", torch.cuda.synchronize if gpu else lambda: None)
        except RuntimeError as e:                # out of memory, say: that is a result, too
            answer = {"error": str(e)[:200]}
        print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
