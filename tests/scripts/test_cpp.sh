#!/usr/bin/env bash
# test_cpp.sh    the public headers, examples/net.cpp and tests/api/cpp17.cpp under each C++ compiler that is here, without a warning; the program runs. A
# header and a library that disagree about weft_real do not link, and dlsym finds weft_open. B is the build.
set -u
. "$(dirname "$0")/script.sh"
sanitize=; case ${V:-} in asan|dasan) sanitize=-fsanitize=address,undefined ;; esac
real= other=-DWEFT_DOUBLE missing=weft_open_f64; case ${V:-} in double|dasan) real=-DWEFT_DOUBLE other= missing=weft_open_f32 ;; esac
compilers="g++ clang++"                 # objects of a sanitizer are linked by the compiler that made them
if [ -n "$sanitize" ]; then case ${CC:-cc} in *clang*) compilers=clang++ ;; *) compilers=g++ ;; esac; fi
libraries="$(${PKG_CONFIG:-pkg-config} --libs hdf5 zlib) -ldl -lm -lpthread"
warn="-Wall -Wextra -Wpedantic -Wshadow -Werror"

same_losses() { sed -n '/^```text/,/^```$/p' "$root/README.md" | sed '/^```/d' >losses; "$1" >printed && cmp printed losses; }

tried=0
for cxx in $compilers; do
    command -v "$cxx" >/dev/null || { echo "skipped: no $cxx here"; continue; }
    tried=$((tried + 1))
    # shellcheck disable=SC2086
    check "$cxx takes the program" "$cxx" -std=c++17 $warn $sanitize $real -I"$root" -o "program.$cxx" "$root/tests/api/cpp17.cpp" "$build/libweft.a" $libraries
    check "what $cxx has made runs" exits 0 'checks in C++ hold' "./program.$cxx"
    # shellcheck disable=SC2086
    check "$cxx takes the README's network in C++" "$cxx" -std=c++17 $warn $sanitize $real -I"$root" -o "net.$cxx" "$root/examples/net.cpp" "$build/libweft.a" $libraries
    check "which has the losses of the README" same_losses "./net.$cxx"
    for h in "$root"/weft*.h "$root"/*/api_*.h "$root"/*/*/api_*.h; do
        [ -f "$h" ] || continue
        printf '#include "%s"\n' "$h" >one.cpp
        # shellcheck disable=SC2086
        check "$cxx takes ${h#"$root"/} alone" "$cxx" -std=c++17 $warn $real -fsyntax-only one.cpp
    done
done
check "there is a compiler" test $tried -gt 0

cat >opens.c <<'END'
#include "weft.h"
int main(void)
{
    weft *w = weft_open(NULL);
    int failed = !weft_ok(w);
    weft_close(w);
    return failed;
}
END
cat >finds.c <<'END'
#include <dlfcn.h>
#include <stdio.h>
int main(int n, char **path)
{
    void *library = n > 1 ? dlopen(path[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    void *open = library ? dlsym(library, "weft_open") : NULL, *real = library ? dlsym(library, path[2]) : NULL;
    if (!open || open != real)
        printf("%s: %s\n", path[1], library ? "no weft_open" : dlerror());
    return !open || open != real;
}
END
present=weft_open_f32; [ -z "$real" ] || present=weft_open_f64
# shellcheck disable=SC2086
links() { ${CC:-cc} -std=c11 $sanitize $1 -I"$root" -o opens opens.c "${@:2}" $libraries; }     # DEFINE LIBRARY...
check "a program with the archive" links "$real" "$build/libweft.a"
check "a program with the shared library" links "$real" -L"$build" -lweft
check "a member of that name is no trouble" eval 'echo "#include \"weft.h\"
struct door { int weft_open; }; int is(struct door d) { return d.weft_open; }" >member.c && ${CC:-cc} -std=c11 -I"$root" -fsyntax-only member.c'
disagrees() { ! links "$@" 2>output && grep -q "undefined reference.*$missing\|undefined symbol.*$missing" output; }
check "a header that disagrees with the archive does not link" disagrees "$other" "$build/libweft.a"
check "nor one that disagrees with the shared library" disagrees "$other" -L"$build" -lweft
if [ -z "$sanitize" ]; then
    check "a program that finds it" ${CC:-cc} -o finds finds.c -ldl
    check "dlsym finds weft_open" ./finds "$build/libweft.so" $present
fi
finish "C++ and of linking"
