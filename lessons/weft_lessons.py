"""weft_lessons.py - the lessons in a notebook: shows numbers and pictures, and checks answers.

    from weft_lessons import Lesson
    lesson = Lesson(2)
    lesson.check("02.c")

It runs lesson.sh, which it looks for in the folders above this file and in the installed weft. The environment variable WEFT_LESSONS names
another folder."""
import glob
import os
import subprocess
from pathlib import Path


def _folder():
    """Returns the folder of lesson.sh."""
    here = Path(__file__).resolve()
    folders = [Path(os.environ['WEFT_LESSONS'])] if 'WEFT_LESSONS' in os.environ else [p / d for p in here.parents for d in ('.', 'lessons')]
    try:
        prefix = subprocess.run(['pkg-config', '--variable=prefix', 'weft_f64'], capture_output=True, text=True).stdout.strip()
        folders += [Path(prefix) / 'share/doc/weft/lessons'] if prefix else []
    except OSError:
        pass
    for folder in folders:
        if (folder / 'lesson.sh').is_file():
            return folder.resolve()
    raise FileNotFoundError('found no lesson.sh; set the environment variable WEFT_LESSONS to the folder of the lessons')


def _show(svg):
    """Draws a picture below the cell. Without IPython it does nothing."""
    try:
        from IPython.display import SVG, display
    except ImportError:
        return
    display(SVG(data=Path(svg).read_text()))


class Lesson:
    """A lesson: `Lesson(2)`."""

    def __init__(self, number):
        found = glob.glob(str(_folder() / f'{int(number):02}_*'))
        if not found:
            raise ValueError(f'there is no lesson {number}')
        self.number, self.folder = int(number), Path(found[0])

    def numbers(self):
        """Prints the output of the lesson's program with a right answer."""
        print((self.folder / 'expected.txt').read_text(), end='')

    def picture(self):
        """Draws the lesson's picture, made by a right answer."""
        _show(self.folder / 'picture.svg')

    def header(self):
        """Prints the declarations of the functions to write."""
        for name in ('lesson.h', 'given.h'):
            if (self.folder / name).is_file():
                print((self.folder / name).read_text(), end='')

    def check(self, file):
        """Compiles an answer, prints its numbers and the verdict, and draws its picture. Returns whether it is right."""
        run = subprocess.run(['bash', str(self.folder.parent / 'lesson.sh'), 'run', str(self.number), str(file)], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, errors='replace')
        print(run.stdout, end='')
        right = run.returncode == 0
        if right:
            _show(f'{self.number:02}.svg')
        return right
