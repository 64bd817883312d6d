#!/usr/bin/env bash
# test_weights.sh    the subcommands of `weft` for files with weights: lists, slices, differences, conversions, planted damage. B is the build.
set -u
. "$(dirname "$0")/script.sh"
PATH=$build:$PATH LC_ALL=C
gold=$root/tests/golden/interchange

safetensors() {                         # HEADER DATA: prints a file; DATA has escapes
    printf "$(printf '\\x%02x\\x%02x' $((${#1} % 256)) $((${#1} / 256)))\0\0\0\0\0\0%s%b" "$1" "$2"
}
flip() {                                # FILE OFFSET: copies FILE to `bad` and changes a byte
    cp "$1" bad
    printf "$(printf '\\x%02x' $((255 - $(od -An -tu1 -j "$2" -N 1 bad))))" | dd of=bad bs=1 seek="$2" conv=notrunc status=none
}
is_json() { ! command -v python3 >/dev/null || "$@" | python3 -c 'import json, sys; json.load(sys.stdin, parse_constant=int)'; }

# ---- a checkpoint
cp "$root/tests/golden/checkpoint_0_1.weft" s.h5
weft convert s.h5 s.safetensors && weft convert s.safetensors state.h5 && weft convert state.h5 again.safetensors
check "a round trip gives the same bytes" cmp s.safetensors again.safetensors
check "a checkpoint converted twice" eval 'weft convert s.h5 two.h5 && cmp two.h5 state.h5'
for other in s.safetensors state.h5; do
    check "the same list in $other" eval 'cmp <(weft list -s s.h5) <(weft list -s $other) && [ "$(weft list $other | wc -l)" = 12 ]'
    check "no difference in $other" exits 0 '12 arrays in both files: same bits' weft diff s.h5 $other
done
for word in '^  format  *weft checkpoint$' '^  float32  *12 arrays, 306 numbers, 1224 bytes' '^  library_version  *0\.1' '^  real  *float32$' \
    '^  checksum  *ok$' '^  optimiser  *Adam$' '^  rate  *float32 \[1\] 0.01$' '^  streams  *2$' '^  items/loader  *int64 \[4\] 1 6 0 3018065913016063005$'; do
    check "info prints $word" exits 0 "$word" weft info s.h5
done
same=$root/tests/golden/checkpoint_0_2.safetensors
check "the same list of a checkpoint in safetensors" eval 'cmp <(weft list -s s.h5) <(weft list -s $same)'
check "the same facts" eval 'cmp <(weft info s.h5 | grep -v "s.h5\|bytes  \|version") <(weft info $same | grep -v "$same\|bytes  \|version")'
check "names alone" is "$(weft list --names s.h5 | head -n 2 | xargs)" "embed.weight kept"
check "info, of two files" eval '[ "$(weft info s.h5 state.h5 | grep -c "^  format ")" = 2 ]'
for words in 'info s.h5 gone' 'diff s.h5 gone' 'check gone s.h5'; do check "a missing file: $words" exits 2 gone weft $words; done
check "a closed pipe" eval '[ -z "$( (weft list -s s.h5; weft show s.h5 out.bias --json) 2>&1 >&- | grep -v "cannot write stdout")" ]'
check "a full disk" exits 2 'cannot write stdout' bash -c 'weft list -s s.h5 >/dev/full'

# ---- numbers: 0 .. 11, and NaN
x=$(for i in 0x0000 0x3f80 0x4000 0x4040 0x4080 0x40a0 0x40c0 0x40e0 0x4100 0x4110 0x4120 0x4130; do printf '\\0\\0\\x%02x\\x%02x' $((i & 255)) $((i >> 8)); done)
safetensors '{"x":{"dtype":"F32","shape":[3,4],"data_offsets":[0,48]}}' "$x" >x.safetensors
safetensors '{"a \"b\"":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}' '\0\0\xc0\x7f\0\0\x80\x3f' >nan.safetensors
for row in 'x is [3, 4] [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]' 'x[1] is [4] [4, 5, 6, 7]' 'x[:, -1] is [3] [3, 7, 11]' 'x[-1, 0] is [] 8' \
    'x[1:, ::2] is [2, 2] [[4, 6], [8, 10]]' 'x[2:1] is [0, 4] []' 'x[-9:2,2:99] is [2, 2] [[2, 3], [6, 7]]'; do
    check "${row% is *}" is "$(weft show x.safetensors "${row% is *}" | tr -d '\n')" "${row#* is }"
