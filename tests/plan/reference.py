"""reference.py - a second implementation of the planners from their definitions, as simple as possible: loops over all rows instead of
heaps, trees or histograms. tests/scripts/test_reference.sh compares it with the library.

A piece is (sequence, from, count), a row is a list of pieces, a batch is a list of rows. A planner maps lengths and options to batches.
If a definition leaves a choice, the function returns only the determined part. Missing options are 0, as in the library."""
import math
from collections import Counter
from fractions import Fraction


class Options(dict):
    def __missing__(self, key):
        return {"pool": 50, "multiple": 1, "sort": True, "method": "lpt", "longer": "refuse", "align": 1}.get(key, 0)


# ---- orders ----
def blocks(order, size):
    """Splits the order into lists of `size`; 0: one list."""
    size = size or len(order) or 1
    return [order[i:i + size] for i in range(0, len(order), size)]


def in_blocks(order, key, lookahead):
    """Sorts by the key within blocks. Python's sort is stable, so ties keep their order."""
    return [s for block in blocks(order, lookahead) for s in sorted(block, key=key)]


def ascending(length, order, lookahead=0):
    return in_blocks(order, lambda s: length[s], lookahead)


def descending(length, order, lookahead=0):
    return in_blocks(order, lambda s: -length[s], lookahead)


def whole(length, batches):
    """Makes each sequence a row."""
    return [[[(s, 0, length[s])] for s in batch] for batch in batches]


def cut(length, order, count, tokens=0):
    """Cuts the order into batches of at most `count` sequences and `tokens` tokens, with at least one sequence."""
    batches, held = [], 0
    for s in order:
        if not batches or (count and len(batches[-1]) == count) or (tokens and held + length[s] > tokens):
            batches.append([])
            held = 0
        batches[-1].append(s)
        held += length[s]
    return batches


# ---- batches of whole sequences ----
def order(length, o, drawn):
    return whole(length, cut(length, drawn, o["count"], o["tokens"]))


def sorted_(length, o, drawn):
    return whole(length, cut(length, ascending(length, drawn, o["lookahead"]), o["count"]))


def pools(length, o, drawn):
    """A pool holds the sequences of `pool` consecutive batches, sorted."""
    together = blocks(cut(length, drawn, o["count"], o["tokens"]), o["pool"])
    return [ascending(length, [s for batch in pool for s in batch]) for pool in together]


def pool(length, o, drawn):
    return whole(length, [b for p in pools(length, o, drawn) for b in cut(length, p, o["count"], o["tokens"])])


def laplace(length, o, drawn):
    turns = [p if i % 2 == 0 else p[::-1] for i, p in enumerate(pools(length, o, drawn))]
    return whole(length, cut(length, [s for p in turns for s in p], o["count"]))


