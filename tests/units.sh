# shellcheck shell=bash
# units.sh, to be sourced from the root of the tree. A unit is one file tests/ROOM/test_NAME.c: its tests are part of the program
# $B/tests/test_ROOM, in suites that no other file uses. A path with a / is a program that is not part of a room.
source_of() { echo tests/*/"$1.c"; }                                            # UNIT
room_of() { local f; f=$(source_of "$1"); f=${f#tests/}; echo "${f%%/*}"; }
program_of() { case $1 in */*) echo "$1" ;; *) echo "$B/tests/test_$(room_of "$1")" ;; esac; }
object_of() { local f; f=$(source_of "$1"); echo "$B/${f%.c}.o"; }
suites_of() { sed -nE 's/^([A-Z]+_)?T(est|EST)\(([a-z_0-9]+),.*/\3/p; s/^KERNEL_TEST\(.*/kernels/p' "$(source_of "$1")" | sort -u; }
tests_of() {                            # UNIT: the names of its tests
    local suites=
    case $1 in */*) ;; *) suites=" $(suites_of "$1" | paste -sd' ') " ;; esac
    "$(program_of "$1")" --list 2>/dev/null </dev/null |
        awk -v suites="$suites" '$1 ~ /──$/ { if (mine) print $2; next } { sub(/:.*/, ""); mine = suites == "" || index(suites, " " $0 " ") }'
}
filter_of() {                           # UNIT [PATTERN of a test's name]: for --filter
    case $1 in */*) echo "*/${2:-*}" ;; *) echo "@($(suites_of "$1" | paste -sd'|'))/${2:-*}" ;; esac
}
uses_tables() { case $1 in */*) false ;; *) grep -q WEFT_TABLES "$(object_of "$1")" ;; esac; }     # does it go through every kernel table?
units_of() {                            # PROGRAM: the units of a room, or the program itself
    local room=${1##*/test_} f
    if ! compgen -G "tests/$room/test_*.c" >/dev/null; then echo "$1"; return; fi
    for f in "tests/$room"/test_*.c; do f=${f##*/}; echo "${f%.c}"; done
}
