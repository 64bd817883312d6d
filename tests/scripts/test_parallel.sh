#!/usr/bin/env bash
# test_parallel.sh    tests ranks of tests/parallel/pairs.c, and of Open MPI if its plug-in is built: the same bytes as one rank, resumed runs with
# another number of ranks, ranks that fail, die, stop, skip or differ. B is the build. TRAIN=PROGRAM: another tests/parallel/train; PARTS="..":
# only these parts, which are the functions below.
set -u
. "$(dirname "$0")/script.sh"
parts=$build/tests/parallel restart=$root/examples/common/restart.sh
train=${TRAIN:-$parts/train}
export WEFT_PARALLEL_TIMEOUT=${WEFT_PARALLEL_TIMEOUT:-60} OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
ranks() { local n=$1; shift; "$parts/ranks" "$n" "$parts/pairs.so" "$train" "$@"; }
go_on() { if [ "$1" = 1 ]; then "$train" "${@:2}"; else ranks "$@"; fi; }
by_mpi() { local n=$1; shift; WEFT_BACKEND_PATH=$build mpirun -n "$n" --oversubscribe --mca mpi_yield_when_idle 1 --mca pml ob1 --mca btl vader,self "$train" "$@"; }
prints() { "${@:2}" >output && cmp "$1" output; }               # EXPECTED COMMAND...
with_mpi() { [ -e "$build/libweft_openmpi.so" ] && command -v mpirun >/dev/null || { echo "skipped: $1: no libweft_openmpi.so or no mpirun (tests/deps.sh parallel)"; false; }; }    # WHAT
faulty() { local fault=$1; shift; WEFT_PAIRS_FAULT=$fault "$@"; }
quickly() { WEFT_PARALLEL_TIMEOUT=${patience:-1} "$@"; }
undisturbed() { [ -e one-8 ] || "$train" 8 12 out=one-8 >/dev/null; }
no_process_remains() { ! pgrep -a -f "^$train "; }

# ---- the same bytes
bytes() {
    for shards in 1 5 8; do
        check "$shards shards alone" "$train" $shards 12 out=one-$shards
        mv out losses-$shards
        for n in 2 3 4 5 8; do
            [ $n -gt $shards ] && continue
            check "$shards shards, $n ranks, the same bytes" makes many one-$shards prints losses-$shards ranks $n $shards 12 out=many
        done
    done
    check "other shards are another run" eval '! cmp -s one-5 one-8'
    check "more shards than sequences" "$train" 40 6 size=7 out=one
    check "in ranks, the same bytes" makes many one ranks 3 40 6 size=7 out=many
    for units in 8 96 256; do                     # a vector sent whole, one with a piece for each rank, one with several
        check "$units units alone" "$train" 8 3 units=$units out=one
        for n in 2 3 5; do
            check "$units units, $n ranks, the same bytes" makes many one ranks $n 8 3 units=$units out=many
        done
    done
    check "by default each rank has one shard" ranks 3 0 12 out=many
    check "3 shards on one rank, the same bytes" makes many one "$train" 3 12 out=one
    with_mpi "ranks of Open MPI" || return 0
    for n in 1 2 4; do check "$n ranks of Open MPI, the same bytes" makes many one-8 by_mpi $n 8 12 out=many; done
}

# ---- results in the order of the batch: each rank checks all
gathered() {
    check "results alone" "$train" 8 12 gathers
    cp out results
    check "some results are not empty" eval 'grep -q ": [a-z]" results && grep -q ": $" results'
    for n in 2 3 5 8; do
        check "results of $n ranks, the same bytes" prints results ranks $n 8 12 gathers
    done
    check "more shards than sequences" ranks 3 40 6 size=7 gathers
    check "one has no memory for them" all_report 3 "rank 1: .*memory" ranks 3 3 6 gathers starves=1
    check "two of one sequence" all_report 3 "rank 2: parallel_put: sequence . of the shard already has a result" ranks 3 8 6 gathers twice=2
    check "one is killed among them" exits 1 "lost rank 1" faulty kill:1:12 ranks 3 8 6 gathers
}

