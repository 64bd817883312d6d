#!/usr/bin/env bash
# test_weft.sh    the command `weft` as its user meets it: plans in words and as JSON, what it refuses and with what words. B is the build.
set -u
weft=$(realpath "${B:-build}")/weft root=$(realpath "$(dirname "$0")/..")
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

# ---- predicted milliseconds: constants that are made up, a CPU's, where rows cost, and a GPU's, where steps do
echo '{"device": "a made-up CPU", "rows": [1, 64, 256], "ms": [0.016, 0.8, 3.2], "batch_ms": 0.05, "token_ms": 0.0001, "error": 0.1}' >cpu.json
echo '{"device": "a made-up GPU", "rows": [1, 64, 1024], "ms": [0.01, 0.011, 0.02], "batch_ms": [0.2, 0.2, 0.3], "error": 0.1}' >gpu.json
awk 'BEGIN { for (i = 0; i < 400; i++) print 1 + (i * 7919 % 10007) % (i % 20 ? 50 : 400) }' >many
explain() { "$weft" plan --costs "$1" many random:count=16 sorted:count=16 best_fit_decreasing:capacity=400,rows=4; }
check "a CPU follows tokens" has "$(explain cpu.json)" "This device follows tokens"
check "and packs random batches" has "$(explain cpu.json)" "Chosen: random:count=16"
check "a GPU follows steps" has "$(explain gpu.json)" "This device follows steps"
check "and is given fewer of them" eval 'explain gpu.json | grep -q "^Chosen: [sb]"'
check "the other's view is said, too" has "$(explain cpu.json)" "if steps alone did, as GPUs nearly have it, sorted:count=16"
check "constants of a file are no measurement" has "$(explain gpu.json)" "on a made-up GPU: constants of gpu.json, not measured here."
check "a step's milliseconds, by hand" has "$(echo 1 1 1 | "$weft" plan --costs cpu.json - order:count=3)" "order:count=3: 0.091 ms a pass"
check "padded ones cost more" has "$(explain cpu.json)" "times as much"
check "predictions are on the page" eval '"$weft" plan --costs cpu.json --report predicted.html lengths order:count=2 >/dev/null && grep -q "on a made-up CPU" predicted.html && grep -q "Predictions beside measurements" predicted.html'
measured() { XDG_CACHE_HOME=$PWD/cache "$weft" plan --explain="$1" lengths order:count=2; }
check "measured here" eval 'measured gru:8 >out && grep -q "gru layer of 8 units.*: measured now" out'
check "once" eval 'measured gru:8 >out && grep -q "measured here on 20" out'
check "nothing else is left" is "$(find cache -type f | wc -l)" 1
check "a damaged file is measured anew" eval 'echo "{" >"$(find cache -type f)"; measured gru:8 >out 2>err && grep -q "damaged; measuring anew" err && grep -q "measured now" out && [ "$(wc -l <err)" = 1 ]'
check "of another width anew" eval 'measured lstm:4 >out && grep -q "measured now" out'
check "where nothing can be kept, too" eval 'env -u HOME -u XDG_CACHE_HOME "$weft" plan --explain=lstm:4 lengths order:count=2 >out && grep -q "measured now" out'
costs() { echo "$1" >bad.json; "$weft" plan --costs bad.json lengths order:count=2; }
check "no such cell, the nearest named" says 2 'not "lsmt"; "lstm" is near' "$weft" plan --explain=lsmt:8 lengths order:count=2
check "two layers" says 2 '"8:2" for the width of its one layer' "$weft" plan --explain=gru:8:2 lengths order:count=2
check "no width" says 2 'a whole number in 1 .. 4096' "$weft" plan --explain=gru: lengths order:count=2
check "words are no JSON" says 2 'one of them is expected' "$weft" plan --explain --json lengths order:count=2
check "no such constants" says 1 'gone.json.*constants as JSON are expected' "$weft" plan --costs gone.json lengths order:count=2
check "constants that are none" says 1 'bad.json: an object with "rows" and "ms"' costs '[3]'
check "constants without rows" says 1 '"rows" is no list of 1 or more numbers' costs '{"ms": [1]}'
check "a list that is shorter" says 1 '"ms" is no list of as many numbers' costs '{"rows": [1, 2], "ms": [1]}'
check "a word in a list" says 1 '"ms" has something that is no number' costs '{"rows": [1], "ms": ["x"]}'
check "rows that fall" says 1 '"rows" that ascend' costs '{"rows": [2, 1], "ms": [1, 1]}'
check "a negative constant" says 1 '"token_ms" is no number of 0 or more' costs '{"rows": [1], "ms": [1], "token_ms": -1}'
check "a misspelt constant" says 1 '"token_sm" is none of its keys' costs '{"rows": [1], "ms": [1], "token_sm": 1}'