done
check "one slice too many" exits 2 '\[0,0,0\]: expected a slice of \[3, 4\]' weft show x.safetensors 'x[0,0,0]'
for slice in '[3]' '[0,]' '[a]' '[::0]' '[0:2' '[]' '[1 2]' '[-4]'; do check "x$slice" exits 2 "no array \|: expected a slice of \[3, 4\]" weft show x.safetensors "x$slice"; done
check "the nearest name" exits 2 'no array "lstm.wieght_hh_l0"; "lstm.weight_hh_l0" is near' weft show s.h5 'lstm.wieght_hh_l0[0]'
check ".npy" eval 'weft show x.safetensors "x[1:,::2]" --npy x.npy && weft list x.npy | grep -q "^array  *float32  *\[2, 2\] " && [ "$(weft show x.npy array | xargs)" = "[2, 2] [[4, 6], [8, 10]]" ]'
check "JSON has all numbers" has "$(weft show x.safetensors x --json | xargs)" 'shape: [3, 4], values: [[0, 1, 2, 3], [4, 5, 6, 7]'
check "null for NaN" has "$(weft show nan.safetensors 'a "b"' --json)" '"values": [null, 1]'
safetensors '{"x":{"dtype":"F32","shape":[1000000000000000000,0],"data_offsets":[0,0]}}' '' >empty.safetensors
check "a large empty array" eval '[ "$(weft show empty.safetensors "x[:2]" | xargs)" = "[2, 0] [[], []]" ] && weft show empty.safetensors x --json | grep -q "\"values\": \[\]"'
check "-s counts NaN" has "$(weft list -s nan.safetensors)" 'min 1            max 1            mean 1            norm 1            nan 1 inf 0'
for words in 'info s.h5 nan.safetensors' 'list -s nan.safetensors' 'list --names nan.safetensors' 'list s.h5' 'check nan.safetensors s.h5' env \
    'diff s.h5 nan.safetensors' 'convert --dry-run nan.safetensors' "info $gold/training.pt"; do
    check "JSON: $words" is_json weft $words --json
done

# ---- differences
safetensors '{"x":{"dtype":"F32","shape":[3,4],"data_offsets":[0,48]}}' "${x/x30/x31}" >y.safetensors
check "one number" exits 1 '^x: 1 differing number, at most by 0.0625 at \[2, 3\]: 11, 11.0625; relative 0.00565, 65536 ulp$' weft diff x.safetensors y.safetensors
check "one of each" exits 0 'float32  *1 array, 1 number, 4 bytes$' eval 'weft show x.safetensors "x[0,0]" --npy one.npy; weft info one.npy'
check "a tolerance" exits 0 '^1 array in both files: 1 within the tolerance$' weft diff --tolerance .01 x.safetensors y.safetensors
check "a smaller one" exits 1 '1 difference$' weft diff --tolerance .001 x.safetensors y.safetensors
safetensors '{"x":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}}' '\0\0\0\0\0\0\x20\0' >i.safetensors
safetensors '{"x":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}}' '\1\0\0\0\0\0\x20\0' >j.safetensors
check "integers above 2^53" exits 1 'at most by 1 at \[0\]: 9007199254740992, 9007199254740993; relative' weft diff i.safetensors j.safetensors
check "names" exits 1 '^only in nan.safetensors: a "b" float32 \[2\]$' weft diff x.safetensors nan.safetensors
check "shapes" exits 1 '^lone: shape \[2, 2\], \[3, 4\]$' eval 'echo x lone >one; echo array lone >two; weft convert x.safetensors l.h5 --map one && weft convert x.npy m.h5 --map two && weft diff m.h5 l.h5'
check "NaN equals itself" exits 0 'same bits' weft diff nan.safetensors nan.safetensors
check "Keras 3 and Keras 2" exits 0 '15 arrays in both files: same bits' weft diff "$gold/tagger.keras" "$gold/tagger_of_keras_2.h5"

