#!/usr/bin/env bash
# test_corpora.sh    tests corpora by name: exact lengths of generated ones, counts of installed packages, and refused names. B is the build.
set -u
. "$(dirname "$0")/script.sh"

lengths() { "$weft" corpora "$1" | xargs; }
rows() { "$weft" plan --corpus "$1" "$2" | awk 'NR == 2 { print $3 }'; }
counted() { "$weft" corpora "$1" | awk '{ n++; s += $1; q += $1 * $1 } END { m = s / n; printf "%d %d %.4f %.4f", n, s, m, sqrt(q / n - m * m) }'; }

# ---- generated corpora
check "all alike" is "$(lengths equal:7,n=4)" "7 7 7 7"
check "none" is "$(lengths uniform:1:5,n=0)" ""
check "one giant, in the middle" is "$(lengths giant:1:9,n=5)" "1 1 9 1 1"
check "a corpus of one long sequence" is "$(lengths giant:1:9,n=1)" "9"
check "one above the capacity" is "$(lengths above:8,n=3)" "8 9 8"
check "halves" is "$(lengths half:8,n=2)" "5 5"
check "sorted already" is "$(lengths sorted:1:9,n=5)" "1 3 5 7 9"
check "two kinds and no other" is "$("$weft" corpora twopoint:1:64 | sort -nu | xargs)" "1 64"
check "the worst of first fit" is "$(lengths ff-worst | tr ' ' '\n' | sort -n | uniq -c | xargs)" "7 6 7 10 3 16 10 34 10 51"
check "first fit makes 17 rows of it" is "$(rows ff-worst first_fit:capacity=101)" 17
check "10 are enough" is "$(rows ff-worst best_fit_decreasing:capacity=101)" 10
check "first fit decreasing makes 11 m rows of its worst" is "$(rows ffd-worst:100,n=300 first_fit_decreasing:capacity=100)" 110
check "9 m are enough" is "$(rows ffd-worst:100,n=300 column_generation:capacity=100)" 90
check "no two halves share a row" is "$(rows half:64,n=50 best_fit_decreasing:capacity=64)" 50
check "a sequence above the capacity is refused" exits 1 'sequence 1 has 9 tokens' "$weft" plan --corpus above:8,n=3 first_fit:capacity=8
check "no sequence at all has a plan" is "$(rows uniform:1:5,n=0 first_fit:capacity=9)" 0
check "the same seed, the same lengths" is "$(lengths uniform:1:9,seed=4)" "$(lengths uniform:1:9,seed=4)"
check "another seed, others" eval '[ "$(lengths uniform:1:9,seed=4)" != "$(lengths uniform:1:9,seed=5)" ]'
check "n is 3000 by default" is "$("$weft" corpora geometric:.1 | wc -l)" 3000
check "uniform from 1 to 4, all of them" is "$("$weft" corpora uniform:1:4,n=4000 | sort -n | uniq -c | awk '$1 > 880 && $1 < 1120 { print $2 }' | xargs)" "1 2 3 4"
check "geometric: the mean is 1 / p" near "$(counted geometric:.1,n=100000 | cut -d' ' -f3)" 10 .15
check "geometric with probability 1" is "$(lengths geometric:1,n=3)" "1 1 1"
check "lognormal: half of them below exp mu" near "$("$weft" corpora lognormal:5:1,n=100000 | awk '$1 < exp(5)' | wc -l)" 50000 800
check "lognormal: the logarithm's deviation" near "$("$weft" corpora lognormal:9:.5,n=100000 | awk '{ x = log($1) - 9; q += x * x } END { print sqrt(q / NR) }')" .5 .006

# ---- a file
printf '3 1\n2' >lengths
printf '3 1\n2 two' >word
check "a file" is "$(lengths file:lengths)" "3 1 2"
check "a file as a corpus gives the same plan" is "$("$weft" plan --corpus file:lengths order:count=2)" "$("$weft" plan lengths order:count=2)"
check "a word in it" exits 1 'word:2: "two" is not a length' "$weft" corpora file:word
check "no file" exits 1 'gone: No such file' "$weft" corpora file:gone
check "no path" exits 1 'found no path; expected file:PATH' "$weft" corpora file:

