#!/bin/sh
# python.sh FILE ARGUMENT..    runs the file with a Python that has Markdown and Pygments; exit status 77 without one.
for python in python3 /usr/bin/python3; do
    "$python" -c 'import markdown, pygments' 2>/dev/null && exec "$python" -B "$@"
done
echo "python.sh: found no Python with markdown and pygments: apt-get install python3-markdown python3-pygments" >&2
exit 77