# ---- the examples: output and files are the same on any number of ranks
g2p_on_ranks() { "$@" "$g2p" --data dict --epochs 4 --hidden 24 --warmup 5 --shards 4 --threads 1 --out it.h5 --said it.txt --log it.log 2>err | sed 's/, [0-9]* s$//'; }
forecast_on_ranks() { "$@" "$examples/forecast" --quick --model tft --dropout .1 --shards 4 --threads 1 --out it.h5 --forecasts it.txt --log it.log 2>err | sed 's/, [0-9.]* steps.s, [0-9]* s$//; s/, [0-9]* s$//; s/, [0-9]* s  (/  (/'; }
keep_all() { local kind=$1 as=$2; shift 2; rm -f it.*; "${kind}_on_ranks" "$@" >it.output; [ -s it.h5 ] && [ -s it.txt ] && [ -s it.output ] && for f in h5 txt output log; do mv it.$f "$as.$f"; done; }
by_pairs() { local n=$1; shift; "$parts/ranks" "$n" "$parts/pairs.so" "$@"; }
same_all() { keep_all "$1" many "${@:2}" && cmp one.h5 many.h5 && cmp one.txt many.txt && cmp one.output many.output; }          # KIND COMMAND...
stopped_forecast() {
    by_pairs 3 "$examples/forecast" --quick --epochs 4000 --patience 4000 --shards 4 --threads 1 --every 3 --out stop.h5 >output 2>&1 & local pid=$!
    until grep -q "^epoch 2 " output; do kill -0 $pid || return 1; sleep .02; done
    kill -TERM "$(pgrep -f "^$examples/forecast --quick --epochs 4000" | tail -n 1)"
    wait $pid && [ "$(grep -c '^stopped and saved after' output)" = 1 ]
}
examples() {
    language 300 >dict
    for kind in g2p forecast; do
        check "$kind alone" keep_all $kind one
        for n in 2 3 4; do
            check "$kind on $n ranks, the same bytes, texts and lines" same_all $kind by_pairs $n
            check "one journal" eval '[ "$(wc -l <one.log)" = "$(wc -l <many.log)" ] && [ "$(grep -c "\"waiting\": 0\.[0-9]" many.log)" -gt 1 ] && ! grep -Eq "\"waiting\": [1-9][0-9.]*[,}]" many.log'
        done
    done
    if with_mpi "examples on ranks of Open MPI"; then
        check "forecast on 3 ranks of Open MPI, the same bytes, texts and lines" same_all forecast env WEFT_BACKEND_PATH="$build" mpirun -n 3 --oversubscribe --mca mpi_yield_when_idle 1 --mca pml ob1 --mca btl vader,self
    fi
    check "words decoded by beam search" eval 'keep_all g2p one && "$g2p" --test one.h5 --beam 3 --said one.txt >/dev/null && by_pairs 3 "$g2p" --test one.h5 --beam 3 --said many.txt >output && cmp one.txt many.txt && [ "$(wc -l <output)" = 1 ]'
    check "a results file that cannot be written" exits 1 "g2p: /nowhere/x: No such file" by_pairs 2 "$g2p" --test one.h5 --said /nowhere/x
    check "SIGTERM to one rank of forecast saves and ends all" stopped_forecast
    check "it resumes elsewhere" eval 'cp stop.h5 alone.h5; at=$(sed -n "s/^stopped and saved after update \([0-9]*\) .*/\1/p" output); "$examples/forecast" --out alone.h5 --epochs 4000 --resume --quick 2>&1 | head -n 1 | grep -q "continuing after update $at of"'
}

# ---- launchers, and scripts between them and a rank
bound_to() {                            # WHAT CPUS THREADS COMMAND...: both ranks find the launcher, not a script, and take this share
    local what=$1 cpus=$2 threads=$3; shift 3
    mpirun -n 2 --oversubscribe --bind-to "$what" --mca pml ob1 --mca btl vader,self "$@" >output || return 1
    cat output
    [ "$(grep -c "^[0-9]* \(mpirun\|orterun\|prterun\).* threads $threads CPUs $cpus " output)" = 2 ] && grep -q "local rank 1 rank 1$" output
}
launched() {
    local cpus half of; cpus=$(nproc) half=$(($(nproc) > 1 ? $(nproc) / 2 : 1))
    if ! command -v mpirun >/dev/null || ! mpirun -n 2 --bind-to core true 2>/dev/null; then echo "skipped: who has bound a rank: no mpirun that binds"; return; fi
    printf '#!/bin/bash\n"$@"\ntrue\n' >wrapper
    for of in "core 1 1" "none $cpus $half"; do
        # shellcheck disable=SC2086
        { check "bound to ${of%% *}" bound_to $of "$parts/launched"
        check "and behind sh" bound_to $of sh -c "'$parts/launched'; true"
        check "and behind two scripts" bound_to $of bash wrapper bash wrapper "$parts/launched"; }
    done
}