# ---- planners of others: compiled against the public headers alone, each in a process of its own
cat >own.c <<'C'
#include <stdlib.h>
#include <stdio.h>
#include <unistd.h>
#include "weft.h"
static weft_status snake(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    int64_t used[64] = { 0 }, width = 0, rows = o->count;
    for (int64_t i = 0; i < n; i++) {
        int32_t r = (int32_t)(i / rows % 2 ? rows - 1 - i % rows : i % rows);
        if (weft_plan_add(p, (weft_segment){ i, used[r], 0, len[i], r, -1 }))
            return WEFT_ENOMEM;
        used[r] += len[i], width = used[r] > width ? used[r] : width;
    }
    puts("words of a planner");
    p->in_rows = true;
    return weft_plan_end_batch(p, rows, width);
}
static weft_status loses(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p) { return snake(len, n - 1, o, p); }
static weft_status crashes(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p) { (void)o, (void)p; return n ? abort(), WEFT_OK : len[0]; }
static weft_status loops(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    for (volatile int64_t i = 0; i >= 0; i = (i + n) & 0xffff) (void)len, (void)o, (void)p;
    return WEFT_OK;
}
static weft_status hides(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    for (int f = 3; f < 99; f++) close(f);
    return loops(len, n, o, p);
}
static weft_status leaves(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p) { (void)len, (void)n, (void)o, (void)p; exit(0); }
static weft_status garbage(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    weft_status s = snake(len, n, o, p);
    p->segments = 1 << 30;
    return s;
}
static weft_status refuses(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p) { (void)len, (void)n, (void)o, (void)p; return weft_plan_refuse(WEFT_EARG, "not on a Monday"); }
#define PLANNER(f) const weft_planner f##_planner = { .name = #f, .options = "count", .promises = WEFT_PLAN_WHOLE, .plan = f }
PLANNER(snake); PLANNER(loses); PLANNER(crashes); PLANNER(loops); PLANNER(hides); PLANNER(leaves); PLANNER(garbage); PLANNER(refuses);
const weft_planner empty_planner = { .name = "empty" };
C
check "planners of others compile" "${CC:-cc}" -std=c11 -shared -fPIC -w -I"$root" -o own.so own.c
own() { "$weft" plan --json --seconds=2 lengths "./own.so:$1"; }
check "one of them beside ours" has "$(own snake_planner:count=4 2>words | tr -d ' \n')" '"rows":[[[0,0,7],[7,0,6]],[[1,0,3],[6,0,4]],[[2,0,5],[5,0,1]],[[3,0,2],[4,0,8]]],"figures":{"batches":1,"rows":4'
check "its words are not the plan's" grep -q "words of a planner" words
check "one that loses a sequence" says 1 '6 tokens are missing, from sequence 7 on' own loses_planner:count=4
check "one that crashes" says 1 'died of signal 6' own crashes_planner:count=4
check "one that loops" says 1 'no plan within 2 s' own loops_planner:count=4
check "one that closes all files and loops" says 1 "died of signal 9" own hides_planner:count=4
check "one that leaves" says 1 'ended without a plan' own leaves_planner:count=4
check "one that returns garbage" says 1 'says that it has 1073741824 segments in 1 batches, and has made fewer' own garbage_planner:count=4
check "one that refuses" says 1 'not on a Monday' own refuses_planner:count=4
check "one without a function" says 1 'a planner and a plan' own empty_planner
check "one that needs an option" says 1 'count is 0; 1 or more' own snake_planner
check "an option that it does not take" says 1 'no option "capacity"' own snake_planner:capacity=4
check "no such name" says 1 'no_planner' own no_planner
check "no such object" says 1 'gone.so' "$weft" plan lengths ./gone.so:x
check "no name at all" says 1 'PATH/x.so:NAME' "$weft" plan lengths ./own.so
finish "weft"
