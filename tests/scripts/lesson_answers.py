#!/usr/bin/env python3
"""lesson_answers.py LESSONS: checks LESSONS/answers.md. Each question of each lesson has one answer, which begins with
the question's first words in bold. `A = B` is computed, and any other number in code is in the lesson."""
import math
import pathlib
import re
import sys

lessons, wrong, sums, looked_up = pathlib.Path(sys.argv[1]), [], 0, 0
sections = re.split(r"(?m)^## Lesson (\d+)$", (lessons / "answers.md").read_text())
answers_of = {int(n): text for n, text in zip(sections[1::2], sections[2::2])}
folders = sorted(lessons.glob("[0-9][0-9]_*"))
questions = 0
for folder in folders:
    n, text = int(folder.name[:2]), (folder / "lesson.md").read_text()
    part = re.search(r"(?ms)^## Questions\n(.*?)(?=^[^-\s]|\Z)", text)[1]
    asked = [" ".join(q.split()) for q in re.split(r"(?m)^- ", part)[1:]]
    given = [" ".join(a.split()) for a in re.split(r"(?m)^- ", answers_of.pop(n, ""))[1:]]
    questions += len(asked)
    if len(asked) != len(given):
        wrong.append(f"lesson {n} has {len(asked)} questions, but {len(given)} answers")
    numbers = set(re.findall(r"[\d.e+-]*\d", text + (folder / "expected.txt").read_text()))
    for question, answer in zip(asked, given):
        begins = re.match(r"\*\*(.{8,}?)\*\* \S", answer)
        if not begins or not question.startswith(begins[1]):
            wrong.append(f"lesson {n}: the answer \"{answer[:50]}\" does not begin with words of \"{question[:50]}\"")
        for code in re.findall(r"`([^`]+)`", answer):
            formula, equal, result = code.partition(" = ")
            if equal:
                sums += 1
                mantissa = re.match(r"-?\d*\.?(\d*)(?:e(-?\d+))?$", result)
                half = 0.5000001 * 10.0 ** (int(mantissa[2] or 0) - len(mantissa[1]))
                value = eval(formula, {"__builtins__": {}}, vars(math))
                if not abs(value - float(result)) <= half:
                    wrong.append(f"lesson {n}: {formula} is {value:.6g}, not {result}")
            elif re.fullmatch(r"[\d.e+-]*\d\.?\d*", code):
                looked_up += 1
                if code not in numbers:
                    wrong.append(f"lesson {n}: {code} is not in the lesson")
wrong += [f"there is no lesson {n}" for n in answers_of]
print(*wrong, sep="\n", end="\n" if wrong else "")
print(f"{questions} questions of {len(folders)} lessons have answers; {sums} sums and {looked_up} numbers are checked")
sys.exit(bool(wrong) or not questions)
