#!/bin/sh
# deps.sh build|test|lint|lab|site|parallel|ci ..    installs missing Debian packages if that is allowed. Otherwise it prints the command for it
#                                    and fails.
# deps.sh dictionary FILE            extracts the dictionary from the package festlex-cmu without installing it.
# It tests each tool itself instead of the package manager, so programs built from source count also.
set -u
cc=${CC:-cc}; command -v "${cc%% *}" >/dev/null 2>&1 || cc=gcc
missing=
need() { p=$1; shift; "$@" >/dev/null 2>&1 || missing="$missing $p"; }
header() { command -v "${cc%% *}" >/dev/null 2>&1 || return 0; echo "#include <$1>" | $cc -fsyntax-only -x c - ; }
imports() { python3 -c "import $1" || /usr/bin/python3 -c "import $1"; }
module() { ${PKG_CONFIG:-pkg-config} --exists "$1"; }
fuzzes() { t=$(mktemp) && echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return d && n > 9; }' | clang -fsanitize=fuzzer,address -x c -o "$t" -; r=$?; rm -f "$t"; return $r; }
library() { { ldconfig -p || /sbin/ldconfig -p; } 2>/dev/null | grep -q "$1"; }

wants() {
    case $1 in
    build) need gcc command -v "${cc%% *}"; need pkgconf command -v "${PKG_CONFIG:-pkg-config}"; need libhdf5-dev module hdf5; need zlib1g-dev module zlib; need libjansson-dev header jansson.h; need libopenblas-dev library libopenblas.so ;;
    test)  need libcriterion-dev header criterion/criterion.h; need util-linux command -v flock; need g++ command -v "${CXX:-g++}"; need python3-pycparser imports pycparser ;;
    lint)  need universal-ctags ctags --output-format=json /dev/null; need binutils command -v nm ;;
    fuzz)  need clang command -v clang; need libclang-rt-dev fuzzes ;;
    lab)   need fortunes test -e /usr/share/games/fortunes/art; need fortunes-min test -e /usr/share/games/fortunes/literature ;;
    site)  need python3-markdown imports markdown; need python3-pygments imports pygments ;;
    parallel) need openmpi-bin command -v mpirun.openmpi; need libopenmpi-dev command -v mpicc.openmpi; need mpich command -v mpiexec.hydra; need libmpich-dev command -v mpicc.mpich ;;
    ci)    need openmpi-bin command -v mpirun.openmpi; need libopenmpi-dev command -v mpicc.openmpi; wants site; wants build; wants test; wants lint; wants fuzz; need valgrind command -v valgrind; need python3 command -v python3
           need clang-tidy command -v clang-tidy; need clang-format command -v git-clang-format; need mandoc command -v mandoc; need man-db command -v man; need libxml2-utils command -v xmllint; need cmake command -v cmake; need shellcheck command -v shellcheck
           wants lab; need festlex-cmu test -e /usr/share/festival/dicts/cmu; need wamerican test -e /usr/share/dict/words; need unicode-data test -e /usr/share/unicode; need bowtie2-examples test -d /usr/share/doc/bowtie2 ;;
    *)     echo "deps.sh: no such group: $1" >&2; exit 2 ;;
    esac
}

# As root, or with sudo without a password, prints the prefix for apt-get. Otherwise prints a line for the user.
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }
allowed() { command -v apt-get >/dev/null 2>&1 && { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }; }
refuse() {
    if command -v apt-get >/dev/null 2>&1; then
        echo "weft: missing:$missing. Please run: sudo apt-get update && sudo apt-get install -y$missing" >&2
    else
        echo "weft: missing, by the names of Debian's packages:$missing. This system has no apt-get: please install the same libraries and programs by its own packages (headers of HDF5, zlib, jansson, OpenBLAS; Criterion for tests; pkg-config), then run make again" >&2
    fi
    exit 1
}
get() { as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" </dev/null; }

install_missing() {
    [ -z "$missing" ] && return
    allowed || refuse
    echo "weft: installing$missing"
    get $missing >/dev/null 2>&1 || { as_root apt-get -q update </dev/null && get $missing; } || refuse
}

dictionary() {                          # FILE
    [ -s "$1" ] && return
    fail="weft: cannot fetch the dictionary, Debian's package festlex-cmu. Run: sudo apt-get update, then make demo again; or put cmudict-0.4.out of any festlex-cmu at $1"
    d=$(mktemp -d) || exit 1
    trap 'rm -rf "$d"' EXIT
    here=$(pwd)
    cd "$d" || exit 1
    apt-get -q -o APT::Sandbox::User=root download festlex-cmu >/dev/null 2>&1 ||
        { allowed && as_root apt-get -q update </dev/null && apt-get -q -o APT::Sandbox::User=root download festlex-cmu; } || { echo "$fail" >&2; exit 1; }
    dpkg-deb -x festlex-cmu_*.deb . && cd "$here" && mkdir -p "$(dirname "$1")" &&
        cp "$d"/usr/share/festival/dicts/cmu/cmudict-0.4.out "$1.part" && mv "$1.part" "$1" || { echo "weft: no dictionary in festlex-cmu" >&2; exit 1; }
}

if [ "${1:-}" = dictionary ]; then dictionary "$2"; exit; fi
if [ "${WEFT_DEPS_LOCKED:-}" != 1 ] && command -v flock >/dev/null 2>&1; then      # if two makes run together, one installs
    WEFT_DEPS_LOCKED=1 exec flock "${TMPDIR:-/tmp}/weft-deps.$(id -u)" sh "$0" "$@"
fi
for group; do wants "$group"; done
install_missing
