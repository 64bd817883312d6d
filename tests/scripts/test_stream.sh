#!/usr/bin/env bash
# test_stream.sh    tests one token per call: the benchmark runs, rejects a peer that is not onnxruntime, and a call needs no more instructions
# than recorded. Callgrind counts them, for AVX2 code of gcc 12, within 2 %. B is the build.
set -u
. "$(dirname "$0")/script.sh"
stream=$(dirname "$examples")/bench/stream/stream
# Kernels flush denormals and restore the mode of the caller; rows note their order; functions of the program run as callbacks; arenas are found by number.
want_32=15538 want_128=36650             # instructions of a call by units, one sequence; another count is written here, with its reason

check "two shapes, with and without a table" eval '"$stream" --units 8,20 --batch 3 --calls 120 >output && [ "$(grep -cE "^stream(-real)? H=(8|20) B=3 weft [0-9.]+ us together [0-9.]+ us, 99.9 % within [0-9.]+ us, idle [0-9.]+ us$" output)" = 4 ]'
check "no such library" exits 1 "stream: /nowhere.so is not onnxruntime" "$stream" --library /nowhere.so --models . --units 8 --batch 1 --calls 10
check "another library" exits 1 "libm.so.6 is not onnxruntime: it has no OrtGetApiBase" "$stream" --library libm.so.6 --models . --units 8 --batch 1 --calls 10
for wrong in "--batch 0" "--batch 65" "--calls 0" "--unit 8" "--library x"; do
    # shellcheck disable=SC2086
    check "$wrong" exits 2 "^stream \[--library" "$stream" $wrong
done
counted() { WEFT_ISA=avx2 valgrind --tool=callgrind --callgrind-out-file=/dev/null "$stream" --bare "$1" --units "$2" --batch 1 2>&1 | sed -n 's/.*Collected : //p'; }
within() {                              # UNITS WANTED
    local few many of
    few=$(counted 200 "$1") many=$(counted 700 "$1") of=$(((many - few) / 500))
    echo "a call with $1 units: $of instructions, $2 expected"
    [ $((of * 100)) -le $(($2 * 102)) ] && [ $((of * 100)) -ge $(($2 * 98)) ]
}
if [ -n "${V:-}" ] || ! command -v valgrind >/dev/null || ! grep -qs avx2 /proc/cpuinfo || [ "$(${CC:-cc} -dumpversion | cut -d. -f1)" != 12 ]; then
    echo "skipped: instructions of a call: they are of gcc 12, AVX2 and valgrind (apt-get install valgrind)"
else
    check "32 units" within 32 $want_32
    check "128 units" within 128 $want_128
fi

# ---- examples/streaming: results do not depend on threads or on the batch; states as bytes
serve() { "$examples/streaming" --hidden 24 --layers 2 --users 40 --tokens 6000 "$@"; }
states() { sed -n 's/^states: //p' "$1"; }
check "users one by one" eval 'serve --batch 1 >alone && [ -n "$(states alone)" ]'
check "users together" eval 'serve --batch 16 --save state >together && [ "$(states together)" = "$(states alone)" ]'
check "users on three threads" eval 'serve --threads 3 --batch 5 >threads && [ "$(states threads)" = "$(states alone)" ]'
check "other weights, other states" eval 'serve --seed 2 >other && [ "$(states other)" != "$(states alone)" ]'
check "a state goes on" eval 'serve --restore state --save state2 >goes_on && [ "$(states goes_on)" != "$(states alone)" ] && ! cmp -s state state2'
check "not with other weights" exits 1 "state: the state belongs to a model with other weights" serve --seed 2 --restore state
check "not in another model" exits 1 "state: the state belongs to a model of another size" "$examples/streaming" --hidden 25 --restore state
check "not if a byte has changed" eval 'printf x | dd of=state2 bs=1 seek=100 conv=notrunc 2>/dev/null; exits 1 "some of these bytes have changed" serve --restore state2'
check "not if some are missing" eval 'head -c 200 state >less; exits 1 "some of these bytes have changed or are missing" serve --restore less'
check "not another file" exits 1 "these bytes are not a state of version 1" serve --restore "$examples/streaming"
check "a million tokens, in constant memory" eval '"$examples/streaming" --hidden 16 --users 500 --batch 64 --tokens '"$([ -n "${V:-}" ] && echo 100000 || echo 1000000)"' >soak && awk "/^memory:/ { exit !(\$7 - \$2 < 3) }" soak'
finish "streaming"
