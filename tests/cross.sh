#!/usr/bin/env bash
# cross.sh [quick] [MACHINE]...    builds weft for other machines and tests it there, under qemu where this CPU cannot run it.
#
# MACHINE: aarch64, riscv64, s390x (big endian), i386: by Debian's cross compilers. x86_64-linux-musl, aarch64-linux-musl (static
# programs), aarch64-macos, x86_64-macos (linked, not run): by zig of PyPI, with IO=none. Default: all. quick: library and golden
# vectors only, of aarch64 unless machines are named. It also compares the files that each of the first four writes with those of
# this machine. HDF5, zlib and jansson come from Debian's packages, unpacked below ${XDG_CACHE_HOME:-~/.cache}/weft, as is zig;
# nothing of another machine is installed. BUILD is the build folder; B has tests/cross/files. Ends with "N passed, M failed".
set -u
here=${B:-build} out=${BUILD:-build}/cross stock=${XDG_CACHE_HOME:-$HOME/.cache}/weft/cross quick=
if [ "${1:-}" = quick ]; then quick=1; shift; fi
machines=${*:-$([ -n "$quick" ] && echo aarch64 || echo "aarch64 riscv64 s390x i386 x86_64-linux-musl aarch64-linux-musl aarch64-macos x86_64-macos")}
good=0 bad=0
export CCACHE_NOHASHDIR=1 LC_ALL=C.UTF-8 ZIG_GLOBAL_CACHE_DIR=$stock/zig/cache
export PATH=/usr/lib/ccache:$PATH
unset MAKEFLAGS MFLAGS MAKELEVEL V B CC CFLAGS LDFLAGS CPPFLAGS
mkdir -p "$out" || exit 1

