#!/usr/bin/env python3
"""table.py - what is made of measurements: rows of JSON that weft_bench, peers/torch_bench.py and tests/gpu.sh have printed.

    python3 bench/table.py                  rewrites the tables of docs/performance.md from bench/results/*.jsonl
    python3 bench/table.py --machine        prints a row about this machine, the first of a file of results
    python3 bench/table.py --check FILE     do both sides' losses and gradient norms agree? exit status 1 if not, or if there are no pairs
    python3 bench/table.py --goals FILE     ratios to the better of padded and packed, beside the goals
    python3 bench/table.py --sweep FILE     recurrent layers: a kernel a step, or one for all

A file is of one machine. Rows of both sides belong together if their shape, threads and precision are the same; of rows that occur
several times the median counts. "recur" says what WEFT_RECUR was, where it was set.
"""
import glob
import json
import os
import platform
import statistics
import subprocess
import sys
import time

SHAPE = ("case", "B", "T", "I", "H", "layers", "bidirectional", "lengths", "threads", "precision")
BEGIN, END = "<!-- table.py begins -->", "<!-- table.py ends -->"
TOLERANCE = {"fp32": 1e-3, "strict_fp32": 1e-3, "tf32": 1e-2}    # of loss and norm; tf32 rounds operands to 11 bits
RECUR = {"general": None, "block": 128, "cluster": 512}            # ways of a recurrent layer, and up to how many units they go


def read(path):
    rows = []
    with open(path) as f:
        for n, line in enumerate(f, 1):
            try:
                row = json.loads(line)
                most = RECUR.get(row.get("recur"))
                if not most or row["H"] <= most:     # else it went the general way
                    rows.append(row)
            except ValueError:                   # what was killed may have left half a line
                print(f"{path}:{n}: not JSON, left out", file=sys.stderr)
    return rows


def shape(row):
    return tuple(row.get(k) for k in SHAPE)


def of(rows, side, **fields):
    """shape -> rows of one side: weft or torch; errors, too"""
    out = {}
    for r in rows:
        if r.get("who", "").startswith(side) and "what" not in r and all(r.get(k) == v for k, v in fields.items()):
            out.setdefault(shape(r), []).append(r)
    return out


def ms(rows):
    """the median of the rows; of several programs (PyTorch, and compiled) the fastest's"""
    by_who = {}
    for r in rows or []:
        if "ms" in r:
            by_who.setdefault(r["who"], []).append(r["ms"])
    return min((statistics.median(t) for t in by_who.values()), default=None)


# ---- equal work ----
def differences(rows):
    """(pairs, texts): of all training rows that both sides have; PyTorch's padded layers read pads, which shows where a layer has two directions
    or hands on its last state, as that of transformer_lstm does"""
    pairs, bad = 0, []
    mine = of(rows, "weft", **{"pass": "train"})
    for layout in ("packed", "padded"):
        theirs = of(rows, "torch", **{"pass": "train"}, layout=layout)
        for key in mine.keys() & theirs.keys():
            if layout == "padded" and (key[SHAPE.index("bidirectional")] or key[0] == "transformer_lstm"):
                continue
            tolerance = TOLERANCE.get(key[SHAPE.index("precision")])
            for a in mine[key]:
                for b in theirs[key]:
                    if "loss" not in b or tolerance is None:
                        continue
                    pairs += 1
                    for what in ("loss", "norm"):
                        if not abs(a[what] - b[what]) <= tolerance * max(abs(a[what]), abs(b[what])):
                            bad.append(f"{what} {a[what]:g} and {b[what]:g} ({layout}): {dict(zip(SHAPE, key))} {a.get('recur', '')}")
    return pairs, bad


def check(path):
    pairs, bad = differences(read(path))
    for text in bad:
        print("not equal:", text)
    print(f"equal work: {pairs - len({t.split(': ', 1)[1] for t in bad})} of {pairs} pairs" if pairs else "equal work: no pair of rows to compare")
    return not bad and pairs > 0


