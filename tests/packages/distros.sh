#!/usr/bin/env bash
# distros.sh    compiles everything with gcc 11 to 14 and clang 14 to 19 in Debian 12 and 13, without a warning, and runs the golden vectors.
# Each distribution is a folder below DISTROS (~/.cache/weft/distros), made by mmdebstrap from the mirror of this system's apt (or MIRROR).
# COMPILERS="gcc-14 clang-19" takes some. UNITS="test_ops io": the tests of the newest gcc of a distribution. Needs root.
set -eu
skip() { echo "skipped: distros: $*"; exit 0; }
[ "$(id -u)" = 0 ] || skip "chroot needs root"
sh tests/deps.sh distros >/dev/null 2>&1 || skip "mmdebstrap is missing and cannot be installed (sh tests/deps.sh distros)"
unshare --mount --pid --fork true 2>/dev/null || skip "this system does not allow unshare --mount"
folder=${DISTROS:-${XDG_CACHE_HOME:-$HOME/.cache}/weft/distros}
compilers() {                           # SUITE: the newest gcc comes last
    case $1 in bookworm) echo clang-14 clang-15 clang-16 gcc-11 gcc-12 ;; trixie) echo clang-17 clang-18 clang-19 gcc-13 gcc-14 ;; esac
}
chosen() { local cc; for cc in $(compilers "$1"); do case " ${COMPILERS:-$cc} " in *" $cc "*) echo "$cc" ;; esac; done; }
UNITS=${UNITS:-core autograd nn rnn io golden}
mirror=${MIRROR:-$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' 2>/dev/null | awk '$2 !~ /security|updates/ && /debian/ { print $1; exit }')}
[ -n "$mirror" ] || skip "apt has no mirror of Debian; give MIRROR"
out=$(realpath -m "$BUILD")/distros
rm -rf "$out"
mkdir -p "$folder" "$out"

bootstrap() {                           # SUITE: makes the folder, unless it has these packages
    local root=$folder/$1 packages="gcc g++ make pkgconf libhdf5-dev zlib1g-dev libjansson-dev libopenblas-dev libcriterion-dev python3-pycparser binutils"
    packages="$packages $(compilers "$1")"
    if [ "$(cat "$root/.weft" 2>/dev/null)" = "$packages" ]; then return; fi
    rm -rf "$root"
    mmdebstrap --quiet --variant=apt --include="${packages// /,}" "$1" "$root" "$mirror" >"$out/$1.log" 2>&1 || { tail -n 5 "$out/$1.log"; return 1; }
    echo "$packages" >"$root/.weft"
}
inside() {                              # SUITE COMMAND: in the folder, with the tree at /src, read only, and a new folder of BUILD at /build
    mkdir -p "$folder/$1/src" "$folder/$1/build"
    unshare --mount --pid --fork --kill-child sh -c '
        mount -t proc proc "$1/proc" && mount --bind "$2" "$1/build" && mount --bind . "$1/src" && mount -o remount,bind,ro "$1/src" || exit 125
        exec chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 CI=true sh -c "cd /src && $3"' sh "$folder/$1" "$out" "$2"
}
for suite in bookworm trixie; do
    [ -n "$(chosen $suite)" ] || continue
    (flock 9 && bootstrap $suite) 9>"$folder/lock" || skip "mmdebstrap $suite has failed"
    inside $suite true || skip "this system does not allow mounts in a chroot"
done

built=0 passed=0 failed=0
for suite in bookworm trixie; do
    for cc in $(chosen $suite); do
        log=$out/$cc.log make="make -s -j$(nproc) NVCC=none MPI=none WERROR=1 CC=$cc BUILD=/build/$cc CFLAGS='${CFLAGS:--O1 -g1}'" start=$SECONDS
        case $(compilers $suite) in *" $cc") units=$UNITS ;; *) units=golden ;; esac
        if inside $suite "$make all && /build/$cc/examples/first && $make test UNITS='$units'" >"$log" 2>&1 && ! grep -q 'warning: ' "$log"; then
            n=$(sed -n 's/^\([0-9]*\) passed, .*/\1/p' "$log" | tail -n 1)
            printf '  ok    %-10s %-9s %4d s  %4d tests passed\n' $suite $cc $((SECONDS - start)) "$n"
            built=$((built + 1)) passed=$((passed + n))
        else
            printf '  FAIL  %-10s %-9s %4d s  %s\n' $suite $cc $((SECONDS - start)) "$log"
            grep -E '(error|warning|FAIL|not so)' "$log" | head -n 20
            tail -n 3 "$log"
            failed=$((failed + 1))
        fi
    done
done
echo "distros: $built compilers build the library, the command and the examples without a warning; $passed tests passed, $failed failures"
[ "$failed" = 0 ] && [ "$built" -gt 0 ]
