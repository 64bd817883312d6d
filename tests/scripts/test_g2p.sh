#!/usr/bin/env bash
# test_g2p.sh    runs examples/g2p like a user: trains, stops it, kills it, resumes to the same bytes, tests, decodes, gives bad input.
# B is the build; WEFT_KILLS the number of kills (5, 2 under a sanitizer; 100 under WEFT_SOAK).
set -u
. "$(dirname "$0")/script.sh"
kills=$(how_often 5 2)

{ language 700; printf '%s\n' '("Mixed" n (((m ih k s t) 1)))' '("no-word" n (((n ow) 1)))' ''; } >dict
run=("$g2p" --data dict --hidden 16 --embed 8 --batch 8 --epochs 2 --warmup 20 --every 7 --threads 2)
last_line() { tail -n 1 "$1" | grep -Eq '^g2p: PER [0-9]+\.[0-9]{2} % WER [0-9]+\.[0-9]{2} % on [0-9]+ words, [0-9]+ k parameters, [0-9]+ s$'; }
errors() { tail -n 1 "$1" | sed 's/, [0-9]* s$//'; }               # the last line without its seconds

# ---- an undisturbed run, twice
mkdir pictures
check "it trains" timed "${run[@]}" --out whole.h5 --log log --pictures pictures
cp out first
check "the last line" last_line first
check "a dev error each epoch" eval '[ "$(grep -c "dev PER" first)" = 2 ] && [ "$(grep -c dev_per log)" = 2 ]'
check "words read aloud" grep -q "words it never saw" first
check "JSON lines" eval '[ -s log ] && ! grep -vq "^{.*}$" log'
for p in curve attention batch; do check "$p.svg" eval "[ -s pictures/$p.svg ] && tail -n 1 pictures/$p.svg | grep -q '^</svg>$'"; done
check "again the same bytes" makes again.h5 whole.h5 "${run[@]}" --out again.h5
check "other bytes with another seed" eval '"${run[@]}" --out seed.h5 --seed 2 && ! cmp -s whole.h5 seed.h5'
check "the same bytes with one thread" makes one.h5 whole.h5 "${run[@]}" --out one.h5 --threads 1

