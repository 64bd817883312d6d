"""tree.py - decides which files of the tree become pages, and their paths. A page has the path of its source."""
import os
import re

# The headers that programs include.
LEVELS = ('weft.h', 'weft_op.h', 'weft_sequence.h', 'weft_plan.h', 'weft_lab.h', 'weft_forecast.h',
          'weft_parallel.h', 'weft_plot.h', 'weft_onnx.h')
GUIDES = ('docs/tutorial.md', 'docs/glossary.md', 'docs/conventions.md', 'docs/cells.md', 'docs/linear.md', 'docs/planners.md', 'docs/lab.md', 'docs/cost.md',
          'docs/performance.md', 'docs/growth.md', 'docs/forecast.md', 'docs/g2p.md', 'docs/drop_in.md', 'examples/python/README.md')


def read(path):
    with open(path, encoding='utf-8') as f:
        return f.read()


def files():
    """Returns all files of the tree except builds and hidden files."""
    out = []
    for folder, inside, names in os.walk('.'):
        inside[:] = [d for d in inside if d[0] != '.' and d not in ('build', '__pycache__')]
        out += [os.path.relpath(os.path.join(folder, n), '.') for n in names]
    return sorted(out)


def lessons(there):
    return [f for f in there if re.match(r'lessons/\d\d_\w+/lesson\.md$', f)]


def chapters(there):
    """Returns (title, its Markdown files) for each chapter, in reading order."""
    design = [f for f in there if re.match(r'docs/design/\w+\.md$', f)]
    guides = [f for f in GUIDES if f in there]
    more = [f for f in there if re.match(r'docs/\w+\.md$', f) and f not in guides and f != 'docs/api.md']
    return [('', [f for f in ('README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'SECURITY.md') if f in there]), ('Lessons', [f for f in ('lessons/README.md', *lessons(there), 'lessons/teachers.md') if f in there]), ('Guides', guides + more), ('Design', design)]


def page_of(path):
    """Returns the path of the page of a file."""
    if path in ('README.md', 'docs/site/landing.md'):
        return 'readme.html' if path == 'README.md' else 'index.html'
    if path.endswith('/README.md') or path.endswith('/lesson.md'):
        return os.path.dirname(path) + '/index.html'
    return re.sub(r'\.md$', '', path) + '.html'


def public_headers(levels=LEVELS):
    """Returns the headers that the levels include, in order."""
    return [h for f in levels for h in re.findall(r'^#include "(.*/.*)"', read(f), re.M)]


def header_page(path):
    return 'api/' + os.path.basename(path)[:-2] + '.html'


def relative(page, to):
    """Returns the link from `page` to `to`, a page or file of the site with or without #anchor."""
    path, mark, anchor = to.partition('#')
    return (os.path.relpath(path, os.path.dirname(page) or '.') if path != page or not mark else '') + mark + anchor
