"""charts.py - two pictures of measurements, by hand in SVG, readable on light and on dark: how much faster training is, case by case; and what
a token costs, by the length of its sequence. Each is drawn from the newest file that has what it shows."""
import math
import os

from measurements import PACKED, PADDED, comparison, is_own, read
from tables import APART

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


def about(rows):
    m = next((r for r in rows if "machine" in r), {})
    who = sorted({r["who"] for r in rows if is_own(r)} | {r["who"] for r in rows if r.get("who", "").startswith("torch") and not r["who"].endswith("-compile")})
    return f"{m.get('machine', 'a machine')}, {m.get('cores', '?')} cores, {m.get('date', '')}: {' beside '.join(reversed(who))}"


# ---- how many times as fast ----
def ratios(rows):
    """of the most threads, in the default precision; one bar is no picture"""
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
    return page(760, bottom + 48, "A training step: how many times as fast as PyTorch", about(rows) + f", threads: {bars[0]['threads']}", body)


# ---- what a token costs ----
def curves(rows):
    """(H, side) -> [(T, microseconds)], of equal numbers of tokens"""
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
    body.append(label((left + right) / 2, bottom + 38, "steps of each sequence; as many tokens in all", "small", "middle"))
    return page(760, bottom + 54, "One LSTM layer, training: microseconds a token", about(rows), body)


CHARTS = (("ratio.svg", "how many times as fast as PyTorch a training step is, case by case", ratios, ratio_chart),
          ("per_token.svg", "what a token costs, by the length of its sequence", curves, token_chart))


def draw(files, folder):
    """(name, what it shows) of those that could be drawn"""
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
