#!/usr/bin/env bash
# run.sh PROGRAM...    runs the tests of one build and ends with "N passed, M failed". B is the build, V its variant, CC the compiler.
#
# A program of a room runs unit by unit (units.sh): UNITS="test_ops io" runs only that unit and that room. FAST=1 runs
# Criterion's tests and the code of the documents: no scripts, no golden vectors, no emulation.
#
# Some things that Criterion lets pass are failures here: a leak (its worker prints it and exits 0), a test that was skipped or disabled, a
# suite without tests. Sanitizers therefore write to files, and every listed test must have run. WEFT_LIMIT: seconds for a unit;
# WEFT_SOAK=1: no limit. A script or a runner may end with "N of M .. hold" to count as M tests; otherwise it is one.
#
# CUDA=FOLDER has the back end of a GPU, or its emulation: every unit that uses the kernel tables then runs once more on it, in small, the
# emulation in one of its three orders of threads each time. CUDA_ONLY=1: nothing else. GPU=1: it is a real GPU, and tests that
# hand the host's own memory to a kernel are left out.
# WEFT_REQUIRE=cuda: a test that was skipped is a failure, and so is a run without a GPU's tests.
#
# There are as many lanes as cores, up to four (WEFT_LANES overrides; on a GPU there is one). Each walks the same list and runs what
# no other has claimed, the longest first. Tests of times run alone, before the lanes.
set -u
. tests/units.sh
limit=${WEFT_LIMIT:-300}; [ -n "${WEFT_SOAK:-}" ] && limit=0
passed=0 failed=0
logs=$(realpath -m "$B")/logs; rm -rf "$logs"; mkdir -p "$logs/claims"
export B V CC TMPDIR=$logs/tmp XDG_CACHE_HOME=$logs/cache
mkdir -p "$TMPDIR" "$XDG_CACHE_HOME"
export UBSAN_OPTIONS=print_stacktrace=1 WEFT_TESTS=$PWD/tests
asan="allocator_may_return_null=1:"
lsan="suppressions=$PWD/tests/leak/suppressions:print_suppressions=0"

report() {                              # NAME PASSED FAILED SECONDS WHY
    if [ -n "${WEFT_REQUIRE:-}" ] && [ "$3" = 0 ] && grep -q '^skipped: ' "$logs/$1"; then set -- "$1" "$2" 1 "$4" "a part was skipped"; fi
    mkdir "$logs/claims/$1/told" || set -- "$1" "$2" 1 "$4" "it was run twice"
    passed=$((passed + $2)) failed=$((failed + $3))
    if [ "$3" = 0 ]; then printf '  ok    %-28s %6d  %5.1f s, of a processor %5.1f s\n' "$1" "$2" $4; sed -n 's/^skipped: /        | &/p' "$logs/$1"; return; fi
    printf '  FAIL  %-28s %6d  %5.1f s, of a processor %5.1f s   %s\n' "$1" "$3" $4 "$5"
    head -c 20000 "$logs/$1" | sed 's/^/        | /'
    for f in "$logs/$1".san.*; do [ -f "$f" ] && head -n 60 "$f" | sed 's/^/        | /'; done
}

long=" test_recur_layer test_recur test_recur_fold test_kernel_bits test_rnn_lookup test_memory test_ragged test_speed golden_recurrent golden_layers test_parallel.sh test_forecast.sh test_site.sh test_weft.sh test_bench.sh test_lab.sh "
claimed() {                             # NAME: by another lane, or long since, or its turn comes later
    if [ -n "$early" ] && [[ $long != *" ${1%"$tag"} "* ]]; then return; fi
    ! mkdir "$logs/claims/$1" 2>/dev/null
}

run() {                                 # NAME COMMAND...: into the log; sets rc and seconds, by the clock and of processors
    local name=$1 time=$logs/time.$BASHPID TIMEFORMAT='%R %U %S'; shift
    { time ASAN_OPTIONS="${asan}log_path=$logs/$name.san" LSAN_OPTIONS=$lsan TSAN_OPTIONS="exitcode=66" \
        timeout "$limit" "$@" >"$logs/$name" 2>&1 </dev/null; } 2>"$time"
    rc=$?
    seconds=$(awk '{ printf "%.1f %.1f", $1, $2 + $3 }' "$time")
}

