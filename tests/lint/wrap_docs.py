#!/usr/bin/env python3
"""wrap_docs.py WIDTH FILE.md...    fills the paragraphs and list items of Markdown that have a line longer than WIDTH.
Code, tables, headings, HTML and lines that are one link or picture stay as they are."""
import re, sys, textwrap

ITEM = re.compile(r'( *)([-*+]|\d+\.) +(?=\S)')
MARK = re.compile(r'[-*+=>|]+$|\d+\.$|#+$|[>|]')    # a word that would be syntax at the beginning of a line

def kept(line):
    """A line that is no prose."""
    return bool(re.match(r' *(\||#{1,6} |<|!?\[[^]]*\]\([^)]*\)$|\[[^]]*\]: )', line))

def fill(lines, first, rest, width):
    """The words of lines as a paragraph; spans of code of at most 60 characters stay whole."""
    words = re.sub(r'`[^`]{1,60}`', lambda m: m[0].replace(' ', '\0'), ' '.join(l.strip() for l in lines)).split(' ')
    text = words[0]
    for word in words[1:]:
        text += ('\0' if MARK.match(word) else ' ') + word
    made = textwrap.wrap(text, width, initial_indent=first, subsequent_indent=rest, break_long_words=False,
                         break_on_hyphens=False)
    return [l.replace('\0', ' ') for l in made]

def wrapped(lines, width):
    """The lines of a file anew."""
    out, i, code, indent = [], 0, False, 0              # indent: of a list item's text
    while i < len(lines):
        line = lines[i]
        fence = line.lstrip().startswith('```')
        code ^= fence
        item = ITEM.match(line)
        own = len(line) - len(line.lstrip())
        if line and own == 0 and not item: indent = 0
        if item: indent = item.end()
        if code or fence or not line or kept(line) or (own >= indent + 4 and not item):
            out.append(line); i += 1; continue
        j = i + 1
        while j < len(lines) and lines[j] and not ITEM.match(lines[j]) and not kept(lines[j]) and \
                not lines[j].lstrip().startswith('```'): j += 1
        block = lines[i:j]
        i = j
        if max(map(len, block)) <= width: out += block; continue
        first = line[:item.end()] if item else ' ' * own
        out += fill([line[len(first):]] + block[1:], first, ' ' * len(first), width)
    return out

def main():
    width = int(sys.argv[1])
    for path in sys.argv[2:]:
        before = open(path).read()
        after = '\n'.join(wrapped(before.split('\n'), width))
        if after != before: open(path, 'w').write(after)

main()
