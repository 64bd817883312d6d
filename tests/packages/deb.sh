#!/usr/bin/env bash
# deb.sh    builds the Debian packages of the last commit in two folders with different paths. Both must have the same bytes, lintian must
# print no tag, and a program must compile against the packages, extracted into a folder. MAKE, CC, BUILD, VERSION and SOVERSION come from make.
set -eu
fail() { echo "deb: $*" >&2; exit 1; }
skip() { echo "skipped: deb: $*"; exit 0; }
command -v dpkg >/dev/null || skip "this system has no dpkg"
sh tests/deps.sh deb >/dev/null 2>&1 || skip "dpkg-dev, debhelper or lintian is missing and cannot be installed (sh tests/deps.sh deb)"
out=$(realpath -m "$BUILD/deb") name=weft-$VERSION
[ "$(dpkg-parsechangelog -S Version)" = "$VERSION" ] || fail "debian/changelog has version $(dpkg-parsechangelog -S Version); expected $VERSION"
[ -e "debian/libweft$SOVERSION.symbols" ] || fail "debian/libweft$SOVERSION.symbols is missing; rename libweft* in debian/ to the library's new name"
"$MAKE" -s BUILD="$BUILD" dist | tail -n 1
[ -e "$BUILD/dist/$name.tar.gz" ] || skip "make dist has written no tarball"

rm -rf "$out"
folders=("$out/a" "$out/another_folder/b") umasks=(022 002) zones=(UTC Asia/Tokyo)
for i in 0 1; do
    mkdir -p "${folders[i]}"
    tar -xzf "$BUILD/dist/$name.tar.gz" -C "${folders[i]}"
    (umask "${umasks[i]}"; cd "${folders[i]}/$name" && env -u MAKEFLAGS -u MAKELEVEL -u CC -u BUILD -u VERSION TZ="${zones[i]}" \
        dpkg-buildpackage -J -us -uc >"$out/build$i.log" 2>&1) || { tail -n 40 "$out/build$i.log"; fail "dpkg-buildpackage has failed in ${folders[i]}"; }
done
debs=0
for f in "${folders[0]}"/*.{deb,dsc,tar.xz}; do
    cmp "$f" "${folders[1]}/${f##*/}" || fail "${f##*/} has other bytes in another folder"
    case $f in *.deb) debs=$((debs + 1)) ;; esac
done
tags=$(lintian --allow-root --fail-on none "${folders[0]}"/*.changes 2>&1) || true
[ -z "$tags" ] || { echo "$tags"; fail "lintian prints the tags above"; }

for f in "${folders[0]}"/*.deb; do dpkg-deb -x "$f" "$out/root"; done
lib=usr/lib/$(dpkg-architecture -q DEB_HOST_MULTIARCH 2>/dev/null)
export PKG_CONFIG_PATH="$out/root/$lib/pkgconfig" LD_LIBRARY_PATH="$out/root/$lib"
pc() { ${PKG_CONFIG:-pkg-config} --define-variable=prefix="$out/root/usr" --define-variable=libdir="$out/root/$lib" "$@"; }
for f64 in '' _f64; do
    # shellcheck disable=SC2046
    $CC -std=c11 -D_GNU_SOURCE "$out/root/usr/share/doc/weft/examples/first.c" -o "$out/first" $(pc --cflags --libs weft$f64)
    "$out/first" >"$out/first$f64.out"
    readelf -d "$out/first" | grep -q "libweft$f64.so.$SOVERSION" || fail "first.c does not need libweft$f64.so.$SOVERSION"
done
"$BUILD/examples/first" | cmp - "$out/first.out" || fail "first.c has another output than in the tree"
[ "$("$out/root/usr/bin/weft" --version)" = "$("$BUILD/weft" --version)" ] || fail "the package's command has another version"
for f in share/man/man1/weft.1.gz share/bash-completion/completions/weft; do [ -e "$out/root/usr/$f" ] || fail "no usr/$f in the packages"; done
mv "${folders[0]}"/*.deb "$out"
rm -rf "$out/a" "${folders[1]%/*}" "$out/root" "$out"/first*
echo "deb: $debs packages in $BUILD/deb, the same bytes from two folders, lintian without a tag, first.c compiled against them"