# Only one rank prints the device and the time.
one_speaks() {
    local text
    WEFT_LOG=2 by_mpi 2 4 3 gathers >out 2>output || return 1
    for text in "^weft [0-9.]*: " "^weft: 2 ranks, 4 shards, threads a rank: 1, CPUs: [0-9]*, openmpi, Open MPI" "^weft: closed after" "^  operator "; do
        [ "$(grep -c "$text" output)" = 1 ] || { echo "$text"; cat output; return 1; }
    done
}
logged() {
    with_mpi "the log of several ranks" || return 0
    check "one of two ranks prints" one_speaks
    why() { WEFT_LOG=1 WEFT_DEVICE=best "$@" 2>&1 >/dev/null | grep -c "^weft: .*open: .*CUDA"; }
    check "each rank prints why it is not on a GPU" eval '[ "$(why by_mpi 2 4 1)" = $((2 * $(WEFT_BACKEND_PATH=$build why "$train" 4 1))) ]'
}

# ---- two ranks on one GPU get one warning; ranks with a GPU each get none
on_gpus() { WEFT_BACKEND_PATH=$build/emu WEFT_DEVICE=$1 "$parts/ranks" 3 "$parts/pairs.so" sh -c "$2"' exec "$0" "$@"' "$train" 3 1 units=8 size=4; }
shared_gpus() {
    if [ ! -e "$build/emu/libweft_cuda.so" ]; then echo "skipped: ranks on one GPU: no emu/libweft_cuda.so"; return; fi
    local by_rank='case $WEFT_PAIRS in 0*) r=0 ;; 1*) r=1 ;; *) r=2 ;; esac; export OMPI_COMM_WORLD_LOCAL_RANK=$r;'
    check "all on the second" exits 0 "weft: ranks 0 and 1 share one GPU of $(hostname), and so do others" on_gpus cuda:1 ""
    check "printed once" eval '[ "$(grep -c "share one GPU" output)" = 1 ]'
    check "three ranks, two GPUs" exits 0 "weft: ranks 0 and 2 share one GPU of $(hostname); expected one rank for each GPU" on_gpus cuda "$by_rank"
    check "one each" eval 'WEFT_EMU_DEVICES=3 on_gpus cuda "$by_rank" >output 2>&1 && ! grep share output'
    check "silenced" eval 'WEFT_LOG=0 on_gpus cuda:1 "" >output 2>&1 && ! grep share output'
}

