"""look.py OUT CHROMIUM: checks every page in a browser: light, dark, 360 px wide and on paper, and every SVG, light and dark.
Prints faults, then counts. Exit status 1 after a fault. Writes a screenshot of each view to OUT/shots."""
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

from browser import Browser
from check import FOREIGN

HERE = Path(__file__).parent
MOST = 20                               # faults printed for one page
WAYS = {'light': (1280, 'light', ''), 'dark': (1280, 'dark', ''), 'narrow': (360, 'dark', ''), 'paper': (680, 'light', 'print')}
LANDSCAPE = 1040                        # width of landscape paper; the page of `weft lab` is printed on it


def noises(events):
    """Yields console messages, failed loads and network requests."""
    for e in events:
        p = e.get('params', {})
        if e.get('method') == 'Runtime.exceptionThrown':
            yield 'console: ' + p['exceptionDetails'].get('exception', {}).get('description', 'an error').split('\n')[0]
        elif e.get('method') in ('Runtime.consoleAPICalled', 'Log.entryAdded'):
            yield 'console: ' + str(p.get('entry', p))[:200]
        elif e.get('method') == 'Network.loadingFailed':
            yield 'not loaded: ' + p['errorText']
        elif e.get('method') == 'Network.requestWillBeSent' and not p['request']['url'].startswith(('file:', 'data:')):
            yield 'requests ' + p['request']['url'][:200]


def look_at(browser, out, page, shots):
    """Returns (faults, texts, pictures) of a page in all views, or of an SVG in light and dark."""
    faults, texts, pictures = [], 0, 0
    for way, how in WAYS.items():
        if page.suffix == '.svg' and way not in ('light', 'dark'):
            continue
        browser.look(LANDSCAPE if way == 'paper' and str(page) in FOREIGN else how[0], *how[1:])
        browser.open((out / page).as_uri())
        seen = browser.run((HERE / 'probe.js').read_text())
        said = [*seen['faults'], *noises(browser.events)]
        faults += [f'{page}, {way}: {f}' for f in said[:MOST] + [f'{len(said) - MOST} more'] * (len(said) > MOST)]
        texts, pictures = texts + seen['texts'], pictures + seen['pictures']
        if shots:
            browser.shot(str(shots / f'{str(page)[:-5].replace("/", "-")}-{way}.png'))
    return faults, texts, pictures


def focused(browser):
    return browser.run('(function () { var e = document.activeElement, s = getComputedStyle(e), b = e.getBoundingClientRect();'
                       'return { what: e.className || e.id || e.tagName, seen: b.left >= 0 && b.width > 0 && s.outlineStyle !== "none" }; })()')


def keyboard(browser, out):
    """Checks the Tab key: the first press shows the skip link, which leads to the text; each of 12 presses shows its focus."""
    browser.look(*WAYS['light'])
    browser.open((out / 'index.html').as_uri())
    browser.key('Tab')
    if focused(browser) != {'what': 'skip', 'seen': True}:
        yield f'index.html: the first key Tab leads to {focused(browser)}'
    browser.key('Enter')
    if browser.run('location.hash + document.activeElement.id') != '#contentcontent':
        yield 'index.html: the skip link does not lead to the text'
    browser.open((out / 'index.html').as_uri())
    for i in range(12):
        browser.key('Tab')
        if not focused(browser)['seen']:
            yield f'index.html: key Tab {i + 1} leads to {focused(browser)}, which shows no focus'


def queries():
    """Yields (query, page, greatest place) of queries.txt: "PAGE == QUERY, .." expects the first place, "PAGE = QUERY, .." one of the first three."""
    for line in (HERE / 'queries.txt').read_text().splitlines():
        page, sign, all_queries = re.match('(.*?) (==?) (.*)', line).groups()
        yield from ((query, page, 1 if sign == '==' else 3) for query in all_queries.split(', '))


