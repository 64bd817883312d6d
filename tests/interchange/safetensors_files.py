#!/usr/bin/env python3
"""safetensors_files.py FOLDER - writes the safetensors files of tests/io/test_weights.c.

Written with safetensors 0.8.0 and torch 2.15. Values are small integers or halves, exact in all types."""
import sys

import torch
from safetensors.torch import save_file


def numbers(*shape, start=0):
    return (torch.arange(torch.Size(shape).numel(), dtype=torch.float64) + start).reshape(shape) / 2


def main(folder):
    lstm = {
        "rnn.weight_ih_l0": numbers(8, 3),
        "rnn.weight_hh_l0": numbers(8, 2, start=-5).to(torch.float16),
        "rnn.bias_ih_l0": numbers(8, start=1).to(torch.bfloat16),
        "rnn.bias_hh_l0": numbers(8, start=2).float(),
        "out.weight": numbers(2, 2, start=3).float(),
        "out.bias": torch.tensor([4, -7], dtype=torch.int64),
    }
    save_file(lstm, f"{folder}/types.safetensors", metadata={"made by": "safetensors \"0.8\"\n\u00e9"})
    save_file({"module." + k: v for k, v in lstm.items()}, f"{folder}/prefix.safetensors")
    plain = {"out.weight": numbers(2, 2, start=3).float(), "out.bias": numbers(2).float(),
             "a \"b\"\\\u00e9": numbers(0, 4).float(), "scalar": torch.tensor(2.5)}
    save_file(plain, f"{folder}/plain.safetensors", metadata={"format": "pt"})


main(sys.argv[1])