# ---- from GPU to GPU, by a replacement for NCCL
by_link() {                             # RANKS ARGUMENTS of train: each rank a GPU of its own; ODD=RANK has another NCCL
    local n=$1; shift
    WEFT_BACKEND_PATH=$emu WEFT_DEVICE=cuda WEFT_EMU_DEVICES=8 WEFT_NCCL=${nccl-$emu/libnccl.so} "$parts/ranks" "$n" "$parts/pairs.so" sh -c \
        'export OMPI_COMM_WORLD_LOCAL_RANK=${WEFT_PAIRS%% *}; [ "$OMPI_COMM_WORLD_LOCAL_RANK" != "${ODD:-}" ] || WEFT_NCCL=/nowhere; exec "$0" "$@"' "$train" "$@"
}
link_broken() { local fault=$1; shift; WEFT_EMU_NCCL_FAULT=$fault "$@"; }
went_by_link() { [ "$(grep -c "^emulated NCCL: rank .* of $1: $2 groups, [1-9][0-9]* bytes" output)" = "$1" ]; }
outlives_link() {                       # RANKS VARIABLE FAULT
    rm -f many; env WEFT_PAIRS_SHRINK=1 "$2=$3" bash -c 'by_link "$@"' - "$1" 8 3 out=many >left 2>&1
    cmp gpu many && grep -q "weft: update .*: lost .* of $1 ranks" left || { cat left; return 1; }
}
outlives_all() {                        # killed at groups, and at messages of the transport
    outlives_link 2 WEFT_EMU_NCCL_FAULT kill:0:2 && outlives_link 3 WEFT_EMU_NCCL_FAULT kill:1:0 && outlives_link 3 WEFT_EMU_NCCL_FAULT kill:1:3 && outlives_link 3 WEFT_PAIRS_FAULT kill:1:27 || return 1
    [ -z "${V:-}" ] || return 0
    for g in 1 4 5; do for q in 0 1; do outlives_link 3 WEFT_EMU_NCCL_FAULT "kill:$q:$g" || return 1; done; done
    for at in 8 18 $([ -z "${WEFT_SOAK:-}" ] || seq 1 60); do outlives_link 3 WEFT_PAIRS_FAULT "kill:1:$at" || return 1; done
}
there_is_nccl() {
    emu=$(realpath "$build/emu")
    export -f by_link; export emu parts train
    [ -e "$emu/libnccl.so" ] || { echo "skipped: from GPU to GPU: no emu/libnccl.so"; return 1; }
}
linked() {
    local n units
    there_is_nccl || return 0
    for units in $([ -n "${V:-}" ] || echo 8) 32; do         # a vector sent whole, and one sent in pieces
        check "$units units, one GPU" env WEFT_BACKEND_PATH="$emu" WEFT_DEVICE=cuda "$train" 8 3 units=$units out=gpu
        for n in $(if [ $units = 8 ] || [ -n "${V:-}" ]; then echo 3 4; else echo 2 3 4 5 8; fi); do
            check "$units units, $n GPUs, the same bytes" makes many gpu eval "WEFT_EMU_NCCL_SAYS=1 by_link $n 8 3 units=$units out=many >output 2>&1"
            check "by the link" went_by_link $n "$(case $units,$n in 8,*) echo 3 ;; *,4) echo 12 ;; *,8) echo 18 ;; *) echo 6 ;; esac)"
        done
        check "through the hosts, the same bytes" makes many gpu eval "nccl=off by_link 3 8 3 units=$units out=many >output 2>&1 && ! grep 'weft:' output"
    done
    for n in $([ -n "${V:-}" ] || echo 2 4); do   # shards without a whole branch on a rank: pieces go from each to all
        check "6 shards, one GPU" env WEFT_BACKEND_PATH="$emu" WEFT_DEVICE=cuda "$train" 6 3 units=32 out=gpu
        check "6 shards, $n GPUs, the same bytes" makes many gpu eval "WEFT_EMU_NCCL_SAYS=1 by_link $n 6 3 units=32 out=many >output 2>&1"
        check "by pieces" went_by_link $n 6
    done
    check "one GPU again" env WEFT_BACKEND_PATH="$emu" WEFT_DEVICE=cuda "$train" 8 3 out=gpu
    check "the link is logged" eval 'WEFT_LOG=1 by_link 3 8 1 2>&1 | grep -c "^weft: gradients go from GPU to GPU by NCCL 2.28.9" | grep -qx 1'
    check "one without NCCL, the same bytes" makes many gpu exits 0 "weft: gradients pass through host memory: rank 2: NCCL: /nowhere: " eval "ODD=2 by_link 3 8 3 out=many"
    check "one that cannot join, the same bytes" makes many gpu exits 0 "weft: gradients pass through host memory: rank 1: NCCL: a call: unhandled system error" link_broken fail:1:0 by_link 3 8 3 out=many
    check "no rank has NCCL" exits 0 "NCCL: the library has no ncclGetVersion" eval "nccl=libm.so.6 by_link 2 8 1"
    check "a group that fails" reports "rank 1: .*: NCCL: a call: unhandled system error, in update" link_broken fail:1:3 by_link 3 8 3
    check "one is killed between groups" reports "rank 0: .*: lost rank 1, in update" link_broken kill:1:3 quickly by_link 3 8 3
    check "one stops between groups" reports "rank [02]: .*: rank 1 has not answered for 1 s, in update" link_broken stop:1:3 quickly by_link 3 8 3
}
linked_on() {
    there_is_nccl || return 0
    check "one GPU" env WEFT_BACKEND_PATH="$emu" WEFT_DEVICE=cuda "$train" 8 3 out=gpu
    check "the others continue and join again" outlives_all
    check "no process remains" no_process_remains
    rm -f /dev/shm/weft_nccl_*
}
reports() { local words=$1; shift; exits 1 "$words" "$@"; }

