#!/usr/bin/env bash
# test_examples.sh    the small examples run, say what they should, and leave what they should. B is the build.
set -u
examples=$(realpath "${B:-build}")/examples
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
good=0 all=0
check() {                               # WHAT COMMAND...
    local what=$1; shift
    all=$((all + 1))
    if "$@" >said 2>&1; then good=$((good + 1)); else echo "not so: $what: $*"; cat said; fi
}

check "first" "$examples/first"
check "ragged" eval '"$examples/ragged" >out'
check "and there is no difference" grep -q 'padded: the same bits$' out
check "seq2seq" eval '"$examples/seq2seq" a.h5 >out'
check "and it learns" awk '{ loss = $2 } END { exit !(NR == 10 && loss < 0.5) }' out
cp a.h5 b.h5
check "seq2seq once more has nothing to do" "$examples/seq2seq" a.h5
check "and changes nothing" cmp a.h5 b.h5
check "seq2seq will not have another's file" eval '! "$examples/seq2seq" /dev/null'

echo "$good of $all checks of the examples hold"
[ "$good" = "$all" ]