def tokens(length, o, drawn):
    batches, batch = [], []
    for s in ascending(length, drawn, o["lookahead"]) if o["sort"] else drawn:
        while (len(batch) + 1) * max(length[i] for i in batch + [s]) > o["budget"]:
            n = max(o["multiple"] * (len(batch) // o["multiple"]), len(batch) % o["multiple"])
            batches.append(batch[:n])
            batch = batch[n:]
        batch.append(s)
    return whole(length, batches + ([batch] if batch else []))


def in_buckets(things, bucket_of, size_of):
    """A full bucket is a batch immediately. Remaining buckets follow in ascending order."""
    batches, held = [], {}
    for thing in things:
        b = bucket_of(thing)
        held.setdefault(b, []).append(thing)
        if len(held[b]) == size_of(b):
            batches.append(held.pop(b))
    return batches + [held[b] for b in sorted(held)]


def below(bounds, n):
    return sum(1 for b in bounds if b <= n)


def buckets(length, o, drawn):
    return whole(length, in_buckets(drawn, lambda s: below(o["bounds"], length[s]), lambda b: o["sizes"][b]))


def geometric(length, o, drawn):
    bounds = [o["least"]]
    while bounds[-1] <= max(length, default=0):
        bounds.append(max(bounds[-1] + 1, math.floor(bounds[-1] * o["ratio"])))
    return whole(length, in_buckets(drawn, lambda s: below(bounds, length[s]),
                                    lambda b: max(1, o["budget"] // bounds[b])))


def best_ends(length, k):
    """Returns the upper ends of k intervals, fewer with fewer lengths. Ties in cost go to the lowest ends."""
    there = sorted(set(length))
    known = {}

    def padding(i, j):
        return sum(there[j] - n for n in length if there[i] <= n <= there[j])

    def best(i, left):                           # (cost, ends) for lengths i and later
        if (i, left) not in known:
            last = len(there) - 1
            ways = [(padding(i, last), (there[last],))]
            for j in range(i, last if left > 1 else i):
                cost, ends = best(j + 1, left - 1)
                ways.append((padding(i, j) + cost, (there[j],) + ends))
            known[i, left] = min(ways)
        return known[i, left]
    return best(0, k)[1] if there else ()


def optimal_buckets(length, o, drawn):
    ends = best_ends(length, o["k"])
    return whole(length, in_buckets(drawn, lambda s: sum(1 for e in ends if e < length[s]), lambda b: o["count"]))


# ---- batches of pieces ----
def powers(length, o, drawn):
    pieces = []
    for s in drawn:
        at = 0
        for b in reversed(range(length[s].bit_length())):
            if length[s] >> b & 1:
                pieces.append((s, at, 2 ** b))
                at += 2 ** b
    return [[[p] for p in batch] for batch in
            in_buckets(pieces, lambda p: p[2], lambda b: max(1, o["budget"] // b))]


# ---- rows of a capacity ----
def in_batches(rows, o):
    return blocks(rows, o["rows"])


def filled(row):
    return sum(p[2] for p in row)


def squares(row):
    return sum(p[2] ** 2 for p in row)


def gap_of(row, o):
    """Returns the longest piece that the row still takes."""
    most = o["capacity"] - filled(row)
    return min(most, math.isqrt(o["squares"] - squares(row))) if o["squares"] else most


def fit(rule, pieces, o, rows=0):
    """Places piece after piece, each after a search of all rows, of which some are open at the start. A row that is full or has its limit
    of pieces is closed."""
    rows, closed = [[] for _ in range(rows)], set()
    for p in pieces:
        if not p[2]:
            continue
        gap = [gap_of(row, o) for row in rows]
        is_open = [r for r in range(len(rows)) if r not in closed and gap[r] and not len(rows[r]) == o["limit"] > 0]
        fits = [r for r in is_open if gap[r] >= p[2] and (rule != "next_fit" or r == len(rows) - 1)]
        if fits:                                 # min and max take the first of equals, which is the lowest
            r = {"next_fit": fits[0], "first_fit": fits[0],
                 "best_fit": min(fits, key=lambda r: gap[r]), "worst_fit": max(fits, key=lambda r: gap[r])}[rule]
            rows[r].append(p)
            continue
        if o["open"] and len(is_open) == o["open"]:
            closed.add(min(is_open, key=lambda r: gap[r]))
        rows.append([p])
    return rows


def pieces_of(length, order):
    return [(s, 0, length[s]) for s in order]


def fits(rule, decreasing=False):
    def planner(length, o, drawn):
        taken = descending(length, drawn, o["lookahead"]) if decreasing else drawn
        return in_batches(fit(rule, pieces_of(length, taken), o), o)
    return planner


def chunk(length, o, drawn):
    rows = []
    for s in drawn:
        at = 0
        while at < length[s]:
            if not rows or filled(rows[-1]) == o["capacity"]:
                rows.append([])
            count = min(length[s] - at, o["capacity"] - filled(rows[-1]))
            rows[-1].append((s, at, count))
            at += count
    if not (o["carry"] and o["rows"]):
        return in_batches(rows, o)
    texts = blocks(rows, -(-len(rows) // o["rows"]))                   # each row of a batch continues in the next batch
    return [[t[b] for t in texts if b < len(t)] for b in range(len(texts[0]) if texts else 0)]


def best_fit_split(length, o, drawn):
    most = room_of(o)
    pieces = [(s, at, min(most, length[s] - at)) for s in drawn for at in range(0, length[s], most)]
    pieces.sort(key=lambda p: -p[2])
    return in_batches(fit("best_fit", pieces, o), o)


def greedy_knapsack(length, o, drawn):
    """All rows that the tokens need are open before the first sequence is placed; those that remain empty are removed."""
    rows = -(-sum(length) // o["capacity"]) + o["extra"]
    rows = fit("worst_fit", pieces_of(length, descending(length, drawn)), o, rows)
    return in_batches([row for row in rows if row], o)


def modified_first_fit_decreasing(length, o, drawn):
    """The five steps of Johnson & Garey. Of equal lengths the first in the order is taken. Rows list their longest first."""
    left, most = [p for p in pieces_of(length, descending(length, drawn)) if p[2]], o["limit"] or len(length)
    above = lambda part: [p for p in left if p[2] * part > o["capacity"]]
    rows, medium = [[p] for p in above(2)], [p for p in above(3) if p not in above(2)]
    small = [p for p in above(6) if p not in above(3)]

    def take(row, p):
        row.append(p)
        for some in (left, medium, small):
            if p in some:
                some.remove(p)

    def shortest(some):                          # min and max take the first of equals
        return min(some, key=lambda p: p[2])

    def longest_that_fits(row, some):
        some = [p for p in some if p[2] <= gap_of(row, o) and len(row) < most]
        return max(some, key=lambda p: p[2], default=None)
    for row in rows:
        left.remove(row[0])
    for row in rows:
        if p := longest_that_fits(row, medium):
            take(row, p)
    for row in reversed([row for row in rows if len(row) == 1]):
        if len(small) > 1 and most > 2 and sum(sorted(p[2] for p in small)[:2]) <= gap_of(row, o):
            take(row, shortest(small))
            take(row, longest_that_fits(row, small))
    for row in rows:
        while p := longest_that_fits(row, left):
            take(row, p)
    rows += fit("first_fit", left, o)
    turn = {s: i for i, s in enumerate(descending(length, drawn))}
    return in_batches([sorted(row, key=lambda p: turn[p[0]]) for row in rows], o)


# ---- lengths as planners see them ----
def prepared(length, o, room):
    """Returns pieces (sequence, from, count) no longer than the room: refused, cut, shortened or left out."""
    pieces = []
    for s, n in enumerate(length):
        if n <= room:
            pieces.append((s, 0, n))
        elif o["longer"] == "split":
            pieces += [(s, at, min(room, n - at)) for at in range(0, n, room)]
        elif o["longer"] == "truncate":
            pieces.append((s, 0, room))
        else:
            assert o["longer"] == "drop"
    return pieces


def up(n, align):
    return -(-n // align) * align


def room_of(o):
    return gap_of([], o) // o["align"] * o["align"]


def restored(batches, pieces):
    """Maps a plan of pieces, planned as sequences of their rounded lengths, back to the sequences."""
    piece = lambda k, at, n: (pieces[k][0], pieces[k][1] + at, min(n, pieces[k][2] - at))
    return [[[piece(*p) for p in row] for row in b] for b in batches]


# ---- rows of a capacity with a free choice: the determined part ----
def lengths_with_counts(length):
    return sorted(Counter(n for n in length if n).items(), reverse=True)


def spfhp(length, o, stacked=False):
    """Returns the rows as lists of lengths. `packs` keeps the order of their last addition."""
    packs, most = [], o["limit"] or len(length)
    for n, left in lengths_with_counts(length):
        while left:
            can = [i for i, p in enumerate(packs) if o["capacity"] - sum(p) >= n and len(p) < most]
            if not can:
                break
            i = max(can, key=lambda i: (o["capacity"] - sum(packs[i]), i))
            packs.append(packs.pop(i) + [n])
            left -= 1
        size = min(o["capacity"] // n, most) if stacked else 1
        packs += [[n] * min(size, left - i) for i in range(0, left, size)]
    return packs


def lpfhp(length, o):
    """Returns the number of rows. A group is [gap, pieces, packs]; groups keep the order of their addition."""
    groups, most = [], o["limit"] or len(length)
    for n, left in lengths_with_counts(length):
        while left:
            can = [g for g in reversed(groups) if g[0] >= n and g[1] < most and g[2]]
            g = min(can, key=lambda g: g[0], default=None)             # with equal gaps, the group added last comes first
            gap, pieces, packs = g or (o["capacity"], 0, left)
            r = min(gap // n, most - pieces, left)
            packs = min(packs, left // r)
            if g:
                g[2] -= packs
            groups.append([gap - r * n, pieces + r, packs])
            left -= r * packs
    return sum(g[2] for g in groups)


def exact_pattern(there, o):
    """Fills a row: the longest length, then the reachable (sum, pieces) with longer items first, until it is full."""
    first = there[0][0]
    ways = {0: [first]}
    for n in [n for n, count in there for _ in range(count - (n == first))]:
        for have in sorted(ways, reverse=True):  # descending, so that each item is used once
            more = have + n
            if first + more > o["capacity"] or more in ways or len(ways[have]) == o["limit"] > 0:
                continue
            ways[more] = ways[have] + [n]
            if first + more == o["capacity"]:
                return ways[more]
    return ways[max(ways)]


def exact_fill(length, o):
    """How many rows."""
    there, rows = dict(lengths_with_counts(length)), 0
    while there:
        pattern = Counter(exact_pattern(sorted(there.items(), reverse=True), o))
        times = min(there[n] // count for n, count in pattern.items())
        rows += times
        for n, count in pattern.items():
            there[n] -= times * count
        there = {n: count for n, count in there.items() if count}
    return rows


# ---- slots in time ----
def refill(length, o, drawn):
    slots, free = [[] for _ in range(o["slots"])], [0] * o["slots"]
    for s in descending(length, drawn, o["lookahead"]) if o["longest_first"] else drawn:
        if length[s]:
            k = free.index(min(free))
            slots[k].append((s, 0, length[s]))
            free[k] += length[s]
    return [slots]


def streams(length, o, drawn):
    waiting, at, windows = [s for s in drawn if length[s]], [None] * o["slots"], []
    while waiting or any(at):
        window = []
        for k in range(o["slots"]):
            if at[k] is None and waiting:
                at[k] = (waiting.pop(0), 0)
            if at[k] is None:
                window.append([])
                continue
            s, begin = at[k]
            count = min(o["window"], length[s] - begin)
            window.append([(s, begin, count)])
            at[k] = (s, begin + count) if begin + count < length[s] else None
        windows.append(window)
    return windows


def fold(length, o, drawn):
    pieces = pieces_of(length, descending(length, drawn))
    rows = fit("first_fit", pieces, Options(capacity=max(length, default=0)))
    return [rows] if rows else []


def costs(length, o):
    return [n + Fraction(o["per_square"]) * n * n for n in length]


def balance(length, o, drawn):
    ranks, cost = [[] for _ in range(o["ranks"])], costs(length, o)
    for s in descending(cost, drawn):
        if length[s]:
            min(ranks, key=lambda row: sum(cost[p[0]] for p in row)).append((s, 0, length[s]))
    return [ranks]


def differencing(length, ranks):
    """Returns the loads, and whether they are determined. If two sets with the same spread differ, either is allowed."""
    sets, sure = [tuple([n] + [0] * (ranks - 1)) for n in length if n], True
    while len(sets) > 1:
        sets.sort(key=lambda t: t[0] - t[-1], reverse=True)
        edge = [t for t in sets if t[0] - t[-1] == sets[1][0] - sets[1][-1]]
        sure = sure and len({tuple(n - t[-1] for n in t) for t in edge}) == 1
        a, b = sets.pop(0), sets.pop(0)
        sets.append(tuple(sorted((x + y for x, y in zip(a, reversed(b))), reverse=True)))
    return (list(sets[0]) if sets else [0] * ranks), sure


# ---- figures ----
def martello_toth(pieces, capacity):
    """Returns the bound L2, over each K at which it can change."""
    best = -(-sum(pieces) // capacity)
    for k in {0} | {n + 1 for n in pieces} | {capacity - n + 1 for n in pieces}:
        if not 0 <= k <= capacity // 2:
            continue
        large = [n for n in pieces if n > capacity - k]
        half = [n for n in pieces if capacity - k >= n > capacity // 2]
        small = [n for n in pieces if capacity // 2 >= n >= k]
        over = sum(small) - (len(half) * capacity - sum(half))
        best = max(best, len(large) + len(half) + max(0, -(-over // capacity)))
    return best


def mean(numbers):
    return sum(numbers) / len(numbers) if numbers else 0


def eta2(batches):
    """Returns the share of the variance of piece lengths between batches: sum of squares between over total."""
    every = [p[2] for b in batches for row in b for p in row]
    total = sum((n - mean(every)) ** 2 for n in every)
    between = 0
    for b in batches:
        here = [p[2] for row in b for p in row]
        between += len(here) * (mean(here) - mean(every)) ** 2
    return between / total if len(set(every)) > 1 else 0


def end_of(row, align):
    return sum(up(p[2], align) for p in row[:-1]) + row[-1][2] if row else 0


def imbalance(batches, load):
    """Returns the load if each row had that of the fullest row of its batch, over the load."""
    total = sum(load(row) for b in batches for row in b)
    return sum(len(b) * max(map(load, b), default=0) for b in batches) / total if total else 0


def figures(batches, widths, length, capacity, align=1):
    rows = [row for b in batches for row in b]
    pieces = [p for row in rows for p in row]
    f = {"batches": len(batches), "rows": len(rows), "segments": len(pieces), "tokens": sum(p[2] for p in pieces),
         "cells": sum(len(b) * w for b, w in zip(batches, widths)), "steps": sum(widths),
         "runs": sum(len({end_of(row, align) for row in b} - {0}) for b in batches), "eta2": eta2(batches),
         "empty": length.count(0) - sum(1 for p in pieces if not length[p[0]]), "cuts": sum(1 for p in pieces if p[1] > 0),
         "imbalance": imbalance(batches, filled), "imbalance_squares": imbalance(batches, squares)}
    f["dropped"] = sum(length) - f["tokens"]
    f["fill"] = f["tokens"] / f["cells"] if f["cells"] else 0
    f["mean_live"] = f["tokens"] / f["steps"] if f["steps"] else 0
    f["segments_per_row"] = f["segments"] / f["rows"] if f["rows"] else 0
    if capacity:
        cells = [up(p[2], align) for p in pieces]
        f["l1"] = -(-sum(cells) // capacity)
        f["l2"] = f["l1"] if f["cuts"] else martello_toth(cells, capacity)                      # L2 is for whole sequences
    return f


EXACT = {
    "order": order, "sorted": sorted_, "random": order, "pool": pool, "laplace": laplace, "tokens": tokens,
    "buckets": buckets, "geometric": geometric, "optimal_buckets": optimal_buckets, "powers": powers,
    "chunk": chunk, "best_fit_split": best_fit_split, "refill": refill, "streams": streams, "fold": fold,
    "balance": balance, "modified_first_fit_decreasing": modified_first_fit_decreasing, "greedy_knapsack": greedy_knapsack,
}
for _rule in ("next_fit", "first_fit", "best_fit", "worst_fit"):
    EXACT[_rule] = fits(_rule)
    EXACT[_rule + "_decreasing"] = fits(_rule, decreasing=True)
FREE = ("spfhp", "spfhp_stacked", "lpfhp", "exact_fill", "column_generation")
