#!/usr/bin/env bash
# doccheck.sh [FILE...]    compiles and runs each block of C in README.md and docs against the library in $B, and compares its output with the page.
#
# A block that opens with ```c is
#   a whole program, if it has a main. It is compiled alone and must return 0;
#   otherwise a piece. The pieces below one heading of level 1 or 2 are one program. Those that begin with #define, static, typedef, struct
#   or enum come before main, the others are the body of main, where `weft *w` is an open context that must not have failed at the
#   end. weft.h is included; a piece may begin with more #include lines.
# The next ```text before a heading or another block is its whole output; a block without output has no ```text. Numbers with a point agree within one
# unit of the last printed digit. ".." at a line's end matches the rest of it; on its own line it matches any lines.
# A line "    cc .." below a whole program is the reader's command, so it compiles the program, in a folder that looks like the tree's.
# Other languages and listings (```C) are not run. Programs run in an empty folder, for at most a minute.
set -u
here=$PWD lib=$(realpath -m "$B")
t=$(mktemp -d) || exit 1
trap 'rm -rf "$t"' EXIT
[ $# -gt 0 ] || set -- README.md docs/*.md docs/design/*.md

# Writes each program to $t/NAME.c, and "NAME FILE:LINE BLOCKS" to $t/list; what its blocks should print to $t/NAME.want.1 .., how it is
# compiled to $t/NAME.cc. A piece that has run prints a line of one byte, 30.
extract() {                             # FILE
    awk -v file="$1" -v t="$t" -v stem="$(echo "${1%.md}" | tr / _)" '
        function flush_section() {
            if (pieces) {
                name = stem "_" first
                out = t "/" name ".c"
                printf "%s%s%s\nint main(void)\n{\n    weft *w = weft_open(NULL);\n%s\n    int failed = !weft_ok(w);\n    if (failed)\n        fprintf(stderr, \"%%s\\n\", weft_error_message(w));\n    weft_close(w);\n    return failed;\n}\n", \
                    prelude, includes, top, body > out
                close(out); print name, file ":" first, pieces >> (t "/list")
            }
            pieces = bodies = 0; includes = top = body = wants = ""
        }
        BEGIN { prelude = "#include <math.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include \"weft.h\"\n" }
        !inside && /^##? / { flush_section() }
        !inside && /^ *```/ { if (!/^```text$/) wants = "" }
        !inside && /^#/ { wants = command = "" }
        !inside && command != "" && /^    cc / { print substr($0, 5) > (t "/" command ".cc"); close(t "/" command ".cc"); command = "" }
        !inside && /^```text$/ && wants != "" { inside = 3; want = t "/" wants; wants = ""; printf "" > want; next }
        inside == 3 && /^```$/ { inside = 0; close(want); next }
        inside == 3 { print > want; next }
        !inside && /^```c$/ { inside = 1; start = NR + 1; text = "#line " start " \"" file "\"\n"; first_lines = ""; main_ = 0; lead = ""; next }
        inside == 1 && lead == "" && /^#include/ { first_lines = first_lines $0 "\n"; text = text "\n"; next }
        !inside && /^```/ { inside = 2; next }
        inside && /^```$/ {
            if (inside == 1) {
                if (main_) { name = stem "_" start; command = name; wants = name ".want.1"; print first_lines text > (t "/" name ".c"); close(t "/" name ".c"); print name, file ":" start, 1 >> (t "/list") }
                else {
                    if (!pieces++) first = start
                    includes = includes first_lines
                    if (lead ~ /^(#define|static|typedef|struct|enum)/) top = top text
                    else { body = body text "puts(\"\\036\");\n"; wants = stem "_" first ".want." ++bodies }
                }
            }
            inside = 0; next
        }
        inside == 1 { text = text $0 "\n"; if ($0 ~ /int main\(/) main_ = 1; if (lead == "" && $0 !~ /^ *(\/\*.*)?$/) lead = $0 }
        END { flush_section() }' "$1"
}

shows() {                               # NAME: the output of its blocks, $t/out, equals the page's text
    rm -f "$t"/part.*
    awk -v t="$t" 'BEGIN { n = 1 } $0 == "\036" { n++; next } { sub(/[ \t]+$/, ""); print > (t "/part." n) }' "$t/out"
    local p k
    for p in "$t/part."* "$t/$1.want."*; do
        [ -f "$p" ] || continue
        k=${p##*.}
        [ -f "$t/$1.want.$k" ] || { echo "block $k prints what is not shown:"; cat "$p"; return 1; }
        [ -f "$t/part.$k" ] || : >"$t/part.$k"
        same "$t/$1.want.$k" "$t/part.$k" || return 1
    done
}
same() {                                # WANT GOT
    awk '
        function words(line, to) { gsub(/[][(),=|:]/, " & ", line); return split(line, to, " ") }
        function near(want, got,   unit) {
            if (want == got) return 1
            if (want !~ /^[-+]?[0-9]+\.[0-9]+(e[-+]?[0-9]+)?$/ || got !~ /^[-+]?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?$/) return 0
            unit = want; sub(/e.*/, "", unit); sub(/.*\./, "", unit)
            unit = 10 ^ -length(unit) * (want ~ /e/ ? 10 ^ substr(want, index(want, "e") + 1) : 1)
            return want - got <= 1.01 * unit && got - want <= 1.01 * unit
        }
        function agree(want, got,   w, g, a, b, i) {
            a = words(want, w); b = words(got, g)
            for (i = 1; i <= a; i++) { if (w[i] == ".." && i == a) return 1; if (i > b || !near(w[i], g[i])) return 0 }
            return a == b
        }
        FILENAME == ARGV[1] { want[++n] = $0; next }
        n && want[at + 1] == ".." { if (at + 2 > n || !agree(want[at + 2], $0)) next; at += 2; next }
        { if (at >= n || !agree(want[at + 1], $0)) { bad = 1; exit } at++ }
        END {
            if (!bad && (at == n || (at == n - 1 && want[n] == ".."))) exit 0
            print "the page shows \"" want[at + 1] "\", it prints \"" (bad ? $0 : "") "\""
            exit 1
        }' "$1" "$2"
}
build() {                               # NAME
    local cc name
    if [ -f "$t/$1.cc" ] && [ -z "${V:-}" ]; then
        cc=$(cat "$t/$1.cc") name=$(grep -oE '[a-z_]+\.c\b' "$t/$1.cc" | head -n 1)
        rm -rf "$t/tree" && mkdir "$t/tree" && ln -s "$here"/* "$t/tree" && rm -f "$t/tree/build" && ln -s "$lib" "$t/tree/build"
        (cp "$t/$1.c" "$t/tree/$name" && cd "$t/tree" && eval "$cc" && cp "${name%.c}" "$t/$1") >"$t/log" 2>&1
        return
    fi
    ${CC:-cc} -std=c11 -D_GNU_SOURCE ${V:+$([ "$V" = double ] && echo -DWEFT_DOUBLE)} -Wall -Wextra -Wno-unused-variable -Wno-unused-but-set-variable -Wno-unused-function \
        -Werror -I"$here" "$t/$1.c" -o "$t/$1" "$lib/libweft.a" $(${PKG_CONFIG:-pkg-config} --libs hdf5 zlib) -ldl -lm -lpthread >"$t/log" 2>&1
}
try() {                                 # NAME: compile, run, compare
    mkdir -p "$t/$1.run"
    build "$1" || return 1
    (cd "$t/$1.run" && timeout 60 "$t/$1" >"$t/out" 2>"$t/log" </dev/null) && shows "$1" >>"$t/log"
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
