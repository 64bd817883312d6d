#!/usr/bin/env bash
# test_weft.sh    runs the command `weft` like a user: plans as text and as JSON, and error messages. B is the build.
set -u
. "$(dirname "$0")/script.sh"

echo "7 3 5 2 8 1 4 6" >lengths
printf '7 3\n5 two 8\n' >word
printf '1 -1' >negative
: >nothing
json() { "$weft" plan --json lengths "$1" | tr -d ' \n'; }

check "a plan of batches" has "$(json order:count=5)" '"batches":[[0,1,2,3,4],[5,6,7]],"figures":{"batches":2,"rows":8,"segments":8,"tokens":36,"cells":58'
check "a plan of rows" has "$(json best_fit_decreasing:capacity=8)" '"rows":[[[4,0,8]],[[0,0,7],[5,0,1]],[[7,0,6],[3,0,2]],[[2,0,5],[1,0,3]],[[6,0,4]]]'
check "bounds of rows" has "$(json best_fit_decreasing:capacity=8)" '"l1":5,"l2":5}}]}'
check "a plan of pieces" has "$(json powers:budget=4)" '"batches":[[[0,0,4]],[[0,4,2],[1,0,2]],[[2,0,4]],[[4,0,8]],'
check "a slot without work is an empty row" has "$(printf '5' | "$weft" plan --json - refill:slots=2 | tr -d ' \n')" '"rows":[[[0,0,5]],[]]'
check "no sequence at all" has "$("$weft" plan --json nothing first_fit:capacity=8 | tr -d ' \n')" '"rows":[],'
check "a table, a line a plan" eval '[ "$("$weft" plan lengths order:count=2 sorted:count=2 | wc -l)" = 3 ]'
check "the same from stdin" is "$("$weft" plan - order:count=3 <lengths)" "$("$weft" plan lengths order:count=3)"
check "all planners are listed" eval '[ "$("$weft" plan --list | grep -c "^[a-z]")" -ge 29 ]'
check "help" exits 0 '^  weft plan ' "$weft" --help
check "version" exits 0 '^0\.2' "$weft" --version
check "no argument" exits 2 '^usage' "$weft"
check "no such subcommand" exits 2 'unknown subcommand "plot"' "$weft" plot
check "a misspelt subcommand, the nearest named" exits 2 'unknown subcommand "plna"; "plan" is near; see weft --help' "$weft" plna
check "the word help" eval '"$weft" help | cmp - <("$weft" --help)'
check "help on one subcommand" eval '"$weft" help plan | cmp - <("$weft" plan --help)'
check "help on none" exits 2 '"corpora" is near' "$weft" help copora
check "help on two" exits 2 'help: found "lab"; expected at most one subcommand' "$weft" help plan lab
check "a version of something" exits 2 'version: found "extra"; expected no argument' "$weft" --version extra
for sub in plan corpora lab; do check "$sub: each option of its help has a line" eval '[ "$("$weft" $sub --help | grep -c "^  --[a-z]")" -ge 1 ]'; done
check "with its default" exits 0 '^  --hidden N .*(64; quick 32)' "$weft" lab --help

# ---- options, anywhere on the line; an error is one short line
check "no such option" exits 2 'unknown option --jsn; --json is near; see weft plan --help$' "$weft" plan --jsn lengths order:count=2
check "nothing is near" exits 2 'unknown option --bogus; see weft plan --help$' "$weft" plan --bogus lengths order:count=2
check "in one line" eval '[ "$("$weft" plan --bogus 2>&1 | wc -l)" = 1 ]'
for words in 'lengths order:count=2 --json' 'lengths --json order:count=2' '--json lengths order:count=2' '--json -- lengths order:count=2'; do
    check "$words" eval '"$weft" plan $words | cmp - <("$weft" plan --json lengths order:count=2)'
