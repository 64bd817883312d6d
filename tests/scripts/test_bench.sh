#!/usr/bin/env bash
# test_bench.sh    runs every case of weft_bench at small sizes and checks its counts. The table and chart programs must detect planted errors in
# measurements. With torch in WEFT_PYTHON or python3, PyTorch must get the same losses and gradients. B is the build.
set -u
. "$(dirname "$0")/script.sh"
bench=$build/bench/weft_bench

tiny() { "$bench" --tiny --quick --runs 1 "$@"; }
field() { sed -n "s/.*\"$1\": \"\{0,1\}\([^,\"}]*\).*/\1/p" "$2"; }        # NAME FILE: of each row that has it
close_by() { awk -v a="$1" -v b="$2" -v most="$3" 'BEGIN { d = a - b; exit !(d * d <= most * most * a * a) }'; }

# ---- every case
cases=$("$bench" --help 2>&1 | sed -n 's/^cases: //p')
check "there are cases" [ "$(echo "$cases" | wc -w)" = 22 ]
for c in $cases; do
    check "$c runs" eval "tiny --case $c >$c.rows"
    check "$c prints rows of its own" eval "[ -s $c.rows ] && ! grep -v '^{\"who\": \"weft-.*\"case\": \"$c\", .*\"ms\": [0-9.]*, .*\"runs\": 1}$' $c.rows"
    case $c in pack | plan) continue ;; esac # no steps, no arithmetic
    check "$c allocates nothing in its steps" eval "[ \"\$(field allocations $c.rows | sort -u)\" = 0 ]"
    case $c in scan | crf | ctc) continue ;; esac # no matrix product
    check "$c has loss, norm, arithmetic and the machine's peak" \
        eval "! grep -Ev '\"loss\": [-0-9].*\"norm\": [0-9].*\"gflop\": [0-9.e-]+, \"gf_s\": [0-9].*\"peak_gf_s\": [1-9].*\"share\": [0-9]' $c.rows"
done
check "two at once" eval 'tiny --case net,gru >two && [ "$(field case two | uniq | tr "\n" " ")" = "net gru " ]'

# ---- the counts: 36 tokens of the case lstm, 16 units
check "a forward pass is 2 gates hidden (in + hidden) a token" eval 'close_by "$(field gflop lstm.rows | head -n 1)" 147456e-9 1e-4'
check "a training step has no gradient of its inputs" eval 'close_by "$(field gflop lstm.rows | sed -n 2p)" 368640e-9 1e-4'
check "a GRU has three gates" eval 'close_by "$(field gflop gru.rows | head -n 1)" 110592e-9 1e-4'

# ---- layouts
for c in net lstm gru attention; do
    for l in padded $([ $c = attention ] || echo concat rows); do
        check "$c runs $l" eval "tiny --case $c --layout $l >$c.$l && [ \"\$(field layout $c.$l | sort -u)\" = $l ]"
        for what in loss norm; do
            check "$c $l has the same $what" eval "close_by \$(field $what $c.rows | tail -n 1) \$(field $what $c.$l | tail -n 1) 1e-5"
        done
    done
done
check "a layout that a case has not" exits 1 'has no layout' "$bench" --tiny --case gemm --layout rows
check "an unknown layout" exits 2 '^usage' "$bench" --tiny --layout round
check "no such case" exits 1 '--case: found "nett"' "$bench" --tiny --case nett
check "no such precision" exits 2 '^usage' "$bench" --precision fp8
check "rows of OpenBLAS have its name" eval 'WEFT_GEMM=openblas tiny --case gemm >blas && [ "$(field who blas | sort -u | sed "s/.*-//")" = openblas ]'

# ---- a GPU, emulated: a row has the runs after the choice of a kernel, and its name
if [ -z "${V:-}" ]; then
    emulated() { WEFT_BACKEND_PATH=$(dirname "$bench")/../emu XDG_CACHE_HOME=$dir/$1 tiny --device cuda --case lstm --runs 7 >gpu.rows && field kernel gpu.rows | sort -u | paste -sd' '; }
    for kernel in general block cluster; do
        check "a row of a layer has the kernel $kernel" eval "[ \"\$(WEFT_RECUR=$kernel emulated none)\" = $kernel ]"
    done
    for kernel in block cluster; do
        check "rows have only the $kernel kernel if it is the fastest, also of the first program" \
            eval '[ "$(WEFT_EMU_TIMES="${kernel}_kernel=1 block_kernel=5 cluster_kernel=5 forward_units=3 backward_units=3" emulated by_$kernel)" = $kernel ]'
    done
    check "a row of the CPU has no kernel" eval '! grep -q "\"kernel\"" lstm.rows'
