"""check.py OUT          checks the site without a browser; run it in the root of the tree. Prints faults, then counts. Exit status 1 after a fault.
check.py OUT anchors  prints the functions of the reference, one a line."""
import os
import re
import sys
from collections import Counter
from urllib.parse import unquote
from xml.etree import ElementTree

MOST, LETTER = 100000, 10               # bytes of a page with its style and pictures; the smallest letter of a picture, px
EQUATION = re.compile(r"[A-Za-z]\w*('|_\{.*?\})?\s+= [^;\"#]*|\s*[+].*")       # a line; lessons/equations.py typesets those that it can read
FOREIGN = ('docs/laboratory/index.html',)     # written by `weft lab`; tests/lab_check.sh checks it


class Page:
    def __init__(self, path, text):
        self.path, self.faults = path, []
        try:
            self.root = ElementTree.fromstring(text)
        except ElementTree.ParseError as e:
            self.root = ElementTree.Element('html')
            self.faults.append(f'is not well-formed: {e}')
        self.all = list(self.root.iter())
        self.ids = Counter(e.get('id') for e in self.all if e.get('id') is not None)
        self.links = [(e.tag, e.get('href') or e.get('src')) for e in self.all if e.get('href') is not None or e.get('src') is not None]

    def of(self, *tags):
        return [e for e in self.all if e.tag in tags]


def words(element):
    return ''.join(element.itertext()).strip()


def form(page):
    """Checks language, title, description, levels of headings, landmarks, skip link, alt texts, sizes, labels of tables, ids, links, scripts."""
    if page.root.get('lang') != 'en' or len(page.of('title')) != 1 or not words(page.of('title')[0]):
        yield 'has no language or no title'
    if not any(e.get('name') == 'description' and 20 <= len(e.get('content') or '') <= 170 for e in page.of('meta')):
        yield 'has no description of 20 to 170 characters'
    if [e.get('href') for e in page.of('a')][:1] != ['#content']:
        yield 'does not begin with a link to its text'
    levels = [int(e.tag[1]) for e in page.of('h1', 'h2', 'h3', 'h4', 'h5', 'h6')]
    if levels.count(1) != 1 or any(b > a + 1 for a, b in zip(levels, levels[1:])):
        yield f'its headings are of levels {levels}'
    if len(page.of('main')) != 1 or len(page.of('header')) != 1 or any(not e.get('aria-label') for e in page.of('nav')):
        yield 'a landmark is missing, or has no name'
    yield from (f'a picture without a text: {e.get("src")}' for e in page.of('img') if not (e.get('alt') or '').strip())
    yield from (f'a picture without width and height: {e.get("src")}' for e in page.of('img') if not (e.get('width') and e.get('height')))
    yield from (f'a cell without the name of its column: {words(td)}' for tr in page.of('tr') for td in tr.findall('td')[1:] if td.get('data-label') is None)
    yield from (f'an equation as code: {words(e)}' for e in page.of('pre') if all(EQUATION.fullmatch(line) for line in words(e).split('\n')))
    yield from (f'a drawing {what}' for svg in page.of('{http://www.w3.org/2000/svg}svg') for what in drawing(svg))
    yield from (f'two elements have the id {i}' for i, n in page.ids.items() if n > 1)
    yield from (f'a link within a link: {words(a)}' for a in page.of('a') if any(e.tag == 'a' for e in list(a.iter())[1:]))
    yield from (f'a link without words to {e.get("href")}' for e in page.of('a') if not words(e) and e.find('img') is None)
    yield from ('a script from a file' for e in page.of('script') if e.get('src'))
    if page.of('script') and page.path != 'search.html':
        yield 'a script'


def drawing(svg):
    """Checks that a picture has a role and a description for screen readers, and letters that can be read."""
    parts = [e.tag.rpartition('}')[2] for e in svg]
    if svg.get('role') != 'img' or 'title' not in parts or 'desc' not in parts or not all(words(e) for e in svg if e.tag.endswith(('}title', '}desc'))):
        yield 'has no role img, title or desc'
    sizes = re.findall(r'font-size[:=]\W*([\d.]+)|\bfont:[\w ]*?([\d.]+)px', ElementTree.tostring(svg, encoding='unicode'))
    yield from (f'has letters of {a or b} px' for a, b in set(sizes) if float(a or b) < LETTER)


