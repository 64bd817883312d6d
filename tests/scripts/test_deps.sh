#!/usr/bin/env bash
# test_deps.sh    tests/deps.sh on systems with only one package manager: a PATH with few programs, a fake manager that writes its
# arguments to the file `called`, and a fake id. Every compiler check fails, so the packages of headers are missing.
set -u
. "$(dirname "$0")/script.sh"
mkdir tools
for t in sh env awk tr cat mktemp mkdir rm sed grep cp mv dirname; do ln -s "$(command -v $t)" tools/$t; done
fake() { printf '#!/bin/sh\n%s\n' "$2" >"$1"; chmod +x "$1"; }
fake tools/gcc 'exit 1'
fake tools/id 'echo ${FAKE_ID}'
for m in apt-get dnf apk pacman brew; do
    mkdir $m
    fake $m/$m "echo $m \"\$@\" >>'$dir/called'; case \$1 in update) exit 0 ;; esac; [ -z \"\${BROKEN:-}\" ]"
done
deps() {                                # MANAGER ID GROUP...
    local manager=$1 id=$2; shift 2
    rm -f called
    (cd / && env -i PATH="$dir/$manager:$dir/tools" FAKE_ID="$id" BROKEN="${BROKEN:-}" CC=gcc /bin/sh "$root/tests/deps.sh" "$@")
}
says() { exits 1 "$1" deps "${@:2}"; }  # PATTERN MANAGER ID GROUP...: fails with that line and calls no package manager
calls() { local line=$1; shift; deps "$@" && has "$(cat called)" "$line"; }

# manager, user who installs, user who does not, command of the line, packages of build in part, package of lint
while read -r manager may may_not line build lint; do
    build=${build//,/ } line=${line//_/ }
    check "$manager prints its line" says "Please run: $line .*$build" $manager $may_not build
    check "and calls no package manager" eval '! [ -e called ]'
    check "$manager installs" calls "$lint binutils" $manager $may lint
    check "$manager fails" eval 'BROKEN=1 says "Please run: $line $lint" $manager $may lint'
done <<'END_OF_TABLE'
apt-get 0 1000 sudo_apt-get_update_&&_sudo_apt-get_install_-y pkgconf,libhdf5-dev,zlib1g-dev,libjansson-dev universal-ctags
dnf 0 1000 sudo_dnf_install_-y pkgconf-pkg-config,hdf5-devel,zlib-devel,jansson-devel ctags
apk 0 1000 sudo_apk_update_&&_sudo_apk_add pkgconf,hdf5-dev,zlib-dev,jansson-dev ctags
pacman 0 1000 sudo_pacman_-S_--needed_--noconfirm pkgconf,hdf5,zlib,jansson ctags
brew 1000 0 brew_install pkgconf,hdf5,zlib,jansson universal-ctags
END_OF_TABLE
check "a second try follows an update" eval 'BROKEN=1 deps apt-get 0 lint; is "$(grep -c . called),$(sed -n 2p called)" "3,apt-get update"'
check "a package that no manager has" says "not packaged for dnf: libcriterion-dev" dnf 0 test
check "a package of pacman" calls criterion pacman 0 test
check "no manager" says "Debian's packages: pkgconf libhdf5-dev.*none of apt-get, dnf, apk, pacman and brew" none 0 build
check "a second name of one package" eval 'deps brew 1000 fuzz && is "$(grep -o llvm called | wc -l)" 1'
check "an unknown group" exits 2 "no such group: nonsense" deps apt-get 0 nonsense
[ -e /usr/share/festival/dicts/cmu/cmudict-0.4.out ] ||
    check "no dictionary elsewhere" says "Run: make demo DICT=PATH" dnf 0 dictionary "$dir/dict"
finish "tests/deps.sh"
