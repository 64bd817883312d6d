#!/usr/bin/env python3
"""tiers.py - is the instruction set that weft chooses by itself the fastest that this CPU has?

    python3 bench/tiers.py [--build BUILD] [--case CASE,..] [--precision P,..] [--turns N] [--default ISA] [--out FILE]

A fixed set of cases runs on each instruction set by turns, on one thread; of each the least time counts. Training steps are timed by processor
time, single tokens by the median of many calls. Where the default looks slower, the case is repeated up to N times before it is judged. WEFT_TF32
and WEFT_BF16 are compared with the best set without matrix tiles, and their single tokens with those of WEFT_FP32.

Prints a table and writes FILE, by default bench/results/tiers-<cpu>.json; FILE - is none. Exit status 1 if the default is more than 10 % slower
than another set in any case. --default ISA judges that set as if it were the default, to see that the comparison can fail.
"""
import argparse
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SETS = ("generic", "avx2", "avx512", "amx")
CASES = ("net", "lstm", "bilstm", "transformer_lstm", "g2p", "decode", "token")
LOST, DEFAULT, PLAIN = 1.1, "default", "fp32"
TOKEN = re.compile(r"^(stream\S*) (H=\d+ B=\d+) weft ([\d.]+) us", re.M)


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default=os.path.join(os.path.dirname(HERE), "build"))
    p.add_argument("--case", default=",".join(CASES))
    p.add_argument("--precision", default="fp32,tf32,bf16")
    p.add_argument("--turns", type=int, default=4)
    p.add_argument("--default", default="")
    p.add_argument("--out")
    args = p.parse_args()
    args.case = args.case.split(",")
    unknown = set(args.case) - set(CASES)
    if unknown:
        p.error(f"there is no case {', '.join(sorted(unknown))}: {', '.join(CASES)} are expected")
    return args


class Runs:
    """least milliseconds: (precision, what) -> {set: ms}"""

    def __init__(self, args):
        self.args, self.least = args, {}

    def program(self, isa, *command):
        env = dict(os.environ, WEFT_ISA="" if isa == DEFAULT else isa)
        return subprocess.run([os.path.join(self.args.build, "bench", command[0]), *command[1:]], env=env, capture_output=True, text=True)

    def offered(self, isa):
        return not self.program(isa, "stream/stream", "--bare", "1", "--units", "8", "--batch", "1").returncode

    def name(self, precision):
        """of the set that is chosen where nothing is asked for"""
        said = self.program(self.args.default or DEFAULT, "weft_bench", "--case", "net", "--tiny", "--runs", "1", "--precision", precision)
        return json.loads(said.stdout.splitlines()[0])["who"].rsplit("-", 1)[1]

    def measure(self, case, precision, isa):
        asked = self.args.default if isa == DEFAULT and self.args.default else isa
        if case == "token":
            said = self.program(asked, "stream/stream", "--precision", precision, "--units", "32,64,128,256,512", "--batch", "1,8", "--calls", "1000")
            rows = [(f"{kind} {shape}", float(us) * 1e-3) for kind, shape, us in TOKEN.findall(said.stdout)]
        else:
            said = self.program(asked, "weft_bench", "--case", case, "--precision", precision, "--threads", "1", "--runs", "3", "--quick", "--cpu-time",
                                "--layout", "packed")
            rows = [(f"{case} H={r['H']} T={r['T']}{' beams=%d' % r['beams'] if 'beams' in r else ''} {r['pass']}", r["ms_min"])
                    for r in map(json.loads, said.stdout.splitlines())]
        if said.returncode or not rows:
            sys.exit(f"tiers: {case}, {precision}, {isa}: {said.stderr.strip() or 'no times'}")
        for what, ms in rows:
            times = self.least.setdefault((precision, case, what), {})
            times[isa] = min(ms, times.get(isa, ms))

    def lost(self, case, precision):
        """sets, and precisions, that are faster than the default, and by how much in the worst row"""
        out = {}
        for (p, c, what), times in self.least.items():
            if (p, c) == (precision, case):
                others = {k: v for k, v in times.items() if k != DEFAULT}
                if case == "token" and p != PLAIN and (PLAIN, c, what) in self.least:
                    others[PLAIN] = self.least[PLAIN, c, what][DEFAULT]
                for other, ms in others.items():
                    out[other] = max(out.get(other, 0), times[DEFAULT] / ms)
        return {other: ratio for other, ratio in out.items() if ratio > LOST}

    def compare(self, case, precision, sets):
        for isa in (DEFAULT, *sets):
            self.measure(case, precision, isa)
        for _ in range(self.args.turns):
            lost = self.lost(case, precision)
            for other in lost:
                self.measure(case, *((PLAIN, DEFAULT) if other == PLAIN else (precision, other)))
            if not lost:
                break
            self.measure(case, precision, DEFAULT)
        return self.lost(case, precision)


def table(runs, case, precision, sets, names):
    for (p, c, what), times in runs.least.items():
        if (p, c) == (precision, case):
            beside = "".join(f"{isa} {times[isa] / times[DEFAULT]:5.2f}   " for isa in sets)
            plain = runs.least.get((PLAIN, c, what)) if case == "token" and p != PLAIN else None
            beside += f"{PLAIN} {plain[DEFAULT] / times[DEFAULT]:5.2f}" if plain else ""
            print(f"{precision:5} {what:38} {names[precision]:8} {times[DEFAULT]:10.4f} ms   {beside}", flush=True)


def main():
    args = arguments()
    runs, names, lost = Runs(args), {}, []
    offered = [s for s in SETS if runs.offered(s)]
    for precision in args.precision.split(","):
        names[precision] = runs.name(precision)
        vectors = [s for s in offered if s != "amx" and s != names[precision]]
        sets = vectors if precision == PLAIN else vectors[-1:] if names[precision] == "amx" else []
        for case in args.case:
            if not sets and case != "token":
                continue
            for other, ratio in runs.compare(case, precision, sets).items():
                lost.append(f"{case}, {precision}: {names[precision]} takes {ratio:.2f} times as long as {other}")
            table(runs, case, precision, sets, names)
    about = json.loads(subprocess.run([sys.executable, os.path.join(HERE, "table.py"), "--machine"], capture_output=True, text=True, check=True).stdout)
    cpu = re.sub(r"[^a-z0-9]+", "-", f"{about['machine']} {model()}".lower()).strip("-")
    rows = [{"precision": p, "what": what, "default": names[p], "ms": {k: round(v, 5) for k, v in t.items()}} for (p, _, what), t in runs.least.items()]
    if args.out != "-":
        with open(args.out or os.path.join(HERE, "results", f"tiers-{cpu}.json"), "w") as f:
            f.write(json.dumps({**about, "sets": offered, "lost": lost})[:-1] + ', "rows": [\n' + ",\n".join(map(json.dumps, rows)) + "\n]}\n")
    print("\n".join(lost) if lost else f"the default is the fastest, or within {LOST - 1:.0%} of it, in {len(rows)} rows")
    return 1 if lost else 0


def model():
    with open("/proc/cpuinfo") as f:
        return "-".join(re.findall(r"^(?:cpu family|model)\s*: (\d+)", f.read(), re.M)[:2])


if __name__ == "__main__":
    sys.exit(main())
