#!/usr/bin/env bash
# test_lab.sh    weft lab: a page and its times from small data, interruption, the limit of time, planners of others, bad input. B is the build.
set -u
weft=$(realpath "${B:-build}")/weft root=$(realpath "$(dirname "$0")/..")
. "$(dirname "$0")/script.sh"

small=(lab --quick --corpus uniform:1:30,n=120 --hidden=8 --update=100)
run() { "$weft" "${small[@]}" "$@"; }
lines() { grep -F "\"experiment\": \"$2\"" "$1-times.jsonl" | grep -F "\"planner\": \"$3"; }
values() { sed "s/.*\"$1\": \([^,}]*\).*/\1/"; }          # of a member, a line each
is() { [ "$1" = "$2" ] || { echo "is $1"; echo "expected $2"; return 1; }; }
below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }' || { echo "$1 is not below $2"; return 1; }; }

check "a page and its times" says 0 '' run --planner random:count=8 --planner chunk:capacity=16,rows=4 --planner chunk:capacity=16,rows=1,carry=yes \
    --planner sorted:count=8 --planner refill:slots=1 --out a.html
check "a page that is whole" eval 'grep -q "</html>" a.html && [ "$(grep -c "random:count=8" a.html)" -ge 1 ]'
! command -v xmllint >/dev/null || check "well formed" xmllint --html --noout a.html
check "every line is an object" eval '! grep -vq "^{.*}$" a-times.jsonl'
check "three rounds of times" is "$(lines a times random | wc -l)" 3
check "a prediction beside each" eval '[ "$(lines a times "" | values predicted_ms | awk "\$1 > 0" | wc -l)" = 15 ]'
check "the page has them, and what the device follows" eval 'grep -q "Predictions beside measurements" a.html && grep -q "This device follows" a.html'
check "outputs are those of whole sequences" is "$(lines a exactness random | values differ)" 0
check "padded ones, too" is "$(lines a exactness padded | values differ)" 0
check "a state that is carried makes no difference" is "$(lines a exactness chunk:capacity=16,rows=1,carry | values differ)" 0
check "a state that is lost does, which is counted" below 100 "$(lines a exactness chunk:capacity=16,rows=4 | values differ)"
check "no sequence touches another" is "$(grep -F '"contamination"' a-times.jsonl | grep -v none: | values differ | sort -u)" 0
check "nor does NaN" is "$(grep -F '"contamination"' a-times.jsonl | grep -v none: | values spread | sort -u)" 0
check "a touch would be seen" below 1000 "$(lines a contamination none: | values differ)"
check "and NaN that spreads" below 1000 "$(lines a contamination none: | values spread)"
check "many numbers were compared for it" below 10000 "$(lines a contamination random | values compared)"
check "one divisor for all: no bias" below "$(lines a gradient random | grep '"mean_of": "plan"' | values bias)" 1e-5
check "a divisor a batch: some, in sorted order much" below .01 "$(lines a gradient sorted | grep '"mean_of": "batch"' | values bias)"
check "sequences that count alike are another aim" below .001 "$(lines a gradient random | grep '"mean_of": "sequences"' | values bias)"
updates() { lines a learning "$1" | grep '"seed": 1' | values updates | sort -n | tail -1; }
check "as many updates whatever the planner" below "$(($(updates random) - $(updates chunk:capacity=16,rows=4)))" 2
check "and not fewer" below -2 "$(($(updates random) - $(updates chunk:capacity=16,rows=4)))"
check "three seeds" is "$(lines a learning random | values seed | sort -u | xargs)" "1 2 3"
check "what is learnt: the loss falls" below "$(lines a learning random | grep '"seed": 2' | values loss | tail -1)" "$(lines a learning random | grep '"seed": 2' | values loss | head -1)"
check "a batch above an update has no curve, which is said" eval '[ -z "$(lines a learning refill)" ]'
run --planner random:count=8 --out b.html >out 2>&1
same() { lines "$1" learning random | sed 's/"seconds": [^,]*, //'; lines "$1" gradient random; }
check "the same numbers again" is "$(same b)" "$(same a)"
check "said on stderr" says 0 'refill.* no learning curve' run --planner refill:slots=4 --out c.html

check "what is held out is said" is "$(grep -F '"data"' a-times.jsonl | values held_out_sequences)" 6
if "$weft" corpora fortunes >lengths 2>/dev/null; then
    check "all fortunes" says 0 'are over' "$weft" lab --corpus fortunes --limit=99999 --seconds=1 --planner order:count=64 --out h.html
    check "the fixed split: every twentieth that is not a repetition" is "$(grep -F '"data"' h-times.jsonl | values held_out_sequences) $(grep -F '"data"' h-times.jsonl | values held_out_tokens)" "757 131316"
else
    echo "skipped: fortunes: $("$weft" corpora fortunes 2>&1)"
fi

# ---- the time, and the user
check "the time is over: a page of what there is" says 0 '1 s are over; d.html has what' run --seconds=1 --limit=100000 --corpus geometric:.01,n=9000 --planner random:count=8 --out d.html
check "it is whole" grep -q '</html>' d.html
"$weft" lab --corpus geometric:.01,n=9000 --limit 9000 --planner random:count=8 --out e.html 2>err.e &
pid=$!
for _ in $(seq 300); do [ -s e-times.jsonl ] && break; sleep .1; done
kill -INT $pid
wait $pid
check "interrupted: the exit status" is $? 1
check "and the words" grep -q 'interrupted; e.html has what was measured' err.e
check "and the page" grep -q '</html>' e.html

# ---- a planner of others
cat >own.c <<'C'
#include "weft.h"
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
    check "a planner of others" says 0 '' run --planner ./own.so:snake_planner --out f.html
    check "its outputs are exact, too" is "$(lines f exactness ./own.so | values differ)" 0
    check "it contaminates nothing" is "$(lines f contamination ./own.so | values differ)" 0
else
    cat cc.log; check "a planner of others compiles" false
fi

# ---- bad input
check "no such corpus, the nearest named" says 1 '"fortunes" is near' "$weft" lab --corpus fortunse --planner order:count=2 --out g.html
check "no such planner, the nearest named" says 1 '"random" is near' run --planner rndom:count=8 --out g.html
check "no sequence" says 1 'has 0 different sequences' "$weft" lab --corpus uniform:1:3,n=0 --planner order:count=2 --out g.html
check "a word in the file" says 1 'is no length' "$weft" lab --corpus file:"$root/LICENSE" --planner order:count=2 --out g.html
check "no planner" says 2 '--planner PLANNER is missing' run --out g.html
check "no corpus" says 2 '--corpus NAME is missing' "$weft" lab --planner order:count=2 --out g.html
check "no page" says 2 '--out FILE.html is missing' run --planner order:count=2
check "no such option" says 2 '--slow is not understood' run --slow
check "no number" says 2 '--limit is "many"' run --limit=many
check "a number that cannot be" says 2 '--hidden is "0"' run --hidden=0
check "no folder for the page" says 1 'gone/g-times.jsonl' run --planner order:count=2 --out gone/g.html
check "a refusal leaves no page" eval '[ ! -e g.html ] && [ ! -e g-times.jsonl ]'
finish "weft lab"
