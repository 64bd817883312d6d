#!/usr/bin/env bash
# dist.sh    writes $BUILD/dist/weft-$VERSION.tar.gz from the last commit, with the same bytes for each clone, and compares examples/first
# built from it, without git, with the one of the tree. MAKE, CC, BUILD and VERSION come from make.
set -eu
out=$(realpath -m "$BUILD/dist") name=weft-$VERSION
if ! git rev-parse -q --verify HEAD >/dev/null 2>&1; then echo "skipped: dist: this folder is not a clone of weft, or git is missing"; exit 0; fi
rm -rf "$out"
mkdir -p "$out/bin"
# Archives the commit $2 of the clone $1 as $3.
archive() { git -C "$1" -c tar.umask=0022 -c core.autocrlf=false archive --format=tar --prefix="$name/" "$2" | gzip -n9 >"$3"; }
commit=$(git rev-parse HEAD)
archive . "$commit" "$out/$name.tar.gz"
(umask 077; git clone -q --no-checkout . "$out/clone"; cd /; TZ=Asia/Tokyo LC_ALL=C archive "$out/clone" "$commit" "$out/again.tar.gz")
cmp "$out/$name.tar.gz" "$out/again.tar.gz"
if ! git diff --quiet HEAD; then echo "dist: changes since the last commit are not in it"; fi

printf '#!/bin/sh\necho "git was called: $*" >>"%s/called"\nexit 1\n' "$out" >"$out/bin/git"
chmod +x "$out/bin/git"
tar -xzf "$out/$name.tar.gz" -C "$out"
(cd "$out/$name" && env -u MAKEFLAGS -u MAKELEVEL PATH="$out/bin:$PATH" "$MAKE" -s NVCC=none MPI=none V= BUILD=build CC="$CC" build/examples/first)
[ ! -e "$out/called" ] || { cat "$out/called"; exit 1; }
"$out/$name/build/examples/first" >"$out/first.out"
"$BUILD/examples/first" | cmp - "$out/first.out"
files=$(tar -tzf "$out/$name.tar.gz" | grep -vc '/$')
rm -rf "$out/clone" "$out/again.tar.gz" "${out:?}/bin" "${out:?}/$name" "$out/first.out"
echo "dist: $BUILD/dist/$name.tar.gz, $files files, $(stat -c %s "$out/$name.tar.gz") bytes, the same from two clones; examples/first builds from it without git"
