#!/usr/bin/env bash
# test_examples.sh    the small examples run, say what they should, and leave what they should. B is the build.
set -u
peers=$(realpath "$(dirname "$0")/../../bench/peers")
. "$(dirname "$0")/script.sh"

check "first" eval '"$examples/first" >ran'
check "and its gradient is that of tanh" awk -F '[][ ,]+' '/^\[3, 2\]/ { off = $4 - 1.161; close_by = off * off < 1e-6 } END { exit !close_by }' ran
check "four cells of one's own" eval '"$examples/cells" >ran'
check "and all of them learn" awk '{ good += $(NF - 2) > $NF && $NF < 0.5 } END { exit !(NR == 4 && good == 4) }' ran
check "ragged" eval '"$examples/ragged" >ran'
check "and there is no difference" grep -q 'padded: the same bits$' ran
case ${V:-} in asan|dasan) ;; *)         # where its thousand steps would take a minute
    check "seq2seq" eval '"$examples/seq2seq" a.h5 >ran'
    check "and it learns" awk '{ loss = $2 } END { exit !(NR == 10 && loss < 0.5) }' ran
    cp a.h5 b.h5
    check "seq2seq once more has nothing to do" "$examples/seq2seq" a.h5
    check "and changes nothing" cmp a.h5 b.h5 ;;
esac
check "seq2seq will not have another's file" eval '! "$examples/seq2seq" /dev/null'

# A peer that is none of PyTorch's: who it is, then as many answers as were ordered, all wrong.
fake() {                                # ANSWERS
    printf '#!/bin/sh\necho "{\\"who\\": \\"a fake\\"}"\nfor i in $(seq %d); do read -r line || exit; echo "{\\"ms\\": 1.5, \\"loss\\": 7, \\"norm\\": 0}"; done\n' "$1" >fake
    chmod +x fake
}
pack() { "$examples/slow_pack" --quick --batch 6 --runs 2 --out . "$@"; }
check "slow_pack without a peer" eval 'WEFT_PYTHON=/nowhere/python pack --peer "$peers/slow_pack.py" >ran'
check "and all its ways agree" grep -q '^24 of 24 losses and gradients agree' ran
check "in twelve lines" eval '[ "$(grep -cE "^[AB] +(32|64|128)  forward" ran)" = 12 ] && grep -q "^no PyTorch" ran'
check "and a picture of two curves in each of four charts" eval '[ "$(grep -c "class=\"curve\"" slow_pack.svg)" = 8 ] && [ "$(tail -n 1 slow_pack.svg)" = "</svg>" ]'
check "and a line of JSON for each number" eval '[ "$(grep -c "^{\"who\": \"weft\", .*\"runs\": 2, .*}$" slow_pack.jsonl)" = 24 ]'
fake 1000
check "slow_pack beside one that comes to something else fails" eval '! WEFT_PYTHON=./fake pack --peer ./fake >ran && grep -q "^24 of 48 " ran'
check "and draws it" eval '[ "$(grep -c "class=\"curve\"" slow_pack.svg)" = 16 ]'
fake 7
check "one that dies" eval 'WEFT_PYTHON=./fake pack --peer ./fake >ran 2>said; grep -q "a fake does not answer any more" said && tail -n 1 ran | grep -q "agree"'
if "${WEFT_PYTHON:-python3}" -c 'import torch' 2>/dev/null; then
    check "slow_pack beside PyTorch" eval 'pack --peer "$peers/slow_pack.py" >ran'
    check "and both come to the same" grep -q '^48 of 48 losses and gradients agree' ran
fi
check "slow_pack without a folder" eval '! pack --out /nowhere/at/all'

finish "the examples"
