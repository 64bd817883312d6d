#!/usr/bin/env bash
# test_examples.sh    the small examples run, print the expected text, and write the expected files. B is the build.
set -u
. "$(dirname "$0")/script.sh"

check "first" eval '"$examples/first" >ran'
check "and its gradient is that of tanh" awk -F '[][ ,]+' '/^\[3, 2\]/ { off = $4 - 1.161; close_by = off * off < 1e-6 } END { exit !close_by }' ran
check "four cells of one's own" eval '"$examples/cells" >ran'
check "and all of them learn" awk '{ good += $(NF - 2) > $NF && $NF < 0.5 } END { exit !(NR == 4 && good == 4) }' ran
check "ragged" eval '"$examples/ragged" >ran'
check "and padding makes no difference" grep -q 'padded: the same bits$' ran
case ${V:-} in asan|dasan) ;; *)         # where its thousand steps would take a minute
    check "seq2seq" eval '"$examples/seq2seq" a.h5 >ran'
    check "and it learns" awk '{ loss = $2 } END { exit !(NR == 10 && loss < 0.5) }' ran
    cp a.h5 b.h5
    check "seq2seq once more changes nothing" makes a.h5 b.h5 "$examples/seq2seq" a.h5 ;;
esac
check "seq2seq will not have another's file" eval '! "$examples/seq2seq" /dev/null'

finish "the examples"
