"""tables.py - the tables of docs/performance.md, made from the rows of measurements.py."""
import glob
import os
import textwrap

from measurements import COMPILED, PACKED, PADDED, comparison, differences, flat, is_own, ms, number, own, peers, read

APART = ("sweep", "never_slower", "gemm", "long")                # cases with tables of their own
HEAD = ["case", "H", "B", "T"]


def lines_of(head, body):
    return ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"] + ["| " + " | ".join(b) + " |" for b in body] + [""]


def filled(line):
    """prose at most 100 columns wide, as all of docs"""
    if len(line) <= 100 or line.startswith("|"):
        return [line]
    return textwrap.wrap(line, 100, subsequent_indent="  " if line.startswith("- ") else "", break_long_words=False, break_on_hyphens=False)


def titled(title, head, body):
    return [title, ""] + lines_of(head, body) if body else []


def names(rows, begin):
    return sorted({r["who"] for r in rows if r.get("who", "").startswith(begin) and not r["who"].endswith(("-compile", "-openblas"))})


def cells_of(row):
    return [flat(row), *(str(row[k]) for k in ("H", "B", "T"))]


def bold(ratio):
    return f"**{ratio:.1f}**" if ratio else "-"


def training(rows):
    """one table for each precision and number of threads"""
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
        about = f"`{', '.join(names(rows, 'weft'))}` beside " + (f"`{', '.join(beside)}`" if beside else "nobody") + f", {precision}" + \
            ("" if any("cuda" in n for n in names(rows, "weft")) else f", threads: {threads}")
        out += titled(about + ".", [*HEAD, "training", "padded", "packed", "compiled", "ratio", "forward", "padded", "packed", "ratio"], body)
    return out


def megabytes(n):
    return number(n / 1e6) if n else "-"


def machine_use(rows):
    """arithmetic and memory of a training step"""
    body = []
    for r in comparison(rows, "train"):
        if r["gf_s"] is None or r["case"] in APART and r["case"] != "long":
            continue
        padded = r["peer_bytes"][PADDED]
        allowed = padded * r["real"] if padded and r["real"] else None
        body.append([*cells_of(r), r["precision"], str(r["threads"]), number(r["gf_s"]), f"{100 * r['share']:.0f} %" if r["share"] else "-",
                     megabytes(r["bytes"]), megabytes(padded), megabytes(r["peer_bytes"][PACKED]), megabytes(allowed),
                     "-" if not (allowed and r["bytes"]) else "yes" if r["bytes"] <= allowed else "**no**", number(r["allocations"], 0)])
    return titled("Of a training step: GF/s of what it needs, their share of what the machine can do; MB that it takes, ours, PyTorch's padded and packed; whether "
                  "ours are at most the padded ones times the share of real tokens; allocations in the measured steps.",
                  [*HEAD, "precision", "threads", "GF/s", "share", "MB", "padded", "packed", "padded x real", "within", "allocations"], body)


