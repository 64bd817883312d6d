#!/usr/bin/env bash
# test_stream.sh    one token a call: the benchmark runs and sees a peer that is none, and a call takes no more instructions than it did. The counts
# are callgrind's, of what gcc 12 makes for AVX2, and hold within 2 %. B is the build.
set -u
. "$(dirname "$0")/script.sh"
stream=$(dirname "$examples")/bench/stream/stream
want_32=14452 want_128=35992            # instructions of a call with so many units, one sequence; another count is written here, with its reason

check "two shapes, both ways" eval '"$stream" --units 8,20 --batch 3 --calls 120 >said && [ "$(grep -cE "^stream(-real)? H=(8|20) B=3 weft [0-9.]+ us together [0-9.]+ us, 99.9 % within [0-9.]+ us, idle [0-9.]+ us$" said)" = 4 ]'
check "no such library" says 1 "stream: /nowhere.so is no onnxruntime" "$stream" --library /nowhere.so --models . --units 8 --batch 1 --calls 10
check "another library" says 1 "libm.so.6 is no onnxruntime: it has no OrtGetApiBase" "$stream" --library libm.so.6 --models . --units 8 --batch 1 --calls 10
for wrong in "--batch 0" "--batch 65" "--calls 0" "--unit 8" "--library x"; do
    # shellcheck disable=SC2086
    check "$wrong" says 2 "^stream \[--library" "$stream" $wrong
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
finish "streaming"
