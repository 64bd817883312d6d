#!/usr/bin/env python3
"""launches.py - counts the launches of a training step on a GPU: kernels, matrix products and copies.

    bench/launches.py [--ceilings] [--bench PROGRAM] [--emulation FOLDER]

weft_usage counts them with the emulated plug-in at the benchmark's full shapes; no kernel is executed (WEFT_EMU_SKIP=1). The exit status is 1 if
compute capability 9.0 exceeds a limit; with --ceilings also if a count differs from the known one in this file or in docs/design/cuda.md.
"""
import argparse
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CAPABILITIES = ("80", "90", "120")
# case, filter of rows, options, limit and known count on compute capability 9.0
STEPS = [
    ("lstm", lambda r: r["H"] <= 256, [], 25, 14),
    ("bilstm", lambda r: True, [], 60, 38),
    ("net", lambda r: True, [], 45, 42),
    ("transformer_lstm", lambda r: True, ["--layout", "packed"], 250, 248),
    ("g2p", lambda r: True, [], 130, 122),
]
UPDATES = {"g2p": 16}                            # updates in one step of the benchmark


def counted(args, case, options, capability):
    env = dict(os.environ, WEFT_EMU_SKIP="1", WEFT_EMU_CC=capability, WEFT_BACKEND_PATH=args.emulation, WEFT_LOG="0", WEFT_CACHE="off")
    env.pop("WEFT_RECUR", None)
    command = [args.bench, "--device", "cuda", "--case", case, "--runs", "1", *options]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    rows = [json.loads(line.replace("-nan", "0").replace("nan", "0")) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not rows:
        sys.exit(f"launches.py: {' '.join(command)}: exit status {done.returncode}\n{done.stderr}")
    return [r for r in rows if r["pass"] == "train"]


def launches(args, document):
    """Prints the launches of a step. Returns True if all limits hold."""
    good = True
    print(f"{'launches of a step':20}" + "".join(f"{'sm_' + c:>8}" for c in CAPABILITIES) + f"{'limit':>8}{'known':>8}")
    for case, chosen, options, limit, known in STEPS:
        most = {}
        for capability in CAPABILITIES:
            rows = [r for r in counted(args, case, options, capability) if chosen(r)]
            most[capability] = -(-max(r["launches"] for r in rows) // UPDATES.get(case, 1))
        told = re.search(rf"^\| `{case}`.*\| {most['90']} \| {limit} \|$", document, re.M)
        wrong = "too many" if most["90"] > (known if args.ceilings else limit) else \
            "differs from the known count in launches.py or docs/design/cuda.md" if args.ceilings and (most["90"] != known or not told) else ""
        good &= not wrong
        print(f"{case:20}" + "".join(f"{most[c]:8}" for c in CAPABILITIES) + f"{limit:8}{known:8}  {wrong}".rstrip())
    return good


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bench", default=os.path.join(ROOT, "build/bench/weft_bench"))
    p.add_argument("--emulation", default=os.path.join(ROOT, "build/emu"))
    p.add_argument("--ceilings", action="store_true")
    args = p.parse_args()
    with open(os.path.join(ROOT, "docs/design/cuda.md"), encoding="utf-8") as f:
        return not launches(args, f.read())


if __name__ == "__main__":
    sys.exit(main())
