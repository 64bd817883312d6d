#!/usr/bin/env python3
"""Writes the golden files of tests/io/test_torch.c with torch (2.15.0) and numpy (2.4.6).

    python3 tests/interchange/torch_files.py tests/golden/interchange

Element i of tensor k, by sorted names, is k + i / 64, so that the test needs no other file."""
import argparse
import os
import struct
import sys
import zipfile

import numpy
import torch

folder = sys.argv[1]
torch.manual_seed(1)


def path(name):
    return os.path.join(folder, name)


def fill(tensors, first=0):
    """Gives tensor k of a dictionary the numbers first + k + i / 64."""
    for k, name in enumerate(sorted(tensors)):
        x = tensors[name]
        with torch.no_grad():
            x.copy_(first + k + torch.arange(x.numel()).reshape(x.shape) / 64)
    return tensors


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(3, 2, bidirectional=True)
        self.out = torch.nn.Linear(4, 2)
        fill(self.state_dict())


# a state dict, plain and of DataParallel
torch.save(Net().state_dict(), path("lstm.pt"))
torch.save({"module." + k: v for k, v in Net().state_dict().items()}, path("parallel.pt"), pickle_protocol=4)

# a training checkpoint, after one step of Adam
linear = torch.nn.Linear(2, 3)
adam = torch.optim.Adam(linear.parameters(), lr=0.25)
linear(torch.ones(1, 2)).sum().backward()
adam.step()
torch.save({"epoch": 3, "loss": 0.5, "name": "tagger", "model": fill(linear.state_dict()),
            "optimizer": adam.state_dict(), "args": argparse.Namespace(data="x.npy", config="config.json"),
            "best": numpy.float64(0.5), "classes": {1, 2}, "none": None, "big": 1 << 80,
            "rng": torch.zeros(2, dtype=torch.uint8)},
           path("training.pt"))
torch.save({"encoder": fill({"w": torch.zeros(2)}), "decoder": [fill({"w": torch.zeros(2)}), torch.ones(1)]},
           path("parts.pt"))

# views and types
base = fill({"base": torch.zeros(4, 6)})["base"]
tied = torch.nn.Parameter(torch.ones(2))
noted = torch.nn.Parameter(torch.ones(2))
noted.note = "an attribute"
attribute = torch.ones(2)
attribute.note = 1
types = {str(t)[6:]: torch.tensor([1, 0, 5]).to(t) for t in (
    torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8,
    torch.uint16, torch.uint32, torch.uint64, torch.bool, torch.complex64, torch.float8_e4m3fn)}
torch.save({"base": base, "turned": base.t(), "steps": base[1::2, 2::3], "row": base[3], "tied.a": tied,
            "tied.b": tied, "noted": noted, "attribute": attribute, "empty": torch.zeros(0, 3),
            "zero_dim": torch.tensor(2.5), "expanded": torch.ones(1).expand(2, 3),
            "sparse": torch.eye(2).to_sparse(), "seven": torch.ones(1, 1, 1, 1, 1, 1, 1), **types}, path("views.pt"))
torch.save(base, path("tensor.pt"))

# numbers in big-endian order
torch.save({"w": fill({"w": torch.zeros(3)})["w"], "n": torch.tensor([1, -2])}, path("big.pt"))
with zipfile.ZipFile(path("big.pt")) as z:
    members = {n: z.read(n) for n in z.namelist()}
members["big/byteorder"] = b"big"
members["big/data/0"] = struct.pack(">3f", *struct.unpack("<3f", members["big/data/0"]))
members["big/data/1"] = struct.pack(">2q", *struct.unpack("<2q", members["big/data/1"]))
with zipfile.ZipFile(path("big.pt"), "w", zipfile.ZIP_DEFLATED) as z:
    for name, content in members.items():
        z.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)


# objects that run code when Python loads them
class Evil:
    def __init__(self, function, argument):
        self.call = (function, (argument,))

    def __reduce__(self):
        return self.call


torch.save({"w": torch.ones(2), "x": Evil(os.system, "touch weft_evil"), "y": Evil(eval, "1 + 1")},
           path("evil.pt"))
torch.save(Evil(os.system, "touch weft_evil"), path("evil_top.pt"))
torch.save(torch.nn.Linear(1, 1), path("module.pt"))
