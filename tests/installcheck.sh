#!/bin/sh
# installcheck.sh: stages an install of the float and the double library and uses both from outside the tree. It compiles examples in an empty
# folder with only the flags of pkg-config, against the shared library and the archive; one with <weft/weft.h> and only the include folder;
# with CMake, if it exists; and with both libraries in one process. A program and a library of different types must not link.
# MAKE, CC, V and B come from make. A sanitizer's variant is staged without others.
set -eu
here=$PWD root=$(realpath -m "$B")/stage
stage=$root/usr doc=$root/usr/share/doc/weft checks=0
rm -rf "$root"
case $V in ''|double) variants="plain double" ;; *) variants=$V ;; esac
umask 077                               # modes of installed files must not depend on it
for v in $variants; do
    $MAKE -s V="${v#plain}" install DESTDIR="$root" PREFIX=/usr LIBDIR=/usr/lib
done
umask 022
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export PKG_CONFIG_PATH="$stage/lib/pkgconfig" LD_LIBRARY_PATH="$stage/lib"
unset WEFT_BACKEND_PATH
says() { checks=$((checks + 1)); echo "  ok    $*"; }
fail() { echo "not so: $*"; exit 1; }
pc() { ${PKG_CONFIG:-pkg-config} --define-variable=prefix="$stage" --define-variable=libdir="$stage/lib" "$@"; }
flags="-std=c11 -D_GNU_SOURCE"; case $V in asan|dasan) flags="$flags -fsanitize=address,undefined" ;; esac

uses() {                                # NAME: weft or weft_f64
    mkdir "$1" && cd "$1" && cp "$doc/examples/first.c" .
    $CC $flags first.c -o shared $(pc --cflags --libs "$1")
    ./shared >shared.out
    $CC $flags first.c -o static $(pc --cflags --libs "$1_static")
    ! readelf -d static | grep -q "NEEDED.*\[libweft" || fail "first.c with $1_static needs a shared library of weft"
    ./static >static.out
    test -s shared.out
    cmp shared.out static.out
    readelf -d shared | grep -q "NEEDED.*\[lib$1\.so\." || fail "first.c does not need lib$1.so"
    readelf -d "$stage/lib/lib$1.so" | grep -q "SONAME.*lib$1\.so\.[0-9.]*\]" || fail "soname of lib$1.so"
    ! ldd "$stage/lib/lib$1.so" | grep -qE 'openblas|cuda|cublas' || fail "lib$1.so needs what is the plug-in's"
    readelf -d "$stage/lib/lib$1.so" | grep -q 'NEEDED.*\[libz\.so\.' || fail "lib$1.so does not need libz"
    pc --static --libs "$1" | grep -q -e '-lz\b' || fail "pkg-config does not say that the archive needs libz"
    cat shared.out
    cd ..
    says "first.c with $1, shared and static"
}
case $V in dasan) names=weft_f64 ;; asan|tsan) names=weft ;; *) names="weft weft_f64" ;; esac
for name in $names; do uses "$name"; done

# ---- includes: one folder, without core/, io/ ..
pc --cflags $names | tr ' ' '\n' | grep '^-I' | grep -vx -- "-I$stage/include" && fail "pkg-config has another folder"
[ "$(find "$stage/include" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort | xargs)" = "weft $(cd "$here" && ls weft*.h | sort | xargs)" ] || fail "the include folder has more than weft/ and weft*.h"
cat >both.c <<'END'
#include <weft/weft.h>
#include <weft.h>
#include "core/mine.h"
int main(void)
{
    weft *w = weft_open(NULL);
    double sum = weft_item(weft_sum_all(weft_full(w, 1.0 / 3, WEFT_SHAPE(MINE))));
    printf("%d %d %s\n", (int)sizeof(weft_real), sum > .999 && sum < 1.001 && weft_ok(w), weft_version());
    weft_close(w);
    return !(sum > .999 && sum < 1.001);
}
END
mkdir core && echo '#define MINE 3' >core/mine.h
for name in $names; do
    define=; bytes=4; case $name in *_f64) define=-DWEFT_DOUBLE; bytes=8 ;; esac
    $CC $flags $define -I. -I"$stage/include" both.c -o "both_$name" -L"$stage/lib" -l"$name"
    "./both_$name" | grep -q "^$bytes 1 0\.[0-9]" || fail "both.c with $name"
