#!/usr/bin/env bash
# test_manual.sh    the manual page and the completion of the command weft: the page names everything that weft --help lists, and the completion
# offers only words that are valid in their place. B is the build.
set -u
. "$(dirname "$0")/script.sh"
PATH=$build:$PATH

# ---- the page
page=$root/tools/weft.1
for sub in $(weft --help | awk '/^  weft / { print $2 }'); do
    check "the manual has weft $sub" grep -qE "^\.Ss weft $sub$" "$page"
    check "in the synopsis also" grep -qE "^\.Cm (info [|] )?$sub( |$)" "$page"
done
all_options=$(for sub in $(weft --help | awk '/^  weft / { print $2 }'); do weft $sub --help | grep -oE '^  --?[a-z-]+' | tr -d ' '; done; echo --help; echo --version)
there_is() { grep -qx -e "-$1" <<<"$all_options" || { echo "weft has no option -$1"; return 1; }; }
for option in $(grep -oE 'Fl -?[a-z][a-z-]*' "$page" | cut -c4- | sort -u); do check "the manual's -$option is one" there_is "$option"; done
for column in $(weft plan --corpus equal:3,n=4 order:count=2 | head -n 1); do
    check "the help explains the column $column" eval '[ $column = planner ] || [ $column = batches ] || weft plan --help | grep -qw $column'
done
! command -v mandoc >/dev/null || check "mandoc finds nothing" eval '[ -z "$(mandoc -Tlint "$page" 2>&1)" ] || { mandoc -Tlint "$page"; false; }'
! command -v man >/dev/null || check "man finds nothing" eval '[ -z "$(man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)" ]'

# ---- the completion
. "$root/tools/weft.bash"
COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
offers() { COMP_LINE=$1 COMP_POINT=${#1}; _weft; printf '%s\n' "${COMPREPLY[@]}" | sort | xargs; }
check "bash knows of it" eval 'complete -p weft | grep -q "_weft weft"'
check "a subcommand" is "$(offers 'weft cor')" "corpora"
check "all subcommands" is "$(offers 'weft ' | wc -w)" "$(($(weft --help | grep -c '^  weft ') + 3))"
check "options" is "$(offers 'weft plan --js')" "--json"
check "options of another subcommand" is "$(offers 'weft lab --qu')" "--quick"
check "a record to repeat: completed by bash" is "$(offers 'weft lab --rep')|$(offers 'weft lab --repeat ')" "--repeat= --report=|"
check "no option of another" is "$(offers 'weft corpora --js')" ""
check "an option with a value" is "$(offers 'weft lab --hid')" "--hidden="
check "a file comes first: completed by bash" is "$(offers 'weft plan ')" ""
check "then planners" is "$(offers 'weft plan lengths best_fit_')" "best_fit_decreasing: best_fit_split:"
check "planners after a corpus" is "$(offers 'weft plan --corpus words exact')" "exact_fill:"
check "planners after options" is "$(offers 'weft plan --json lengths refi')" "refill:"
check "all planners" is "$(offers 'weft plan lengths ' | wc -w)" "$(weft plan --list | grep -c '^[a-z]')"
check "a planner's options, behind the colon" is "$(offers 'weft plan lengths pool:co')" "count="
check "all of them, and those of all" is "$(offers 'weft plan lengths random:')" "count= epoch= seed="
check "the next option after a split at =" is "$(offers 'weft plan lengths pool:count=4,sh')" "4,shuffle="
check "none twice" is "$(offers 'weft plan lengths random:count=4,')" "4,epoch= 4,seed="
check "a second planner" is "$(offers 'weft plan lengths order:count=2 next_fit_')" "next_fit_decreasing:"
check "planners of the laboratory" is "$(offers 'weft lab --planner strea')" "streams:"
check "planners that run padded" is "$(offers 'weft lab --padded=strea')" "streams:"
check "the same with =" is "$(offers 'weft lab --planner=strea')" "streams:"
check "corpora" is "$(offers 'weft corpora wor')" "words"
check "corpora for a plan" is "$(offers 'weft plan --corpus ffd')" "ffd-worst:"
check "corpora for the laboratory, with =" is "$(offers 'weft lab --corpus=uni')" "unicode uniform:"
check "an unknown subcommand" is "$(offers 'weft plot x')" ""
check "subjects of help" is "$(offers 'weft help la')" "lab"
check "an option whose value may be missing" is "$(offers 'weft plan --expl')" "--explain"
check "its cells" is "$(offers 'weft plan --explain=' | wc -w)" 6
check "one of them" is "$(offers 'weft plan --explain=ls')" "lstm:"
check "experiments" is "$(offers 'weft lab --only=' | wc -w)" 7
check "the next of a list" is "$(offers 'weft lab --only=cost,lea')" "cost,learning"
check "none twice" is "$(offers 'weft lab --only=cost,cos')" ""
check "as a separate word" is "$(offers 'weft lab --only grad')" "gradients"
check "files for a page" is "$(offers 'weft lab --out ')" ""
lstm=$root/tests/golden/interchange/lstm.pt
check "a file with weights comes first: completed by bash" is "$(offers "weft show ")" ""
check "then its arrays" is "$(offers "weft show $lstm lstm.bias_ih_l0")" "lstm.bias_ih_l0 lstm.bias_ih_l0_reverse"
check "options with a dash" is "$(offers 'weft convert --dry')" "--dry-run"
check "types of floats" is "$(offers 'weft convert --dtype f')" "f16 f32 f64"
check "units of lengths" is "$(offers 'weft lengths --unit t')" "tokens"
check "text after the cursor does not count" is "$(COMP_LINE='weft cor --x' COMP_POINT=8; _weft; echo "${COMPREPLY[*]}")" corpora
COMP_WORDBREAKS=$' \t\n"\'><;|&('
check "if : does not split words" is "$(offers 'weft corpora wor')" words
check "then the whole word is offered" is "$(offers 'weft plan lengths pool:co')" "pool:count="
check "but = does" is "$(offers 'weft plan lengths pool:count=4,sh')" "4,shuffle="
finish "the manual and the completion"