# ---- resuming with other ranks
one_has_it() {                          # RANKS ARGUMENTS: the others run in an empty folder
    local n=$1; shift
    "$parts/ranks" "$n" "$parts/pairs.so" sh -c 'case $WEFT_PAIRS in 0*) ;; *) cd elsewhere || exit 9 ;; esac; exec "$0" "$@"' "$train" "$@"
}
all_load() {
    local q at
    ranks 3 8 7 out=begun || return 1
    for at in $(seq 3 "$(case ${V:-} in *san) echo 4 ;; *) echo 1 ;; esac)" 18); do
        for q in 0 1; do
            cp begun many
            WEFT_PAIRS_SHRINK=1 WEFT_PAIRS_FAULT=kill:$q:$at ranks 3 8 12 out=many resume >left 2>&1
            cmp one-8 many && grep -q "weft: update .*: lost .* of 3 ranks" left || { echo "kill:$q:$at"; cat left; return 1; }
        done
    done
}
resumed() {
    undisturbed
    for n in 1 2 5; do
        check "begun by 3 ranks, continued by $n, the same bytes" makes many one-8 eval "ranks 3 8 7 out=many && go_on $n 8 12 out=many resume"
        check "and without saying the shards" eval "ranks 2 8 4 out=many && ranks 3 0 12 out=many resume && cmp one-8 many"
    done
    check "a file that only rank 0 has" eval 'ranks 3 8 7 out=many && mkdir -p elsewhere && one_has_it 3 8 12 out=many resume && cmp one-8 many && [ -z "$(ls elsewhere)" ]'
    check "ranks that are killed while it is read and handed out" all_load
    check "more ranks than shards" exits 1 "saved by a run of 8 shards, for 9 ranks" ranks 9 0 12 out=many resume
    check "other shards" exits 1 "saved by a run of 8 shards; expected 4" ranks 2 4 12 out=many resume
    check "no file" exits 1 "rank 0: .*nofile" ranks 2 8 12 out=nofile resume
    check "a full disk" exits 1 "rank 1: rank 0: /dev/full" ranks 2 8 4 out=/dev/full/x
}

# ---- states that are carried from batch to batch: on the rank of their shard, in a file of any
carried() {
    local train=${CARRY:-$parts/carry} shards n
    for shards in 1 3 8 11 13; do                 # of 11 slots: 13 shards have empty ones
        check "$shards shards alone" "$train" $shards 33 out=carried-$shards
        mv out losses
        for n in 2 3 4 8; do
            [ $n -gt $shards ] && continue
            check "$shards shards, $n ranks, the same bytes" makes many carried-$shards prints losses ranks $n $shards 33 out=many
        done
    done
    for n in 1 2 5; do
        for at in 7 19; do
            check "begun by 3 ranks, continued by $n, the same bytes" makes many carried-8 eval "ranks 3 8 $at out=many && go_on $n 8 33 out=many resume"
        done
    done
    check "120 updates, looked at twice" ranks 3 8 120 every=50 out=many
    check "a state that would leave its shard" all_report 2 "batch 1, row 2, in shard 1, carries the state of row 1 of the batch before, in shard 0" ranks 2 8 6 wanders
    check "one state for all shards" all_report 2 "shard 1 is in progress, the plan is of shard 1, the carried states are of shard 0" ranks 2 8 6 one_state
    check "a plan that is not split" all_report 2 "shard 0 is in progress, the plan is of shard -1" ranks 2 8 6 whole
    check "another batch" all_report 3 "ranks 0 and 2 differ in the batch" ranks 3 8 6 other=2
    for at in 15 25 60; do
        check "a rank is lost with its states: no rank continues in place" exits 1 "rank [02]: .*: lost rank 1, with the carried states of its rows, in update" env WEFT_PAIRS_SHRINK=1 WEFT_PAIRS_FAULT=kill:1:$at "$parts/ranks" 3 "$parts/pairs.so" "$train" 8 33 every=1 out=lost
        [ ! -e lost ] || check "the run continues from the last file" eval "ranks 2 8 33 out=lost resume && cmp carried-8 lost"
        rm -f lost
    done
    check "another shard's plan" all_report 2 "rank 1: parallel_begin_plan: plan 0 is of shard 1" ranks 2 8 6 unsplit=1
    with_mpi "carried states on ranks of Open MPI" || return 0
    for n in 1 2 4; do check "$n ranks of Open MPI, the same bytes" makes many carried-8 by_mpi $n 8 33 out=many; done
}