done
says "<weft/weft.h> with -I PREFIX/include alone, beside a core/ of the program's own"

# ---- the documents, and examples of several files from among them
for f in README.md docs/tutorial.md docs/design/tape.md examples/g2p.c examples/common/program.h; do test -f "$doc/$f" || fail "no $f in $doc"; done
for name in $names; do
    $CC $flags $(ls "$doc"/examples/g2p*.c) "$doc"/examples/common/*.c -o "g2p_$name" $(pc --cflags --libs "$name") -lm
done
says "documents and examples; g2p from the installed files"

# ---- the README's program, compiled by its command
cat >pkg-config <<END
#!/bin/sh
exec $(command -v "${PKG_CONFIG:-pkg-config}") --define-variable=prefix="$stage" --define-variable=libdir="$stage/lib" "\$@"
END
chmod +x pkg-config
case $V in ''|double)
    sed -n '/^```c$/,/^```$/p' "$doc/README.md" | sed '/^```/d' >net.c
    line=$(sed -n 's/^    \(cc net\.c \$(pkg-config .*\)/\1/p' "$doc/README.md")
    [ -n "$line" ] || fail "the README does not say how to compile with an installed weft"
    sed -n '/^```text/,/^```$/p' "$doc/README.md" | sed '/^```/d' >losses
    (PATH=$work:$PATH; eval "$line") && ./net >said && cmp said losses || fail "the README's program: $line"
    says "the README's program by the README's line" ;;
esac

# ---- Python by ctypes: the README's network has the same losses, and each struct from the headers has the compiler's layout
with_python() {                              # NAME PROGRAM: with the package of that name
    WEFT_PC=$1 PKG_CONFIG="$work/pkg-config" PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$doc/examples/python python3 "$2"
}
case $V in ''|double)
    if ! command -v python3 >/dev/null; then echo "skipped: no python3 here"
    elif ! python3 -c 'import pycparser' 2>/dev/null; then echo "skipped: python3 has no pycparser here"
    else
        for name in $names; do
            with_python "$name" "$doc/examples/python/lstm.py" >said || { cat said; fail "lstm.py with $name"; }
            cmp said losses || fail "lstm.py with $name has other losses than the README"
            with_python "$name" "$here/tests/packages/structs.py" >structs.c
            [ "$(grep -c size structs.c)" -gt 80 ] || fail "structs.py has found $(grep -c size structs.c) structs"
            $CC $flags -fsyntax-only $(pc --cflags "$name") structs.c || fail "structs in Python with $name"
        done
        says "Python by ctypes, $(grep -c size structs.c) structs from the headers"
    fi ;;
esac

# ---- a course outside the tree, on the installed library of doubles
case $V in ''|double|dasan)
    course() { PKG_CONFIG="$work/pkg-config" bash "$doc/lessons/lesson.sh" "$@"; }
    course start 2 "$work/course" >said || { cat said; fail "no lesson is begun"; }
    ! PKG_CONFIG="$work/pkg-config" $MAKE -s -C course 02 >said 2>&1 || fail "a start passes"
    grep -q '^lesson 02: hint: step leaves h at zero' said || { cat said; fail "a start gets no hint"; }
    ! ls "$doc"/lessons/*/solution.c "$doc"/lessons/*/check.c "$doc"/lessons/*/wrong.txt 2>/dev/null || fail "solutions are installed"
    cp "$here/lessons/02_rnn_by_hand/solution.c" course/02.c
    PKG_CONFIG="$work/pkg-config" $MAKE -s -C course 02 >said 2>&1 || { cat said; fail "a solution does not pass"; }
    cmp course/02.svg "$here/lessons/02_rnn_by_hand/picture.svg" || fail "another picture than the tree's"
    mkdir -p group/anna && cp course/02.c group/anna
    course grade group | grep -q '^grade: 1 students, 1 answers, 1 right' || fail "no class is graded"
    says "a lesson: begun, checked, drawn, graded" ;;
esac

