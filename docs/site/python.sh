#!/bin/sh
# python.sh FILE ARGUMENT..    runs the file by a Python that has Markdown and Pygments; status 77 where there is none.
for python in python3 /usr/bin/python3; do
    "$python" -c 'import markdown, pygments' 2>/dev/null && exec "$python" -B "$@"
done
echo "no Python with markdown and pygments: apt-get install python3-markdown python3-pygments" >&2
exit 77
