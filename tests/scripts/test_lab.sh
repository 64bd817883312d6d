#!/usr/bin/env bash
# test_lab.sh    tests weft lab: a page and its times from small data, interruption, the time limit, external planners, bad input. B is the build.
set -u
. "$(dirname "$0")/script.sh"

export XDG_CACHE_HOME=$PWD/cache
small=(lab --quick --corpus uniform:1:30,n=120 --hidden=8 --update=100)
run() { "$weft" "${small[@]}" "$@"; }
lines() { grep -F "\"experiment\": \"$2\"" "$1-times.jsonl" | grep -F "\"planner\": \"$3"; }
values() { sed "s/.*\"$1\": \([^,}]*\).*/\1/"; }          # of a member, a line each
below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }' || { echo "$1 is not below $2"; return 1; }; }

check "a page and its times" exits 0 '' run --planner random:count=8 --planner chunk:capacity=16,rows=4 --planner chunk:capacity=16,rows=1,carry=yes \
    --planner sorted:count=8 --planner refill:slots=1 --out a.html; mv output page.log
check "a page that is whole" eval 'grep -q "</html>" a.html && [ "$(grep -c "random:count=8" a.html)" -ge 1 ]'
! command -v xmllint >/dev/null || check "well formed" xmllint --html --noout a.html
check "every line is an object" eval '! grep -vq "^{.*}$" a-times.jsonl'
check "each plan has a predicted time of the layer" is "$(grep -c '"experiment": "cost"' a-times.jsonl)" 5
check "it is positive and finite" eval 'for p in $(grep "\"cost\"" a-times.jsonl | values predicted_ms); do below 0 "$p" && below "$p" 1000 || exit 1; done'
check "the cost of the layer is cached, or uncertain on a noisy machine" eval '[ "$(ls cache/weft/costs | wc -l)" = 1 ] || grep "uncertain and not cached" page.log'
check "on the page, too" grep -q 'One layer (lstm of 8 units on' a.html
check "only the requested experiments" eval 'run --planner order:count=8 --only=layouts,cost --out o.html && [ "$(sed "s/^{\"experiment\": \"\([a-z]*\).*/\1/" o-times.jsonl | sort -u | xargs)" = "cost data exactness predicted" ] && grep -q "only left out contamination,adversaries,times,learning,gradients" o.html'
check "an unknown experiment" exits 2 'only: found "cots"; expected layouts' run --planner order:count=8 --only=cots --out o.html
check "three rounds of times" is "$(lines a times random | wc -l)" 3
check "outputs are those of whole sequences" is "$(lines a exactness random | values differ)" 0
check "padded ones also" is "$(lines a exactness padded | values differ)" 0
check "a state that is carried makes no difference" is "$(lines a exactness chunk:capacity=16,rows=1,carry | values differ)" 0
check "a state that is lost does, which is counted" below 100 "$(lines a exactness chunk:capacity=16,rows=4 | values differ)"
check "no sequence changes another" is "$(grep -F '"contamination"' a-times.jsonl | grep -v none: | values differ | sort -u)" 0
check "and NaN does not spread" is "$(grep -F '"contamination"' a-times.jsonl | grep -v none: | values spread | sort -u)" 0
check "contamination is detected" below 1000 "$(lines a contamination none: | values differ)"
check "and NaN that spreads is detected" below 1000 "$(lines a contamination none: | values spread)"
check "many numbers were compared for it" below 10000 "$(lines a contamination random | values compared)"
check "one divisor for all: no bias" below "$(lines a gradient random | grep '"mean_of": "plan"' | values bias)" 1e-5
check "a divisor a batch: some, in sorted order much" below .01 "$(lines a gradient sorted | grep '"mean_of": "batch"' | values bias)"
check "sequences that count alike are another aim" below .001 "$(lines a gradient random | grep '"mean_of": "sequences"' | values bias)"
updates() { lines a learning "$1" | grep '"seed": 1' | values updates | sort -n | tail -1; }
check "the same number of updates with every planner" below "$(($(updates random) - $(updates chunk:capacity=16,rows=4)))" 2
check "and not fewer" below -2 "$(($(updates random) - $(updates chunk:capacity=16,rows=4)))"
check "three seeds" is "$(lines a learning random | values seed | sort -u | xargs)" "1 2 3"
check "the loss decreases" below "$(lines a learning random | grep '"seed": 2' | values loss | tail -1)" "$(lines a learning random | grep '"seed": 2' | values loss | head -1)"
check "a batch above an update has no curve" eval '[ -z "$(lines a learning refill)" ]'
run --planner random:count=8 --out b.html >out 2>&1
same() { lines "$1" learning random | sed 's/"seconds": [^,]*, //'; lines "$1" gradient random; }
check "repeated numbers are the same" is "$(same b)" "$(same a)"
check "reported on stderr" exits 0 'refill.* no learning curve' run --planner refill:slots=4 --out c.html

