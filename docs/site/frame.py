"""frame.py - the parts of every page around its text: head, navigation, footer."""
from html import escape

from tree import relative

FRAME = '''<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8" />
<meta name="viewport" content="width=device-width, initial-scale=1" />
<meta name="color-scheme" content="light dark" />
<title>{title}</title>
<link rel="icon" href="data:," />
<link rel="stylesheet" href="{style}" />
</head>
<body class="{kind}">
<a class="skip" href="#content">Skip to the text</a>
<header>
<a class="brand" href="{home}">weft</a>
<a class="menu" href="#ways">Contents</a>
<form action="{search}" role="search"><label for="find">Search</label>
<input id="find" name="q" type="search" autocomplete="off" placeholder="name, heading" /></form>
</header>
<nav id="ways" aria-label="Site">
{ways}</nav>
<main id="content" tabindex="-1">
{html}
{around}</main>
{toc}<footer><p>weft {version}. Made from the sources by <code>make site</code>. MIT licence.</p></footer>
</body>
</html>
'''


def link(page, to, words, extra=''):
    here = ' aria-current="page"' if to == page else ''
    return f'<a href="{escape(relative(page, to))}"{here}{extra}>{escape(words, quote=False)}</a>'


def ways(page, chapters):
    """Lists the pages of each chapter. The current chapter, Lessons and Guides are open."""
    out = []
    for title, pages in chapters:
        items = ''.join(f'<li>{link(page, to, words)}</li>\n' for to, words in pages)
        if not title:
            out.append(f'<ul>\n{items}</ul>\n')
            continue
        shown = ' open="open"' if title in ('Lessons', 'Guides') or any(to == page for to, _ in pages) else ''
        out.append(f'<details{shown}><summary>{title}</summary>\n<ul>\n{items}</ul>\n</details>\n')
    return ''.join(out)


def contents(headings):
    """Lists the headings of level 2 twice: for wide windows at the side, for narrow ones above the text, closed."""
    items = ''.join(f'<li><a href="#{where}">{words}</a></li>\n' for level, where, words in headings if level == 2)
    if items.count('<li>') < 2:
        return '', ''
    above = f'<details class="toc above"><summary>On this page</summary>\n<ul>\n{items}</ul>\n</details>\n'
    return above, f'<nav class="toc side" aria-label="On this page">\n<p>On this page</p>\n<ul>\n{items}</ul>\n</nav>\n'


def around(page, order, has_next):
    """Links the previous and the next page in the order of the chapters. has_next: the text already links the next page."""
    at = [to for to, _ in order].index(page) if page in [to for to, _ in order] else None
    if at is None:
        return ''
    before = '<span>Before: ' + link(page, *order[at - 1], ' rel="prev"') + '</span>' if at > 0 else '<span></span>'
    after = '<span>Next: ' + link(page, *order[at + 1], ' rel="next"') + '</span>' if at + 1 < len(order) and not has_next else '<span></span>'
    return f'<nav class="around" aria-label="Before and after">{before}{after}</nav>\n'


def whole(page, title, html, headings, chapters, version, kind=''):
    order = [p for _, pages in chapters for p in pages]
    above, side = contents(headings)
    split = html.find('</h1>') + len('</h1>')
    return FRAME.format(title=escape(title if title == 'weft' else title + ' - weft', quote=False), style=relative(page, 'style.css'), kind=kind,
                        home=relative(page, 'index.html'), search=relative(page, 'search.html'), ways=ways(page, chapters),
                        html=html[:split] + '\n' + above + html[split:], around=around(page, order, '<p>Next: ' in html), toc=side, version=version)