done
check "a corpus behind the planner" eval '"$weft" plan order:count=2 --corpus equal:3,n=4 | cmp - <("$weft" plan --corpus=equal:3,n=4 order:count=2)'
check "after -- there are no options" exits 2 'unknown planner "--json"' "$weft" plan lengths -- --json
check "no value" exits 2 'report: found no value; expected FILE.html' "$weft" plan lengths order:count=2 --report
check "an empty one" exits 2 'report: found no value; expected FILE.html' "$weft" plan --report= lengths order:count=2
check "Markdown is of weft lab" exits 2 'report: found "page.md"; expected FILE.html' "$weft" plan --report page.md lengths order:count=2
check "an option given twice" exits 2 'order: count is given twice; expected count=.. once' "$weft" plan lengths order:count=2,count=3
check "a value for a flag" exits 2 'json: found a value; expected none' "$weft" plan --json=yes lengths order:count=2
check "a number of seconds" exits 2 'seconds: found "0"; expected a whole number in 1' "$weft" plan --seconds 0 lengths order:count=2
for words in '--list --bogus' '--list extra' '--json --list' '--list --list'; do check "$words" exits 2 'see weft plan --help$' "$weft" plan $words; done
check "no planner" exits 2 'expected a file of lengths and a planner' "$weft" plan lengths
check "an empty file of lengths is reported" exits 0 'nothing: found no lengths' "$weft" plan nothing first_fit:capacity=8
check "no such file" exits 1 'gone: No such file' "$weft" plan gone order:count=2
check "a word among the lengths, with its line" exits 1 'word:2: "two" is not a length' "$weft" plan word order:count=2
check "a negative length" exits 1 '"-1" is not a length' "$weft" plan negative order:count=2
check "no such planner, the nearest named" exits 2 '"best_fit" is near' "$weft" plan lengths best_fat:capacity=9
check "no such key, the nearest named" exits 2 '"capacity" is near' "$weft" plan lengths best_fit:capcity=9
check "a count that is missing" exits 2 'random: count is missing; expected 1 or more; see weft plan --help$' "$weft" plan lengths random
check "an option for a planner without any" exits 2 'fold: unknown option "foo"' "$weft" plan lengths fold:foo=3
check "a capacity of 0" exits 2 'capacity is 0; expected 1 or more' "$weft" plan lengths best_fit:capacity=0
check "a sequence too long is named" exits 1 'sequence 4 has 8 tokens' "$weft" plan lengths best_fit:capacity=7
check "an error prints no plan" eval '! "$weft" plan --json lengths order:count=2 best_fit:capacity=7 2>err | grep -q .'
for words in 'plan lengths order:count=2' 'plan --list' --help --version help 'help plan' 'lab --help' corpora; do
    check "$words: a closed stdout is reported" exits 1 'cannot write stdout' eval '"$weft" $words >&-'
    [ ! -w /dev/full ] || check "$words: a full disk is reported" exits 1 'cannot write stdout' eval '"$weft" $words >/dev/full'
done

