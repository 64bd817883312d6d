#!/usr/bin/env python3
"""tagger_crfsuite.py - tags the stress of words by crfsuite, with features of a window, on the parts of examples/tagger.c.

    tagger_crfsuite.py [--test] [--iterations N] WORDS        WORDS is a file of `tagger --write`

Features: phones up to four places away and their pairs and triples; the vowels around; the number of the vowel from both ends and of all
vowels. Training: L-BFGS, c2 = 1. Tags: see examples/tagger.c. The first row stresses the first vowel only.
"""
import argparse
import os
import tempfile
import time

import pycrfsuite


def read(path):
    parts = {"train": [], "dev": [], "test": []}
    with open(path) as f:
        for line in f:
            part, _, *pairs = line.split()
            phones, marks = zip(*(p.split(":") for p in pairs))
            parts[part].append((phones, list(map(int, marks))))
    return parts


def features(phones, vowels):
    wide = ["<"] * 4 + list(phones) + [">"] * 4
    at = [t for t, vowel in enumerate(vowels) if vowel]
    around = ["<"] * 3 + [phones[t] for t in at] + [">"] * 3
    before, out = 0, []
    for t, vowel in enumerate(vowels):
        row = [f"{k}={wide[t + 4 + k]}" for k in range(-4, 5)]
        row += [f"{k},{n}={'_'.join(wide[t + 4 + k:t + 4 + k + n])}" for n in (2, 3) for k in range(-3, 4 - n + 1)]
        after = len(at) - before - vowel
        row += [f"vowel={vowel}", f"from={vowel},{before}", f"to={vowel},{after}", f"of={vowel},{before},{len(at)}"]
        if vowel:
            row += [f"v{k}={around[before + 3 + k]}" for k in (-3, -2, -1, 1, 2, 3)]
            row += [f"v{k}+={around[before + 3 + k]}_{around[before + 4 + k]},{before},{after}" for k in (-1, 0)]
            row += [f"ending={'_'.join(phones[t:])}" if after < 3 else "far", f"here={phones[t]},{before},{after}"]
        before += vowel
        out.append(row)
    return out


def tags_of(marks, memory):
    last, seen, out = 0, False, []
    for mark in marks:
        last = mark - 1 if mark else last
        seen |= last == 1
        out.append(f"{mark},{last},{seen}" if memory else str(mark))
    return out


def scores(found, part):
    pairs = [(a, b) for f, (_, marks) in zip(found, part) for a, b in zip(f, marks) if b]
    return 100 * sum(a == b for a, b in pairs) / len(pairs), 100 * sum(f == marks for f, (_, marks) in zip(found, part)) / len(part)


def first_vowel(part):
    return [[m and 1 + (not any(marks[:t])) for t, m in enumerate(marks)] for _, marks in part]


def show(name, found, parts, judged, seconds):
    print(f"{name:24}" + "".join("  {:6.2f} {:6.2f}".format(*scores(found(parts[p]), parts[p])) for p in judged) + f"  {seconds:5.0f}", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("words")
    p.add_argument("--test", action="store_true")
    p.add_argument("--iterations", type=int, default=100)
    args = p.parse_args()
    parts, judged = read(args.words), ["dev", "test"] if args.test else ["dev"]
    items = {part: [pycrfsuite.ItemSequence(features(phones, [m > 0 for m in marks])) for phones, marks in parts[part]] for part in ["train", *judged]}
    show("rule: first vowel", first_vowel, parts, judged, 0)
    for memory in False, True:
        trainer = pycrfsuite.Trainer(verbose=False)
        for x, (_, marks) in zip(items["train"], parts["train"]):
            trainer.append(x, tags_of(marks, memory))
        trainer.set_params({"c2": 1.0, "max_iterations": args.iterations})
        with tempfile.TemporaryDirectory() as folder:
            begin = time.process_time()
            trainer.train(os.path.join(folder, "model"))
            spent, tagger = time.process_time() - begin, pycrfsuite.Tagger()
            tagger.open(os.path.join(folder, "model"))
        known = {id(parts[p]): items[p] for p in judged}
        show(f"crfsuite, {'memory' if memory else 'plain'} tags", lambda part: [[int(tag[0]) for tag in tagger.tag(x)] for x in known[id(part)]], parts, judged, spent)


main()
