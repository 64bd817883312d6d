# shellcheck shell=bash
# cuda.sh, to be sourced by run.sh: the units that use the kernel tables, once more on a GPU or on its emulation (CUDA has its library).
#
# Recurrent layers have four kernels there (WEFT_RECUR). Everything runs with the general one, in small, the emulation in one of its three
# orders of threads each time; then the units of recurrent layers run with each of the others.

# May UNIT run on this GPU? A real one (GPU=1) cannot use memory of the host. Under the address sanitizer layers and models run nightly.
on_gpu() {                              # UNIT
    case ${V:-}${WHOLE:-},${1##*/} in asan,test_kernel_bits|asan,test_rnn_*|asan,test_forecast*) return 1 ;; esac
    case ${1##*/} in
    test_cuda) true ;;
    test_kernel_bits|test_vector|test_cuda_emulated|test_cuda_recur|test_cuda_link) [ -z "${GPU:-}" ] ;;
    test_hdf5_*|test_damaged_*|test_inflate|test_fuzz_*) [ -z "${GPU:-}${V:-}" ] ;;      # readers of files use no device
    *) uses_tables "$1" ;;
    esac
}

# Kernels of recurrent layers are written for float. The sanitizer runs them without the tests that try hundreds of them.
recurrent_kernels() {                   # UNIT
    case ${V:-}${WHOLE:-} in
    double|dasan) ;;
    asan) criterion "$1" '@(crash|wait|no|refused)*' ;;
    *) if on_gpu "$1"; then criterion "$1"; fi ;;
    esac
}

# The units of recurrent layers, with asynchronous copies and stores as late as they may come, and streams early.
recurrent() {                           # UNIT...
    local unit cases='' layers=*
    case ${V:-} in tsan) cases=gru_1layer_bi_state ;; esac
    case ${GPU:-}$WEFT_RECUR in cluster|group) layers='both*' ;; esac          # the other tests of a layer are the same for all kernels
    for unit; do
        case ${unit##*/} in
        test_recur_layer) WEFT_MANAGED=${GPU:-} WEFT_EMU_SEED=1 WEFT_EMU_ASYNC=1 criterion "$unit" "$layers" ;;
        test_recur*) WEFT_MANAGED=${GPU:-} WEFT_EMU_SEED=1 WEFT_EMU_ASYNC=1 criterion "$unit" ;;
        test_rnn) [ -z "${GPU:-}" ] || criterion "$unit" ;;
        golden) WEFT_GOLDEN=$cases counted "golden_recurrent$tag" $start "$unit" tests/golden/recurrent.json ;;
        esac
    done
}

cuda() {                                # UNIT...
    local order=0 unit kernel
    export WEFT_BACKEND_PATH=$CUDA WEFT_TABLES="ref cuda" WEFT_SMALL=1 WEFT_RECUR=general
    tag=.cuda
    for unit; do
        export WEFT_EMU_ORDER=$((order++ % 3))
        case ${unit##*/} in
        test_recur*) WEFT_MANAGED=${GPU:-} criterion "$unit" ;;
        test_cuda_recur) recurrent_kernels "$unit" ;;
        test_*) if on_gpu "$unit"; then criterion "$unit"; fi ;;
        golden) golden "$unit" ;;
        emu_test) counted emu_test $start env ASAN_OPTIONS=allocator_may_return_null=1 "$unit" ;;     # its children must die of sanitizers
        esac
    done
    # The interpreter of tests/ptx, which runs clusters, looks up every address: too slow under the address sanitizer.
    case ${V:-} in
    double|dasan) ;;
    asan) tag=.block; WEFT_RECUR=block recurrent "$@" ;;
    *) for kernel in block cluster; do tag=.$kernel; WEFT_RECUR=$kernel recurrent "$@"; done
       tag=.group; WEFT_EMU_CC=120 WEFT_RECUR=group recurrent "$@" ;;
    esac
    case ${V:-} in ''|double) counted demo.cuda bash tests/cuda/demo.sh ;; esac
}
