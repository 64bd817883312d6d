#!/usr/bin/env python3
"""budget.py          prints the lines of each room beside its budget; fails if a room has more
budget.py --lower  writes budgets anew: the lines of today, rounded up to 100, where that is less

A line of budget.txt has a name, the most lines, and folders or files (a slash ends a folder; "/" is
the whole tree; "-" before a place leaves it out). All files that git tracks count; a file with a
byte 0, such as a golden file, has no lines."""
import pathlib
import subprocess
import sys

FILE = pathlib.Path(__file__).with_name("budget.txt")


def tracked():
    """The lines of each file."""
    def count(data):
        return 0 if b"\0" in data else data.count(b"\n")

    names = subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True).stdout.split("\n")
    files = [pathlib.Path(n) for n in names if n]
    return {str(f): count(f.read_bytes()) for f in files if f.is_file()}


def is_in(file, place):
    return place == "/" or file == place or (place.endswith("/") and file.startswith(place))


def main():
    lines, over, text = tracked(), False, []
    for row in FILE.read_text().splitlines():
        if not row or row.startswith("#"):
            text.append(row)
            continue
        name, most, *places = row.split()
        out = [p[1:] for p in places if p[0] == "-"]
        n = sum(k for f, k in lines.items() if any(is_in(f, p) for p in places) and not any(is_in(f, p) for p in out))
        text.append(f"{name:20}{min(int(most), -(-n // 100) * 100):8}  {' '.join(places)}")
        note = "" if n <= int(most) else "   over its budget"
        print(f"  {name:20}{n:8} of {most:>6}{note}")
        over |= n > int(most)
    if "--lower" in sys.argv:
        FILE.write_text("\n".join(text) + "\n")
    return int(over and "--lower" not in sys.argv)


sys.exit(main())
