#!/usr/bin/env bash
# doccheck.sh [FILE...]: every block of C in README.md and docs is compiled and run against the library in $B.
#
# A block that opens with ```c is
#   a whole program, if it has a main: compiled alone, run, must end with 0;
#   else a piece. The pieces below one heading of level 1 or 2 are one program: those that begin with #include, #define, static, typedef,
#   struct, enum stand before main, the others are the body of main, in which `weft *w` is an open context that must not have failed
#   in the end.
# Other languages, and ```c that belong to a listing only (```C), are not run. Programs run in an empty folder, for a minute at most.
set -u
here=$PWD lib=$(realpath -m "$B")
t=$(mktemp -d) || exit 1
trap 'rm -rf "$t"' EXIT
[ $# -gt 0 ] || set -- README.md docs/*.md docs/design/*.md

# Writes each program to $t/NAME.c, and "NAME FILE:LINE BLOCKS" to $t/list.
extract() {                             # FILE
    awk -v file="$1" -v t="$t" -v stem="$(echo "${1%.md}" | tr / _)" '
        function flush_section() {
            if (pieces) {
                name = stem "_" first
                out = t "/" name ".c"
                printf "%s%s\nint main(void)\n{\n    weft *w = weft_open(NULL);\n%s\n    int failed = !weft_ok(w);\n    if (failed)\n        fprintf(stderr, \"%%s\\n\", weft_error_message(w));\n    weft_close(w);\n    return failed;\n}\n", \
                    prelude, top, body > out
                close(out); print name, file ":" first, pieces >> (t "/list")
            }
            pieces = 0; top = body = ""
        }
        BEGIN { prelude = "#include <math.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include \"weft.h\"\n" }
        !inside && /^##? / { flush_section() }
        !inside && /^```c$/ { inside = 1; start = NR + 1; text = "#line " start " \"" file "\"\n"; main_ = 0; lead = ""; next }
        !inside && /^```/ { inside = 2; next }
        inside && /^```$/ {
            if (inside == 1) {
                if (main_) { name = stem "_" start; print text > (t "/" name ".c"); close(t "/" name ".c"); print name, file ":" start, 1 >> (t "/list") }
                else { if (!pieces++) first = start; if (lead ~ /^(#include|#define|static|typedef|struct|enum)/) top = top text; else body = body text }
            }
            inside = 0; next
        }
        inside == 1 { text = text $0 "\n"; if ($0 ~ /int main\(/) main_ = 1; if (lead == "" && $0 !~ /^ *(\/\*.*)?$/) lead = $0 }
        END { flush_section() }' "$1"
}

try() {                                 # NAME: compile, run
    mkdir -p "$t/$1.run"
    ${CC:-cc} -std=c11 -D_GNU_SOURCE ${V:+$([ "$V" = double ] && echo -DWEFT_DOUBLE)} -Wall -Wextra -Wno-unused-variable -Wno-unused-but-set-variable -Wno-unused-function \
        -Werror -I"$here" "$t/$1.c" -o "$t/$1" "$lib/libweft.a" $(${PKG_CONFIG:-pkg-config} --libs hdf5 zlib) -ldl -lm -lpthread >"$t/log" 2>&1 || return 1
    (cd "$t/$1.run" && timeout 60 "$t/$1" >"$t/log" 2>&1 </dev/null)
}

: >"$t/list"
for f; do [ -f "$f" ] && extract "$f"; done
good=0 all=0
while read -r name place blocks; do
    all=$((all + blocks))
    if try "$name"; then good=$((good + blocks)); else echo "FAIL  $place: exit status $?"; head -n 20 "$t/log"; fi
done <"$t/list"
[ "$all" -gt 0 ] || { echo "there are no blocks of C in $*"; exit 1; }
echo "$good of $all blocks of documentation hold"
[ "$good" = "$all" ]
