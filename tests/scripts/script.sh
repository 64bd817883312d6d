# shellcheck shell=bash
# script.sh, to be sourced: common functions of the test scripts. A script runs in a temporary folder, removed at its end. B is the build.
root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..") build=$(realpath "${B:-build}")
weft=$build/weft examples=$build/examples g2p=$build/examples/g2p
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
good=0 all=0 what=
trap 'echo "not so: $what: it has not come to its end"; cat out err; exit 124' TERM

how_often() {                           # TIMES SANITIZED: number of kills of a program; WEFT_KILLS overrides it
    local times=$1
    case ${V:-} in asan|dasan|tsan) times=$2 ;; esac
    echo "${WEFT_KILLS:-${WEFT_SOAK:+100}}" | grep . || echo "$times"
}
check() {                               # WHAT COMMAND...: its output is in out and err
    local what=$1; shift
    all=$((all + 1))
    if "$@" >out 2>err; then good=$((good + 1)); else echo "not so: $what: $*"; cat out err; fi
}
exits() {                                # STATUS PATTERN COMMAND...: ends with that status, and its output has the pattern
    local status=$1 pattern=$2; shift 2
    "$@" >output 2>&1
    local rc=$?
    cat output
    [ $rc = "$status" ] && grep -q -e "$pattern" output
}
is() { [ "$1" = "$2" ] || { echo "is $1"; echo "expected $2"; return 1; }; }
has() { case $1 in *"$2"*) ;; *) echo "$1 lacks $2"; return 1 ;; esac; }
near() { awk -v a="$1" -v b="$2" -v t="$3" 'BEGIN { exit !(a - b <= t && b - a <= t) }' || { echo "$1 is not $2 +- $3"; return 1; }; }
makes() { "${@:3}" && cmp "$1" "$2"; }  # FILE EXPECTED COMMAND...: FILE has the bytes of EXPECTED after it
timed() {                               # COMMAND...: sets took, its seconds
    local start=$EPOCHREALTIME rc=0
    "$@" || rc=$?
    took=$(echo "$EPOCHREALTIME $start" | awk '{ print $1 - $2 }')
    return $rc
}
obeys() {                               # SIGNAL FILE COMMAND...: after the first save of FILE; a run that ended before the signal is repeated
    local signal=$1 file=$2 rc=0 pid; shift 2
    for _ in 1 2 3 4 5; do
        rm -f "$file"
        "$@" >output 2>&1 & pid=$!
        until [ -e "$file" ] || ! kill -0 $pid 2>/dev/null; do sleep .01; done
        kill -"$signal" $pid 2>/dev/null; wait $pid; rc=$?
        [ $rc = 0 ] || break
    done
    cat output
    [ $rc = $((128 + $(kill -l "$signal"))) ] && grep -q 'stopped and saved after update' output && grep -q -e '--resume' output
}
killed_and_resumed() {                  # SIGNAL EXPECTED COMMAND...: at random moments of $took seconds; then it ends with the bytes of EXPECTED
    local resume='' pid
    rm -f killed.h5
    while [ -z "$resume" ] || [ $((RANDOM % 2)) = 0 ]; do
        "${@:3}" --out killed.h5 $resume >/dev/null 2>&1 & pid=$!
        sleep "$(echo "$took $RANDOM" | awk '{ print $1 * $2 / 32768 }')"
        kill -"$1" $pid 2>/dev/null; wait $pid 2>/dev/null
        resume=--resume
    done
    makes killed.h5 "$2" "${@:3}" --out killed.h5 --resume
}
finish() {                              # WHAT: fails the script unless all checks hold
    echo "$good of $all checks of $1 hold"
    [ "$good" = "$all" ]
}
# Prints a dictionary of an invented language: WORDS of syllables with one spelling each, except c, which sounds like s before i and e.
language() {
    awk -v words="$1" 'BEGIN {
        split("b d f k l m n p r s t v c", on); split("a e i o u", vowel); split("ae eh ih aa ax", sound); srand(1)
        print "MNCL"
        for (w = 0; w < words; w++) {
            word = ""; text = ""
            for (s = 1 + int(rand() * 3); s > 0; s--) {
                o = on[1 + int(rand() * 13)]; v = 1 + int(rand() * 5)
                word = word o vowel[v]
                text = text " ((" (o == "c" ? (v == 2 || v == 3 ? "s" : "k") : o) " " sound[v] ") " (s % 2) ")"
            }
            printf "(\"%s\" nil (%s))\n", word, substr(text, 2)
        }
    }'
}
