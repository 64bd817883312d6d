#!/usr/bin/env python3
"""gpu_model - how many launches a training step makes on a GPU, and how long it should take on one that nobody has timed: PREDICTED milliseconds,
beside a kernel a step as cuDNN has it.

    bench/gpu_model.py [--check] [--launches] [--ceilings] [--bench PROGRAM] [--emulation FOLDER]

--launches: own kernels, products and copies together, counted by weft_usage in the emulated plug-in at the benchmark's true shapes, which executes
nothing (WEFT_EMU_SKIP=1). Exit status 1 if a limit of compute capability 9.0 does not hold; with --ceilings, if a count is not the known one, here and
in docs/design/cuda.md, so that none grows unnoticed.

A step is its launches, at LAUNCH microseconds each (counted by the emulation at true shapes), or, if that is more, its products at PRODUCTS of fp32's
peak and three passes over the memory that the context holds at BANDWIDTH of the peak; and behind that the steps of its recurrent layers, forward and
1.2 times as long backward, each as cuda/recur_choice.cu estimates it for the way that it would take there. "cuDNN packed" is the same with a kernel a
step, its directions side by side at 0.7 of both: its algorithm for packed fp32 batches, in the best case. "cuDNN padded" assumes that its algorithm for
padded batches of up to PADDED_UNITS units takes PADDED_US a step forward and back. It computes every token of the pads too; the model does not add
those. Wider layers take the algorithm of packed batches. --check: exit status 1 if the table of docs/design/cuda.md says something else.
"""
import argparse
import json
import math
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CAPABILITIES = ("80", "90", "120")
# case, filter of rows, options; the limit and the known count, both on 9.0
STEPS = [
    ("lstm", lambda r: r["H"] <= 256, [], 25, 14),
    ("bilstm", lambda r: True, [], 60, 38),
    ("net", lambda r: True, [], 45, 42),
    ("transformer_lstm", lambda r: True, ["--layout", "packed"], 250, 248),
    ("g2p", lambda r: True, [], 130, 124),
]
UPDATES = {"g2p": 16}                            # of a step, as the benchmark calls it
LAUNCH, PRODUCTS, BANDWIDTH, BACKWARD, SEQUENCES = 2.2, 0.6, 0.8, 1.2, 8
PADDED_UNITS, PADDED_US = 128, 4.0
# name, capability, multiprocessors, GHz, fp32 TFLOP/s, TB/s, most units in blocks, clusters of 4, 8, 16 blocks at once, if it has none groups of one
# block a multiprocessor: NVIDIA's data sheets
CARDS = [
    ("H100 SXM", "90", 132, 1.98, 67.0, 3.35, 128, (32, 15, 7)),
    ("A100 SXM", "80", 108, 1.41, 19.5, 2.04, 64, ()),
    ("RTX 4090", "80", 128, 2.52, 82.6, 1.01, 64, ()),
]
# name, case and options, filter of rows, recurrent layers in order with directions and lengths of each
CASES = [
    ("`lstm`, 128 units, 64 of 512", ["lstm"], lambda r: r["H"] == 128, lambda r: [(1, r["T"])]),
    ("`bilstm`, 256 units, 64 of 128", ["bilstm"], lambda r: True, lambda r: r["layers"] * [(2, r["T"])]),
    ("`net`, 32 units, 512 of 256", ["net"], lambda r: r["T"] == 256, lambda r: [(1, r["T"])]),
    ("`transformer_lstm`, 128 units, 64 of 300", ["transformer_lstm", "--layout", "packed"], lambda r: r["lengths"] == "triangle",
     lambda r: r["layers"] * [(1, r["T"]), (1, r["horizon"])]),
]


