#!/usr/bin/env bash
# test_page.sh [--update]    tests `weft plan --from` and `--report`: plans survive a round trip through JSON, damaged ones are refused, and the
# page of a small corpus equals the one in tests/golden, which --update rewrites. B is the build.
set -u
update=$([ "${1:-}" = --update ] && echo yes)
. "$(dirname "$0")/script.sh"

awk 'BEGIN { for (i = 0; i < 200; i++) print (i * i * 7 + i * 13) % 41 + (i % 17 ? 0 : 30) }' >lengths
echo "7 3 5 2 8 1 4 6" >eight
: >nothing

"${CC:-cc}" -std=c11 -D_GNU_SOURCE -w -shared -fPIC -I"$root" -o page_lab.so "$root/tests/plan/page_lab.c"

# ---- plans from JSON: of every planner, and of options that are not visible in the pieces
round_trip() { "$weft" plan --json lengths "$1" >one.json && "$weft" plan --json --from one.json lengths >two.json && cmp one.json two.json; }
lines() { "$weft" plan --json "$@" | sed 's/^{"plans": \[//; s/^ //; s/\]}$//; s/,$//'; }
all_planners="order:count=5 order:count=7,shuffle=yes sorted:count=5,lookahead=20 random:count=8 pool:count=4,pool=3,shuffle=yes pool:tokens=90
    laplace:count=4,pool=3 tokens:budget=200,multiple=4 buckets:bounds=5/10/20,sizes=6/4/3/2 geometric:budget=100,ratio=1.5,least=4
    optimal_buckets:k=4,count=5 powers:budget=64,shuffle=yes next_fit:capacity=80 first_fit:capacity=80,rows=3 best_fit:capacity=80,open=4,rows=2,shuffle=yes
    worst_fit:capacity=80,limit=3 next_fit_decreasing:capacity=80 first_fit_decreasing:capacity=80 best_fit_decreasing:capacity=80,rows=4,lookahead=30
    worst_fit_decreasing:capacity=80 spfhp:capacity=80 spfhp_stacked:capacity=80 lpfhp:capacity=80 exact_fill:capacity=80 column_generation:capacity=80
    chunk:capacity=64 chunk:capacity=16,rows=5,carry=yes best_fit_split:capacity=20,rows=4 refill:slots=4 refill:slots=4,longest_first=yes
    streams:slots=4,window=10 fold balance:ranks=3 balance:ranks=3,method=kk
    modified_first_fit_decreasing:capacity=80,align=8 greedy_knapsack:capacity=80,extra=2 first_fit:capacity=80,squares=2000,longer=split
    best_fit:capacity=16,align=4,longer=truncate spfhp:capacity=16,longer=drop chunk:capacity=16,align=4,rows=1,carry=yes fold:align=7
    balance:ranks=3,per_square=.25,align=4"
for p in $all_planners; do check "$p comes back from JSON" round_trip "$p"; done
for p in $("$weft" plan --list | grep -o '^[a-z_]*'); do check "$p is among them" grep -qw "$p" <<<"$all_planners"; done
empty_trip() { "$weft" plan --json nothing "$1" >one.json && "$weft" plan --json --from one.json nothing >two.json && cmp one.json two.json; }
for p in order:count=2 first_fit:capacity=8 chunk:capacity=8,rows=2 refill:slots=2 streams:slots=2,window=3 fold; do check "$p of nothing comes back" empty_trip "$p"; done
woven() { "$weft" plan --json eight ./page_lab.so:woven_planner >one.json && "$weft" plan --json --from one.json eight >two.json && cmp one.json two.json; }
check "a plan of another program, with pieces in any order" woven
check "with all its fields" has "$(tr -d ' \n' <one.json)" '"rows":[[[1,0,3],[4,0,4]],[[0,0,7]],[[2,0,3]],[[2,3,2],[3,0,2]],[[4,4,4],[5,0,1]],[[6,0,4]]],"dropped":6,"batch_rows":[3,2,1],"width":[12,9,10],"columns":[[0,4],[5],[0],[0,3],[0,5],[0]],"carry":[false,false,false,false,false,false,true,false,false],"figures"'
lines lengths $all_planners >all.jsonl
check "a plan a line" is "$(wc -l <all.jsonl)" "$(wc -w <<<"$all_planners")"
check "all in one file" eval '"$weft" plan --json --from all.jsonl lengths | cmp - <("$weft" plan --json lengths $all_planners)'
check "beside planners, in the table" is "$("$weft" plan --from all.jsonl lengths order:count=9 | awk '{ print $1 }')" "$(echo planner; echo order:count=9; tr -s ' \n' '\n\n' <<<"$all_planners")"

