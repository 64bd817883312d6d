#!/usr/bin/env python3
"""sass.py ARCH    reads the output of cuobjdump -sass for one architecture and prints faults in the plug-in's
machine code that PTX does not show."""
import re
import subprocess
import sys

LOCAL = {"finish_each", "unary_each", "flat_each", "rows_each"}      # argument reduction of large angles uses it
FFMA = 80                                       # most FFMA in a step, for activations; a scalar product has hundreds
LONG_DIVISIONS = 90                             # most kernels that divide 64-bit integers in a loop
RNN, GRU = 0, 2                                 # indices in core/cells.def; both plain RNNs share a kernel
STEPS = re.compile(r"^(forward|backward)_(steps|cluster|group)$")


class Kernel:
    def __init__(self, signature, code):
        self.code = code                        # (address, opcode, operands)
        found = re.match(r"(?:void )?(\w+)(?:<\(weft__cell\)(\d), (?:true|false), (\d+)>)?", signature)
        self.name, cell, self.size = found[1], found[2], int(found[3] or 0)
        self.title = signature.split("(weft__recurrence")[0].replace("void ", "").replace("(weft__cell)", "")
        self.cell = int(cell or -1)
        self.loops = [(to, at) for at, op, rest in code if op.startswith("BRA")
                      for to in [target(rest)] if to is not None and to < at]

    def within(self, loop):
        return [c for c in self.code if loop[0] <= c[0] <= loop[1]]

    def divisions(self):                        # calls of a subroutine that divides 64-bit integers
        starts = sorted({target(rest) for _, op, rest in self.code if op.startswith("CALL")} - {None})
        ends = starts[1:] + [1 << 60]
        slow = {a for a, b in zip(starts, ends) if any(op.startswith("I2F.U64") for at, op, _ in self.code if a <= at < b)}
        return [at for at, op, rest in self.code if op.startswith("CALL") and target(rest) in slow]

    # the loop over steps: the longest with products and a barrier; for groups the second longest, inside the loop over sequences
    def step(self):
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
    output = subprocess.run(["c++filt"], input="\n".join(of), text=True, capture_output=True, check=True).stdout
    return [Kernel(signature, c) for signature, c in zip(output.split("\n"), of.values())]


def faults_of_steps(k):
    loop = k.step()
    if not loop:
        return ["no loop over steps with tensor cores and a barrier"]
    step, faults = k.within(loop), []
    if count(step, "FFMA") > FFMA:
        faults.append(f"{count(step, 'FFMA')} FFMA in a step: a scalar product?")
    if any(loop[0] <= at <= loop[1] for at in k.divisions()):
        faults.append("64-bit integers are divided in a step")
    waits = [l for l in k.loops if l != loop and not count(k.within(l), "HMMA") and any(op.startswith("SYNCS") or "STRONG" in op for _, op, _ in k.within(l))]
    for at, op, _ in step:
        if op == "CCTL.IVALL" and not any(l[0] <= at <= l[1] for l in waits):
            faults.append(f"CCTL.IVALL at {at:#x}, in a step, outside of waits")
    return faults


def has_code(k, arch):                          # as in recur.h; otherwise the kernel only reports an error
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
            of.append("code that these GPUs cannot run")
        if count(k.code, ("STL", "LDL")) and k.name not in LOCAL:
            of.append("local memory")
        yield from (f"{k.title}: {what}" for what in of)
    slow = {k.title for k in all_kernels if any(l[0] <= at <= l[1] for l in k.loops for at in k.divisions())}
    if len(slow) > LONG_DIVISIONS:
        yield f"{len(slow)} kernels divide 64-bit integers in a loop; expected at most {LONG_DIVISIONS}"


def main():
    found = kernels(sys.stdin)
    if not any(STEPS.match(k.name) for k in found):
        sys.exit("sass.py: no recurrent kernels in it")
    output = list(faults(found, int(sys.argv[1])))
    print("\n".join(output + [f"{len(found)} kernels, {len(output)} faults"]))
    sys.exit(bool(output))


main()
