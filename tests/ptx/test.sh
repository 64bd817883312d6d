#!/usr/bin/env bash
# test.sh: runs tests with the PTX of libweft_cuda.so, in the interpreter of tests/ptx, for three compute capabilities: tests of kernels, of
# recurrent layers with each kernel family, and of attention. WHOLE=1: all units that can run on a GPU, and the golden vectors. Fails if
# a kernel of the plug-in was never executed. B: the build. CAPABILITIES and PROGRAMS select fewer.
set -u
. tests/units.sh
[ -n "$(ls "$B"/ptx/*.ptx 2>/dev/null)" ] || { echo "test.sh: no $B/ptx: make $B/libweft_cuda.so first"; exit 1; }
grep -qw fma /proc/cpuinfo || { echo "skipped: the interpreter is compiled for a CPU with AVX2 and FMA"; exit 0; }
logs=$(realpath -m "$B")/logs/ptx
rm -rf "$logs"; mkdir -p "$logs/tmp" "$logs/cache" "$logs/reported"
export TMPDIR=$logs/tmp XDG_CACHE_HOME=$logs/cache WEFT_TESTS=$PWD/tests WEFT_BACKEND_PATH=$(realpath "$B/emu") WEFT_EMU_PTX=$(realpath "$B/ptx")
# WEFT_MANAGED: as on a GPU, tests pass managed memory to kernels, not host memory.
export WEFT_EMU_PTX_LOG=$logs/executed WEFT_TABLES="ref cuda" WEFT_SMALL=1 WEFT_MANAGED=1
report() {                              # NAME GOOD BAD SECONDS
    echo "$2 $3" >"$logs/reported/$1"
    if [ "$3" = 0 ]; then printf '  ok    %-34s %5d  %5.1f s\n' "$1" "$2" "$4"; return; fi
    printf '  FAIL  %-34s %5d  %5.1f s\n' "$1" "$3" "$4"
    grep -v '^\[----\] *$' "$logs/$1" | head -n 40 | cut -c 1-400 | sed 's/^/        | /'
}
run() {                                 # NAME PROGRAM ARGUMENTS..
    local name=$1 start=$EPOCHREALTIME rc tested passing n m; shift
    timeout "${WEFT_LIMIT:-300}" "$@" >"$logs/$name" 2>&1 </dev/null
    rc=$?
    read -r tested passing < <(sed -n 's/.*Tested: *\([0-9]*\).*Passing: *\([0-9]*\).*/\1 \2/p; s/^\([0-9]*\) of \([0-9]*\) .*hold.*/\2 \1/p' "$logs/$name" | tail -n 1)
    n=${passing:-0} m=$((${tested:-1} - n))
    if [ $m = 0 ] && { [ $rc != 0 ] || [ "$n" = 0 ]; }; then m=1; fi           # also if the filter matches no test
    report "$name" "$n" "$m" "$(echo "$EPOCHREALTIME $start" | awk '{ print $1 - $2 }')"
}
start() {                               # NAME PROGRAM ARGUMENTS..; runs one process per core
    while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
    started=$((started + 1))
    run "$@" &
}
families() {                            # CAPABILITY: prints the kernel families of recurrent layers
    case $1 in 80) echo general block group ;; 120) echo general block cluster group ;; *) echo general block cluster ;; esac
}
layer_filter() {                        # FAMILY: prints the filter of layer tests; threads exist on a CPU only
    case ${WHOLE:-}$1 in cluster|group) echo 'both*' ;; *) echo '!(threads*)' ;; esac
}
capability() {                          # CAPABILITY UNIT..
    local cc=$1 t name family part program; shift
    export WEFT_EMU_CC=$cc
    for t; do
        name=${t##*/} program=$(program_of "$t")
        export WEFT_EMU_ORDER=$((order++ % 3)) WEFT_CACHE=off                # no timing: kernels are selected by the estimate
        case $name in
        test_recur*) for family in $(families "$cc"); do
                         part='*'
                         [ "$name" != test_recur_layer ] || part=$(layer_filter "$family")
                         WEFT_RECUR=$family WEFT_EMU_ASYNC=1 start "$name.$cc.$family" "$program" --color=never --filter "$(filter_of "$t" "$part")"
                     done ;;
        test_cuda_recur) case ${WHOLE:+whole}$cc in                          # some tests set a capability
                     *80) part='@(wrong|crash|wait)*' ;; whole*) part='*' ;; *) part='@(wait|refused|code)*' ;; esac
                     WEFT_CACHE= start "$name.$cc" "$program" --color=never --filter "$(filter_of "$t" "$part")" ;;
        golden)      for f in recurrent layers models models_edges; do start "golden_$f.$cc" "$t" "tests/golden/$f.json"; done ;;
        *)           start "$name.$cc" "$program" --color=never --filter "$(filter_of "$t")" ;;
        esac
    done
}
kernels() {                             # CAPABILITY: fails if a kernel of this capability was not executed
    local cc=$1 all missing never=empty_kernel
    case $cc in 80) never+='|_cluster|_stepsI.*Li128E' ;; 120) never+='|_clusterI.*Li16E|_stepsI.*Li128E' ;; *) never+='|_groupI' ;; esac   # the GPU cannot run them
    sed -n 's/^\.*\(visible \)*\.entry \([^(]*\).*/\2/p' "$B"/ptx/*."$cc".ptx | grep -vE "$never" | sort -u >"$logs/all.$cc"
    started=$((started + 1))
    sed -n "s/^$cc [^ ]* //p" "$logs/executed" | sort -u >"$logs/run.$cc"
    all=$(wc -l <"$logs/all.$cc") missing=$(comm -23 "$logs/all.$cc" "$logs/run.$cc" | wc -l)
    if [ "$missing" = 0 ]; then report "every_kernel.$cc" "$all" 0 0; return; fi
    comm -23 "$logs/all.$cc" "$logs/run.$cc" | c++filt >"$logs/every_kernel.$cc"
    report "every_kernel.$cc" $((all - missing)) "$missing" 0
}
# ptxas may fuse a multiplication and an addition that have no rounding mode. Then the bits of an element would depend on its position.
unfused() {                             # CAPABILITY
    local n
    n=$(cat "$B"/ptx/{nests,optimisers,pointwise}."$1".ptx | grep -E '\b(mul|add|sub)\.f(32|64)\b' | tee "$logs/unfused.$1" | wc -l)
    started=$((started + 1))
    report "unfused.$1" 3 "$n" 0
}

order=0 started=0
programs=()
for t in tests/*/test_*.c; do
    t=${t##*/} t=${t%.c}
    case $t in
    test_kernel_bits|test_vector|test_cuda|test_cuda_emulated|test_cuda_link) ;;       # test the CPU, or the emulation
    test_kernels*|test_kernel_groups|test_recur*|test_attention*|test_cuda_recur) programs+=("$t") ;;
    *) if [ -n "${WHOLE:-}" ] && uses_tables "$t"; then programs+=("$t"); fi ;;
    esac
done
[ -z "${WHOLE:-}" ] || programs+=("$B/tests/golden")
capabilities=${CAPABILITIES:-80 90 120}
for cc in $capabilities; do capability "$cc" ${PROGRAMS:-"${programs[@]}"}; done
wait
[ -n "${PROGRAMS:-}" ] || for cc in $capabilities; do kernels "$cc"; unfused "$cc"; done
read -r good bad < <(cat "$logs"/reported/* | awk '{ good += $1; bad += $2 } END { print good + 0, bad + 0 }')
reported=$(find "$logs/reported" -type f | wc -l)
if [ "$reported" != "$started" ]; then echo "  FAIL  started $started programs; $reported reported a result"; bad=$((bad + 1)); fi
echo "$good of $((good + bad)) tests and kernels of the plug-in's PTX hold"
[ "$bad" = 0 ] && [ "$good" -gt 0 ]