criterion() {                           # UNIT [PATTERN of a test's name]
    local unit=$1 name=${1##*/}$tag listed=0 tested good why= one program
    if claimed "$name"; then return; fi
    for one in $(tests_of "$unit"); do [[ $one != ${2:-*} ]] || listed=$((listed + 1)); done
    # The leak sanitizer's own tracer crashes now and then (GCC 12), always or never with the same environment: then another one.
    for again in '' - --; do
        WEFT_AGAIN=$again run "$name" "$(program_of "$unit")" --filter "$(filter_of "$unit" "${2:-}")" --color=never --short-filename --encoding=UTF-8
        grep -qs 'LeakSanitizer has encountered a fatal error' "$logs/$name".san.* || break
        rm -f "$logs/$name".san.*
    done
    read -r tested good < <(sed -n 's/.*Tested: *\([0-9]*\).*Passing: *\([0-9]*\).*/\1 \2/p' "$logs/$name" | tail -n 1)
    tested=${tested:-0} good=${good:-0}
    local bad=$((listed - good))
    [ "$bad" = 0 ] || why="$listed listed, $tested run, $good good"
    if [ "$listed" = 0 ]; then bad=1 why="no tests in it"; fi
    if [ "$rc" = 124 ]; then why="ran for more than $limit s"; fi
    if [ "$bad" = 0 ] && [ "$rc" != 0 ]; then bad=1 why="exit status $rc"; fi
    if compgen -G "$logs/$name.san.*" >/dev/null; then [ "$bad" = 0 ] && bad=1; why="$why a sanitizer complains"; fi
    report "$name" "$good" "$bad" "$seconds" "$why"
}

counted() {                             # NAME COMMAND...
    local name=$1 n m why=
    if claimed "$name"; then return; fi
    run "$@"
    read -r n m < <(sed -n 's/^\([0-9][0-9]*\) of \([0-9][0-9]*\) .*hold.*/\1 \2/p' "$logs/$name" | tail -n 1)
    if [ -z "${m:-}" ]; then n=$((rc == 0)) m=1; fi
    local bad=$((m - n))
    [ "$rc" = 0 ] || { why="exit status $rc"; [ "$bad" -gt 0 ] || bad=1; }
    if [ "$m" = 0 ]; then bad=1 why="nothing in it"; fi
    if compgen -G "$logs/$name.san.*" >/dev/null; then [ "$bad" = 0 ] && bad=1; why="$why a sanitizer complains"; fi
    report "$name" "$n" "$bad" "$seconds" "$why"
}

# ThreadSanitizer of older compilers cannot start where addresses are very random.
start=
if [ "${V:-}" = tsan ] && ! "$B/tests/tsan_main" --list >/dev/null 2>&1 </dev/null; then start="setarch -R"; fi

plain() {                               # UNIT or PROGRAM...; in double under WEFT_CHECK, which changes no bit
    [ "${V:-}" != double ] || export WEFT_CHECK=1
    for t; do
        case ${t##*/} in
        test_cuda*) ;;                 # see cuda()
        test_*)    criterion "$t" ;;
        golden)    [ -n "${FAST:-}" ] || golden "$t" ;;
        ptx_test)  case ${V:-} in ''|asan) counted ptx_test "$t" ;; esac ;;
        tsan_main) [ "${V:-}" = tsan ] && counted tsan_main $start "$t" ;;
        esac
    done
    unset WEFT_CHECK
    [ -z "${UNITS:-}" ] || return
    case ${V:-} in ''|double) counted doccheck bash tests/doccheck.sh ;; esac
    [ -z "${FAST:-}" ] || return
    case ${V:-} in ''|double|asan|dasan) for s in tests/scripts/test_*.sh; do script "$s"; done ;; esac
}
script() {                              # FILE; what is about documents is the same for all variants
    case ${V:+variant},${1##*/} in variant,test_site.sh|variant,test_manual.sh) ;; *) counted "${1##*/}" bash "$1" ;; esac
}
on_gpu() {                              # PROGRAM: may it run on the GPU that is meant? Layers and models under the address sanitizer nightly
    case ${V:-}${WHOLE:-},${1##*/} in asan,test_kernel_bits|asan,test_rnn_*|asan,test_ragged|asan,test_forecast*) return 1 ;; esac
    case ${1##*/} in
    test_kernel_bits|test_vector|test_cuda_emulated|test_cuda_recur|test_cuda_link|test_cuda_graphs) [ -z "${GPU:-}" ] ;;
    test_hdf5_*|test_damaged_*|test_inflate|test_fuzz_*) [ -z "${GPU:-}${V:-}" ] ;;          # who reads a file knows no device
    test_cuda) true ;;
    *) uses_tables "$1" ;;
    esac
}
golden() {                              # under TSan, where every thread of a kernel is one of the machine, one case or a few of each, and of models on the CPU, too
    local f part=(1layer_bi_state ragged proj_nogate_noncausal only_enc)
    for f in recurrent layers models models_edges; do
        case ${V:-}${tag:+GPU},$f in tsanGPU,*|tsan,models*) export WEFT_GOLDEN=${part[0]} ;; esac
        part=("${part[@]:1}")
        counted "golden_$f$tag" $start "$1" "tests/golden/$f.json"
        [ "${V:-}" != tsan ] || unset WEFT_GOLDEN
    done
}

