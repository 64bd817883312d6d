#!/usr/bin/env bash
# test_gpu.sh    the logic of tests/gpu_first.sh, with stubs for all programs: steps that run, errors that stop it, steps that are skipped.
set -u
. "$(dirname "$0")/script.sh"

mkdir -p at/bin at/tests stubs
stub() { printf '#!/bin/bash\n%s\n' "$2" >"$1"; chmod +x "$1"; }           # FILE BODY
# shellcheck disable=SC2016
for program in at/bin/golden at/bin/gpu_micro stubs/compute-sanitizer stubs/ncu stubs/nvidia-smi; do
    stub $program 'echo "${0##*/} ${WEFT_RECUR:-} $*" >>"$CALLS"; echo "{\"micro\": \"stub\"}"'
done
stub at/bin/weft 'exit ${STUB_WEFT:-0}'
# shellcheck disable=SC2016
stub at/bin/weft_bench 'echo "weft_bench ${WEFT_RECUR:-} $*" >>"$CALLS"; loss=1
[[ " $* " != *" --device cuda "* ]] || loss=${STUB_LOSS:-1}
echo "{\"who\": \"weft-0-cuda\", \"case\": \"net\", \"pass\": \"train\", \"layout\": \"packed\", \"precision\": \"fp32\", \"B\": 1, \"T\": 1, \"I\": 1, \"H\": 32, \"loss\": $loss, \"norm\": 2, \"ms\": 1}"'
for f in "$root"/tests/*/test_*.c; do
    # shellcheck disable=SC2016
    f=${f#"$root"/tests/}; stub "at/tests/test_${f%%/*}" 'echo "${0##*/} ${WEFT_RECUR:-} ${WEFT_TABLES:-} $*" >>"$CALLS"
[ "${WEFT_RECUR:-}" != "${STUB_WRONG:-none}" ] || { echo "Assertion: expected 1"; exit 1; }
[ "${WEFT_RECUR:-}" != "${STUB_HANGS:-none}" ] || exec sleep 20'
done
# shellcheck disable=SC2016
stub stubs/python 'case $1 in *torch_bench.py) echo "torch $*" >>"$CALLS" ;; -c) ;; *) exec python3 "$@" ;; esac'
export CALLS=$dir/calls PYTHON=$dir/stubs/python UNPACKED=$dir/at PATH=$dir/stubs:$PATH
first() { : >"$CALLS"; rm -rf results; bash "$root/tests/gpu_first.sh" results "$1"; }
runs() { grep -q -e "$1" "$CALLS"; }

if ! command -v python3 >/dev/null; then finish "the scripts for a GPU (no python3)"; exit; fi
check "usage" exits 2 '^usage: gpu_first.sh' bash "$root/tests/gpu_first.sh" out twice
check "right" first right
check "each kernel is tested" eval 'for kernel in general block cluster; do runs "^test_rnn $kernel ref cuda .*--filter @(recur)/\*" || { echo $kernel; false; }; done'
filters() { (cd "$root" && . tests/gpu_units.sh && for u in $gpu_units; do filter_of "$u" ""; done); }
check "every unit is tested" eval 'for f in $(filters); do grep -qF -e "--filter ${f%\*}" "$CALLS" || { echo "not $f"; false; }; done'
check "the table has a line for each" eval '[ "$(grep -c " right " results/table.txt)" = 23 ] && ! grep -qE "FAIL|LATE" results/table.txt'
check "the micro benchmark's rows are kept" grep -q '"micro"' results/times.jsonl
check "memcheck runs" runs '^compute-sanitizer cluster --tool memcheck'
check "fast" first fast
check "each kernel is timed" eval 'for kernel in general block cluster; do runs "^weft_bench $kernel" || { echo $kernel; false; }; done'
check "PyTorch is timed" eval 'runs "^torch .*--tf32" && runs "^torch .*--compile"'
check "a library that does not load stops all" eval '! STUB_WEFT=1 first right && ! runs "^weft_bench"'
check "a wrong training step stops all" eval '! STUB_LOSS=1.001 first right && ! runs "^test_"'
check "a loss that is NaN stops all" eval '! STUB_LOSS=NaN first right && ! runs "^test_"'
check "a wrong kernel fails" eval '! STUB_WRONG=cluster first right && grep -Eq "^recur_cluster +FAIL" results/table.txt && grep -q "| Assertion: expected 1" results/table.txt'
check "is not timed" eval 'first fast && runs "^weft_bench block" && ! runs "^weft_bench cluster"'
check "a kernel that hangs is stopped at the limit" eval '! STUB_HANGS=block LIMIT=7 first right && grep -Eq "^recur_block +LATE" results/table.txt'
check "and the others are still tested" grep -Eq '^golden_cluster +right' results/table.txt
finish "the scripts for a GPU"
