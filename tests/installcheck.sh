#!/bin/sh
# installcheck.sh: stages an install, then compiles examples/first.c in an empty folder with what pkg-config says and nothing else, and
# runs it; against the shared library, then against the archive. MAKE, CC, V and B come from make.
set -eu
root=$(realpath -m "$B")/stage stage=$root/usr
rm -rf "$root"
$MAKE -s V="$V" install DESTDIR="$root" PREFIX=/usr LIBDIR=/usr/lib
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp examples/first.c "$work"
cd "$work"
export PKG_CONFIG_PATH="$stage/lib/pkgconfig"
pc="${PKG_CONFIG:-pkg-config} --define-variable=prefix=$stage --define-variable=libdir=$stage/lib weft"
$CC first.c -o shared $($pc --cflags --libs)
LD_LIBRARY_PATH="$stage/lib" ./shared >shared.out
$CC first.c -o static $($pc --cflags) "$stage/lib/libweft.a" $($pc --static --libs-only-l | sed 's/-lweft *//') $($pc --static --libs-only-L)
./static >static.out
test -s shared.out
cmp shared.out static.out
readelf -d "$stage/lib/libweft.so" | grep -q 'SONAME.*libweft\.so\.[0-9]*\]'
! ldd "$stage/lib/libweft.so" | grep -qE 'openblas|cuda|cublas'
cat shared.out
echo "1 of 1 installed programs hold"
