"""slides.py OUT [CHROMIUM]    writes the slides of each lesson to OUT/NN.html, from lesson.md, expected.txt, picture.svg and teachers.md. With
Chromium it also checks that all slides fit.

A paragraph becomes its first sentence; the rest is a speaker's note. Lists, equations, numbers and pictures are shown whole. A page is one
file without a network: it scrolls from slide to slide, the arrow keys turn, N shows the notes, and each slide prints on a page."""
import glob
import os
import re
import sys
from html import escape

from markdown import markdown

sys.path.append('docs/site')
import text
from browser import Browser
sys.path.append('lessons')

LINES, COLUMNS = 24, 96                 # of the smallest code on a slide
HIGH, WIDE, PICTURE = 560, 1120, 470    # room below the heading, in pixels of a slide of 1280 x 720; a picture leaves room for two lines
STYLE = '''
:root { color-scheme: light dark; --ground: #fff; --ink: #1d2228; --quiet: #59626c; --panel: #f5f7f9; --accent: #a6460b }
@media (prefers-color-scheme: dark) { :root { --ground: #14171a; --ink: #e2e6ea; --quiet: #a3abb3; --panel: #1c2126; --accent: #f0a36b } }
html { font-size: min(calc(100vw / 1280), calc(100vh / 720)); scroll-snap-type: y mandatory; background: var(--ground) }
body { margin: 0; color: var(--ink); font: 28rem/1.4 system-ui, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif }
section { position: relative; box-sizing: border-box; width: 1280rem; height: 100vh; margin: auto; padding: 40rem 80rem; scroll-snap-align: start; overflow: hidden }
h1 { font-size: 56rem; line-height: 1.2; margin: 170rem 0 30rem } h2 { font-size: 38rem; line-height: 1.2; margin: 0 0 24rem; color: var(--accent) }
p, ul, ol { margin: 0 0 20rem } li { margin: 0 0 10rem } a { color: inherit } footer { position: absolute; right: 80rem; bottom: 16rem; font-size: 18rem; color: var(--quiet) }
code, pre { font-family: ui-monospace, "DejaVu Sans Mono", monospace } code { font-size: .88em } pre code { font-size: inherit }
pre { margin: 0 0 20rem; padding: 16rem; background: var(--panel); line-height: 1.35; white-space: pre-wrap; overflow-wrap: anywhere }
svg { display: block; margin: 0 auto; max-width: 100% } .equations p { display: flex; gap: 40rem; flex-wrap: wrap; font-size: 32rem } .equations span { font-size: 26rem }
aside { display: none; position: absolute; inset: auto 0 0 0; max-height: 50%; overflow: auto; padding: 14rem 80rem; background: var(--panel); border-top: 3rem solid var(--accent); font-size: 20rem }
.notes aside { display: block }
@page { size: 1280px 720px; margin: 0 }
@media print { html { font-size: 1px } section { height: 720px; break-after: page } }'''
SCRIPT = '''
addEventListener("keydown", function (e) {
  var all = document.querySelectorAll("section"), now = Math.round(scrollY / innerHeight), turn = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
  if (turn && all[now + turn]) { e.preventDefault(); all[now + turn].scrollIntoView(); }
  if (e.key === "n" || e.key === "N") document.body.classList.toggle("notes");
});'''


def html_of(md):
    return re.sub(r'<a href="(?!https?:)[^"]*">(.*?)</a>', r'\1', markdown(text.fenced(md), extensions=['tables', 'fenced_code', 'sane_lists']), flags=re.S)


def first_sentence(paragraph):
    """Splits a paragraph after its first sentence, or after its second if the first is a question or short."""
    words = ' '.join(paragraph.split())
    ends = [m.end() for m in re.finditer(r'(?<![a-z]\.[a-z])(?<! vs)[.?!:]["*)]*(?= [A-Z(*`\[])', words)]
    end = next((e for e in ends if e > 60 and words[e - 1] != '?'), len(words))
    return words[:end].strip(), words[end:].strip()


