#!/bin/sh
# deps.sh GROUP..            installs the missing packages of groups (build, test, lint, fuzz, lab, site, parallel, deb, abi, distros, ci) if that
#                            is allowed. Otherwise it prints the command for it and fails.
# deps.sh dictionary FILE    extracts the dictionary from Debian's package festlex-cmu without installing it.
# deps.sh aeon DIR           extracts data sets and published accuracies from PyPI's package aeon without installing it.
# deps.sh crfsuite DIR       makes a virtual environment of Python with PyPI's package python-crfsuite.
# It tests each tool itself instead of the package manager, so programs built from source count also.
set -u
cc=${CC:-cc}; command -v "${cc%% *}" >/dev/null 2>&1 || cc=gcc
missing=
need() { p=$1; shift; "$@" >/dev/null 2>&1 || missing="$missing $p"; }
header() { command -v "${cc%% *}" >/dev/null 2>&1 || return 0; echo "#include <$1>" | $cc -fsyntax-only -x c - ; }
imports() { python3 -c "import $1" || /usr/bin/python3 -c "import $1"; }
module() { ${PKG_CONFIG:-pkg-config} --exists "$1"; }
fuzzes() { t=$(mktemp) && echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return d && n > 9; }' | clang -fsanitize=fuzzer,address -x c -o "$t" -; r=$?; rm -f "$t"; return $r; }
blas() { library libopenblas.so || module openblas; }
library() { { ldconfig -p || /sbin/ldconfig -p; } 2>/dev/null | grep -q "$1"; }

wants() {
    case $1 in
    build) need gcc command -v "${cc%% *}"; need pkgconf command -v "${PKG_CONFIG:-pkg-config}"; need libhdf5-dev module hdf5; need zlib1g-dev module zlib; need libjansson-dev header jansson.h; need libopenblas-dev blas ;;
    test)  need libcriterion-dev header criterion/criterion.h; need util-linux command -v flock; need g++ command -v "${CXX:-g++}"; need python3-pycparser imports pycparser ;;
    lint)  need universal-ctags ctags --output-format=json /dev/null; need binutils command -v nm ;;
    fuzz)  need clang command -v clang; need libclang-rt-dev fuzzes ;;
    lab)   need fortunes test -e /usr/share/games/fortunes/art; need fortunes-min test -e /usr/share/games/fortunes/literature ;;
    site)  need python3-markdown imports markdown; need python3-pygments imports pygments ;;
    parallel) need openmpi-bin command -v mpirun.openmpi; need libopenmpi-dev command -v mpicc.openmpi; need mpich command -v mpiexec.hydra; need libmpich-dev command -v mpicc.mpich ;;
    deb)   need dpkg-dev command -v dpkg-buildpackage; need debhelper command -v dh; need lintian command -v lintian; need fakeroot command -v fakeroot ;;
    abi)   need abigail-tools command -v abidiff ;;
    distros) need mmdebstrap command -v mmdebstrap ;;
    ci)    need openmpi-bin command -v mpirun.openmpi; need libopenmpi-dev command -v mpicc.openmpi; wants site; wants build; wants test; wants lint; wants fuzz; need valgrind command -v valgrind; need python3 command -v python3
           need clang-tidy command -v clang-tidy; need clang-format command -v git-clang-format; need mandoc command -v mandoc; need man-db command -v man; need libxml2-utils command -v xmllint; need cmake command -v cmake; need shellcheck command -v shellcheck
           wants lab; need festlex-cmu test -e /usr/share/festival/dicts/cmu; need wamerican test -e /usr/share/dict/words; need unicode-data test -e /usr/share/unicode; need bowtie2-examples test -d /usr/share/doc/bowtie2 ;;
    *)     echo "deps.sh: no such group: $1" >&2; exit 2 ;;
    esac
}

# ---- package managers ----
# A package has the name of Debian's. Its other names are those of dnf (Fedora), apk (Alpine), pacman (Arch) and brew; -: no package.
names() {
    cat <<'END'
gcc                 gcc                  gcc,musl-dev  gcc              gcc
pkgconf             pkgconf-pkg-config   pkgconf       pkgconf          pkgconf
libhdf5-dev         hdf5-devel           hdf5-dev      hdf5             hdf5
zlib1g-dev          zlib-devel           zlib-dev      zlib             zlib
libjansson-dev      jansson-devel        jansson-dev   jansson          jansson
libopenblas-dev     openblas-devel       openblas-dev  openblas         openblas
libcriterion-dev    -                    -             criterion        criterion
util-linux          util-linux           flock         util-linux       flock
g++                 gcc-c++              g++           gcc              gcc
python3-pycparser   python3-pycparser    py3-cparser   python-pycparser pycparser
universal-ctags     ctags                ctags         ctags            universal-ctags
binutils            binutils             binutils      binutils         binutils
clang               clang                clang         clang            llvm
libclang-rt-dev     compiler-rt          compiler-rt   compiler-rt      llvm
python3-markdown    python3-markdown     py3-markdown  python-markdown  -
python3-pygments    python3-pygments     py3-pygments  python-pygments  pygments
END
}
for manager in apt-get dnf apk pacman brew none; do if command -v $manager >/dev/null 2>&1; then break; fi; done
refresh='' add=''
case $manager in
apt-get) column=1 refresh="apt-get update" add="apt-get install -y" ;;
dnf)     column=2 add="dnf install -y" ;;
apk)     column=3 refresh="apk update" add="apk add" ;;
pacman)  column=4 add="pacman -S --needed --noconfirm" ;;
brew)    column=5 add="brew install" ;;
none)    column=1 ;;
esac
sudo="sudo "
case $manager in brew) sudo='' ;; esac
# Sets packages to the manager's names of the missing packages, and unpackaged to those without a name.
translate() {
    packages='' unpackaged=''
    for p in $missing; do
        name=$p
        [ $column = 1 ] || name=$(names | awk -v p="$p" -v c=$column '$1 == p { print $c }')
        case ${name:--} in -) unpackaged="$unpackaged $p" ;; *) packages="$packages $(echo "$name" | tr , ' ')" ;; esac
    done
    packages=$(echo "$packages" | tr ' ' '\n' | awk 'NF && !seen[$0]++' | tr '\n' ' ') packages=${packages% }
}
# Homebrew installs as a user, the others as root or by sudo without a password.
as_root() { if [ "$(id -u)" = 0 ] || [ -z "$sudo" ]; then "$@"; else sudo -n "$@"; fi; }
allowed() {
    case $manager in
    none) false ;;
    brew) [ "$(id -u)" != 0 ] ;;
    *)    [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null ;;
    esac
}
refuse() {
    if [ $manager = none ]; then
        echo "weft: missing, by the names of Debian's packages:$missing. This system has none of apt-get, dnf, apk, pacman and brew: please install the same libraries and programs by its own packages (headers of HDF5, zlib, jansson, OpenBLAS; Criterion for tests; pkg-config), then run make again" >&2
        exit 1
    fi
    [ -z "$packages" ] || echo "weft: missing: $packages. Please run: ${refresh:+$sudo$refresh && }$sudo$add $packages" >&2
    [ -z "$unpackaged" ] || echo "weft: missing, and not packaged for $manager:$unpackaged (Debian's names). Please build it from source" >&2
    exit 1
}
get() {
    case $manager in apt-get) set -- --no-install-recommends "$@" ;; esac
    as_root env DEBIAN_FRONTEND=noninteractive $add "$@" </dev/null
}