# ---- external planners: compiled against the public headers only, each in a separate process
cat >own.c <<'C'
#include <stdlib.h>
#include <stdio.h>
#include <unistd.h>
#include "weft_plan.h"
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
static weft_status silent(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p) { (void)len, (void)n, (void)o, (void)p; return (weft_status)77; }
/* processes that outlive their parent: each notes its number */
static void note(void) { FILE *f = fopen("descendants", "a"); fprintf(f, "%d\n", (int)getpid()); fclose(f); }
static void leave_behind(int count)
{
    for (int i = 0; i < count; i++)
        if (!fork()) {
            if (i % 2) setsid();
            for (int f = 0; f < 64; f++) close(f);
            note(), sleep(60), _exit(0);
        }
}
static weft_status daemons(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p) { leave_behind(4), usleep(200000); return snake(len, n, o, p); }
static weft_status stays(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p) { leave_behind(4), note(); return loops(len, n, o, p); }
/* a plan by hand, through the pipe of the command, that the library did not see */
static weft_status forges(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    struct { uint32_t magic; int32_t status; uint32_t promises; int64_t capacity; weft_plan plan; char message[512]; } h = { 0x77656674, .plan = *p };
    h.plan.segments = n, h.plan.batches = 1, h.plan.shard = 1;
    weft_plan_batch b = { 0, n, n, 8 };
    weft_segment s[64];
    for (int64_t i = 0; i < n; i++) s[i] = (weft_segment){ i, 0, 0, len[i], (int32_t)i, -1 };
    if (o->count == 1) h.plan.empty = INT64_MIN;
    if (o->count == 2) h.capacity = -1;
    if (o->count == 3) b.width = INT64_MAX;
    if (o->count == 4) b.n = INT64_MAX;
    if (o->count == 5) h.magic = 0; if (o->count == 6) memset(&h.plan.in_rows, 2, 1);
    for (int f = 3; f < 64; f++) if (write(f, &h, sizeof h) == sizeof h) (void)!write(f, &b, sizeof b), (void)!write(f, s, (size_t)n * sizeof *s);
    (void)p, sleep(1), _exit(0);
}
#define PLANNER(f) const weft_planner f##_planner = { .name = #f, .options = "count", .promises = WEFT_PLAN_WHOLE, .plan = f }
PLANNER(snake); PLANNER(loses); PLANNER(crashes); PLANNER(loops); PLANNER(hides); PLANNER(leaves); PLANNER(garbage); PLANNER(refuses); PLANNER(silent); PLANNER(daemons); PLANNER(stays); PLANNER(forges);
const weft_planner empty_planner = { .name = "empty" };
C
check "planners of others compile" "${CC:-cc}" -std=c11 -shared -fPIC -w -I"$root" -o own.so own.c
own() { "$weft" plan --json --seconds=2 lengths "./own.so:$1"; }
check "one of them beside ours" has "$(own snake_planner:count=4 2>words | tr -d ' \n')" '"rows":[[[0,0,7],[7,0,6]],[[1,0,3],[6,0,4]],[[2,0,5],[5,0,1]],[[3,0,2],[4,0,8]]],"figures":{"batches":1,"rows":4'
check "its words are not the plan's" grep -q "words of a planner" words
check "one that loses a sequence" exits 1 '6 tokens are missing, the first in sequence 7' own loses_planner:count=4
check "one that crashes" exits 1 'died of signal 6' own crashes_planner:count=4
check "one that loops" exits 1 'no plan within 2 s' own loops_planner:count=4
check "one that closes all files and loops" exits 1 "closed its pipe without a plan and kept running; stopped it" own hides_planner:count=4
check "one that leaves" exits 1 'ended without a plan' own leaves_planner:count=4
check "one that returns garbage" exits 1 'the planner made fewer than the 1073741824 segments in 1 batches that it reports' own garbage_planner:count=4
check "one that refuses" exits 1 'not on a Monday' own refuses_planner:count=4
check "one that returns a status of its own, and no word" exits 1 'returned status 77 (unknown status) without a message' own silent_planner:count=4
check "a forged count of empty sequences" exits 1 'forges_planner:count=1: the plan counts -9223372036854775808 sequences' own forges_planner:count=1
check "a forged capacity" exits 1 'forges_planner:count=2: the planner returned capacity -1' own forges_planner:count=2
check "a forged width" exits 1 'batch 0 has 8 rows of 9223372036854775807 cells' own forges_planner:count=3
check "a forged count of segments" exits 1 'batch 0 has 9223372036854775807 segments' own forges_planner:count=4
for c in 5 6; do check "bytes that are not a plan, $c" exits 1 'output in its pipe is not a plan' own forges_planner:count=$c; done
check "one that fails does not stop the others" eval '! "$weft" plan lengths ./own.so:crashes_planner:count=4 order:count=2 >table 2>err && grep -q "^order:count=2 " table && grep -q "crashes_planner.*signal 6" err'
none_left() {                           # COUNT: checks that COUNT processes existed and that all end soon
    for _ in $(seq 50); do
        local left=0
        while read -r p; do ! kill -0 "$p" 2>/dev/null || left=1; done <descendants
        [ $left = 1 ] || break
        sleep .1
    done
    [ $left = 0 ] && [ "$(wc -l <descendants)" = "$1" ]
}
killed_weft() {                         # SIGNAL: the command is killed while a planner and its children run
    rm -f descendants
    "$weft" plan --seconds=60 lengths ./own.so:stays_planner:count=4 2>/dev/null &
    local command=$!
    for _ in $(seq 100); do [ "$(cat descendants 2>/dev/null | wc -l)" = 5 ] && break; sleep .1; done
    kill "-$1" $command && none_left 5
    local good=$?
    wait $command 2>/dev/null
    return $good
}
rm -f descendants
check "one that leaves processes behind has a plan" eval 'own daemons_planner:count=4 >/dev/null 2>&1'
check "but they are gone when the command has ended" none_left 4
rm -f descendants
check "so are those of one that was stopped" eval '! own stays_planner:count=4 2>/dev/null && none_left 5'
for signal in KILL TERM HUP; do check "and of a command that dies by SIG$signal" killed_weft $signal; done
check "one without a function" exits 1 'a planner and a plan' own empty_planner
check "one that needs an option" exits 1 'count is missing; expected 1 or more' own snake_planner
check "an option that it does not take" exits 1 'unknown option "capacity"' own snake_planner:capacity=4
check "no such name" exits 1 'no_planner' own no_planner
check "no such object" exits 1 'gone.so' "$weft" plan lengths ./gone.so:x
check "no name at all" exits 1 'PATH/x.so:NAME' "$weft" plan lengths ./own.so
for sub in plan corpora lab gpu info list show diff convert check run env; do
    check "help on one subcommand is its own" exits 0 '' "$weft" $sub --help
    check "on stdout, and on no other" eval '[ "$("$weft" $sub --help | grep -c "^  weft ")" = 1 ] && "$weft" $sub x -h | grep -q "^  weft $sub "'
