# shellcheck shell=bash
# gpu_units.sh, to be sourced from the root of the tree: the units (tests/units.sh) that tests/gpu_pack.sh packs and tests/gpu_first.sh runs.
. tests/units.sh
general_units="test_kernels test_kernels_places test_kernels_update test_kernel_groups test_attention test_attention_cores test_ops test_layers test_rnn test_cuda"
gpu_units="test_recur test_recur_layer $general_units"
