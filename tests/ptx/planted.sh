#!/usr/bin/env bash
# planted.sh: plants bugs that only PTX shows, not g++ and the emulation. Each goes into a copy of one source. nvcc compiles it to PTX, and
# the named test must fail on that PTX. A bug marked "same" must not change the PTX.
# B: the build, with its PTX and tests; NVCC. Part of `make nightly`.
set -u
. tests/units.sh
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
folder=$(realpath -m "$B/planted_ptx") texts=$(realpath "$B/ptx")
export WEFT_TESTS=$PWD/tests WEFT_BACKEND_PATH=$(realpath "$B/emu") WEFT_TABLES="ref cuda" WEFT_SMALL=1 WEFT_MANAGED=1 WEFT_EMU_ASYNC=1
rm -rf "$folder"; mkdir -p "$folder"
all=0

# FOLDER EXPECTED CC WHAT [HEADER:]FILE SED TEST [FILTER]; EXPECTED: caught, or same
net() {
    local into=$1 expected=$2 cc=$3 what=$4 edited=${5%%:*} file=${5#*:} program=$6 test=$7 filter=${8:-} order rc=0 name flags=
    name=${file%.cu}
    mkdir -p "$into/cuda" "$into/core/shared" "$into/ptx"
    cp cuda/*.h "cuda/$file" "$into/cuda"; cp core/*.h core/*.def "$into/core" 2>/dev/null; cp core/shared/* "$into/core/shared"
    case $edited in */*) ;; *) edited=cuda/$edited ;; esac
    sed -E "$program" "$edited" >"$into/$edited"
    if cmp -s "$edited" "$into/$edited"; then echo "  FAIL  $what: the sed changes nothing in $edited"; return; fi
    case $file in nests.cu|optimisers.cu|pointwise.cu|scan.cu) flags=-fmad=false ;; esac              # CUDA_UNFUSED in mk/cuda.mk
    (cd "$into" && "$nvcc" -std=c++17 -O3 $flags -I. -I"$OLDPWD" -arch="compute_$cc" -ptx -o "$name.ptx" "cuda/$file") >"$into/log" 2>&1 ||
        { echo "  FAIL  $what: does not compile"; head -n 5 "$into/log"; return; }
    ln -s "$texts"/*."$cc".ptx "$into/ptx"
    rm "$into/ptx/$name.$cc.ptx"; mv "$into/$name.ptx" "$into/ptx/$name.$cc.ptx"
    # a module's name depends on its folder
    if cmp -s <(plain_names "$texts/$name.$cc.ptx") <(plain_names "$into/ptx/$name.$cc.ptx"); then
        if [ "$expected" = same ]; then echo "  ok    $what: the PTX is the same"; else echo "  FAIL  $what: the PTX is the same"; fi
        return
    fi
    if [ "$expected" = same ]; then echo "  FAIL  $what: the PTX differs"; return; fi
    for order in 0 1 2; do
        WEFT_EMU_CC=$cc WEFT_EMU_PTX=$into/ptx WEFT_EMU_ORDER=$order timeout 100 "$(program_of "$test")" --filter "$(filter_of "$test" "${filter##*/}")" >"$into/log" 2>&1 </dev/null || rc=1
        [ $rc = 0 ] || break
    done
    if [ $rc = 0 ]; then echo "  FAIL  $what: $test did not notice"; return; fi
    echo "  ok    $what: $test, order $order: $(sed -n 's/^emulated CUDA: //p' "$into/log" | head -n 1 | sed -E 's,[^ ]*/ptx/,,' | cut -c 1-110)"
    rm -rf "$into"
}
plain_names() { sed -E 's/_INTERNAL_[0-9a-f]+_[0-9]+_[A-Za-z_]+_cu_[0-9a-f]{8}/_INTERNAL_/g; s/_?[0-9]*_INTERNAL_[0-9a-z_]*/_INTERNAL_/g; /^\/\//d' "$1"; }
plant() {                               # EXPECTED CC WHAT [HEADER:]FILE SED TEST [FILTER]; runs one process per core
    all=$((all + 1))
    while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
    net "$folder/$all" "$@" >"$folder/$all.log" 2>&1 &
}

