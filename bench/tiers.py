#!/usr/bin/env python3
"""tiers.py - checks that weft's default instruction set is the fastest of this CPU.

    python3 bench/tiers.py [--build BUILD] [--case CASE,..] [--precision P,..] [--turns N] [--default ISA] [--out FILE]

A fixed set of cases runs alternately on each instruction set, on one thread. Training steps are timed by CPU time, single tokens by the median
of many calls. If the default looks slower, the case is repeated up to N times. The default loses if both the minimum times and the median of the
ratios are slower. WEFT_TF32 and WEFT_BF16 are compared with the best set without matrix tiles, and their single tokens with WEFT_FP32.

Prints a table and writes FILE (default: bench/results/tiers-<cpu>.json; -: no file). Exit status 1 if the default is more than 10 % slower
than another set in any case. --default ISA treats that set as the default, to test that the comparison can fail.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys

sys.dont_write_bytecode = True
import table

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
        p.error(f"--case: found {', '.join(sorted(unknown))}; expected {', '.join(CASES)}")
    return args


class Runs:
    """rows: (precision, case, what) -> a list of turns, each {contender: ms}"""

    def __init__(self, args):
        self.args, self.rows = args, {}

    def program(self, isa, *command):
        isa = self.args.default if isa == DEFAULT else isa
        path, env = os.path.join(self.args.build, "bench", command[0]), dict(os.environ, WEFT_ISA=isa)
        return subprocess.run([path, *command[1:]], env=env, capture_output=True, text=True)

    def offered(self, isa):
        return not self.program(isa, "stream/stream", "--bare", "1", "--units", "8", "--batch", "1").returncode

    def name(self, precision):
        """Returns the name of the default instruction set."""
        said = self.program(DEFAULT, "weft_bench", "--case", "net", "--tiny", "--runs", "1", "--precision", precision)
        return json.loads(said.stdout.splitlines()[0])["who"].rsplit("-", 1)[1]

    def times(self, case, precision, isa):
        if case == "token":
            said = self.program(isa, "stream/stream", "--precision", precision, "--units", "32,64,128,256,512", "--batch", "1,8", "--calls", "1000")
            out = {f"{kind} {shape}": float(us) * 1e-3 for kind, shape, us in TOKEN.findall(said.stdout)}
        else:
            said = self.program(isa, "weft_bench", "--case", case, "--precision", precision, "--threads", "1", "--runs", "3", "--quick", "--cpu-time",
                                "--layout", "packed")
            out = {f"{case} H={r['H']} T={r['T']}{' beams=%d' % r['beams'] if 'beams' in r else ''} {r['pass']}": r["ms_min"]
                   for r in map(json.loads, said.stdout.splitlines())}
        if said.returncode or not out:
            sys.exit(f"tiers: {case}, {precision}, {isa}: {said.stderr.strip() or 'no times'}")
        return out

    def turn(self, case, precision, contenders):
        """Times the default, then the others. PLAIN is the default instruction set in fp32."""
        for n, name in enumerate((DEFAULT, *contenders)):
            of = (PLAIN, DEFAULT) if name == PLAIN else (precision, name)
            for what, ms in self.times(case, *of).items():
                turns = self.rows.setdefault((precision, case, what), [])
                turns += [] if n else [{}]
                turns[-1][name] = ms

    def lost(self, case, precision):
        """Returns the contenders that are faster than the default in some row, with the ratio."""
        out = {}
        for (p, c, _), turns in self.rows.items():
            for name in turns[0] if (p, c) == (precision, case) else ():
                both = [t for t in turns if name in t]
                by_turns, by_least = statistics.median(t[DEFAULT] / t[name] for t in both), least(turns, DEFAULT) / least(turns, name)
                out[name] = max(out.get(name, 0), min(by_turns, by_least))
        return {name: ratio for name, ratio in out.items() if ratio > LOST}

    def compare(self, case, precision, contenders):
        self.turn(case, precision, contenders)
        for _ in range(self.args.turns):
            if self.lost(case, precision):
                self.turn(case, precision, list(self.lost(case, precision)))
        return self.lost(case, precision)


def least(turns, name):
    return min(t[name] for t in turns if name in t)


def print_table(runs, case, precision, name):
    for (p, c, what), turns in runs.rows.items():
        if (p, c) == (precision, case):
            ours = least(turns, DEFAULT)
            beside = "   ".join(f"{other} {least(turns, other) / ours:5.2f}" for other in turns[0] if other != DEFAULT)
            print(f"{precision:5} {what:38} {name:8} {ours:10.4f} ms   {beside}", flush=True)


def main():
    args = arguments()
    runs, names, lost = Runs(args), {}, []
    offered = [s for s in SETS if runs.offered(s)]
    for precision in args.precision.split(","):
        names[precision] = runs.name(precision)
        vectors = [s for s in offered if s != "amx" and s != names[precision]]
        sets = vectors if precision == PLAIN else vectors[-1:] if names[precision] == "amx" else []
        for case in args.case:
            contenders = sets + ([PLAIN] if case == "token" and precision != PLAIN else [])
            if not contenders:
                continue
            for other, ratio in runs.compare(case, precision, contenders).items():
                lost.append(f"{case}, {precision}: {names[precision]} takes {ratio:.2f} times as long as {other}")
            print_table(runs, case, precision, names[precision])
    if args.out != "-":
        write(args, runs, names, offered, lost)
    print("\n".join(lost) if lost else f"the default is the fastest, or within {LOST - 1:.0%} of it, in {len(runs.rows)} rows")
    return 1 if lost else 0


def write(args, runs, names, offered, lost):
    about = table.machine()
    cpu = re.sub(r"[^a-z0-9]+", "-", f"{about['machine']} {table.cpu()['cpu family']} {table.cpu()['model']}".lower()).strip("-")
    rows = {}
    for (p, case, what), turns in runs.rows.items():
        rows.setdefault(case, {}).setdefault(p, {"default": names[p]})[what] = {name: round(least(turns, name), 5) for name in turns[0]}
    with open(args.out or os.path.join(HERE, "results", f"tiers-{cpu}.json"), "w") as f:
        f.write(table.rows_as_lines({**about, "sets": offered, "lost": lost}, [{"case": case, **of} for case, of in rows.items()]))


if __name__ == "__main__":
    sys.exit(main())
