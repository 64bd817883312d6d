#!/usr/bin/env python3
"""growth.py BUILD [OUT.json]    measures how the cost of a training step grows, and the cost of a program with one step from exec to exit.

Runs the case growth of weft_bench, and bench/growth/one_step. Writes docs/growth.svg, the table in docs/growth.md, and the measurements to
OUT.json. `growth.py - OUT.json` reads OUT.json instead of measuring."""
import json
import os
import re
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from table import HEIGHT, WIDTH, machine, page, panel, rows_as_lines

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../docs")
# axis: field of a row, and the sizes that stay constant
AXES = {"length": ("T", "64 sequences, 32 units"), "sequences": ("B", "64 steps, 32 units"), "units": ("H", "64 sequences of 16 steps"),
        "vocabulary": ("vocabulary", "64 sequences of 16 steps, 32 units"), "features": ("I", "64 sequences of 64 steps, 32 units"),
        "threads": ("threads", "512 sequences of 32 steps, 256 units")}


def one_step(program, runs=31):
    """Returns the median milliseconds from exec to exit, and the peak of resident bytes."""
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
                      "default device, no GPU)."])


# ---- the picture ----
def picture(all_):
    body = []
    for i, axis in enumerate(AXES):
        curve = [p[:2] for p in points(all_["rows"], axis)]
        body += panel(f"{axis}: {AXES[axis][1]}", [("weft", "", curve)], i, 3)
    return page(3 * WIDTH + 60, 2 * HEIGHT + 110, "What a token of a training step costs", f"microseconds; {all_['machine']}, {all_['date']}", body)


def main():
    build, kept = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    all_ = json.load(open(kept)) if build == "-" else measured(build)
    all_["rows"] = [r for rows in all_["rows"] for r in (rows if isinstance(rows, list) else [rows])]      # a file has one list for each axis
    if kept and build != "-":
        with open(kept, "w") as f:
            f.write(rows_as_lines({k: v for k, v in all_.items() if k != "rows"}, [[r for r in all_["rows"] if r["axis"] == axis] for axis in AXES]))
    with open(os.path.join(DOCS, "growth.svg"), "w") as f:
        f.write(picture(all_))
    path = os.path.join(DOCS, "growth.md")
    text = open(path).read()
    begin, end = "<!-- growth.py begins -->", "<!-- growth.py ends -->"
    made = f"{begin}\n\n{all_['machine']}, {all_['date']}, one thread except in the last rows.\n\n{table(all_['rows'])}\n\n{started(all_['one_step'])}\n\n{end}"
    with open(path, "w") as f:
        f.write(re.sub(re.escape(begin) + ".*" + re.escape(end), lambda _: made, text, flags=re.S))


main()
