#!/usr/bin/env python3
"""export.py PLAN.json FILE.jsonl [FILE.npz]: compares an exported plan with what PLAN.json (weft plan --json) says.

Works out cu_seqlens, position_ids, document_ids and pieces from the plan alone. FILE.npz needs numpy."""
import json
import sys


def rows_of(plan):
    """Returns the batches: lists of rows, each a list of (sequence, offset, length, column, carried), and widths."""
    if "rows" in plan:
        rows, columns = plan["rows"], plan.get("columns")
        each = plan.get("batch_rows", len(rows))
    else:
        rows = [[p if isinstance(p, list) else [p, 0, lengths[p]]] for b in plan["batches"] for p in b]
        each, columns = [len(b) for b in plan["batches"]], None
    carry, at, batches, piece, ends = plan.get("carry", False), 0, [], 0, set()
    while at < len(rows):
        n = each if isinstance(each, int) else each[len(batches)]
        batch, now = [], set()
        for r in range(at, min(at + n, len(rows))):
            end, row = 0, []
            for k, (s, o, length) in enumerate(rows[r]):
                column = columns[r][k] if columns else end
                carried = (s, o) in ends and o > 0 and (carry is True or carry and carry[piece])
                row.append((s, o, length, column, carried))
                now.add((s, o + length))
                end, piece = column + length, piece + 1
            batch.append(row)
        batches.append(batch)
        ends, at = now, at + n
    width = plan.get("width")
    widths = [width if isinstance(width, int) else width[b] if width else
              plan["capacity"] if "rows" in plan and "capacity" in plan else
              max((p[3] + p[2] for row in batches[b] for p in row), default=0) for b in range(len(batches))]
    return batches, widths


def expect(batch, width, number):
    """Returns the expected line of a batch."""
    position, document = [[0] * width for _ in batch], [[-1] * width for _ in batch]
    ends, pieces = [0], []
    for r, row in enumerate(batch):
        for k, (s, o, length, column, carried) in enumerate(sorted(row, key=lambda p: (p[3], p[0]))):
            ends.append(ends[-1] + length)
            pieces.append((s, o, length, r, column))
            for t in range(length):
                position[r][column + t] = t + (o if carried else 0)
                document[r][column + t] = k
    return dict(batch=number, rows=len(batch), width=width, max_seqlen=max((p[2] for p in pieces), default=0),
                cu_seqlens=ends, position_ids=position, document_ids=document,
                **{key: [p[i] for p in pieces] for i, key in
                   enumerate(("sequence", "offset", "length", "row", "column"))})


def check_npz(path, wanted):
    import numpy
    f = numpy.load(path)
    piece, cell = f["first_piece"], f["first_cell"]
    assert f["cu_seqlens"].dtype == numpy.int32 and len(piece) == len(cell) == len(wanted) + 1
    for b, w in enumerate(wanted):
        here = slice(piece[b], piece[b + 1])
        grid = (w["rows"], w["width"])
        assert (f["rows"][b], f["width"][b], f["max_seqlen"][b]) == grid + (w["max_seqlen"],)
        assert f["cu_seqlens"][piece[b] + b:piece[b + 1] + b + 1].tolist() == w["cu_seqlens"]
        for key in "sequence", "offset", "length", "row", "column":
            assert f[key][here].tolist() == w[key], key
        for key in "position_ids", "document_ids":
            assert f[key][cell[b]:cell[b + 1]].reshape(grid).tolist() == w[key], key


lengths = [int(word) for word in open("lengths").read().split()]
plan = json.load(open(sys.argv[1]))["plans"][0]
wanted = [expect(batch, width, b) for b, (batch, width) in enumerate(zip(*rows_of(plan)))]
found = [json.loads(line) for line in open(sys.argv[2])]
assert len(found) == len(wanted), (len(found), len(wanted))
for a, b in zip(found, wanted):
    for name in b:
        assert a[name] == b[name], (b["batch"], name, a[name], b[name])
    assert a.keys() == b.keys()
if len(sys.argv) > 3:
    check_npz(sys.argv[3], wanted)
