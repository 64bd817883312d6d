#!/usr/bin/env bash
# gpu.sh OUTDIR [STAGE]    everything that wants a GPU, in one call of less than ten minutes, from the root of the tree:
#
#     DEPS=dir bash tests/gpu.sh OUTDIR        dir, or dir.tar.gz: made by tests/gpu_deps.sh; without it the libraries are installed ones
#
# smoke      builds for sm_90 alone (CUDA_ARCHS) with all cores; a training step on the CPU and on the GPU, the same loss and norm
# micro      launches, nodes of a graph, the product of a recurrent step, copies; dependent tensor core products, exchanges within clusters, barriers of the grid
# suite      make test-cuda on the GPU; a test that is skipped is a failure
# sweep      recurrent layers with a kernel a step, and with one for all in blocks and in clusters: cuda/recur_choice.cu's estimate beside it
# bench      weft_bench beside PyTorch on the same GPU, in fp32 and in TF32; loss and gradient norm must agree
# sanitizer  compute-sanitizer, where it works; "unavailable" is a result
#
# Each stage has its own limit and its own log, OUTDIR/STAGE.txt, and the next one begins whatever became of it; all measurements go
# to OUTDIR/<device>-<date>.jsonl, to be put into bench/results. Ends with the ratios beside the goals. Python needs torch; PYTHON= names another.
# EMULATED=1: the emulated GPU, no nvcc, tiny shapes: the script's own test, whose times mean nothing.
set -u -o pipefail
cd "$(dirname "$0")/.." || exit 1
out=$(realpath -m "${1:?usage: gpu.sh OUTDIR [STAGE]}")
mkdir -p "$out"
emulated=${EMULATED:-}
python=${PYTHON:-python3}
B=${BUILD:-build/gpu}
cores=$(nproc)
export BUILD=$B
case ${DEPS:-} in
*.tar.gz) [ -d "$B/deps/usr" ] || { mkdir -p "$B/deps" && tar -C "$B/deps" -xzf "$DEPS" || exit 1; }; export DEPS=$B/deps ;;
esac
PATH=$PATH:/usr/local/cuda/bin
if [ -n "$emulated" ]; then
    device=emulated plugin=$B/emu/libweft_cuda.so flags="--quick --tiny --runs 1" quick="--quick" peer=cpu
else
    device=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1 | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9.-')
    plugin=$B/libweft_cuda.so flags="--runs ${RUNS:-7}" quick="" peer=cuda
fi
results=${RESULTS:-$out/${device:-no-gpu}-$(date +%Y-%m-%d).jsonl}
export RESULTS=$results
WEFT_BACKEND_PATH=$(realpath -m "$(dirname "$plugin")"); export WEFT_BACKEND_PATH
build() { make --no-print-directory -j"$cores" BUILD="$B" CUDA_ARCHS="${CUDA_ARCHS:-90}" ${emulated:+NVCC=none} ${DEPS:+DEPS="$DEPS"} "$@"; }
bench() { "$B/bench/weft_bench" "$@"; }

smoke() {
    build "$plugin" "$B/bench/weft_bench" || return
    [ -n "$emulated" ] || { nvcc --version | tail -n 2; nvidia-smi; ARCHS=${CUDA_ARCHS:-90} B=$B bash tests/registers.sh; }
    for on in cpu cuda; do bench --case net --quick --runs 1 ${emulated:+--tiny} --device $on >"$out/.$on" || return; done
    echo "one step on the CPU and on the GPU:"
    paste -d' ' <(proof "$out/.cpu") <(proof "$out/.cuda") | awk '
        { print; for (i = 1; i <= 2; i++) { d = $i - $(i + 2); if (d < 0) d = -d; if (!(d <= 1e-4 * $i)) bad = 1 }; n++ } END { exit bad || !n }'
}
proof() { sed -n 's/.*"pass": "train".*"loss": \([^,]*\), "norm": \([^,]*\),.*/\1 \2/p' "$1"; }