# ---- goals: ratios to the better of padded and packed, and to packed ----
def goal(row):
    case, H, T = row["case"], row["H"], row["T"]
    if case == "net" and T == 512:
        return 10, 1
    if case == "lstm" and T == 512:
        return (4, 15) if H <= 128 else (3, 7) if H <= 512 else (1.2, 1)
    return 1, 1


def best(rows):
    """of rows of weft of one shape: the fastest way, and its name"""
    ways = [(ms([r for r in rows if r.get("recur") == way]), way or "as chosen") for way in (None, *RECUR)]
    ways = [w for w in ways if w[0]]
    return min(ways) if ways else (None, "")


def goals(path):
    rows = read(path)
    mine, padded, packed = of(rows, "weft", **{"pass": "train"}), of(rows, "torch", layout="padded", **{"pass": "train"}), \
        of(rows, "torch", layout="packed", **{"pass": "train"})
    print(f"{'case':8}{'prec.':7}{'H':>5}{'B':>5}{'T':>5}{'weft':>10}  {'way':12}{'padded':>10}{'packed':>10}{'ratio':>8}{'goal':>6}{'packed':>8}{'goal':>6}")
    met = all_ = 0
    for key, group in mine.items():
        row, (own, way), a, b = group[0], best(group), ms(padded.get(key)), ms(packed.get(key))
        theirs = [t for t in (a, b) if t]
        if not own or not theirs:
            continue
        ratio, to_packed = min(theirs) / own, b / own if b else None
        want, want_packed = goal(row)
        good = ratio >= want and (to_packed is None or to_packed >= want_packed)
        met, all_ = met + good, all_ + 1
        print(f"{row['case']:8}{row['precision']:7}{row['H']:5}{row['B']:5}{row['T']:5}{own:10.3f}  {way:12}{number(a):>10}{number(b):>10}"
              f"{ratio:8.2f}{want:6g}{number(to_packed, 2):>8}{want_packed:6g}  {'met' if good else 'NOT MET'}")
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
def number(x, digits=3):
    return "-" if x is None else f"{x:.{digits}f}" if x < 10 else f"{x:.1f}" if x < 100 else f"{x:.0f}"


def lines_of(head, body):
    return ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"] + ["| " + " | ".join(b) + " |" for b in body] + [""]


def training(rows):
    """one table for each precision and number of threads"""
    sides = {(side, layout, which): of(rows, side, layout=layout, **{"pass": which})
             for side, layout in (("weft", "packed"), ("torch", "padded"), ("torch", "packed")) for which in ("train", "forward")}
    keys = [k for k in dict.fromkeys(shape(r) for r in rows if "who" in r and "what" not in r) if k[0] != "sweep"]
    out = []
    for precision, threads in dict.fromkeys((k[9], k[8]) for k in keys):
        body = []
        for k in keys:
            if (k[9], k[8]) != (precision, threads):
                continue
            cell = []
            for which in ("train", "forward"):
                own, way = best(sides["weft", "packed", which].get(k, []))
                a, b = (ms(sides["torch", layout, which].get(k)) for layout in ("padded", "packed"))
                theirs = [t for t in (a, b) if t]
                cell += [number(own) + (f" ({way})" if way in ("block", "cluster") else ""), number(a), number(b),
                         f"**{min(theirs) / own:.1f}**" if own and theirs else "-"]
            case = k[0] + (f", {k[5]} layers" if k[5] > 1 else "") + (", both directions" if k[6] else "")
            body.append([case, *map(str, (k[4], k[1], k[2])), *cell])
        weft = next((r["who"] for r in rows if r.get("who", "").startswith("weft")), "weft")
        torch = next((r["who"] for r in rows if r.get("who", "").startswith("torch")), None)
        about = f"`{weft}` beside " + (f"`{torch}`" if torch else "nobody") + f", {precision}" + ("" if "cuda" in weft else f", threads: {threads}")
        out += [about + ".", ""] + lines_of(["case", "H", "B", "T", "training", "padded", "packed", "ratio", "forward", "padded", "packed", "ratio"], body)
    return out


