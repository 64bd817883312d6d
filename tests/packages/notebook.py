"""notebook.py FILE            runs the cells of a notebook in the current folder and compares their output with the file's
notebook.py --write FILE    writes the output into the file

Numbers with a decimal point may differ by 2 % or .02, since kernels for other CPUs round otherwise."""
import contextlib
import io
import json
import re
import sys

NUMBER = re.compile(r"(\d+\.\d+)")


def same(found, expected):
    found, expected = NUMBER.split(found), NUMBER.split(expected)
    return len(found) == len(expected) and all(
        a == b or (i % 2 and abs(float(a) - float(b)) <= max(.02, .02 * abs(float(b))))
        for i, (a, b) in enumerate(zip(found, expected)))


def main(path, write):
    notebook, names, bad = json.load(open(path, encoding="utf-8")), {"__name__": "__main__"}, 0
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(cells, 1):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
        expected = "".join(line for output in cell["outputs"] for line in output["text"])
        if not write and not same(out.getvalue(), expected):
            bad += 1
            print(f"cell {number} prints\n{out.getvalue()}expected\n{expected}")
        cell["execution_count"], text = number, out.getvalue().splitlines(True)
        cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": text}] if text else []
    if write:
        with open(path, "w", encoding="utf-8") as file:
            file.write(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
    print(f"{path.split('/')[-1]}: {len(cells)} cells, {bad} with another output")
    return int(bad > 0)


sys.exit(main(sys.argv[-1], "--write" in sys.argv))
