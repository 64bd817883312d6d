#!/usr/bin/env python3
"""lesson_class.py LESSONS CLASS STUDENTS: makes a class of answers in CLASS, the same each time.

Of 100 answers some 62 are right, with other names and another layout in each file. The others are wrong
answers of wrong.txt, empty exercises, crashes, endless loops, texts that do not compile, missing files and
files of a wrong name. Writes CLASS.expected: student, lesson and right, a verdict's part, or "-"."""
import pathlib
import random
import re
import subprocess
import sys

lessons, of_class, students = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
kinds = ["right"] * 62 + ["wrong"] * 18 + ["start"] * 8 + ["missing"] * 5 + ["misnamed"] * 2 + ["crash"] * 2
kinds += ["garbage"] * 2 + ["loop"]
draw = random.Random(46)


def rewritten(text, student):
    """Renames the variables of one letter, indents differently and adds comments."""
    text = re.sub(r"(?<![\w.>%\\'])([ijkts])(?![\w'])", rf"\1_{student}", text)
    text = re.sub(r"(?m)^( +)", lambda m: m[1].replace("    ", draw.choice(["  ", "\t", "   "])), text)
    return re.sub(r"(?m)^}", f"}} /* {student} */\n", text)


def broken(solution, kind):
    code = {"crash": "*(volatile int *)8 = 1;", "loop": "for (volatile int q = 0;; q = 0) ;", "garbage": "return x"}
    begin = re.search(r"(?m)^\w[^;{}#]*\)\n\{\n", solution).end()
    return solution[:begin] + "    " + code[kind] + "\n" + solution[begin:]


of_class.mkdir(parents=True, exist_ok=True)
with open(f"{of_class}.expected", "w") as expected:
    for folder in sorted(lessons.glob("[0-9][0-9]_*")):
        n, made = folder.name[:2], of_class.with_name("answers") / folder.name
        subprocess.run(["bash", lessons / "lesson.sh", "answers", n, made], check=True)
        wrong = sorted(made.glob("*.c"))
        for k in range(students):
            student, kind = f"s{k:02d}", draw.choice(kinds)
            to, source = of_class / student / f"{n}.c", draw.choice(wrong)
            to.parent.mkdir(parents=True, exist_ok=True)
            text, verdict = (made / "solved").read_text(), kind
            if kind == "wrong":
                text, verdict = source.read_text(), source.with_suffix(".hint").read_text().strip()
            elif kind == "start":
                text, verdict = (made / "start").read_text(), "hint: "
            elif kind in ("crash", "loop", "garbage"):
                text = broken(text, kind)
                verdict = {"crash": "it crashes in ", "loop": "it does not end", "garbage": "it does not compile"}[kind]
            elif kind == "misnamed":
                to, verdict = to.with_name(f"lesson{n}.c"), "not graded: "
            print(student, n, "-" if kind == "missing" else verdict, sep="\t", file=expected)
            if kind != "missing":
                to.write_text(text if kind == "start" else rewritten(text, student))
