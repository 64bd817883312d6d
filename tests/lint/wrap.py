#!/usr/bin/env python3
"""wrap.py WIDTH FILE...    wraps the lines of C sources that are longer than WIDTH columns: a comment behind code goes above it, a comment of
several lines is filled anew, code is left to clang-format, and only the lines that are too long. Tables (.def, .cell) keep their code.
The tokens that a compiler sees stay the same."""
import re, subprocess, sys, textwrap

def fill(text, indent, width):
    """A comment's words as lines of one comment."""
    if text.startswith('---- ') and text.endswith(' ----') and len(indent) + len(text) + 6 > width: text = text[:-5]
    one = f"{indent}/* {text} */"
    if len(one) <= width: return [one]
    lines = textwrap.wrap(text, width - len(indent) - 6, break_long_words=False, break_on_hyphens=False)
    return [f"{indent}{'/*' if i == 0 else ' *'} {l}{' */' if i == len(lines) - 1 else ''}" for i, l in enumerate(lines)]

def comments(lines, width):
    """Block comments with a long line are filled anew, paragraph by paragraph; what is set in columns stays."""
    out, i = [], 0
    while i < len(lines):
        m = re.match(r'^( *)/\*(?!.*\*/)', lines[i])
        if not m or lines[i].rstrip().endswith('\\'):
            out.append(lines[i]); i += 1; continue
        j = i
        while '*/' not in lines[j]: j += 1
        block = lines[i:j + 1]
        i = j + 1
        if max(map(len, block)) <= width or not lines[j].rstrip().endswith('*/'):
            out += block; continue
        indent = m[1]
        body = [re.sub(r'^ *(/\*|\*(?!/))? ?', '', l) for l in block]
        body[-1] = re.sub(r' *\*/ *$', '', body[-1])
        banner = bool(re.match(r'---- .* ---- \*$', body[0].strip()))
        paragraphs, current = [], []
        for k, l in enumerate(body):
            own = not l.strip() or l.startswith('  ') or re.match(r'[-|#]', l) or (k == 0 and banner)
            if own:
                if current: paragraphs.append(' '.join(current)); current = []
                paragraphs.append(('', l) )
            else: current.append(l.strip())
        if current: paragraphs.append(' '.join(current))
        text = []
        for p in paragraphs:
            if isinstance(p, tuple): text.append(p[1].rstrip())
            else: text += textwrap.wrap(p, width - len(indent) - 3, break_long_words=False, break_on_hyphens=False)
        while text and not text[-1].strip(): text.pop()
        if len(indent) + 3 + len(text[-1]) + 3 > width and not text[-1].startswith('  '):
            last = textwrap.wrap(text.pop(), width - len(indent) - 6, break_long_words=False, break_on_hyphens=False); text += last
        made = [f"{indent}{'/*' if k == 0 else ' *'} {l}".rstrip() for k, l in enumerate(text)]
        made[-1] += ' */'
        out += made
    return out

def trailing(lines, width):
    """A comment behind code that is too long goes above the code, with the lines that go on with it."""
    out, i = [], 0
    while i < len(lines):
        l = lines[i]
        m = re.match(r'^( *)(.*?\S) *(/\*(?:(?!\*/).)*\*/)$', l)
        if len(l) <= width or not m or m[2].startswith('/*') or '/*' in m[2] or l.endswith('\\') or m[2].startswith('#'):
            out.append(l); i += 1; continue
        if len(m[1] + m[2] + '  ' + m[3]) <= width and not re.match(r'^ {20,}/\*', lines[i + 1]):
            out.append((m[1] + m[2]).ljust(width - len(m[3])) + m[3]); i += 1; continue
        text = m[3][2:-2].strip()
        i += 1
        while i < len(lines) and re.match(r'^ {20,}/\*.*\*/$', lines[i]):
            text += ' ' + lines[i].strip()[2:-2].strip(); i += 1
        out += fill(text, m[1], width)
        out.append(m[1] + m[2])
    return out

def single(lines, width):
    out = []
    for l in lines:
        m = re.match(r'^( *)/\* (.*) \*/$', l)
        if len(l) > width and m and '*/' not in m[2]: out += fill(m[2], m[1], width)
        else: out.append(l)
    return out

def code(path, width):
    style = re.sub(r'ColumnLimit: *\d+', f'ColumnLimit: {width}', open('.clang-format').read())
    style = '{' + ', '.join(l for l in style.splitlines() if re.match(r'\w', l)) + '}'
    for _ in range(12):
        lines = open(path).read().split('\n')
        long = [i + 1 for i, l in enumerate(lines) if len(l) > width]
        if not long: return
        before = '\n'.join(lines)
        name = 'x.cpp' if path.endswith(('.cu', '.cuh', '.cpp')) else 'x.c'
        made = subprocess.run(['clang-format', f'--assume-filename={name}'] + [f'--style={style}'] + [f'--lines={n}:{n}' for n in long], input=before,
                              capture_output=True, text=True, check=True).stdout
        open(path, 'w').write(made)
        if open(path).read() == before: return

def main():
    width = int(sys.argv[1])
    for path in sys.argv[2:]:
        lines = open(path).read().split('\n')
        if max(map(len, lines)) <= width: continue
        lines = comments(single(trailing(lines, width), width), width)
        open(path, 'w').write('\n'.join(lines))
        if not path.endswith(('.def', '.cell')): code(path, width)
main()