install_missing() {
    [ -z "$missing" ] && return
    translate
    allowed || refuse
    if [ -n "$packages" ]; then
        echo "weft: installing $packages"
        get $packages >/dev/null 2>&1 || { { [ -z "$refresh" ] || as_root $refresh </dev/null; } && get $packages; } || refuse
        packages=''
    fi
    [ -z "$unpackaged" ] || refuse
}

dictionary() {                          # FILE
    [ -s "$1" ] && return
    own="make demo DICT=PATH, with cmudict of Carnegie Mellon University in any of its versions (docs/g2p.md)"
    d=$(mktemp -d) || exit 1
    trap 'rm -rf "$d"' EXIT
    here=$(pwd) file=usr/share/festival/dicts/cmu/cmudict-0.4.out from=$d
    if [ -s "/$file" ]; then from=
    elif [ $manager != apt-get ]; then echo "weft: the dictionary is a package of Debian only. Run: $own" >&2; exit 1
    else
        fail="weft: cannot fetch the dictionary, Debian's package festlex-cmu. Run: sudo apt-get update, then make demo again; or $own"
        cd "$d" || exit 1
        apt-get -q -o APT::Sandbox::User=root download festlex-cmu >/dev/null 2>&1 ||
            { allowed && as_root apt-get -q update </dev/null && apt-get -q -o APT::Sandbox::User=root download festlex-cmu; } || { echo "$fail" >&2; exit 1; }
        dpkg-deb -x festlex-cmu_*.deb . && cd "$here" || exit 1
    fi
    mkdir -p "$(dirname "$1")" && cp "$from/$file" "$1.part" && mv "$1.part" "$1" || { echo "weft: no dictionary in festlex-cmu" >&2; exit 1; }
    echo "weft: the dictionary is cmudict of Carnegie Mellon University; docs/g2p.md names its licence"
}

aeon() {                                # DIR
    [ -d "$1/data" ] && return
    d=$(mktemp -d) || exit 1
    trap 'rm -rf "$d"' EXIT
    { python3 -m venv "$d/venv" && "$d/venv/bin/pip" -q download --no-deps -d "$d" aeon==1.6.0 && python3 -m zipfile -e "$d"/aeon-*.whl "$d/x"; } >"$d/log" 2>&1 || {
        tail -n 3 "$d/log" >&2
        echo "weft: cannot fetch PyPI's package aeon (6 MB). With python3-venv run make classify again, or extract the wheel and give AEON=DIR" >&2; exit 1; }
    mkdir -p "$1" && mv "$d/x/aeon/testing/example_results_files/classification/accuracy" "$1/" && mv "$d/x/aeon/datasets/data" "$1/" || exit 1
    echo "weft: the data sets are of the archives UCR and UEA, by way of PyPI's package aeon"
}

crfsuite() {                            # DIR
    "$1/bin/python" -c 'import pycrfsuite' 2>/dev/null && return
    mkdir -p "$1" && { python3 -m venv "$1" && "$1/bin/pip" -q install python-crfsuite==0.9.12; } >"$1/log" 2>&1 || {
        tail -n 3 "$1/log" >&2
        echo "weft: cannot install PyPI's package python-crfsuite. With python3-venv run make tagger again, or give CRFSUITE=DIR, a virtual environment that has it" >&2; exit 1; }
}

if [ "${1:-}" = dictionary ]; then dictionary "$2"; exit; fi
if [ "${1:-}" = aeon ]; then aeon "$2"; exit; fi
if [ "${1:-}" = crfsuite ]; then crfsuite "$2"; exit; fi
if [ "${WEFT_DEPS_LOCKED:-}" != 1 ] && command -v flock >/dev/null 2>&1; then      # if two makes run together, one installs
    WEFT_DEPS_LOCKED=1 exec flock "${TMPDIR:-/tmp}/weft-deps.$(id -u)" sh "$0" "$@"
fi
for group; do wants "$group"; done
install_missing