recurrent() {                           # PROGRAM...: with asynchronous copies and stores as late as they may come, and streams early
    local t some= layers=*                                       # golden cases: all, but a few where each takes long
    case ${V:-} in tsan) some=gru_1layer_bi_state ;; esac
    case ${GPU:-}$WEFT_RECUR in cluster|group) layers='both*' ;; esac          # the rest of a layer is the same in all ways
    for t; do
        case ${t##*/} in
        test_recur_layer) WEFT_MANAGED=${GPU:-} WEFT_EMU_SEED=1 WEFT_EMU_ASYNC=1 criterion "$t" "$layers" ;;
        test_recur*) WEFT_MANAGED=${GPU:-} WEFT_EMU_SEED=1 WEFT_EMU_ASYNC=1 criterion "$t" ;;
        test_rnn)   [ -z "${GPU:-}" ] || criterion "$t" ;;
        golden)     WEFT_GOLDEN=$some counted "golden_recurrent$tag" $start "$t" tests/golden/recurrent.json ;;
        esac
    done
}
cuda() {                                # PROGRAM...
    local order=0
    export WEFT_BACKEND_PATH=$CUDA WEFT_TABLES="ref cuda" WEFT_SMALL=1 WEFT_RECUR=general
    tag=.cuda
    for t; do
        export WEFT_EMU_ORDER=$((order++ % 3))
        case ${t##*/} in
        test_recur*) WEFT_MANAGED=${GPU:-} criterion "$t" ;;
        test_cuda_recur) case ${V:-}${WHOLE:-} in          # of float alone; kernels that are tried by the hundred run without a sanitizer
                         double|dasan) ;; asan) criterion "$t" '@(a_crash|a_wait|no|refused)*' ;; *) if on_gpu "$t"; then criterion "$t"; fi ;; esac ;;
        test_*) if on_gpu "$t"; then criterion "$t"; fi ;;
        golden) golden "$t" ;;
        emu_test) counted emu_test $start env ASAN_OPTIONS=allocator_may_return_null=1 "$t" ;;     # its children must die of sanitizers
        esac
    done
    # The ways of recurrent layers that run all steps in one kernel, of float alone; in clusters not under the address sanitizer: the
    # interpreter of tests/ptx looks up every address of theirs.
    case ${V:-} in double|dasan) ;; asan) tag=.block; WEFT_RECUR=block recurrent "$@" ;;
    *) for way in block cluster; do tag=.$way; WEFT_RECUR=$way recurrent "$@"; done
       tag=.group; WEFT_EMU_CC=120 WEFT_RECUR=group recurrent "$@" ;; esac
    [ -n "${V:-}${GPU:-}" ] || { capability 80 "$@"; capability 120 "$@"; }
    case ${V:-} in ''|double) counted demo.cuda bash tests/cuda/demo.sh ;; esac
}
capability() {                          # CC PROGRAM...: recurrent layers as they are by default on an emulated GPU of that capability
    local cc=$1 t; shift
    export WEFT_EMU_CC=$cc WEFT_CACHE=off    # by the estimate: the clock says nothing here
    tag=.sm$cc
    unset WEFT_RECUR
    for t; do
        case ${t##*/} in
        test_recur_layer) criterion "$t" ;;      # make test-ptx has test_recur
        golden) counted "golden_recurrent$tag" "$t" tests/golden/recurrent.json ;;
        esac
    done
    unset WEFT_EMU_CC WEFT_CACHE
}

walk() {                                # EARLY PROGRAM...: says what it ran, and leaves how many tests passed, failed, and passed on the GPU
    early=$1; shift
    passed=0 failed=0 tag=
    [ -n "${CUDA_ONLY:-}" ] || plain "$@"
    local before=$passed
    [ -z "${CUDA:-}" ] || cuda "$@"
    echo "$passed $failed $((passed - before))" >"$logs/lane.$BASHPID"
}
lane() { (walk early "$@"); (walk '' "$@"); }        # PROGRAM...

all=()
for t; do
    for u in $(units_of "$t"); do
        if [ -z "${UNITS:-}" ] || [[ " $UNITS " == *" ${u##*/} "* ]] || [[ " $UNITS " == *" ${t##*/test_} "* ]]; then all+=("$u"); fi
    done
done
set -- "${all[@]}"
[ $# -gt 0 ] || { echo "run.sh: no tests"; exit 1; }
tag= early=
lanes=${WEFT_LANES:-$(nproc)}
if [ -n "${GPU:-}" ]; then lanes=1; elif [ "$lanes" -gt 4 ]; then lanes=4; fi
if [ -z "${CUDA_ONLY:-}" ]; then for t; do case ${V:-},${t##*/} in *,test_memory|,test_speed|double,test_speed) criterion "$t" ;; esac; done; fi
for ((l = 0; l < lanes; l++)); do lane "$@" & done
wait
on_cuda=0
for l in "$logs"/lane.*; do
    read -r p f c <"$l" && passed=$((passed + p)) failed=$((failed + f)) on_cuda=$((on_cuda + c))
done
if [ "$(find "$logs" -name 'lane.*' | wc -l)" != $((2 * lanes)) ]; then echo "  FAIL  a lane has not come to its end"; failed=$((failed + 1)); fi
for c in "$logs"/claims/*; do [ -d "$c/told" ] || { echo "  FAIL  ${c##*/} was begun, and nobody said how it ended"; failed=$((failed + 1)); }; done
if [ "${WEFT_REQUIRE:-}" = cuda ] && [ "$on_cuda" = 0 ]; then echo "  FAIL  no test ran on a GPU"; failed=$((failed + 1)); fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