# ---- mismatches
if [ "$names" = "weft weft_f64" ]; then
    mismatch() { ! $CC $flags $1 -I. -I"$stage/include" both.c -o none -L"$stage/lib" -l"$2" 2>said && grep -q "weft_open_$3" said; }
    mismatch -DWEFT_DOUBLE weft f64 || fail "a program of doubles links with libweft.so"
    mismatch "" weft_f64 f32 || fail "a program of floats links with libweft_f64.so"
    says "a program and a library that disagree about weft_real do not link"

    printf '#include <weft/weft.h>\nint bytes_%s(void);\nint bytes_%s(void)\n{\n    weft *w = weft_open(NULL);\n    weft_tensor *x = weft_zeros(w, WEFT_SHAPE(2));\n    weft_real out[2];\n    weft_read(x, out, sizeof out);\n    int bytes = weft_ok(w) ? (int)sizeof(weft_real) : 0;\n    weft_close(w);\n    return bytes;\n}\n' NAME NAME >part.c
    for name in $names; do
        sed "s/NAME/$name/g" part.c >"part_$name.c"
        $CC $flags -shared -fPIC "part_$name.c" -o "libpart_$name.so" $(pc --cflags --libs "$name")
    done
    echo 'int bytes_weft(void), bytes_weft_f64(void); int main(void) { return !(bytes_weft() == 4 && bytes_weft_f64() == 8); }' >whole.c
    $CC $flags whole.c -o whole -L. -lpart_weft -lpart_weft_f64 -Wl,-rpath,. -Wl,-rpath-link,"$stage/lib"
    ./whole || fail "both libraries in one process"
    says "both in one process, each called by its own part"

    # a plug-in of the other type is refused under any name, and each library searches for its own
    for name in $names; do
        f64=${name#weft}
        WEFT_DEVICE=cuda "./$name/shared" 2>&1 | grep -q "libweft_cuda$f64\.so\|NVIDIA" || fail "$name looks for another plug-in"
        mkdir -p "plug_$name"
        if [ -f "$here/$B/emu/libweft_cuda.so" ]; then
            of_b=; [ "$V" != double ] || of_b=_f64
            cp "$here/$B/emu/libweft_cuda.so" "plug_$name/libweft_cuda$f64.so"
            WEFT_DEVICE=cuda WEFT_BACKEND_PATH="$work/plug_$name" "./both_$name" >said 2>&1 || true
            if [ "$f64" = "$of_b" ]; then grep -q ' 1 0\.' said; else ! grep -q ' 1 0\.' said; fi || fail "the plug-in of $V in $name"
        fi
    done
    says "each looks for a plug-in of its own"
fi

# ---- CMake
if command -v cmake >/dev/null; then
    cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.10)
project(uses_weft C)
find_package(weft 0.2 CONFIG REQUIRED)
foreach(name ${NAMES})
    foreach(kind "" _static)
        add_executable(cmake_${name}${kind} both.c)
        target_include_directories(cmake_${name}${kind} PRIVATE .)
        target_link_libraries(cmake_${name}${kind} weft::${name}${kind})
    endforeach()
endforeach()
END
    cmake -S . -B by_cmake -DCMAKE_PREFIX_PATH="$stage" -DCMAKE_C_COMPILER="${CC%% *}" -DCMAKE_C_FLAGS="$flags" -DNAMES="$(echo $names | tr ' ' ';')" >cmake.log 2>&1 ||
        { cat cmake.log; fail "cmake finds no weft"; }
    cmake --build by_cmake >cmake.log 2>&1 || { cat cmake.log; fail "cmake builds nothing"; }
    for name in $names; do
        for kind in '' _static; do "by_cmake/cmake_$name$kind" | grep -q ' 1 0\.' || fail "cmake's program with $name$kind"; done
        readelf -d "by_cmake/cmake_$name" | grep -q "NEEDED.*\[lib$name\.so\." || fail "cmake's program does not need lib$name.so"
        ! readelf -d "by_cmake/cmake_${name}_static" | grep -q "NEEDED.*\[libweft" || fail "cmake's program with ${name}_static needs a shared library of weft"
    done
    sed -i 's/weft 0\.2/weft 0.1/' CMakeLists.txt
    ! cmake -S . -B older -DCMAKE_PREFIX_PATH="$stage" >cmake.log 2>&1 || fail "0.2 passes for 0.1"
    says "find_package(weft CONFIG), a shared and a static target for each library"
