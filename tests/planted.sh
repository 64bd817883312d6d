#!/usr/bin/env bash
# planted.sh: every safety net must catch the bug that was planted for it. MAKE and BUILD come from make. Each program of tests/planted
# is built in the variant of its net and must be reported, with the words of that net; a net that stays silent is a failure.
set -u
good=0 all=0
catches() {                             # NET VARIANT PROGRAM WORDS
    local b=$BUILD${2:+/$2} out
    all=$((all + 1))
    if ! out=$($MAKE -s V="$2" "$b/tests/planted/$3" 2>&1 </dev/null); then printf '  FAIL  %s: does not build\n%s\n' "$1" "$out"; return; fi
    case $3 in
    race) out=$(TSAN_OPTIONS=exitcode=66 "$b/tests/planted/race" 2>&1 </dev/null) && rc=0 || rc=$?
          if [ $rc != 66 ]; then out=$(TSAN_OPTIONS=exitcode=66 setarch -R "$b/tests/planted/race" 2>&1 </dev/null) && rc=0 || rc=$?; fi ;;
    *)    mkdir -p "$b/planted/tests"; cp "$b/tests/planted/$3" "$b/planted/test_$3"
          out=$(B=$b/planted V=none bash tests/run.sh "$b/planted/test_$3" 2>&1 </dev/null) && rc=0 || rc=$? ;;
    esac
    if [ $rc != 0 ] && printf '%s' "$out" | grep -qE "$4"; then good=$((good + 1)); printf '  ok    %s\n' "$1"
    else printf '  FAIL  %s did not catch %s (exit status %s)\n' "$1" "$3" "$rc"; printf '%s\n' "$out" | head -n 30 | sed 's/^/        | /' | sed 's/ failed/ refused/'; fi
}
catches "a leak, by the address sanitizer"    asan   leak       'LeakSanitizer: detected memory leaks'
catches "a block not given back, by CLEAN"    ''     block      '1 blocks were not given back'
catches "a wrong derivative, by gradcheck"    double derivative 'gradcheck: off by'
catches "a race, by the thread sanitizer"     tsan   race       'ThreadSanitizer: data race'
catches "a corrupt file, by its checksums"    ''     corrupt    'load: EFORMAT'
echo "$good of $all nets hold"
[ "$good" = "$all" ]
