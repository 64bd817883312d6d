"""code.py - writes code as HTML and links the names of the library in it to their declarations."""
import re
from html import escape

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import CLexer, JsonLexer, PythonLexer, TextLexer

from tree import relative

LEXERS = {'c': CLexer, 'h': CLexer, 'def': CLexer, 'inc': CLexer, 'cell': CLexer, 'cu': CLexer, 'cuh': CLexer, 'cpp': CLexer,
          'py': PythonLexer, 'json': JsonLexer}
DULL = re.compile(r'<span class="(?!(?:c|c1|cm|ch|k|kt|kr|kd|kn|kc|cp|cpf|s|s1|s2|sc|se|nt|m|mi|mf|mh|name|name [a-z]+|kind)")[^"]*">([^<]*)</span>|<span></span>')
PIECE = re.compile(r'<[^>]*>|\b(?:weft|WEFT)_\w+')


def lexer_of(path):
    return LEXERS.get(path.rpartition('.')[2].lower(), TextLexer)(stripnl=False)


def slim(html):
    """Removes the marks of Pygments that style.css does not colour: they are half of a page's bytes."""
    return DULL.sub(lambda m: m[1] or '', html)


def coloured(text, path='x.c'):
    """Returns the text as lines of <span>. The file extension selects the language."""
    return highlight(text, lexer_of(path), HtmlFormatter(nowrap=True)).rstrip('\n')


def block(inside):
    return f'<div class="code"><pre><code>{inside}</code></pre></div>'


def listing(path, text, to):
    """Returns a file as HTML, under its name as a link."""
    name = f'<a href="{escape(to)}">{escape(path.rpartition("/")[2])}</a>'
    return f'<figure class="listing"><figcaption>{name}</figcaption>{block(coloured(text.rstrip(), path))}</figure>'


def link_names(html, page, names):
    """Links names in code and tables, except inside links. names: name -> page#anchor."""
    depth = {'a': 0, 'code': 0, 'pre': 0, 'td': 0}

    def piece(match):
        what = match.group()
        if what[0] == '<':
            tag = re.match(r'</?(\w+)', what)
            if tag and tag.group(1) in depth and not what.endswith('/>'):
                depth[tag.group(1)] += -1 if what[1] == '/' else 1
            return what
        to = names.get(what)
        inside = depth['code'] + depth['pre'] + depth['td'] > 0 and depth['a'] == 0
        return f'<a href="{relative(page, to)}">{what}</a>' if to and inside else what
    return PIECE.sub(piece, html)
