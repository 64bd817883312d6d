#!/usr/bin/env bash
# test_cost.sh    tests the costs of layers: the fit knows planted curves, and predictions agree with measured times of plans that
# no calibration has seen. B is the build. WEFT_SOAK (make soak): all layers, three calibrations, a median of at most 8 %; else 25 %, so that
# a busy machine passes. Under a sanitizer only the fit.
set -u
. "$(dirname "$0")/script.sh"
real=; case ${V:-} in double|dasan) real=-DWEFT_DOUBLE ;; esac
echo 3 >lengths
plan() { "$weft" plan --seconds 1200 lengths "./$1.so:$1" >"$1.out" 2>&1; cat "$1.out"; }
for f in planted held_out; do
    "${CC:-cc}" -std=c11 -D_GNU_SOURCE $real -O2 -w -shared -fPIC -I"$root" -o $f.so "$root/tests/plan/$f.c" || exit 1
done
check "each planted curve is known" has "$(plan planted)" "every planted curve is known"

export XDG_CACHE_HOME=$PWD/cache HELD_OUT="lstm:64 attention:64" HELD_OUT_SECONDS=1 HELD_OUT_LIMIT=25 times=1
if [ -n "${WEFT_SOAK:-}" ]; then
    HELD_OUT="lstm:64 lstm:128 lstm:256 gru:64 gru:128 elman:128 attention:64 attention:128 attention:256"
    HELD_OUT_SECONDS=4 HELD_OUT_LIMIT=8 times=3
fi
case ${V:-} in asan|dasan|tsan) times=0 ;; esac
kept_promise() { rm -rf cache; plan held_out | grep -q "the promise holds"; }
for _ in $(seq $times); do
    check "predictions for held-out plans" kept_promise
    grep -h "median error" held_out.out; uptime
    check "each with an error that was measured" is "$(grep -c "; stated [0-9]" held_out.out)" "$(echo "$HELD_OUT" | wc -w)"
done
check "attention is balanced by its measured cost" eval '"$weft" plan --explain=attention:16 lengths order:count=8 2>uncertain | grep -q "balance:per_square=[0-9]"'
sed 's/.*/{"name": "made-up", "token_ms": 0.01, "pair_ms": 0.0001, "error": 0.1}/' lengths >pairs.json
check "an attention layer from a file" eval '"$weft" plan --costs pairs.json lengths order:count=8 | grep -q "A pair of tokens costs 0.01 of a token; balance:per_square=0.01 "'
echo '{"name": "x", "rows": [1, 3], "step_ms": [1, 2], "start_ms": [1]}' >bad.json
check "a start for each number of rows" exits 1 'expected "start_ms", a list as long as "rows"' "$weft" plan --costs bad.json lengths order:count=8
finish "costs of layers"