# ---- cmudict as published, in the same words: with comments, variants, one space or two, with or without stress
cat >published <<'END'
;;; # CMUdict  --  Major Version: 0.07
## a comment of older versions
!EXCLAMATION-POINT  EH2 K S K L AH0 M EY1 SH AH0 N P OY2 N T
"CLOSE-QUOTE  K L OW1 Z K W OW1 T
#HASH-MARK  HH AE1 SH M AA2 R K
(PAREN  P ER0 EH1 N
'BOUT  B AW1 T
A  AH0
A(1)  EY1
able ey1 b ah0 l # the form of later versions
ABLE(2) EY B AH L
D\311J\300  D EY2 ZH AA1
READ  R EH1 D
READ(1)  R IY1 D
READ(12)\tR\tEH\tD\t
END
printf '%b' "$(cat published)\n" >cmudict
language 300 | sed -E '1d; s/^\("([a-z]*)" nil (.*)\)$/\1 \2/; s/[()]| [0-9]+\)//g' | awk '{ $1 = toupper($1) " "; print toupper($0) }' >>cmudict
{ language 300; printf '("%s" n (((%s) 1)))\n' left-out 'er m ey sh n p oy t ow z w hh aw d zh' a ah a ey able 'ey b ah l' read 'r eh d' read 'r iy d'; } >festlex
check "festlex" "$g2p" --data festlex --epochs 0 --hidden 8 --embed 4 --out festlex.h5
check "the same bytes with cmudict" makes cmudict.h5 festlex.h5 "$g2p" --data cmudict --epochs 0 --hidden 8 --embed 4 --out cmudict.h5
check "in the form of other systems" eval 'sed "s/$/\r/" cmudict >dos && makes dos.h5 festlex.h5 "$g2p" --data dos --epochs 0 --hidden 8 --embed 4 --out dos.h5'
for bad in ABLE 'ABLE  ' '  EY1 B' 'ABLE  EY3 B' 'ABLE  EY12' 'ABLE  1' '(1)  EY1' 'ABLE  MUCHTOOLONG' 'ABLE  E(Y'; do
    { cat cmudict; printf '%s\n' "$bad"; } >baddict
    check "a bad line of cmudict" exits 1 "^g2p: baddict:$(wc -l <baddict): " "$g2p" --data baddict --out bad.h5
done

# ---- a saved file
check "--test" eval '"$g2p" --test whole.h5 >t && last_line t && [ "$(errors t)" = "$(errors first)" ]'
check "--test with the dictionary" eval '"$g2p" --test whole.h5 --data dict >t && [ "$(errors t)" = "$(errors first)" ]'
check "--test --beam" eval '"$g2p" --test whole.h5 --beam 3 >t && last_line t'
check "greedy" eval '"$g2p" --test whole.h5 --beam 1 >greedy && last_line greedy'
check "another result than greedy" eval '! [ "$(errors greedy)" = "$(errors first)" ]'
check "without the n-gram model" eval '"${run[@]}" --joint 0 --out plain.h5 && "$g2p" --test plain.h5 --said plain >t && last_line t'
check "a model with itself gives the same words" eval '"$g2p" --test plain.h5 --with plain.h5 --said two >t && cmp plain two'
check "two models" eval '"${run[@]}" --joint 0 --seed 2 --out plain2.h5 && "$g2p" --test plain.h5 --with plain2.h5 --said two >t && last_line t && ! cmp -s plain two'
check "--say with two models" eval '"$g2p" --say whole.h5 --with seed.h5 bade >t && grep -Eq "^  bade  +[a-z ]+$" t'
check "CTC" eval '"${run[@]}" --joint 0 --out ctc.h5 --ctc 1 --pictures pictures >t && last_line t'
check "CTC, the same bytes with one thread" makes ctc2.h5 ctc.h5 "${run[@]}" --joint 0 --out ctc2.h5 --ctc 1 --threads 1
check "CTC says a word" eval '"$g2p" --say ctc.h5 bade >t && grep -Eq "^  bade  +[a-z ]*$" t'
check "CTC, greedy" eval '"$g2p" --test ctc.h5 --beam 1 >t && last_line t'
check "CTC and decoders together" eval '"$g2p" --test ctc.h5 --with plain.h5 --said three >t && last_line t && ! cmp -s plain three'
check "--say" eval '"$g2p" --say whole.h5 BaDe cice >t && grep -Eq "^  bade  +[a-z ]+$" t && [ "$(wc -l <t)" = 2 ]'
check "a word too long for the n-gram model" eval '"$g2p" --say whole.h5 "$(printf "ba%.0s" {1..40})" >t && [ "$(wc -l <t)" = 1 ]'
check "--say --beam" eval '"$g2p" --say whole.h5 --beam 4 bade >t && grep -Eq "^  bade  +[a-z ]+$" t'
check "a resumed run that was complete, the same bytes" makes again.h5 whole.h5 "${run[@]}" --out again.h5 --resume

# ---- a language without exceptions is learnt by each kind of model
learns() { "$g2p" --data dict --joint 0 --hidden 32 --embed 16 --batch 8 --epochs 10 --warmup 20 --lr 0.005 --out learnt.h5 "$@" >t && grep -q 'PER 0.00 % WER 0.00 %' t; }
check "two decoders learn it" learns
check "one decoder learns it" learns --decoders 1 --beam 1
check "CTC learns it" learns --ctc 1
check "the n-gram model learns it without training" eval '"$g2p" --data dict --joint 4 --epochs 0 --hidden 8 --embed 4 --out joint.h5 >t && grep -q "PER 0.00 % WER 0.00 %" t'
{ cat dict; printf '("zzz" n (((%s) 1)))\n' "$(printf 'aa %.0s' {1..50000})"; } >odd
check "it leaves out a word with too many phones" eval '"$g2p" --data odd --joint 4 --epochs 0 --hidden 8 --embed 4 --out odd.h5 >t && grep -q "PER 0.00 % WER 0.00 %" t'
check "also from the file" eval '"$g2p" --test joint.h5 >t && grep -q "PER 0.00 % WER 0.00 %" t'

# ---- stopped by Ctrl-C, killed at any moment
for signal in INT TERM; do
    check "$signal is obeyed" obeys $signal stopped.h5 "${run[@]}" --out stopped.h5
    check "and it resumes to the same bytes" makes stopped.h5 whole.h5 "${run[@]}" --out stopped.h5 --resume
    check "with the same errors" is "$(errors out)" "$(errors first)"
done
for ((k = 0; k < kills; k++)); do check "killed and resumed to the same bytes" killed_and_resumed KILL whole.h5 "${run[@]}"; done
check "a run that saves once more" "${run[@]}" --out killed.h5 --resume
check "no temporary file remains" eval '! ls -A | grep -q tmp'

# ---- error messages
check "no arguments" exits 2 'expected --data DICT' "$g2p"
check "an unknown option" exits 2 'unrecognized option' "$g2p" --nonsense
check "no number" exits 2 'hidden: found "1.5"; expected a whole number' "$g2p" --data dict --hidden 1.5
check "out of range" exits 2 'dropout: found "2"; expected a number from 0' "$g2p" --data dict --dropout 2
check "n-grams too long" exits 2 'joint: found "13"; expected a whole number from 0 to 12' "$g2p" --data dict --joint 13
check "an unknown device" exits 2 'device: found "abacus"; expected cpu, cuda or best' "$g2p" --data dict --device abacus
check "two options that exclude each other" exits 2 'expected only one of --test, --say' "$g2p" --test whole.h5 --say whole.h5 word
check "--with in a training" exits 2 'with: expected --test or --say' "${run[@]}" --out whole.h5 --with seed.h5
check "--with of no file" exits 1 'nowhere.h5' "$g2p" --test whole.h5 --with seed.h5,nowhere.h5
check "--with of other phones" exits 1 'have different phones' "$g2p" --test whole.h5 --with festlex.h5
check "no words" exits 2 'say: found no words' "$g2p" --say whole.h5
check "an apostrophe" exits 2 'leave other characters out' "$g2p" --say whole.h5 "don't"
check "not a word" exits 2 'found "na1ve"; expected a word' "$g2p" --say whole.h5 na1ve
check "a word of nothing" exits 2 'found ""; expected a word' "$g2p" --say whole.h5 ''
check "no folder for pictures" exits 1 '/no/such: No such file' "${run[@]}" --out pictures.h5 --pictures /no/such
check "and did not train" eval '! [ -e pictures.h5 ]'
check "a missing file" exits 1 'nowhere.h5' "$g2p" --test nowhere.h5
check "another file" exits 1 'dict' "$g2p" --say dict word
check "no dictionary" exits 1 'nodict: cannot be read: No such' "$g2p" --data nodict
check "a folder" exits 1 'cannot be read: Is a directory' "$g2p" --data .
check "an empty dictionary" exits 1 '0 words' "$g2p" --data /dev/null
for bad in '("a" n (((b) 1))' '("a" n (((b) 1))) x' '("a n (((b) 1)))' 'a n (((b) 1))' '("a" n ())' '("a" n (((b c) 1)' '("a" n (((muchtoolong) 1)))' '("" n (((b) 1)))'; do
    { head -n 30 dict; printf '%s\n' "$bad"; } >baddict
    check "a bad line" exits 1 '^g2p: baddict:31: ' "$g2p" --data baddict --out bad.h5
done
check "a place that cannot be written" exits 1 '/nowhere/x.h5: cannot be written' "${run[@]}" --out /nowhere/x.h5
check "another setting" exits 2 'hidden: found 17; expected 16, as whole.h5 was begun' "${run[@]}" --out whole.h5 --resume --hidden 17
{ cat dict; echo '("zzz" n (((z) 1)))'; } >other
check "another dictionary" exits 1 'begun with another dictionary' "$g2p" --data other --out whole.h5 --resume
check "none of these changed the file" cmp whole.h5 again.h5

finish g2p
