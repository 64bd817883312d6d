#!/usr/bin/env bash
# test_notebooks.sh    runs the lessons' notebooks, cell by cell: the empty exercise gets its hint, and the solution is right and draws its picture.
# By default only lesson 2; LESSONS="01 02 .." selects others, LESSONS=all all. Every notebook must have all parts of its lesson. With JUPYTER=yes
# the cells run in a kernel (nbclient, ipykernel), otherwise in Python. B is the build; its double library must exist.
set -u
root=$PWD build=$(realpath "${B:-build}")
[ -f "$build/double/libweft.a" ] || build=$(realpath build)
[ -f "$build/double/libweft.a" ] || { echo "skipped: test_notebooks: no double library in $build: make lesson-library"; exit 0; }
. "$(dirname "$0")/script.sh"
export B=$build/double WEFT_LESSONS=$root/lessons
check "they are made" python3 -B "$root/lessons/notebooks.py" .
cat >run.py <<'END'
import json, os, sys
file, answer, jupyter = sys.argv[1], sys.argv[2], os.environ.get("JUPYTER") == "yes"
book = json.load(open(file))
for cell in book["cells"]:
    if cell["source"] and cell["source"][0].startswith("%%writefile") and answer:
        cell["source"][1:] = [open(answer).read()]
if jupyter:
    import nbclient, nbformat
    done = nbclient.NotebookClient(nbformat.reads(json.dumps(book), 4), timeout=600).execute()
    for cell in done["cells"]:
        for out in cell.get("outputs", []):
            print(out.get("text", "") or "picture" * ("image/svg+xml" in out.get("data", {})))
else:
    names = {}
    for cell in book["cells"]:
        text = "".join(cell["source"])
        if text.startswith("%%writefile"):
            name, text = text.removeprefix("%%writefile ").split("\n", 1)
            open(name, "w").write(text + "\n")
        elif cell["cell_type"] == "code":
            exec(compile(text, file, "exec"), names)
END
cat >parts.py <<'END'
import glob, json, re, sys
for lesson in sorted(glob.glob(sys.argv[1] + "/[0-9][0-9]_*")):
    book = json.load(open(lesson.split("/")[-1] + ".ipynb"))
    code = ["".join(c["source"]) for c in book["cells"] if c["cell_type"] == "code"]
    text = "\n".join("".join(c["source"]) for c in book["cells"])
    n = lesson.split("/")[-1][:2]
    for part in ("lesson.numbers()", "lesson.picture()", "lesson.header()", f'lesson.check("{n}.c")'):
        assert part in code, f"{lesson}: no cell {part}"
    source = re.sub(r"!\[[^\]]*\]|\S*[^\n]*:\n\n    make lesson-start.*\n.*", "", open(lesson + "/lesson.md").read())
    lost = [w for w in source.split() if w.isalpha() and w not in text]
    assert sum(c.startswith(f"%%writefile {n}.c\n") for c in code) == 1 and not lost, f"{lesson}: lost {lost}"
END
check "all parts" python3 parts.py "$root/lessons"
check "a lost part is seen" exits 1 "no cell lesson.picture()" eval '(mkdir cut && sed "s/lesson.picture()/0/" 07_packed_sequence.ipynb >cut/x && cp *.ipynb cut && mv cut/x cut/07_packed_sequence.ipynb && cd cut && python3 ../parts.py "$root/lessons")'
[ "${LESSONS:=02}" != all ] || LESSONS=$(ls -d "$root"/lessons/[0-9][0-9]_* | xargs -n 1 basename | cut -c1-2)
for n in $LESSONS; do
    book=$(ls "$n"_*.ipynb)
    awk 'NR == 1 { print ""; next } /^#ifdef START/ { skip = 1; next } /^#ifndef START/ { next } /^#else/ { skip = !skip; next } /^#endif/ { skip = 0; next } !skip' "$root/lessons/${book%.ipynb}/solution.c" >solution.c
    check "$n: the solution" eval 'rm -f $n.svg; python3 -B run.py $book solution.c && grep -q "lesson $n: right" out && [ -s $n.svg ]'
    check "$n: the empty exercise" eval 'python3 -B run.py $book "" && grep "lesson $n: " out | grep -vq right'
done
finish "notebooks of lessons"
