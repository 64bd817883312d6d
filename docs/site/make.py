"""make.py OUT [LAB]: writes the site of the current tree to the folder OUT, after emptying it. LAB: a page of `weft lab` to include."""
import os
import re
import shutil
import sys

import code
import frame
import headers
import index
import moving
import reference
import tree
from text import Text

HERE = os.path.dirname(os.path.abspath(__file__))
LANDING = 'docs/site/landing.md'
SPECIAL, SPECIAL_TITLE = 'docs/api_special.html', 'Names of special headers'


class Site:
    def __init__(self, out, lab):
        self.out, self.lab, self.there = out, lab, tree.files()
        self.headers = [headers.read(h, tree.read(h)) for h in tree.public_headers()]
        self.kinds = {n: k for h in self.headers for n, k in reference.names_of(h).items()}
        self.names = {n: to for n, (_, to) in self.kinds.items() if n != 'weft'}
        self.texts = {p: Text(p, self.there) for _, paths in tree.chapters(self.there) for p in paths}
        self.texts |= {path: Text(path, self.there) for path in (LANDING, 'docs/api.md')}
        self.texts['README.md'].title = 'weft at a glance'
        self.version = '.'.join(re.findall(r'define WEFT_VERSION_\w+ +(\d+)', tree.read('core/api_core.h')))
        self.written, self.index = 0, index.Index()
        self.chapters = self.make_chapters()

    def make_chapters(self):
        """Returns (title, [(page, its name in the list of pages)]) for each chapter."""
        out = [(title, [(tree.page_of(p), self.texts[p].title) for p in paths if p in self.texts]) for title, paths in tree.chapters(self.there)]
        out[0][1].insert(0, ('index.html', 'Home'))
        if self.lab:
            out[2][1].append(('docs/laboratory/index.html', 'A page of the laboratory'))
        out[3][1].insert(0, ('docs/design/index.html', 'Design decisions'))
        api = [('docs/api.html', 'Names in other libraries'), (SPECIAL, SPECIAL_TITLE)] + [(tree.header_page(h.path), os.path.basename(h.path)) for h in self.headers]
        return out + [('Reference', [('api/index.html', 'All headers')] + api + [('names.html', 'Index of names'), ('search.html', 'Search')])]

    def put(self, path, text):
        path = os.path.join(self.out, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)

    def copy(self, path, to=None):
        path_to = os.path.join(self.out, to or path)
        os.makedirs(os.path.dirname(path_to), exist_ok=True)
        shutil.copyfile(path, path_to)

    def page(self, page, title, html, headings=(), kind=''):
        html = code.link_names(code.slim(html), page, self.names)
        self.put(page, frame.whole(page, title, html, headings, self.chapters, self.version, kind))
        self.written += 1

    def write_texts(self):
        sources = set()
        for text in self.texts.values():
            html = landing(text.html) if text.path == LANDING else text.html
            if text.path == 'docs/api.md':
                html = self.write_special(html)
            self.index.add_text(text.page, text.title, html)
            self.page(text.page, text.title, html, [h for h in text.headings if f'id="{h[1]}"' in html])
            sources.update(text.sources)
            for path, about in text.pictures:
                if path in self.there:
                    self.put(path, described(tree.read(path), about))
        for path in sorted(sources):
            if path in self.there:
                html = f'<h1 class="path">{path}</h1>\n' + code.block(code.coloured(tree.read(path).rstrip(), path))
                self.page(tree.page_of(path), path, html, kind='source')

    def write_special(self, html):
        """Moves the tables of all headers except weft.h to a page of their own, since one page would be too long. Returns the rest."""
        begin, end = (html.index(f'<h2 id="{where}"') for where in ('weft_oph', 'names-that-you-may-look-for'))
        names = re.findall(r'<h2 id="(weft_\w+)">.*?>(weft_\w+\.h)<', html[begin:end])
        self.page(SPECIAL, SPECIAL_TITLE, f'<h1>{SPECIAL_TITLE}</h1>\n' + html[begin:end], [(1, '', SPECIAL_TITLE)] + [(2, where, words) for where, words in names])
        return html[:begin] + html[end:]

    def write_design(self):
        rows = ''.join(f'<li><a href="{os.path.basename(p)}">{t}</a></li>\n' for p, t in self.chapters[3][1][1:])
        html = f'<h1>Design decisions</h1>\n<p>Each page gives one decision, the alternatives and the measurements.</p>\n<ul>\n{rows}</ul>\n'
        self.page('docs/design/index.html', 'Design decisions', html, [(1, '', 'Design decisions')])

    def write_reference(self):
        for h in self.headers:
            title, html, headings = reference.header_html(h, self.names)
            self.page(tree.header_page(h.path), title, html, headings, 'api')
            self.index.add_header(tree.header_page(h.path), h, title)
        html = '<h1>All headers</h1>\n' + reference.overview(self.headers, 'api/index.html')
        self.page('api/index.html', 'All headers', html, [(1, '', 'All headers')])
        html = '<h1>Index of names</h1>\n' + reference.index(self.kinds, 'names.html')
        self.page('names.html', 'Index of names', html, [(1, '', 'Index of names')])

    def write_search(self):
        """Writes the page of the search and its index."""
        script = tree.read(os.path.join(HERE, 'search.js'))
        html = (f'<h1>Search</h1>\n<p id="said" role="status">Words, or names of weft or PyTorch.</p>\n'
                f'<noscript><p>The search needs a script. The <a href="names.html">index of names</a> needs none.</p></noscript>\n<ul id="found"></ul>\n<script>/*<![CDATA[*/\n{script}/*]]>*/</script>')
        self.page('search.html', 'Search', html)
        self.index.write(self.put)

    def write(self):
        shutil.rmtree(self.out, ignore_errors=True)
        self.copy(os.path.join(HERE, 'style.css'), 'style.css')
        if self.lab:
            self.copy(self.lab, 'docs/laboratory/index.html')
        self.write_texts()
        self.write_design()
        self.write_reference()
        self.write_search()
        functions = sum(kind == 'function' for kind, _ in self.kinds.values())
        print(f'{self.written} pages, {len(tree.lessons(self.there))} lessons, {functions} functions, {len(self.kinds)} names: {self.out}/index.html')


def described(svg, about):
    """Returns a picture with a role and the words of its page, for screen readers."""
    return re.sub(r'<svg (.*?<title>.*?</title>)', lambda m: f'<svg role="img" {m[1]}<desc>{about}</desc>', svg, count=1, flags=re.S)


def landing(html):
    """Returns the front page with the moving picture of the batch of docs/lab.md, and with a cost from the tables of docs/performance.md."""
    lab = tree.read('docs/lab.md')
    picture, used = moving.packing([int(n) for n in re.search(r'lengths\[\] = \{ ([\d, ]+) \}', lab)[1].split(',')])
    if '%d of %d cells' % used not in lab:
        raise SystemExit(f'docs/lab.md: expected "{used[0]} of {used[1]} cells", as its lengths give')
    row = re.search(r'^\| lstm \| 256 \|(.*)\|$', tree.read('docs/performance.md'), re.M)[1].split(' | ')
    ours, theirs = float(row[2]), min(map(float, row[3:5]))
    pause = '<input type="checkbox" id="pause" /> <label for="pause">Pause</label>\n'
    return (html.replace('<p>PACKING</p>', f'<figure class="packing">{pause}{picture}</figure>')
            .replace('COST', f'{ours:.0f} ms with weft and {theirs:.0f} ms with PyTorch,'))


if __name__ == '__main__':
    Site(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None).write()
