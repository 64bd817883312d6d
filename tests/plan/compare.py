#!/usr/bin/env python3
"""compare.py WEFT [INSTANCES] [SEED] [PLANNER..]    compares the plans that the command WEFT prints with reference.py, on INSTANCES random
and hostile instances for each planner, and small instances with the optimum. It reduces and prints an instance that differs. test_shuffle.c
compares shuffled plans. The last line is "N of M .. hold"."""
import json
import random
import subprocess
import sys
from collections import Counter
from reference import EXACT, FREE, Options, costs, differencing, exact_fill, end_of, figures, filled, lpfhp, prepared, restored, room_of, spfhp, squares, up

WEFT = sys.argv[1]
ROWS = {"next_fit", "first_fit", "best_fit", "worst_fit", "spfhp", "spfhp_stacked", "lpfhp", "exact_fill", "column_generation",
        "chunk", "best_fit_split", "next_fit_decreasing", "first_fit_decreasing", "best_fit_decreasing", "worst_fit_decreasing",
        "modified_first_fit_decreasing", "greedy_knapsack"}
CUTS = {"chunk", "best_fit_split"}                # these accept sequences longer than a row


# ---- instances ----
def any_lengths(dice):
    """Returns lengths, and a capacity that makes them hard."""
    most = dice.choice((4, 9, 20, 40, 100))
    n = dice.choice((0, 1, 2, 3, dice.randint(4, 12), dice.randint(4, 40), dice.randint(4, 40), dice.randint(40, 120)))
    if dice.random() < .01:
        n = dice.randint(260, 300)                # more rows than two levels of a 16-ary tree hold
    c = dice.choice((8, 12, 30, 60))
    some = [dice.randint(1, most) for _ in range(n)]
    kinds = {
        "uniform": lambda: (some, 0), "with zeros": lambda: ([x if dice.random() < .7 else 0 for x in some], 0),
        "all zero": lambda: ([0] * n, 0), "all equal": lambda: ([most] * n, dice.choice((0, 2 * most, 3 * most - 1))),
        "all one": lambda: ([1] * n, 0), "half and one": lambda: ([c // 2 + 1] * n, c),
        "half and one, or half": lambda: ([c // 2 + dice.randint(0, 1) for _ in range(n)], c),
        "third and one": lambda: ([c // 3 + 1 if dice.random() < .6 else c // 3 for _ in range(n)], c),
        "two points": lambda: ([dice.choice((1, most)) for _ in range(n)], most),
        "few": lambda: ([dice.choice(some[:3]) for _ in range(n)], 0),
        "geometric": lambda: ([1 + int(dice.expovariate(.2)) for _ in range(n)], 0),
        "log-normal": lambda: ([1 + int(dice.lognormvariate(2, 1)) for _ in range(n)], 0),
        "one giant": lambda: (some[:n // 2] + [dice.randint(500, 3000)] + some[n // 2:], 0),
        "a huge giant": lambda: (some[:n // 2] + [dice.choice((2 ** 16, 70000, 100003))] + some[n // 2:20], 0),
        "ascending": lambda: (sorted(some), 0), "descending": lambda: (sorted(some, reverse=True), 0),
        "powers of two": lambda: ([max(0, 2 ** dice.randint(0, 6) + dice.randint(-1, 1)) for _ in range(n)], 64),
        "worst of first fit": lambda: ([6] * 7 + [10] * 7 + [16] * 3 + [34] * 10 + [51] * 10, 101),
        "like it": lambda: ([dice.choice((6, 10, 16, 34, 51)) for _ in range(n)], 101),
        "worst of first fit decreasing": lambda: ([51, 27, 26, 23, 23] * dice.randint(1, 6), 100),
        "parts of a row": lambda: ([max(1, 60 // dice.randint(1, 8) + dice.randint(-1, 1)) for _ in range(n)], 61),
        "like that": lambda: ([dice.choice((51, 27, 26, 23)) + dice.randint(-1, 1) for _ in range(n)], 100),
    }
    lengths, capacity = kinds[dice.choice(list(kinds))]()
    if dice.random() < .1:
        dice.shuffle(lengths)
    return lengths, max(capacity, max(lengths, default=0), 1)


def often(dice, share, value):
    return value() if dice.random() < share else 0


def any_options(dice, name, lengths, capacity):
    """Returns options of all planners; each uses its own. 0: not given."""
    longest, total = max(lengths, default=0), sum(lengths)
    small = lambda: dice.randint(1, 9)
    at_least = 1 + total // 1000                 # at most a thousand pieces for a sequence
    bounds = sorted(dice.sample(range(1, longest + 8), dice.randint(1, min(5, longest + 6))))
    o = {"count": small(), "tokens": 0, "pool": often(dice, .8, lambda: dice.randint(1, 6)), "k": dice.randint(1, 6),
         "budget": dice.choice((max(longest, 1), capacity + dice.randint(0, 20), capacity * dice.randint(1, 6))),
         "multiple": often(dice, .7, small), "sort": dice.choice((None, False, True)),
         "bounds": bounds, "sizes": [small() for _ in range(len(bounds) + 1)],
         "ratio": dice.choice((1.01, 1.1, 1.25, 1.5, 2, 3.7, 1.1 + dice.random())), "least": dice.randint(1, longest + 3),
         "capacity": dice.choice((capacity, capacity, capacity + dice.randint(0, 9), capacity * 2, capacity * 5 + small())),
         "limit": often(dice, .4, lambda: dice.randint(1, 5)), "rows": often(dice, .5, small),
         "open": often(dice, .5, lambda: dice.randint(1, 5)), "lookahead": often(dice, .5, lambda: dice.randint(1, 30)),
         "carry": dice.choice((None, False, True)), "longest_first": dice.choice((None, False, True)),
         "slots": small(), "window": at_least + dice.randint(0, 12),
         "ranks": dice.choice((1, 2, 2, 2, 3, 4, small())), "method": dice.choice((0, "lpt", "kk", "kk")),
         "per_square": often(dice, .4 * (longest < 4000), lambda: dice.choice((1, .5, .0625, 2 ** -7))), "extra": often(dice, .5, small)}
    if name in ("order", "pool") and dice.random() < .5:
        o["tokens"], o["count"] = dice.randint(1, 2 * longest + 9), often(dice, .5, small)
    if name in CUTS:
        o["capacity"] = at_least + dice.randint(0, 2 * min(capacity, 200))
    if name == "powers":
        o["budget"] = dice.randint(1, 2 * longest + 9)
    if longest < 2000:
        o["align"] = often(dice, .4, lambda: dice.choice((1, 2, 3, 4, 8)))
        o["capacity"] = up(o["capacity"], o["align"] or 1)
        o["longer"] = dice.choice((0, "split", "truncate", "drop"))
        if o["longer"] and "longer" in TAKES[name] and dice.random() < .6:
            o["capacity"] = up(dice.randint(1, capacity), o["align"] or 1)
        if dice.random() < .3 and ("longer" not in TAKES[name] or o["longer"]):
            o["squares"] = dice.randint((o["align"] or 1) ** 2, 2 * o["capacity"] ** 2)
        elif dice.random() < .3:                 # the longest fits
            o["squares"] = up(max(longest, 1), o["align"] or 1) ** 2 + dice.randint(0, o["capacity"] ** 2)
    return {k: o[k] for k in TAKES[name] if o.get(k) not in (0, None)}


def words_of(name, o, **more):
    said = {True: "yes", False: "no"}
    value = lambda v: said[v] if isinstance(v, bool) else "/".join(map(str, v)) if isinstance(v, list) else str(v)
    o = {**o, **more}
    return name + ":" * bool(o) + ",".join(f"{k}={value(v)}" for k, v in o.items())


# ---- the library ----
def weft(lengths, words):
    """Returns the plans of the command, or its error."""
    r = subprocess.run([WEFT, "plan", "--json", "-", *words], input=" ".join(map(str, lengths)), capture_output=True, text=True)
    return json.loads(r.stdout)["plans"] if r.returncode == 0 else f"exit status {r.returncode}: {r.stderr.strip()}"


def read(plan, lengths):
    """Parses the output of the command to (batches of rows of pieces, widths)."""
    if "batches" in plan:
        batches = [[[(p, 0, lengths[p]) if isinstance(p, int) else tuple(p)] for p in b] for b in plan["batches"]]
        return batches, [max(filled(row) for row in b) for b in batches]
    rows = [[tuple(p) for p in row] for row in plan["rows"]]
    sizes = plan.get("batch_rows", len(rows))
    if isinstance(sizes, int):
        sizes = [min(sizes, len(rows) - i) for i in range(0, len(rows), sizes or 1)]
    batches = [[rows.pop(0) for _ in range(size)] for size in sizes]
    width = plan.get("width", plan.get("capacity", 0))
    return batches, [width or max(end_of(row, plan.get("align", 1)) for row in b) for b in batches]


def takes():
    """Maps each name to its options, from `weft plan --list`."""
    lines = subprocess.run([WEFT, "plan", "--list"], capture_output=True, text=True, check=True).stdout.splitlines()
    return {name.split()[0]: options.split() for name, options in zip(lines[::2], lines[1::2])}


# ---- comparisons: return a fault or nothing ----
def sound(batches, widths, lengths, align=1, longer="refuse"):
    """Checks that each token occurs once, no row exceeds its width, and no empty sequence occurs twice."""
    pieces = sorted(p for b in batches for row in b for p in row)
    ends, twice, cells = [0] * len(lengths), set(), lambda row: sum(up(p[2], align) for p in row)
    for s, begin, count in pieces:
        if begin != ends[s] or (not count and (lengths[s] or s in twice)):
            return f"sequence {s}: a token is lost, or there twice"
        ends[s] += count
        twice.add(s)
    if ends != lengths and longer not in ("truncate", "drop"):
        return "tokens are missing"
    if any(cells(row) > w or w % align for b, w in zip(batches, widths) for row in b):
        return "a row is too long"


def close(a, b):
    return abs(a - b) <= 1e-8 * max(1, abs(a), abs(b))


def counted(got, batches, widths, lengths, o):
    want = figures(batches, widths, lengths, o["capacity"], o["align"])
    if set(want) != set(got):
        return f"figures: {sorted(set(want) ^ set(got))}"
    return "; ".join(f"{k} is {got[k]}, by its definition {want[k]}" for k in want if not close(got[k], want[k]))


def carried(plan, batches, name, o):
    meets = any((p[0], p[1]) in {(q[0], q[1] + q[2]) for row in a for q in row}
                for a, b in zip(batches, batches[1:]) for row in b for p in row if p[1])
    want = meets and (name == "streams" or bool(o["carry"]))
    if bool(plan.get("carry", False)) != want:
        return f"carry is {plan.get('carry', False)}"


def misplaced(plan, o):
    """Checks that pieces follow each other, each at the next multiple of align."""
    rows = plan.get("rows", [])
    for row, columns in zip(rows, plan.get("columns", [[sum(p[2] for p in row[:i]) for i in range(len(row))] for row in rows])):
        want = [sum(up(p[2], o["align"]) for p in row[:i]) for i in range(len(row))]
        if columns != want:
            return f"the columns are {columns}, but the definition has {want}"


def of_equal_rows(batches, o):
    rows = sum(map(len, batches))
    want = [min(o["rows"] or rows, rows - i) for i in range(0, rows, o["rows"] or rows)] if rows else []
    if [len(b) for b in batches] != want:
        return f"batches of {[len(b) for b in batches]} rows"


def free(name, o, batches, got, lengths, exact_fills):
    """Checks the determined part of a planner that has a choice."""
    rows, wrong = sum(map(len, batches)), of_equal_rows(batches, o)
    if wrong:
        return wrong
    if o["limit"] and any(len(row) > o["limit"] for b in batches for row in b):
        return "a row of more pieces than its limit"
    if rows < got["l2"]:
        return f"{rows} rows, fewer than the bound"
    if name.startswith("spfhp"):
        want = Counter(tuple(sorted(r)) for r in spfhp(lengths, o, name == "spfhp_stacked"))
        have = of_lengths([[(*p[:2], up(p[2], o["align"])) for p in row] for b in batches for row in b])
        more, less = sorted((have - want).elements()), sorted((want - have).elements())
        return f"rows {more}, by its definition {less}" if more or less else ""
    if name == "lpfhp":
        return "" if rows == lpfhp(lengths, o) else f"{rows} rows, by its definition {lpfhp(lengths, o)}"
    if name == "exact_fill":
        most = exact_fill(lengths, o)
        return "" if rows <= most else f"{rows} rows, by its definition {most}"
    exact = exact_fills["figures"]["rows"]
    if rows > exact:
        return f"{rows} rows, exact_fill {exact}"
    SEEN["rows of exact_fill"] += exact
    SEEN["rows of column_generation"] += rows


def dealt(o, batches, lengths):
    """Checks the loads of Karmarkar and Karp, if they are determined."""
    cost = costs([up(n, o["align"]) for n in lengths], o)
    load, sure = differencing(cost, o["ranks"])
    have = sorted((sum(cost[p[0]] for p in row) for row in batches[0]), reverse=True)
    SEEN["sets differenced, sure"] += sure
    SEEN["sets differenced, not sure"] += not sure
    if len(batches) != 1 or len(have) != o["ranks"]:
        return "one batch of a row a rank is expected"
    if sure and have != load:
        return f"loads {have}, by its definition {load}"
    if have[0] - have[-1] > max(cost, default=0):
        return f"loads {have}"


def differs(name, options, lengths):
    """Returns the fault of the plan with these options, or nothing."""
    o, words = Options(options), [words_of(name, options)]
    if name == "column_generation":
        words.append(words_of("exact_fill", like_it(options)))
    plans = weft(lengths, words)
    if isinstance(plans, str):
        return plans
    return compared(name, o, lengths, plans[0], plans[-1])


def like_it(options):
    return {k: v for k, v in options.items() if k in ("capacity", "align", "longer")}


def compared(name, o, lengths, plan, exact_fills):
    batches, widths = read(plan, lengths)
    wrong = sound(batches, widths, lengths, o["align"], o["longer"]) or counted(plan["figures"], batches, widths, lengths, o) or \
        carried(plan, batches, name, o) or misplaced(plan, o)
    if wrong:
        return wrong
    if name in ROWS and (plan.get("capacity") != o["capacity"] or any(w != o["capacity"] for w in widths)):
        return f"a capacity of {plan.get('capacity')}"
    if name == "streams" and any(w != o["window"] for w in widths):
        return f"windows of {widths}"
    limited = "longer" in TAKES[name]
    pieces = prepared(lengths, o, room_of(o) if limited else max(lengths, default=0))
    SEEN["sequences longer than a row"] += limited and max(lengths, default=0) > room_of(o)
    SEEN["rows at a limit of squares"] += bool(o["squares"]) and sum(squares(row) > o["squares"] // 2 for b in batches for row in b)
    planned = [up(p[2], o["align"]) for p in pieces]
    if name in FREE:
        return free(name, o, batches, plan["figures"], planned, exact_fills)
    if name == "random":
        drawn = [p[0] for b in batches for row in b for p in row]
        return "" if batches == EXACT[name](lengths, o, drawn) else "a permutation, cut, is expected"
    if name == "balance" and o["method"] == "kk":
        return dealt(o, batches, lengths)
    want = restored(EXACT[name](planned, o, list(range(len(planned)))), pieces)
    return "" if batches == want else f"{batches}, by its definition {want}"


def of_lengths(rows):
    return Counter(tuple(sorted(p[2] for p in row)) for row in rows)


# ---- the optimum, by search ----
def fewest(lengths, capacity, gaps, best):
    """Returns the least number of new rows for these lengths, given rows with these gaps."""
    if not lengths or len(gaps) >= best:
        return min(best, len(gaps))
    for r, gap in enumerate([*gaps, capacity]):
        if gap >= lengths[0]:
            best = fewest(lengths[1:], capacity, gaps[:r] + [gap - lengths[0]] + gaps[r + 1:], best)
    return best


def beyond_guarantee(dice, instances):
    """Compares rows and bounds with the optimum."""
    most = {"first_fit": (1.7, 0), "best_fit": (1.7, 0), "next_fit": (2, 0), "first_fit_decreasing": (11 / 9, 6 / 9),
            "best_fit_decreasing": (11 / 9, 6 / 9), "modified_first_fit_decreasing": (71 / 60, 1), "exact_fill": (2, 1), "column_generation": (1, 1), "spfhp_stacked": (2, 1), "lpfhp": (2, 1)}
    for _ in range(instances):
        capacity = dice.randint(3, 22)
        lengths = [dice.randint(1, capacity) for _ in range(dice.randint(1, 9))]
        best = fewest(lengths, capacity, [], len(lengths))
        plans = weft(lengths, [f"{name}:capacity={capacity}" for name in most])
        if isinstance(plans, str):
            return plans
        for (name, (times, more)), plan in zip(most.items(), plans):
            f = plan["figures"]
            if not f["l2"] <= best <= f["rows"] <= times * best + more + 1e-9:
                return f"{lengths}, capacity {capacity}: {name} has {f['rows']} rows, bound {f['l2']}, the best have {best}"
    return ""


# ---- rounding, permutations, refusals ----
def rounded_badly(dice, instances):
    """In the worst case of exact_fill, many sequences with few lengths between 1/6 and 1/2 of a row, column_generation has fewer rows."""
    before = Counter(SEEN)
    for _ in range(instances):
        capacity = dice.choice((60, 100, 150))
        few = [dice.randint(capacity // 6, capacity // 2) for _ in range(dice.randint(5, 12))]
        lengths = [dice.choice(few) for _ in range(dice.randint(60, 250))]
        if said := differs("column_generation", {"capacity": capacity}, lengths):
            return f"{lengths}, capacity {capacity}: {said}"
    exact, here = (SEEN[name] - before[name] for name in ("rows of exact_fill", "rows of column_generation"))
    return f"column_generation has {here} rows, exact_fill {exact}" if exact - here < exact // 100 else ""


def accepted(name, dice):
    """Checks that the error for a sequence above the capacity or the budget names it."""
    key = "budget" if name == "tokens" else "capacity"
    lengths, capacity = any_lengths(dice)
    options = any_options(dice, name, lengths, capacity)
    options = {k: v for k, v in options.items() if k not in ("longer", "squares", "align")}
    options[key] = max(options[key], max(lengths, default=0))
    above = dice.randint(0, len(lengths))
    lengths.insert(above, options[key] + dice.choice((1, 1, 7)))
    said = weft(lengths, [words_of(name, options)])
    if not isinstance(said, str):
        return f"{lengths} {words_of(name, options)}: accepted"
    return "" if said.startswith("exit status 1: ") and f"sequence {above} has {lengths[above]} tokens" in said else said


# ---- main ----
def smaller(wrong, lengths):
    """Removes lengths while the difference stays."""
    i = 0
    while i < len(lengths):
        less = lengths[:i] + lengths[i + 1:]
        lengths, i = (less, i) if wrong(less) else (lengths, i + 1)
    return lengths


def told(name, words, lengths, wrong, first):
    FAULTS[name] += 1
    if FAULTS[name] <= 2:
        lengths = smaller(wrong, lengths)
        print(f"not so: {words} of {lengths}:\n    {(wrong(lengths) or first)[:1500]}")


def one_instance(dice, names):
    """Makes one call for all planners, or one for each if that fails."""
    lengths, capacity = any_lengths(dice)
    chosen = [(name, any_options(dice, name, lengths, capacity)) for name in names]
    words = [words_of(name, o) for name, o in chosen]
    words += [words_of("exact_fill", like_it(o)) for name, o in chosen if name == "column_generation"]
    plans, before = weft(lengths, words), sum(FAULTS.values())
    alone = isinstance(plans, str)
    for k, (name, o) in enumerate(chosen):
        wrong = lambda part, name=name, o=o: differs(name, o, part)
        first = wrong(lengths) if alone else compared(name, Options(o), lengths, plans[k], plans[-1])
        if first:
            told(name, words_of(name, o), lengths, wrong, first)
    if alone and sum(FAULTS.values()) == before:
        FAULTS["together"] += 1
        print(f"not so: {words} of {lengths}, together: {plans}")


def main(instances, seed, names):
    dice = random.Random(seed)
    for _ in range(instances):
        one_instance(dice, names)
    for name in sorted(ROWS - CUTS | {"tokens"}) * max(1, instances // 50):
        if said := accepted(name, dice):
            FAULTS["refused"] += 1
            print(f"not so: {name}: {said}")
    for kind, said in (("guaranteed", beyond_guarantee(dice, instances)), ("rounded", rounded_badly(dice, instances // 4)),
                       ("known", set(TAKES) ^ set(EXACT) ^ set(FREE) or "")):
        FAULTS[kind] += bool(said)
        if said:
            print(f"not so: {kind}: {said}" + " only here or only there" * (kind == "known"))
    kinds = [*names, "together", "refused", "guaranteed", "rounded", "known"]
    print(f"{instances} instances a planner; " + ", ".join(f"{n} {what}" for what, n in sorted(SEEN.items())))
    for kind in kinds:
        if FAULTS[kind]:
            print(f"  {kind}: {FAULTS[kind]} differ")
    good = sum(1 for kind in kinds if not FAULTS[kind])
    print(f"{good} of {len(kinds)} planners and rules of reference.py hold")
    return good != len(kinds) or instances < 1


TAKES, FAULTS, SEEN = takes(), Counter(), Counter()
if __name__ == "__main__":
    sys.exit(main(int((sys.argv + ["150"])[2]) if len(sys.argv) > 2 else 150, int(sys.argv[3]) if len(sys.argv) > 3 else 1,
                  sys.argv[4:] or [name for name in TAKES if name in EXACT or name in FREE]))
