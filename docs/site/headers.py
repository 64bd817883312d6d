"""headers.py - parses a public header: its sections, declarations, comments and names."""
import re
from dataclasses import dataclass, field

TOKEN = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|\\\n|.', re.S)
NAME = r'(?:weft|WEFT)_?\w*'


@dataclass
class Statement:
    code: str
    behind: str = ''                    # the comment after it on the line
    names: list = field(default_factory=list)       # (name, kind)


@dataclass
class Group:                            # statements without a blank line between them, and the comment above
    comment: str = ''
    statements: list = field(default_factory=list)


@dataclass
class Section:
    title: str
    groups: list = field(default_factory=list)


@dataclass
class Header:
    path: str
    title: str
    about: str
    sections: list


def for_c(text):
    """Returns the text for C: without C++, guards and includes. Conditions on WEFT_DOUBLE stay."""
    out, shown = [], []                 # for each enclosing #if: whether its lines are kept; None: a condition that stays
    for line in text.split('\n'):
        word, rest = (re.match(r'\s*#\s*(\w+)\s*(.*)', line) or re.match('()()', '')).groups()
        if word in ('if', 'ifdef', 'ifndef'):
            shown.append(None if 'WEFT_DOUBLE' in rest else word != 'ifdef')
        directive = word in ('if', 'ifdef', 'ifndef', 'else', 'endif')
        keep = shown[-1] is None if directive else word not in ('include', 'undef') and not re.match(r'\w+_H$', rest)
        if keep and False not in shown:
            out.append(line)
        if word == 'else' and shown[-1] is not None:
            shown[-1] = not shown[-1]
        if word == 'endif':
            shown.pop()
    return '\n'.join(out)


def statement_end(text, at):
    """Returns the end of the statement at `at`: a directive, or text up to ; or up to the } of a function."""
    directive, function, depth = text[at] == '#', text.startswith('static inline', at), 0
    if text.startswith('#ifdef', at):
        return text.index('#endif', at) + len('#endif')
    while at < len(text):
        token = TOKEN.match(text, at).group()
        if directive and token == '\n':
            break
        at += len(token)
        depth += (token in '({') - (token in ')}') if len(token) == 1 else 0
        if not directive and depth == 0 and (token == ';' or function and token == '}'):
            break
    return at


def plain(comment):
    """Returns the text of a comment without stars."""
    lines = comment[2:-2].strip().split('\n')
    return '\n'.join(re.sub(r'^\s*\* ?', '', line).rstrip() for line in lines).strip('\n')


def items(text):
    """Yields (kind, text) in order. Kinds: comment, behind (a comment after code on its line), code, blank."""
    at = 0
    while at < len(text):
        space = re.compile(r'\s*').match(text, at).group()
        fresh = at == 0 or '\n' in space
        if space.count('\n') > 1:
            yield 'blank', ''
        at += len(space)
        if text.startswith('/*', at):
            end = text.index('*/', at) + 2
            yield ('comment' if fresh else 'behind'), plain(text[at:end])
        elif at < len(text):
            end = statement_end(text, at)
            yield 'code', text[at:end]
        else:
            break
        at = end


def bare(code):
    return re.sub(r'/\*.*?\*/|"(?:\\.|[^"\\])*"', '', code, flags=re.S)


def outer(code):
    """Returns the code with empty parentheses and braces."""
    out, depth = [], 0
    for c in code:
        depth -= c in ')}'
        if depth == 0:
            out.append(c)
        depth += c in '({'
    return ''.join(out)


def names_of(code):
    code = bare(code)
    macro = re.findall(r'^\s*#\s*define\s+(WEFT_\w+)', code, re.M)
    if macro:
        return [(m, 'macro') for m in macro] + [('WEFT_' + s, 'constant') for s in re.findall(r'\bXX\((\w+),', code)]
    inside = re.search(r'\benum\b[^{]*\{(.*)\}', code, re.S)
    constants = [(c, 'constant') for c in re.findall(r'(?:^|,)\s*(WEFT_\w+)(?!\w|\()', inside.group(1) if inside else '')]
    flat = outer(code)
    called = re.findall(rf'\b({NAME})\s*\(', flat)
    if 'typedef' in code:
        types = called or re.findall(rf'\b({NAME})\s*;', flat)
        return [(t, 'type') for t in types] + constants
    tags = [(t, 'type') for t in re.findall(rf'^\s*(?:struct|enum)\s+({NAME})', flat)]
    return tags + constants + [(f, 'function') for f in called if 'WEFT_API' in code]


def public(statement):
    return statement.names and not statement.names[0][0].lower().startswith('weft__') \
        and not re.match(r'static inline|#define .*##', statement.code)


def read_statement(code):
    code = re.sub(r'^.*WEFT__OPEN.*\n', '', code, flags=re.M) if code.startswith('#if') else code
    names = list(dict.fromkeys(names_of(code)))
    if code.startswith('WEFT_API '):
        code = re.sub(r'\n {9}', '\n', code[len('WEFT_API '):])
    return Statement(code, '', names)


def close(header, group):
    """Adds the group to the last section unless it declares only private names. Returns a new group."""
    there = [s for s in group.statements if public(s)]
    if there or group.comment and not group.statements:
        header.sections[-1].groups.append(Group(group.comment, there))
    return Group()


def read(path, text):
    stream = list(items(for_c(text)))
    header, group = Header(path, *split_title(stream[0][1]), [Section('')]), Group()
    for kind, what in stream[1:] + [('comment', '')]:
        title = re.match(r'---- (.*?) ----(?: \*\n)?\s*(.*)', what, re.S) if kind == 'comment' else None
        if kind in ('blank', 'comment'):
            group = close(header, group)
        if title:
            header.sections.append(Section(title.group(1)))
            group = close(header, Group(title.group(2)))
        elif kind == 'comment':
            group = Group(what)
        elif kind == 'behind' and group.statements:
            group.statements[-1].behind = what
        elif kind == 'code':
            group.statements.append(read_statement(what))
    return header


def split_title(head):
    """Returns the first paragraph without the file's name, and the rest."""
    first, _, rest = head.partition('\n\n')
    return re.sub(r'^\S+ - ', '', first).replace('\n', ' '), rest