done

# ---- cost of plans, for two invented devices: one whose rows cost time, one whose steps do
awk 'BEGIN { for (i = 0; i < 400; i++) print i % 10 ? 4 : 200 }' >mixed
echo '{"name": "made-up CPU", "rows": [1, 8, 64], "step_ms": [0.01, 0.08, 0.64], "token_ms": 0.001, "batch_ms": 0.1, "error": 0.1}' >cpu.json
echo '{"name": "made-up GPU", "rows": [1, 64, 512], "step_ms": [0.02, 0.021, 0.05], "error": 0.1}' >gpu.json
explain() { "$weft" plan --explain --costs "$1" mixed random:count=8 sorted:count=8; }
check "a device that follows tokens takes what is drawn" eval 'explain cpu.json >cpu.out && grep -q "Time follows tokens" cpu.out && grep -q "^Take random:count=8" cpu.out'
check "one that follows steps takes another" eval 'explain gpu.json >gpu.out && grep -q "Time follows steps" gpu.out && grep -q "^Take sorted" gpu.out'
check "each by its name" eval 'grep -q "^made-up CPU: milliseconds" cpu.out && grep -q "^made-up GPU: milliseconds" gpu.out'
export XDG_CACHE_HOME=$PWD/cache
check "plans with other numbers of updates" eval '"$weft" plan --explain --costs cpu.json mixed random:count=8 fold >few.out && grep -q "makes 1 update in a pass; random:count=8 makes .* about the same tokens" few.out && ! grep -q "same tokens" cpu.out'
check "the cost of a layer is measured" eval '"$weft" plan --explain=gru:16 mixed order:count=8 >one.out 2>uncertain && grep -q "^gru of 16 units on .*, 1 thread: milliseconds" one.out'
check "and cached, or reported as uncertain" eval 'kept=$(find cache/weft/costs -name "*.json"); [ -n "$kept" ] || grep -q "uncertain and not cached" uncertain'
kept=$(find cache/weft/costs -name "*.json" 2>/dev/null)
measured='{"name": "gru of 16 units on x, 1 thread", "rows": [1, 8], "step_ms": [1, 4], "error": 0.1}'
falling='{"name": "gru of 16 units on x, 1 thread", "rows": [1, 8], "step_ms": [4, 1], "error": 0.17}'
explain_gru() { "$weft" plan --explain=gru:16 mixed order:count=8 "$@"; }
if [ -f "$kept" ]; then
    check "its error is measured" eval 'e=$(grep -o "\"error\": [0-9.e-]*" "$kept" | cut -d" " -f2); awk -v e="$e" "BEGIN { exit !(e > 0 && e != .17) }"'
    check "its steps rise with their rows" eval 'grep -o "step_ms\": [^]]*" "$kept" | grep -oE "[0-9.e-]+[0-9]" | awk "\$1 < .9 * last { exit 1 } { last = \$1 }"'
    echo "$measured" >"$kept"
    check "the kept numbers are used" eval 'explain_gru >kept.out 2>err && ! [ -s err ] && grep -q "on x, 1 thread" kept.out'
    check "others for other threads" eval 'explain_gru --threads=2 >two.out && ! grep -q "on x" two.out'
    check "which leaves the first alone" eval 'echo "$measured" | cmp - "$kept"'
    check "--calibrate measures again" eval 'explain_gru --calibrate >new.out 2>uncertain && ! grep -q "on x" new.out'
    check "and replaces them" eval '! grep -q "on x" "$kept" || grep -q "not cached" uncertain'
    echo "$falling" >"$kept"
    check "a curve that falls is measured again" eval 'explain_gru >new.out 2>reported && grep -q "a step of more rows costs less" reported && ! grep -q "on x" new.out'
    echo "{" >"$kept"
    check "so is a damaged file" eval 'explain_gru 2>reported | grep -q milliseconds && grep -q "is damaged" reported'
    echo "$measured" >"$kept"
    check "the layer as a word of its own" eval '"$weft" plan mixed --explain gru:16 order:count=8 | cmp - kept.out'
    check "cached costs can be given" eval '"$weft" plan --costs "$kept" mixed order:count=8 | grep -q "^gru of 16"'