check "on the page, too" grep -q 'has no curve: found a batch of [0-9]* tokens for updates of 100; expected smaller batches or a larger --update' c.html
check "why results are missing" eval 'run --planner order:count=8 --seconds=.01 --out late.html 2>err; grep -q "No gradients were computed for this page: the limit of 0.01 s was over; --seconds extends it" late.html'
check "the number of held-out sequences is listed" is "$(grep -F '"data"' a-times.jsonl | values held_out_sequences)" 6
if "$weft" corpora fortunes >lengths 2>/dev/null; then
    check "all fortunes" exits 0 'is over' "$weft" lab --corpus fortunes --limit=99999 --seconds=1 --planner order:count=64 --out h.html
    check "the fixed split: every twentieth that is not a repetition" is "$(grep -F '"data"' h-times.jsonl | values held_out_sequences) $(grep -F '"data"' h-times.jsonl | values held_out_tokens)" "757 132073"
else
    echo "skipped: fortunes: $("$weft" corpora fortunes 2>&1)"
fi

# ---- to the same loss, padded and packed
check "until 6.1 bits" run --planner random:count=8 --padded random:count=8 --seeds=1 --epochs=9 --lr=.05 --target 6.1 --out t.html
last() { lines t learning "$1" | values "$2" | tail -1; }
check "the target is reached" below "$(last 'random:count=8"' bits)" 6.1
check "before all tokens are used" below "$(last 'random:count=8"' tokens)" 15000
check "padded ones learn the same" near "$(last 'random:count=8 padded' loss)" "$(last 'random:count=8"' loss)" 1e-4
check "one seed" is "$(lines t learning random | values seed | sort -u)" 1
check "the page lists the seconds" grep -q 'Seconds of training to 6.1 bits a token' t.html
check "rows cannot be padded" exits 1 'padded streams:slots=8,window=8: found rows of several' run --padded streams:slots=8,window=8 --out u.html
check "not a number" exits 2 'lr: found "x"; expected a number above 0' run --planner order:count=8 --lr=x --out u.html
check "more seeds than there are" exits 2 'seeds: found "4"; expected a whole number in 1 .. 3' run --planner order:count=8 --seeds=4 --out u.html

# ---- the time, and the user
check "the time is over: a page of what there is" exits 0 'limit of 1 s is over; d.html has the measurements' run --seconds=1 --limit=100000 --corpus geometric:.01,n=9000 --planner random:count=8 --out d.html
check "it is whole" grep -q '</html>' d.html
"$weft" lab --corpus geometric:.01,n=9000 --limit 9000 --planner random:count=8 --out e.html 2>err.e &
pid=$!
for _ in $(seq 300); do [ -s e-times.jsonl ] && break; sleep .1; done
kill -INT $pid
wait $pid
check "interrupted: the exit status" is $? 1
check "and the words" grep -q 'interrupted; e.html has the measurements so far' err.e
check "and the page" grep -q '</html>' e.html

# ---- progress on a terminal
if command -v script >/dev/null; then
    TERM=xterm script -qec "$weft lab --quick --corpus geometric:.01,n=9000 --limit 9000 --hidden 16 --seconds 3 --only=times --rounds=64 --planner random:count=8 --out w.html" /dev/null >shown 2>&1
    check "what is being done" grep -q 'times, round 1 of 64: random:count=8' shown
    check "and how much of it is done" grep -qE ' [1-9][0-9]* %  times' shown
    check "the progress line is cleared before a message" eval 'tail -n 1 shown | grep -q "$(printf "\r\033\\[K")weft: lab: the time limit of 3 s is over"'
fi

