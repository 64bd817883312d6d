#!/usr/bin/env python3
"""plain.py [--show ROOM]: counts constructions that a reader must decode, per 1,000 words of comments, messages and prose.

Exit status 1 if a room is above its ceiling, if the comment of a public function does not begin with a verb of VERBS, or if a message has
another form. --show lists the finds of a room. CONTRIBUTING.md says how to write instead."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../docs/site'))
import headers                          # noqa: E402
import tree                             # noqa: E402

HABITS = [re.compile(p) for p in (
    r"\b[Ww]hat (?:is|are|was|were|has|have|had|a|an|the|it|they|comes?|lies|stands?|becomes|goes|belongs|follows|remains|holds|fits|does|did|needs|makes?|made|can|may|must|would|will|no|one|each|every|else)\b(?![^.;:]{0,80}\?)",
    r"\b(?:of|by|in|from|to|for|behind|on) (?:which|whom)\b",
    r"(?:^|(?<=[.;:] )|(?<=\* ))Of (?:a|an|the|what|those|two|three|several|n|these|one|each|all|many|its|other)\b",
    r"\b(?:told|tells?|telling|(?:is|are|was|were|be|being) said|says so|hears?)\b",
    r"\b(?:lies|lie|lay|stands?|stood)\b",
    r"\b(?:wants?|wanted|asks? (?:for|of|whether)|is asked|are asked|likes to)\b",
    r", too\b",
    r"\bat once\b",
    r"\b(?:is|are|was|were) (?:none\b|no (?!longer|more\b|less\b|other\b|way\b|need\b)[a-z]+)",
    r"\b(?:so|as) (?:many|few)\b",
    r"[,;:] else\b",
    r"\b(?:but for|besides?|behind)\b",
    r"\b(?:c[ao]mes?|coming|becomes?|made) of\b",
    r"\b(?:nobody|no one|whoever|one's own|of one's)\b",
    r"\b(?:all that|that is all|and so on it)\b",
    r"\b(?:by itself|by themselves|on its own account)\b")]
# "shows what is inside" is an ordinary indirect question.
ASKED = re.compile(r'\b(?:says?|shows?|knows?|explains?|see|decides?|describes?|checks?|prints?|reports?|learn|choose|understand|about|exactly|found|documents?|defines?|lists?|ask) $', re.I)
# The most per 1,000 words of each room.
CEILINGS = {'public headers': 1.5, 'README and docs': 2.0, 'messages': 2.0, 'lessons': 2.5, 'library': 4.0, 'tools, examples, bench': 4.0, 'tests': 6.0}
LIBRARY = ('core/', 'autograd/', 'nn/', 'rnn/', 'io/', 'plan/', 'parallel/', 'cuda/')
VERBS = set('''Adds Applies Averages Begins Calls Changes Checks Closes Computes Converts Copies Counts Declares Divides Draws Ends Exchanges
Fails Finds Fits Forecasts Forgets Frees Freezes Gives Joins Jumps Limits Loads Looks Makes Moves Multiplies Opens Packs Pads Places Plans
Predicts Prints Projects Raises Reads Reduces Releases Reorders Repeats Returns Reverses Rises Rounds Runs Saves Scales Selects Sets Splits
Starts Stores Sums Takes Transforms Turns Updates Waits Walks Writes Zeroes Downsamples Generates'''.split())
COMMENT = re.compile(r'/\*.*?\*/', re.S)
STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
# A message says what was found, then "; expected X", then the way out. It asks nothing. cuda/ has three of the old form.
OTHER_FORM = re.compile(r'\b(?:is|are|was|were) expected\b|\w\?$')


def room(path):
    if re.search(r'(^|/)api_\w+\.h$|^weft\w*\.h$', path):
        return 'public headers'
    if path.startswith('lessons/'):
        return 'lessons'
    if path.endswith(('.md', '.1')):
        return 'README and docs'
    if path.startswith(LIBRARY):
        return 'library'
    return 'tests' if path.startswith('tests/') else 'tools, examples, bench'


def texts(path, raw):
    """(room, text) of a file: its prose, and of C its messages of three words and more."""
    if path.endswith('.md'):
        yield room(path), re.sub(r'\s+', ' ', re.sub(r'`[^`\n]*`', 'X', re.sub(r'```.*?```', ' ', raw, flags=re.S)))
    elif path.endswith(('.py', '.sh', '.mk')) or os.path.basename(path) in ('Makefile', 'run'):
        yield room(path), ' '.join(re.findall(r'(?m)(?:^|\s)#(?!!)\s?(.*)$', raw) + re.findall(r'"""(.*?)"""', raw, re.S))
    else:
        yield room(path), re.sub(r'\s*\n\s*\*{0,2}\s*', ' ', ' . '.join(COMMENT.findall(raw)))
        yield room(path) if room(path) in ('tests', 'lessons') else 'messages', ' . '.join(s for s in STRING.findall(COMMENT.sub(' ', raw)) if len(s.split()) >= 3)


def finds(text):
    for k, habit in enumerate(HABITS):
        for m in habit.finditer(text):
            if k or not ASKED.search(text[:m.start()]):
                yield m


def without_verb():
    for path in tree.public_headers():
        for section in headers.read(path, tree.read(path)).sections:
            for group in section.groups:
                names = [n for s in group.statements for n, kind in s.names if kind == 'function']
                if names and group.comment.split(' ')[0].split('\n')[0] not in VERBS:
                    yield f'{path}: the comment of {names[0]} begins with "{group.comment.split(" ")[0]}", not with a verb of plain.py'


def of_other_form(path, raw):
    if path.endswith(('.c', '.h', '.inc')) and room(path) in ('library', 'tools, examples, bench'):
        for s in STRING.findall(COMMENT.sub(' ', raw)):
            if OTHER_FORM.search(s):
                yield f'{path}: the message "{s}" should say what was found; expected X'


def main(show):
    words, found, bad = {}, {}, list(without_verb())
    for path in subprocess.run(['git', 'ls-files'], capture_output=True, text=True, check=True).stdout.split():
        if '/golden/' in path or not path.endswith(('.c', '.h', '.cu', '.cuh', '.inc', '.def', '.cell', '.cpp', '.md', '.py', '.sh', '.mk', '.1')) and os.path.basename(path) not in ('Makefile', 'run'):
            continue
        with open(path, encoding='utf-8', errors='replace') as f:
            raw = f.read()
            bad += of_other_form(path, raw)
            for place, text in texts(path, raw):
                words[place] = words.get(place, 0) + len(text.split())
                for m in finds(text):
                    found[place] = found.get(place, 0) + 1
                    if place == show:
                        print(f'{path}: ..{text[max(0, m.start() - 40):m.end() + 40]}..')
    for place, ceiling in CEILINGS.items():
        rate = 1000 * found.get(place, 0) / max(words.get(place, 0), 1)
        if rate > ceiling:
            bad.append(f'{place}: {rate:.1f} constructions to decode per 1,000 words ({ceiling}); python3 tests/lint/plain.py --show "{place}"')
    print('\n'.join(bad))
    return bool(bad)


if __name__ == '__main__':
    sys.exit(main(sys.argv[2] if sys.argv[1:2] == ['--show'] else None))
