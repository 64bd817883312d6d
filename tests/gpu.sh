#!/usr/bin/env bash
# gpu.sh OUTDIR [1|2|3|STAGE]    everything that wants a GPU, from the root of the tree, in three calls of less than five minutes each that
# cannot starve each other; without a number one after the other:
#
#     DEPS=dir bash tests/gpu.sh OUTDIR 1      dir, or dir.tar.gz: made by tests/gpu_deps.sh; without it the libraries are installed ones
#
# 1 smoke      builds for sm_90 alone (CUDA_ARCHS) with all cores, or takes PLUGIN, made elsewhere; a training step on the CPU and on the
#              GPU, the same loss and norm. What follows is of no use if this fails, and does not begin.
#   ways       recurrent layers with a kernel a step, and with one for all in blocks, and in clusters or groups of blocks, whichever the card
#              has, up to 512 units: does one hang, is one wrong?
#   micro      launches, nodes of a graph, the product of a recurrent step, copies; dependent tensor core products, exchanges within clusters
#   kernels    the tests of kernels and of recurrent layers in all their ways, on the GPU; a test that is skipped is a failure
# 2 sweep      recurrent layers in each of these ways: cuda/recur_choice.cu's estimate beside it
#   graphs     training steps as graphs (weft_opts.graphs): the bits of updates without them; loss, norm and times, in a file beside
#   bench      weft_bench in fp32 and in TF32, each way, beside PyTorch (eager) on the same GPU; loss and gradient norm must agree
# 3 suite      make test-cuda on the GPU: everything
#   sanitizer  compute-sanitizer, where it works, on the kernels for all steps; "unavailable" is a result
#   compiled   PyTorch once more, by torch.compile, which may take minutes
#
# Each stage has its own limit and its own log, OUTDIR/STAGE.txt, and the next one begins whatever became of it; all measurements are added
# to OUTDIR/<device>-<date>.jsonl, to be put into bench/results. Ends with the ratios beside the goals. Python needs torch; PYTHON= names
# another. cuBLAS may be the one that came with PyTorch.
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
# cuBLAS of the toolkit, or that which pip has brought along with PyTorch.
pip_cublas() { "$python" -c 'import glob, site, sys
for d in site.getsitepackages() + [site.getusersitepackages()] + sys.path:
    for h in glob.glob(d + "/nvidia/*/include/cublasLt.h"): print(h[:-len("/include/cublasLt.h")]); sys.exit()' 2>/dev/null; }
if [ -z "$emulated" ] && [ -z "${CUBLAS:-}" ] && ! echo '#include <cublasLt.h>' | nvcc -E -x cu - >/dev/null 2>&1; then
    CUBLAS=$(pip_cublas)
fi
export CUBLAS=${CUBLAS:-}
[ -z "$CUBLAS" ] || export LD_LIBRARY_PATH=$CUBLAS/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
if [ -n "${PLUGIN:-}" ]; then mkdir -p "$(dirname "$plugin")"; [ "$PLUGIN" -ef "$plugin" ] || cp "$PLUGIN" "$plugin"; fi
build() {
    make --no-print-directory -j"$cores" BUILD="$B" CUDA_ARCHS="${CUDA_ARCHS:-90}" CUBLAS="$CUBLAS" ${emulated:+NVCC=none} ${PLUGIN:+NVCC=none} ${DEPS:+DEPS="$DEPS"} "$@"
}
bench() { "$B/bench/weft_bench" "$@"; }
# One for all steps: clusters of up to 16 blocks on sm_90 and sm_100, of 8 on sm_120, none on sm_8x; groups where there are no 16.
capability=$([ -n "$emulated" ] && echo "${WEFT_EMU_CC:-90}" || nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d .)
case $capability in 8*) persistent="block group" ;; 12*) persistent="block cluster group" ;; *) persistent="block cluster" ;; esac

smoke() {
    build $([ -n "${PLUGIN:-}" ] || echo "$plugin") "$B/bench/weft_bench" "$B/weft" || return
    "$B/weft" gpu
    [ -n "$emulated" ] || { nvcc --version | tail -n 2; nvidia-smi; ldd "$plugin" | grep -E 'cublas|not found'; }
    [ -n "$emulated${PLUGIN:-}" ] || ARCHS=${CUDA_ARCHS:-90} B=$B bash tests/registers.sh
    for on in cpu cuda; do bench --case net --quick --runs 1 ${emulated:+--tiny} --device $on >"$B/$on.smoke" || return; done
    echo "one step on the CPU and on the GPU:"
    paste -d' ' <(proof "$B/cpu.smoke") <(proof "$B/cuda.smoke") | awk '
        { print; for (i = 1; i <= 2; i++) { d = $i - $(i + 2); if (d < 0) d = -d; if (!(d <= 1e-4 * ($i < 0 ? -$i : $i))) bad = 1 }; n++ } END { exit bad || !n }'
}
proof() { sed -n 's/.*"pass": "train".*"loss": \([^,]*\), "norm": \([^,]*\),.*/\1 \2/p' "$1"; }