# ---- if one fails, all fail
all_report() { local n=$1 text=$2 q; shift 2; exits 1 "$text" "$@" >all || { cat all; return 1; }; for ((q = 0; q < n; q++)); do grep -q "^rank $q: .*$text" all || { cat all; return 1; }; done; }
failures() {
    check "a bad index" all_report 3 "rank 1: cross_entropy: class 28" ranks 3 8 6 fails=1
    for units in 8 256; do                        # a short vector, and one with chunks already in transit
        check "a bad index alone, and going on" "$train" 8 6 units=$units fails=0 recovers out=one
        for n in 2 3; do
            check "on $n ranks, the same bytes" makes many one ranks $n 8 6 units=$units fails=1 recovers out=many
        done
    done
    check "a rank that fails before its batch" all_report 3 "rank 1: broken before its batch" ranks 3 8 6 breaks=1
    check "a shard without a loss" all_report 3 "rank 2: parallel_next: shard .* has no loss" ranks 3 8 6 forgets=2
    check "fewer shards than ranks" all_report 3 "2 shards for 3 ranks" ranks 3 2 6
    check "other lengths" all_report 3 "ranks 0 and 1 differ in the lengths of the data" ranks 3 8 6 other_data=1
    check "another seed" all_report 3 "ranks 0 and 2 differ in the seed" ranks 3 8 6 other_seed=2
    check "another rate" all_report 3 "ranks 0 and 1 differ in the options of an optimiser" ranks 3 8 6 other_rate=1
    check "another weight" all_report 3 "the values of ranks 0 and 1 differ, first in net.rnn.weight_hh_l1" ranks 3 8 120 units=8 changes=1
    for units in 8 256; do
        check "an update that one skips" all_report 3 "ranks 0 and 2 differ in the batch" ranks 3 8 6 units=$units skips=2
        check "one that saves alone" all_report 3 "rank 0 is in an update (common call .*), rank 1 in weft_parallel_save" ranks 3 8 6 units=$units saves=1 out=many
    done
    check "another instruction set" all_report 2 "differ in the device or instruction set" eval 'WEFT_ISA=generic "$parts/ranks" 2 "$parts/pairs.so" sh -c "case \$WEFT_PAIRS in 0*) unset WEFT_ISA;; esac; exec \"\$@\"" sh "$train" 8 6'
}

# ---- lost ranks and ranks that do not answer: no rank waits without a limit, and saved files are complete
gone() {
    undisturbed
    check "a run that saves, the same bytes" makes many one-8 ranks 3 8 12 out=many every=4
    for at in 3 20 41; do
        check "killed at message $at" exits 1 "rank [02]: .*: lost rank 1, in update" faulty kill:1:$at ranks 3 8 12 out=killed every=1
        check "stopped at message $at" exits 1 "rank [02]: .*: rank 1 has not answered for 1 s, in update" quickly faulty stop:1:$at ranks 3 8 12 out=stopped every=1
        for file in killed stopped; do
            [ ! -e $file ] || check "the others go on" eval "ranks 2 8 12 out=$file resume && cmp one-8 $file"
            rm -f $file
        done
    done
    check "a message that is lost" exits 1 "answers but has sent no data for 1 s, in update 1" quickly faulty drop:2:21 ranks 3 8 6
    check "one that is damaged: a name without an end" exits 1 "rank 1 in .*; expected the same calls" faulty damage:1:1 ranks 3 8 6
    check "a version without an end" eval 'WEFT_PAIRS_FILLS=1 WEFT_LOG=1 ranks 2 8 2 >filled 2>&1 && grep -q "pairs, v*$" filled'
    check "one that is late, the same bytes" makes many one-8 faulty delay:1:9 ranks 3 8 12 out=many
    check "one that judges alone" exits 1 "rank 1 has not answered for 1 s, in update 2; expected an answer" quickly ranks 3 8 6 judges=1
    check "no process remains" no_process_remains
}