# ---- by hand
from() { printf '%s\n' "$@" >by_hand; "$weft" plan --json --from by_hand eight; }
figures() { from "$@" | tr -d ' \n' | sed 's/.*"figures"//'; }
check "whole sequences and pieces" is "$(figures '{"batches": [[0, 1, 2], [3, [4, 0, 5]], [[4, 5, 3], 5, 6, 7]]}' | cut -c1-61)" ':{"batches":3,"rows":9,"segments":9,"tokens":36,"cells":55,"f'
check "rows of a capacity" is "$(figures '{"planner": "mine", "rows": [[0, 5], [7, 3], [2, 1], [4], [6]], "capacity": 8}' | grep -o '"l1.*')" '"l1":5,"l2":5}}]}'
check "a name that JSON escapes" has "$(from '{"planner": "a\"b\u0001<&", "batches": [[0,1,2,3,4,5,6,7]]}')" '{"planner": "a\"b\u0001<&", '
check "a plan without a name" eval 'from "" "{\"batches\": [[0,1,2,3,4,5,6,7]]}" | grep -qF "\"planner\": \"by_hand:2\""'
check "a state that is carried" eval 'from "{\"rows\": [[[4,0,4]],[[4,4,4]],[0],[1],[2],[3],[5],[6],[7]], \"batch_rows\": [1,8], \"carry\": [false,true,false,false,false,false,false,false,false]}" | grep -q "\"carry\": true"'

bad() {                                 # PATTERN PLAN..: refused with these words
    local pattern=$1; shift
    printf '%s\n' "$@" >by_hand
    check "refused: $pattern" exits 1 "$pattern" "$weft" plan --json --from by_hand eight
    check "nothing but the error: $pattern" eval '[ "$(wc -l <output)" = 1 ]'
}
bad "by_hand:2: column .* expected a plan as JSON" '{"batches": [[0,1,2,3,4,5,6,7]]}' '{"batches": [[0,1,2,3,'
bad 'by_hand:1: expected a plan, {"planner"' '[]'
bad 'by_hand:1: expected a list "batches" or "rows"' '{"planner": "x"}'
bad 'by_hand:1: unknown key "batch_row"; expected one of planner batches' '{"rows": [[0],[1],[2],[3],[4],[5],[6],[7]], "batch_row": 4}'
bad 'by_hand:1: expected a list "batches" or "rows"' '{"batches": [[0]], "rows": [[0]]}'
bad 'by_hand:1: 36 tokens are missing' '{"batches": []}'
bad 'by_hand:1: 6 tokens are missing, the first in sequence 7' '{"batches": [[0,1,2,3,4,5,6]]}'
bad 'by_hand:1: segment 1, 7 tokens of sequence 0 .* its first token is in two segments' '{"batches": [[0,0,1,2,3,4,5,6,7]]}'
bad "by_hand:1: a piece's sequence is out of range; expected a whole number in 0 .. 7" '{"batches": [[8]]}'
bad "a piece's sequence is out of range" '{"batches": [[-1]]}'
bad "expected a piece as a sequence's number or" '{"batches": [["0"]]}'
bad "expected a piece as a sequence's number or" '{"batches": [[[0, 1]]]}'
bad "a piece's count is not a whole number" '{"batches": [[[0, 0, 1.5]]]}'
bad '"batches": expected a list of batches' '{"batches": [0]}'
bad '"rows": expected a list of rows' '{"rows": [0]}'
bad "segment 0, 5 tokens of sequence 0 from token 3 on, .* expected tokens of the sequence, which has 7" '{"batches": [[[0, 3, 5]]]}'
bad "expected a position in the 1 rows of 8 cells of its batch" '{"rows": [[0, 1]], "capacity": 8}'
bad '"planner": expected a string' '{"planner": 3, "batches": []}'
bad '"capacity" is out of range' '{"capacity": -3, "rows": []}'
bad 'wider than "capacity"' '{"capacity": 3, "rows": [[0]], "width": 9}'
bad '"batch_rows" and the number of rows differ' '{"rows": [[0], [1]], "batch_rows": [3]}'
bad '"batch_rows" and the number of rows differ' '{"rows": [[0], [1]], "batch_rows": 0}'
bad '"batch_rows" of a batch is less' '{"batches": [[0, 1]], "batch_rows": 1}'
bad '"batch_rows" of a batch is less' '{"batches": [[0, 1]], "batch_rows": 2147483647}'
bad 'number of cells overflows' "{\"batches\": [[]$(yes ', []' | head -n 300 | tr -d '\n')], \"batch_rows\": 16777216, \"width\": 2147483647}"
bad '"width" of a batch is missing' '{"batches": [[0], [1]], "width": [9]}'
bad 'expected a number for each batch in "batch_rows" and "width"' '{"batches": [[0], [1]], "width": [9, 9, 9]}'
bad '"columns": expected a list for each row' '{"rows": [[0], [1]], "columns": [[0], []]}'
bad "in row 0 from column 3 on: another segment ends at column 7 of the row" '{"rows": [[0, 1]], "columns": [[0, 3]]}'
bad 'expected "columns" to be a list' '{"batches": [[0]], "columns": [[0]]}'
bad '"carry": expected true, or a list' '{"batches": [[0,1,2,3,4,5,6,7]], "carry": [true]}'
bad 'no piece of the batch before ends where it begins' '{"batches": [[0,1,2,3,4,5,6,7]], "carry": [true,true,true,true,true,true,true,true]}'
bad "duplicate object key" '{"batches": [], "batches": []}'
bad "found no plan; expected one a line" ''
bad 'by_hand: plan 1: expected a list "batches" or "rows"' '{"plans": [{}]}'
bad 'by_hand:2: .*; expected JSON' '{"plans": [{}'
bad '"plans": expected a list' '{"plans": 3}'
check "no such file" exits 1 '--from gone: No such file' "$weft" plan --from gone eight
check "two files" exits 2 'from: found twice' "$weft" plan --from a --from b eight
check "no lengths" exits 2 'a file of lengths' "$weft" plan --from by_hand

# ---- the page
golden() {                              # NAME FILE: the same bytes except the version and the fixed rules of style; --update writes it
    local want=$root/tests/golden/$1 rules='3,/^padding:.1em .3em}section/d'
    case $1 in *.txt) rules= ;; esac
    sed "s/$version/VERSION/g; $rules" "$2" >got.html
    if [ "$update" = yes ]; then cp got.html "$want"; fi
    cmp got.html "$want" || { diff got.html "$want" | cut -c1-300 | head -n 6; return 1; }
}
page() { "$weft" plan --report page.html lengths order:count=8 pool:count=8,pool=5,shuffle=yes best_fit_decreasing:capacity=80,rows=4 "$@"; }
version=$("$weft" --version | sed 's/\./\\./g')
check "a page" page streams:slots=4,window=20
cp page.html first.html
check "a second time" page streams:slots=4,window=20
check "the same bytes" cmp page.html first.html
check "it contains the plans from JSON" eval 'page --from all.jsonl 2>/dev/null; "$weft" plan --report page.html --from all.jsonl lengths && grep -q "<th scope=\"row\">$(wc -w <<<"$all_planners") " page.html'
check "nothing that was measured" eval 'grep -q "Nothing was run for this page" first.html'
check "no times without that" eval 'grep -q "No times were measured for this page: weft lab measures them" first.html && ! grep -q "planner ms" first.html'
check "planners' times with --times" eval '"$weft" plan --times --report page.html lengths order:count=8 && grep -q "<th scope=\"col\">planner ms" page.html'
check "which come before all figures" eval '[ "$(grep -obF ">planner ms<" page.html | head -n 1 | cut -d: -f1)" -lt "$(grep -obF ">pieces a row<" page.html | head -n 1 | cut -d: -f1)" ]'
check "the command as a shell reads it" eval '"$weft" plan --report "a page.html" --from=all.jsonl lengths && grep -q "<pre tabindex=\"0\">weft plan --report .a page.html. --from=all.jsonl lengths</pre>" "a page.html"'
check "an empty corpus" eval '"$weft" plan --report empty.html nothing order:count=3 refill:slots=2 && grep -q "No sequence has a token" empty.html'
check "from the standard input" eval '"$weft" plan --report stdin.html - order:count=3 <lengths && grep -q "standard input, 200 sequences" stdin.html'
from '{"planner": "<script>alert(1)</script>&\"", "batches": [[0,1,2,3,4,5,6,7]]}' >/dev/null
check "a name is no markup" eval '"$weft" plan --report named.html --from by_hand eight && [ "$(grep -c "<script" named.html)" = 1 ] && grep -q "&lt;script&gt;alert(1)&lt;/" named.html'