fi

# ---- memory: includes the gates of 65,792 tokens, 128 each; memory freed and reused within a step counts once
if [ -z "${V:-}" ] && [ -w /proc/self/clear_refs ]; then
    check "a step's memory" eval '"$bench" --case net --quick --runs 1 >net.memory && field peak_bytes net.memory | awk "NR == 2 { exit !(\$1 > 33e6 && \$1 < 300e6) }"'
fi

# ---- tables and charts from rows
if ! command -v python3 >/dev/null; then finish "the benchmarks (no python3: nothing is made of them)"; exit; fi
table() { python3 "$root/bench/table.py" "$@"; }
row() {                                 # WHO LAYOUT MS LOSS NORM [MORE]
    echo "{\"who\": \"$1\", \"threads\": 2, \"case\": \"lstm\", \"B\": 64, \"T\": 128, \"I\": 128, \"H\": 128, \"layers\": 1, \"bidirectional\": false, \"lengths\": \"uniform\", \"tokens\": 5176, \
\"layout\": \"$2\", \"pass\": \"train\", \"precision\": \"fp32\", \"loss\": $4, \"norm\": $5, \"gflop\": 2, \"peak_gf_s\": 200${6:+, $6}, \"ms\": $3, \"ms_min\": $3, \"runs\": 1}"
}
both() { row weft-0-avx2 packed 10 100 10 '"peak_bytes": 5000000'; row torch-2-cpu padded "${1:-40}" "${2:-100.05}" "${3:-10.005}" '"peak_bytes": 20000000'; row torch-2-cpu packed 60 100 10; }
check "rows are JSON" eval 'cat *.rows | python3 -c "import json, sys; [json.loads(l) for l in sys.stdin]"'
check "equal work" eval 'both >rows && table --check rows >output && grep -q "2 of 2 pairs" output'
check "a loss that is 1 % off" eval 'both 40 101 >rows; ! table --check rows >output && grep -q "^not equal: loss 100 and 101 (padded)" output'
check "a norm that is 1 % off" eval 'both 40 100 9.9 >rows; ! table --check rows >output && grep -q "^not equal: norm 10 and 9.9 (padded)" output'
check "a loss that is NaN" eval 'both 40 NaN >rows; ! table --check rows >output && grep -q "1 of 2 pairs" output'
check "1 % is within bf16" eval 'both 40 101 | sed s/fp32/bf16/ >rows; table --check rows'
check "PyTorch's fp32 is compared with tf32, within wider bounds" eval 'both 40 100.5 | sed "/weft/s/fp32/tf32/" >rows; table --check rows && ! { both 40 105 | sed "/weft/s/fp32/tf32/" >rows; table --check rows; }'
check "nothing to compare" eval 'both | grep weft >rows; ! table --check rows'
check "another shape is nothing to compare" eval 'both | sed "/torch/s/\"H\": 128/\"H\": 64/" >rows; ! table --check rows'
check "losses of PyTorch that include padding are not compared" eval 'both 40 7 | sed s/false/true/ >rows; table --check rows >output && grep -q "1 of 1 pairs" output'
check "nor if it is compiled" eval '{ both 40 7; row torch-2-cpu-compile padded 30 7 7; } | sed s/false/true/ >rows; table --check rows >output && grep -q "1 of 1 pairs" output'
check "OpenBLAS is not ours" eval 'both | sed "s/avx2/avx2-openblas/" >rows; ! table --check rows'
check "half a line" eval '{ both; both | head -c 100; } >rows; table --check rows 2>err && grep -q "not JSON" err'
check "each product is compared with the same one" eval 'both 40 100 | sed "s/lstm/gemm/; s/\"train\"/\"dw\"/" >rows; table --check rows && sed "/torch/s/\"dw\"/\"dx\"/" rows >other; ! table --check other'
check "the ratio is to the better one" eval 'both >rows; table --ratios rows | grep -Eq "^lstm +train +fp32 +128 +64 +128 +10.0 +40.0 +60.0 +- +4.00 +200 +100 % +5.000 +20.0$"'
check "compiled may be it" eval '{ both; row torch-2-cpu-compile padded 30 100 10; } >rows; table --ratios rows | grep -q " 30.0 *3.00 "'
check "the median of the rounds counts" eval '{ both; row weft-0-avx2 packed 30 100 10; row weft-0-avx2 packed 20 100 10; } >rows; table --ratios rows | grep -q " 2.00 "'
check "failures are listed" eval '{ both; row torch-2-cpu nested 1 1 1 | sed "s/\"ms\".*/\"error\": \"no such luck\"}/"; } >rows; table --ratios rows | grep -q "^- torch.*nested: no such luck$"'
check "this machine, its flags, and more" eval 'table --machine rounds=3 | grep -q "\"flags\": .*\"rounds\": \"3\""'
check "goals of a GPU" eval 'both | sed "s/-cpu/-cuda/; s/-avx2/-cuda/; s/\"T\": 128/\"T\": 512/" >rows; table --goals rows | grep -q "^goals: 0 of 1 met" && sed "s/\"ms\": 60/\"ms\": 160/" rows >other && table --goals other | grep -q "^goals: 1 of 1 met"'
check "padded batches have no goal" eval 'sed "s/\"ms\": 40/\"ms\": 11/" other >rows && table --goals rows | grep -q "^goals: 1 of 1 met"'
check "the sweep's table" eval '{ row weft-0-cuda packed 4 1 1; row weft-0-cuda packed 3 1 1 "\"recur\": \"block\""; } | sed s/lstm/sweep/ >rows; table --sweep rows | grep -Eq "^ +128 +64 .* 3.000 +- +- +block$"'
check "an unknown option of table.py" exits 2 'table.py' python3 "$root/bench/table.py" --no

