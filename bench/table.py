#!/usr/bin/env python3
"""table.py - what is made of measurements: rows of JSON that weft_bench, peers/torch_bench.py and tests/gpu_first.sh have printed.

    python3 bench/table.py                  rewrites the tables of docs/performance.md and its charts from bench/results/*.jsonl
    python3 bench/table.py --charts FOLDER FILE...   draws the charts alone, from these files
    python3 bench/table.py --machine [MORE] prints a row about this machine, the first of a file of results; MORE: key=value
    python3 bench/table.py --check FILE     do both sides' losses and gradient norms agree? exit status 1 if not, or if there are no pairs
    python3 bench/table.py --ratios FILE    both sides' times, ratios, arithmetic and memory
    python3 bench/table.py --goals FILE     on a GPU: ratios to the best peer and to packed batches, and the goals of the latter
    python3 bench/table.py --sweep FILE     recurrent layers: a kernel a step, or one for all

What belongs together, and what is compared, is said in measurements.py.
"""
import glob
import json
import os
import platform
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import charts
import tables
from measurements import PACKED, PADDED, RECUR, comparison, differences, ms, number, read

BEGIN, END = "<!-- table.py begins -->", "<!-- table.py ends -->"
FLAGS = ("avx2", "fma", "avx512f", "avx512_bf16", "amx_tile", "amx_bf16")


def check(path):
    pairs, bad = differences(read(path))
    for text in bad:
        print("not equal:", text)
    print(f"equal work: {pairs - len({t.split(': ', 1)[1] for t in bad})} of {pairs} pairs" if pairs else "equal work: no pair of rows to compare")
    return not bad and pairs > 0


# ---- goals: ratios to packed batches, for which cuDNN has a kernel for each step ----
# For padded batches of up to 128 units it has one kernel for all steps, so the ratio to them has no goal but 1.
def goal(row):
    case, H, T = row["case"], row["H"], row["T"]
    if case == "net" and T == 512:
        return 10
    if case == "lstm" and T == 512:
        return 15 if H <= 128 else 7 if H <= 512 else 1
    return 1


def goals(path):
    print(f"{'case':18}{'prec.':7}{'H':>5}{'B':>5}{'T':>5}{'weft':>10}  {'way':12}{'padded':>10}{'packed':>10}{'ratio':>8}{'packed':>8}{'goal':>6}")
    met = all_ = 0
    for r in comparison(read(path), "train"):
        if not r["ratio"]:
            continue
        padded, packed = r["times"][PADDED], r["times"][PACKED]
        to_packed = packed / r["ms"] if packed else None
        want = goal(r) if packed else 1
        good = (to_packed or r["ratio"]) >= want
        met, all_ = met + good, all_ + 1
        print(f"{r['case']:18}{r['precision']:7}{r['H']:5}{r['B']:5}{r['T']:5}{r['ms']:10.3f}  {r['way']:12}{number(padded):>10}{number(packed):>10}"
              f"{r['ratio']:8.2f}{number(to_packed, 2):>8}{want:6g}  {'met' if good else 'NOT MET'}")
    print(f"goals: {met} of {all_} met" if all_ else "goals: no rows of both sides")


# ---- the ways of a recurrent layer ----
def sweep(path):
    rows, cells = read(path), {}
    for r in rows:
        if r.get("case") == "sweep" and "ms" in r:
            cells.setdefault((r["H"], r["B"]), {}).setdefault((r["pass"], r.get("recur")), []).append(r)
    head = [which + " " + way for which in ("forward", "training") for way in RECUR]
    print(f"{'H':>5}{'B':>6}" + "".join(f"{h:>18}" for h in head) + "   fastest in training")
    for (H, B), c in sorted(cells.items()):
        v = {(p, way): ms(c.get((p, way))) for p in ("forward", "train") for way in RECUR}
        trained = {way: v["train", way] for way in RECUR if v["train", way]}
        print(f"{H:5}{B:6}" + "".join(f"{number(x):>18}" for x in v.values()) + f"   {min(trained, key=trained.get) if trained else ''}")


# ---- docs/performance.md ----
def rewrite(page, folder):
    with open(page) as f:
        before, rest = f.read().split(BEGIN)
    pictures = charts.draw(glob.glob(os.path.join(folder, "*.jsonl")), os.path.dirname(page))
    made = [line for name, shows in pictures for line in (f"![{shows}]({name})", "")] + tables.all_sections(folder)
    with open(page, "w") as f:
        f.write(before + BEGIN + "\n\n" + "\n".join(made) + "\n" + END + rest.split(END)[1])


# ---- this machine ----
def said(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def cpu_says(what):
    try:
        with open("/proc/cpuinfo") as f:
            return next((line.split(":", 1)[1].strip() for line in f if line.startswith(what)), "")
    except OSError:
        return ""


def machine(more):
    flags = cpu_says("flags").split()
    row = {"machine": cpu_says("model name") or platform.machine(), "cores": os.cpu_count(), "flags": " ".join(f for f in FLAGS if f in flags),
           "date": time.strftime("%Y-%m-%d"), **more}
    gpu = said("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").splitlines()
    if gpu:
        name, driver = gpu[0].split(", ")
        row = {"machine": name, "driver": driver, "CPU": row.pop("machine"), **row}
    print(json.dumps(row))


def main():
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    what = sys.argv[1:]
    files = {"--check": check, "--goals": goals, "--sweep": sweep, "--ratios": tables.print_ratios}
    if not what:
        rewrite(os.path.join(here, "docs/performance.md"), os.path.join(here, "bench/results"))
    elif what[0] == "--machine" and all("=" in w for w in what[1:]):
        machine(dict(w.split("=", 1) for w in what[1:]))
    elif what[0] == "--charts" and len(what) > 2:
        charts.draw(what[2:], what[1])
    elif len(what) == 2 and what[0] in files:
        return 1 if files[what[0]](what[1]) is False else 0
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


sys.exit(main())