def weight(page, out):
    """Checks the bytes of a page with its style and its pictures."""
    parts = {target(page.path, e.get('src'))[0] for e in page.of('img') if ':' not in e.get('src')}
    size = sum(os.path.getsize(os.path.join(out, p)) for p in (page.path, 'style.css', *parts) if os.path.exists(os.path.join(out, p)))
    if size > MOST:
        yield f'has {size} bytes with its pictures; expected at most {MOST}'


def order(page, pages):
    """Checks that a page leads at most once to the next page, and this one back."""
    ways = {rel: [target(page.path, e.get('href'))[0] for e in page.of('a') if e.get('rel') == rel] for rel in ('prev', 'next')}
    back = [target(to, e.get('href'))[0] for to in ways['next'] if to in pages for e in pages[to].of('a') if e.get('rel') == 'prev']
    if max(map(len, ways.values())) > 1 or back != [page.path] * len(ways['next']) or sum(words(e).startswith('Next:') for e in page.of('p', 'span')) != len(ways['next']):
        yield 'has another next page than one that leads back'


def target(page, link):
    path, _, anchor = link.partition('#')
    path = os.path.normpath(os.path.join(os.path.dirname(page), unquote(path))) if path else page
    return path, unquote(anchor)


def dead(page, pages, files):
    """Finds links to other sites, and links without a target."""
    for tag, link in page.links:
        if link == 'data:,':
            continue
        if re.match(r'[a-z]+:|//', link):
            yield f'{tag} to elsewhere: {link}'
            continue
        path, anchor = target(page.path, link)
        if path not in files:
            yield f'leads nowhere: {link}'
        elif anchor and anchor not in (pages[path].ids if path in pages else ()):
            yield f'no such place: {link}'


def listings(page):
    """Finds included files whose text differs from the tree."""
    for e in page.of('figure'):
        if e.get('class') == 'listing':
            path = target(page.path, e.find('figcaption/a').get('href'))[0][:-len('.html')]
            with open(path, encoding='utf-8') as f:
                if words(e.find('div')) != f.read().strip():
                    yield f'shows another {path} than the tree has'


def reached(pages, start):
    seen, todo = set(), [start]
    while todo:
        path = todo.pop()
        if path not in seen:
            seen.add(path)
            todo += [target(path, link)[0] for _, link in pages[path].links if ':' not in link] if path in pages else []
    return seen


def read_site(out):
    files = {os.path.relpath(os.path.join(d, f), out) for d, _, names in os.walk(out) for f in names}
    files = {f for f in files if not f.startswith('shots/')}
    pages = {}
    for f in sorted(f for f in files if f.endswith('.html') and f not in FOREIGN):
        with open(os.path.join(out, f), encoding='utf-8') as text:
            pages[f] = Page(f, text.read())
    return files, pages


def faults(files, pages, out):
    for page in pages.values():
        yield from (f'{page.path}: {what}' for what in [*page.faults, *form(page), *dead(page, pages, files), *listings(page), *weight(page, out), *order(page, pages)])
    for f in sorted(f for f in files if f.endswith('.svg')):
        yield from (f'{f}: {what}' for what in drawing(ElementTree.parse(os.path.join(out, f)).getroot()))
    yield from (f'{f}: no page leads to it' for f in sorted(files - reached(pages, 'index.html')) if not f.startswith('search/'))
    titles = Counter(words(e) for p in pages.values() for e in p.of('title'))
    yield from (f'{n} pages have the title {t}' for t, n in titles.items() if n > 1)


def main(out, what=''):
    files, pages = read_site(out)
    if what == 'anchors':
        print('\n'.join(sorted(e.get('id') for p in pages.values() for e in p.all if (e.get('class') or '') == 'name function')))
        return 0
    said = list(faults(files, pages, out))
    print('\n'.join(said + [f'{len(pages)} pages, {sum(len(p.links) for p in pages.values())} links, {len(said)} faults']))
    return 1 if said or not pages else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
