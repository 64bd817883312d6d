#!/usr/bin/env bash
# restart.sh [-n TRIES] FILE COMMAND ARGUMENT ..    runs a training that saves to FILE, and restarts it after each failure.
#
# The command must resume from FILE if it exists, and start without it otherwise (g2p --resume). A run that leaves FILE unchanged counts as a
# failed try. After TRIES (3) of them in a row the script stops. It does not repeat a wrong call, status 2, 126 or 127. SIGTERM, SIGINT and
# SIGHUP are passed to the command once and end the script. The command has its own session, so Ctrl-C does not reach it twice.
#
#     restart.sh g2p.h5 mpirun -n 4 build/examples/g2p --data DICT --shards 8 --out g2p.h5 --resume
set -u
tries=3
if [ "${1-}" = -n ] && [ $# -gt 1 ]; then tries=$2; shift 2; fi
case $tries in ''|*[!0-9]*|0) echo "restart.sh: -n: found $tries; expected a whole number, 1 or more" >&2; exit 2 ;; esac
if [ $# -lt 2 ]; then echo "usage: restart.sh [-n TRIES] FILE COMMAND ARGUMENT .." >&2; exit 2; fi
file=$1; shift
child="" ended="" told=""
state() { stat -c '%i %Y %s' "$file" 2>/dev/null; }                  # saving replaces the file
pass_on() { ended=$1 again=1; if [ -n "$child" ]; then kill -s "$1" "$child" 2>/dev/null; told=1; fi; }
give_up_if_ended() { [ -z "$ended" ] || { echo "restart.sh: ended by SIG$ended; status $1" >&2; exit "$1"; }; }
trap 'pass_on TERM' TERM
trap 'pass_on INT' INT
trap 'pass_on HUP' HUP
failed=0
while :; do
    before=$(state)
    ( trap - INT; exec setsid "$@" ) </dev/null & child=$!                          # in the background bash would ignore SIGINT
    [ -z "$ended" ] || [ -n "$told" ] || kill -s "$ended" $child 2>/dev/null        # the signal arrived before the command existed
    again=1
    while [ -n "$again" ]; do again=""; wait $child; status=$?; done               # a signal ends wait, but not the command
    child=""
    [ $status = 0 ] && exit 0
    give_up_if_ended $status
    case $status in 2|126|127) echo "restart.sh: status $status: a wrong call; not repeating it" >&2; exit $status ;; esac
    if [ "$(state)" = "$before" ]; then failed=$((failed + 1)); else failed=0; fi
    if [ $failed -ge "$tries" ]; then echo "restart.sh: status $status, and $file has not changed in $failed runs; stopping" >&2; exit $status; fi
    echo "restart.sh: status $status; $(if [ -e "$file" ]; then echo "continuing from $file"; else echo "starting again"; fi)" >&2
    sleep $((failed > 5 ? 32 : failed > 0 ? 1 << (failed - 1) : 0)) & wait $!
    give_up_if_ended $status
done