fi
check "a file together with --calibrate" exits 2 'costs: found with --calibrate; expected only one' "$weft" plan --costs cpu.json --calibrate mixed order:count=8
check "no such cell" exits 2 'found cell "lsmt"; expected lstm, gru' "$weft" plan --explain=lsmt:16 mixed order:count=8
check "two layers" exits 2 'found "lstm:16:2"; expected CELL:UNITS, one layer of 1' "$weft" plan --explain=lstm:16:2 mixed order:count=8
check "no units" exits 2 'found "lstm:0"; expected CELL:UNITS' "$weft" plan --explain=lstm:0 mixed order:count=8
judge() { "$weft" plan --json --costs "$1" mixed random:count=8 sorted:count=8 >judged.json; }
check "JSON has the same verdict" eval 'judge cpu.json && sed -n "s/.*\"take\": \"\([^\"]*\)\", \"why\": \"\([^\"]*\)\", \"cost\": \"\([^\"]*\)\", \"sure\": \"\([^\"]*\)\".*/Take \1: \2. \3 \4/p" judged.json >said && tail -n 1 cpu.out | cmp - said'
check "from predictions, with their error" grep -q '"verdict": {"basis": "predicted".*"error": 0.1, ' judged.json
check "two plans that tie; a packed batch stores its tokens" is "$(grep -o '"tied": true, "cells_of_largest_batch": [0-9]*' judged.json | grep -o '[0-9]*$' | tr '\n' ' ')" "620 1600 "
check "which still is a file of plans" eval '"$weft" plan --from judged.json mixed | cmp - <("$weft" plan mixed random:count=8 sorted:count=8)'
check "a page also predicts" eval '"$weft" plan --costs gpu.json --report page.html mixed random:count=8 sorted:count=8 && grep -q "<strong>Take 2 sorted.* it is the fastest, and no other plan ties within the model" page.html'
check "with the costs that it used" grep -q 'predicted for made-up GPU, with an error of 10 %' page.html
sed 's/, "error": 0.1//' cpu.json >vague.json
check "an error that is not known is assumed" eval 'explain vague.json | grep -q "without a stated error; assumed is an error of 20 %"'
check "one plan only" eval '"$weft" plan --costs cpu.json mixed order:count=8 | grep -q "^Take order:count=8: the only plan. A pass takes"'
bad_costs() { echo "$2" >bad.json; check "costs refused: $1" exits 1 "costs bad.json.*$1" "$weft" plan --costs bad.json mixed order:count=8; }
bad_costs 'expected JSON' '{"name": '
bad_costs 'an object with a "name"' '[]'
bad_costs 'lists of equal length, 2 .. 16' '{"name": "x", "rows": [1, 2], "step_ms": [1]}'
bad_costs 'lists of equal length' '{"name": "x", "rows": [1, "2"], "step_ms": [1, 2]}'
bad_costs 'expected 1 in the first point' '{"name": "x", "rows": [2, 3], "step_ms": [1, 2]}'
bad_costs 'expected more than 0' '{"name": "x", "rows": [1, 3], "step_ms": [1, -2]}'
bad_costs 'expected numbers after' '{"name": "x", "rows": [1, 3], "step_ms": [1, 2], "error": "small"}'
check "no such file" exits 1 'costs gone.json: No such file' "$weft" plan --costs gone.json mixed order:count=8

# ---- weft gpu, on the emulated GPU
if [ -f "$build/emu/libweft_cuda.so" ]; then
    gpu() { WEFT_BACKEND_PATH=$build/emu WEFT_EMU_CC=$1 "$weft" gpu "${@:2}"; }
    check "an sm_90 has clusters" eval 'gpu 90 >gpu.out && grep -q "^GPU 0: emulated GPU 0, sm_90" gpu.out && grep -q "^code: " gpu.out && grep -Eq "^ +256  [0-9.]+ (cluster|general) " gpu.out'
    check "an sm_80 has none" eval 'gpu 80 1 >gpu.out && grep -q "^GPU 1: .*sm_80" gpu.out && grep -Eq "^ +256  [0-9.]+ (group|general) " gpu.out && ! grep -q cluster gpu.out'
    check "code of its generation" eval 'gpu 89 | grep -q "^code: compiled for sm_80$" && gpu 100 | grep -q "^code: compiled for sm_100$"'
    check "code that the driver made" eval 'gpu 110 | grep -q "^code: compiled by the driver from PTX for sm_90"'
    check "where what was found is kept" eval 'gpu 90 | grep -q "stored in $XDG_CACHE_HOME/weft" || [ "${V:-}" = double ] || [ "${V:-}" = dasan ]'
    check "no such GPU: why, and what instead" exits 1 'programs with the device WEFT_BEST run on: ' env WEFT_BACKEND_PATH="$build/emu" WEFT_EMU_DEVICES=0 "$weft" gpu
fi
check "no number" exits 2 'expected the number of one GPU' "$weft" gpu x

finish "weft"
