"""reference.py - writes a page for each public header, and the index of names."""
import re
from html import escape
from itertools import groupby

import code
from text import equations
from tree import LEVELS, header_page, page_of, public_headers, relative

MENTION = re.compile(r'`[^`\n]+`|docs/[\w/]+\.md|\bapi_\w+\.h|\b(?:weft|WEFT)_\w+')


def capital(text):
    return text[:1].upper() + text[1:]


def slug(title):
    return 'section-' + re.sub(r'[^\w]+', '-', title.lower()).strip('-')


def level_of(path):
    """Returns the header in the root that includes this one."""
    return next(f for f in LEVELS if path in public_headers([f]))


def names_of(header):
    """Returns name -> (kind, page#anchor) for the declarations of a header."""
    page = header_page(header.path)
    return {name: (kind, f'{page}#{name}') for section in header.sections for group in section.groups
            for statement in group.statements for name, kind in statement.names}


def word(match, page):
    """Links a header or a document in a comment; marks names as code."""
    what = match.group()
    if what.endswith('.md'):
        return f'<a href="{relative(page, page_of(what))}">{what}</a>'
    if what.endswith('.h'):
        to = [header_page(h) for h in public_headers() if h.endswith('/' + what)]
        return f'<a href="{relative(page, to[0])}">{what}</a>' if to else what
    return f'<code>{what.strip("`")}</code>'


def prose(text, page, names):
    """Returns a comment as paragraphs, with indented lines as code."""
    out = []
    for kind, lines in groupby(text.split('\n'), lambda line: line and ('code' if line.startswith('    ') else 'text')):
        lines = '\n'.join(line[4:] if kind == 'code' else line for line in lines)
        inside = escape(lines, quote=False)
        if kind:
            out.append(equations.converted(lines) or code.block(inside) if kind == 'code' else f'<p>{MENTION.sub(lambda m: word(m, page), inside)}</p>')
    return code.link_names('\n'.join(out), page, names)


def shown(group):
    """Returns the code of a group. A comment after its only statement moves above it and becomes prose."""
    alone = len(group.statements) == 1 and not group.comment
    if alone and group.statements[0].behind:
        group.comment, group.statements[0].behind = group.statements[0].behind, ''
    return '\n'.join(s.code + (f'  /* {s.behind} */' if s.behind else '') for s in group.statements)


def anchored(html, group, used):
    """Makes the first occurrence of each name its anchor. Names that are not in the code get an anchor before it."""
    kinds = dict(n for s in group.statements for n in s.names if n[0] not in used)
    used.update(kinds)
    comment = False

    def piece(match):
        nonlocal comment
        what = match.group()
        if what[0] == '<':
            comment = bool(re.match(r'<span class="(c|c1|cm|ch)"', what))
        elif what in kinds and not comment:
            return f'<a class="name {kinds.pop(what)}" id="{what}" href="#{what}">{what}</a>'
        return what
    html = re.sub(r'<[^>]*>|\b[A-Za-z_]\w*', piece, html)
    return ''.join(f'<span class="name {kind}" id="{name}"></span>' for name, kind in kinds.items()), html


def entry(group, page, names, used):
    if not group.statements:
        return prose(group.comment, page, names)
    before, inside = anchored(code.coloured(shown(group)), group, used)
    return f'<div class="entry">{before}{code.link_names(code.block(inside), page, names)}\n{prose(group.comment, page, names)}</div>'


def section(part, page, names, used):
    head = ''
    if part.title:
        where = slug(part.title)
        head = f'<h2 id="{where}"><a class="toclink" href="#{where}">{escape(capital(part.title))}</a></h2>\n'
    return head + '\n'.join(entry(g, page, names, used) for g in part.groups)


def header_html(header, names):
    """Returns title, HTML and headings of the page."""
    page, name = header_page(header.path), header.path.rpartition('/')[2]
    head = f'<h1><code>{name}</code></h1>\n<p class="lead">{escape(capital(header.title), quote=False)}</p>\n'
    used = set()                        # a struct may be declared twice
    body = ''.join(section(s, page, names, used) for s in header.sections)
    headings = [(1, '', name)] + [(2, slug(s.title), capital(s.title)) for s in header.sections if s.title]
    about = re.sub(r'\AContents:.*?(\n\n|\Z)', '', header.about, flags=re.S)
    include = code.block(code.coloured(f'#include "{level_of(header.path)}"'))
    return name, head + include + prose(about, page, names) + body, headings


def overview(headers, page):
    """Lists the headers with title and functions."""
    rows = []
    for h in headers:
        functions = [n for n, (kind, _) in sorted(names_of(h).items()) if kind == 'function']
        to = header_page(h.path)
        links = ' '.join(f'<a href="{relative(page, to)}#{f}"><code>{f}</code></a>' for f in functions)
        rows.append(f'<h2 id="{to[4:-5]}"><a href="{relative(page, to)}">{h.path}</a></h2>\n<p>{escape(capital(h.title))}</p>\n<p class="names">{links}</p>')
    return '\n'.join(rows)


def index(names, page):
    """Lists all names by the first letter after weft_."""
    letters = {}
    for name in sorted(names, key=lambda n: (n.lower().replace('weft_', ''), n)):
        letters.setdefault(name.lower().replace('weft_', '')[0].upper(), []).append(name)
    jump = ' '.join(f'<a href="#letter-{x}">{x}</a>' for x in letters)
    body = ''.join(f'<h2 id="letter-{x}">{x}</h2>\n<ul class="index">' + ''.join(
        f'<li><a href="{relative(page, names[n][1])}">{n}</a> <small>{names[n][0]}</small></li>\n' for n in group) + '</ul>\n'
        for x, group in letters.items())
    return f'<p class="jump">{jump}</p>\n{body}'
