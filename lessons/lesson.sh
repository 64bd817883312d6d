#!/usr/bin/env bash
# lesson.sh    compiles students' answers to the lessons, runs them with limits, checks them and draws pictures.
#
#   lesson.sh start N DIR       writes the exercise to DIR/NN.c, and a Makefile that checks it
#   lesson.sh run N [FILE]      compiles FILE (default: the empty exercise), prints numbers, checks, draws NN.svg into OUT (default: .)
#   lesson.sh grade DIR         checks all DIR/STUDENT/NN.c, each in its own process, and writes DIR/grades.csv, .json and .xml
#   lesson.sh package DIR       copies the lessons to DIR for students, without solutions, wrong answers and sources of the checks
#   lesson.sh solutions DIR     copies solutions, checks, wrong answers and answers to the questions to DIR, for teachers (source tree only)
#   lesson.sh answers N DIR     writes the solution and the wrong answers of wrong.txt to DIR (source tree only)
#   lesson.sh all               checks the course: solutions pass, empty exercises and the answers of wrong.txt get their hints, numbers
#                               and pictures are those of the tree. PICTURES=write and NUMBERS=write replace these
#
# In the tree the lessons use build/double, or B. Elsewhere they use the installed double library, pkg-config weft_f64.
set -u
here=$(cd "$(dirname "$0")" && pwd) root=$(cd "$(dirname "$0")/.." && pwd)
cc=${CC:-cc} seconds=${SECONDS_EACH:-20} work=${LESSON_WORK:-$(mktemp -d)} || exit 1
at_once=${AT_ONCE:-$(nproc 2>/dev/null || echo 1)}
trap 'kill ${servers[@]+"${servers[@]}"} 2>/dev/null; rm -rf "$work"' EXIT
unset LESSON_WORK
servers=()
export LC_ALL=C CCACHE_DISABLE=1

