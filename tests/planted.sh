#!/usr/bin/env bash
# planted.sh: every safety net must catch the bug that was planted for it. MAKE and BUILD come from make. Each program of tests/planted
# is built in the variant of its net and must be reported, with the words of that net; a net that stays silent is a failure.
set -u
good=0 all=0
catches() {                             # NET VARIANT PROGRAM WORDS
    local b=$BUILD${2:+/$2} out
    all=$((all + 1))
    if ! out=$($MAKE -s V="$2" "$b/tests/planted/$3" 2>&1 </dev/null); then printf '  FAIL  %s: does not build\n%s\n' "$1" "$out"; return; fi
    case $3 in
    race) out=$(TSAN_OPTIONS=exitcode=66 "$b/tests/planted/race" 2>&1 </dev/null) && rc=0 || rc=$?
          if [ $rc != 66 ]; then out=$(TSAN_OPTIONS=exitcode=66 setarch -R "$b/tests/planted/race" 2>&1 </dev/null) && rc=0 || rc=$?; fi ;;
    *)    mkdir -p "$b/planted/tests"; cp "$b/tests/planted/$3" "$b/planted/test_$3"
          out=$(B=$b/planted V=none bash tests/run.sh "$b/planted/test_$3" 2>&1 </dev/null) && rc=0 || rc=$? ;;
    esac
    if [ $rc != 0 ] && printf '%s' "$out" | grep -qE "$4"; then good=$((good + 1)); printf '  ok    %s\n' "$1"
    else printf '  FAIL  %s did not catch %s (exit status %s)\n' "$1" "$3" "$rc"; printf '%s\n' "$out" | head -n 30 | sed 's/^/        | /' | sed 's/ failed/ refused/'; fi
}
catches "a leak, by the address sanitizer"    asan   leak       'LeakSanitizer: detected memory leaks'
catches "a block not given back, by CLEAN"    ''     block      '1 blocks were not given back'
catches "a wrong derivative, by gradcheck"    double derivative 'gradcheck: off by'
catches "a race, by the thread sanitizer"     tsan   race       'ThreadSanitizer: data race'
catches "a corrupt file, by its checksums"    ''     corrupt    'load: EFORMAT'

# The hunt finds an operator that looks at its neighbour in memory, and nothing else that is needed for it.
all=$((all + 1))
out=$({ $MAKE -s V= "$BUILD/tests/hunt/hunt" && "$BUILD/tests/hunt/hunt" 40 1 --isa generic --planted; } 2>&1 </dev/null) && rc=0 || rc=$?
if [ $rc != 0 ] && printf '%s' "$out" | grep -qE 'width [0-9]+: neighbour$' && printf '%s' "$out" | grep -qE '^hunt: 40 programs .* [1-9][0-9]* differences$'
then good=$((good + 1)); echo "  ok    a neighbour that is looked at, by the hunt"
else echo "  FAIL  the hunt did not catch the neighbour that is looked at (exit status $rc)"; printf '%s\n' "$out" | tail -n 30 | sed 's/^/        | /'; fi

# A net that is a script around examples/g2p, linked with a source of the library that has a bug: SED must change it.
script_catches() {                      # NET SOURCE SED WORDS SCRIPT ENVIRONMENT...
    local into=$BUILD/planted/sources rc out words=$4 script=$5
    all=$((all + 1))
    rm -rf "$into"; mkdir -p "$into"
    sed -E "$3" "$2" >"$into/planted.c"
    if cmp -s "$2" "$into/planted.c"; then echo "  FAIL  $1: there is no such place in $2"; return; fi
    if ! out=$({ $MAKE -s V= "$BUILD/examples/g2p" "$BUILD/tests/starve_malloc.so" && ${CC:-cc} -std=c11 -D_GNU_SOURCE -I. $(${PKG_CONFIG:-pkg-config} --cflags hdf5 zlib) -O1 -c -o "$into/planted.o" "$into/planted.c" &&
            ${CC:-cc} -o "$into/g2p" "$BUILD"/examples/g2p*.o "$into/planted.o" "$BUILD/examples/common.a" "$BUILD/libweft.a" $(${PKG_CONFIG:-pkg-config} --libs hdf5 zlib) -ldl -lm -lpthread; } 2>&1 </dev/null); then
        printf '  FAIL  %s: does not build\n%s\n' "$1" "$out"; return
    fi
    out=$(env G2P="$(realpath "$into/g2p")" B="$BUILD" "${@:6}" bash "tests/$script" 2>&1 </dev/null) && rc=0 || rc=$?
    if [ $rc != 0 ] && printf '%s' "$out" | grep -qE "$words"; then good=$((good + 1)); printf '  ok    %s\n' "$1"
    else printf '  FAIL  %s did not catch its bug (exit status %s)\n' "$1" "$rc"; printf '%s\n' "$out" | tail -n 30 | sed 's/^/        | /'; fi
}
script_catches "a file written in place, by kills"      io/file_write.c 's/t->temporary, O_WRONLY \| O_CREAT \| O_EXCL/t->base, O_WRONLY | O_CREAT | O_TRUNC/; s/renameat\(.*\) == 0;/true;/' \
    'kill: .* [1-9][0-9]* (differ|lost),' kill.sh KILLS=60
script_catches "memory taken for granted, by starving"  io/checkpoint/checkpoint.c 's/if \(!host\) \{/if (0) {/' 'starve: .* [1-9][0-9]* crashes' starve.sh
all=$((all + 1))                        # the fuzzers' net: a reader that loses a byte of some lines
if out=$($MAKE -s BUILD="$BUILD" fuzz READERS=planted RUNS=300000 2>&1 </dev/null); then printf '  FAIL  the fuzzers did not catch a planted reader\n%s\n' "$out"
elif printf '%s' "$out" | grep -q '1 silent changes'; then good=$((good + 1)); printf '  ok    a lost byte, by the fuzzers\n'
else printf '  FAIL  the fuzzers say\n%s\n' "$out"; fi
echo "$good of $all nets hold"
[ "$good" = "$all" ]
