"""notebooks.py OUT    writes a Jupyter notebook for each lesson to OUT, and weft_lessons.py beside them.

A notebook has the lesson's text, its numbers and picture, the exercise in a cell that writes the file, and a cell that checks it. It compiles
C, so it needs weft, a C compiler and make."""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def text_of(md):
    """Markdown for a notebook: other lessons are notebooks too, other files of the tree are only named."""
    def link(match):
        words, to = match.groups()
        lesson = re.fullmatch(r'\.\./(\d\d_\w+)/lesson\.md', to)
        return match[0] if to.startswith('http') else f'[{words}]({lesson[1]}.ipynb)' if lesson else words
    md = re.sub(r'(?<!!)\[([^\]]*)\]\(([^)]+)\)', link, md)
    return re.sub(r'(?:^ {4}.*\n|^\n(?= {4}))+', lambda m: '\n```text\n' + re.sub(r'^ {4}', '', m[0], flags=re.M).strip('\n') + '\n```\n', md + '\n', flags=re.M).strip()


def cells_of(folder):
    number = os.path.basename(folder)[:2]
    with open(f'{folder}/lesson.md') as f:
        before, part, after = f.read().partition('## Your part')
    first, *pieces = re.split(r'^(!?\[[^\]]*\]\((?:expected\.txt|picture\.svg)\))$', before, flags=re.M)
    yield 'markdown', text_of(first)
    yield 'code', f'from weft_lessons import Lesson\n\nlesson = Lesson({int(number)})'
    for piece in pieces:
        if piece.startswith(('[', '![')):
            yield 'code', 'lesson.numbers()' if 'expected' in piece else 'lesson.picture()'
        elif piece.strip():
            yield 'markdown', text_of(piece)
    exercise, questions, rest = after.partition('## Questions')
    yield 'markdown', text_of(re.sub(r'\n(?:\S[^\n]*:\n\n)?    make lesson-start[^\n]*\n    make -C[^\n]*\n', '\n', part + exercise))
    yield 'code', 'lesson.header()'
    with tempfile.TemporaryDirectory() as to:
        subprocess.run(['bash', f'{HERE}/lesson.sh', 'start', number, to], check=True, stdout=subprocess.DEVNULL)
        with open(f'{to}/{number}.c') as f:
            yield 'code', f'%%writefile {number}.c\n{f.read().rstrip()}'
    yield 'code', f'lesson.check("{number}.c")'
    yield 'markdown', text_of(questions + rest)


def notebook(folder):
    cells = []
    for i, (kind, source) in enumerate(cells_of(folder)):
        cell = {'cell_type': kind, 'id': f'cell-{i}', 'metadata': {}, 'source': source.splitlines(keepends=True)}
        cells.append(cell | ({'execution_count': None, 'outputs': []} if kind == 'code' else {}))
    kernel = {'kernelspec': {'display_name': 'Python 3', 'language': 'python', 'name': 'python3'}, 'language_info': {'name': 'python'}}
    return {'cells': cells, 'metadata': kernel, 'nbformat': 4, 'nbformat_minor': 5}


def main(to):
    os.makedirs(to, exist_ok=True)
    folders = sorted(glob.glob(f'{HERE}/[0-9][0-9]_*'))
    for folder in folders:
        file = f'{to}/{os.path.basename(folder)}.ipynb'
        with open(file + '.new', 'w') as f:
            json.dump(notebook(folder), f, indent=1)
            f.write('\n')
        os.replace(file + '.new', file)
    shutil.copy(f'{HERE}/weft_lessons.py', to)
    print(f'notebooks: {len(folders)} in {to}')


if __name__ == '__main__':
    main(sys.argv[1])