def counted(args, case, options, capability):
    env = dict(os.environ, WEFT_EMU_SKIP="1", WEFT_EMU_CC=capability, WEFT_BACKEND_PATH=args.emulation, WEFT_LOG="0", WEFT_CACHE="off")
    env.pop("WEFT_RECUR", None)
    command = [args.bench, "--device", "cuda", "--case", case, "--runs", "1", *options]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    rows = [json.loads(line.replace("-nan", "0").replace("nan", "0")) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not rows:
        sys.exit(f"gpu_model: {' '.join(command)}: exit status {done.returncode}\n{done.stderr}")
    return [r for r in rows if r["pass"] == "train"]


def launches(args, document):
    """prints the launches of a step; whether all are as many as they may be"""
    good = True
    print(f"{'launches of a step':20}" + "".join(f"{'sm_' + c:>8}" for c in CAPABILITIES) + f"{'limit':>8}{'known':>8}")
    for case, chosen, options, limit, known in STEPS:
        most = {}
        for capability in CAPABILITIES:
            rows = [r for r in counted(args, case, options, capability) if chosen(r)]
            most[capability] = -(-max(r["launches"] for r in rows) // UPDATES.get(case, 1))
        told = re.search(rf"^\| `{case}`.*\| {most['90']} \| {limit} \|$", document, re.M)
        wrong = "too many" if most["90"] > (known if args.ceilings else limit) else \
            "known as another number, here or in the document" if args.ceilings and (most["90"] != known or not told) else ""
        good &= not wrong
        print(f"{case:20}" + "".join(f"{most[c]:8}" for c in CAPABILITIES) + f"{limit:8}{known:8}  {wrong}".rstrip())
    return good


def estimate():
    """The times of a step that recur_choice.cu has, in microseconds at 1.98 GHz: in blocks, clusters and groups by size; by a kernel a step as a
    function of units and sequences."""
    with open(os.path.join(ROOT, "cuda/recur_choice.cu"), encoding="utf-8") as f:
        source = f.read()
    sizes = re.search(r"blocks\[\] = \{([^}]*)\}, clusters\[\] = \{([^}]*)\},\s*groups\[\] = \{([^}]*)\}", source)
    alone = re.search(r"return ([\d.]+) \+ \(double\)n \* ([\de.-]+) / ([\d.]+) \* \(double\)\(units \* units\);", source)
    least, factor, divisor = (float(x) for x in alone.groups())
    return [[float(x) for x in part.split(",")] for part in sizes.groups()], lambda units, n: least + n * factor / divisor * units * units


SIZES, general = estimate()


def step(card, units, n, directions):
    """The fastest way of a step forward, and its microseconds: of kernels for all steps both directions are one."""
    _, _, processors, ghz, _, _, most, clusters = card
    blocks_us, clusters_us, groups_us = SIZES
    eights, ways = directions * math.ceil(n / SEQUENCES), [("a kernel a step", directions * general(units, n))]
    size = max(0, math.ceil(math.log2(units / 32)))
    if units <= most:
        ways.append(("blocks", blocks_us[size] * 1.98 / ghz * math.ceil(eights / processors)))
    size = max(0, size - 2)
    if units <= 512:
        name, us, at_once = ("clusters", clusters_us, clusters[size]) if clusters else ("groups", groups_us, processors // (4 << size))
        ways.append((name, us[size] * 1.98 / ghz * math.ceil(eights / at_once)))
    return min(ways, key=lambda w: w[1])


def predicted(card, row, layers):
    """Milliseconds of weft, its way, milliseconds of cuDNN for packed and for padded batches."""
    _, _, _, _, tflops, tbs, _, _ = card
    recurrent = sum(2 * directions * 8 * row["H"] ** 2 * row["tokens"] / len(layers) for directions, _ in layers) / 1e9
    work = max(row["gflop"] - recurrent, 0) / (tflops * PRODUCTS) + 3 * row["context_bytes"] / (tbs * BANDWIDTH) / 1e9
    beside = max(row["launches"] * LAUNCH / 1e3, work)
    way, us = step(card, row["H"], row["B"], layers[0][0])
    steps = sum(length for _, length in layers)
    theirs = sum((directions if directions == 1 else 0.7 * directions) * length for directions, length in layers)
    packed = general(row["H"], row["B"]) * (1 + BACKWARD)
    padded = PADDED_US if row["H"] <= PADDED_UNITS else packed
    return beside + steps * us * (1 + BACKWARD) / 1e3, way, beside + theirs * packed / 1e3, beside + theirs * padded / 1e3


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--check", action="store_true")
    p.add_argument("--bench", default=os.path.join(ROOT, "build/bench/weft_bench"))
    p.add_argument("--emulation", default=os.path.join(ROOT, "build/emu"))
    p.add_argument("--launches", action="store_true")
    p.add_argument("--ceilings", action="store_true")
    args = p.parse_args()
    with open(os.path.join(ROOT, "docs/design/cuda.md"), encoding="utf-8") as f:
        document = f.read()
    if args.launches:
        return not launches(args, document)
    lines = ["| predicted, never timed | card | recurrent layers by | ms | cuDNN packed, ms | cuDNN padded, ms |",
             "| --- | --- | --- | --- | --- | --- |"]
    for name, words, chosen, layers in CASES:
        row = next(r for r in counted(args, words[0], words[1:], "90") if chosen(r))
        for card in CARDS:
            ours, way, packed, padded = predicted(card, row, layers(row))
            lines.append(f"| {name} | {card[0]} | {way} | {ours:.1f} | {packed:.1f} | {padded:.1f} |")
    print("\n".join(lines))
    if args.check and any(line not in document for line in lines):
        sys.exit("gpu_model: docs/design/cuda.md has another table")
    return 0


if __name__ == "__main__":
    sys.exit(main())
