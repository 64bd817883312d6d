#!/usr/bin/env bash
# parallel.sh    measures the cost and gain of ranks with Open MPI on this machine, and prints one line of JSON for each measurement:
# - the exchange of gradients compared with MPI_Allreduce; g2p on two ranks and on one, a core each, alternately;
# - gradients sent during backward or after it, over shared memory and over simulated networks; eight shards on one rank and one shard.
# B is the build, DICT the dictionary, ROUNDS the repetitions (7).
set -u
build=$(realpath "${B:-build}") dict=$(realpath "$DICT") rounds=${ROUNDS:-7}
export WEFT_BACKEND_PATH=$build OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mpi="--mca pml ob1 --mca btl vader,self"
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1

mpirun.openmpi -n 2 $mpi "$build/tests/parallel/exchange" || exit 1

# Seconds of the first hundred updates.
g2p() { "${ranks[@]}" "$build/examples/g2p" --data "$dict" --epochs 1 --threads 1 --out g2p.h5 --log log --every 100000 "$@" >said 2>&1 || { cat said >&2; exit 1; }
        sed -n 's/.*"update": *100,.*"seconds": *\([0-9.]*\).*/\1/p' log; rm -f g2p.h5 log; }
median() { sort -g | sed -n "$(((rounds + 1) / 2))p"; }
beside() {                              # CASE: prints the medians of a and b, and of their ratios
    awk -v case_="$1" -v a="$(cut -d' ' -f1 pairs | median)" -v b="$(cut -d' ' -f2 pairs | median)" -v r="$(awk '{ print $1 / $2 }' pairs | median)" \
        'BEGIN { printf "{\"case\": \"%s\", \"seconds\": [%.3f, %.3f], \"ratio\": %.3f}\n", case_, a, b, r }'
    rm -f pairs
}
by_turns() {                            # CASE A B: runs two commands alternately
    for ((k = 0; k < rounds; k++)); do a=$(eval "$2"); echo "$a $(eval "$3")" >>pairs; done
    beside "$1"
}
two=(mpirun.openmpi -n 2 --bind-to core $mpi)
for of in "--batch 256 --words 34000" "--batch 32 --words 4400"; do
    by_turns "g2p, ${of##* } words: 1 rank, 2 ranks" 'ranks=(taskset -c $((k % 2))); g2p $of --shards 2' 'ranks=("${two[@]}"); g2p $of --shards 2'
    # tests/parallel/slow.c adds the delays of a network: bytes per second, and 30 us for each message.
    for rate in 0 1250e6 125e6; do
        ranks=("${two[@]}")
        [ $rate = 0 ] || ranks+=(-x WEFT_PARALLEL="$build/tests/parallel/slow.so" -x WEFT_SLOW_OF="$build/libweft_openmpi.so" -x WEFT_SLOW_RATE=$rate)
        by_turns "g2p, ${of##* } words on 2 ranks, $rate bytes/s: gradients that wait, that overlap" 'WEFT_PARALLEL_OVERLAP=off g2p $of --shards 2' 'g2p $of --shards 2'
    done
    ranks=(taskset -c 0)
    by_turns "g2p, ${of##* } words on 1 rank: 8 shards, 1 shard" 'g2p $of --shards 8' 'g2p $of --shards 1'
done
