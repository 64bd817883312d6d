#!/usr/bin/env python3
"""table.py - makes tables, charts and checks from rows of JSON that weft_bench, torch_bench.py and tests/gpu_first.sh printed.

    python3 bench/table.py                  rewrites the tables and charts of docs/performance.md from bench/results/*.jsonl
    python3 bench/table.py --machine [MORE] prints a row about this machine, the first line of a results file; MORE: key=value
    python3 bench/table.py --check FILE     checks that losses and gradient norms of both sides agree; exit status 1 if not, or without pairs
    python3 bench/table.py --ratios FILE    prints times of both sides, ratios, arithmetic and memory
    python3 bench/table.py --goals FILE     prints the ratios on a GPU: to the best peer and to packed batches, and the goals for the latter
    python3 bench/table.py --sweep FILE     compares the kernels of recurrent layers on a GPU

A line of a file is a row or a list of rows. A file holds one machine. Rows of both sides form a pair if shape, threads and precision are equal.
Repeated rows count with their median. "recur" is the value of WEFT_RECUR, if set. On a CPU PyTorch has no precision between fp32 and bf16, so
its fp32 is compared with weft's strict_fp32, fp32 and tf32.
"""
import glob
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import textwrap
import time

sys.dont_write_bytecode = True

SHAPE = ("case", "B", "T", "I", "H", "layers", "bidirectional", "lengths", "threads", "precision", "heads")
TOLERANCE = {"fp32": 1e-3, "strict_fp32": 1e-3, "tf32": 1e-2, "bf16": 5e-2}      # of loss and norm; tf32 rounds operands to 11 bits, bf16 to 8
RECUR = {"general": None, "block": 128, "cluster": 512, "group": 512}            # kernels of a recurrent layer, and their largest number of units
LIKE_FP32 = ("strict_fp32", "tf32")
PADDED, PACKED, COMPILED = "padded", "packed", "compiled"          # names of a peer's rows in the tables


def read(path):
    rows = []
    with open(path) as f:
        for n, line in enumerate(f, 1):
            try:
                found = json.loads(line)
                rows += found if isinstance(found, list) else [found]
            except ValueError:                   # a killed program may leave half a line
                print(f"{path}:{n}: not JSON, left out", file=sys.stderr)
    return [r for r in rows if r.get("H", 0) <= (RECUR.get(r.get("recur")) or math.inf)]         # larger layers ran the general kernel


def shape(row):
    return tuple(row.get(k) for k in SHAPE)


def field(key, name):
    return key[SHAPE.index(name)]


def about(key):
    return ", ".join(f"{k} {v}" for k, v in zip(SHAPE, key) if v not in (None, False))


def is_own(row):
    return row.get("who", "").startswith("weft") and not row["who"].endswith("-openblas")


def column(row):
    """Returns the column of a peer's row."""
    if row["who"].endswith("-compile"):
        return COMPILED
    return PACKED if row["layout"] in ("packed", "nested") else PADDED


def own(rows, padded=False, **fields):
    """Groups weft's rows by shape, ragged or padded ones, including rows with errors."""
    return grouped((r for r in rows if is_own(r) and (r["layout"] == "padded") == padded), fields)


def peers(rows, which, **fields):
    return grouped((r for r in rows if r.get("who", "").startswith("torch") and which in (None, column(r))), fields)


def grouped(rows, fields):
    out = {}
    for r in rows:
        if "what" not in r and all(r.get(k) == v for k, v in fields.items()):
            out.setdefault(shape(r), []).append(r)
    return out


def beside(groups, key, rows):
    """Returns a peer's rows for one of weft's shapes."""
    found = groups.get(key)
    if not found and field(key, "precision") in LIKE_FP32 and not any("cuda" in r.get("who", "") for r in rows):
        found = groups.get(tuple("fp32" if k == "precision" else v for k, v in zip(SHAPE, key)))
    return found