# MPI_Finalize would wait for it without a limit.
stopped_last() {
    local pid k
    WEFT_PARALLEL_TIMEOUT=2 by_mpi 2 2 3 stops_last=1 >output 2>&1 & pid=$!
    for ((k = 0; k < 200; k++)); do
        kill -0 $pid 2>/dev/null || break
        ! grep -q "MPI_Finalize timed out" output || pkill -KILL -f "^$train 2 3 stops_last=1"
        sleep .1
    done
    kill -KILL $pid 2>/dev/null && return 1
    cat output; grep -q "this rank has finished" output
}
gone_at_the_end() {
    with_mpi "a rank that stops at the end" || return 0
    check "one that stops when all is done" stopped_last
    check "no process remains" no_process_remains
}

# ---- lost ranks that the others can continue without, with the same result
outlive() {                             # RANKS FAULTS: the bytes of one rank
    rm -f many
    WEFT_PAIRS_SHRINK=1 WEFT_PAIRS_FAULT=$2 ranks "$1" 8 4 units=8 every=2 out=many >left 2>&1
    cmp few many && { ! grep -q "killed by" left || grep -q "weft: update .*: lost rank .* of $1 ranks; continuing with .*, which take all shards" left; } || { cat left; return 1; }
}
each_moment() {
    for at in $(seq 1 "$1" 64); do for q in 0 1 2; do outlive 3 "kill:$q:$at" || return 1; done; done
}
two_are_gone() {
    RANDOM=5
    for ((k = 0; k < $1; k++)); do
        local n=$((3 + RANDOM % 4)) at=$((1 + RANDOM % 60)) next=$((1 + RANDOM % 60)) q=$((RANDOM % 3)); outlive $n "kill:$q:$at,kill:$(((q + 1 + RANDOM % (n - 1)) % n)):$next" || return 1
    done
}
stops_meanwhile() {                     # with a sweep over messages, in some runs rank 0 detects one loss before it waits for the other
    for at in $(seq 17 23); do
        ! exits 1 "timed out waiting for the others" quickly env WEFT_PAIRS_SHRINK=1 WEFT_PAIRS_FAULT="kill:1:$at,stop:2:$((at + 1))" "$parts/ranks" 3 "$parts/pairs.so" "$train" 8 12 || return 0
    done
    return 1
}
goes_on() {
    check "one rank" "$train" 8 4 units=8 every=2 out=few
    check "no rank is lost" outlive 3 delay:1:9
    check "each rank killed at one message after the other" each_moment "$(case ${V:-} in *san) echo 7 ;; *) echo "${WEFT_SOAK:+1}" | grep . || echo 3 ;; esac)"
    check "two of them" two_are_gone "$(case ${V:-} in *san) echo 10 ;; *) echo "${WEFT_SOAK:+600}" | grep . || echo 40 ;; esac)"
    check "one that stops still ends the job" exits 1 "rank [02]: .*: rank 1 has not answered for 1 s, in update" quickly env WEFT_PAIRS_SHRINK=1 WEFT_PAIRS_FAULT=stop:1:20 "$parts/ranks" 3 "$parts/pairs.so" "$train" 8 12
    check "one that is lost while another has stopped" stops_meanwhile
}