# ---- tables and charts
long() { both "$((40 * $1))" | sed "s/\"lstm\"/\"long\"/; s/\"T\": 128/\"T\": $(($1 * 32))/; s/\"ms\": 10,/\"ms\": $((9 + $1)),/"; }
mkdir -p tree/docs tree/bench/results
cp "$root"/bench/*.py tree/bench
{ echo '{"machine": "a machine", "cores": 2, "date": "2026-01-02"}'; both; both 50 | sed 's/"lstm"/"gru"/'; both | sed 's/"lstm"/"never_slower"/'; long 1; long 4; } >tree/bench/results/a.jsonl
printf 'before\n<!-- table.py begins -->\nold\n<!-- table.py ends -->\nafter\n' >tree/docs/performance.md
check "the page is made" eval 'python3 tree/bench/table.py'
check "and has the ratio, and no old table" eval 'grep -q "^| lstm | 128 | 64 | 128 | 10.0 | 40.0 | 60.0 | - | \*\*4.0\*\* |" tree/docs/performance.md && ! grep -q old tree/docs/performance.md && [ "$(tail -n 1 tree/docs/performance.md)" = after ]'
check "memory beside padded times real tokens" eval 'grep -q "| 5.000 | 20.0 | - | 12.6 | yes |" tree/docs/performance.md'
check "more memory than that" eval 'sed -i "s/5000000/13000000/" tree/bench/results/a.jsonl; python3 tree/bench/table.py; grep -q "| 13.0 | 20.0 | - | 12.6 | \*\*no\*\* |" tree/docs/performance.md'
check "the grid counts slower rows" eval 'tr "\n" " " <tree/docs/performance.md | grep -q "1 or more in 1 of 1"; sed -i "/never_slower.*packed\|never_slower.*padded/s/\"ms\": [46]0/\"ms\": 9/" tree/bench/results/a.jsonl; python3 tree/bench/table.py; tr "\n" " " <tree/docs/performance.md | grep -q "1 or more in 0 of 1"'
check "both charts are pictures" python3 -c 'import sys, xml.dom.minidom as x; [x.parse("tree/docs/" + f) for f in ("ratio.svg", "per_token.svg")]'
check "bars and their numbers" eval '[ "$(grep -c "class=\"weft bar\"" tree/docs/ratio.svg)" = 2 ] && grep -q ">4.0<" tree/docs/ratio.svg && grep -q ">5.0<" tree/docs/ratio.svg'
check "and the page shows them" eval '[ "$(grep -c "^!\[.*\](.*svg)$" tree/docs/performance.md)" = 2 ]'
check "a curve of each side" eval '[ "$(grep -c " curve\"" tree/docs/per_token.svg)" = 3 ]'
check "the tree's page matches its results" eval 'rm -r tree && mkdir -p tree && cp -r "$root/docs" "$root/bench" tree && python3 tree/bench/table.py && cmp tree/docs/performance.md "$root/docs/performance.md"'
check "and the page of growth" eval 'python3 tree/bench/growth.py - "$(ls tree/bench/results/growth-*.json | tail -n 1)" && cmp tree/docs/growth.md "$root/docs/growth.md" && cmp tree/docs/growth.svg "$root/docs/growth.svg"'
one_step=$build/bench/growth/one_step
check "a program of one step" "$one_step"
case ${V:-} in '') check "in 20 MB" eval '[ "$("$one_step" peak)" -gt 1000 ] && [ "$("$one_step" peak)" -le 20000 ]' ;; esac

# ---- taking turns with a peer: weft itself under another name
cat >fake <<'END'
#!/bin/bash
[ "$1" = -c ] && exit
shift
for a; do [ "$a" = --peak ] || set -- "$@" "$a"; shift; done
"$FAKE" "$@" | sed "s/\"who\": \"weft[^\"]*\"/\"who\": \"torch-fake\"/; ${FAKE_SED:-}"
exit "${FAKE_STATUS:-0}"
END
chmod +x fake
compare() { FAKE=$bench WEFT_PYTHON=./fake python3 "$root/bench/compare" --bench "$bench" --tiny --quick --threads 1 --rounds 2 --runs 1 --out compared "$@"; }
check "compare" eval 'compare --case net,gemm --precision fp32,tf32 >output && grep -q "^equal work: \([0-9]*\) of \1 pairs" output'
check "has two rounds of both, each case by turns" eval '[ "$(field who compared | sed "s/-.*//" | uniq | tr "\n" " ")" = "weft torch weft torch weft torch weft torch " ] && grep -q "\"round\": 2}" compared'
check "and OpenBLAS" grep -q -e '-openblas' compared
check "and begins with the machine" eval 'head -n 1 compared | grep -q "^{\"machine\": .*\"rounds\": \"2\""'
check "is packing slow? Loss and norm do not depend on it" eval '[ "$(field loss slow_pack.rows | sort -u | wc -l) $(field norm slow_pack.rows | sort -u | wc -l)" = "2 2" ]'
check "and the chart shows the measured part" eval 'WEFT_PYTHON=/nowhere python3 "$root/bench/compare" --bench "$bench" --quick --runs 1 --rounds 1 --threads 1 --case slow_pack --out slow.jsonl && [ "$(grep -c " curve\"" slow.svg)" = 8 ]'
check "compare sees other work" eval '! FAKE_SED="s/\"loss\": /\"loss\": 1/" compare --case net >output && grep -q "^not equal" output'
check "compare sees a peer that fails" eval '! FAKE_STATUS=3 compare --case net >output'
check "compare sees a case that fails" eval '! compare --case nett >output'

