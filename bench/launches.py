#!/usr/bin/env python3
"""launches - how many launches a training step makes on a GPU: own kernels, products and copies together, counted by weft_usage.

    bench/launches.py [--ceilings] [--bench PROGRAM] [--emulation FOLDER]

The emulated plug-in counts at the benchmark's true shapes without executing anything (WEFT_EMU_SKIP=1), as a GPU of compute capability 8.0, 9.0
and 12.0. Of several shapes of a case the one with the most counts. Limits hold for 9.0. Exit status 1 if a limit does not hold; with --ceilings,
which is for the tests, if a count is not what it is known to be, here and in the table of docs/design/cuda.md: so none grows in silence.
"""
import argparse
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CAPABILITIES = ("80", "90", "120")
# case, what chooses rows, options; the limit, and what it is known to be, of 9.0
CASES = [
    ("lstm", lambda r: r["H"] <= 256, [], 25, 14),
    ("bilstm", lambda r: True, [], 60, 38),
    ("net", lambda r: True, [], 45, 42),
    ("transformer_lstm", lambda r: True, ["--layout", "packed"], 250, 248),
    ("g2p", lambda r: True, [], 130, 124),
]
UPDATES = {"g2p": 16}                            # of a step, as the benchmark calls it


def counted(args, case, options, capability):
    env = dict(os.environ, WEFT_EMU_SKIP="1", WEFT_EMU_CC=capability, WEFT_BACKEND_PATH=args.emulation, WEFT_LOG="0", WEFT_CACHE="off")
    env.pop("WEFT_RECUR", None)
    command = [args.bench, "--device", "cuda", "--case", case, "--runs", "1", *options]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    rows = [json.loads(line.replace("-nan", "0").replace("nan", "0")) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not rows:
        sys.exit(f"launches: {' '.join(command)}: exit status {done.returncode}\n{done.stderr}")
    return [r for r in rows if r["pass"] == "train"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--ceilings", action="store_true")
    p.add_argument("--bench", default=os.path.join(ROOT, "build/bench/weft_bench"))
    p.add_argument("--emulation", default=os.path.join(ROOT, "build/emu"))
    args = p.parse_args()
    good = True
    with open(os.path.join(ROOT, "docs/design/cuda.md"), encoding="utf-8") as f:
        document = f.read()
    print(f"{'launches of a step':20}" + "".join(f"{'sm_' + c:>8}" for c in CAPABILITIES) + f"{'limit':>8}{'known':>8}")
    for case, chosen, options, limit, known in CASES:
        most = {}
        for capability in CAPABILITIES:
            rows = [r for r in counted(args, case, options, capability) if chosen(r)]
            most[capability] = -(-max(r["launches"] for r in rows) // UPDATES.get(case, 1))
        told = re.search(rf"^\| `{case}`.*\| {most['90']} \| {limit} \|$", document, re.M)
        wrong = "too many" if most["90"] > (known if args.ceilings else limit) else \
            "known as another number, here or in the document" if args.ceilings and (most["90"] != known or not told) else ""
        good &= not wrong
        print(f"{case:20}" + "".join(f"{most[c]:8}" for c in CAPABILITIES) + f"{limit:8}{known:8}  {wrong}".rstrip())
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
