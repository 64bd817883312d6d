#!/usr/bin/env bash
# registers.sh: what ptxas said of every CUDA kernel: none may spill, and those that keep a layer's weights in registers stay within
# the budget that lets a block of theirs run. B is the build with libweft_cuda.so.
set -u
budgets='forward_steps<.*, 32> 168
backward_steps<.*, 32> 168
forward_steps<.*, 64> 255
backward_steps<.*, 64> 255
forward_steps<.*, 128> 128
backward_steps<.*, 128> 128
forward_cluster<.*> 255
backward_cluster<.*> 255'
files=(cuda/*.cu); files=("${files[@]/%.cu/.usage}"); files=("${files[@]/#/$B/}")
[ -f "${files[0]}" ] || { echo "registers.sh: no $B/cuda/*.usage: make $B/libweft_cuda.so first"; exit 1; }
cat "${files[@]}" | c++filt | awk -v table="$budgets" '
    BEGIN { lines = split(table, line, "\n"); for (i = 1; i <= lines; i++) { match(line[i], / [0-9]+$/); most[i] = substr(line[i], RSTART + 1) + 0; name[i] = substr(line[i], 1, RSTART - 1) } }
    /Compiling entry function/ { kernel = $0; sub(/^[^\x27]*\x27/, "", kernel); all++ }
    /spill stores/ && !/ 0 bytes spill stores, 0 bytes spill loads/ { print "  FAIL  " kernel ":" $0; bad++ }
    /Used [0-9]+ registers/ {
        match($0, /Used [0-9]+/); used = substr($0, RSTART + 5, RLENGTH - 5) + 0
        for (i = 1; i <= lines; i++) if (kernel ~ name[i]) { met[i] = 1; if (used > most[i]) { print "  FAIL  " kernel ": " used " registers, " most[i] " are the budget"; bad++ } }
    }
    END {
        for (i = 1; i <= lines; i++) if (!met[i]) { print "  FAIL  no kernel " name[i]; bad++ }
        printf "%d of %d kernels hold\n", all - bad, all
        exit bad || !all
    }'
