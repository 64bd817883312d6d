#!/usr/bin/env bash
# amalgamation.sh    tests weft.c and weft.h in $BUILD/amalgamation: gcc, clang and zig compile them without a warning, golden files and random
# programs have the bits of the library in $B by the same compiler, the program of docs/drop_in.md prints the same in C11 and C++17, and needs
# libc and libm only. Compilers for other CPUs compile them too, if they are there. COMPILERS="gcc clang": only these. MAKE, BUILD and B come from make.
set -u
out=$BUILD/amalgamation bad=0 cases=0 sums=0 used='' stock=${XDG_CACHE_HOME:-$HOME/.cache}/weft/cross
strict=(-Wall -Wextra -Wpedantic -Werror) libs=(-lm -lpthread)
wrong() { echo "amalgamation: $*"; bad=$((bad + 1)); }
if [ ! -e "$stock/zig/complete" ]; then
    { python3 -m venv "$stock/zig" && timeout 1200 "$stock/zig/bin/pip" -q install ziglang==0.17.1 && touch "$stock/zig/complete"; } </dev/null >"$out/pip.log" 2>&1
fi
compiler() { case $1 in zig) echo "$stock/zig/bin/python -m ziglang cc" ;; *) echo "$1" ;; esac; }
compile() {                             # NAME COMMAND...: weft.o of a compiler
    local begin=$SECONDS
    mkdir -p "$out/$1"
    if "${@:2}" -O2 "${strict[@]}" -c "$out/weft.c" -o "$out/$1/weft.o" >"$out/$1/log" 2>&1; then
        printf '%-20s compiles weft.c %4d s\n' "$1" $((SECONDS - begin))
    else
        wrong "$1 does not compile weft.c without a warning"; head -n 20 "$out/$1/log"; return 1
    fi
}
link() { gcc -o "$@" "${libs[@]}" || wrong "does not link: $1"; }      # PROGRAM OBJECT...
awk '/^```c$/ { inside = 1; next } /^```/ { inside = 0 } inside' docs/drop_in.md >"$out/program.c"

# Builds the library with the same compiler, and prints its bits.
reference() {                           # NAME
    local library=$B
    if [ "$1" = clang ]; then
        library=$out/clang/none
        mkdir -p "$out/clang" && "$MAKE" -s IO=none V= NVCC=none MPI=none CC=clang BUILD="$out/clang" "$library/libweft.a" || return 1
    fi
    link "$out/$1/bits_library" "$B/tests/packages/bits.o" "$B"/tests/hunt/hunt_*.o "$library/libweft.a" -ldl
    "$out/$1/bits_library" >"$out/$1/bits"
}
check() {                               # NAME COMMAND...
    local n d=$out/$1
    link "$d/golden" "$B"/tests/golden_run/*.o "$d/weft.o" -ljansson
    "$d/golden" tests/golden/{layers,models,models_edges,recurrent}.json >"$d/golden.out" || { wrong "golden files, $1"; grep FAIL "$d/golden.out"; }
    n=$(sed -n 's/^\([0-9]*\) of .*/\1/p' "$d/golden.out")
    cases=$((cases + n))
    if [ "$1" != zig ]; then
        link "$d/bits_here" "$B/tests/packages/bits.o" "$B"/tests/hunt/hunt_*.o "$d/weft.o"
        "$d/bits_here" >"$d/bits_here.out"
        if ! { reference "$1" && cmp -s "$d/bits" "$d/bits_here.out"; }; then wrong "bits, $1"; diff "$d/bits" "$d/bits_here.out" | head -n 10; fi
        sums=$((sums + $(wc -l <"$d/bits")))
    fi
    "${@:2}" -std=c11 "${strict[@]}" -O2 -I"$out" "$out/program.c" "$d/weft.o" "${libs[@]}" -o "$d/program"
    (cd "$d" && ./program >program.out) || wrong "the program of docs/drop_in.md, $1"
    used="$used $1"
}
for c in ${COMPILERS:-gcc clang zig}; do
    # shellcheck disable=SC2046
    set -- $(compiler "$c")
    if ! "$@" --version >/dev/null 2>&1; then echo "skipped: $c is missing and cannot be installed"; continue; fi
    compile "$c" "$@" && check "$c" "$@"
done
if [ -e "$out/gcc/program" ]; then
    link "$out/gcc/program_library" -I. -DWEFT_IO_NONE "$out/program.c" "$B/libweft.a" -ldl
    (cd "$out/gcc" && ./program_library) | cmp - "$out/gcc/program.out" || wrong "the program prints something else with libweft"
    printf '#include "weft.h"\nint main() { weft *w = weft_open(nullptr); bool good = weft_ok(w); weft_close(w); return !good; }\n' >"$out/program.cpp"
    g++ -std=c++17 "${strict[@]}" -I"$out" "$out/program.cpp" "$out/gcc/weft.o" "${libs[@]}" -o "$out/gcc/program_cpp"
    "$out/gcc/program_cpp" || wrong "C++17"
    if ldd "$out/gcc/program" | grep -vE 'linux-vdso|libm\.|libc\.|libpthread|ld-linux'; then wrong "the program needs other libraries"; fi
    strip -o "$out/gcc/stripped" "$out/gcc/program"
fi
for c in aarch64-linux-gnu-gcc riscv64-linux-gnu-gcc s390x-linux-gnu-gcc; do
    if [ -z "${COMPILERS:-}" ] && command -v $c >/dev/null; then compile $c $c; fi
done
echo "amalgamation: $(cat "$out"/weft.[ch] | wc -l) lines, $(cat "$out"/weft.[ch] | wc -c | awk '{ printf "%.1f", $1 / 1e6 }') MB; compiled by$used;" \
    "$cases golden cases hold; $sums checksums compared; program of $(stat -c %s "$out/gcc/stripped" 2>/dev/null || echo 0) bytes; $bad faults"
[ $bad = 0 ] && [ -n "$used" ]