# counts the pictures of well-known kinds
echo 4 6 8 5 4 3 7 8 | "$weft" plan --report eight.html - order:count=8 >/dev/null
has_words() { sed 's/<[^>]*>//g' "$1" | tr '\n' ' ' | grep -qF "$2" || { echo "$1 lacks $2"; return 1; }; }
check "45 of 64 cells" has_words eight.html "Padded: 45 tokens in 64 cells, 0 of 64 (0.0 %) saved; 8 steps; batch_sizes 8 8 8 7 5 4 3 2."
check "19 of them saved, and no step" has_words eight.html "Packed: 45 tokens in 45 cells, 19 of 64 (29.7 %) saved; 8 steps; batch_sizes 8 8 8 7 5 4 3 2."
echo 9 8 6 4 3 2 | "$weft" plan --report six.html - order:count=6 >/dev/null
check "32 of 54 cells" has_words six.html "Packed: 32 tokens in 32 cells, 22 of 54 (40.7 %) saved; 9 steps; batch_sizes 6 6 5 4 3 3 2 2 1."
check "26 sums of 48" eval 'sed "s/ data-label=\"[^\"]*\"//g" six.html | grep -qF "<td>32</td><td>54</td><td>40.7</td><td>26</td><td>48</td>"'

# all measurements of a lab, from formulas
check "a page with all measurements" exits 1 "the page is written" "$weft" plan lengths ./page_lab.so:page_planner
check "a verdict, with its reason" grep -q "<strong>Take 1 random.*it is the fastest, and no other plan ties within the spread of the times" measured.html
check "with its range" grep -q "A pass takes 100.0 ms (90.0 to 120.0)." measured.html
check "how busy the machine was" grep -q "<dt>Machine</dt><dd>CPU time was 93 %" measured.html
check "without times by cells, and how to learn more" eval 'has_words first.html "No times are known: plans with up to 10 % more cells than the fewest tie" && has_words first.html "weft plan --explain=lstm:128 predicts times, weft lab measures them"'
check "a short table of the best" eval 'sed -n "/id=\"verdict\"/,/<\/table>/p" first.html | grep -o "<th scope=\"row\">[0-9]*" | grep -o "[0-9]*$" | xargs | grep -q "^[1-4] [1-4] [1-4] [1-4]$"'
check "a cell has the head of its column, for phones" eval '[ "$(grep -o "<td" measured.html | wc -l)" = "$(grep -o "<td[^>]* data-label=" measured.html | wc -l)" ]'
check "every figure has its numbers" eval '[ "$(grep -o "<figure" measured.html | wc -l)" = "$(grep -o "<data value=\"[^\";]*;[^\"]*[0-9]" measured.html | wc -l)" ]'
check "a histogram has its bars" grep -q '<data value="curve,length in tokens,sequences,low;.*;mean [0-9.]*,' first.html
check "one script, of at most 1,500 bytes" eval '[ "$(grep -c "<script" measured.html)" = 1 ] && [ "$(sed -n "/<script>/,/<\/script>/p" measured.html | sed "s/.*<script>//; /^<\/script>/d" | wc -c)" -le 1500 ]'
check "planners of others have no hard instances, by name" eval '"$weft" plan --report theirs.html --from by_hand eight && has_words theirs.html "given to built-in planners only, so not to 1"'
check "it equals the golden page" golden page_measured.html measured.html
check "the report equals the golden one" golden paper_measured.txt measured.md
check "its text is escaped" grep -q 'a corpus &amp; its &quot;name&quot; &lt;b&gt;é��' measured.html
check "no section is left out" eval '! grep -qE "for this page|not compared" measured.html'

