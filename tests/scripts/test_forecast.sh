#!/usr/bin/env bash
# test_forecast.sh    runs examples/forecast like a user: trains, stops it, kills it, resumes to the same bytes, tests, plots, gives bad input.
# B is the build; WEFT_KILLS the number of kills (3, 1 under a sanitizer; 100 under WEFT_SOAK).
set -u
. "$(dirname "$0")/script.sh"
kills=$(how_often 3 1)
forecast=$examples/forecast
models="encoder_decoder_lstm attention_lstm transformer_lstm tft pf_tft xtft"
run=("$forecast" --quick --threads 2 --every 3)
number='[0-9]+\.[0-9]+'
last_line() { tail -n 1 "$1" | grep -Eq "^forecast: $2 RMSE $number persistence $number ar-x $number ratio $number, [0-9]+ k parameters, $3$"; }
errors() { grep -E '^  |RMSE on' "$1"; }  # the table

# ---- an undisturbed run, twice
mkdir pictures
check "it trains" timed "${run[@]}" --out whole.h5 --log log --pictures pictures
cp out first
check "the last line" last_line first attention_lstm "$number steps/s, [0-9]+ s"
check "a validation loss each epoch" eval '[ "$(grep -c "^epoch .*validation .*RMSE" first)" = 3 ] && [ "$(grep -c validation_loss log)" = 3 ]'
check "the loss falls" awk '/^epoch/ { sub(",", "", $6); if (!first) first = $6; last = $6 } END { exit !(last < 0.9 * first) }' first
check "JSON lines" eval '[ "$(wc -l <log)" = 5 ] && ! grep -vq "^{.*}$" log && grep -q "\"model\": *\"attention_lstm\"" log'
check "AR-X is better than persistence" awk '/persistence/ && NF == 2 { a = $2 } /AR-X/ { if (!b) b = $3 } END { exit !(b < a / 2) }' first
for p in forecast attention curve; do check "$p.svg" eval "[ -s pictures/$p.svg ] && tail -n 1 pictures/$p.svg | grep -q '^</svg>$'"; done
check "with bands" eval '[ "$(grep -o "<path class=\"band\"" pictures/forecast.svg | wc -l)" = 4 ]'
check "again the same bytes" makes again.h5 whole.h5 "${run[@]}" --out again.h5
check "the same bytes with one thread" makes one.h5 whole.h5 "${run[@]}" --out one.h5 --threads 1
check "another seed" eval '"${run[@]}" --out other.h5 --seed 2 >other && ! cmp -s whole.h5 other.h5'
check "of the same data" eval '[ "$(grep AR-X other)" = "$(grep AR-X first)" ]'
check "other data" eval '"${run[@]}" --out other.h5 --series-seed 2 >other && [ "$(grep AR-X other)" != "$(grep AR-X first)" ]'

# ---- a saved file
check "--test" eval '"$forecast" --test whole.h5 >t && last_line t attention_lstm "[0-9]+ windows/s" && [ "$(errors t)" = "$(errors first)" ]'
check "a resumed run that was complete, the same bytes" makes again.h5 whole.h5 eval '"${run[@]}" --out again.h5 --resume >t && [ "$(errors t)" = "$(errors first)" ]'
check "the best epoch is saved" eval '"${run[@]}" --out worse.h5 --epochs 30 --patience 1 --average 0 --lr 1 --warmup 0 --clip 100 >t && grep -q "not the best" t'
check "and it stops early" eval '[ "$(grep -c "^epoch" t)" -lt 30 ] && grep -q "^forecast: " t'
best=$(awk '/^epoch/ { sub(",", "", $10); if (!n++ || $8 + 0 < least) { least = $8 + 0; rmse = $10 } } END { print rmse }' t)
check "and the file contains it" eval '"$forecast" --test worse.h5 | grep -q "RMSE $best in validation"'
check "and resuming trains no further" eval '"${run[@]}" --out worse.h5 --resume >u && [ "$(errors t)" = "$(errors u)" ] && ! grep -q "^epoch" u'

# ---- the six models
for m in $models; do
    check "$m" "${run[@]}" --model "$m" --out "$m.h5" --epochs 1 --pictures pictures
    cp out t
    check "$m's last line" last_line t "$m" "$number steps/s, [0-9]+ s"
    check "$m reports a model without attention" eval '[ $m != encoder_decoder_lstm ] || grep -q "has no attention" t'
    check "$m --test" eval '"$forecast" --test "$m.h5" >u && [ "$(errors t)" = "$(errors u)" ]'
done

# ---- stopped by Ctrl-C, killed at any moment
for signal in INT TERM; do check "$signal is obeyed" obeys $signal stopped.h5 "${run[@]}" --out stopped.h5 --epochs 400 --patience 400; done
run=("${run[@]}" --dropout .1 --noise .01 --model transformer_lstm --epochs 5)
check "an undisturbed run with dropout, noise and shuffling" timed "${run[@]}" --out whole.h5
cp out first
for ((k = 0; k < kills + 1; k++)); do
    check "killed and resumed to the same bytes" killed_and_resumed $([ $k = 0 ] && echo INT || echo KILL) whole.h5 "${run[@]}"
    check "and the same errors" is "$(errors out)" "$(errors first)"
done
check "a run that saves once more" "${run[@]}" --out killed.h5
check "no temporary file remains" eval '! ls -A | grep -q tmp'

# ---- error messages; test_g2p.sh tests those of all options
check "an argument" exits 2 'found "nonsense"; expected options only' "$forecast" nonsense
check "no model" exits 2 'model: found "lstm"; expected encoder_decoder_lstm, .*pf_tft or xtft' "$forecast" --model lstm
check "heads that do not divide the width" exits 1 'heads' "${run[@]}" --heads 3 --out bad.h5
check "two options that exclude each other" exits 2 'expected only one of --test and --resume' "$forecast" --test whole.h5 --resume
check "help" exits 0 '--series-seed' "$forecast" --help
check "no folder for pictures" exits 1 '/no/such: No such file' "${run[@]}" --out bad.h5 --pictures /no/such
check "and did not train" eval '! [ -e bad.h5 ]'
check "a missing file" exits 1 'nowhere.h5' "$forecast" --test nowhere.h5
check "another file" exits 1 'log' "$forecast" --test log
check "a place that cannot be written" exits 1 '/nowhere/x.h5: cannot be written' "${run[@]}" --out /nowhere/x.h5
cp whole.h5 again.h5
check "another model" exits 2 'model: found tft; expected transformer_lstm, as whole.h5 was begun' "${run[@]}" --out whole.h5 --resume --model tft
check "another setting" exits 2 'hidden: found 9; expected 8, as whole.h5 was begun' "${run[@]}" --out whole.h5 --resume --hidden 9
check "none of these changed the file" cmp whole.h5 again.h5

finish forecast
