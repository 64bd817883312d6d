#!/usr/bin/env bash
# gpu_first.sh OUT right|fast    runs weft on a machine with a GPU. tests/gpu_pack.sh has built everything into build/carry before.
# Two calls on the same machine, from the root of the tree:
#
#   right   at most 230 s. Is every family of kernels correct? A training step is compared with the CPU's, then the tests of the
#           kernels and of recurrent layers run six programs at a time, then the micro benchmark and compute-sanitizer. It stops
#           early if the library does not load or if the training step is wrong.
#   fast    at most 280 s. Times of weft_bench next to PyTorch and cuDNN. A kernel for recurrent layers that was wrong is not timed.
#
# OUT gets table.txt (one line a test), right.log and fast.log, times.jsonl and sweep.jsonl (rows for bench/table.py), again.jsonl
# and ncu.txt.
# The exit status is 1 if a test of `right` failed, or if `fast` measured nothing. PYTHON names a Python with torch. CARRY, LIMIT and UNPACKED replace the
# folder of the package, the seconds of a call and the folder where the package is unpacked.
set -u -o pipefail
usage() { echo "usage: gpu_first.sh OUT right|fast" >&2; exit 2; }
[ $# = 2 ] || usage
case $2 in right) seconds=230 ;; fast) seconds=280 ;; *) usage ;; esac
mode=$2 out=$(realpath -m "$1")
cd "$(dirname "$0")/.." || exit 1
. tests/gpu_units.sh
B=${UNPACKED:-${TMPDIR:-/tmp}/weft_gpu} carry=${CARRY:-build/carry} python=${PYTHON:-python3}
deadline=$((SECONDS + ${LIMIT:-$seconds} - 5))
mkdir -p "$out" "$B/state"
[ -x "$B/bin/weft" ] || tar -C "$B" -xJf "$carry/weft.tar.xz" || exit 1

# finds cuBLAS: in the toolkit, PyTorch, or the loader's folders
folders() {
    ls -d /usr/local/cuda/lib64 /usr/local/cuda/targets/x86_64-linux/lib
    "$python" -c 'import glob, sys
for d in sys.path: print("\n".join(glob.glob(d + "/nvidia/*/lib")))'
    ldconfig -p | sed -n 's,.*=> \(.*\)/libcublasLt.so.13$,\1,p'
}
cublas=$(folders 2>/dev/null | while read -r d; do if [ -e "$d/libcublasLt.so.13" ]; then echo "$d"; break; fi; done)
export WEFT_BACKEND_PATH=$B WEFT_TESTS=$PWD/tests WEFT_SMALL=1 XDG_CACHE_HOME=$B/cache
with_libraries() { LD_LIBRARY_PATH=$B/lib:$cublas "$@"; }         # not exported, because Python has its own libraries
table=$out/table.txt log=$out/$mode.log times=$out/times.jsonl
say() { printf '%s\n' "$*" | tee -a "$table"; }

# ---- running ----
at_most() {                             # SECONDS: or the rest of the call's time, at least 1
    local left=$((deadline - SECONDS))
    [ "$left" -lt "$1" ] || left=$1
    echo $((left > 1 ? left : 1))
}
limited() { local limit; limit=$(at_most "$1"); shift; timeout -k 2 "$limit" "$@"; }
one() {                                 # NAME SECONDS COMMAND..: a line of the table; the output goes to the log
    local name=$1 limit=$2 from=$EPOCHREALTIME status verdict=right summary; shift 2
    with_libraries limited "$limit" "$@" >"$B/state/$name.log" 2>&1 </dev/null; status=$?
    case $status in 0) echo "$name" >>"$B/state/right" ;; 124|137) verdict=LATE ;; *) verdict=FAIL ;; esac
    { printf '=== %s (%d)\n' "$name" $status; tail -c 6000 "$B/state/$name.log"; } >>"$log"
    summary=$(grep -hoE 'Tested: .*|[0-9]+ of [0-9]+ .*hold.*' "$B/state/$name.log" | tail -n 1 | tr -s ' ' | cut -c1-60)
    say "$(printf '%-34s %-5s %5.1f s  %s' "$name" $verdict "$(echo "$EPOCHREALTIME $from" | awk '{ print $1 - $2 }')" "$summary")"
    [ $status = 0 ] || grep -hE 'expected|Assertion|waited|CUDA|cuBLAS|rror' "$B/state/$name.log" | head -n 3 | cut -c1-180 | sed 's/^/      | /' | tee -a "$table"
    return $status
}
in_turn() { while [ "$(jobs -rp | wc -l)" -ge 6 ]; do wait -n; done; one "$@" & }
unit() {                                # NAME SECONDS UNIT PATTERN: some tests of a unit, while others run
    in_turn "$1" "$2" "$(program_of "$3")" --color=never --short-filename -j2 --filter "$(filter_of "$3" "$4")"
}
was_right() { grep -qx "$1" "$B/state/right" 2>/dev/null; }