def grid(rows):
    """never_slower: a row for each width, a column for each number of sequences"""
    passes = {which: [r for r in comparison(rows, which) if r["case"] == "never_slower" and r["ratio"]] for which in ("train", "forward")}
    out = []
    for precision, threads in dict.fromkeys((r["precision"], r["threads"]) for r in passes["train"]):
        of = {which: {(r["H"], r["B"]): r["ratio"] for r in passes[which] if (r["precision"], r["threads"]) == (precision, threads)} for which in passes}
        wide, many = (sorted({k[i] for k in of["train"]}) for i in (0, 1))
        body = [[str(H)] + [" / ".join(number(of[w].get((H, B)), 2) for w in ("train", "forward")) for B in many] for H in wide]
        all_ = [x for w in of.values() for x in w.values()]
        out += titled(f"One LSTM layer, training / forward: the better of PyTorch's times to weft's, {precision}, threads: {threads}; 1 or more in "
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
    return titled("Products in GF/s, our own beside OpenBLAS (`WEFT_GEMM=openblas`) and `torch.mm`.",
                  ["product", "rows", "in", "out", "threads", "precision", "weft", "share", "OpenBLAS", "torch"], body)


def layouts(rows):
    """a whole model on ragged series, and as PyTorch has to do it"""
    sides = {(padded, which): own(rows, padded, **{"pass": which}) for padded in (False, True) for which in ("train", "forward")}
    body = []
    for k, group in sides[True, "train"].items():
        cell = []
        for which in ("train", "forward"):
            ragged, plain = (ms(sides[padded, which].get(k)) for padded in (False, True))
            cell += [number(ragged), number(plain), f"{plain / ragged:.2f}" if ragged and plain else "-"]
        body.append([k[0], group[0]["lengths"], *(str(group[0][n]) for n in ("B", "T", "threads")), *cell])
    return titled("weft's own two ways: ragged, and padded with masks.",
                  ["case", "lengths", "B", "T", "threads", "training, ragged", "padded", "ratio", "forward, ragged", "padded", "ratio"], body)


def packing(rows):
    body = [[r["what"], str(r["B"]), str(r["T"]), r["pass"], str(r["threads"]), number(r["ms"]), f"{r['gb_s']:.1f}", f"{r['copies']:.2f}"]
            for r in rows if r.get("case") == "pack" and "ms" in r]
    return titled("Packing; copies: its time in plain copies of the same bytes.", ["what", "B", "T", "pass", "threads", "ms", "GB/s", "copies"], body)


def failures(rows):
    return list(dict.fromkeys(f"- {r['who']}, {r['case']}, H {r['H']}, T {r['T']}, {r['layout']}: {r['error'].splitlines()[0]}" for r in rows if "error" in r))


def section(path):
    rows = read(path)
    about = next((r for r in rows if "machine" in r), {"machine": os.path.splitext(os.path.basename(path))[0]})
    text = ", ".join(str(v) if k == "machine" else f"{k} {v}" for k, v in about.items())
    pairs, bad = differences(rows)
    proof = f"Loss and gradient norm agree in {pairs} of {pairs} comparisons of rows." if pairs and not bad else \
            f"**Loss or gradient norm differ {len(bad)} times in {pairs} comparisons.**" if bad else "There are no rows of both sides to compare."
    wrong = failures(rows)
    return [f"### {text}", ""] + training(rows) + [proof, ""] + wrong + ([""] if wrong else []) + machine_use(rows) + long(rows) + grid(rows) + products(rows) + \
        layouts(rows) + packing(rows)


def all_sections(folder):
    files = sorted(glob.glob(os.path.join(folder, "*.jsonl")))
    out = [line for f in files for line in section(f)]
    whos = [r["who"] for f in files for r in read(f) if is_own(r)]
    for gpu, said in ((False, "No CPU has been measured by this script yet: these rows are missing."), (True, "No GPU was at hand yet: these rows are missing.")):
        if not any(w.endswith("-cuda") == gpu for w in whos):
            out += [said, ""]
    return [part for line in out for part in filled(line)]


def print_ratios(path):
    """what bench/compare ends with"""
    rows = read(path)
    print(f"{'case':26}{'pass':9}{'prec.':12}{'H':>5}{'B':>6}{'T':>6}{'weft':>10}{'padded':>10}{'packed':>10}{'compiled':>10}{'ratio':>7}{'GF/s':>8}{'share':>7}{'MB':>8}{'padded':>8}")
    for r in sorted((r for which in ("train", "forward", "dx", "dw") for r in comparison(rows, which)), key=lambda r: r["case"] in APART):
        share = f"{100 * r['share']:.0f} %" if r["share"] else "-"
        print(f"{flat(r)[:25]:26}{r['pass']:9}{r['precision']:12}{r['H']:5}{r['B']:6}{r['T']:6}{number(r['ms']):>10}" +
              "".join(f"{number(r['times'][c]):>10}" for c in (PADDED, PACKED, COMPILED)) +
              f"{number(r['ratio'], 2):>7}{number(r['gf_s']):>8}{share:>7}{megabytes(r['bytes']):>8}{megabytes(r['peer_bytes'][PADDED]):>8}")
    for line in failures(rows):
        print(line)
