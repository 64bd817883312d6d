#!/usr/bin/env bash
# registers.sh    checks the register counts that ptxas reported for each CUDA kernel and architecture. No kernel may spill. Kernels with weights
# in registers have the budgets below, which let one of their blocks run. All others may use 64, so that a block of 1024 threads runs; 255
# if they are limited to 256 threads (attention); 80 if 256 start (four powers together, on sm_100). B is the build with libweft_cuda.so,
# ARCHS are its architectures.
set -u
archs=${ARCHS:-80 90 100 120}
budgets='forward_steps<.*, 32> 168
backward_steps<.*, 32> 168
forward_steps<.*, 64> 255
backward_steps<.*, 64> 255
forward_steps<.*, 128> 128
backward_steps<.*, 128> 128
forward_cluster<.*> 255
backward_cluster<.*> 255
forward_group<.*> 255
backward_group<.*> 255
^void (attend|write_map|sum_gradients|gradient_of_) 255
^void flat_each< 80
. 64'
files=(cuda/*.cu); files=("${files[@]/%.cu/.usage}"); files=("${files[@]/#/$B/}")
[ -f "${files[0]}" ] || { echo "registers.sh: no $B/cuda/*.usage: make $B/libweft_cuda.so first"; exit 1; }
cat "${files[@]}" | c++filt | awk -v table="$budgets" -v wanted="$archs" '
    BEGIN {
        lines = split(table, line, "\n")
        for (i = 1; i <= lines; i++) { match(line[i], / [0-9]+$/); most[i] = substr(line[i], RSTART + 1) + 0; name[i] = substr(line[i], 1, RSTART - 1) }
    }
    /Compiling entry function/ { kernel = $0; sub(/^[^\x27]*\x27/, "", kernel); all++; arch = kernel; sub(/^.*sm_/, "", arch); sub(/\x27.*$/, "", arch) }
    /spill stores/ && !/ 0 bytes spill stores, 0 bytes spill loads/ { print "  FAIL  " kernel ":" $0; bad++ }
    /Used [0-9]+ registers/ {
        match($0, /Used [0-9]+/); used = substr($0, RSTART + 5, RLENGTH - 5) + 0
        for (i = 1; i <= lines && kernel !~ name[i]; i++) ;
        met[i, arch] = 1
        if (used > most[i]) { print "  FAIL  " kernel ": " used " registers, " most[i] " are the budget"; bad++ }
    }
    END {
        n = split(wanted, a, " ")
        for (i = 1; i <= lines; i++) for (k = 1; k <= n; k++) if (!met[i, a[k]]) { print "  FAIL  no kernel " name[i] " for sm_" a[k]; bad++ }
        printf "%d of %d kernels hold\n", all - bad, all
        exit bad || !all
    }'
