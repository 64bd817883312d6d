#!/usr/bin/env bash
# gpu_deps.sh DIR    fills DIR with the Debian libraries that weft and its tests are linked to, and with all that those need in turn,
# for `make DEPS=DIR` on a machine without a package manager. Nothing is installed.
#
# What is left out: libc6, libgcc and libstdc++, which any machine with a compiler has, and every file that no NEEDED entry leads to.
# In the end ldd must find each library in DIR or among those, and each header must come from DIR. DIR.tar.gz has the same in a third
# of the room. Closes with the size, which must be below 64 MB.
set -u
dir=$(realpath -m "${1:?usage: gpu_deps.sh DIR}")
lib=usr/lib/$(${CC:-gcc} -dumpmachine)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
fail() { echo "gpu_deps.sh: $*" >&2; exit 1; }
everywhere='^(linux-vdso|ld-linux.*|libc|libm|libdl|libpthread|librt|libresolv|libutil|libanl|libgcc_s|libstdc[+][+])[.]so'

wanted="libhdf5-dev libhdf5-103-1 zlib1g-dev zlib1g libcriterion-dev libcriterion3 libjansson-dev libjansson4 libopenblas0-pthread"
closure=$(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances \
          libhdf5-103-1 zlib1g libcriterion3 libjansson4 libopenblas0-pthread 2>/dev/null | grep -E '^[a-z0-9]' | grep -vE '^(libc6|libgcc-s1|gcc-[0-9]|libstdc|debconf|cdebconf|dpkg|perl)' | cut -d: -f1)
[ -n "$closure" ] || fail "apt-cache knows no libhdf5-103-1: apt-get update first"
packages=$(printf '%s\n' $wanted $closure | sort -u)
(cd "$work" && apt-get -q -o APT::Sandbox::User=root download $packages >log 2>&1) || { tail -n 5 "$work/log" >&2; fail "cannot download"; }
for p in "$work"/*.deb; do dpkg-deb -x "$p" "$work/all" || fail "cannot unpack $p"; done

# Into one folder: what Debian keeps below it, or links by its alternatives.
all=$work/all/$lib
[ -d "$work/all/lib" ] && cp -a "$work/all/lib/." "$work/all/usr/lib/"
rm -rf "$dir"; mkdir -p "$dir/$lib" "$dir/usr/include/hdf5"
find_library() {                        # NAME: its file
    local f
    for f in "$all/$1" "$all/openblas-pthread/$1" "$all/hdf5/serial/$1"; do if [ -e "$f" ]; then realpath "$f"; return; fi; done
    false
}
needs() { objdump -p "$1" | awk '$1 == "NEEDED" { print $2 }'; }
take() {                                # NAME: as a file of that name, and all that it needs
    [ ! -e "$dir/$lib/$1" ] || return 0
    local from
    from=$(find_library "$1") || fail "$1 is in none of the packages"
    cp "$from" "$dir/$lib/$1"
    strip --strip-unneeded "$dir/$lib/$1"
    for n in $(needs "$from"); do [[ $n =~ $everywhere ]] || take "$n"; done
}
for name in libhdf5 libcriterion libjansson; do           # for the linker; the name to run with is what the file says
    from=$(find_library $name.so) || fail "no $name.so"
    soname=$(objdump -p "$from" | awk '$1 == "SONAME" { print $2 }')
    take "$soname"
    ln -sf "$soname" "$dir/$lib/$name.so"
done
take libz.so.1                          # Debian's own link for the linker names a file of the machine
ln -sf libz.so.1 "$dir/$lib/libz.so"
take libopenblas.so.0                   # which is opened, not linked
cp -r "$work/all/usr/include/hdf5/serial" "$dir/usr/include/hdf5/"
cp -r "$work/all/usr/include/criterion" "$work/all/usr/include"/jansson*.h "$work/all/usr/include"/z{lib,conf}.h "$dir/usr/include/"
cp "$all"/jansson_config.h "$dir/usr/include/" 2>/dev/null

# ---- is it whole? ----
bad=0
for f in "$dir/$lib"/*.so*; do
    out=$(LD_LIBRARY_PATH=$dir/$lib ldd "$f" | awk '{ print $1, $3 }' | while read -r name path; do
        [[ $name =~ $everywhere || $name == /* || $path == "$dir/$lib/"* ]] || echo "${f##*/}: $name is ${path:-nowhere}"
    done)
    [ -z "$out" ] || { echo "$out"; bad=1; }
done
for h in hdf5.h zlib.h criterion/criterion.h jansson.h; do
    echo "#include <$h>" | ${CC:-gcc} -M -x c -I"$dir/usr/include" -I"$dir/usr/include/hdf5/serial" - >"$work/headers" || { echo "$h does not compile"; bad=1; }
    if tr ' ' '\n' <"$work/headers" | grep -E '/(hdf5|H5|zlib|zconf|criterion|jansson)' | grep -v "^$dir/"; then echo "$h: not from $dir"; bad=1; fi
done
tar -C "$dir" -czf "$dir.tar.gz" usr || bad=1
size=$(du -sk --apparent-size "$dir" | cut -f1)
echo "$(find "$dir/$lib" -type f | wc -l) libraries, $(find "$dir/usr/include" -type f | wc -l) headers, $((size / 1024)).$((size % 1024 * 10 / 1024)) MB, packed $(($(stat -c %s "$dir.tar.gz") >> 20)) MB"
[ "$bad" = 0 ] && [ "$size" -lt 65536 ]
