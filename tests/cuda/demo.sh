#!/usr/bin/env bash
# demo.sh    runs examples/g2p on the CPU and with the back end at WEFT_BACKEND_PATH. Losses must agree, also for a run
# that starts on one device and resumes on the other. B is the build.
set -u
. "$(dirname "$0")/../scripts/script.sh"
language 60 >dict
run=("$g2p" --data dict --hidden 16 --embed 8 --layers 2 --batch 8 --epochs 15 --warmup 20 --every 30 --seed 3)
# The losses of all points in a log, and the last error on dev.
close_enough() { paste -d' ' <(numbers "$1") <(numbers "$2") | awk 'NF != 2 { exit 1 } { d = $1 - $2; if (d < 0) d = -d; if (d > 2e-4 * ($1 > 1 ? $1 : 1)) exit 1; n++ } END { exit !n }'; }
numbers() { grep -oE '"(loss|norm|dev_per)": [-0-9.e]+' "$1" | awk '{ print $2 }'; }

check "on the CPU" "${run[@]}" --device cpu --out cpu.h5 --log cpu.jsonl
check "on the GPU" "${run[@]}" --device cuda --out cuda.h5 --log cuda.jsonl
check "the same losses" close_enough cpu.jsonl cuda.jsonl
check "again on the GPU" "${run[@]}" --device cuda --out again.h5
check "same bytes again" cmp cuda.h5 again.h5
stopped() {                             # DEVICE: starts a run there and interrupts it
    rm -f moved.*
    "${run[@]}" --device "$1" --out moved.h5 --log moved.jsonl >/dev/null 2>&1 & local pid=$!
    until grep -qs '"epochs_done": 2,' moved.jsonl || ! kill -0 $pid; do :; done
    kill -INT $pid
    wait $pid
    [ $? = 130 ]
}
move() {                                # FROM TO: starts a run on one device and resumes it on the other
    local tries
    for ((tries = 0; tries < 20; tries++)); do
        if stopped "$1"; then "${run[@]}" --device "$2" --out moved.h5 --log moved.jsonl --resume; return; fi
    done
    return 1
}
case ${V:-} in asan|dasan) ways=() ;; *) ways=("cpu cuda" "cuda cpu") ;; esac     # sanitizers make the timing of the interrupt unreliable
for way in "${ways[@]}"; do
    check "${way% *} starts, ${way#* } resumes" move $way
    check "the same losses after it" close_enough cpu.jsonl moved.jsonl
done
check "pronounces on the CPU" "$g2p" --say cuda.h5 --device cpu bade
check "pronounces on the GPU" "$g2p" --say cpu.h5 --device cuda bade
check "WEFT_DEVICE overrides" env WEFT_DEVICE=cpu "$g2p" --say cpu.h5 --device cuda bade
check "no such device" bash -c '! WEFT_DEVICE=cuda:7 '"$g2p"' --say cpu.h5 bade 2>&1 | grep -v "no device 7" | grep .'
finish "the demo on two devices"