# ---- examples/common/restart.sh
fewer_each_time() {                     # a run of 4 ranks where one is killed; then with 3, then with 2, undisturbed
    local runs; runs=$(($(cat runs 2>/dev/null || echo 0) + 1)); echo $runs >runs
    local arguments=(8 12 out=again every=1); [ ! -e again ] || arguments+=(resume)
    if [ $runs = 3 ]; then ranks 2 "${arguments[@]}"; else faulty kill:1:60 ranks $((5 - runs)) "${arguments[@]}"; fi
}
ended_by() {                            # SIGNAL
    rm -f begun; set -m                 # otherwise it would ignore SIGINT
    "$restart" nothing sh -c "trap 'echo it; exit 7' $1; : >begun; while :; do sleep .05; done" >output 2>&1 & local pid=$!
    set +m
    until [ -e begun ] || ! kill -0 $pid 2>/dev/null; do sleep .02; done
    kill -s "$1" $pid; wait $pid
    [ $? = 7 ] && grep -q "ended by SIG$1; status 7" output && [ "$(grep -c it output)" = 1 ]
}
restarted() {
    export -f fewer_each_time ranks faulty; export parts train
    undisturbed
    check "ranks that are killed, the same bytes" makes again one-8 exits 0 "continuing from again" "$restart" again bash -c fewer_each_time
    check "three runs" [ "$(cat runs)" = 3 ]
    check "a command that always fails" exits 1 "status 1, and nothing has not changed in 2 runs; stopping" "$restart" -n 2 nothing false
    check "a wrong call" exits 2 "a wrong call; not repeating it" "$restart" nothing sh -c 'exit 2'
    check "no command" exits 2 "usage: restart.sh" "$restart" nothing
    check "a number of tries" exits 2 "-n: found many; expected a whole number" "$restart" -n many nothing true
    for signal in TERM INT HUP; do check "SIG$signal goes to the command, once" ended_by $signal; done
    check "a signal between two runs" eval '{ "$restart" nothing sh -c ": >tried; exit 5" 2>output & } && pid=$! && until grep -q "starting again" output; do sleep .02; done && kill $pid; wait $pid; [ $? = 5 ] && grep -q "ended by SIGTERM; status 5" output'
}

# ---- signals
stopped_together() {
    rm -f output stopped                  # the files belong to this run
    ranks 3 8 100000 out=stopped units=8 >output 2>&1 & local pid=$! one
    until [ -e output ] && [ "$(wc -l <output)" -gt 3 ]; do kill -0 $pid || return 1; sleep .05; done
    one=$(pgrep -f "^$train 8 100000" | tail -n 1)
    kill -s "$1" "$one" || { kill -s KILL $pid; return 1; }
    wait $pid && [ -e stopped ] && local done_; done_=$(grep -c . output)
    "$train" 8 "$done_" units=8 out=alone >/dev/null && cmp alone stopped
}
stopped() {
    for signal in TERM USR1; do check "SIG$signal to one stops all at one update" stopped_together $signal; done
}

# ---- without other ranks
refused() {
    echo 'static const struct { int abi; } old = { 1 }; const void *weft_transport_open_v1(void) { return &old; }' >contract1.c
    check "a plug-in of contract 1" "${CC:-cc}" -shared -fPIC -o contract1.so contract1.c
    check "no such plug-in" exits 1 "parallel_new: WEFT_PARALLEL: .*nowhere.so" env WEFT_PARALLEL="$PWD/nowhere.so" "$train" 8 6
    check "no such name" exits 1 "WEFT_PARALLEL=smoke; expected openmpi, mpich, none or the absolute path" env WEFT_PARALLEL=smoke "$train" 8 6
    check "none" env WEFT_PARALLEL=none OMPI_COMM_WORLD_SIZE=4 "$train" 8 2
    check "a plug-in that is not there" exits 1 "there is no .*libweft_mpich.so" env PMI_SIZE=2 WEFT_BACKEND_PATH="$PWD" "$train" 8 6
    check "lone copies by srun" exits 1 "srun has started 4 tasks without --mpi" env SLURM_STEP_NUM_TASKS=4 "$train" 8 6
    check "no plug-in at all" exits 1 "has no weft_transport_open_v1" env WEFT_PARALLEL="$(realpath "$build")/libweft.so" "$train" 8 6
    check "one of another contract" exits 1 "has interface version 1; expected 2" env WEFT_PARALLEL="$PWD/contract1.so" "$train" 8 6
    check "an invalid timeout" exits 1 "WEFT_PARALLEL_TIMEOUT=soon" env WEFT_PARALLEL_TIMEOUT=soon "$train" 8 6
    check "the library knows no MPI" eval '! ldd "$build/libweft.so" | grep -qi mpi'
}

every_part="bytes gathered examples launched logged shared_gpus linked linked_on resumed carried failures gone gone_at_the_end goes_on restarted stopped refused"
case ${V:-} in
double) every_part=$(echo " $every_part " | sed 's/ linked_on / /; s/ gone gone_at_the_end goes_on restarted / /') ;;      # the lost rank and the moment do not change the numbers
asan)   [ -n "${WHOLE:-}" ] || every_part=$(echo " $every_part " | sed 's/ bytes / /; s/ linked_on / /; s/ / /') ;;  # which numbers, none of memory
esac
for part in ${PARTS:-$every_part}; do $part; done
finish "many ranks"