def ms(rows):
    """Returns the median of the rows. With several programs or layouts: that of the fastest."""
    ways = {}
    for r in rows or []:
        if "ms" in r:
            ways.setdefault((r["who"], r["layout"]), []).append(r["ms"])
    return min((statistics.median(t) for t in ways.values()), default=None)


def best(rows):
    """Returns the time and the name of the fastest kernel in weft's rows of one shape."""
    ways = [(ms([r for r in rows if r.get("recur") == way]), way or "as chosen") for way in (None, *RECUR)]
    ways = [w for w in ways if w[0]]
    return min(ways) if ways else (None, "")


def median_of(rows, name):
    values = [r[name] for r in rows or [] if name in r]
    return statistics.median(values) if values else None


# ---- equal work ----
def comparable(row):
    """Returns whether a loss can be compared. PyTorch's padded layers read padding, which changes bidirectional layers and final states."""
    return "loss" in row and (row["layout"] != "padded" or not (row["bidirectional"] or row["case"] in ("transformer_lstm", "g2p")))


def differences(rows):
    """Returns (pairs, texts): the number of pairs of training rows and products in any layout, and their differences."""
    pairs, bad = 0, []
    for which in sorted({r["pass"] for r in rows if r.get("case") == "gemm"} | {"train"}):
        theirs = peers(rows, None, **{"pass": which})
        for padded in (False, True):
            for key, mine in own(rows, padded, **{"pass": which}).items():
                if which == "train" or field(key, "case") == "gemm":
                    others = [b for b in beside(theirs, key, rows) or () if comparable(b)]
                    pairs += len(mine) * len(others)
                    bad += [text for a in mine for b in others for text in unequal(a, b, key)]
    return pairs, bad


def unequal(a, b, key):
    tolerance = TOLERANCE.get(field(key, "precision"), 1e-3)
    return [f"{what} {a[what]:g} and {b[what]:g} ({b['layout']}): {about(key)} {a.get('recur', '')}".rstrip()
            for what in ("loss", "norm") if not abs(a[what] - b[what]) <= tolerance * max(abs(a[what]), abs(b[what]))]


# ---- ratios ----
def real_share(row):
    """Returns the share of real tokens in a padded batch."""
    cells = row["B"] * (row["T"] + row.get("horizon", 0))
    return row["tokens"] / cells if row["lengths"] != "pooled" else None


def comparison(rows, which):
    """Returns the measurements of both sides for each of weft's shapes with pass `which`, in the order of the rows."""
    theirs = {c: peers(rows, c, **{"pass": which}) for c in (PADDED, PACKED, COMPILED)}
    out = []
    for key, mine in own(rows, **{"pass": which}).items():
        time, way = best(mine)
        if time is None:
            continue
        of = {c: beside(theirs[c], key, rows) for c in theirs}
        times = {c: ms(of[c]) for c in of}
        known = [t for t in times.values() if t]
        peak, gflop = median_of(mine, "peak_gf_s"), mine[0].get("gflop")
        out.append(dict(zip(SHAPE, key), **{"pass": which}, key=key, ms=time, way=way, times=times, ratio=min(known) / time if known else None,
                        gf_s=gflop / time * 1e3 if gflop else None, share=gflop / time * 1e3 / peak if gflop and peak else None, real=real_share(mine[0]),
                        tokens=mine[0]["tokens"], bytes=median_of(mine, "peak_bytes"), peer_bytes={c: median_of(of[c], "peak_bytes") for c in of},
                        allocations=median_of(mine, "allocations")))
    return out


def flat(row):
    """Returns the name of a comparison's row."""
    case = row["case"]
    return case + (f", {row['layers']} layers" if row["layers"] > 1 else "") + (", both directions" if row["bidirectional"] else "")


def number(x, digits=3):
    return "-" if x is None else f"{x:.{digits}f}" if x < 10 else f"{x:.1f}" if x < 100 else f"{x:.0f}"


# ---- tables ----
APART = ("sweep", "never_slower", "gemm", "long")                # cases with separate tables
HEAD = ["case", "H", "B", "T"]