# ---- errors
check "no such corpus, the nearest named" exits 1 '"fortunes" is near' "$weft" corpora fortune
check "none is near" exits 1 'expected cmudict' "$weft" corpora xyzzyplugh
check "the same of weft plan" exits 1 '"words" is near' "$weft" plan --corpus wrods order:count=2
check "a number is missing" exits 1 'found too few numbers; expected lognormal:MU:SIGMA' "$weft" corpora lognormal:3
check "a number too many" exits 1 'a number too many' "$weft" corpora uniform:1:5:6
check "a word for a number" exits 1 'a word instead of a number' "$weft" corpora uniform:1:five
check "least above most" exits 1 'LEAST <= MOST' "$weft" corpora uniform:5:1
check "a negative n" exits 1 'an n outside 0' "$weft" corpora uniform:1:5,n=-1
check "an n too large" exits 1 'an n outside 0' "$weft" corpora uniform:1:5,n=9999999999
check "no such key" exits 1 'another key than n and seed' "$weft" corpora uniform:1:5,m=3
check "a probability of 0" exits 1 '0 < P <= 1' "$weft" corpora geometric:0
check "not a number" exits 1 'MU <= 20' "$weft" corpora lognormal:nan:1
check "a length that no int32 holds" exits 1 'expected whole numbers' "$weft" corpora uniform:1:3000000000
check "a capacity that has no quarter" exits 1 'a multiple of 4' "$weft" corpora ffd-worst:50
check "an n that has no thirtieth" exits 1 'expected n as a multiple of 30' "$weft" corpora ffd-worst:100,n=31
check "keys for files that are read" exits 1 'extra text at the end' "$weft" corpora words,n=3
check "two corpora" exits 2 'found "unicode"; expected at most one name; see weft corpora --help$' "$weft" corpora words unicode
check "no such option" exits 2 'unknown option --nmes; --names is near; see weft corpora --help$' "$weft" corpora --nmes
if [ -w /dev/full ]; then check "a full disk is reported" exits 1 'cannot write stdout' eval '"$weft" corpora equal:1 >/dev/full'; fi

# ---- packages: n, tokens, mean and deviation, counted by another program
"$weft" corpora >list || { echo "not so: weft corpora lists"; exit 1; }
check "a table, then missing corpora, then formulas" is "$(awk '/^corpus /{ k = 1 } / is not installed: /{ k = 2 } /^formulas/{ k = 3 } k < last { print "wrong" } { last = k } END { print k }' list)" 3
check "each row of the table has its numbers" is "$(sed -n "2,/^$/p" list | awk 'NF && !($2 ~ /^[0-9]+$/ && $7 ~ /^[0-9]+$/)')" ""
real() {                                # NAME N TOKENS MEAN SD P99 MAX
    if grep -q "^$1  *is not installed" list; then echo "skipped: $(grep "^$1 " list)"; return; fi
    check "$1: the list's line" is "$(awk -v c="$1" '$1 == c { print $2, $3, $6, $7 }' list)" "$2 $3 $6 $7"
    check "$1: its lengths" is "$(counted "$1" | awk '{ printf "%d %d %.1f %.1f", $1, $2, $3, $4 }')" "$2 $3 $4 $5"
}
real cmudict 105901 777131 7.3 2.2 13 22
real fortunes 15218 2531015 166.3 204.3 1085 2434
real words 104334 880476 8.4 2.6 15 23
real unicode 34924 901973 25.8 9.7 56 88
real dna 6000 2056551 342.8 299.4 1410 2561
real dna-first 10000 1088399 108.8 60.0 282 354
real dna-second 10000 1089986 109.0 59.6 277 366
finish "corpora"