for f in first.html measured.html empty.html named.html; do
    check "$f needs nothing else" eval '! grep -nE "<script[^>]|<link|<img|<iframe|src=|@import|url\([^#]|https?:" $f'
    check "$f: each image has a title and a description" is "$(grep -o '<svg viewBox' $f | wc -l)" "$(grep -oE '<svg viewBox="[^"]*" role="img" aria-labelledby="t[0-9]* d[0-9]*"><title id="t[0-9]*">[^<]+</title><desc id="d[0-9]*">[^<]+</desc>' $f | wc -l)"
    check "$f: no id twice" is "$(grep -o ' id="[^"]*"' $f | sort | uniq -d)" ""
    check "$f: each referenced id exists" eval 'for i in $(grep -oE "(labelledby=\"|href=\"#)[^\"]*" $f | sed "s/.*[\"#]//"); do grep -q "id=\"$i\"" $f || { echo "$i"; exit 1; }; done'
    check "$f: no NaN and no infinity" eval '! sed "s/<[/]*[a-z]*>//g" $f | grep -nE "=\"[^\"]*(nan|inf)[ \"]|[ML-](nan|inf)"'
    check "$f: thirteen sections" is "$(grep -o '<section' $f | wc -l)" 13
    if command -v xmllint >/dev/null; then
        check "$f: well-formed" xmllint --noout $f
        check "$f: HTML" eval '! xmllint --html --noout $f 2>&1 | grep "error" | grep -v "Tag [a-z]* invalid"'
    fi
done
# Contrast by WCAG 2: at least 4.5 for text on the page and on pieces, 3 for lines and marks; light, then dark.
contrast() {
    tr '{},;' '\n\n\n\n' <first.html | sed -n 's/^--\([a-z0-9]*\):#\([0-9a-f]*\)$/\1 \2/p' | awk '
        function hex(s, i) { return index("0123456789abcdef", substr(s, i, 1)) - 1 }
        function part(x) { x /= 255; return x <= .03928 ? x / 12.92 : ((x + .055) / 1.055) ^ 2.4 }
        function light(s,  k, v) { for (k = 0; k < 3; k++) v[k] = length(s) == 3 ? 17 * hex(s, k + 1) : 16 * hex(s, 2 * k + 1) + hex(s, 2 * k + 2)
                                   return .2126 * part(v[0]) + .7152 * part(v[1]) + .0722 * part(v[2]) }
        function want(a, b, least,  x, y, c) { x = light(is[a]); y = light(is[b]); c = x > y ? (x + .05) / (y + .05) : (y + .05) / (x + .05)
                                               checked++; if (c < least) { print a, b, c; bad = 1 } }
        function all(  k) { want("ink", "ground", 4.5); want("quiet", "ground", 4.5); want("link", "ground", 4.5); want("line", "ground", 3)
                            for (k = 0; k < 8; k++) { want("ink", "t" k, 4.5); want("c" k, "ground", 3) } }
        $1 == "ground" && n++ { all() }
        { is[$1] = $2 }
        END { all(); exit bad || n != 2 || checked != 40 }'
}
check "colours have enough contrast" contrast
case ${V:-} in '')
    awk 'BEGIN { for (i = 0; i < 100000; i++) print int(exp(((i * 7919) % 100003) / 100003 * 7.5)) + 1 }' >many
    check "ten planners and a hundred thousand sequences" "$weft" plan --report many.html many order:count=64 random:count=64 sorted:count=64 pool:count=64,shuffle=yes \
        laplace:count=64 tokens:budget=16384 powers:budget=8192 best_fit_decreasing:capacity=2048,rows=16 refill:slots=64 streams:slots=64,window=128
    check "take less than 2 MB" eval '[ "$(wc -c <many.html)" -lt 2000000 ]' ;;
esac
mkdir -p closed; echo old >closed/page.html; chmod a-w closed
check "a missing folder" exits 1 "gone/page.html" "$weft" plan --report gone/page.html lengths order:count=8
if ! : 2>/dev/null >closed/x; then
    check "a folder that cannot be written" exits 1 "cannot be written" "$weft" plan --report closed/page.html lengths order:count=8
    check "the old page is unchanged" is "$(cat closed/page.html)" old
fi
check "a planner that fails leaves the page" eval 'echo old >kept.html; ! "$weft" plan --report kept.html lengths best_fit:capacity=3 2>/dev/null && [ "$(cat kept.html)" = old ]'
check "no file for the page" exits 2 "report: found no value; expected FILE.html; see weft plan --help$" "$weft" plan --report
check "an option in place of a file" exits 2 "report: found no value" "$weft" plan --report --json eight order:count=2
finish "plans from JSON and the page"
