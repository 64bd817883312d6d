"""api.py [--check]: writes the tables of docs/api.md from the comments of the public headers. --check only reports outdated tables.

A row describes one group of functions: their names, the name in other libraries (the comment's last sentence, "Like X."), and the
comment's first sentence. Text outside the two markers is written by hand."""
import re
import sys
import textwrap

import headers
import tree

PAGE = 'docs/api.md'
BEGIN, END = '<!-- tables: docs/site/api.py writes them from the headers -->', '<!-- end of the tables -->'
OURS = re.compile(r'\b(?:weft|WEFT)_\w+')
THEIRS = re.compile(r'(?<![\w`])[A-Za-z]\w*(?:[._]\w+)*(?:\([^()]*\)|\[[^]]*\]|="\w+")*(?:[._]\w+)*(?:\([^()]*\))*')


def sentences(comment):
    """Returns the name in other libraries, and the first sentence."""
    text = ' '.join(line.strip() for line in comment.split('\n') if not line.startswith('    '))
    like = re.search(r'(?:^|\s)Like (.+?)\.$', text)
    text = text[:like.start()] if like else text
    return like.group(1) if like else '', re.split(r'(?<!\.)(?<! al)[.](?=\s|$)', text)[0].rstrip('.:')


def cell(text, names):
    """Returns the text for a table cell, with names marked as code."""
    code = names.sub(lambda m: f'`{m.group()}`' if re.search(r'[._(\[]', m.group()) else m.group(), text)
    return code.replace('|', '\\|')


def rows(header):
    for section in header.sections:
        found = []
        for group in section.groups:
            names = [n for s in group.statements for n, kind in s.names if kind == 'function' and n.startswith('weft_')]
            if names:
                like, does = sentences(group.comment)
                found.append(f'| {", ".join(f"`{n}`" for n in names)} | {cell(like, THEIRS) or "-"} | {cell(does, OURS)} |')
        if found:
            yield section.title, found


def tables():
    out = []
    for level in tree.LEVELS:
        about = re.sub(r'^\S+ - ', '', headers.plain(re.match(r'/\*.*?\*/', tree.read(level), re.S).group()).split('\n\n')[0]).replace('\n', ' ')
        out += [f'## {level}', '', *textwrap.wrap(about[:1].upper() + about[1:], 100), '', '| weft | elsewhere | task |', '| --- | --- | --- |']
        for path in tree.public_headers([level]):
            for title, found in rows(headers.read(path, tree.read(path))):
                title = title.partition(':')[0].partition(';')[0]
                out += [f'| **{title[:1].upper()}{title[1:]}** | | |', *found]
        out.append('')
    return '\n'.join(out)


def count(level):
    return sum(kind == 'function' and name.startswith('weft_') for path in tree.public_headers([level]) for section in headers.read(path, tree.read(path)).sections
               for group in section.groups for s in group.statements for name, kind in s.names)


def main(check):
    if count('weft.h') > 200:
        sys.exit(f'weft.h has {count("weft.h")} functions; expected at most 200. Move those that a training program does not need to another header')
    page = tree.read(PAGE)
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    fresh = f'{before}{BEGIN}\n\n{tables()}\n{END}{after}'
    if check and fresh != page:
        sys.exit(f'{PAGE} differs from the headers; run python3 docs/site/api.py')
    if not check:
        with open(PAGE, 'w', encoding='utf-8') as f:
            f.write(fresh)


if __name__ == '__main__':
    main(sys.argv[1:] == ['--check'])