folder() {                              # N: prints the lesson's folder
    local d
    for d in "$here"/"$(printf %02d "$((10#${1:-0}))" 2>/dev/null)"_*/; do [ -d "$d" ] && { echo "${d%/}"; return; }; done
    echo "there is no lesson ${1:-}; there are: $(cd "$here" && ls -d [0-9][0-9]_* | cut -c1-2 | xargs)" >&2
    return 1
}
number() { basename "$1" | cut -c1-2; } # LESSON

# solution.c contains both files: the lines from #ifdef START to #else are only in start.c.
branch_of() {                           # LESSON start|solved
    awk -v left_out="$([ "$2" = start ] && echo 2 || echo 1)" '
        NR == 1 { print ""; next }
        /^#ifn?def START/ { of = /^#ifdef/ ? 1 : 2; next }
        of && /^#else/ { of = 3 - of; next }
        of && /^#endif/ { of = 0; next }
        of != left_out' "$1/solution.c"
}
start_of() {                            # LESSON: prints start.c, which is a file in the students' package
    [ ! -f "$1/start.c" ] || { cat "$1/start.c"; return; }
    echo "/* Lesson $(sed -n '1s/^# //p' "$1/lesson.md")"
    echo " * Fill in the missing parts. lesson.h describes each function. */"
    branch_of "$1" start | tail -n +2 | cat -s
}

# ---- compiling ----
flags=(-std=c11 -O1 -Wall)
if [ -f "$root/core/api_core.h" ]; then
    build=${B:-$root/build/double}
    case $build in /*) ;; *) build=$root/$build ;; esac
    weft=(-I"$root" -DWEFT_DOUBLE) headers=$work/weft
    libs=(-Wl,--whole-archive "$build/libweft.a" -Wl,--no-whole-archive $(${PKG_CONFIG:-pkg-config} --libs hdf5 zlib) -ldl -lm -lpthread)
else
    weft=($(${PKG_CONFIG:-pkg-config} --cflags weft_f64)) libs=($(${PKG_CONFIG:-pkg-config} --libs weft_f64) -ldl -lm)
    headers=$(${PKG_CONFIG:-pkg-config} --variable=includedir weft_f64)
fi
# If the compiler can do it, answers have sanitizers, and a pattern in uninitialised variables.
pattern=() sanitize=() as_depends=()
try() { echo 'int main(void) { return 0; }' | "$cc" "$@" -x c -o "$work/try" - >/dev/null 2>&1 && "$work/try" >/dev/null 2>&1; }
# Writes assembly with the other pattern in uninitialised variables: positive numbers instead of negative ones and NaN.
positive() {
    sed -E 's/-16843010\b/2122219134/; s/-72340172838076674\b/9114861777597660798/; /movw/s/\$-258\b/$32382/
        /^\.LC/,/^[^.\t]|^\t\.[sat]/s/(\.byte\t)-2$/\1126/; /\$254, %esi/{N;N;/call\s+memset/s/\$254/$126/}' "$1"
}
has_patterns() {                        # whether `positive` knows the code of this compiler
    echo 'int main(int n, char **a) { int i; long l; double d, e[3], f[90], g[n + 1]; return !(i > 0 && l > 0 && d > 0 && e[2] > 0 && f[80] > 0 && g[1] > 0); }' |
        "$cc" -O0 "${pattern[@]}" ${sanitize[@]+"${sanitize[@]}"} -w -S -x c -o "$work/try.s" - && positive "$work/try.s" >"$work/is.s" &&
        "$cc" ${sanitize[@]+"${sanitize[@]}"} -o "$work/try" "$work/is.s" && "$work/try"
} >/dev/null 2>&1
find_sanitizers() {
    local missing=()
    export ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=0:symbolize=0:handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:handle_abort=0:max_malloc_fill_size=0:detect_stack_use_after_return=0:malloc_context_size=0:quarantine_size_mb=16
    export UBSAN_OPTIONS=print_stacktrace=0
    if try -ftrivial-auto-var-init=pattern -fsanitize=address,undefined; then
        pattern=(-ftrivial-auto-var-init=pattern) sanitize=(-fsanitize=address,undefined)
        return
    fi
    if try -ftrivial-auto-var-init=pattern; then pattern=(-ftrivial-auto-var-init=pattern); else missing+=("-ftrivial-auto-var-init"); fi
    if try -fsanitize=address,undefined; then sanitize=(-fsanitize=address,undefined); else missing+=("-fsanitize=address,undefined"); fi
    [ ${#missing[@]} = 0 ] || echo "note: $cc has no ${missing[*]}: fewer mistakes with memory are found" >&2
}
case ${V:-} in dasan) seconds=${SECONDS_EACH:-200} ;; esac     # programs take up to ten times as long

# Starts this script again in namespaces of its own, see common/box.c, and looks for features of the compiler and the kernel.
set_up() {                              # the command's ARGUMENT..
    local missing f compiler
    if [ ! -x "$work/box" ]; then
        "$cc" "${flags[@]}" -I"$here" -o "$work/box" "$here"/common/{box,fence}.c || exit 2
        export LESSON_WORK=$work
        exec "$work/box" alone bash "$here/lesson.sh" "$command" "$@"
    fi
    find_sanitizers
    patterns=
    if [ ${#pattern[@]} != 0 ] && has_patterns; then patterns=yes; fi
    libc=(-lm)                          # the program has loaded libc, so an answer is linked without it, which is three times as fast
    if echo 'int x;' | "$cc" -shared -nostdlib -x c -o "$work/try" - -lgcc -lm >/dev/null 2>&1; then libc=(-nostdlib -lgcc -lm); fi
    missing=$("$work/box" has)
    [ -z "$missing" ] || sed 's/^/note: not prevented: /' <<<"$missing" >&2
    compiler=$(realpath -- "$(command -v "$cc")") readable=(/usr/{lib,lib32,lib64,libexec,include,bin} /usr/local/{lib,include,bin} /lib /lib64 /bin /etc/ld.so.cache /Library "$headers")
    case $compiler in /usr/*) ;; *) readable+=("${compiler%/bin/*}") ;; esac
    landlock=yes
    case $missing in *"no Landlock"*) landlock= ;; esac
    if [ -z "$landlock" ] && try -Wa,--MD,"$work/as"; then as_depends=(-Wa,--MD,as_depends); fi
    if [ -d "$root/core" ]; then
        for f in $(cd "$root" && "$cc" -MM "${weft[@]}" weft*.h | tr ' ' '\n' | grep 'h$' | sed "s|^$root/||" | sort -u); do
            mkdir -p "$headers/$(dirname "$f")" && cp "$root/$f" "$headers/$f"
        done
    fi
    mkdir "$work/common"
    for f in lesson answer fence; do
        "$cc" "${flags[@]}" "${weft[@]}" -I"$here" -c -o "$work/common/$f.o" "$here/common/$f.c" || exit 2
    done
}

# Compiles the lesson's program once, without an answer. The headers are copied, so that an answer finds no other file next to them.
program() {                             # LESSON: makes $work/NN/program, $work/NN/include and the compiler's $work/NN/log
    local to f objects=()
    to=$work/$(number "$1")
    mkdir -p "$to/include"
    cp "$1"/*.h "$to/include"
    sed -n 's/^.*__wrap_\(weft_[a-z_]*\)(.*/-Wl,--wrap=\1/p' "$1/calls.c" >"$to/wraps"
    for f in "$1"/{show,calls,check}.c; do
        objects+=("$to/$(basename "$f" .c).o")
        if [ -f "${f%.c}.o" ] && [ ! -f "$f" ]; then objects[-1]=${f%.c}.o; continue; fi
        "$cc" "${flags[@]}" "${weft[@]}" -I"$here" -I"$1" -c -o "${objects[-1]}" "$f" >>"$to/log" 2>&1 || return 1
    done
    "$cc" ${sanitize[@]+"${sanitize[@]}"} -o "$to/program" "${objects[@]}" "$work"/common/*.o -Wl,-S -Wl,--dynamic-list="$here/common/exports.list" "${libs[@]}" >>"$to/log" 2>&1
}
need_program() {                        # LESSON [remember]: starts the program, which serves requests
    local n to
    n=$(number "$1") to=$work/$(number "$1")
    if [ ! -x "$to/program" ] && ! program "$1"; then
        cat "$to/log" >&2
        echo "lesson $n: its own program does not compile" >&2
        exit 2
    fi
    mkfifo "$to/requests" || exit 2
    "$to/program" serve ${2:-} <>"$to/requests" >"$to/noise" 2>&1 &
    servers[10#$n]=$!
}
# An answer may include only files of the lesson, of weft and of the system. Landlock makes sure of that; without it this does.
foreign_header() {                      # JOB INCLUDE: prints the first other file
    local f system depends=("$1"/*depends)
    system=$(realpath -- "$("$cc" -print-file-name=include)")
    sed 's/^[^:]*: //; s/\\$//; s/\\ /\x01/g' "${depends[@]}" | tr ' ' '\n' | tr '\001' ' ' | grep . | (cd "$1" && xargs -d '\n' realpath --) | while IFS= read -r f; do
        case $f in
        "$1"/*|"$2"/*) ;;
        "$here"/*|"${class:-$here}"/*) echo "$f" ;;
        "$system"/*|/usr/lib/*|/usr/include/*|/usr/local/*|/opt/*|/Library/*) ;;
        "$headers"/*.h) ;;
        *) echo "$f" ;;
        esac
    done | head -n 1
}
complaint() { grep -m 1 -iE 'error|undefined|multiple' "$1" | sed -E 's|[^ ()`'\'']*/||g' | cut -c1-200; }
boxed() {                               # LESSON JOB COMMAND..: runs a part of the compiler in JOB
    local job=$2
    (cd "$job" || exit 1
     ulimit -c 0 -t "$patience" -v 4000000 -f 200000
     export TMPDIR=$job
     exec timeout -k 1 "$patience" "$work/box" files "${readable[@]}" "$work/$(number "$1")/include" -- . /dev/null -- "${@:3}"
     ) </dev/null >>"$job/log" 2>&1
}
# Makes JOB/answer.so, or sets `verdict`. Uninitialised variables are negative or NaN, the second time positive.
compile() {                             # LESSON FILE JOB [again]
    local n rc other include wraps patience=$((seconds > 20 ? seconds : 20)) job=$3 from=answer.s
    n=$(number "$1") include=$work/$(number "$1")/include
    mapfile -t wraps <"$work/$n/wraps"
    verdict=
    if [ ! -d "$job/in" ]; then
        mkdir -p "$job/in" && head -c 1000001 "$2" >"$job/$n.c" && mkfifo "$job/reply"
        if [ "$(wc -c <"$job/$n.c")" -gt 1000000 ]; then verdict="it is longer than a megabyte"; return 1; fi
    fi
    : >"$job/log"
    if [ $# -gt 3 ] && [ -n "$patterns" ]; then
        from=positive.s
        [ -s "$job/$from" ] || positive "$job/answer.s" >"$job/$from"
    else
        [ $# = 3 ] || local pattern=()
        boxed "$1" "$job" "$cc" "${flags[@]}" -O0 -DWEFT_DOUBLE ${pattern[@]+"${pattern[@]}"} ${sanitize[@]+"${sanitize[@]}" -fno-sanitize=vla-bound} -I"$include" -I"$headers" -fPIC -fno-omit-frame-pointer \
            -MD -MF depends -S -o answer.s "$n.c"
    fi && boxed "$1" "$job" "$cc" ${as_depends[@]+"${as_depends[@]}"} -shared -Wl,-Bsymbolic,-u,__bss_start,-u,_end -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc ${wraps[@]+"${wraps[@]}"} -o answer.so $from "${libc[@]}"
    rc=$?
    case $rc in 124|137|152|153) verdict="it does not compile within $patience s, 4 GB of memory and 200 MB of disk"; return 1 ;; esac
    if [ $rc != 0 ]; then
        verdict=$(complaint "$job/log")
        case $verdict in
        *": Permission denied") other=${verdict%: Permission denied}; verdict="it includes a file that is not the lesson's: ${other##*: }" ;;
        *) verdict="it does not compile: ${verdict:-the compiler fails, status $rc}" ;;
        esac
        return 1
    fi
    [ -n "$landlock" ] || other=$(foreign_header "$(realpath "$job")" "$(realpath "$include")")
    if [ -n "${other:-}" ]; then verdict="it includes a file that is not the lesson's: $(basename "$other")"; return 1; fi
}

# ---- running ----
# Asks the lesson's program, see common/lesson.c.
work_on() {                             # LESSON JOB check|both|show|draw FILL: sets `verdict` and `name`; numbers are in JOB/shown
    local n reply line said='' verdicts=0 left=() job=$2
    n=$(number "$1") verdict=
    exec {reply}<>"$job/reply"
    kill -0 "${servers[10#$n]}" 2>/dev/null && echo "$3 $4 $seconds $job" >"$work/$n/requests" &&
    while IFS= read -r -t $((20 * seconds + 60)) -u "$reply" line; do
        case $line in
        "verdict: "*) verdict=${line#verdict: } verdicts=$((verdicts + 1)) ;;
        "name: "*) name=${line#name: } ;;
        end) break ;;
        *) said=$line ;;
        esac
    done
    exec {reply}<&-
    [ -n "$verdict" ] || { verdict="the check has failed: ${said:-its program has ended}"; return 1; }
    for line in "$job"/in/* "$job"/in/.[!.]*; do [ ! -e "$line" ] || left+=("$line"); done
    if [ "$verdict" = right ] && [ "$3" != draw ] && [ ${#left[@]} != 0 ]; then verdict="it writes files"; fi
    if [ $verdicts = 2 ] && [ "$verdict" != right ]; then verdict="its program fails: $verdict"; fi
    [ "$verdict" = right ]
}
# Removes numbers that differ between right answers: a bias of two or three digits, the weights of a memory, the length of a tape.
comparable() {                          # LESSON FILE
    case $(number "$1") in
    03) sed '/^yours /d' "$2" ;;
    04) sed '/^the memory of one bit/,$d' "$2" ;;
    09) sed -E '/ (yes|no) /s/ +[0-9]+$//' "$2" ;;
    *) cat "$2" ;;
    esac
}
numbers_are_right() {                   # LESSON JOB
    local line expected got
    mapfile -t expected <"$1/expected.txt"
    mapfile -t got <"$2/shown"
    [ "${expected[*]}" != "${got[*]}" ] || return 0
    line=$(diff <(comparable "$1" "$1/expected.txt") <(comparable "$1" "$2/shown") | grep -m 1 '^[<>]') || return 0
    name=contradicts-expected.txt
    case $line in
    '>'*) verdict="the check passes, but the lesson's program prints a line that is not in expected.txt: ${line#> }" ;;
    *)    verdict="the check passes, but the lesson's program does not print this line of expected.txt: ${line#< }" ;;
    esac
    return 1
}
# Checks twice: uninitialised variables and memory are first negative or NaN, then positive.
checked() {                             # LESSON FILE JOB check|both: the request of the second time
    name=does-not-compile
    compile "${@:1:3}" && work_on "$1" "$3" check 255 && compile "${@:1:3}" again && work_on "$1" "$3" "$4" 126
}
judge() { checked "$@" both && numbers_are_right "$1" "$3"; }      # LESSON FILE JOB: sets `verdict`: "right", a hint, or the reason for a failure

# ---- several answers in parallel; results are read from pipes, in order ----
lessons=() files=() job=judged
judged() {                              # LESSON FILE JOB: prints status and verdict
    local begin=${EPOCHREALTIME/./}
    judge "$@"
    printf '%s\n' $? "$verdict" "$name" "$((${EPOCHREALTIME/./} - begin))"
}
all_judged() {                          # RESULT: a function that is called with index and status; `verdict`, `name`, `took` and `rest` are set
    local i next=0 pipes=() status lines
    for ((i = 0; i < ${#lessons[@]}; i++)); do
        for (( ; next < ${#lessons[@]} && next < i + at_once; next++)); do
            exec {pipes[next]}< <("$job" "${lessons[next]}" "${files[next]}" "$work/job.$next"; rm -rf "$work/job.$next")
        done
        mapfile -t lines <&"${pipes[i]}"
        exec {pipes[i]}<&-
        status=${lines[0]:-1} verdict=${lines[1]:-} name=${lines[2]:-} took=${lines[3]:-0} rest=
        [ ${#lines[@]} -le 4 ] || rest=$(printf '%s\n' "${lines[@]:4}")
        "$1" "$i" "$status"
    done
}
all_programs() {                        # [remember] LESSON..
    local d remember=
    [ "$1" != remember ] || { remember=$1; shift; }
    for d; do
        while [ "$(jobs -rp | wc -l)" -ge "$at_once" ]; do wait -n; done
        program "$d" &
    done
    wait
    for d; do need_program "$d" $remember; done
}

# ---- commands ----
start() {                               # N DIR
    local d n to=${2:?a folder is expected}
    d=$(folder "${1:-}") || return 2
    n=$(number "$d")
    mkdir -p "$to" || return 1
    [ ! -e "$to/$n.c" ] || { echo "$to/$n.c exists already and is not changed" >&2; return 1; }
    if [ -e "$to/Makefile" ] && ! head -n 1 "$to/Makefile" | grep -q '^# weft: make 02'; then
        echo "$to has another Makefile, which is not changed. Choose another folder" >&2
        return 1
    fi
    start_of "$d" >"$to/$n.c" || return 1
    printf '# weft: make 02 checks 02.c\n%%: %%.c FORCE\n\t@bash "%s/lesson.sh" run $* $<\nFORCE:\n' "$here" >"$to/Makefile"
    echo "Read $d/lesson.md, fill in $to/$n.c, and check it with: make -C $to $n"
}
run() {                                 # N [FILE]
    local d n file rc job=$work/job picture name
    d=$(folder "${1:-}") || return 2
    set_up "$@"
    n=$(number "$d")
    [ $# -gt 1 ] || start_of "$d" >"$work/start.c"
    file=$(realpath -- "${2:-$work/start.c}") || return 2
    [ -f "$file" ] || { echo "there is no file $file" >&2; return 2; }
    picture=${OUT:-.}/$n.svg
    need_program "$d"
    checked "$d" "$file" "$job" check
    rc=$? found=$verdict
    case $verdict in "it does not compile"*|"it includes"*) cat "$job/log"; echo "lesson $n: $verdict"; return 1 ;; esac
    [ ! -f "$job/said" ] || head -c 20000 "$job/said" | grep -av '^==.*reading executable name' | head -n 200
    compile "$d" "$file" "$job" again && cp "$job/answer.so" "$job/kept.so" && work_on "$d" "$job" show 126 || { [ $rc != 0 ] || found="its program fails: $verdict"; rc=1; }
    head -n 200 "$job/shown"
    if [ $rc = 0 ] && ! numbers_are_right "$d" "$job"; then rc=1 found=$verdict; fi
    if [ $rc = 0 ] && mv "$job/kept.so" "$job/answer.so" && work_on "$d" "$job" draw 126 && [ -s "$job/in/picture.svg" ]; then
        mkdir -p "${OUT:-.}"
        cp "$job/in/picture.svg" "$picture" && echo "the picture is $picture"
    fi
    echo "lesson $n: $found"
    return $rc
}

# An answer is NN.c. Other C files also get a line.
misnamed() {                            # FILE: prints why it is not graded
    local name digits
    name=$(basename "$1") digits=$(basename "$1" | tr -dc 0-9)
    if [ -L "$1" ]; then echo "not graded: it is a link"
    elif [ ! -f "$1" ]; then echo "not graded: it is not a file"
    elif folder "${digits:-0}" >/dev/null 2>&1; then
        [ "$name" = "$(number "$(folder "$digits")").c" ] || echo "not graded: an answer of lesson $((10#$digits)) is called $(number "$(folder "$digits")").c"
    else echo "not graded: answers are called 01.c .. $(cd "$here" && ls -d [0-9][0-9]_* | tail -n 1 | cut -c1-2).c"
    fi
}
records=()
record() {                              # STUDENT LESSON FILE yes|no|none HINT VERDICT MICROSECONDS: see common/grades.awk
    printf -v "records[${#records[@]}]" '%s\037' "${@:1:5}" "${6//[^[:print:]]/?}" "$(($7 / 1000000)).$(printf %06d $(($7 % 1000000)))"
}
graded() {                              # INDEX STATUS
    local ok=no file=${files[$1]}
    [ "$2" != 0 ] || ok=yes
    record "${owners[$1]}" "$(number "${lessons[$1]}")" "${file##*/}" $ok "$name" "$verdict" "$took"
}
grade() {                               # DIR
    local dir=${1:?a folder is expected} folder file why owner n of_file all
    [ -d "$dir" ] || { echo "$dir is not a folder" >&2; return 2; }
    set_up "$dir"
    seconds=${SECONDS_EACH:-4}          # of the processor; checks need less than a tenth
    class=$(realpath "$dir") owners=()
    all=$(cd "$here" && ls -d [0-9][0-9]_* | cut -c1-2 | xargs)
    for folder in "$dir"/*/; do
        [ -d "$folder" ] || continue
        owner=$(basename "$folder") owner=${owner//[[:cntrl:]]/?}
        record "$owner" "" "" none "" "" 0
        for file in "$folder"*.[cC]*; do
            [ -e "$file" ] || [ -L "$file" ] || continue
            why=$(misnamed "$file") of_file=$(basename "$file" | tr -dc 0-9)
            if [ -z "$why" ]; then
                owners+=("$owner") files+=("$(realpath "$file")") lessons+=("$(folder "$of_file")")
                continue
            fi
            n=$(folder "${of_file:-0}" 2>/dev/null) && n=$(number "$n") || n='?'
            file=$(basename "$file")
            record "$owner" "$n" "${file//[[:cntrl:]]/?}" none wrong-name "$why" 0
        done
    done
    [ ${#lessons[@]} = 0 ] || all_programs remember $(printf '%s\n' "${lessons[@]}" | sort -u)
    all_judged graded
    { [ ${#records[@]} = 0 ] || printf '%s\n' "${records[@]}"; } | awk -v dir="$dir" -v lessons="$all" -f "$here/common/grades.awk" || return 1
    for file in csv json xml; do mv "$dir/grades.$file.new" "$dir/grades.$file" || return 1; done
}

package() {                             # DIR
    local to=${1:?a folder is expected} d into
    umask 022                           # other users read the package
    [ -f "$here/01_tape/check.c" ] || { echo "only the source tree can make a package" >&2; return 2; }
    mkdir -p "$to/common" && cp "$here"/common/* "$to/common" && cp "$here"/{lesson.sh,README.md,teachers.md} "$to" || return 1
    for d in "$here"/[0-9][0-9]_*; do
        into=$to/$(basename "$d")
        mkdir -p "$into" && cp "$d"/{lesson.md,expected.txt,picture.svg,show.c,calls.c} "$d"/*.h "$into" || return 1
        start_of "$d" >"$into/start.c" || return 1
        "$cc" -std=c11 -O1 "${weft[@]}" -I"$here" -I"$d" -c -o "$into/check.o" "$d/check.c" || return 1
    done
    echo "lessons without solutions: $to"
}

solutions() {                           # DIR
    local to=${1:?a folder is expected} d into file
    [ -f "$here/01_tape/check.c" ] || { echo "only the source tree has the solutions" >&2; return 2; }
    for d in "$here"/[0-9][0-9]_*; do
        into=$to/$(basename "$d")
        mkdir -p "$into" && branch_of "$d" solved | tail -n +2 >"$into/solution.c" || return 1
        for file in "$d"/{check.c,wrong.txt,mistakes.def}; do [ ! -f "$file" ] || cp "$file" "$into" || return 1; done
    done
    cp "$here/answers.md" "$to" || return 1
    echo "solutions of the lessons: $to"
}

# ---- the course itself ----
# wrong.txt lists wrong answers with the hints that they must get, separated by blank lines. An answer is a changed solution.c.
# "~ A => B" replaces A by B. As in a diff, lines with - are removed, lines with + are added, and lines with a blank mark the place; @
# separates two adjacent changes. "> " has a part of the hint. "# " has a title if the hint does not explain the mistake. "start.c" is
# the empty exercise.
wrong_answers() {                       # LESSON DIR: writes DIR/K.c and DIR/K.hint
    mkdir -p "$2"
    start_of "$1" >"$2/start"
    branch_of "$1" solved >"$2/solved"
    awk -v to="$2/" '
        function replace(old, new,    at) {
            at = index(text, old)
            if (!at || index(substr(text, at + 1), old)) complain((at ? "twice" : "nowhere") " in solution.c: " old)
            text = substr(text, 1, at - 1) new substr(text, at + length(old))
        }
        function change() {
            if (old != "") replace("\n" old, "\n" new)
            old = new = ""
            added = 0
        }
        function complain(what) { print FILENAME ": \"" title hint "\": " what; bad = 1 }
        function finish(    file) {
            if (text == "") return
            change()
            n++
            file = to sprintf("%02d", n)
            printf "%s", text >(file ".c")
            print hint >(file ".hint")
            print (title == "" ? hint : title) >(file ".title")
            close(file ".c"); close(file ".hint"); close(file ".title")
            if (hint == "" || text == solution) complain("no hint or no change")
            text = title = hint = ""
        }
        FILENAME ~ /start$/ { start = start $0 "\n"; next }
        FILENAME ~ /solved$/ { solution = solution $0 "\n"; next }
        /^$/ { finish(); next }
        text == "" { text = solution }
        /^start.c$/ { text = start; title = $0; next }
        /^# / { title = substr($0, 3); next }
        /^> / { hint = substr($0, 3); next }
        /^@/ { change(); next }
        /^~ / { change(); at = index($0, " => "); replace(substr($0, 3, at - 3), substr($0, at + 4)); next }
        /^-/ { if (added) change(); old = old substr($0, 2) "\n"; next }
        /^ / { old = old substr($0, 2) "\n"; new = new substr($0, 2) "\n"; next }
        /^\+/ { new = new substr($0, 2) "\n"; added = 1; next }
        { complain("unknown kind of line: " $0) }
        END { finish(); exit bad }' "$2/start" "$2/solved" "$1/wrong.txt"
}
answers() {                             # N DIR
    local d
    d=$(folder "${1:-}") && wrong_answers "$d" "${2:?a folder is expected}"
}
solutions=0 starts=0 wrongs=0 pictures=0 bad=0
fails() { bad=$((bad + 1)); echo "  FAIL  $*"; }
# Also compares the solution's numbers and picture, to the last character, and prints differences.
solution_judged() {                     # LESSON FILE JOB
    local d=$1 log=$work/$(number "$1")/log
    judge "$@"
    printf '%s\n%s\n' $? "$verdict"
    [ ! -s "$3/log" ] || cat "$3/log"
    [ ! -s "$log" ] || { cat "$log"; echo "the compiler warns"; }
    [ "${NUMBERS:-}" != write ] || cp "$3/shown" "$d/expected.txt"
    cmp -s "$3/shown" "$d/expected.txt" || { diff "$3/shown" "$d/expected.txt" | head -n 10; echo "numbers differ from expected.txt"; }
    compile "$@" again && work_on "$d" "$3" draw 126
    [ "${PICTURES:-}" != write ] || cp "$3/in/picture.svg" "$d/picture.svg"
    cmp -s "$3/in/picture.svg" "$d/picture.svg" || { cat "$3/said"; echo "the picture differs from picture.svg"; }
}
any_judged() { case $2 in */solution.c) solution_judged "$@" ;; *) judged "$@" ;; esac; }
looked_at() {                           # INDEX STATUS
    local file=${files[$1]} name=${names[$1]} want=${hints[$1]}
    case $file in
    */solution.c)
        if [ "$2" = 0 ]; then solutions=$((solutions + 1)); else fails "$name: $verdict"; fi
        case $rest in *"the picture differs"*) ;; *) pictures=$((pictures + 1)) ;; esac
        [ -z "$rest" ] || fails "$name: $rest"
        return ;;
    esac
    if [ "$2" = 0 ]; then fails "$name: it passes; \"$want\" is expected"; return; fi
    case $verdict in *"$want"*) ;; *) fails "$name: \"$verdict\"; \"$want\" is expected"; return ;; esac
    case $name in *": start.c") starts=$((starts + 1)) ;; *) wrongs=$((wrongs + 1)) ;; esac
}
all() {
    local d f begin=$SECONDS folders=(${ONLY:-"$here"/[0-9][0-9]_*/})
    set_up
    seconds=${SECONDS_EACH:-200} names=() hints=() job=any_judged      # these answers end, but late on a slow machine
    folders=("${folders[@]%/}")
    all_programs "${folders[@]}"
    for d in "${folders[@]}"; do
        lessons+=("$d") files+=("$d/solution.c") names+=("$(basename "$d")/solution.c") hints+=(right)
        wrong_answers "$d" "$work/wrong/$(number "$d")" || fails "$d: wrong.txt"
        for f in "$work/wrong/$(number "$d")"/*.c; do
            lessons+=("$d") files+=("$f") hints+=("$(cat "${f%.c}.hint")")
            names+=("$(basename "$d"): $(cat "${f%.c}.title")")
        done
    done
    all_judged looked_at
    echo "lessons: $solutions solutions pass, $starts starts and $wrongs wrong answers get their hints, $pictures pictures are as they were, $((SECONDS - begin)) s"
    echo "$((solutions + starts + wrongs + pictures)) passed, $bad failed"
    [ $bad = 0 ] && [ $solutions -gt 0 ]
}
command=${1:-}
case $command in
start|run|grade|package|solutions|all|answers) shift; "$command" "$@" ;;
*) sed -n '2,15s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
