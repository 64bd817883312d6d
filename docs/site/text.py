"""text.py - converts Markdown to HTML: includes the files of lessons, links pages of the site, adds sizes to pictures."""
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

ALONE = re.compile(r'^\[[^\]]*\]\(([\w./]+\.(?:c|h|txt))\)$', re.M)


def slug(text, _):
    """Returns the anchor that GitHub makes for a heading."""
    return re.sub(r'[^\w\- ]', '', text.strip().lower()).replace(' ', '-')


def fenced(text):
    """Turns indented blocks into equations, or fences them: Markdown would make one after a list a part of the list."""
    pattern = re.compile(r'(?:(?<=\n\n)|\A)((?: {4}.*\n|\n(?= {4}))+)')
    parts = re.split(r'(^```.*?^```$)', text, flags=re.M | re.S)
    for i in range(0, len(parts), 2):
        parts[i] = pattern.sub(lambda m: equations.converted(m[1]) or '```text\n' + re.sub(r'^ {4}', '', m[1], flags=re.M).rstrip('\n') + '\n```\n', parts[i])
    return ''.join(parts)


class Text:
    """A converted file: html, title, headings [(level, id, words)], and sources, the files of the tree that it links."""

    def __init__(self, path, there):
        self.path, self.page, self.there = path, page_of(path), there
        self.folder, self.sources, self.pictures = os.path.dirname(path), [], []
        md = Markdown(output_format='xhtml', extensions=['tables', 'fenced_code', 'sane_lists', TocExtension(slugify=slug, anchorlink=True),
                      CodeHiliteExtension(css_class='code', guess_lang=False)])
        html = md.convert(fenced(ALONE.sub(r'FILE(\1)', read(path))))
        self.headings = [h for top in md.toc_tokens for h in flat(top)]
        if [level for level, _, _ in self.headings][:1] != [1]:
            raise SystemExit(f'{path}: expected a heading of level 1 first')
        self.title = self.headings[0][2]
        html = re.sub(r'<p>FILE\((.*?)\)</p>', self.file, html)
        html = re.sub(r'<p>(<img [^>]*/>)</p>', r'<figure class="picture">\1</figure>', html)
        html = re.sub(r'<img alt="([^"]*)" src="([^"]*)" />', self.picture, html)
        html = re.sub(r'<a href="([^"#:]+)(#[^"]*)?">', self.link, html)
        self.html = re.sub(r'<table>.*?</table>', cards, html, flags=re.S)

    def file(self, match):
        path = os.path.normpath(os.path.join(self.folder, match.group(1)))
        if path not in self.there:
            return f'<p><a href="{match.group(1)}">{match.group(1)}</a></p>'
        self.sources.append(path)
        return code.listing(path, read(path), './' + relative(self.page, page_of(path)))

    def picture(self, match):
        alt, src = match.groups()
        path = os.path.normpath(os.path.join(self.folder, src))
        self.pictures.append((path, alt))
        size = re.search(r'<svg [^>]*?width="([\d.]+)" height="([\d.]+)"', read(path)) if path in self.there and path.endswith('.svg') else None
        least = f'width="{size[1]}" height="{size[2]}" style="--width: {size[1]}px" ' if size else ''    # style.css makes a smallest width of it
        return f'<a href="{src}"><img alt="{alt}" src="{src}" {least}/></a>'

    def link(self, match):
        """Links a file of the tree to its page. Pictures and dead links stay as they are; check.py reports dead links."""
        to, anchor = match.group(1), match.group(2) or ''
        path = os.path.normpath(os.path.join(self.folder, to))
        if to.startswith('./') or path.endswith('.svg'):
            return match.group()
        folder = path + '/README.md'
        if folder in self.there or path == 'docs/design':
            path = folder
        elif path in self.there and not path.endswith('.md'):
            self.sources.append(path)
        return f'<a href="{escape(relative(self.page, page_of(path) + anchor))}">'


def cards(match):
    """Labels the cells of a table with their column: style.css shows a row as a card on a narrow screen, with its first cell as the title."""
    heads = [escape(re.sub(r'<[^>]*>', '', h)) for h in re.findall(r'<th[^>]*>(.*?)</th>', match.group())]
    rows = match.group().split('<tr>')
    for i, row in enumerate(rows):
        cells = row.split('<td')
        rows[i] = '<td'.join(cells[:2] + [f' data-label="{head}"{cell}' for head, cell in zip(heads[1:], cells[2:])])
    return f'<div class="table">{"<tr>".join(rows)}</div>'


def flat(token):
    """Flattens a tree of headings to [(level, id, words)]."""
    words = re.sub(r'<[^>]*>', '', token['name'])
    return [(token['level'], token['id'], words)] + [h for child in token['children'] for h in flat(child)]