def code(lines):
    """Blocks of code with at most LINES lines, cut at an empty line if there is one, each with its size of letters."""
    while lines:
        cut = len(lines)
        if cut > LINES:
            empty = [i for i in range(8, LINES) if not lines[i].strip()]
            cut = empty[-1] if empty else LINES
        now, lines = lines[:cut], lines[cut:]
        while lines and not lines[0].strip():
            lines = lines[1:]
        columns = min(COLUMNS, max(map(len, now)))
        rows = sum(-(-len(line) // COLUMNS) or 1 for line in now)
        size = min(24, (WIDE - 32) / (.605 * columns), (HIGH - 40) / (1.35 * rows))
        yield f'<pre style="font-size: {size:.1f}rem"><code>{escape(chr(10).join(now))}</code></pre>', rows * size * 1.35 + 52


def picture(path, alt):
    """The picture, in parts from top to bottom if it is tall."""
    with open(path) as f:
        svg = re.sub(r'<\?xml[^>]*>|<!--.*?-->|<!DOCTYPE[^>]*>', '', f.read(), flags=re.S).strip()
    width, height = (float(x) for x in re.search(r'<svg[^>]*? width="([\d.]+)" height="([\d.]+)"', svg).groups())
    parts = 1 if height < 1.2 * width else round(height / (.5 * width))
    for i in range(parts):
        top, high = height * i / parts, height / parts
        scale = min(WIDE / width, PICTURE / high, 1.6)
        head = f' width="{width * scale:.0f}" height="{high * scale:.0f}" viewBox="0 {top:g} {width:g} {high:g}"'
        size = f' style="width: {width * scale:.0f}rem; height: {high * scale:.0f}rem"'
        yield re.sub(r' width="[\d.]+" height="[\d.]+" viewBox="[^"]*"', head + size, svg, count=1)


class Slides:
    def __init__(self, folder):
        self.folder, self.slides, self.heading = folder, [], ''

    def open(self, heading=None):
        self.heading = self.heading if heading is None else heading
        self.slides.append({'head': self.heading, 'body': [], 'notes': [], 'room': HIGH})

    def put(self, html, height, notes=''):
        if height > self.slides[-1]['room'] and self.slides[-1]['body']:
            before = self.slides[-1]
            self.open()
            if before['body'][-1].endswith(':</p>') and len(before['body']) > 1:    # it announces this block
                self.slides[-1]['body'].append(before['body'].pop())
                self.slides[-1]['room'] -= 62
        now = self.slides[-1]
        now['body'].append(html)
        now['room'] -= height
        now['notes'] += [notes] if notes else []

    def block(self, md):
        file = re.fullmatch(r'\[[^\]]*\]\(([\w./]+)\)', md.strip())
        image = re.fullmatch(r'!\[([^\]]*)\]\(([\w./]+)\)', md.strip())
        if file and not file[1].endswith('.txt'):
            return
        if file or md.startswith(('```', '    ')):
            converted = not file and text.equations.converted(md)
            if converted:
                return self.put(converted, sum(100 if '/' in line else 62 for line in md.strip().splitlines()) + 20)
            lines = open(f'{self.folder}/{file[1]}').read().rstrip().split('\n') if file else [x[4:] for x in md.rstrip().split('\n')] if md[0] == ' ' else md.strip().split('\n')[1:-1]
            for html, height in code(lines):
                self.put(html, height)
        elif image:
            for html in picture(f'{self.folder}/{image[2]}', image[1]):
                self.put(html, PICTURE)
        elif re.match(r'\|', md):
            self.put(html_of(md), 48 * len(md.splitlines()))
        elif re.match(r'[-*] |\d+\. ', md):
            for item in re.split(r'\n(?=[-*] |\d+\. )', md):
                mark, words = re.match(r'([-*]|\d+\.) +(.*)', item, re.S).groups()
                said, rest = first_sentence(words) if len(words) > 260 else (' '.join(words.split()), '')
                self.put(html_of(f'{mark} {said}'), 40 * (-(-len(said) // 72)) + 14, rest)
        else:
            said, rest = first_sentence(md)
            self.put(html_of(said), 40 * (-(-len(said) // 78)) + 22, rest)


def blocks_of(md):
    """Splits Markdown into paragraphs, lists and blocks of code."""
    blocks, kind = [], ''
    for line in md.split('\n'):
        if kind == 'fence' or line.startswith('```'):
            new, now = kind != 'fence', '' if kind == 'fence' and line == '```' else 'fence'
        elif line.startswith('    ') and kind in ('', 'code'):
            new, now = kind != 'code' or not blocks, 'code'
        elif not line.strip():
            new, now = False, kind if kind == 'code' else ''
        else:
            new, now = kind in ('', 'code'), 'text'
        if new:
            blocks.append('')
        if blocks:
            blocks[-1] += line + '\n'
        kind = now
    return [b.rstrip() for b in blocks if b.strip()]


def lesson_slides(folder, notes):
    s = Slides(folder)
    title, *sections = re.split(r'^## ', re.sub(r'\nNext:.*\Z', '', open(f'{folder}/lesson.md').read(), flags=re.S), flags=re.M)
    name, _, rest = title.partition('\n')
    name, question = name[2:].strip(), re.search(r'\*([^*]+)\*\s*', rest)
    rest = rest.replace(question[0], '', 1)
    s.open('')
    s.put(f'<h1>{escape(name)}</h1>{html_of(question[1])}', HIGH, notes)
    s.open('Goals')
    for md in blocks_of(rest):
        s.block(md)
    for section in sections:
        heading, _, rest = section.partition('\n')
        s.open(heading.strip())
        for md in blocks_of(rest):
            s.block(md)
    return name, [x for x in s.slides if x['body']]


def page(name, slides):
    out = [f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(name)}</title>'
           f'<style>{STYLE}</style><script>{SCRIPT}</script></head><body>']
    for i, slide in enumerate(slides):
        head = f'<h2>{html_of(slide["head"])[3:-4]}</h2>' if slide['head'] else ''
        body = re.sub(r'</ul>\s*<ul>', '', '\n'.join(slide['body']))
        body = re.sub(r'<ol>\s*<li>', '<ol><li>', re.sub(r'</ol>\s*<ol[^>]*>', '', body))
        notes = f'<aside>{"".join(html_of(n) for n in slide["notes"])}</aside>' if slide['notes'] else ''
        out.append(f'<section>{head}{body}<footer>{i + 1} / {len(slides)}</footer>{notes}</section>')
    return '\n'.join(out) + '</body></html>\n'


def overflows(browser, file):
    """Returns the numbers of the slides whose contents do not fit, in a window of 1280 x 720."""
    browser.look(1280, height=720)
    browser.open('file://' + os.path.abspath(file))
    return browser.run("""[...document.querySelectorAll("section")].flatMap((s, i) => [...s.children].some(e => e.tagName !== "ASIDE" &&
        (e.getBoundingClientRect().bottom > s.getBoundingClientRect().bottom || e.scrollWidth > 1200)) ? [i + 1] : [])""")


def main(to, chromium=None):
    os.makedirs(to, exist_ok=True)
    notes = dict(re.findall(r'^\| (\d+)\. [^|]*\| ([^\n]*) \|$', open('lessons/teachers.md').read(), re.M))
    browser = Browser(chromium, f'{to}/profile') if chromium else None
    count = faults = 0
    for folder in sorted(glob.glob('lessons/[0-9][0-9]_*')):
        number = os.path.basename(folder)[:2]
        requires, _, fail = notes.get(str(int(number)), '').partition(' | ')
        name, slides = lesson_slides(folder, f'Requires {requires}.\n\n{fail}' if requires else '')
        html, file = page(name, slides), f'{to}/{number}.html'
        with open(file + '.new', 'w') as f:
            f.write(html)
        os.replace(file + '.new', file)
        count += len(slides)
        lost = [line for line in open(f'{folder}/expected.txt').read().split('\n') if escape(line) not in html]
        bad = [f'{file}: does not contain: {line}' for line in lost] + [f'{file}: larger than 100 kB'] * (len(html.encode()) > 100000)
        bad += [f'{file}: slide {n} does not fit' for n in (overflows(browser, file) if browser else [])]
        print('\n'.join(bad), end='\n' * bool(bad))
        faults += len(bad)
    if browser:
        browser.close()
    print(f'slides: {count} in {to}, {faults} faults' + ('' if browser else '; not measured: no Chromium'))
    return faults > 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
