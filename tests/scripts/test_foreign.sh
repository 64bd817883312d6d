#!/usr/bin/env bash
# test_foreign.sh    tests that weft loads libweft_cuda.so only from the library's folder, its subfolder weft/, or an absolute path. A parent
# folder, the working directory and argv[0] cannot supply another, and neither can the environment of a setuid program.
set -u
. "$(dirname "$0")/script.sh"
unset WEFT_BACKEND_PATH WEFT_GEMM WEFT_DEVICE WEFT_LOG

cat >foreign.c <<'END'
#include <stdio.h>
__attribute__((constructor)) static void run(void) { printf("foreign code runs\n"); fflush(stdout); }
END
cat >driver.c <<'END'
int cuInit(unsigned flags) { return (int)flags; }
int cuDeviceGetCount(int *n) { return *n = 1, 0; }
int cuGetErrorString(int error, const char **text) { return *text = "", error; }
END
cat >opens.c <<'END'
#include <unistd.h>
#include "weft.h"
int main(int n, char **folder)
{
    if (n > 1 && chdir(folder[1]))
        return 2;
    weft *w = weft_open(&(weft_opts){ .device = n > 2 ? WEFT_CUDA : WEFT_BEST, .threads = 1 });
    printf("as %d on %s: %s\n", (int)geteuid(), weft_device_name(w), weft_error_message(w));
    weft_close(w);
    return 0;
}
END
case ${V:-} in asan|dasan) flags=-fsanitize=address,undefined ;; *) flags= ;; esac
plugin=libweft_cuda.so
case ${V:-} in double|dasan) flags="$flags -DWEFT_DOUBLE" plugin=libweft_cuda_f64.so ;; esac
mkdir driver                            # a driver that reports a GPU; without it no plug-in is opened
libraries="$(${PKG_CONFIG:-pkg-config} --libs hdf5 zlib) -ldl -lm -lpthread -Wl,--disable-new-dtags,-rpath,$dir/driver"
compile() { ${CC:-cc} -std=c11 $flags -I"$root" -o "$@" $libraries; }
check "a foreign library" ${CC:-cc} -shared -fPIC -o foreign.so foreign.c
check "a driver" ${CC:-cc} -shared -fPIC -o driver/libcuda.so.1 driver.c
check "a program with the archive" compile archive opens.c "$build/libweft.a"
check "a program with the shared library" compile shared opens.c -L"$build" -lweft

place() { mkdir -p "$(dirname "$1")" && cp "$dir/foreign.so" "$1"; }         # FILE
runs() { "$@" >output 2>&1; grep -q 'foreign code runs' output && grep -q '^as ' output; }
stays_out() { "$@" >output 2>&1; ! grep -q 'foreign code runs' output && grep -q '^as ' output; }
as_if() { (exec -a "$1" "${@:2}"); }                                         # ARGV0 COMMAND...
here() { (cd "$1" && "${@:2}"); }                                            # FOLDER COMMAND...

