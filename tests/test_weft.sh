#!/usr/bin/env bash
# test_weft.sh    the command `weft` as its user meets it: plans in words and as JSON, what it refuses and with what words. B is the build.
set -u
weft=$(realpath "${B:-build}")/weft
. "$(dirname "$0")/script.sh"

echo "7 3 5 2 8 1 4 6" >lengths
printf '7 3\n5 two 8\n' >word
printf '1 -1' >negative
: >nothing
json() { "$weft" plan --json lengths "$1" | tr -d ' \n'; }
is() { [ "$1" = "$2" ] || { echo "is $1"; echo "expected $2"; return 1; }; }
has() { case $1 in *"$2"*) ;; *) echo "$1 lacks $2"; return 1 ;; esac; }

check "a plan of batches" has "$(json order:count=5)" '"batches":[[0,1,2,3,4],[5,6,7]],"figures":{"batches":2,"rows":8,"segments":8,"tokens":36,"cells":58'
check "a plan of rows" has "$(json best_fit_decreasing:capacity=8)" '"rows":[[[4,0,8]],[[0,0,7],[5,0,1]],[[7,0,6],[3,0,2]],[[2,0,5],[1,0,3]],[[6,0,4]]]'
check "bounds of rows" has "$(json best_fit_decreasing:capacity=8)" '"l1":5,"l2":5}}]}'
check "a plan of pieces" has "$(json powers:budget=4)" '"batches":[[[0,0,4]],[[0,4,2],[1,0,2]],[[2,0,4]],[[4,0,8]],'
check "a slot without work is an empty row" has "$(printf '5' | "$weft" plan --json - refill:slots=2 | tr -d ' \n')" '"rows":[[[0,0,5]],[]]'
check "no sequence at all" has "$("$weft" plan --json nothing first_fit:capacity=8 | tr -d ' \n')" '"rows":[],'
check "a table, a line a plan" eval '[ "$("$weft" plan lengths order:count=2 sorted:count=2 | wc -l)" = 3 ]'
check "the same from stdin" is "$("$weft" plan - order:count=3 <lengths)" "$("$weft" plan lengths order:count=3)"
check "all planners are listed" eval '[ "$("$weft" plan --list | grep -c "^[a-z]")" -ge 29 ]'
check "help" says 0 '^  weft plan ' "$weft" --help
check "version" says 0 '^0\.2' "$weft" --version
check "nothing said" says 2 '^usage' "$weft"
check "no such subcommand" says 2 'no subcommand "plot"' "$weft" plot
check "no such option" says 2 'no option --jsn' "$weft" plan --jsn lengths order:count=2
check "no planner said" says 2 'a planner are expected' "$weft" plan lengths
check "no such file" says 1 'gone: No such file' "$weft" plan gone order:count=2
check "a word among the lengths, with its line" says 1 'word:2: "two" is no length' "$weft" plan word order:count=2
check "a negative length" says 1 '"-1" is no length' "$weft" plan negative order:count=2
check "no such planner, the nearest named" says 1 '"best_fit" is near' "$weft" plan lengths best_fat:capacity=9
check "no such key, the nearest named" says 1 '"capacity" is near' "$weft" plan lengths best_fit:capcity=9
check "a capacity of 0" says 1 'capacity is 0; 1 or more is expected' "$weft" plan lengths best_fit:capacity=0
check "a sequence too long is named" says 1 'sequence 4 has 8 tokens' "$weft" plan lengths best_fit:capacity=7
check "an error prints no plan" eval '! "$weft" plan --json lengths order:count=2 best_fit:capacity=7 2>err | grep -q .'
if [ -w /dev/full ]; then check "a full disk is told" eval '! "$weft" plan lengths order:count=2 >/dev/full 2>err && grep -q "cannot be written" err'; fi
finish "weft"