def filled(line):
    """Wraps prose at 100 columns."""
    if len(line) <= 100 or line.startswith("|"):
        return [line]
    return textwrap.wrap(line, 100, subsequent_indent="  " if line.startswith("- ") else "", break_long_words=False, break_on_hyphens=False)


def titled(title, head, body):
    return [title, ""] + ["| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *body)] + [""] if body else []


def names(rows, begin):
    return sorted({r["who"] for r in rows if r.get("who", "").startswith(begin) and not r["who"].endswith(("-compile", "-openblas"))})


def cells_of(row):
    return [flat(row), *(str(row[k]) for k in HEAD[1:])]


def bold(ratio):
    return f"**{ratio:.1f}**" if ratio else "-"


def training(rows):
    """Returns one table for each precision and number of threads."""
    forward = {r["key"]: r for r in comparison(rows, "forward")}
    step = [r for r in comparison(rows, "train") if r["case"] not in APART]
    out = []
    for precision, threads in dict.fromkeys((r["precision"], r["threads"]) for r in step):
        body = []
        for r in step:
            if (r["precision"], r["threads"]) == (precision, threads):
                f = forward.get(r["key"])
                way = f" ({r['way']})" if r["way"] in ("block", "cluster", "group") else ""
                body.append([*cells_of(r), number(r["ms"]) + way, *(number(r["times"][c]) for c in (PADDED, PACKED, COMPILED)), bold(r["ratio"]),
                             *([number(f["ms"]), *(number(f["times"][c]) for c in (PADDED, PACKED)), bold(f["ratio"])] if f else ["-"] * 4)])
        beside = names(rows, "torch")
        about = f"`{', '.join(names(rows, 'weft'))}` and " + (f"`{', '.join(beside)}`" if beside else "no peer") + f", {precision}" + \
            ("" if any("cuda" in n for n in names(rows, "weft")) else f", threads: {threads}")
        out += titled(about + ".", [*HEAD, "training", "padded", "packed", "compiled", "ratio", "forward", "padded", "packed", "ratio"], body)
    return out


def megabytes(n):
    return number(n / 1e6) if n else "-"


def machine_use(rows):
    """Returns the table of arithmetic and memory of a training step."""
    body = []
    for r in comparison(rows, "train"):
        if r["gf_s"] is None or r["case"] in APART and r["case"] != "long":
            continue
        padded = r["peer_bytes"][PADDED]
        allowed = padded * r["real"] if padded and r["real"] else None
        body.append([*cells_of(r), r["precision"], str(r["threads"]), number(r["gf_s"]), f"{100 * r['share']:.0f} %" if r["share"] else "-",
                     megabytes(r["bytes"]), megabytes(padded), megabytes(r["peer_bytes"][PACKED]), megabytes(allowed),
                     "-" if not (allowed and r["bytes"]) else "yes" if r["bytes"] <= allowed else "**no**", number(r["allocations"], 0)])
    if not any(r["share"] or r["bytes"] for r in comparison(rows, "train")):
        return []                                # rows of a GPU have neither
    return titled("A training step: GF/s that it needs, and their share of the machine's peak. Memory in MB: weft's, PyTorch's padded and packed. *within*: weft "
                  "needs at most PyTorch's padded memory times the share of real tokens. The last column counts allocations in the measured steps.",
                  [*HEAD, "precision", "threads", "GF/s", "share", "MB", "padded", "packed", "padded x real", "within", "allocations"], body)


def grid(rows):
    """Returns the table of never_slower: a row for each width, a column for each number of sequences."""
    passes = {which: [r for r in comparison(rows, which) if r["case"] == "never_slower" and r["ratio"]] for which in ("train", "forward")}
    out = []
    for precision, threads in dict.fromkeys((r["precision"], r["threads"]) for r in passes["train"]):
        of = {which: {(r["H"], r["B"]): r["ratio"] for r in passes[which] if (r["precision"], r["threads"]) == (precision, threads)} for which in passes}
        wide, many = (sorted({k[i] for k in of["train"]}) for i in (0, 1))
        body = [[str(H)] + [" / ".join(number(of[w].get((H, B)), 2) for w in ("train", "forward")) for B in many] for H in wide]
        all_ = [x for w in of.values() for x in w.values()]
        out += titled(f"One LSTM layer, training / forward: PyTorch's better time divided by weft's, {precision}, threads: {threads}; 1 or more in "
                      f"{sum(x >= 1 for x in all_)} of {len(all_)}.", ["H"] + [f"B = {B}" for B in many], body)
    return out


def long(rows):
    body = []
    for r in comparison(rows, "train"):
        if r["case"] == "long":
            per_token = {name: t and t * 1e3 / r["tokens"] for name, t in (("weft", r["ms"]), *r["times"].items())}
            body.append([str(r["H"]), str(r["T"]), str(r["B"]), str(r["threads"]), r["precision"], *(number(per_token[n]) for n in ("weft", PADDED, PACKED))])
    return titled("One LSTM layer, training, time of a token in microseconds, by length.", ["H", "T", "B", "threads", "precision", "weft", "padded", "packed"], body)


def products(rows):
    body = []
    blas = {which: {} for which in ("forward", "dx", "dw")}
    for r in rows:
        if r.get("who", "").endswith("-openblas") and r.get("case") == "gemm":
            blas[r["pass"]].setdefault((r["B"], r["I"], r["H"], r["threads"], r["precision"]), []).append(r)
    for which, what in (("forward", "x W^T"), ("dx", "dy W"), ("dw", "dy^T x")):
        for r in comparison(rows, which):
            if r["case"] == "gemm":
                gf = [ms(blas[which].get((r["B"], r["I"], r["H"], r["threads"], r["precision"]))), r["times"][PADDED]]
                body.append([what, *(str(r[k]) for k in ("B", "I", "H", "threads")), r["precision"], number(r["gf_s"]),
                             f"{100 * r['share']:.0f} %" if r["share"] else "-", *(number(r["gf_s"] * r["ms"] / t) if t else "-" for t in gf)])
    return titled("Matrix products in GF/s: weft's, OpenBLAS (`WEFT_GEMM=openblas`) and `torch.mm`.",
                  ["product", "rows", "in", "out", "threads", "precision", "weft", "share", "OpenBLAS", "torch"], body)


def layouts(rows):
    """Returns the table of weft's models on ragged and on padded series."""
    sides = {(padded, which): own(rows, padded, **{"pass": which}) for padded in (False, True) for which in ("train", "forward")}
    body = []
    for k, group in sides[True, "train"].items():
        cell = []
        for which in ("train", "forward"):
            ragged, plain = (ms(sides[padded, which].get(k)) for padded in (False, True))
            cell += [number(ragged), number(plain), f"{plain / ragged:.2f}" if ragged and plain else "-"]
        body.append([k[0], group[0]["lengths"], *(str(group[0][n]) for n in ("B", "T", "threads")), *cell])
    return titled("weft's two layouts: ragged, and padded with masks.",
                  ["case", "lengths", "B", "T", "threads", "training, ragged", "padded", "ratio", "forward, ragged", "padded", "ratio"], body)


def packing(rows):
    body = [[r["what"], str(r["B"]), str(r["T"]), r["pass"], str(r["threads"]), number(r["ms"]), f"{r['gb_s']:.1f}", f"{r['copies']:.2f}"]
            for r in rows if r.get("case") == "pack" and "ms" in r]
    return titled("Packing; *copies*: its time divided by that of a plain copy of the same bytes.", ["what", "B", "T", "pass", "threads", "ms", "GB/s", "copies"], body)


def failures(rows):
    return list(dict.fromkeys(f"- {r['who']}, {r['case']}, H {r['H']}, T {r['T']}, {r['layout']}: {r['error'].splitlines()[0]}" for r in rows if "error" in r))


def section(path):
    rows = read(path)
    about = next((r for r in rows if "machine" in r), {"machine": os.path.splitext(os.path.basename(path))[0]})
    text = ", ".join(str(v) if k == "machine" else f"{k} {v}" for k, v in about.items())
    pairs, bad = differences(rows)
    proof = f"Loss and gradient norm agree in {pairs} of {pairs} comparisons of rows." if pairs and not bad else \
            f"**Loss or gradient norm differ {len(bad)} times in {pairs} comparisons.**" if bad else "No rows of both sides to compare."
    wrong = failures(rows)
    return [f"### {text}", ""] + training(rows) + [proof, ""] + wrong + ([""] if wrong else []) + machine_use(rows) + long(rows) + grid(rows) + products(rows) + \
        layouts(rows) + packing(rows)


def all_sections(folder):
    files = sorted(glob.glob(os.path.join(folder, "*.jsonl")))
    out = [line for f in files for line in section(f)]
    whos = [r["who"] for f in files for r in read(f) if is_own(r)]
    for gpu, said in ((False, "No CPU has been measured."), (True, "No GPU has been measured.")):
        if not any(w.endswith("-cuda") == gpu for w in whos):
            out += [said, ""]
    return [part for line in out for part in filled(line)]


def print_ratios(path):
    """Prints the ratios, as bench/compare does at its end."""
    rows = read(path)
    print(f"{'case':26}{'pass':9}{'prec.':12}{'H':>5}{'B':>6}{'T':>6}{'weft':>10}{'padded':>10}{'packed':>10}{'compiled':>10}{'ratio':>7}{'GF/s':>8}{'share':>7}{'MB':>8}{'padded':>8}")
    for r in sorted((r for which in ("train", "forward", "dx", "dw") for r in comparison(rows, which)), key=lambda r: r["case"] in APART):
        share = f"{100 * r['share']:.0f} %" if r["share"] else "-"
        print(f"{flat(r)[:25]:26}{r['pass']:9}{r['precision']:12}{r['H']:5}{r['B']:6}{r['T']:6}{number(r['ms']):>10}" +
              "".join(f"{number(r['times'][c]):>10}" for c in (PADDED, PACKED, COMPILED)) +
              f"{number(r['ratio'], 2):>7}{number(r['gf_s']):>8}{share:>7}{megabytes(r['bytes']):>8}{megabytes(r['peer_bytes'][PADDED]):>8}")
    for line in failures(rows):
        print(line)


# ---- charts ----
STYLE = """text { font-family: 'DejaVu Sans', Verdana, Helvetica, Arial, sans-serif; font-size: 12px; fill: #333333 }
.title { font-size: 16px; font-weight: bold }
.small { font-size: 11px; fill: #666666 }
.back { fill: #ffffff }
.axis { stroke: #666666; stroke-width: 1; fill: none }
.grid { stroke: #e0e0e0; stroke-width: 1; fill: none }
.weft { fill: #0072b2; stroke: #0072b2 } .padded { fill: #d55e00; stroke: #d55e00 } .packed { fill: #009e73; stroke: #009e73 }
.bar { stroke: none }
.curve { fill: none; stroke-width: 2; stroke-linejoin: round }
.name { stroke: none }
@media (prefers-color-scheme: dark) {
text { fill: #dddddd } .small { fill: #aaaaaa } .back { fill: #16191d } .axis { stroke: #aaaaaa } .grid { stroke: #33383e }
.weft { fill: #56b4e9; stroke: #56b4e9 } .padded { fill: #f0924c; stroke: #f0924c } .packed { fill: #3fcf9f; stroke: #3fcf9f }
.curve { fill: none } .bar, .name { stroke: none }
}"""
NAMES = {"weft": "weft", PADDED: "PyTorch, padded", PACKED: "PyTorch, packed"}


def escaped(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def label(x, y, text, style="", anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{style}" text-anchor="{anchor}">{escaped(text)}</text>'


def line(x0, y0, x1, y1, style):
    return f'<path d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}" class="{style}"/>'


def page(width, height, title, said, body):
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">', f"<title>{escaped(title)}</title>",
                      f"<style>\n{STYLE}\n</style>", '<rect width="100%" height="100%" class="back"/>', label(20, 28, title, "title"), label(20, 47, said, "small"),
                      *body, "</svg>", ""])


def measured_on(rows):
    m = next((r for r in rows if "machine" in r), {})
    who = sorted({r["who"] for r in rows if is_own(r)} | {r["who"] for r in rows if r.get("who", "").startswith("torch") and not r["who"].endswith("-compile")})
    return f"{m.get('machine', 'a machine')}, {m.get('cores', '?')} cores, {m.get('date', '')}: {' and '.join(reversed(who))}"


# ---- panels side by side, of curves over two logarithmic axes ----
WIDTH, HEIGHT, LEFT, TOP = 300, 190, 62, 34


def panel(title, curves, place, columns):
    """Draws panel number `place` in a grid of `columns`; curves: (style, more attributes, points)."""
    x0, y0 = 20 + LEFT + place % columns * WIDTH, 60 + TOP + place // columns * (HEIGHT + 10)
    xs, ys = sorted({p[0] for _, _, c in curves for p in c}), [p[1] for _, _, c in curves for p in c]
    low, high = (10 ** math.floor(math.log10(min(ys))), 10 ** math.ceil(math.log10(max(ys)) + 1e-9))
    x_of = lambda x: x0 + (math.log(x) - math.log(xs[0])) / (math.log(xs[-1]) - math.log(xs[0])) * (WIDTH - 85)
    y_of = lambda y: y0 + HEIGHT - 70 - (math.log(y) - math.log(low)) / (math.log(high) - math.log(low)) * (HEIGHT - 70)
    body = [label(x0, y0 - 8, title, "small")]
    for k in range(round(math.log10(low)), round(math.log10(high)) + 1):
        body += [line(x0, y_of(10.0**k), x0 + WIDTH - 85, y_of(10.0**k), "grid"), label(x0 - 6, y_of(10.0**k) + 4, f"{10.0**k:g}", "small", "end")]
    body += [label(x_of(x), y0 + HEIGHT - 52, f"{x:,}" if x < 1000 else f"{x // 1000:,}k", "small", "middle") for x in xs]
    for style, more, points in curves:
        body.append('<path d="' + "".join(f"{'L' if i else 'M'}{x_of(x):.1f} {y_of(y):.1f}" for i, (x, y) in enumerate(points)) + f'" class="{style} curve"{more}/>')
        body += [f'<circle cx="{x_of(x):.1f}" cy="{y_of(y):.1f}" r="3" class="{style}"/>' for x, y in points]
    return body


def slow_pack_chart(rows):
    """Draws ms over T for a padded batch with a mask and a packed one, in weft and in PyTorch."""
    dash = ' stroke-dasharray="6 4"'
    ways = {("weft", "plain"): ("weft", dash), ("weft", "padded"): ("weft", ""), ("torch", "padded"): (PADDED, dash), ("torch", "packed"): (PACKED, "")}
    body = [label(20, 62, "blue: weft, green and orange: PyTorch; dashed: padded with a mask, solid: packed", "small")]
    for i, (lengths, which) in enumerate((a, b) for a in ("equal", "triangle") for b in ("forward", "train")):
        curves = []
        for (who, layout), style in ways.items():
            of = [r for r in rows if r.get("case") == "slow_pack" and "ms" in r and r["who"].startswith(who) and (r["layout"], r["lengths"], r["pass"]) == (layout, lengths, which)]
            points = [(T, ms([r for r in of if r["T"] == T])) for T in sorted({r["T"] for r in of})]
            curves += [(*style, points)] * (len(points) > 0)
        body += panel(f"lengths: {lengths}, {which}", curves, i, 2)
    return page(2 * WIDTH + 60, 2 * HEIGHT + 110, "Packing: ms over the length T of sequences", measured_on(rows), body)


# ---- how many times as fast ----
def ratios(rows):
    """Returns the rows with most threads in the default precision; none if fewer than two."""
    found = [r for r in comparison(rows, "train") if r["ratio"] and r["precision"] == "fp32" and r["case"] not in APART]
    most = max((r["threads"] for r in found), default=0)
    bars = [r for r in found if r["threads"] == most]
    return bars if len(bars) > 1 else []


def ratio_chart(rows):
    bars = ratios(rows)
    left, right, top, step = 300, 710, 70, 24
    most = max(2, math.ceil(max(r["ratio"] for r in bars)))
    tick = max(1, most // 10)
    x_of = lambda ratio: left + (right - left) * ratio / most
    bottom = top + step * len(bars)
    body = []
    for ratio in range(0, most + 1, tick):
        body += [line(x_of(ratio), top - 4, x_of(ratio), bottom, "axis" if ratio in (0, 1) else "grid"), label(x_of(ratio), bottom + 16, str(ratio), "small", "middle")]
    for i, r in enumerate(bars):
        y = top + step * i
        name = f"{r['case']}, H {r['H']}, B {r['B']}, T {r['T']}" + (f", {r['lengths']}" if r["case"] == "transformer_lstm" else "")
        body += [label(left - 8, y + 15, name, "", "end"), f'<rect x="{left}" y="{y + 3}" width="{x_of(r["ratio"]) - left:.1f}" height="{step - 8}" class="weft bar"/>',
                 label(x_of(r["ratio"]) + 5, y + 15, f"{r['ratio']:.1f}")]
    body.append(label(left, bottom + 34, "1: as fast as the best of PyTorch's padded, packed and compiled", "small"))
    return page(760, bottom + 48, "A training step: speed relative to PyTorch", measured_on(rows) + f", threads: {bars[0]['threads']}", body)


# ---- cost of a token ----
def curves(rows):
    """Returns (H, side) -> [(T, microseconds per token)] for equal numbers of tokens."""
    found = [r for r in comparison(rows, "train") if r["case"] == "long" and r["precision"] == "fp32" and r["B"] > 1]
    most, out = max((r["threads"] for r in found), default=0), {}
    for r in sorted((r for r in found if r["threads"] == most), key=lambda r: r["T"]):
        for side, t in (("weft", r["ms"]), (PADDED, r["times"][PADDED]), (PACKED, r["times"][PACKED])):
            if t:
                out.setdefault((r["H"], side), []).append((r["T"], t * 1e3 / r["tokens"]))
    return {k: v for k, v in out.items() if len(v) > 1 or k[1] != "weft"} if any(len(v) > 1 for v in out.values()) else {}


def token_chart(rows):
    all_ = curves(rows)
    left, right, top, bottom = 70, 560, 70, 380
    ts = sorted({t for points in all_.values() for t, _ in points})
    costs = [c for points in all_.values() for _, c in points]
    low, high = math.floor(math.log10(min(costs))), math.ceil(math.log10(max(costs)))
    x_of = lambda t: left + (right - left) * math.log(t / ts[0]) / math.log(ts[-1] / ts[0])
    y_of = lambda c: bottom - (bottom - top) * (math.log10(c) - low) / max(1, high - low)
    body = []
    for power in range(low, high + 1):
        body += [line(left, y_of(10**power), right, y_of(10**power), "grid"), label(left - 8, y_of(10**power) + 4, f"{10.**power:g}", "small", "end")]
    for t in ts:
        body += [line(x_of(t), bottom, x_of(t), bottom + 4, "axis"), label(x_of(t), bottom + 18, str(t), "small", "middle")]
    body += [line(left, bottom, right, bottom, "axis"), line(left, top, left, bottom, "axis")]
    ends = sorted((y_of(points[-1][1]), key, points) for key, points in all_.items())
    at = top - 14
    for y, (H, side), points in ends:
        path = "M" + "L".join(f"{x_of(t):.1f} {y_of(c):.1f}" for t, c in points)
        dash = "" if H == min(k[0] for k in all_) else ' stroke-dasharray="6 4"'
        at = max(at + 15, y + 4)                 # names do not cover each other
        body += [f'<path d="{path}" class="{side} curve"{dash}/>', *(f'<circle cx="{x_of(t):.1f}" cy="{y_of(c):.1f}" r="3" class="{side}"/>' for t, c in points),
                 label(right + 12, at, f"{NAMES[side]}, H {H}", f"{side} name")]
    body.append(label((left + right) / 2, bottom + 38, "steps of each sequence; the total of tokens is constant", "small", "middle"))
    return page(760, bottom + 54, "One LSTM layer, training: microseconds a token", measured_on(rows), body)


CHARTS = (("ratio.svg", "speed of a training step relative to PyTorch, by case", ratios, ratio_chart),
          ("per_token.svg", "cost of a token by length of its sequence", curves, token_chart))


def draw(files, folder):
    """Draws the charts that have data and returns their (name, caption)."""
    newest = sorted(files, key=lambda f: (next((r.get("date", "") for r in read(f) if "machine" in r), ""), f))
    drawn = []
    for name, shows, has, chart in CHARTS:
        for path in reversed(newest):
            rows = read(path)
            if any(is_own(r) and "cuda" not in r["who"] for r in rows) and has(rows):
                with open(os.path.join(folder, name), "w") as f:
                    f.write(chart(rows))
                drawn.append((name, shows))
                break
    return drawn


BEGIN, END = "<!-- table.py begins -->", "<!-- table.py ends -->"
FLAGS = ("avx2", "fma", "avx512f", "avx512_bf16", "amx_tile", "amx_bf16")


def check(path):
    pairs, bad = differences(read(path))
    for text in bad:
        print("not equal:", text)
    print(f"equal work: {pairs - len({t.split(': ', 1)[1] for t in bad})} of {pairs} pairs" if pairs else "equal work: no rows of both sides to compare")
    return not bad and pairs > 0


# ---- goals: ratios to packed batches; cuDNN launches a kernel for each of their steps ----
# For padded batches of up to 128 units cuDNN has one kernel for all steps, so that goal is 1.
def goal(row):
    long = {"net": 10, "lstm": 15 if row["H"] <= 128 else 7 if row["H"] <= 512 else 1}
    return long.get(row["case"], 1) if row["T"] == 512 else 1


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


# ---- kernels of a recurrent layer ----
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
    pictures = draw(glob.glob(os.path.join(folder, "*.jsonl")), os.path.dirname(page))
    made = [line for name, shows in pictures for line in (f"![{shows}]({name})", "")] + all_sections(folder)
    with open(page, "w") as f:
        f.write(before + BEGIN + "\n\n" + "\n".join(made) + "\n" + END + rest.split(END)[1])


# ---- this machine ----
def said(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def cpu():
    """Returns the fields of /proc/cpuinfo."""
    try:
        with open("/proc/cpuinfo") as f:
            return {k.strip(): v.strip() for k, _, v in (line.partition(":") for line in f)}
    except OSError:
        return {}


def machine(**more):
    """Returns a row about this machine, the first line of a results file."""
    flags = cpu().get("flags", "").split()
    row = {"machine": cpu().get("model name") or platform.machine(), "cores": os.cpu_count(), "flags": " ".join(f for f in FLAGS if f in flags),
           "date": time.strftime("%Y-%m-%d"), **more}
    gpu = said("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").splitlines()
    if gpu:
        name, driver = gpu[0].split(", ")
        row = {"machine": name, "driver": driver, "CPU": row.pop("machine"), **row}
    return row


def rows_as_lines(head, rows):
    """Returns JSON with one row a line."""
    return json.dumps(head)[:-1] + ', "rows": [\n' + ",\n".join(map(json.dumps, rows)) + "\n]}\n"


def main():
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    what = sys.argv[1:]
    files = {"--check": check, "--goals": goals, "--sweep": sweep, "--ratios": print_ratios}
    if not what:
        rewrite(os.path.join(here, "docs/performance.md"), os.path.join(here, "bench/results"))
    elif what[0] == "--machine" and all("=" in w for w in what[1:]):
        print(json.dumps(machine(**dict(w.split("=", 1) for w in what[1:]))))
    elif len(what) == 2 and what[0] in files:
        return 1 if files[what[0]](what[1]) is False else 0
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