# Sets what differs between machines: the compiler's name, Debian's name and folder.
describe() {                            # MACHINE
    triplet=$1-linux-gnu debian=$1 folder=$1-linux-gnu compiler=gcc-$1-linux-gnu suite='' qemu='' zig='' root=''
    case $1 in
    aarch64) debian=arm64 ;;
    riscv64) suite=trixie ;;            # Debian 12 has no riscv64
    s390x) ;;
    i386) triplet=i686-linux-gnu compiler=gcc-i686-linux-gnu ;;
    *-macos) zig="$stock/zig/bin/python -m ziglang"; return ;;
    *-linux-musl) zig="$stock/zig/bin/python -m ziglang"; [ "${1%%-*}" = "$(uname -m)" ] || qemu=qemu-${1%%-*}-static; return ;;
    *) echo "cross.sh: no such machine: $1"; exit 2 ;;
    esac
    root=$stock/$debian qemu="qemu-$1-static -L $root"
}
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }
tools_are_here() { command -v "$triplet-gcc" && command -v "${qemu%% *}"; } >/dev/null 2>&1
get_tools() {
    tools_are_here || { { as_root apt-get -q update && as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y \
        --no-install-recommends "$compiler" "libc6-dev-$debian-cross" qemu-user-static; } </dev/null >"$out/apt.log" 2>&1
        tools_are_here; }
}
# Sets apt to a command with folders of its own and this system's sources.
private_apt() {                         # FOLDER TYPE [OPTION]...
    local d=$1 sources
    rm -rf "$d" && mkdir -p "$d"/{lists/partial,archives/partial,sources,root} && : >"$d/status" || return
    sources=$(grep -ls '^URIs:' /etc/apt/sources.list.d/*.sources | head -n 1)
    if [ -z "$sources" ]; then return 1; fi
    sed -E "/^(Architectures|#)/d; s/^Types:.*/Types: $2/; s/^Suites: *([^ ]+).*/Suites: ${suite:-\\1}/" "$sources" | sed '/^$/q' >"$d/sources/cross.sources"
    apt=(apt-get -q -o Dir::State="$d" -o Dir::Cache="$d" -o Dir::State::status="$d/status" -o Dir::Etc::SourceList=/dev/null
        -o Dir::Etc::SourceParts="$d/sources" -o APT::Sandbox::User=root -o APT::Install-Recommends=false "${@:3}")
    "${apt[@]}" update </dev/null >"$out/apt.log" 2>&1
}
# Unpacks the packages with their dependencies.
get_libraries() {
    local d=$root.part file
    if [ -e "$root/complete" ]; then return; fi
    private_apt "$d" deb -o APT::Architecture="$debian" -o APT::Architectures::="$debian" || return
    "${apt[@]}" -y --download-only install libhdf5-dev zlib1g-dev libjansson-dev libatomic1 </dev/null >"$out/apt.log" 2>&1 || return
    for file in "$d"/archives/*.deb; do         # the compiler has its own headers
        case ${file##*/} in libc6-dev_*|linux-libc-dev_*|libgcc-*-dev_*|libstdc++*-dev_*|*fortran*) continue ;; esac
        dpkg-deb -x "$file" "$d/root" || return
    done
    [ -e "$d/root/lib" ] || ln -s usr/lib "$d/root/lib"
    [ -e "$d/root/usr/lib/$folder/pkgconfig/hdf5.pc" ] || ln -s hdf5-serial.pc "$d/root/usr/lib/$folder/pkgconfig/hdf5.pc"
    touch "$d/root/complete" && mv "$d/root" "$root" && rm -rf "$d"
}
# Installs zig, and unpacks the source of jansson, which reads golden files.
get_zig() {
    if [ ! -e "$stock/zig/complete" ]; then
        { python3 -m venv "$stock/zig" && timeout 1200 "$stock/zig/bin/pip" -q install ziglang==0.17.1 && touch "$stock/zig/complete"; } </dev/null >"$out/pip.log" 2>&1
    fi
    if [ ! -e "$stock/jansson" ]; then
        local d=$stock/jansson.part src=$stock/jansson.part/root/src
        private_apt "$d" deb-src && (cd "$d" && "${apt[@]}" --download-only source jansson) </dev/null >"$out/apt.log" 2>&1 &&
            tar -xf "$d"/jansson_*.orig.tar.* -C "$d/root" --strip-components=1 && : >"$src/jansson_private_config.h" &&
            sed 's/@json_inline@/inline/; s/@[a-z_]*@/1/' "$src/jansson_config.h.in" >"$src/jansson_config.h" && mv "$src" "$stock/jansson" && rm -rf "$d"
    fi
    [ -e "$stock/zig/complete" ] && [ -e "$stock/jansson" ] && { [ -z "$qemu" ] || command -v "$qemu" >/dev/null; }
}
build() {                               # TARGET...
    local b=$out/$machine link=-Wl,-rpath-link,$root/usr/lib/$folder:$root/lib/$folder settings
    mkdir -p "$b" && touch "$b/.needs-build" "$b/.needs-test" "$b/.needs-lint" || return
    if [ -n "$suite" ]; then link="$link -Wl,--allow-shlib-undefined"; fi        # libraries of a newer C library
    settings=(PKG_CONFIG_LIBDIR="$root/usr/lib/$folder/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$root" CFLAGS="-O2 -g1 -isystem tests/cross"
        LDFLAGS="-L$root/usr/lib/$folder $link" CC="$triplet-gcc -isystem $root/usr/include")
    if [ -n "$zig" ]; then
        [ -e "$b/libjansson.a" ] || { $zig cc -target "$machine" -O2 -DHAVE_STDINT_H -DHAVE_UNISTD_H -I"$stock/jansson" -c -o "$b/jansson.o" "$stock"/jansson/*.c &&
            $zig ar rcs "$b/libjansson.a" "$b/jansson.o"; } || return
        settings=(IO=none CFLAGS="-O2 -g1 -isystem $stock/jansson" LDFLAGS="-L$b" CC="$zig cc -target $machine" AR="$zig ar")
    fi
    env "${settings[@]}" make --no-print-directory -s -j"$(nproc)" NVCC=none MPI=none WERROR=1 BUILD="$b" CRITERION="$b/tests/cross/criterion/run.o" "${@/#/$b${zig:+/none}/}"
}
on() { env WEFT_SMALL=1 WEFT_TESTS="$PWD/tests" $qemu ${cpu:+-cpu $cpu} "$out/$machine${zig:+/none}/$1" "${@:2}"; }     # PROGRAM ARGUMENT...
step() {                                # NAME COMMAND...
    local begin=$SECONDS rc
    "${@:2}" >"$out/$machine.log" 2>&1 </dev/null
    rc=$?
    if [ $rc = 0 ]; then good=$((good + 1)); else bad=$((bad + 1)); fi
    printf '%-18s %-58s %s %4d s\n' "$machine" "$1" "$([ $rc = 0 ] && echo good || echo BAD)" $((SECONDS - begin))
    if [ $rc != 0 ]; then tail -n 15 "$out/$machine.log" | sed 's/^/    /'; fi
    return $rc
}
clean_build() { build "$@" && ! grep -E 'warning|note:' "$out/$machine.log"; }
golden() { on tests/golden "tests/golden/$1.json"; }
# This machine's files have the same bytes, and each reads the other's.
same_files() {
    local f mine=$out/$machine/files
    mkdir -p "$out/files" "$mine" && "$here/tests/cross/files" "$out/files" && on tests/cross/files "$mine" "$out/files" &&
        "$here/tests/cross/files" "$out/files" "$mine" || return
    for f in net.weft net.h5 net.safetensors net.onnx net.jsonl; do
        cmp "$mine/$f" "$out/files/$f" || return
    done
}
first() { on examples/first && { [ -n "$zig" ] || on weft --version; }; }
epoch() {                               # on 500 words
    sh tests/deps.sh dictionary "$out/cmudict.out" && on examples/g2p --data "$out/cmudict.out" --words 500 --epochs 1 --out "$out/$machine/g2p.h5"
}
# The sums of BF16 on matrix instructions, bit by bit; vectors where the CPU lacks them.
bf16() {
    cpu=max on tests/test_core tiles rounding && cpu=cortex-a72 on tests/test_core tiles && cpu=max on tests/test_rnn recur_tiles/threads_change_no_bit step
}

for machine in $machines; do
    describe "$machine"
    if [ -n "$zig" ]; then
        if ! get_zig; then echo "$machine: skipped: zig of PyPI, jansson's source${qemu:+ or $qemu} cannot be had"; continue; fi
    elif ! get_tools; then echo "$machine: skipped: $compiler and qemu-user-static cannot be installed"; continue
    elif ! get_libraries; then echo "$machine: skipped: Debian's packages of HDF5 for $debian cannot be had"; continue; fi
    targets="tests/golden examples/first tests/hunt/hunt libweft.so" others="weft examples/g2p tests/cross/files tests/test_io"
    case $zig$quick$machine in
    *macos)  targets="${targets%so}dylib" others='' ;;
    *musl)   others='' ;;
    quick*)  targets=tests/golden others=tests/cross/files ;;
    esac
    # shellcheck disable=SC2086
    step "library, programs and tests, without a warning" clean_build $targets $others || continue
    case $machine in *-macos) continue ;; esac
    for set in layers models models_edges recurrent; do step "golden vectors: $set" golden $set; done
    if [ -z "$zig" ]; then step "files have the bytes of this machine's" same_files; fi
    if [ -n "$quick" ]; then continue; fi
    step "examples/first${others:+ and weft}" first
    if [ -z "$zig" ]; then
        step "tests of HDF5, checkpoints and weights" on tests/test_io -hdf5_reads/only_requested_rows_are_read checkpoint checkpoint_files hdf5_reads chunks dataset state_dict weights npz torch journal
    fi
    if [ "$machine" = aarch64 ]; then
        step "rooms core and rnn build" clean_build tests/test_core tests/test_rnn && step "BF16 with and without matrix instructions, denormals" bf16
        step "100 random programs: the same bits in every way" on tests/hunt/hunt 100 1
        step "one epoch of the demo on 500 words" epoch
    else
        step "10 random programs: the same bits in every way" on tests/hunt/hunt 10 1
    fi
done
if [ $good = 0 ] && [ $bad = 0 ]; then echo "cross: skipped: no machine could be tested"; exit 0; fi
echo "$good passed, $bad failed"
[ $bad = 0 ]
