"""frame.py - the parts of every page around its text: head, navigation, position, footer."""
import re
from html import escape, unescape

from tree import relative

FRAME = '''<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8" />
<meta name="viewport" content="width=device-width, initial-scale=1" />
<meta name="color-scheme" content="light dark" />
<meta name="description" content="{about}" />
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
<input id="find" name="q" type="search" autocomplete="off" placeholder="words, names" /></form>
</header>
<main id="content" tabindex="-1">
{crumbs}{html}
{around}</main>
<nav id="ways" aria-label="Site">
{ways}</nav>
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


def about(html):
    """Returns the first sentences of a page, at most 160 characters: the description that search engines show."""
    texts = [' '.join(unescape(re.sub(r'<[^>]*>', '', p)).split()) for p in re.findall(r'<p(?: [^>]*)?>(.*?)</p>', html, re.S)]
    text = next((p for p in texts if len(p) > 30), ' '.join(unescape(re.sub(r'<[^>]*>', ' ', html)).split()))
    return text if len(text) <= 160 else text[:157].rsplit(' ', 1)[0] + ' ..'


def crumbs(page, title, pages):
    """Returns the position of a page: chapter, number in it. pages: those of its chapter; empty: the page of a file."""
    at = [to for to, _ in pages].index(page) + 1 if pages else 0
    middle = f'{link(page, pages[0][0], title)}, page {at} of {len(pages)}' if pages else 'Source file'
    return f'<nav class="crumbs" aria-label="Position">{link(page, "index.html", "weft")} / {middle}</nav>\n'


def around(page, pages, html):
    """Returns (html, links to the previous and the next page of the chapter). A last line "Next: LINK" of the text becomes the second link."""
    order = [to for to, _ in pages]
    at = order.index(page)
    before = '<span>Before: ' + link(page, *pages[at - 1], ' rel="prev"') + '</span>' if at > 0 else '<span></span>'
    after = ''
    if at + 1 < len(order):
        to, words = pages[at + 1]
        own = re.search(r'<p>Next: <a href="([^"]*)">([^<]*)</a>\.</p>\s*\Z', html)
        if own and own[1] == relative(page, to):
            html, words = html[:own.start()], unescape(own[2])
        after = '<span>Next: ' + link(page, to, words, ' rel="next"') + '</span>'
    return html, f'<nav class="around" aria-label="Before and after">{before}{after}</nav>\n'


def whole(page, title, html, headings, chapters, version, kind=''):
    chapter, pages = next(((name, pages) for name, pages in chapters if any(to == page for to, _ in pages)), ('', []))
    above, side = contents(headings)
    html, next_to = around(page, pages, html) if chapter else (html, '')
    split = html.find('</h1>') + len('</h1>')
    return FRAME.format(title=escape(title if title == 'weft' else title + ' - weft', quote=False), style=relative(page, 'style.css'), kind=kind, about=escape(about(html)),
                        home=relative(page, 'index.html'), search=relative(page, 'search.html'), ways=ways(page, chapters), crumbs=crumbs(page, chapter, pages) if chapter or not pages else '',
                        html=html[:split] + '\n' + above + html[split:], around=next_to, toc=side, version=version)