micro() {
    if [ -n "$emulated" ]; then
        g++ -x c++ -std=c++17 -O1 -include tests/emu/cuda_emu.h -I. -c -o "$B/gpu_micro.o" tests/cuda/gpu_micro.cu && g++ -o "$B/gpu_micro" "$B/gpu_micro.o" "$B"/emu/*.o -lpthread || return
    else
        nvcc -std=c++17 -O2 -I. -arch="sm_${CUDA_ARCHS:-90}" -o "$B/gpu_micro" tests/cuda/gpu_micro.cu -lcublas || return
    fi
    "$B/gpu_micro" | tee -a "$results"
}

suite() {                               # emulated, where make test runs all of it: two programs
    export WEFT_REQUIRE=cuda WEFT_LIMIT=60
    if "$python" -c 'import h5py, torch' 2>/dev/null; then export WEFT_PYTHON=$python; fi
    if [ -n "$emulated" ]; then
        build test-cuda TESTS="$B/tests/test_clip $B/tests/test_layers" TOOLS=
    else
        build everything && build test-cuda GPU=1
    fi
}

sweep() {
    local way rc=0
    for way in general block cluster; do
        WEFT_RECUR=$way bench --device cuda --case sweep $flags | sed -u "s/^{/{\"recur\": \"$way\", /" >>"$results" || rc=1
    done
    "$python" bench/table.py --sweep "$results" && return $rc
}

side_by_side() {                        # PRECISION
    local peers= way rc=0
    case $1${emulated:+,emulated} in fp32) peers=--compile ;; tf32*) peers=--tf32 ;; esac
    bench --device cuda --precision "$1" --case net,lstm,bilstm,transformer_lstm $flags >>"$results" || rc=1
    for way in block cluster; do
        WEFT_RECUR=$way bench --device cuda --precision "$1" --case net,lstm,bilstm,transformer_lstm $flags | sed -u "s/^{/{\"recur\": \"$way\", /" >>"$results" || rc=1
    done
    "$python" bench/peers/torch_bench.py --device $peer $peers $flags >>"$results" || rc=1
    return $rc
}
bench_stage() {
    local rc=0
    side_by_side fp32 || rc=1
    side_by_side tf32 || rc=1
    "$python" bench/table.py --check "$results" && return $rc
}

sanitizer() {
    local tool log rc=0
    command -v compute-sanitizer >/dev/null && [ -z "$emulated" ] || { echo "unavailable: no compute-sanitizer"; return; }
    for tool in memcheck racecheck; do
        log=$out/.sanitizer
        WEFT_RECUR=block timeout 20 compute-sanitizer --tool $tool --error-exitcode 9 "$B/bench/weft_bench" --device cuda --case net,lstm --quick --tiny --runs 1 >"$log" 2>&1
        case $? in
        0)   echo "$tool: $(tail -n 1 "$log")" ;;
        9)   echo "$tool: errors"; head -n 60 "$log"; rc=1 ;;
        124) echo "$tool: not done within its time" ;;
        *)   echo "$tool: unavailable: $(grep -m 1 -E 'Error|error|not supported' "$log")" ;;
        esac
    done
    return $rc
}

if [ $# -gt 1 ]; then
    case $2 in smoke|micro|suite|sweep|sanitizer) "$2" ;; bench) bench_stage ;; *) echo "gpu.sh: no stage $2" >&2; exit 2 ;; esac
    exit
fi

bad=0
stage() {                               # NAME SECONDS
    local begin=$SECONDS rc
    timeout -k 5 "$2" bash tests/gpu.sh "$out" "$1" >"$out/$1.txt" 2>&1 </dev/null
    rc=$?
    if [ $rc = 0 ]; then printf '  ok    %-10s %4d s\n' "$1" $((SECONDS - begin)); return; fi
    bad=$((bad + 1))
    printf '  FAIL  %-10s %4d s  %s\n' "$1" $((SECONDS - begin)) "$([ $rc -ge 124 ] && echo "stopped after $2 s" || echo "exit status $rc")"
    grep -E 'FAIL|rror|\*\*\*|not equal' "$out/$1.txt" | head -n 12 | sed 's/^/        /'
    tail -n 8 "$out/$1.txt" | cut -c1-200 | sed 's/^/        /'
}
summary() {
    echo "--- the suite"; grep -E '^  FAIL|passed, [0-9]+ failed|not done' "$out/suite.txt" | cut -c1-150
    echo "--- compute-sanitizer"; head -n 4 "$out/sanitizer.txt" | cut -c1-200
    echo "--- a kernel a step, or one for all, in blocks or clusters (ms)"; "$python" bench/table.py --sweep "$results"
    echo "--- equal work"; "$python" bench/table.py --check "$results"
    echo "--- training step, ms, beside PyTorch"; "$python" bench/table.py --goals "$results"
}
rm -f "$results"
"$python" bench/table.py --machine >"$results"
stage smoke 150
stage micro 20
stage suite 150
stage sweep 50
stage bench 150
stage sanitizer 45
rm -f "$out"/.cpu "$out"/.cuda "$out"/.sanitizer
summary 2>&1 | tee "$out/summary.txt"
echo "$((6 - bad)) of 6 stages are good; measurements: ${results##*/}"
[ $bad = 0 ]