# ---- correctness ----
one_step() {                            # a training step on both devices: the same loss and norm to 1e-4
    local on
    for on in cpu cuda; do
        with_libraries limited 20 "$B/bin/weft_bench" --device $on --case net --quick --runs 1 >"$B/state/$on.json" 2>>"$log"
    done
    "$python" - "$B/state/cpu.json" "$B/state/cuda.json" <<'END' | tee -a "$table"
import json, sys
a, b = ([json.loads(line) for line in open(f) if line.startswith("{")] for f in sys.argv[1:])
pairs = [(x[k], y[k]) for x, y in zip(a, b) for k in ("loss", "norm")] if len(a) == len(b) else []
worst = max((abs(x - y) / abs(x) for x, y in pairs), default=9)
print(f"net on the CPU and on the GPU: {len(b)} rows, relative difference {worst:.1e}")
sys.exit(not worst <= 1e-4)
END
}
right() {
    local way u
    : >"$B/state/right"
    say "$(nvidia-smi --query-gpu=name,driver_version,clocks.sm,compute_mode,mig.mode.current --format=csv,noheader); cuBLAS in ${cublas:-no folder}"
    one gpu 20 "$B/bin/weft" gpu || return
    cat "$B/state/gpu.log"
    one_step || return
    export WEFT_TABLES="ref cuda"
    for way in general block cluster; do        # alone and side by side: a kernel that hangs costs 40 s once
        WEFT_RECUR=$way WEFT_MANAGED=1 unit recur_$way 40 test_recur '*'
    done
    wait
    for u in $general_units; do WEFT_RECUR=general unit "${u#test_}" 60 "$u" '*'; done
    for way in general block cluster; do
        WEFT_RECUR=$way WEFT_MANAGED=1 unit layer_$way 60 test_recur_layer 'both*'
        WEFT_RECUR=$way in_turn golden_$way 60 "$B/bin/golden" tests/golden/recurrent.json
    done
    wait
    one micro 30 "$B/bin/gpu_micro" && grep '^{' "$B/state/micro.log" >>"$times"
    if command -v compute-sanitizer >/dev/null; then
        for way in block cluster; do
            WEFT_RECUR=$way in_turn memcheck_$way 40 compute-sanitizer --tool memcheck --error-exitcode 9 --kernel-name-exclude kernel_substring=gemm \
                "$B/bin/weft_bench" --device cuda --case net,lstm --quick --tiny --runs 1
        done
        wait
    else
        say "memcheck: there is no compute-sanitizer"
    fi
    ! grep -qE '^[a-z_]+ +(FAIL|LATE) ' "$table"
}

# ---- is it fast? ----
bench() { with_libraries limited 60 "$B/bin/weft_bench" --device cuda "$@" 2>>"$log"; }     # warms up until the choice of kernels has settled
torch() { local limit=$1; shift; limited "$limit" "$python" bench/peers/torch_bench.py --device cuda --runs 7 "$@" >>"$times" 2>>"$log"; }
fast() {
    local way k
    bench --case lstm,net,bilstm,transformer_lstm,g2p --runs 9 >>"$times"; say "weft in fp32: $SECONDS s"
    for way in block cluster general; do
        if ! was_right recur_$way; then say "$way: not timed, because its tests did not pass"; continue; fi
        WEFT_RECUR=$way bench --case lstm,net,bilstm,transformer_lstm --quick --runs 7 | sed "s/^{/{\"recur\": \"$way\", /" >>"$times"
    done
    say "each way: $SECONDS s"
    for way in block cluster general; do
        ! was_right recur_$way || WEFT_RECUR=$way bench --case sweep --runs 5 | sed "s/^{/{\"recur\": \"$way\", /" >>"$out/sweep.jsonl"
    done
    say "sweep: $SECONDS s"
    bench --precision tf32 --case lstm,net,bilstm,transformer_lstm --runs 9 >>"$times"; say "weft in TF32: $SECONDS s"
    torch 60 --case lstm,bilstm,transformer_lstm,g2p; say "PyTorch in fp32: $SECONDS s"
    torch 40 --tf32 --case lstm,bilstm,transformer_lstm --quick
    torch 30 --case net --quick; say "PyTorch in TF32, net: $SECONDS s"
    bench --case lstm,bilstm --quick --runs 9 | sed 's/^{/{"again": true, /' >"$out/again.jsonl"              # detects a changed GPU clock
    for k in forward_cluster backward_cluster; do
        with_libraries limited 30 ncu --clock-control none --kernel-name regex:$k -c 1 --section SpeedOfLight --section WarpStateStats \
            --section SchedulerStats "$B/bin/weft_bench" --device cuda --case lstm --quick --runs 1 >>"$out/ncu.txt" 2>&1
    done
    say "ncu: $SECONDS s"
    torch 70 --compile --case transformer_lstm --quick; say "torch.compile: $SECONDS s"
    "$python" bench/table.py --check "$times"
    "$python" bench/table.py --goals "$times" | tee -a "$table"
    [ -s "$times" ]
}
$mode