def layouts(rows):
    """a whole model on ragged series, and as PyTorch has to do it"""
    sides = {(layout, which): of(rows, "weft", layout=layout, **{"pass": which}) for layout in ("packed", "padded") for which in ("train", "forward")}
    body = []
    for k in sides["padded", "train"]:
        cell = []
        for which in ("train", "forward"):
            ragged, plain = (ms(sides[layout, which].get(k)) for layout in ("packed", "padded"))
            cell += [number(ragged), number(plain), f"{plain / ragged:.2f}" if ragged and plain else "-"]
        body.append([k[0], k[7], str(k[1]), str(k[2]), str(k[8]), *cell])
    return ["weft's own two ways: ragged, and padded with masks.", ""] + \
        lines_of(["case", "lengths", "B", "T", "threads", "training, ragged", "padded", "ratio", "forward, ragged", "padded", "ratio"], body) if body else []


def packing(rows):
    body = [[r["what"], str(r["B"]), str(r["T"]), r["pass"], str(r["threads"]), number(r["ms"]), f"{r['gb_s']:.1f}", f"{r['copies']:.2f}"]
            for r in rows if r.get("case") == "pack" and "ms" in r]
    return ["Packing; copies: its time in plain copies of the same bytes.", ""] + \
        lines_of(["what", "B", "T", "pass", "threads", "ms", "GB/s", "copies"], body) if body else []


def section(path):
    rows = read(path)
    about = next((r for r in rows if "machine" in r), {"machine": os.path.splitext(os.path.basename(path))[0]})
    text = ", ".join(str(v) if k == "machine" else f"{k} {v}" for k, v in about.items())
    pairs, bad = differences(rows)
    proof = f"Loss and gradient norm agree in {pairs} of {pairs} comparisons of rows." if pairs and not bad else \
            f"**Loss or gradient norm differ {len(bad)} times in {pairs} comparisons.**" if bad else "There are no rows of both sides to compare."
    errors = [f"{r['who']}, {r['case']}, {r['layout']}, {r['pass']}: {r['error']}" for r in rows if "error" in r]
    return [f"### {text}", ""] + training(rows) + [proof, ""] + [f"- {e}" for e in errors] + layouts(rows) + packing(rows)


def rewrite(page, folder):
    files = sorted(glob.glob(os.path.join(folder, "*.jsonl")))
    out = [line for f in files for line in section(f)]
    whos = [r.get("who", "") for f in files for r in read(f)]
    for kind, said in ((False, "No CPU has been measured by this script yet: these rows are missing."),
                       (True, "No GPU was at hand yet: these rows are missing.")):
        if not any(w.startswith("weft") and w.endswith("-cuda") == kind for w in whos):
            out += [said, ""]
    with open(page) as f:
        before, rest = f.read().split(BEGIN)
    with open(page, "w") as f:
        f.write(before + BEGIN + "\n\n" + "\n".join(out) + "\n" + END + rest.split(END)[1])


# ---- this machine ----
def said(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def cpu():
    try:
        with open("/proc/cpuinfo") as f:
            return next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), platform.machine())
    except OSError:
        return platform.machine()


def machine():
    about = {"machine": cpu(), "cores": os.cpu_count(), "date": time.strftime("%Y-%m-%d")}
    gpu = said("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").splitlines()
    if gpu:
        name, driver = gpu[0].split(", ")
        about = {"machine": name, "driver": driver, "CPU": about["machine"], "cores": about["cores"], "date": about["date"]}
    print(json.dumps(about))


def main():
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    what = sys.argv[1:]
    if not what:
        rewrite(os.path.join(here, "docs/performance.md"), os.path.join(here, "bench/results"))
    elif what == ["--machine"]:
        machine()
    elif len(what) == 2 and what[0] in ("--check", "--goals", "--sweep"):
        return 1 if {"--check": check, "--goals": goals, "--sweep": sweep}[what[0]](what[1]) is False else 0
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


sys.exit(main())