ways() {                                # each by itself, so that one that hangs costs 20 seconds and no more
    local way part rc=0
    build "$B/tests/test_recur" || return
    export WEFT_TABLES="ref cuda" WEFT_SMALL=1 WEFT_TESTS=$PWD/tests WEFT_MANAGED=1
    for way in general $persistent; do for part in long wide tiers; do         # 32 to 512 units, 290, up to 129; forward and back
        if WEFT_RECUR=$way timeout ${emulated:+1}20 "$B/tests/test_recur" --color=never --filter "recur/$part*" >"$B/ways.log" 2>&1; then
            echo "$way, $part: right"
        else
            rc=1; echo "FAIL  $way, $part: a hang, a crash, or other numbers than the plain loops'"; head -n 8 "$B/ways.log"
        fi
    done; done
    return $rc
}

micro() {
    if [ -n "$emulated" ]; then
        g++ -x c++ -std=c++17 -O1 -include tests/emu/cuda_emu.h -I. -c -o "$B/gpu_micro.o" tests/cuda/gpu_micro.cu && g++ -o "$B/gpu_micro" "$B/gpu_micro.o" $(ls "$B"/emu/*.o "$B"/emu/ptx/*.o | grep -v -e _test.o -e nccl.o) -lpthread -ldl || return
    else
        nvcc -std=c++17 -O2 -I. -arch="sm_${CUDA_ARCHS:-90}" -o "$B/gpu_micro" tests/cuda/gpu_micro.cu -lcublas || return
    fi
    "$B/gpu_micro" | tee -a "$results"
}

tests_of() {                            # PROGRAM..; emulated, where make test runs all of it: two programs
    export WEFT_REQUIRE=cuda WEFT_LIMIT=60
    if "$python" -c 'import h5py, torch' 2>/dev/null; then export WEFT_PYTHON=$python; fi
    if [ -n "$emulated" ]; then
        build test-cuda TESTS="$B/tests/test_clip $B/tests/test_layers" TOOLS=
    elif [ $# -gt 0 ]; then
        build test-cuda GPU=1 TESTS="$(printf "$B/tests/%s " "$@")" TOOLS="$B/tests/golden"
    else
        build everything && build test-cuda GPU=1
    fi
}
kernels() { tests_of test_kernels test_kernels_update test_kernels_places test_kernel_groups test_recur test_recur_layer test_recur_fold test_attention test_attention_cores test_ops; }
suite() { tests_of; }

sweep() {
    local way rc=0
    for way in general $persistent; do
        WEFT_RECUR=$way bench --device cuda --case sweep $flags | sed -u "s/^{/{\"recur\": \"$way\", /" >>"$results" || rc=1
    done
    "$python" bench/table.py --sweep "$results" && return $rc
}

graphs() {                              # by the estimate alone: what the clock finds in between would be other bits
    build "$B/tests/test_cuda_graphs" || return
    export WEFT_CACHE=off WEFT_TABLES="ref cuda" WEFT_TESTS=$PWD/tests
    timeout 20 "$B/tests/test_cuda_graphs" --color=never --filter 'graphs/@(twenty|whatever)*' || { echo "FAIL  as graphs, updates have other bits"; return 1; }
    local on of=$B/graphs.smoke
    for on in '' --graphs; do bench --device cuda --case net,lstm,bilstm,transformer_lstm $flags $on >"$of$on" || return; done
    [ -n "$(proof "$of")" ] && [ "$(proof "$of")" = "$(proof "$of--graphs")" ] || { echo "FAIL  as graphs, steps have another loss or norm"; return 1; }
    cat "$of--graphs" >>"${results%.jsonl}-graphs.jsonl"
    echo "training steps, ms: without graphs, with them"
    paste -d' ' <(times "$of") <(times "$of--graphs") | awk '{ print $1, $2, $4 }'
}
times() { sed -n 's/.*"case": "\([^"]*\)".*"pass": "train".*"ms": \([^,]*\),.*/\1 \2/p' "$1"; }

side_by_side() {                        # PRECISION
    local way rc=0
    bench --device cuda --precision "$1" --case net,lstm,bilstm,transformer_lstm $flags >>"$results" || rc=1
    for way in $persistent; do
        WEFT_RECUR=$way bench --device cuda --precision "$1" --case net,lstm,bilstm,transformer_lstm $flags | sed -u "s/^{/{\"recur\": \"$way\", /" >>"$results" || rc=1
    done
    torch "$1" || rc=1
    return $rc
}
torch() {                               # PRECISION [FLAG]
    local tf32=
    case $1${emulated:+,emulated} in tf32*) tf32=--tf32 ;; esac
    "$python" bench/peers/torch_bench.py --device $peer $tf32 $flags ${2:-} >>"$results"
}
bench_stage() {
    local rc=0
    side_by_side fp32 || rc=1
    side_by_side tf32 || rc=1
    "$python" bench/table.py --check "$results" && return $rc
}
compiled() { [ -n "$emulated" ] || torch fp32 --compile; }

sanitizer() {
    local tool way log rc=0
    command -v compute-sanitizer >/dev/null && [ -z "$emulated" ] || { echo "unavailable: no compute-sanitizer"; return; }
    for tool in racecheck synccheck memcheck; do for way in $persistent; do
        log=$B/sanitizer.log
        WEFT_RECUR=$way timeout 40 compute-sanitizer --tool $tool --kernel-name-exclude kernel_substring=gemm --error-exitcode 9 "$B/bench/weft_bench" --device cuda --case net,lstm --quick --tiny --runs 1 >"$log" 2>&1
        case $? in
        0)   echo "$tool, $way: $(tail -n 1 "$log")" ;;
        9)   echo "$tool, $way: errors"; head -n 60 "$log"; rc=1 ;;
        124) echo "$tool, $way: not done within its time" ;;
        *)   echo "$tool, $way: unavailable: $(grep -m 1 -E 'Error|error|not supported' "$log")" ;;
        esac
    done; done
    return $rc
}

