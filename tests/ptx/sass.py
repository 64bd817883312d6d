#!/usr/bin/env python3
"""sass.py ARCH [--table]    reads what cuobjdump -sass says of the plug-in's machine code of one architecture, and
prints what PTX cannot show and should not be there; --table: instructions of a step of recurrent layers."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench"))
import gpu_model

LOCAL = {"finish_each", "unary_each", "flat_each", "rows_each"}      # sines of large angles keep their digits there
FFMA = 80                                       # of a step's activations, at most; a product by hand has hundreds
LONG_DIVISIONS = 90                             # kernels that divide 64-bit integers in a loop, at most
RNN, GRU, LSTM = 0, 2, 3                        # of core/cells.def; both plain RNNs have one kernel
STEPS = re.compile(r"^(forward|backward)_(steps|cluster|group)$")


class Kernel:
    def __init__(self, signature, code):
        self.code = code                        # (address, opcode, operands)
        found = re.match(r"(?:void )?(\w+)(?:<\(weft__cell\)(\d), (true|false), (\d+)>)?", signature)
        self.name, cell, reset, self.size = found[1], found[2], found[3], int(found[4] or 0)
        self.title = signature.split("(weft__recurrence")[0].replace("void ", "").replace("(weft__cell)", "")
        self.cell, self.reset = int(cell or -1), reset == "true"
        self.is_lstm = self.cell == LSTM
        self.loops = [(to, at) for at, op, rest in code if op.startswith("BRA")
                      for to in [target(rest)] if to is not None and to < at]

    def within(self, loop):
        return [c for c in self.code if loop[0] <= c[0] <= loop[1]]

    def divisions(self):                        # where a subroutine that divides 64-bit integers is called
        starts = sorted({target(rest) for _, op, rest in self.code if op.startswith("CALL")} - {None})
        ends = starts[1:] + [1 << 60]
        slow = {a for a, b in zip(starts, ends) if any(op.startswith("I2F.U64") for at, op, _ in self.code if a <= at < b)}
        return [at for at, op, rest in self.code if op.startswith("CALL") and target(rest) in slow]

    def step(self):                             # the loop over steps: the longest with products and a barrier, but of groups that over sequences
        loops = sorted((l for l in self.loops if count(self.within(l), "HMMA") and count(self.within(l), "BAR")), key=lambda l: l[0] - l[1])
        at = 1 if self.name.endswith("group") else 0
        return loops[at] if len(loops) > at else None


def target(operands):
    found = re.search(r"0x([0-9a-f]+)", operands)
    return int(found[1], 16) if found else None


def count(code, what):
    return sum(op.startswith(what) for _, op, _ in code)


def kernels(lines):
    code, of = None, {}
    for line in lines:
        head = re.match(r"\s*Function : (\S+)", line)
        if head:
            code = of.setdefault(head[1], [])
            continue
        one = re.match(r"\s+/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+ )?\s*([A-Z][A-Z0-9_.]*)(.*?);", line)
        if one and code is not None:
            code.append((int(one[1], 16), one[2], one[3]))
    said = subprocess.run(["c++filt"], input="\n".join(of), text=True, capture_output=True, check=True).stdout
    return [Kernel(signature, c) for signature, c in zip(said.split("\n"), of.values())]


def faults_of_steps(k):
    loop = k.step()
    if not loop:
        return ["no loop over steps with tensor cores and a barrier"]
    step, faults = k.within(loop), []
    if count(step, "FFMA") > FFMA:
        faults.append(f"{count(step, 'FFMA')} FFMA in a step: a product by hand?")
    if any(loop[0] <= at <= loop[1] for at in k.divisions()):
        faults.append("64-bit integers are divided in a step")
    waits = [l for l in k.loops if l != loop and not count(k.within(l), "HMMA") and any(op.startswith("SYNCS") or "STRONG" in op for _, op, _ in k.within(l))]
    for at, op, _ in step:
        if op == "CCTL.IVALL" and not any(l[0] <= at <= l[1] for l in waits):
            faults.append(f"CCTL.IVALL at {at:#x}, in a step and in no wait")
    return faults


def has_code(k, arch):                          # as recur.h has it; else it only tells of its distress
    wide = 90 <= arch < 120
    if k.name.endswith("cluster"):
        return wide or arch >= 120 and k.size <= 8
    if k.name.endswith("group"):
        return not wide
    return wide or k.size < 128 or k.cell == RNN or arch == 80 and k.cell == GRU and k.name.startswith("backward")


def faults(all_kernels, arch):
    for k in all_kernels:
        is_steps = STEPS.match(k.name)
        of = faults_of_steps(k) if is_steps and has_code(k, arch) else []
        if is_steps and not has_code(k, arch) and count(k.code, "HMMA"):
            of.append("code that no such GPU can run")
        if count(k.code, ("STL", "LDL")) and k.name not in LOCAL:
            of.append("local memory")
        yield from (f"{k.title}: {what}" for what in of)
    slow = {k.title for k in all_kernels if any(l[0] <= at <= l[1] for l in k.loops for at in k.divisions())}
    if len(slow) > LONG_DIVISIONS:
        yield f"{len(slow)} kernels divide 64-bit integers in a loop, {LONG_DIVISIONS} did"


def executed(k, units, blocks):
    """Instructions that a warp executes in a step of an LSTM. A loop within the step goes round as often as the
    products of the layer want: 3/4 a unit for a warp of a block, half as many in a cluster."""
    loop = k.step()
    step, needed = k.within(loop), units * (6 if blocks else 3) // 8
    inner = [k.within(l) for l in k.loops if l != loop and loop[0] <= l[0] <= l[1] <= loop[1] and count(k.within(l), "HMMA")]
    if not inner:
        return len(step), count(step, "HMMA") == needed
    once = count(inner[0], "HMMA")
    more = (needed - count(step, "HMMA")) / once         # rounds; half a one: it is left in the middle
    return len(step) + round(more * len(inner[0])), len(inner) == 1 and more >= 0 and more * 2 % 1 == 0


def steps(all_kernels):
    """Kernel, units, instructions a step, warps a scheduler, microseconds: of an LSTM without rows, three products, on an H100 of 1980 MHz whose
    schedulers begin an instruction a clock."""
    shown = [k for k in all_kernels if STEPS.match(k.name) and k.is_lstm and not k.reset and has_code(k, 90)]
    for k in sorted(shown, key=lambda k: (k.name.split("_")[1] != "steps", k.name.split("_")[0] != "forward", k.size)):
        blocks = k.name.endswith("steps")
        units = k.size if blocks else 32 * k.size
        n, sure = executed(k, units, blocks)
        if not sure:
            sys.exit(f"sass.py: {k.title}: its products are not those that were counted on")
        warps = units // 32 if blocks else 2
        yield k, units, n, warps, n * warps / 1980


def table(all_kernels):
    print("| kernel | units | instructions a step | of them FFMA | warps a scheduler | us to issue |")
    print("| --- | --- | --- | --- | --- | --- |")
    for k, units, n, warps, us in steps(all_kernels):
        print(f"| `{k.name}` | {units} | {n} | {count(k.within(k.step()), 'FFMA')} | {warps} | {us:.1f} |")


def too_low(all_kernels):
    """Where cuda/recur_choice.cu expects a step to take less than its instructions take to issue."""
    of_blocks, of_clusters, _ = gpu_model.SIZES
    for k, units, _, _, us in steps(all_kernels):
        blocks, back = k.name.endswith("steps"), k.name.startswith("backward")
        expected = of_blocks[(32, 64, 128).index(units)] if blocks else of_clusters[(128, 256, 512).index(units)]
        expected *= gpu_model.BACKWARD if back else 1
        if us > expected:
            yield f"{k.title}, {units} units: {us:.2f} us to issue a step, which the estimate thinks done in {expected:.2f}"


def main():
    found = kernels(sys.stdin)
    if not any(STEPS.match(k.name) for k in found):
        sys.exit("sass.py: no recurrent kernels in it")
    if "--table" in sys.argv:
        table(found)
        return
    said = list(faults(found, int(sys.argv[1])))
    if sys.argv[1] == "90" and not said:
        said = list(too_low(found))
    print("\n".join(said + [f"{len(found)} kernels, {len(said)} faults"]))
    sys.exit(bool(said))


main()