def search(browser, out):
    """Checks the search: pages of queries.txt, marked words, keys, advice after nonsense."""
    url = (out / 'search.html').as_uri()
    ready = 'new Promise(function (done) { (function look() { /^(The best|No page)/.test(said.textContent) ? done(said.textContent) : setTimeout(look, 20); })(); })'
    for query, page, most in queries():
        browser.open(f'{url}?q={quote(query)}')
        browser.run(ready)
        found = browser.run('Array.from(document.querySelectorAll("#found li > a")).map(function (a) { return a.getAttribute("href").split("#")[0]; })')
        if page not in found[:most]:
            yield f'search.html: {query}: expected {page} among the first {most}; found {found[:4]}'
        if not browser.run('document.querySelectorAll("#found mark").length'):
            yield f'search.html: {query}: no word is marked'
    browser.run('document.getElementById("find").focus()')
    browser.events = []
    for key in ('ArrowDown', 'ArrowDown', 'ArrowUp', 'Enter'):
        browser.key(key)
    browser.wait('Page.frameNavigated')
    if not browser.run('location.href').endswith(found[0]) and f'{found[0]}#' not in browser.run('location.href'):
        yield f'search.html: the keys lead to {browser.run("location.href")}'
    browser.open(url + '?q=zzzz')
    if 'Try one word' not in browser.run(ready):
        yield 'search.html: no advice after an empty result'


def motion(browser, out):
    """Checks that the picture of the first page moves, stops for a pause, and shows only its last frame if the system prefers no motion."""
    still, running = ('document.getAnimations().filter(function (a) { return a.playState === "%s"; }).length' % state for state in ('paused', 'running'))
    place = 'JSON.stringify(Array.from(document.querySelectorAll(".moving g, .moving .pad, .moving .head")).map(function (e) { var b = e.getBoundingClientRect(), s = getComputedStyle(e); return [b.x, b.y, s.opacity]; }))'
    browser.look(*WAYS['light'])
    browser.open((out / 'index.html').as_uri())
    last = browser.run(place)
    if browser.run('document.getAnimations().length'):
        yield 'index.html: moves for those who want no motion'
    browser.look(*WAYS['light'], motion='no-preference')
    browser.open((out / 'index.html').as_uri())
    if browser.run(running) < 80 or browser.run(place) == last:
        yield 'index.html: the picture does not move'
    browser.run('document.getElementById("pause").click()')
    if browser.run(still) < 80 or browser.run(running):
        yield 'index.html: the pause stops nothing'
    browser.run('document.getAnimations().forEach(function (a) { a.finish(); })')
    if browser.run(place) != last:
        yield 'index.html: the last frame is another one than without motion'


def footer(browser, out):
    """Checks that the footer covers no other part of a page at its end."""
    covers = ('(function () { window.scrollTo(0, 1e9); var f = document.querySelector("footer").getBoundingClientRect(); '
              'return ["#ways", "main"].filter(function (s) { var b = document.querySelector(s).getBoundingClientRect(); '
              'return b.left < f.right && f.left < b.right && b.top + 1 < f.bottom && f.top + 1 < b.bottom; }); })()')
    for width in (1280, 1700, 700, 360):
        browser.look(width)
        for page in ('index.html', 'docs/cost.html', 'lessons/04_lstm_step/index.html'):
            if (out / page).exists():
                browser.open((out / page).as_uri())
                if over := browser.run(covers):
                    yield f'{page}, {width} px: the footer covers {over}'


def look_at_all(browser, out, pages, shots):
    faults, texts, pictures = [], 0, 0
    for page in pages:
        more, t, p = look_at(browser, out, page, shots)
        faults, texts, pictures = faults + more, texts + t, pictures + p
    if (out / 'index.html').exists():
        faults += [*keyboard(browser, out), *search(browser, out), *motion(browser, out), *footer(browser, out)]
    return faults, texts, pictures


def main(out, chromium, *only):
    out = Path(out).resolve()
    pages = [Path(p) for p in only] or sorted(p.relative_to(out) for p in out.rglob('*') if p.suffix in ('.html', '.svg'))
    shots = out / 'shots'
    shutil.rmtree(shots, ignore_errors=True)
    shots.mkdir()
    profile = tempfile.mkdtemp()
    browser = Browser(chromium, profile)
    try:
        faults, texts, pictures = look_at_all(browser, out, pages, shots)
    finally:
        browser.close()
        shutil.rmtree(profile, ignore_errors=True)
    drawn = sum(p.suffix == '.svg' for p in pages)
    print('\n'.join(faults + [f'{len(pages) - drawn} pages in {len(WAYS)} ways, {drawn} SVGs in 2, {texts} texts, {pictures} pictures, {len(faults)} faults; shots in {os.path.relpath(shots)}']))
    return 1 if faults or not pages else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
