"""equations.py - converts equations of texts to MathML, for the site. A block of code is converted if each line begins with an
equation of this notation: h_{t+1}, c', U^T, dL/da, sum_k, sum over u of, sqrt(x), products as blanks, * or a dot, the words of WORDS, or goes
on with a sign +. After four blanks comes another equation or a remark, after a comma and "or" or "and" a remark. Any other block is left as it is."""
import re
from html import escape

WORDS = '''tanh sigmoid exp log max LSTM score weight context time bytes FLOPs norm most ms far token tokens piece pieces batch batches length pair'''.split()
TOKEN = re.compile(r" *(<=|\d+|[A-Za-z]+|[-+*/^_(){}=,.'])")
MORE = '<mspace width="2.5em"/>'         # before a line that goes on
SIGNS = {'-': '&#8722;', '*': '&#8727;', '.': '&#8901;', '<=': '&#8804;', '+': '+', '=': '=', ',': ','}


def row(tokens, end):
    """Takes the tokens up to end; None: all."""
    out, product = '', False            # whether a factor comes before
    while tokens and tokens[-1] != end:
        sign = tokens[-1] in SIGNS
        out += '<mspace width=".2em"/>' if product and not sign and tokens[-1] != '(' else ''
        out += f'<mo>{SIGNS[tokens.pop()]}</mo>' if sign else quotient(tokens)
        product = not sign
    if end and (not tokens or tokens.pop() != end):
        raise ValueError(f'{end} is missing')
    return f'<mrow>{out}</mrow>'


def quotient(tokens):
    html = factor(tokens)
    while took(tokens, '/'):
        html = f'<mfrac>{bare(html)}{bare(factor(tokens))}</mfrac>'
    return html


def factor(tokens):
    """A number, a name with its scripts and its arguments, a sum, or an expression in brackets."""
    token = tokens.pop() if tokens else ''
    if token == 'sum':
        return f'<munder><mo>&#8721;</mo>{row(tokens, "of") if took(tokens, "over") else script(tokens, "_")}</munder>'
    if token == 'sqrt' and took(tokens, '('):
        html = f'<msqrt>{row(tokens, ")")}</msqrt>'
    elif token == '(':
        inner = row(tokens, ')')
        size = '' if 'mfrac' in inner else ' stretchy="false"'
        html = f'<mrow><mo{size}>(</mo>{inner}<mo{size}>)</mo></mrow>'
    elif token.isdigit():
        html = f'<mn>{token}</mn>'
    elif re.fullmatch('d?[A-Za-z]', token) or token in WORDS:
        html = f'<mrow><mi>d</mi><mi>{token[1]}</mi></mrow>' if re.fullmatch('d[A-Za-z]', token) else f'<mi>{token}</mi>'
    else:
        raise ValueError(f'{token} is not in this notation')
    if took(tokens, "'"):               # the sign is raised by itself: in a superscript it would be too high
        html = f'<mrow>{html}<mo lspace="0" rspace="0">&#8242;</mo></mrow>'
    low, high = script(tokens, '_'), script(tokens, '^')
    tag = 'm' + 'sub' * bool(low) + 'sup' * bool(high)
    html = f'<{tag}>{html}{low}{high}</{tag}>' if low or high else html
    return f'<mrow>{html}{factor(tokens)}</mrow>' if (token in WORDS or token == 'f') and tokens[-1:] == ['('] else html


def script(tokens, sign):
    return '' if not took(tokens, sign) else row(tokens, '}') if took(tokens, '{') else bare(factor(tokens))


def took(tokens, token):
    return tokens[-1:] == [token] and bool(tokens.pop())


def bare(html):
    """Removes brackets around the whole expression: fractions and scripts need none."""
    return re.sub(r'^<mrow><mo[^>]*>\(</mo>(.*)<mo[^>]*>\)</mo></mrow>$', r'\1', html)


def math(text):
    tokens = TOKEN.findall(text)[::-1]
    if '=' not in tokens and tokens[-1:] != ['+'] or ''.join(tokens[::-1]) != text.replace(' ', ''):
        raise ValueError(f'{text} is not an equation')
    return f'<math displaystyle="true">{MORE if tokens[-1] == "+" else ""}{row(tokens, None)}</math>'


def converted(block):
    """Returns the HTML of a block, or None if it is not one of equations."""
    lines = [re.split(' {4,}|, (?=or |and )', line.strip()) for line in block.splitlines() if line.strip()]
    try:
        cells = [[f'<span>{escape(c)}</span>' if i and ' = ' not in c else math(c) for i, c in enumerate(line)] for line in lines]
    except ValueError:
        return None
    return '<div class="equations">' + ''.join(f'<p>{" ".join(line)}</p>' for line in cells) + '</div>\n'
