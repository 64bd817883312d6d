#!/usr/bin/env bash
# lint.sh: checks the rules of style and structure. Each rule prints its violations; the last line is "N of M rules hold".
# B is a build with libweft.so in it. Needs ctags and nm; uses clang-tidy, shellcheck and a C++ compiler when they are there.
set -u
folders="core plan autograd nn rnn io parallel cuda"
rules=0 kept=0
files() { for d in "$@"; do find "$d" -type f \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.def' -o -name '*.inc' \) 2>/dev/null; done | sort; }
rule() {                                # NAME FUNCTION: a rule holds if it prints nothing. ONLY: runs the function of one rule
    [ "${ONLY:-$2}" = "$2" ] || return
    rules=$((rules + 1))
    local out; out=$("$2" 2>&1)
    if [ -z "$out" ]; then kept=$((kept + 1)); printf '  ok    %s\n' "$1"; else printf '  FAIL  %s\n' "$1"; printf '%s\n' "$out" | head -n 40 | sed 's/^/        /'; fi
}

# The floors of tests/lint/floors.txt; a folder inside a floor may be a floor of its own.
floors() { grep -vE '^(#|$)' tests/lint/floors.txt; }
walls() {                               # private headers are included by the floors that tests/lint/floors.txt names
    floors | awk -F' *[|] *' '$1 ~ /\.h$/' | while IFS='|' read -r header who; do
        header=${header// /}
        grep -rlE "^ *# *include \"$header\"" --include='*.[ch]' --include='*.inc' --include='*.cu*' $folders | while read -r f; do
            case " $who " in *" ${f%%/*} "*) ;; *) echo "$f may not include $header" ;; esac
        done
    done
}
map() {                                 # README's map has the texts of the floors
    floors | awk -F' *[|] *' '$1 !~ /\.h$/ { print "| `" $1 "/` | " $3 " |" }' | while read -r row; do
        grep -qxF "$row" README.md || echo "README.md lacks: $row"
    done
}
include_order() {
    { floors; grep -E '^ *# *include "' /dev/null $(files $folders); } | awk '
        function floor(path,   f) { for (f = path; sub(/\/[^\/]*$/, "", f);) if (f in may) return f; return path }
        NR == FNR && /\|/ && !/#/ { split($0, c, / *[|] */); if (c[1] !~ /\.h$/) may[c[1]] = " " c[2] " "; next }
        { file = substr($0, 1, index($0, ":") - 1); path = $0; sub(/^[^"]*"/, "", path); sub(/".*/, "", path)
          folder = file; sub(/\/[^\/]*$/, "", folder)
          if (path !~ /\//) path = folder "/" path
          while (sub(/^\.\.\//, "", path)) up = !sub(/\/[^\/]*$/, "", folder) ? folder = "" : 1
          if (up) { path = (folder ? folder "/" : "") path; up = 0 }
          a = floor(file); b = floor(path)
          if (a != b && index(may[a], " " b " ") == 0) print file " may not include " b "/ (" path ")" }'
    for f in $(files examples tools bench); do
        grep -nE '^ *# *include "(core|autograd|nn|rnn|io|parallel|cuda)/' "$f" | grep -v "^[0-9]*:#include \"io/$(case $f in tools/page/*) echo pictures/ ;; tools/weights/*) echo weights/ ;; tools/corpora/*|tools/plan/export.c|tools/plan/json.c|tools/plan/stream.c) ;; *) echo none/ ;; esac)" |
            grep -v '"core/nearest.h"' | sed "s|^|$f: programs use weft*.h and core/nearest.h, the page also io/pictures/, weights io/weights/, lengths, exports and JSON io/: |"
    done
}
declared_where_defined() {              # a function of a floor's header is in a file of that floor
    ctags -x --language-force=C --kinds-C=fp --_xformat='%{input} %K %N' $(files $folders | grep -E '\.(c|h|inc)$') 2>/dev/null | awk '
        function floor(path) { return match(path, /^(rnn\/forecast|plan\/run)\//) ? substr(path, 1, RLENGTH - 1) : substr(path, 1, index(path, "/") - 1) }
        $3 !~ /^weft_/ { next }
        $2 == "function" { defined[$3] = $1 }
        $2 == "prototype" && $1 ~ /\.h$/ { name[++n] = $3; declared[n] = $1 }
        END { for (i = 1; i <= n; i++) if (name[i] in defined && floor(declared[i]) != floor(defined[name[i]]))
                  print name[i] " is declared in " declared[i] " and defined in " defined[name[i]] }'
}
file_sizes() {
    local f n most
    for f in $(files $folders); do n=$(wc -l <"$f"); case $f in */api_*) ;; *) [ "$n" -le 400 ] || echo "$f has $n lines (400)" ;; esac; done
    for f in $(files examples tools bench tests) tests/*.sh tests/*/*.sh; do
        case $f in examples/*.c) most=700 ;; *) most=500 ;; esac
        n=$(wc -l <"$f"); [ "$n" -le $most ] || echo "$f has $n lines ($most)"
    done
    for f in Makefile mk/*.mk; do n=$(wc -l <"$f"); [ "$n" -le 150 ] || echo "$f has $n lines (150)"; done
    awk '{ gsub(/\t/, "        ") } length($0) > 120 { print FILENAME ":" FNR ": " length($0) " columns (120)" }' Makefile mk/*.mk
}
function_sizes() {                      # of the library, without entries in .def and .inc files
    ctags -x --language-force=C --kinds-C=f --_xformat='%{input} %N %n %e' $(files $folders | grep -E '\.(c|h|cu)$') 2>/dev/null |
        awk '{ print $4 - $3 + 1, $1, $2 }' | sort -n | awk '
            { n[NR] = $1; where[NR] = $2 ": " $3; most[NR] = $2 ~ /\.cu$/ ? 50 : 40 }
            END { if (!NR) { print "no functions found"; exit }
                  median = n[int((NR + 1) / 2)]; p90 = n[int(.9 * NR) + 1 > NR ? NR : int(.9 * NR) + 1]
                  if (median > 9) print "median " median " (9)"
                  if (p90 > 20) print "p90 " p90 " (20)"
                  for (i = NR; i; i--) if (n[i] > most[i]) print where[i] " has " n[i] " lines (" most[i] ")" }'
}
banned() {
    grep -nE '(^|[^_a-zA-Z])(sprintf|vsprintf|strcpy|strcat|gets|strtok|alloca|system|rand|srand)\(' $(files $folders examples tools bench)
    grep -nE '(^|[^_a-zA-Z.>])(abort|exit|_exit|assert)\(' $(files $folders)
}
environment() { grep -nE '(^|[^_a-zA-Z])(secure_)?getenv *\(' $(files $folders | grep -vE '^(core/os|cuda/|parallel/mpi/)'); }   # weft__variable: a setuid program must not trust it
# Headers of C11, of the compiler, and of the libraries that weft needs
system_headers() {
    local c='assert|complex|ctype|errno|fenv|float|inttypes|limits|locale|math|setjmp|signal|stdarg|stdatomic|stdbool|stddef|stdint|stdio|stdlib|string|tgmath|time'
    grep -nE '^ *# *include <' $(files $(echo $folders | tr ' ' '\n' | grep -v cuda) | grep -vE '^(core/os|parallel/mpi/)') |
        grep -vE "<(($c)|[a-z]*mmintrin|cpuid|arm_[a-z]*|sanitizer/.*|hdf5|H5FDdevelop|zlib)\.h>" | sed 's/$/: the system is behind core\/os.h/'
}
# What asks in another way is not noticed where it is compiled once, for all.
architectures() { grep -n '__CUDA_ARCH__' cuda/* | grep -vE '^cuda/(cuda|ptx)\.h:'; }
budgets() { python3 tests/lint/budget.py >"$budgets" || grep -E 'over its budget' "$budgets" || cat "$budgets"; }
exports() { bash tests/exports.sh compare; }
callers() {                             # in examples, tools, lessons, or code of documents
    { cat $(files examples tools lessons); git ls-files '*.md' | xargs sed -n '/^```c$/,/^```$/p'; } | grep -oE '\bweft_\w+ *\(' | tr -d ' (' | sort -u |
        comm -13 - <(bash tests/exports.sh declared) | sed 's/$/ has no caller in an example, a tool, a lesson or a document/'
}
api_page() { python3 docs/site/api.py --check 2>&1; }
plain() { python3 tests/lint/plain.py; }
headers_alone() {
    for h in weft*.h */api_*.h */*/api_*.h; do [ -f "$h" ] || continue
        echo "#include \"$h\"" | ${CC:-cc} -std=c11 -Wall -Wextra -Wpedantic -Werror -I. -fsyntax-only -x c - || echo "$h"
        for cxx in g++ clang++; do
            ! command -v $cxx >/dev/null || echo "#include \"$h\"" | $cxx -std=c++17 -Wall -Wextra -Wpedantic -Werror -I. -fsyntax-only -x c++ - || echo "$h in C++ by $cxx"
        done
    done
}
head_comment() { for f in $(files $folders examples tools bench tests | grep -v '\.def$'); do head -n 1 "$f" | grep -qE '^/\*' || echo "$f does not say what it is"; done; }
whitespace() { git grep -nIE '[[:space:]]+$' -- ':!*.svg' ':!tests/golden/*' ':!*.md' | cut -c1-120; git grep -nIP '\t' -- '*.c' '*.h' '*.def' | cut -c1-120; }
columns() {
    git ls-files | grep -E '\.(c|h|cu|cuh|inc|def|cell|cpp)$' | xargs awk '
        length > (FILENAME ~ /api_|weft[_a-z]*\.h/ ? 100 : 110) { print FILENAME ":" FNR ": " length " columns" }'
    # prose and code of documents, but no tables, and no line without a blank to break it at
    git ls-files | grep -E '\.md$' | xargs awk '
        length > 100 && !/^ *\|/ && /[^ ] +[^ ]/ { print FILENAME ":" FNR ": " length " columns (tests/lint/wrap_docs.py)" }'
}
# Code in pages that should not need scrolling: code of documents, and all of a lesson's
code_of_pages() {
    git ls-files | grep -E '\.md$' | xargs awk '
        FNR == 1 { code = 0 }
        /^ *```/ { code = !code; next }
        length > 88 && (code || (/^    / && !item)) { print FILENAME ":" FNR ": code of " length " columns (88)" }
        { if (/^ *([-*+]|[0-9]+\.) /) item = 1; else if (/^[^ ]/) item = 0 }'
    git ls-files | grep -E '^lessons/[0-9].*\.[ch]$' | xargs -r awk 'length > 88 { print FILENAME ":" FNR ": " length " columns (88)" }'
}
# Output in a lesson's text must be the program's current output
lessons_type_no_results() {
    local f n
    for f in lessons/[0-9]*/lesson.md; do
        for n in $(grep -v '^    ' "$f" | grep -oE '[0-9]+\.[0-9]{3,}'); do
            grep -qwF -e "$n" "${f%lesson.md}expected.txt" || echo "$f: $n is not in expected.txt"
        done
    done
}
# In documents: names of ours that no source has, names in the reading list, links to no file. CHANGELOG.md may name removed things.
documents_name_what_is() {
    local ours='(weft|WEFT)_+[A-Za-z0-9_]*[A-Za-z0-9]'
    git grep -hE "$ours" -- '*.md' ':!CHANGELOG.md' | sed 's/#[a-z_]*//g' | grep -owE "$ours" | sort -u |
        comm -23 - <(git grep -ohwE "$ours" -- ':!*.md' | sort -u) | sed 's/$/ is in a document only/'
    grep -oE '`[A-Za-z_]+`' docs/read_in_this_order.md | tr -d '`' | sort -u | while read -r name; do
        git grep -qF "$name" -- ':!*.md' || echo "docs/read_in_this_order.md: $name is in no source"
    done
    local source='[a-z_0-9/]+\.(c|cu|inc|def|cell)'  # in `..`, or in a comment as (..) or before a colon
    { git grep -hoE "\`$source\`" -- docs; git grep -hE "^( \*|/\*).*$source" -- '*.[ch]' '*.inc' '*.cu*'; } |
        grep -oE "[(\`]${source}[)\`]|^/\* $source:" | grep -oE "$source" | sed 's|.*/||' | sort -u |
        comm -23 - <(git ls-files | sed 's|.*/||' | sort -u) | sed 's/$/ does not exist/'
    git ls-files '*.md' | while read -r f; do
        grep -oE '\]\([^)#:]+' "$f" | cut -c3- | while read -r to; do [ -e "$(dirname "$f")/$to" ] || echo "$f: there is no $to"; done
    done
}
machine_paths() { git grep -nIE '(^|[^A-Za-z0-9_.$}-])/(work|home|root|Users|tmp)/' -- ':!LICENSE' ':!tests/lint.sh' | cut -c1-120; }
scripts() {
    for s in tests/*.sh tests/*/*.sh lessons/*.sh .ci/run; do bash -n "$s"; done
    ! command -v shellcheck >/dev/null || shellcheck -S error tests/*.sh tests/*/*.sh lessons/*.sh .ci/run
}
tidied() {                              # the files that clang-tidy reads: changed in two days, or all in `make nightly` and without git's history
    if [ -z "${TIDY_ALL:-}" ] && git log --since='2 days ago' --format= --name-only 2>/dev/null | grep -q .; then
        { git log --since='2 days ago' --format= --name-only; git diff --name-only HEAD; } | sort -u | while read -r f; do [ ! -f "$f" ] || echo "$f"; done
    else files $folders; fi
}
tidy() {                                # a tool that fails finds nothing, so its exit status counts as well
    local said rc mpi=parallel/mpi/              # without a compiler for MPI its one file is not read
    export FLAGS="-std=c11 -D_GNU_SOURCE -I. $(${PKG_CONFIG:-pkg-config} --cflags hdf5 zlib)"
    if command -v mpicc.openmpi >/dev/null; then FLAGS="$FLAGS $(mpicc.openmpi --showme:compile)" mpi=none; fi
    said=$(tidied | grep -E "^(${folders// /|})/.*\.c$" | grep -vE "cpu/(avx|amx\.)|$mpi" | xargs -r -P 2 -n 4 sh -c 'clang-tidy --quiet "$@" -- $FLAGS' sh 2>&1)
    rc=$?
    printf '%s\n' "$said" | grep -E '(warning|error):' | sort -u
    [ $rc = 0 ] || { echo "clang-tidy has failed, status $rc:"; printf '%s\n' "$said" | tail -n 5; }
}

budgets=$(mktemp) || exit 1
trap 'rm -f "$budgets"' EXIT
# The longest rule uses all cores; the others share one.
tidy=
if command -v clang-tidy >/dev/null && [ -z "${WEFT_NO_TIDY:-}" ] && [ "${ONLY:-tidy}" = tidy ]; then
    tidy=$(mktemp) || exit 1
    trap 'rm -f "$budgets" "$tidy"' EXIT
    tidy >"$tidy" 2>&1 &
fi
said_of_tidy() { cat "$tidy"; }
rule "floors include those that tests/lint/floors.txt names; programs: public headers" include_order
rule "private headers are included by their floors alone"        walls
rule "README's map is the table of floors"                   map
rule "what a floor declares it defines" declared_where_defined
rule "no file of the library over 400 lines, no example over 700, none else over 500" file_sizes
rule "functions: median 9, nine of ten 20, none over 40 lines (CUDA: 50)" function_sizes
rule "each room is within its lines (tests/lint/budget.txt)" budgets
rule "no banned functions" banned
rule "no getenv in the library, weft__variable" environment
rule "system headers are included by core/os.h and core/os*.c alone" system_headers
rule "kernels ask for the architecture by ARCH" architectures
rule "exported symbols are the declared ones" exports
rule "every public function has a caller that users read" callers
rule "docs/api.md is made from the headers, weft.h has at most 200 functions" api_page
rule "the English of each room is plain (tests/lint/plain.py)" plain
rule "public headers stand alone, in C and in C++" headers_alone
rule "every file says what it is" head_comment
rule "no trailing blanks, no tabs in C" whitespace
rule "no line of code above 110 columns, of public headers and documents 100" columns
rule "no code of documents and lessons above 88 columns" code_of_pages
rule "lessons type no results of their programs" lessons_type_no_results
rule "documents and comments name what there is" documents_name_what_is
rule "no paths of one machine" machine_paths
rule "scripts parse" scripts
if [ -n "$tidy" ]; then
    wait
    ONLY='' rule "clang-tidy" said_of_tidy
fi
cat "$budgets"
echo "$kept of $rules rules hold"
[ "$kept" = "$rules" ]