# ---- an external planner
cat >own.c <<'C'
#include "weft_plan.h"
static weft_status snake(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    int64_t used[8] = { 0 }, width = 0;
    (void)o;
    for (int64_t i = 0; i < n; i++) {
        int32_t r = (int32_t)(i / 8 % 2 ? 7 - i % 8 : i % 8);
        if (weft_plan_add(p, (weft_segment){ i, used[r], 0, len[i], r, -1 }))
            return WEFT_ENOMEM;
        used[r] += len[i], width = used[r] > width ? used[r] : width;
    }
    p->in_rows = true;
    return weft_plan_end_batch(p, 8, width);
}
const weft_planner snake_planner = { "snake", "-", "back and forth", "", WEFT_PLAN_WHOLE, snake };
C
if ${CC:-cc} -shared -fPIC -I"$root" own.c -o own.so 2>cc.log; then
    check "a planner of others" exits 0 '' run --planner ./own.so:snake_planner --out f.html
    check "its outputs are exact also" is "$(lines f exactness ./own.so | values differ)" 0
    check "it contaminates nothing" is "$(lines f contamination ./own.so | values differ)" 0
else
    cat cc.log; check "a planner of others compiles" false
fi

# ---- plans of another program for the lengths of the training data
cat >mine.awk <<'A'
{ len[NR - 1] = $1 }
END {                                   # concatenated and cut every 32 tokens; then the same with carried states
    for (carry = 0; carry < 2; carry++) {
        printf "{\"planner\": \"cut%s\", \"capacity\": 32, \"batch_rows\": %d, \"carry\": %s, \"rows\": [[", carry ? " and carried" : "", carry ? 1 : 3, carry ? "true" : "false"
        room = 32
        for (i = 0; i < NR; i++) for (at = 0; at < len[i]; at += n) {
            if (!room) { printf "], ["; room = 32 }
            n = len[i] - at < room ? len[i] - at : room
            printf "%s[%d, %d, %d]", room < 32 ? ", " : "", i, at, n
            room -= n
        }
        print "]]}"
    }
}
A
check "the lengths are printed" eval 'run --lengths >lengths && [ "$(wc -l <lengths)" = 114 ]'
awk -f mine.awk lengths >mine.jsonl
check "plans of a file" run --from mine.jsonl --planner order:count=8 --out i.html
check "all plans have their row in the page" eval '[ "$(grep -o "<t[dh][^>]*>cut and carried" i.html | wc -l)" -ge 3 ]'
check "differences of plans without carried states are counted" below 100 "$(lines i exactness 'cut"' | values differ)"
check "with it outputs are those of whole sequences" is "$(lines i exactness 'cut and carried' | values differ)" 0
check "they contaminate nothing" is "$(grep -F '"contamination"' i-times.jsonl | grep '"cut' | values differ | xargs)" "0 0"
check "a plan of other lengths" exits 1 'mine.jsonl:1: ' run --limit=60 --from mine.jsonl --out g.html
check "only plans of a file" run --from mine.jsonl --only=layouts --out j.html
check "a missing file of plans" exits 1 'gone.jsonl' run --from gone.jsonl --out g.html

# ---- bad input
check "no such corpus, the nearest named" exits 1 '"fortunes" is near' "$weft" lab --corpus fortunse --planner order:count=2 --out g.html
check "no such planner, the nearest named" exits 2 '"random" is near' run --planner rndom:count=8 --out g.html
check "no sequence" exits 1 'found 0 different sequences' "$weft" lab --corpus uniform:1:3,n=0 --planner order:count=2 --out g.html
check "a word in the file" exits 1 'is not a length' "$weft" lab --corpus file:"$root/LICENSE" --planner order:count=2 --out g.html
check "no planner" exits 2 'found no --planner PLANNER' run --out g.html
check "no corpus" exits 2 'found no --corpus NAME' "$weft" lab --planner order:count=2 --out g.html
check "no page" exits 2 'found no --out FILE.html' run --planner order:count=2
check "no such option" exits 2 'unknown option --slow; see weft lab --help$' run --slow
check "no operand" exits 2 'found "order:count=2"; expected options only; give planners with --planner' run order:count=2
check "a planner is checked before anything runs" exits 2 '"order" is near; see' run --planner ordre:count=2 --out g.html
check "no number" exits 2 '--limit: found "many"' run --limit=many
check "a number that cannot be" exits 2 '--hidden: found "0"' run --hidden=0
check "no folder for the page" exits 1 'gone/g-times.jsonl' run --planner order:count=2 --out gone/g.html
check "a refusal leaves no page" eval '[ ! -e g.html ] && [ ! -e g-times.jsonl ]'
finish "weft lab"
