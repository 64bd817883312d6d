#!/usr/bin/env bash
# kill.sh    kills a run of examples/g2p that saves after every update, at KILLS (20) random moments, and resumes it with one or two threads.
# The result must have the bytes of an undisturbed run. No checkpoint may be lost, no line of the log broken, and at most one temporary file in
# a hundred kills may remain (after a kill between its creation and its rename). SEED repeats the moments. B is the build, G2P another program.
set -u
started=$SECONDS
. "$(dirname "$0")/../scripts/script.sh"
kills=${KILLS:-20} RANDOM=${SEED:-1}
language 150 >dict
run=("${G2P:-$g2p}" --data dict --hidden 16 --embed 8 --batch 8 --epochs 3 --warmup 5 --every 1 --device cpu)

begun=$EPOCHREALTIME
"${run[@]}" --threads 2 --out whole.h5 >output 2>&1 || { cat output; exit 1; }
took=$(echo "$EPOCHREALTIME $begun" | awk '{ print $1 - $2 }')
killed=0 runs=0 differ=0 lost=0 broken=0
until [ $killed -ge "$kills" ]; do
    rm -f killed.h5 log
    runs=$((runs + 1)) rc=137
    while [ $rc = 137 ]; do
        resume=; if [ -e killed.h5 ]; then resume=--resume; fi
        "${run[@]}" --threads $((1 + RANDOM % 2)) --out killed.h5 --log log $resume >output 2>&1 & pid=$!
        sleep "$(echo "$took $RANDOM" | awk '{ print .004 + .3 * $1 * $2 / 32768 }')"
        if [ $killed -lt "$kills" ]; then kill -9 $pid 2>/dev/null; fi
        wait $pid 2>/dev/null; rc=$?
        if [ $rc = 137 ]; then killed=$((killed + 1)); fi
    done
    if [ $rc != 0 ]; then lost=$((lost + 1)); echo "run $runs, exit status $rc:"; tail -n 3 output; fi
    if [ $rc = 0 ] && ! cmp killed.h5 whole.h5; then differ=$((differ + 1)); fi
    broken=$((broken + $(grep -cvs '^{.*}$' log)))
done
left=$(find . -name '*tmp*' | wc -l)
echo "kill: $killed kills in $runs runs, $differ differ, $lost lost, $broken lines broken, $left temporaries left, $((SECONDS - started)) s"
[ "$((differ + lost + broken))" = 0 ] && [ "$left" -le $((1 + killed / 100)) ]
