#!/usr/bin/env bash
# run.sh PROGRAM...    runs the tests of one build and ends with "N passed, M failed". B is the build, V its variant, CC the compiler.
#
#   UNITS="test_ops io"   only that unit (units.sh) and that room
#   FAST=1                only Criterion's tests and the code of the documents: no scripts, no golden vectors, no emulation
#   CUDA=FOLDER           also on the GPU, or its emulation, whose library that folder has (run/cuda.sh). CUDA_ONLY=1: nothing else
#   GPU=1                 it is a real GPU
#   WEFT_REQUIRE=cuda     a skipped test is a failure, and so is a run without a test on a GPU
#   WEFT_LIMIT=SECONDS    for a unit, 300 by default. WEFT_SOAK=1: no limit
#   WEFT_LANES=N          number of lanes, see below
#
# Lanes are processes with a common list. Each runs the next unclaimed item, longest first. There is one for each core, up to four, and
# one on a GPU. Tests of times and of memory run alone, before the lanes. run/one.sh runs and reports a single item.
set -u
. tests/units.sh
limit=${WEFT_LIMIT:-300}
if [ -n "${WEFT_SOAK:-}" ]; then limit=0; fi
passed=0 failed=0 tag='' early=''
logs=$(realpath -m "$B")/logs
rm -rf "$logs"
mkdir -p "$logs/claims" "$logs/tmp" "$logs/cache"
export B V CC TMPDIR=$logs/tmp XDG_CACHE_HOME=$logs/cache WEFT_TESTS=$PWD/tests UBSAN_OPTIONS=print_stacktrace=1
asan="allocator_may_return_null=1:"
lsan="suppressions=$PWD/tests/leak/suppressions:print_suppressions=0"
# ThreadSanitizer of older compilers cannot start where addresses are very random.
start=
if [ "${V:-}" = tsan ] && ! "$B/tests/tsan_main" --list >/dev/null 2>&1 </dev/null; then start="setarch -R"; fi
. tests/run/one.sh
. tests/run/cuda.sh

# ---- what runs on the CPU ----
# In double under WEFT_CHECK, which changes no bit. In a variant without the scripts about documents.
plain() {                               # UNIT or PROGRAM...
    local item
    if [ "${V:-}" = double ]; then export WEFT_CHECK=1; fi
    for item; do
        case ${item##*/} in
        test_cuda*) ;;                  # see cuda()
        test_*) criterion "$item" ;;
        golden) if [ -z "${FAST:-}" ]; then golden "$item"; fi ;;
        ptx_test) case ${V:-} in ''|asan) counted ptx_test "$item" ;; esac ;;
        tsan_main) if [ "${V:-}" = tsan ]; then counted tsan_main $start "$item"; fi ;;
        esac
    done
    unset WEFT_CHECK
    if [ -n "${UNITS:-}" ]; then return; fi
    case ${V:-} in ''|double) counted doccheck bash tests/doccheck.sh ;; esac
    if [ -n "${FAST:-}" ]; then return; fi
    case ${V:-} in ''|double|asan|dasan) for item in tests/scripts/test_*.sh; do script "$item"; done ;; esac
}
script() {                              # FILE
    case ${V:+variant},${1##*/} in variant,test_site.sh|variant,test_manual.sh) ;; *) counted "${1##*/}" bash "$1" ;; esac
}

# ---- the list ----
is_wanted() {                           # UNIT PROGRAM
    [ -z "${UNITS:-}" ] || [[ " $UNITS " == *" ${1##*/} "* ]] || [[ " $UNITS " == *" ${2##*/test_} "* ]]
}
items=()
for program; do
    for unit in $(units_of "$program"); do
        if is_wanted "$unit" "$program"; then items+=("$unit"); fi
    done
done
if [ ${#items[@]} = 0 ]; then echo "run.sh: no tests"; exit 1; fi

# ---- what runs alone ----
if [ -z "${CUDA_ONLY:-}" ]; then
    for unit in "${items[@]}"; do
        case ${V:-},${unit##*/} in *,test_memory|,test_speed|double,test_speed) criterion "$unit" ;; esac
    done
fi

# ---- lanes ----
# Walks the list once and leaves how many tests passed, failed, and passed on a GPU.
walk() {                                # EARLY
    local before
    early=$1 passed=0 failed=0 tag=
    if [ -z "${CUDA_ONLY:-}" ]; then plain "${items[@]}"; fi
    before=$passed
    if [ -n "${CUDA:-}" ]; then cuda "${items[@]}"; fi
    echo "$passed $failed $((passed - before))" >"$logs/lane.$BASHPID"
}
lane() {
    (walk early)
    (walk '')
}
lanes=${WEFT_LANES:-$(nproc)}
if [ -n "${GPU:-}" ]; then lanes=1; elif [ "$lanes" -gt 4 ]; then lanes=4; fi
for ((l = 0; l < lanes; l++)); do lane & done
wait

# ---- the sum ----
fail() {                                # WHY
    echo "  FAIL  $1"
    failed=$((failed + 1))
}
on_cuda=0
for file in "$logs"/lane.*; do
    read -r p f c <"$file" && passed=$((passed + p)) failed=$((failed + f)) on_cuda=$((on_cuda + c))
done
if [ "$(find "$logs" -name 'lane.*' | wc -l)" != $((2 * lanes)) ]; then fail "a lane has not ended"; fi
for claim in "$logs"/claims/*; do [ -d "$claim/reported" ] || fail "${claim##*/} was started and never reported"; done
if [ "${WEFT_REQUIRE:-}" = cuda ] && [ "$on_cuda" = 0 ]; then fail "no test ran on a GPU"; fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