else
    echo "skipped: no cmake here"
fi
if [ -x "$stage/bin/weft" ]; then
    printf '3 1 2' | "$stage/bin/weft" plan --json - first_fit:capacity=3 | grep -q '"rows": 2' || fail "the command plans nothing"
    "$stage/bin/weft" plan --corpus equal:3,n=2 --json order:count=2 | grep -q '"tokens": 6' || fail "the command has no corpora"
    grep -q '^\.Nm weft' "$stage/share/man/man1/weft.1" || fail "no page of the manual"
    PATH=$stage/bin:$PATH bash -c '. "$1" && COMP_LINE="weft cor" COMP_POINT=8 && _weft && [ "${COMPREPLY[*]}" = corpora ]' - \
        "$stage/share/bash-completion/completions/weft" || fail "the completion that is installed completes nothing"
    says "weft plan, the command; its page of the manual, its completion"
    # the planner of docs/planners.md, with a record that is not static
    awk '/^## A planner of your own/ { on = 1 } /^```/ { block = 0 } on && block; on && /^```c/ { block = 1 } /^int main/ { on = 0 }' "$doc/docs/planners.md" |
        sed '/^int main/,$d' >snake.c
    # shellcheck disable=SC2046
    $CC $flags -shared -fPIC -o snake.so snake.c $(pc --cflags weft) || fail "the planner of docs/planners.md does not compile"
    printf '7 3 5 2 8 1 4 6' | "$stage/bin/weft" plan --json - ./snake.so:planner:ranks=4 | grep -q '"rows": \[\[\[0, 0, 7\], \[7, 0, 6\]\]' ||
        fail "the planner of docs/planners.md, as a shared object"
    says "the planner of docs/planners.md, against the installed headers"
fi

# ---- modes, places, the way back
[ -z "$(find "$stage" ! -type l ! -perm -o=r)" ] && [ -z "$(find "$stage" -type d ! -perm -o=x)" ] || fail "others cannot read what is installed under umask 077"
says "every user can read what is installed"
[ "$(${PKG_CONFIG:-pkg-config} --define-prefix --variable=libdir "${names%% *}")" = "$stage/lib" ] || fail "weft.pc does not move with its folder"
says "pkg-config --define-prefix"
cd "$here"
! $MAKE -s V="$V" install DESTDIR="$work" PREFIX="/a b" >/dev/null 2>&1 && [ ! -e "$work/a" ] || fail "a PREFIX with a space is not refused"
says "a PREFIX with a space is refused"
for d in include/weft lib/weft share/doc/weft share/doc/weft/docs bin; do echo mine >"$stage/$d/a_users_own"; done
$MAKE -s V="$V" uninstall DESTDIR="$root" PREFIX=/usr LIBDIR=/usr/lib
[ -z "$(find "$root" ! -type d ! -name a_users_own)" ] || { find "$root" ! -type d | head -n 5; fail "make uninstall leaves files"; }
[ "$(find "$root" -name a_users_own | wc -l)" = 5 ] || fail "make uninstall removes files that it did not install"
says "make uninstall removes all that was installed, and nothing else"
! $MAKE -s V="$V" uninstall DESTDIR="$root" PREFIX=/usr LIBDIR=/usr/lib 2>/dev/null || fail "a second make uninstall finds something"
mkdir "$work/stage" && $MAKE -s V="$V" install DESTDIR="$work/stage" PREFIX=rel LIBDIR=rel/lib DOCDIR=rel/doc >/dev/null
[ -e "$work/stage$here/rel/lib/libweft.a" ] || [ -e "$work/stage$here/rel/lib/libweft_f64.a" ] || fail "relative folders are not those of the current folder"
[ "$(find "$work" -maxdepth 1 -name 'stage*' | wc -l)" = 1 ] && [ ! -e rel ] || fail "an install leaves its stage"
says "relative folders become absolute"
$MAKE -s V="$V" uninstall DESTDIR="$work/stage" PREFIX=rel LIBDIR=rel/lib DOCDIR=rel/doc
[ -z "$(find "$work/stage" ! -type d)" ] || fail "make uninstall of one library leaves files"
says "make uninstall of one library"
echo "$checks of $checks checks of what is installed hold"
