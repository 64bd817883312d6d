"""index.py - writes the index of the search: search/index.js, which has the words of each page, and search/N.js, the text of page N. search.js
loads them as scripts, since a page opened as a file may not fetch. A place is a section of a page or a declaration of the reference."""
import json
import re
from collections import defaultdict
from html import unescape

import tree
from api import END, PAGE, sentences

STEM = '(?<=[a-z0-9]{3})(ings?|ers?|ed|es|e|s)$'        # search.js uses it also
ALPHABET = ''.join(chr(c) for c in range(35, 127) if c != 92) + ''.join(chr(c) for c in range(192, 500))
COMMON = .7                             # a word in more of the pages than that says nothing
SYNONYMS = 'docs/site/synonyms.txt'


def plain(html):
    html = re.sub(r'(<pre>.*?</pre>)|\n', lambda m: m[1] or ' ', html, flags=re.S)
    html = re.sub(r'<figure class="listing">.*?</figure>|<math.*?</math>|<svg.*?</svg>|<(?:details|nav).*?</(?:details|nav)>', ' ', html, flags=re.S)
    text = unescape(re.sub(r'<[^>]*>', '', re.sub(r'</?(?:p|li|t[dhr]|pre|h\d|div)\b[^>]*>', '\n', html)))
    return re.sub(r'\s*\n\s*', '\n', text).strip()


def words(text):
    """Splits a text as search.js does: PackedSequence and packed_sequence are two words."""
    return re.findall('[a-z0-9]+', re.sub('([a-z])([A-Z])', r'\1 \2', text).lower().replace('iz', 'is'))


def stem(word):
    return re.sub(r'([bdgmnprt])\1$', r'\1', re.sub(STEM, '', word))


class Index:
    def __init__(self):
        self.pages, self.texts = [], []

    def add(self, page, title, places):
        """Adds a page. places: [(anchor, heading or names, names in other libraries, text)]"""
        self.pages.append((page, title))
        self.texts.append(places)

    def add_text(self, page, title, html):
        parts = re.split(r'(?=<h[1-3] id=")', html)
        heads = [re.match(r'<h\d id="([^"]*)">(.*?)</h\d>(.*)', p, re.S) for p in parts]
        if page == 'docs/api.html':     # its tables are the reference once more
            heads = [h for h in heads if h and not h[1].startswith('weft')]
        self.add(page, title, [(h[1], plain(h[2]), '', plain(h[3])) for h in heads if h])

    def add_header(self, page, header, title):
        places = [('', title, '', ' '.join([header.title, header.about]))]
        for section in header.sections:
            for group in section.groups:
                names = [n for s in group.statements for n, kind in s.names]
                like, _ = sentences(group.comment)
                behind = ' '.join(s.behind for s in group.statements)
                if names:
                    places.append((names[0], ' '.join(names), like, f'{section.title}\n' + re.sub(r'^(?! )(.*)\n(?! )', r'\1 ', f'{group.comment} {behind}', flags=re.M).strip()))
        self.add(page, title, places)

    def places(self):
        """Yields (phrase, page, place) of the list of synonyms, and of the last table of docs/api.md: names elsewhere, and a name of weft."""
        where = {f'{page}#{anchor}' if i else page: (n, i) for n, (page, _) in enumerate(self.pages) for i, (anchor, *_) in enumerate(self.texts[n])}
        where |= {name: (n, i) for n, places in enumerate(self.texts) for i, place in enumerate(places) for name in place[1].split() if name.startswith('weft_')}
        rows = re.findall(r'^\| (`.*`) \| [^|]*?`(weft_\w+)', tree.read(PAGE).partition(END)[2], re.M)
        lines = [','.join(re.findall('`(.*?)`', names)) + ' = ' + to for names, to in rows] + tree.read(SYNONYMS).splitlines()
        for line in lines:
            phrases, _, to = line.rpartition(' = ')
            if to not in where:
                raise SystemExit(f'{SYNONYMS}: expected a page, a page#place or a name; found "{line}"')
            yield from ((' '.join(stem(w) for w in words(p) if w not in ('torch', 'weft')), *where[to]) for p in phrases.split(','))

    def terms(self):
        """Returns a line for each word: letters that it shares with the word before, its other letters, pages with it in headings, in texts."""
        found = defaultdict(lambda: (set(), set()))
        for n, places in enumerate(self.texts):
            for _, head, like, text in places:
                for where, part in ((0, f'{head} {like} {self.pages[n][1]}'), (1, text)):
                    for word in words(part):
                        found[stem(word)][where].add(n)
        lines, last = [], ''
        for term, (heads, texts) in sorted(found.items()):
            if len(heads | texts) > COMMON * len(self.pages) or len(term) > 24 or term.isdigit() and len(term) > 4:
                continue
            shared = next((i for i, (a, b) in enumerate(zip(term, last)) if a != b), min(len(term), len(last)))
            pages = [''.join(ALPHABET[n] for n in sorted(part)) for part in (heads, texts - heads)]
            lines.append(f'{ALPHABET[shared]}{term[shared:]} {" ".join(pages)}'.rstrip())
            last = term
        return '\n'.join(lines)

    def write(self, put):
        everything = {'stem': STEM, 'alphabet': ALPHABET[:len(self.pages)], 'pages': self.pages, 'places': list(self.places()), 'terms': self.terms()}
        put('search/index.js', f'weft_index({json.dumps(everything, ensure_ascii=False)});\n')
        for n, places in enumerate(self.texts):
            put(f'search/{n}.js', f'weft_text({n}, {json.dumps(places, ensure_ascii=False)});\n')
