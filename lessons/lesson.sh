#!/usr/bin/env bash
# lesson.sh    a course with weft: what students write is compiled, run with limits, checked and drawn.
#
#   lesson.sh start N DIR       puts lesson N's file into DIR, as NN.c, and a Makefile that checks it
#   lesson.sh run N [FILE]      compiles FILE (else start.c), shows the lesson's numbers, checks, draws NN.svg into OUT (else the folder here)
#   lesson.sh grade DIR         checks all DIR/STUDENT/NN.c, each in a process of its own, and writes DIR/grades.csv
#   lesson.sh all               solutions pass, starts and wrong answers fail with the hint that hints.txt says, numbers and pictures are
#                               as in the tree; PICTURES=write and NUMBERS=write put today's there instead
#
# In the tree lessons stand on build/double, or B; elsewhere on the installed library of doubles, weft_f64 by pkg-config.
set -u
here=$(cd "$(dirname "$0")" && pwd) root=$(cd "$(dirname "$0")/.." && pwd)
cc=${CC:-cc} seconds=${SECONDS_EACH:-20} work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export LC_ALL=C

folder() {                              # N: the lesson's folder
    local d
    for d in "$here"/"$(printf %02d "$((10#${1:-0}))" 2>/dev/null)"_*/; do [ -d "$d" ] && { echo "${d%/}"; return; }; done
    echo "there is no lesson ${1:-}; there are: $(cd "$here" && ls -d [0-9][0-9]_* | cut -c1-2 | xargs)" >&2
    return 1
}
if [ -f "$root/core/api_core.h" ]; then
    build=${B:-$root/build/double}
    case $build in /*) ;; *) build=$root/$build ;; esac
    flags=(-I"$root" -DWEFT_DOUBLE) libs=("$build/libweft.a" $(${PKG_CONFIG:-pkg-config} --libs hdf5 zlib) -ldl -lm -lpthread)
else
    flags=($(${PKG_CONFIG:-pkg-config} --cflags weft_f64)) libs=($(${PKG_CONFIG:-pkg-config} --libs weft_f64) -lm)
fi
sanitize=() wrap=-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=fork,--wrap=vfork,--wrap=system,--wrap=popen
export ASAN_OPTIONS=hard_rss_limit_mb=3000:allocator_may_return_null=1     # and what it says is seen here, wherever others have it
compiler=(-std=c11 -O1 -g -Wall "${flags[@]}" -I"$here")
case ${V:-} in dasan)                   # where a program takes up to ten times as long
    sanitize=(-fsanitize=address,undefined -fno-sanitize-recover=all) compiler+=("${sanitize[@]}") seconds=${SECONDS_EACH:-200} ;;
esac

# ---- one answer ----
# What is the lesson's own is compiled once, to LESSON.o; the words of the compiler go to PROGRAM.log.
compile() {                             # LESSON FILE PROGRAM
    local own f objects=()
    own=$work/$(basename "$1")
    : >"$3.log"
    for f in "$1/show.c" "$1/check.c" "$here/common/lesson.c"; do
        objects+=("$own.$(basename "$f" .c).o")
        [ -f "${objects[-1]}" ] || "$cc" "${compiler[@]}" -I"$1" -c -o "${objects[-1]}" "$f" >>"$3.log" 2>&1 || return 1
    done
    "$cc" "${compiler[@]}" -I"$1" -o "$3" "$2" "${objects[@]}" "$wrap" "${libs[@]}" >>"$3.log" 2>&1
}
# In a folder and a session of its own, with limits of time, memory, output and of what it writes; what it prints is in OUT. Processes that
# it leaves behind are ended.
limited() {                             # PROGRAM OUT BLOCKS ARGUMENT...: BLOCKS of 1,024 bytes may be written
    local program=$1 out=$2 blocks=$3 rc wall=$((seconds + seconds / 2 + 2)); shift 3
    rm -rf "$work/in" "$work/left" && mkdir "$work/in"
    (cd "$work/in" && export seconds wall blocks program left=$work/left sanitized=${#sanitize[@]} && exec setsid -w bash -c '
        ( ulimit -c 0 -t "$seconds"
          [ "$sanitized" != 0 ] || ulimit -v 4000000
          ulimit -f "$blocks"
          exec timeout -k 1 "$wall" "$program" "$@" </dev/null 2>&1 )
        rc=$?
        cat /proc/[0-9]*/stat >"$left.all" 2>/dev/null
        while read -r line; do
            pid=${line%% *} fields=(${line##*) })
            [ "${fields[3]}" = $$ ] && [ "$pid" != $$ ] || [ "/proc/$pid/exe" -ef "$program" ] || continue
            if kill -9 "$pid" 2>/dev/null; then : >"$left"; fi
        done <"$left.all"
        exit $rc' - "$@" 2>/dev/null) | timeout "$((wall + 5))" head -c 1000001 >"$out"
    rc=${PIPESTATUS[0]}
    if [ "$(wc -c <"$out")" -gt 1000000 ]; then trouble="it prints more than a megabyte"
    elif [ $rc = 124 ] || [ $rc = 137 ] || [ $rc = 152 ]; then trouble="it does not end within $seconds s"
    elif [ $rc = 153 ] || { [ "$blocks" = 0 ] && [ -n "$(ls -A "$work/in")" ]; }; then trouble="it writes files"
    elif grep -qaE 'hard rss limit' "$out"; then trouble="it asks for more memory than there is"
    elif [ $rc -gt 128 ]; then trouble="it crashes: signal $((rc - 128)), $(kill -l $((rc - 128)) 2>/dev/null)"
    elif grep -qaE 'AddressSanitizer|runtime error' "$out"; then trouble="it crashes: $(grep -aoE 'AddressSanitizer: [a-zA-Z-]*|runtime error.*' "$out" | head -n 1)"
    elif [ -e "$work/left" ]; then trouble="it starts another process"
    else trouble=; fi
    return $rc
}
complaint() { echo "it does not compile: $(grep -m 1 -E 'error|undefined|multiple' "$1.log" | sed -E "s|[^ ()'\`]*/||g" | cut -c1-200)"; }   # PROGRAM
# verdict: "right", a hint, or what kept it from an answer. Only what begins with this run's key is of the check.
judge() {                               # LESSON FILE PROGRAM
    local key=k$RANDOM$RANDOM$RANDOM rc
    verdict=
    if ! compile "$@"; then verdict=$(complaint "$3"); return 1; fi
    limited "$3" "$work/said" 0 check "$key"
    rc=$?
    verdict=$(grep -ao "$key .*" "$work/said" | tail -n 1 | cut -d ' ' -f 2- | cut -c1-400)
    case $verdict in
    "refused: "*) verdict=${verdict#refused: } rc=1 ;;
    *) [ -z "$trouble" ] || { verdict=$trouble; return 1; } ;;
    esac
    [ -n "$verdict" ] || { verdict="it ends by itself, with status $rc, before the check has come to its end"; return 1; }
    [ $rc = 0 ] && [ "$verdict" = right ]
}

# ---- commands ----
start() {                               # N DIR
    local d n to=${2:?a folder is expected}
    d=$(folder "${1:-}") || return 2
    n=$(basename "$d" | cut -c1-2)
    mkdir -p "$to" || return 1
    [ ! -e "$to/$n.c" ] || { echo "$to/$n.c is there already; it stays as it is" >&2; return 1; }
    if [ -e "$to/Makefile" ] && ! head -n 1 "$to/Makefile" | grep -q '^# weft: make 02'; then
        echo "$to has a Makefile of its own, which stays; another folder is expected" >&2
        return 1
    fi
    cp "$d/start.c" "$to/$n.c" || return 1
    printf '# weft: make 02 checks 02.c\n%%: %%.c FORCE\n\t@bash "%s/lesson.sh" run $* $<\nFORCE:\n' "$here" >"$to/Makefile"
    echo "$to/$n.c is to be filled in; read $d/lesson.md; make -C $to $n checks it"
}
run() {                                 # N [FILE]
    local d n file
    d=$(folder "${1:-}") || return 2
    n=$(basename "$d" | cut -c1-2) file=$(realpath -- "${2:-$d/start.c}") || return 2
    [ -f "$file" ] || { echo "there is no file $file" >&2; return 2; }
    if ! compile "$d" "$file" "$work/$n"; then cat "$work/$n.log"; echo "lesson $n: $(complaint "$work/$n")"; return 1; fi
    local shown rc picture=${OUT:-.}/$n.svg
    judge "$d" "$file" "$work/$n"
    rc=$?
    [ $rc != 0 ] || seconds=$((3 * seconds))            # the lesson's own program may be long
    limited "$work/$n" "$work/shown" 0 show
    shown=$?
    head -n 200 "$work/shown"
    [ -z "$trouble" ] || { echo "lesson $n: $trouble"; return 1; }
    if [ $rc = 0 ] && [ $shown != 0 ]; then rc=1 verdict="its program failed"; fi
    mkdir -p "${OUT:-.}"
    if [ $rc = 0 ] && limited "$work/$n" "$work/said" 8192 draw picture.svg && [ -s "$work/in/picture.svg" ]; then
        cp "$work/in/picture.svg" "$picture" && echo "the picture is $picture"
    fi
    echo "lesson $n: $verdict"
    return $rc
}
grade() {                               # DIR
    local dir=${1:?a folder is expected} file student n d right=0 all=0 students=0 last=
    [ -d "$dir" ] || { echo "$dir is no folder" >&2; return 2; }
    echo "student,lesson,right,verdict" >"$work/grades.csv"
    for file in "$dir"/*/[0-9][0-9].c; do
        [ -f "$file" ] || continue
        student=$(basename "$(dirname "$file")") n=$(basename "$file" .c)
        d=$(folder "$n") || continue
        all=$((all + 1))
        [ "$student" = "$last" ] || students=$((students + 1)) last=$student
        if judge "$d" "$(realpath "$file")" "$work/$n"; then ok=yes right=$((right + 1)); else ok=no; fi
        printf '"%s",%s,%s,"%s"\n' "${student//\"/\"\"}" "$n" "$ok" "${verdict//\"/\"\"}" >>"$work/grades.csv"
    done
    cp "$work/grades.csv" "$dir/grades.csv" || return 1
    echo "grade: $students students, $all answers, $right right; $dir/grades.csv"
}
solutions=0 starts=0 wrongs=0 pictures=0 bad=0
fails() { bad=$((bad + 1)); echo "  FAIL  $*"; }
gets_hint() {                           # LESSON FILE: the one that hints.txt says
    local want
    want=$(sed -n "s/^$(basename "$2"): //p" "$1/hints.txt")
    if [ -z "$want" ]; then fails "$2: hints.txt has no hint for it"; return 1; fi
    if judge "$1" "$2" "$work/answer"; then fails "$2: it passes"; return 1; fi
    case $verdict in "hint: "*"$want"*) ;; *) fails "$2: \"$verdict\"; \"$want\" is expected"; return 1 ;; esac
}
lesson() {                              # LESSON
    local d=$1 f
    if judge "$d" "$d/solution.c" "$work/solution"; then solutions=$((solutions + 1)); else cat "$work/solution.log"; fails "$d/solution.c: $verdict"; return; fi
    [ ! -s "$work/solution.log" ] || { cat "$work/solution.log"; fails "$d: the compiler warns"; }
    limited "$work/solution" "$work/shown" 0 show || fails "$d: show: ${trouble:-its program failed}"
    [ "${NUMBERS:-}" != write ] || cp "$work/shown" "$d/expected.txt"
    cmp -s "$work/shown" "$d/expected.txt" || { diff "$work/shown" "$d/expected.txt" | head -n 10; fails "$d: other numbers than expected.txt"; }
    limited "$work/solution" "$work/said" 8192 draw picture.svg
    [ "${PICTURES:-}" != write ] || cp "$work/in/picture.svg" "$d/picture.svg"
    if cmp -s "$work/in/picture.svg" "$d/picture.svg"; then pictures=$((pictures + 1)); else cat "$work/said"; fails "$d: another picture than picture.svg"; fi
    if gets_hint "$d" "$d/start.c"; then starts=$((starts + 1)); fi
    for f in "$d"/wrong_*.c; do if gets_hint "$d" "$f"; then wrongs=$((wrongs + 1)); fi; done
}
all() {
    local d begin=$SECONDS
    seconds=${SECONDS_EACH:-200}                        # our own answers end, on a slow machine late
    for d in ${ONLY:-"$here"/[0-9][0-9]_*/}; do lesson "${d%/}"; done
    echo "lessons: $solutions solutions pass, $starts starts and $wrongs wrong answers get their hints, $pictures pictures are as they were, $((SECONDS - begin)) s"
    echo "$((solutions + starts + wrongs + pictures)) passed, $bad failed"
    [ $bad = 0 ] && [ $solutions -gt 0 ]
}
command=${1:-}
case $command in
start|run|grade|all) shift; "$command" "$@" ;;
*) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
