"""Markdown as HTML: the files of a lesson put in, links to files of the tree as links to pages, pictures with their size."""
import os
import re
import sys
from html import escape

from markdown import Markdown
from markdown.extensions.codehilite import CodeHiliteExtension
from markdown.extensions.toc import TocExtension

import code
from tree import page_of, read, relative
sys.path.append('lessons')
import equations

LEAST = .75                             # of its size a picture has always, up to 760 px: where that is not there it is moved sideways
ALONE = re.compile(r'^\[[^\]]*\]\(([\w./]+\.(?:c|h|txt))\)$', re.M)


def slug(text, _):
    """As GitHub makes it."""
    return re.sub(r'[^\w\- ]', '', text.strip().lower()).replace(' ', '-')


def fenced(text):
    """Indented blocks become equations, or get fences: Markdown would take one after a list for a part of the list."""
    pattern = re.compile(r'(?:(?<=\n\n)|\A)((?: {4}.*\n|\n(?= {4}))+)')
    parts = re.split(r'(^```.*?^```$)', text, flags=re.M | re.S)
    for i in range(0, len(parts), 2):
        parts[i] = pattern.sub(lambda m: equations.converted(m[1]) or '```text\n' + re.sub(r'^ {4}', '', m[1], flags=re.M).rstrip('\n') + '\n```\n', parts[i])
    return ''.join(parts)


class Text:
    """One file's way to a page: html, title, headings [(level, id, words)], and which files of the tree it links to."""

    def __init__(self, path, there):
        self.path, self.page, self.there = path, page_of(path), there
        self.folder, self.sources, self.pictures = os.path.dirname(path), [], []
        md = Markdown(output_format='xhtml', extensions=['tables', 'fenced_code', 'sane_lists', TocExtension(slugify=slug, anchorlink=True),
                      CodeHiliteExtension(css_class='code', guess_lang=False)])
        html = md.convert(fenced(ALONE.sub(r'FILE(\1)', read(path))))
        self.headings = [h for top in md.toc_tokens for h in flat(top)]
        if [level for level, _, _ in self.headings][:1] != [1]:
            raise SystemExit(f'{path}: it does not begin with a heading of level 1')
        self.title = self.headings[0][2]
        html = re.sub(r'<p>FILE\((.*?)\)</p>', self.file, html)
        html = re.sub(r'<p>(<img [^>]*/>)</p>', r'<figure class="picture">\1</figure>', html)
        html = re.sub(r'<img alt="([^"]*)" src="([^"]*)" />', self.picture, html)
        html = re.sub(r'<a href="([^"#:]+)(#[^"]*)?">', self.link, html)
        self.html = re.sub(r'(<table>.*?</table>)', r'<div class="table">\1</div>', html, flags=re.S)

    def file(self, match):
        path = os.path.normpath(os.path.join(self.folder, match.group(1)))
        if path not in self.there:
            return f'<p><a href="{match.group(1)}">{match.group(1)}</a></p>'
        self.sources.append(path)
        return code.listing(path, read(path), './' + relative(self.page, page_of(path)))

    def picture(self, match):
        alt, src = match.groups()
        path = os.path.normpath(os.path.join(self.folder, src))
        self.pictures.append(path)
        size = re.search(r'<svg [^>]*?width="([\d.]+)" height="([\d.]+)"', read(path)) if path in self.there and path.endswith('.svg') else None
        least = f'width="{size[1]}" height="{size[2]}" style="min-width: {min(float(size[1]) * LEAST, 760):.0f}px" ' if size else ''
        return f'<a href="{src}"><img alt="{alt}" src="{src}" {least}/></a>'

    def link(self, match):
        """What is in the tree has a page, but for pictures; what is not stays as it is, for the check to find."""
        to, anchor = match.group(1), match.group(2) or ''
        path = os.path.normpath(os.path.join(self.folder, to))
        if path.endswith('.png'):
            self.pictures.append(path)
        if to.startswith('./') or path.endswith(('.svg', '.png')):
            return match.group()
        folder = path + '/README.md'
        if folder in self.there or path == 'docs/design':
            path = folder
        elif path in self.there and not path.endswith('.md'):
            self.sources.append(path)
        return f'<a href="{escape(relative(self.page, page_of(path) + anchor))}">'


def flat(token):
    """The headings of a tree of them, by level, id and words."""
    words = re.sub(r'<[^>]*>', '', token['name'])
    return [(token['level'], token['id'], words)] + [h for child in token['children'] for h in flat(child)]