export WEFT_RECUR=general
plant caught 90 "a kernel that reads host memory"                recur.cu                's/step_at\(r, r.live.device, r.start.device, t\)/step_at(r, r.live.host, r.start.host, t)/'   test_rnn_rows
plant caught 80 "launch bounds below the launch"                attention_tile.h:attention.cu 's/__launch_bounds__\(SIDE \* SIDE, /__launch_bounds__(SIDE * SIDE \/ 2, /'  test_kernels 'kernels/attention'
plant caught 90 "swapped fragments of attention"                ptx.h:attention_cores.cu 's/"r"\(a\[0\]\), "r"\(a\[1\]\), "r"\(a\[2\]\)/"r"(a[0]), "r"(a[2]), "r"(a[1])/'  test_attention_cores '*/are*'
plant caught 120 "half of a draw used as 64 bits"               core/shared/normal.h:pointwise.cu 's/\(double\)\(uint32_t\)\(draw >> 32\)/(double)(draw >> 32)/'  test_kernels 'kernels/flat'
export WEFT_RECUR=block
plant caught 90 "weights with half a vector's alignment"        recur_block.cu          's/float4 \*overflow = \(float4 \*\)\(memory \+ 2 \* SEQUENCES \* \(UNITS \+ PAD\)\)/float4 *overflow = (float4 *)(memory + 2 * SEQUENCES * (UNITS + PAD) - 2)/'  test_recur 'recur/tiers*'
plant caught 90 "too much shared memory"                        recur_block.cu          's/^    float4 \*overflow = \(float4 \*\)\(memory .*/&\n    SHARED(much, float[4096]); much[threadIdx.x] = (float)r.steps; __syncthreads();\n    if (r.steps < 0) memory[0] = much[threadIdx.x \/ 2];/'  test_recur 'recur/tiers*'
plant caught 90 "TF32 that is not rounded"                      ptx.h:recur_block.cu    's/\(__float_as_uint\(x\) \+ 0x1000\) & ~0x1FFFu/__float_as_uint(x)/'      test_recur 'recur/tiers*'
plant caught 90 "a NaN that becomes a zero"                     ptx.h:recur_block.cu    's/min\(__float_as_int\(x\), 0x7FC00000\)/__float_as_int(x)/'  test_recur 'recur/one_product*'
plant caught 80 "a long sum in an A100's tensor cores"          ptx.h:recur_block.cu    's/FOLDED = 4 /FOLDED = 1 << 20 /'         test_recur 'recur/long*'
export WEFT_RECUR=cluster
plant caught 90 "an inverted wait"                              ptx.h:recur_cluster.cu  's/1, 0, p; \}"/0, 1, p; }"/'                      test_recur 'recur/wide*'
plant caught 90 "a rank used as an address"                     ptx.h:recur_cluster.cu  's/"=r"\(address\) : "r"\(shared_address\(mine\)\), "r"\(rank\)/"=r"(address) : "r"(rank), "r"(shared_address(mine))/'  test_recur 'recur/wide*'
plant caught 90 "a vector store in the wrong order"             ptx.h:recur_cluster.cu  's/"f"\(v.x\), "f"\(v.y\), "f"\(v.z\), "f"\(v.w\), "r"/"f"(v.y), "f"(v.x), "f"(v.z), "f"(v.w), "r"/'  test_recur 'recur/wide*'
plant caught 90 "barriers published without a fence"            ptx.h:recur_cluster.cu  's/SM90\("fence.mbarrier_init.release.cluster;" ::: "memory"\)/(void)0/'  test_recur 'recur/wide*'
plant caught 90 "a relaxed arrival"                             ptx.h:recur_cluster.cu  's/arrive.release.aligned/arrive.relaxed.aligned/'  test_recur 'recur/wide*'
plant caught 90 "a cluster's barrier that some lanes skip"      recur_cluster.cu        's/^    cluster_sync\(\);/    if (threadIdx.x % 32 < 31) cluster_sync();/'  test_recur 'recur/wide*'
plant same   90 "a wait without a memory clobber"               ptx.h:recur_cluster.cu  '/mbarrier_try_wait/,/^\}/s/^         : "memory"\);/);/'  test_recur 'recur/wide*'
wait
all=$((all + 1))
if "$nvcc" -std=c++17 -O3 -I. -arch=compute_80 -ptx -o "$folder/fused.ptx" cuda/nests.cu && grep -qE '\b(mul|add|sub)\.f(32|64)\b' "$folder/fused.ptx"; then
    echo "  ok    operations that ptxas may fuse: found in the PTX"
else
    echo "  FAIL  operations that ptxas may fuse: not found in the PTX"
fi >"$folder/$all.log"
cat "$folder"/*.log
good=$(cat "$folder"/*.log | grep -c '^  ok ')
echo "$good of $all bugs planted in the shipped code are handled: the nets hold"
[ "$good" = "$all" ]