# ---- conversions
check "from Keras" eval 'weft convert "$gold/tagger.keras" k.h5 && cmp <(weft list -s k.h5) <(weft list -s "$gold/tagger_of_keras_2.h5")'
check "a prefix" eval 'weft convert $gold/parallel.pt p.safetensors --prefix module. && weft diff p.safetensors $gold/lstm.pt'
check "another one" eval 'weft convert p.safetensors q.h5 --add-prefix module. && weft diff q.h5 $gold/parallel.pt'
check "a dry run" eval 'weft convert --dry-run --prefix module. --dtype bf16 $gold/parallel.pt none.h5 | grep -q "^module.lstm.bias_hh_l0 -> lstm.bias_hh_l0 bfloat16 \[8\]$" && ! [ -e none.h5 ]'
# 1 + 2^-11 and 1 + 3 * 2^-11 are ties in float16, 2^-25 and 3 * 2^-25 among its smallest; 65519 is the last that it holds
safetensors '{"x":{"dtype":"F32","shape":[5],"data_offsets":[0,20]}}' '\0\x10\x80\x3f\0\x30\x80\x3f\0\0\0\x33\0\0\xc0\x33\0\xef\x7f\x47' >ties.safetensors
check "float16, ties to even" is "$(weft convert ties.safetensors h.safetensors --dtype f16; tail -c 10 h.safetensors | od -An -tx1 | xargs)" "00 3c 02 3c 00 00 02 00 ff 7b"
check "bfloat16" is "$(weft convert ties.safetensors b.safetensors --dtype bf16; tail -c 10 b.safetensors | od -An -tx1 | xargs)" "80 3f 80 3f 00 33 c0 33 80 47"
check "widened again" eval 'weft convert h.safetensors w.safetensors --dtype f64 && weft diff w.safetensors h.safetensors --tolerance 1e-300'
safetensors '{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}' '\0\xf0\x7f\x47' >large.safetensors
check "65520 is too large, and the old file stays" eval 'cp h.safetensors o.safetensors; ! weft convert large.safetensors o.safetensors --dtype f16 2>e && grep -q "number 0 of x is 65520, which float16 does not hold" e && cmp o.safetensors h.safetensors'
check "another ending" exits 2 'expected .safetensors, .h5' weft convert x.safetensors x.pt
check "no such type" exits 2 'dtype: found "f8"; expected f32' weft convert x.safetensors x.h5 --dtype f8
check "no second file" exits 2 'found no file OUT' weft convert x.safetensors

# ---- damage: each is found
check "good files" eval 'weft check s.h5 s.safetensors state.h5 $gold/lstm.pt $gold/types.npz'
safetensors '{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}' '\0\0\x80\xff\0\0\x80\x3f' >infinite.safetensors
check "infinities are a note" exits 0 'note: x: NaN: 0, infinities: 1, numbers: 2$' weft check infinite.safetensors
check "equal numbers are a note" exits 0 'note: w: all 2 numbers are 1$' weft check $gold/evil.pt
found() { check "found: $1" exits 1 "^fault: bad: \|^bad: fault: " weft check bad; }
half=$(($(wc -c <s.h5) / 2)) data=$(grep -aob 'lstm/data/0' $gold/lstm.pt | head -n 1 | cut -d: -f1)
for at in {0,20,60,520,700,5000,$half,$((2 * half - 1))}" s.h5" {7,8}" x.safetensors" "$((data + 80)) $gold/lstm.pt" "189 $gold/types.npz"; do
    flip "${at#* }" "${at% *}"; found "byte $at"
done
for cut in "-1 s.h5" "7000 state.h5" "-1 x.safetensors" "3000 $gold/lstm.pt" "30000 $gold/tagger.keras" "1000 $gold/export.onnx"; do
    head -c "${cut% *}" "${cut#* }" >bad; found "truncated: $cut"