call=${2:-123}
case $call in
[123]|123) ;;
smoke|ways|micro|kernels|suite|sweep|graphs|sanitizer|compiled) "$call"; exit ;;
bench) bench_stage; exit ;;
*) echo "gpu.sh: no stage $call" >&2; exit 2 ;;
esac

bad=0 stages=0
stage() {                               # NAME SECONDS
    local begin=$SECONDS rc
    stages=$((stages + 1))
    timeout -k 5 "$2" bash tests/gpu.sh "$out" "$1" >"$out/$1.txt" 2>&1 </dev/null
    rc=$?
    if [ $rc = 0 ]; then printf '  ok    %-10s %4d s\n' "$1" $((SECONDS - begin)); return; fi
    bad=$((bad + 1))
    printf '  FAIL  %-10s %4d s  %s\n' "$1" $((SECONDS - begin)) "$([ $rc -ge 124 ] && echo "stopped after $2 s" || echo "exit status $rc")"
    grep -E 'FAIL|rror|\*\*\*|not equal' "$out/$1.txt" | head -n 12 | sed 's/^/        /'
    tail -n 8 "$out/$1.txt" | cut -c1-200 | sed 's/^/        /'
    return 1
}
summary() {
    local of
    for of in kernels suite; do [ ! -f "$out/$of.txt" ] || { echo "--- $of"; grep -E '^  FAIL|passed, [0-9]+ failed|not done' "$out/$of.txt" | cut -c1-150; }; done
    [ ! -f "$out/sanitizer.txt" ] || { echo "--- compute-sanitizer"; head -n 8 "$out/sanitizer.txt" | cut -c1-200; }
    echo "--- the machine"; [ -n "$emulated" ] || nvidia-smi --query-gpu=name,driver_version,clocks.sm,power.draw --format=csv,noheader
    [ ! -f "$out/graphs.txt" ] || { echo "--- graphs"; cat "$out/graphs.txt"; }
    [ -s "$results" ] || return
    echo "--- a kernel a step, or one for all, in blocks or clusters (ms)"; "$python" bench/table.py --sweep "$results"
    echo "--- equal work"; "$python" bench/table.py --check "$results"
    echo "--- training step, ms, beside PyTorch"; "$python" bench/table.py --goals "$results"
}
case $call in *1*)
    rm -f "$results"
    "$python" bench/table.py --machine >"$results"
    if stage smoke 150; then stage ways ${emulated:+3}90; stage micro 30; stage kernels 120
    else echo "what follows wants what has failed: stopped"; exit 1
    fi ;;
esac
case $call in *2*) stage sweep 80; stage graphs 40; stage bench 170 ;; esac
case $call in *3*) stage suite 240; stage sanitizer 120; stage compiled 150 ;; esac
summary 2>&1 | tee "$out/summary.txt"
echo "$((stages - bad)) of $stages stages are good; measurements: ${results##*/}"
[ $bad = 0 ]