# ---- the instruction set that is chosen
tiers() { python3 "$root/bench/tiers.py" --build "${bench%/bench/weft_bench}" --out tiers.json "$@"; }
case ${V:-} in
'') grep -q avx2 /proc/cpuinfo && check "tiers sees a default that is slow" \
    eval '! tiers --default generic --case net --precision fp32 --turns 0 >output && grep -q "^net, fp32: generic takes [2-9]" output && grep -q "\"lost\": \[\"net" tiers.json' ;;
esac
check "tiers refuses a case that does not exist" eval '! tiers --case nett 2>output && grep -q -e "--case: found nett; expected net" output'

# ---- PyTorch itself
torch=
for p in "${WEFT_PYTHON:-}" python3; do if [ -z "$torch" ] && "${p:-false}" -c 'import torch' 2>/dev/null; then torch=$p; fi; done
if [ -n "$torch" ] && [ -z "${V:-}" ]; then
    every=$(echo "$cases" | tr ' ' '\n' | grep -Ev "^(pack|plan|decode|growth|sweep$("$torch" -c 'import torchcrf' 2>/dev/null || echo '|crf'))$" | paste -sd,)
    peer() { OMP_NUM_THREADS=1 "$torch" "$root/bench/peers/torch_bench.py" --tiny --quick --threads 1 --runs 1 "$@"; }
    check "PyTorch runs every case" eval 'peer --case "$every" --peak >theirs'
    check "and every variant, except attention nested where that does not run" eval '! grep "\"error\"" theirs | grep -v nested'
    check "and gets the same results in all of them" eval '{ tiny --case "$every" --threads 1; cat theirs; } >all && table --check all'
    check "and reports the memory of a step" grep -q '"peak_bytes": [1-9]' theirs
    check "and has bf16" eval '{ tiny --case lstm,gemm --threads 1 --precision bf16; peer --case lstm,gemm --precision bf16; } >all && table --check all'
fi
finish "the benchmarks"
