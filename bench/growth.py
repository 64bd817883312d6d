#!/usr/bin/env python3
"""growth.py BUILD [OUT.json]    how the cost of a training step grows, and what a program of one step takes from exec to exit: runs the case growth
of weft_bench, and bench/growth/one_step, and makes docs/growth.svg and the table in docs/growth.md of it. OUT.json keeps what was measured;
growth.py - OUT.json reads it instead."""
import json
import math
import os
import re
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from table import label, line, machine, page, rows_as_lines

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../docs")
# what grows: where a row has it, and what stays
AXES = {"length": ("T", "64 sequences, 32 units"), "sequences": ("B", "64 steps, 32 units"), "units": ("H", "64 sequences of 16 steps"),
        "vocabulary": ("vocabulary", "64 sequences of 16 steps, 32 units"), "features": ("I", "64 sequences of 64 steps, 32 units"),
        "threads": ("threads", "512 sequences of 32 steps, 256 units")}
WIDTH, HEIGHT, LEFT, TOP = 300, 190, 62, 34


def one_step(program, runs=31):
    """from exec to exit: the median of the milliseconds; the peak of the resident bytes"""
    ms = []
    for _ in range(runs):
        begin = time.perf_counter()
        _, status = os.waitpid(os.posix_spawn(program, [program], os.environ), 0)
        ms.append((time.perf_counter() - begin) * 1e3)
        if status:
            sys.exit(f"{program} failed")
    peak = subprocess.run([program, "peak"], capture_output=True, text=True, check=True).stdout
    return {"ms": round(statistics.median(ms), 2), "bytes": int(peak) * 1024}


def measured(build):
    out = subprocess.run([f"{build}/bench/weft_bench", "--case", "growth", "--threads", "1", "--runs", "7"], capture_output=True, text=True, check=True).stdout
    rows = [json.loads(l) for l in out.splitlines()]
    about = machine()
    return {"machine": about.get("CPU", about["machine"]), "date": about["date"], "one_step": one_step(f"{build}/bench/growth/one_step"),
            "rows": [r for r in rows if r["pass"] == "train"]}


def points(rows, axis):
    return [(r[AXES[axis][0]], r["ms"] * 1e3 / r["tokens"], r.get("peak_bytes", 0) / r["tokens"], r["lean"]) for r in rows if r["axis"] == axis]


def said(x):
    return f"{x:,.0f}" if x >= 1000 else f"{x:.3g}"


# ---- the table ----
def table(rows):
    lines = ["| what grows | | us a token | bytes a token | of the peak |", "| --- | --- | --- | --- | --- |"]
    for axis, (field, stays) in AXES.items():
        for i, r in enumerate(r for r in rows if r["axis"] == axis):
            name = f"{axis} ({stays})" if i == 0 else ""
            lean = ", lean" if r["lean"] else ""
            lines.append(f"| {name} | {r[field]:,}{lean} | {said(r['ms'] * 1e3 / r['tokens'])} | {said(r.get('peak_bytes', 0) / r['tokens'])} | {r.get('share', 0) * 100:.0f} % |")
    return "\n".join(lines)


def started(step):
    return "\n".join(["A program that opens a context, makes a model, trains one step and ends",
                      f"takes {step['ms']:.1f} ms and {step['bytes'] * 1e-6:.1f} MB from exec to exit (`bench/growth/one_step.c`; shared library,",
                      "default device, no GPU there)."])


# ---- the picture: both scales by powers ----
def ticks(low, high):
    return [10.0 ** k for k in range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)]


def panel(axis, found, x0, y0):
    xs, ys = [p[0] for p in found], [p[1] for p in found]
    low, high = 10 ** math.floor(math.log10(min(ys))), 10 ** math.ceil(math.log10(max(ys)) + 1e-9)
    place = lambda x, y: (x0 + (math.log(x) - math.log(min(xs))) / (math.log(max(xs)) - math.log(min(xs))) * (WIDTH - 85),
                          y0 + HEIGHT - 70 - (math.log(y) - math.log(low)) / (math.log(high) - math.log(low)) * (HEIGHT - 70))
    body = [label(x0, y0 - 8, f"{axis}: {AXES[axis][1]}", "small")]
    for y in ticks(low, high):
        body += [line(x0, place(min(xs), y)[1], x0 + WIDTH - 85, place(min(xs), y)[1], "grid"),
                 label(x0 - 6, place(min(xs), y)[1] + 4, f"{y:g}", "small", "end")]
    for x in xs:
        body.append(label(place(x, low)[0], y0 + HEIGHT - 52, f"{x:,}" if x < 1000 else f"{x // 1000:,}k", "small", "middle"))
    body.append('<path d="' + "".join(f"{'L' if i else 'M'}{place(p[0], p[1])[0]:.1f} {place(p[0], p[1])[1]:.1f}" for i, p in enumerate(found)) + '" class="weft curve"/>')
    body += [f'<circle cx="{place(p[0], p[1])[0]:.1f}" cy="{place(p[0], p[1])[1]:.1f}" r="3" class="weft"/>' for p in found]
    return body


def picture(all_):
    body = []
    for i, axis in enumerate(AXES):
        body += panel(axis, points(all_["rows"], axis), 20 + LEFT + i % 3 * WIDTH, 60 + TOP + i // 3 * (HEIGHT + 10))
    return page(3 * WIDTH + 60, 2 * HEIGHT + 110, "What a token of a training step costs", f"microseconds; {all_['machine']}, {all_['date']}", body)


def main():
    build, kept = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    all_ = json.load(open(kept)) if build == "-" else measured(build)
    if kept and build != "-":
        with open(kept, "w") as f:
            f.write(rows_as_lines({k: v for k, v in all_.items() if k != "rows"}, all_["rows"]))
    with open(os.path.join(DOCS, "growth.svg"), "w") as f:
        f.write(picture(all_))
    path = os.path.join(DOCS, "growth.md")
    text = open(path).read()
    begin, end = "<!-- growth.py begins -->", "<!-- growth.py ends -->"
    made = f"{begin}\n\n{all_['machine']}, {all_['date']}, one thread but in the last rows.\n\n{table(all_['rows'])}\n\n{started(all_['one_step'])}\n\n{end}"
    with open(path, "w") as f:
        f.write(re.sub(re.escape(begin) + ".*" + re.escape(end), lambda _: made, text, flags=re.S))


main()