done
for longer in s.h5 x.safetensors; do { cat $longer; echo; } >bad; found "a byte after $longer"; done
tail -c +513 s.h5 >bad; found "a checkpoint without its seal"
damaged() { safetensors "{\"x\":{\"dtype\":\"$2\",\"shape\":$3,\"data_offsets\":$4},\"$5\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":$6}}" "$7" >bad; found "$1"; }
eight='\0\0\x80\x3f\0\0\0\x40'
damaged "offsets swapped" F32 [2] [8,0] y [8,16] "$eight$eight"
damaged "an overlap" F32 [2] [0,8] y [4,12] "$eight\0\0\0\0"
damaged "a hole" F32 [2] [0,8] y [12,20] "$eight\0\0\0\0$eight"
damaged "a wrong size" F32 [3] [0,8] y [8,16] "$eight$eight"
damaged "an unknown type" F33 [2] [0,8] y [8,16] "$eight$eight"
damaged "a name twice" F32 [2] [0,8] x [8,16] "$eight$eight"
damaged "NaN" F32 [2] [0,8] y [8,16] "$eight\0\0\x80\x3f\0\0\xc0\x7f"

# ---- a model: an LSTM, a linear layer and softmax over two sequences of 3 and 1 steps
safetensors '{"x":{"dtype":"F32","shape":[3,2,2],"data_offsets":[0,48]}}' "$x" >in.safetensors
safetensors '{"x":{"dtype":"I64","shape":[2],"data_offsets":[0,16]}}' '\3\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0' >lengths.safetensors
weft show in.safetensors x --npy x.npy && weft show lengths.safetensors x --npy lengths.npy
model() { weft run "$gold/export.onnx" "$@" | tr -d '\n'; }
check "a model runs" is "$(model --input lengths.npy --input x.npy)" "p [3, 2, 3] [[[0.2943, 0.4553, 0.2504], [0.2934, 0.4441, 0.2625]], [[0.2897, 0.439, 0.2713], [0, 0, 0]], [[0.2898, 0.4439, 0.2664], [0, 0, 0]]]"
check "named inputs in any order" is "$(model --input x.npy --input lengths=lengths.npy)" "$(model --input lengths.npy --input x.npy)"
check "JSON of outputs" is_json weft run "$gold/export.onnx" --input x=x.npy --input lengths=lengths.npy --json
check "an output as .npy" eval '[ -z "$(model --input x.npy --input lengths=lengths.npy --output p=y.npy)" ] && weft list y.npy | grep -q "float[36][24]  *\[3, 2, 3\]"'
check "a missing input" exits 2 'input x float32 \[time, batch, 2\] is missing; expected --input' weft run "$gold/export.onnx" --input lengths.npy
check "one input twice" exits 2 'the model has 2 of these arrays, each once' weft run "$gold/export.onnx" --input x=x.npy --input x=x.npy
check "an input of another type" exits 2 'x.npy: NumPy: array is float32 \[3, 2, 2\]; expected integers' weft run "$gold/export.onnx" --input x.npy --input x.npy
check "no model" exits 2 'lstm.pt' weft run "$gold/lstm.pt"

# ---- this machine
check "env" eval 'weft env >e; for k in weft weft_real compiler cpu device CUDA "Open MPI" MPICH NCCL OpenBLAS HDF5 zlib locale; do grep -q "^$k  *[^ ]" e || { echo $k; exit 1; }; done'
check "why a plug-in is not there" eval 'mkdir none; WEFT_BACKEND_PATH=$PWD/none weft env | grep -q "^MPICH .*$PWD/none/libweft_mpich.so"'
check "variables of weft and of launchers" eval 'OMPI_COMM_WORLD_RANK=3 WEFT_THREADS=1 weft env >e && grep -qx WEFT_THREADS=1 e && grep -qx OMPI_COMM_WORLD_RANK=3 e && grep -q "^threads  *1$" e'
head -c 10000000 /dev/zero >zeros
safetensors '{"x":{"dtype":"U8","shape":[10000000],"data_offsets":[0,10000000]}}' '' | cat - zeros >large.safetensors
cpu_time() { local TIMEFORMAT='%U %S'; { time weft info large.safetensors >/dev/null; } 2>&1 | awk '{ print $1 + $2 }'; }
check "a file of 10 MB in 50 ms of CPU time" eval '[ -n "${V:-}" ] || near "$(cpu_time)" 0 .05'
finish "weights"
