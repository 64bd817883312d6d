#!/usr/bin/env bash
# test_tagger.sh: stress of words by a softmax and by a conditional random field, both formats of a dictionary, and mistakes. B is the build.
. "$(dirname "$0")/script.sh"
tagger=$examples/tagger
options=(--threads 1 --hidden 12 --embed 8 --layers 1 --epochs 12 --batch 16 --lr .03 --dropout 0)

# Words of 2 to 4 syllables: the last but one has stress 1, the first of four stress 2.
words() { awk -v format="$1" 'BEGIN { srand(7); split("b d g k m n p s t", c, " "); split("a e i o u", v, " "); split("aa eh ih ow uw", p, " ")
    while (i < 500) { n = 2 + int(3 * rand()); word = phones = syllables = ""; for (k = 1; k <= n; k++) {
        x = c[1 + int(9 * rand())]; y = 1 + int(5 * rand()); s = k == n - 1 ? 1 : n == 4 && k == 1 ? 2 : 0
        word = word x v[y]; phones = phones " " x " " p[y] s; syllables = syllables (k > 1 ? " " : "") "((" x " " p[y] ") " s ")" }
        if (seen[word]++) continue
        i++; print format == "festlex" ? "(\"" word "\" nil (" syllables "))" : word " " toupper(phones) } }'; }
words festlex >festlex; words cmudict >cmudict
check "a dictionary" exits 0 '^425 pronunciations to train, 25 dev, 50 test;' "$tagger" --data festlex --test "${options[@]}"
check "each tagger finds the rule" eval "awk '/tags/ { n++; for (k = 4; k <= 7; k++) if (\$k < 92) bad = 1 } END { exit bad || n != 3 }' output"
sed 's/ *[0-9]*$//' output >first
check "the same numbers with two threads" eval '"$tagger" --data festlex --test "${options[@]}" --threads 2 | sed "s/ *[0-9]*$//" | diff - first'
check "without test words" eval '! "$tagger" --data festlex "${options[@]}" --epochs 1 | grep test$'
check "two seeds" exits 0 '^CRF, memory tags ' "$tagger" --data festlex "${options[@]}" --epochs 1 --seeds 2
"$tagger" --data festlex --write words; "$tagger" --data cmudict --write others
check "both formats have the same marks" cmp words others
check "the rule in the file" eval "awk '{ n = NF; if (\$(n - 2) !~ /:2\$/ || \$n !~ /:1\$/ || \$3 !~ /:0\$/ || \$4 !~ (n == 10 ? \":3\$\" : n == 8 ? \":1\$\" : \":2\$\")) exit 1 } END { exit NR != 500 }' words"
check "every 10th word is a test word, every 20th a dev word" is "$(cut -d' ' -f1 words | sort | uniq -c | tr -s ' \n' ' ')" " 25 dev 50 test 425 train "
check "each word is in one part" is "$(cut -d' ' -f2 words | sort -u | wc -l)" 500
check "no dictionary given" exits 2 'expected --data DICT' "$tagger"
check "no such dictionary" exits 1 'none: cannot be read' "$tagger" --data none
check "a file that cannot be written" exits 1 'none/file: No such file' "$tagger" --data festlex --write none/file
check "a damaged line" eval 'sed "3s/.*/(\"x\" nil (((b) 1/" festlex >bad; exits 1 bad:3:.found "$tagger" --data bad'
finish "tagger"
