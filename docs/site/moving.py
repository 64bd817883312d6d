"""moving.py - draws how a batch is packed, step by step, as an SVG that CSS moves: no script. With prefers-reduced-motion, and at the end, it
shows the last frame. All times are seconds from the start."""
CELL, LEFT, TOP, LINE = 22, 2, 34, 15         # pixels; cells in a line of memory
SORT, LEAVE, PACK, STEP = 2, 4, 5.5, .9        # the rows move, the pads leave, the first step is packed; a step of it
FILLS = '#9ccbee #f6c39f #a5dfc4 #ecc7de #f9dc9c #cfe8f7 #efe79a #d2d2d2'.split()
STYLE = '''.moving text { font: 12px var(--sans); fill: var(--ink) } .moving .head { font-weight: 600; font-size: 13px }
.moving g text { fill: #16191c; text-anchor: middle } .moving .size { text-anchor: middle } .moving rect { stroke: var(--ground) }
.moving .pad { fill: var(--line); opacity: 0 } .moving .row { transform: translateY(var(--to)) } .moving .gone { opacity: 0 }
@media (prefers-reduced-motion: no-preference) {
.moving .row { animation: sort 1.4s 2s both } .moving .pad { animation: leave .9s 4s both } .moving .cell, .moving .size { animation: arrive .7s var(--at) both }
.moving .gone { animation: said var(--for) var(--at) } .moving .last { animation: arrive .3s var(--at) both } }
#pause:checked ~ .moving * { animation-play-state: paused }
@keyframes sort { from { transform: translateY(var(--from)) } } @keyframes leave { from { opacity: 1 } }
@keyframes arrive { from { opacity: 0; transform: translate(var(--x, 0), var(--y, 0)) } } @keyframes said { from, to { opacity: 1 } }'''


def cell(x, y, sequence, step, style=''):
    return (f'<g{style}><rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" fill="{FILLS[sequence % len(FILLS)]}"/>'
            f'<text x="{x + CELL / 2:g}" y="{y + 15}">{"abcdefgh"[sequence]}{step}</text></g>')


def caption(text, begin, end=None):
    how = f'gone" style="--at: {begin:g}s; --for: {end - begin:g}s' if end is not None else f'last" style="--at: {begin:g}s'
    return f'<text class="head {how}" x="{LEFT}" y="18">{text}</text>\n'


def grid(lengths, order):
    """Draws the padded batch: a row for each sequence, which moves from its place in the program to its place among the sorted ones."""
    for s, length in enumerate(lengths):
        cells = ''.join(cell(LEFT + t * CELL, TOP, s, t) for t in range(length))
        pads = ''.join(f'<rect class="pad" x="{LEFT + t * CELL}" y="{TOP}" width="{CELL}" height="{CELL}"/>' for t in range(length, max(lengths)))
        yield f'<g class="row" style="--from: {s * CELL}px; --to: {order.index(s) * CELL}px"><g class="still">{cells}</g>{pads}</g>\n'


def memory(sizes, order, top):
    """Draws the packed batch in memory: step after step, each cell comes from its place in the grid."""
    n = 0
    for t, size in enumerate(sizes):
        at = PACK + t * STEP
        yield f'<text class="size" style="--at: {at:g}s" x="{LEFT + (t + .5) * CELL:g}" y="{top - 40}">{size}</text>\n'
        for row, s in enumerate(order[:size]):
            x, y = LEFT + n % LINE * CELL, top + n // LINE * (CELL + 6)
            yield cell(x, y, s, t, f' class="cell" style="--at: {at + row * .03:g}s; --x: {LEFT + t * CELL - x}px; --y: {TOP + row * CELL - y}px"')
            n += 1


def packing(lengths):
    """Returns the SVG of a batch of at most 8 sequences, and (tokens, cells of the padded batch)."""
    order = sorted(range(len(lengths)), key=lambda s: -lengths[s])
    sizes = [sum(n > t for n in lengths) for t in range(max(lengths))]
    tokens, cells = sum(lengths), len(lengths) * max(lengths)
    top = TOP + len(lengths) * CELL + 58
    width, height = LEFT + LINE * CELL + 4, top + (tokens + LINE - 1) // LINE * (CELL + 6)
    pads = f'{cells - tokens} pads'
    captions = (caption(f'Padded: {cells} cells, {pads}', 0, SORT) + caption('Sorted: the longest sequence first', SORT, LEAVE)
                + caption(f'Without the {pads}: {tokens} cells', LEAVE, PACK) + caption(f'Packed: {tokens} of {cells} cells, no pads', PACK))
    about = (f'{len(lengths)} sequences of {", ".join(map(str, lengths))} tokens fill {tokens} of {cells} cells of a padded batch. They are sorted, the longest first, and the '
             f'{pads} leave. Then the first tokens of all sequences go into memory, then all second tokens, and so on: {", ".join(map(str, sizes))} cells in {len(sizes)} steps.')
    body = ''.join(grid(lengths, order)) + ''.join(memory(sizes, order, top))
    labels = (f'<text x="{LEFT + len(sizes) * CELL + 10}" y="{top - 40}">batch_sizes</text>\n<text class="head" x="{LEFT}" y="{top - 10}">in memory</text>\n')
    return (f'<svg class="moving" role="img" aria-labelledby="moving-title moving-desc" xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">\n'
            f'<title id="moving-title">Packing a batch, step by step</title>\n<desc id="moving-desc">{about}</desc>\n<style>{STYLE}</style>\n{captions}{body}{labels}</svg>'), (tokens, cells)
