"""measurements.py - rows of JSON that weft_bench, its peers and tests/gpu_first.sh have printed: read, brought together, compared.

A file is of one machine. Rows of both sides belong together if their shape, threads and precision are the same; of rows that occur several
times the median counts. "recur" says what WEFT_RECUR was, where it was set. On a CPU PyTorch has no precision between fp32 and bf16, so its fp32
stands beside weft's strict_fp32, fp32 and tf32.
"""
import json
import statistics
import sys

SHAPE = ("case", "B", "T", "I", "H", "layers", "bidirectional", "lengths", "threads", "precision", "heads")
TOLERANCE = {"fp32": 1e-3, "strict_fp32": 1e-3, "tf32": 1e-2, "bf16": 5e-2}      # of loss and norm; tf32 rounds operands to 11 bits, bf16 to 8
RECUR = {"general": None, "block": 128, "cluster": 512, "group": 512}            # ways of a recurrent layer, and up to how many units they go
LIKE_FP32 = ("strict_fp32", "tf32")
PADDED, PACKED, COMPILED = "padded", "packed", "compiled"          # what a peer's row is in the tables


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


def field(key, name):
    return key[SHAPE.index(name)]


def about(key):
    return ", ".join(f"{k} {v}" for k, v in zip(SHAPE, key) if v not in (None, False))


def is_own(row):
    return row.get("who", "").startswith("weft") and not row["who"].endswith("-openblas")


def column(row):
    """of a peer's row"""
    if row["who"].endswith("-compile"):
        return COMPILED
    return PACKED if row["layout"] in ("packed", "nested") else PADDED


def own(rows, padded=False, **fields):
    """shape -> weft's rows, ragged or padded ones; errors, too"""
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
    """a peer's rows for one of our shapes"""
    found = groups.get(key)
    if not found and field(key, "precision") in LIKE_FP32 and not any("cuda" in r.get("who", "") for r in rows):
        found = groups.get(tuple("fp32" if k == "precision" else v for k, v in zip(SHAPE, key)))
    return found


def ms(rows):
    """the median of the rows; of several programs or layouts the fastest's"""
    ways = {}
    for r in rows or []:
        if "ms" in r:
            ways.setdefault((r["who"], r["layout"]), []).append(r["ms"])
    return min((statistics.median(t) for t in ways.values()), default=None)


def best(rows):
    """of rows of weft of one shape: the fastest way, and its name"""
    ways = [(ms([r for r in rows if r.get("recur") == way]), way or "as chosen") for way in (None, *RECUR)]
    ways = [w for w in ways if w[0]]
    return min(ways) if ways else (None, "")


def median_of(rows, name):
    values = [r[name] for r in rows or [] if name in r]
    return statistics.median(values) if values else None


# ---- equal work ----
def comparable(row):
    """PyTorch's padded layers, compiled or not, read pads, which shows where a layer has two directions or hands on its last state"""
    return "loss" in row and (row["layout"] != "padded" or not (row["bidirectional"] or row["case"] in ("transformer_lstm", "g2p")))


def differences(rows):
    """(pairs, texts): of all training rows, and all products, that both sides have; whichever layouts they are of"""
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
    """of a padded batch the share that is no pad"""
    cells = row["B"] * (row["T"] + row.get("horizon", 0))
    return row["tokens"] / cells if row["lengths"] != "pooled" else None


def comparison(rows, which):
    """for each of our shapes that pass `which` has, in the rows' order: what was measured on both sides"""
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
    """what a comparison's row is called"""
    case = row["case"]
    return case + (f", {row['layers']} layers" if row["layers"] > 1 else "") + (", both directions" if row["bidirectional"] else "")


def number(x, digits=3):
    return "-" if x is None else f"{x:.{digits}f}" if x < 10 else f"{x:.1f}" if x < 100 else f"{x:.0f}"