# ---- a program linked with the archive
mkdir -p a/sub elsewhere && cp archive a/sub/opens
place a/$plugin
check "not from the folder above" stays_out a/sub/opens
rm a/$plugin
place elsewhere/sub/$plugin
place elsewhere/$plugin
check "not from the working directory" stays_out here a ./sub/opens "$dir/elsewhere"
check "not from a folder that argv[0] names" stays_out as_if "$dir/elsewhere/sub/x" a/sub/opens
check "nor from one that it names by halves" stays_out as_if sub/x a/sub/opens "$dir/elsewhere"
check "not by the loader's search" stays_out env LD_LIBRARY_PATH="$dir/elsewhere" a/sub/opens
check "not by a relative path" stays_out env WEFT_BACKEND_PATH=elsewhere a/sub/opens
check "a relative path is an error" exits 0 'WEFT_BACKEND_PATH=elsewhere: expected an absolute path' env WEFT_BACKEND_PATH=elsewhere a/sub/opens . cuda
check "no relative product either" stays_out env WEFT_GEMM=elsewhere/$plugin a/sub/opens
check "nor one by its name alone" stays_out env WEFT_GEMM=$plugin LD_LIBRARY_PATH="$dir/elsewhere" a/sub/opens
check "a bare name is also an error" exits 0 "WEFT_GEMM=$plugin: expected own, openblas or an absolute path" env WEFT_GEMM=$plugin a/sub/opens
check "the log lists the folders" exits 0 "there is no $plugin in $dir/a/sub and $dir/a/sub/weft; WEFT_BACKEND_PATH" env WEFT_LOG=1 a/sub/opens
check "and so does the error with WEFT_CUDA" exits 0 "there is no $plugin in $dir/a/sub and" a/sub/opens . cuda
check "without a log no message" exits 0 '^as [0-9]* on [a-z0-9-]*: $' a/sub/opens
check "by an absolute path" runs env WEFT_BACKEND_PATH="$dir/elsewhere" a/sub/opens
check "a product by an absolute path" runs env WEFT_GEMM="$dir/elsewhere/$plugin" a/sub/opens
check "a library that is not a back end" exits 0 "$plugin has no weft_backend_open_v1" env WEFT_BACKEND_PATH="$dir/elsewhere" a/sub/opens . cuda
place a/sub/$plugin
check "from its own folder" runs a/sub/opens
ln -s a/sub/opens link
check "the folder is that of the file, not of a link to it" runs ./link
rm a/sub/$plugin
place a/sub/weft/$plugin
check "and from weft below" runs a/sub/opens

# ---- the shared library
soname=$(readelf -d shared | sed -n 's/.*NEEDED.*\[\(libweft[^]]*\)\].*/\1/p')
mkdir -p b/lib && cp "$build/libweft.so" "b/lib/$soname" && ln -s lib b/linked
place b/$plugin
check "not from the folder above the library" stays_out env LD_LIBRARY_PATH="$dir/b/lib" ./shared
place lib/$plugin
place elsewhere/lib/$plugin
check "nor one of the name by which it was found" stays_out here b env LD_LIBRARY_PATH=lib ../shared "$dir/elsewhere"
place b/lib/$plugin
check "from the library's own folder" runs env LD_LIBRARY_PATH="$dir/b/linked" ./shared

# ---- a setuid program called by an unprivileged user, in a folder closed to others; needs root
nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
others=$(env -u TMPDIR mktemp -d) && trap 'rm -rf "$dir" "$others"' EXIT
cp archive "$others/opens" && cp foreign.so "$others/libfree.so" && mkdir "$others/evil" && cp foreign.so "$others/evil/$plugin"
if [ -z "$flags" ] && [ "$(id -u)" = 0 ] && chmod -R a+rX "$others" && chmod 4755 "$others/opens" && nobody "$others/opens" 2>&1 | grep -q '^as 0 '; then
    check "setuid: WEFT_GEMM is ignored" stays_out nobody env WEFT_GEMM="$others/libfree.so" "$others/opens"
    check "setuid: WEFT_BACKEND_PATH is ignored" stays_out nobody env WEFT_BACKEND_PATH="$others/evil" "$others/opens"
    check "setuid: argv[0] is ignored" stays_out nobody bash -c "exec -a $others/evil/x $others/opens"
    check "setuid: WEFT_THREADS and WEFT_LOG are ignored" exits 0 '^as 0 on [a-z0-9-]*: $' nobody env WEFT_THREADS=nonsense WEFT_LOG=2 "$others/opens"
    chmod 755 "$others/opens"
    check "without setuid they are used" runs nobody env WEFT_BACKEND_PATH="$others/evil" "$others/opens"
else
    echo "skipped: setuid programs, which take root and a file system that knows them"
fi

finish "loading of plug-ins"
