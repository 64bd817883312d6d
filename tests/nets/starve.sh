#!/usr/bin/env bash
# starve.sh    fails each allocation of examples/g2p once: it opens a context, loads data, builds a model, trains, saves and decodes.
# It must report the missing memory without a damaged file, or produce the same bytes. It may not crash, hang or produce other bytes.
# Every tenth failed run resumes with memory and must reach the same bytes. LONG=1 resumes all, and also starves runs that resume and runs that
# decode. B is the build, G2P another program, STARVE_IN= other code than the program's, see starve_malloc.c.
set -u
started=$SECONDS
shim=$(realpath "${B:-build}")/tests/nets/starve_malloc.so
. "$(dirname "$0")/../scripts/script.sh"
export g2p=${G2P:-$g2p} shim STARVE_IN=${STARVE_IN:-} LONG=${LONG:-}
language 60 >dict
trains=(--data "$dir/dict" --hidden 8 --embed 4 --batch 8 --epochs 1 --warmup 2 --every 3 --threads 2 --device cpu)

starved() { timeout 60 env STARVE_AT="$1" LD_PRELOAD="$shim" "$g2p" "${@:2}"; }      # AT ARGUMENT...; AT -1: nothing fails
# Prints the outcome: reported (reported), absorbed, crash, hang, silent (other bytes, or a failure without a message), lost (did not resume).
outcome() {                             # FOLDER KIND AT
    local rc; cd "$1" || return
    case $2 in
    train)  starved "$3" "${trains[@]}" --out x.h5 >out 2>err ;;
    resume) cp ../half.h5 x.h5; starved "$3" "${trains[@]}" --out x.h5 --resume >out 2>err ;;
    say)    cp ../whole.h5 x.h5; starved "$3" --say x.h5 --device cpu bade cice >out 2>err ;;
    esac
    rc=$?
    case $rc in
    0)   if ! cmp -s x.h5 ../whole.h5 || { [ "$2" = say ] && ! cmp -s out ../output; }; then echo silent; return; fi; echo absorbed; return ;;
    124) echo hang; return ;;
    1)   if ! grep -q memory err; then echo silent; return; fi ;;
    *)   echo crash; return ;;
    esac
    if [ -z "$LONG" ] && [ $(($3 % 10)) != 0 ]; then echo reported; return; fi
    local resume=; if [ -e x.h5 ]; then resume=--resume; fi
    if "$g2p" "${trains[@]}" --out x.h5 $resume >out 2>>err && cmp -s x.h5 ../whole.h5; then echo reported; else echo lost; fi
}
each() {                                # KIND LANE: the cases of this lane
    local n result
    mkdir "$1.$2" && for ((n = $2; n <= count; n += lanes)); do
        result=$(outcome "$1.$2" "$1" "$n")
        echo "$result $1 $n"
        case $result in reported|absorbed) ;; *) sed 's/^/    | /' "$1.$2/err" | tail -n 5 >&2 ;; esac
        rm -f "$1.$2"/*
    done
}

"$g2p" "${trains[@]}" --out whole.h5 >out 2>err || { cat err; exit 1; }
"$g2p" --say whole.h5 --device cpu bade cice >output
half() { [ -e half.h5 ] && "$g2p" --test half.h5 >output.half 2>&1; }
if [ -n "$LONG" ]; then                 # a checkpoint from the middle of a run
    "$g2p" "${trains[@]}" --epochs 1 --out half.h5 >out 2>&1 & pid=$!
    until [ -e half.h5 ] || ! kill -0 $pid 2>/dev/null; do :; done
    kill -9 $pid 2>/dev/null; wait $pid 2>/dev/null
    half || { echo "starve: no file from the midst of a run"; exit 1; }
fi
lanes=$(nproc) all=0
for kind in train ${LONG:+resume say}; do
    rm -f seen; mkdir count
    result=$(STARVE_SEEN=$dir/seen outcome count $kind -1)
    count=$(cat seen 2>/dev/null)
    if [ "${count:-0}" -le 0 ] 2>/dev/null; then
        if [ -z "$count" ]; then why="$shim has counted nothing: LD_PRELOAD does not reach $g2p, which may be static, setuid or of a sanitizer"
        else why="no allocation was made by ${STARVE_IN:-code of $g2p itself}: STARVE_IN names code that does not allocate, or the program is linked in another way"; fi
        echo "starve: nothing to starve in the run \"$kind\" ($result): $why"; tail -n 5 count/err 2>/dev/null
        exit 1
    fi
    rm -r count
    all=$((all + count))
    for ((l = 1; l <= lanes; l++)); do each $kind $l >"$kind.results.$l" & done
    wait
done
cat ./*.results.* >results
number() { grep -cE "^($1) " results; }
grep -vE '^(reported|absorbed) ' results | head -n 20
echo "starve: $all allocations, $(wc -l <results) failed once, $(number reported) reported, $(number absorbed) absorbed, $(number hang) hangs, $(number lost) lost, $(number crash) crashes, $(number silent) silent, $((SECONDS - started)) s"
[ "$all" -gt 0 ] && [ "$(wc -l <results)" = "$all" ] && [ "$(number 'reported|absorbed')" = "$all" ]
