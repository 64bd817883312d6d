# shellcheck shell=bash
# one.sh, to be sourced by run.sh: runs one unit, program or script and reports it. A lane reads and writes the variables passed, failed,
# tag (a suffix of all names: .cuda, .block, ..) and early (not empty: this lane runs only the longest ones).
#
# Criterion lets some things pass that are failures here: a leak (its worker prints it and exits 0), a test that was skipped or disabled, a
# suite without tests. So sanitizers write to files, and every test that a program lists must have run.

long=" test_recur_layer test_recur test_recur_fold test_kernel_bits test_rnn_lookup test_memory test_speed golden_recurrent \
golden_layers test_parallel.sh test_forecast.sh test_site.sh test_weft.sh test_bench.sh test_lab.sh "

# Takes NAME for this lane. False if another lane has it, or if it is short and this is the turn of the long ones.
claim() {
    if [ -n "$early" ] && [[ $long != *" ${1%"$tag"} "* ]]; then return 1; fi
    mkdir "$logs/claims/$1" 2>/dev/null
}

# Runs COMMAND with its output in the log of NAME; sets rc, and seconds to those of the clock and those of processors.
run() {                                 # NAME COMMAND...
    local name=$1 time=$logs/time.$BASHPID TIMEFORMAT='%R %U %S'
    shift
    { time ASAN_OPTIONS="${asan}log_path=$logs/$name.san" LSAN_OPTIONS=$lsan TSAN_OPTIONS="exitcode=66" \
        timeout "$limit" "$@" >"$logs/$name" 2>&1 </dev/null; } 2>"$time"
    rc=$?
    seconds=$(awk '{ printf "%.1f %.1f", $1, $2 + $3 }' "$time")
}

sanitizer_found() { compgen -G "$logs/$1.san.*" >/dev/null; }          # NAME

# Prints a line and, of a failure, the log. Counts into passed and failed.
report() {                              # NAME PASSED FAILED WHY
    local name=$1 good=$2 bad=$3 why=$4 f
    if [ "$bad" = 0 ] && [ "$rc" != 0 ]; then bad=1; why=${why:-exit status $rc}; fi
    if sanitizer_found "$name"; then [ "$bad" != 0 ] || bad=1; why="$why a sanitizer complains"; fi
    if [ "$rc" = 124 ]; then why="ran for more than $limit s"; fi
    if [ -n "${WEFT_REQUIRE:-}" ] && [ "$bad" = 0 ] && grep -q '^skipped: ' "$logs/$name"; then bad=1 why="a part was skipped"; fi
    mkdir "$logs/claims/$name/reported" || { bad=1; why="it was run twice"; }
    passed=$((passed + good)) failed=$((failed + bad))
    if [ "$bad" = 0 ]; then
        # shellcheck disable=SC2086
        printf '  ok    %-28s %6d  %5.1f s, of a processor %5.1f s\n' "$name" "$good" $seconds
        sed -n 's/^skipped: /        | &/p' "$logs/$name"
        return
    fi
    # shellcheck disable=SC2086
    printf '  FAIL  %-28s %6d  %5.1f s, of a processor %5.1f s   %s\n' "$name" "$bad" $seconds "$why"
    head -c 20000 "$logs/$name" | sed 's/^/        | /'
    for f in "$logs/$name".san.*; do [ -f "$f" ] && head -n 60 "$f" | sed 's/^/        | /'; done
}

# Runs the Criterion tests of a unit, or those whose names match PATTERN.
criterion() {                           # UNIT [PATTERN]
    local unit=$1 pattern=${2:-*} name=${1##*/}$tag listed=0 ran=0 good=0 test again
    claim "$name" || return
    # shellcheck disable=SC2053
    for test in $(tests_of "$unit"); do if [[ $test == $pattern ]]; then listed=$((listed + 1)); fi; done
    # The tracer of GCC 12's leak sanitizer crashes now and then, and with the same environment always or never: change the environment.
    for again in '' - --; do
        WEFT_AGAIN=$again run "$name" "$(program_of "$unit")" --filter "$(filter_of "$unit" "${2:-}")" --color=never --short-filename --encoding=UTF-8
        grep -qs 'LeakSanitizer has encountered a fatal error' "$logs/$name".san.* || break
        rm -f "$logs/$name".san.*
    done
    read -r ran good < <(sed -n 's/.*Tested: *\([0-9]*\).*Passing: *\([0-9]*\).*/\1 \2/p' "$logs/$name" | tail -n 1)
    good=${good:-0}
    if [ "$listed" = 0 ]; then report "$name" "$good" 1 "no tests in it"
    elif [ "$good" != "$listed" ]; then report "$name" "$good" $((listed - good)) "$listed listed, ${ran:-0} run, $good good"
    else report "$name" "$good" 0 ''
    fi
}

# Runs a script or program that ends with "N of M .. hold", which counts as M tests, or with nothing of the kind, which counts as one.
counted() {                             # NAME COMMAND...
    local name=$1 good all=
    claim "$name" || return
    run "$@"
    read -r good all < <(sed -n 's/^\([0-9][0-9]*\) of \([0-9][0-9]*\) .*hold.*/\1 \2/p' "$logs/$name" | tail -n 1)
    if [ -z "$all" ]; then report "$name" $((rc == 0)) $((rc != 0)) ''
    elif [ "$all" = 0 ]; then report "$name" 0 1 "nothing in it"
    else report "$name" "$good" $((all - good)) ''
    fi
}

# Golden vectors. ThreadSanitizer is slow where each thread of a kernel is one of the machine: one case or a few there, of models on the CPU too.
golden() {                              # PROGRAM
    local file few=(1layer_bi_state ragged proj_nogate_noncausal only_enc 1layer)
    for file in recurrent layers models models_edges linear; do
        case ${V:-}${tag:+GPU},$file in tsanGPU,*|tsan,models*) export WEFT_GOLDEN=${few[0]} ;; esac
        few=("${few[@]:1}")
        counted "golden_$file$tag" $start "$1" "tests/golden/$file.json"
        [ "${V:-}" != tsan ] || unset WEFT_GOLDEN
    done
}
